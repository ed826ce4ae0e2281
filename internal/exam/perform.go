package exam

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/rehearsal"
	"parley/internal/store"
)

// look is how often it is looked for performances that another process was to do, and for new ones of other processes.
const look = time.Second

// rouse signals that a performance may wait. It never waits itself.
func (d *Desk) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run performs what waits until ctx ends. What is under way then is given back, and performed by the next process.
func (d *Desk) Run(ctx context.Context) error {
	h := &hands{Desk: d, cancel: map[int64]context.CancelCauseFunc{}}
	defer h.busy.Wait()
	tick := time.NewTicker(look)
	defer tick.Stop()
	beat := time.NewTicker(d.beat)
	defer beat.Stop()
	for {
		if err := h.take(ctx); err != nil && ctx.Err() == nil {
			slog.Error("look for tests to perform", "error", err)
		}
		select {
		case <-d.wake:
		case <-tick.C:
		case <-beat.C:
			if err := h.hold(ctx); err != nil && ctx.Err() == nil {
				slog.Error("hold tests that are being performed", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// hands are the performances under way in this process.
type hands struct {
	*Desk
	busy sync.WaitGroup

	mu     sync.Mutex
	cancel map[int64]context.CancelCauseFunc // by the result's id
}

// take claims what waits, as far as there is room, and performs it.
func (h *hands) take(ctx context.Context) error {
	h.mu.Lock()
	free := h.room - len(h.cancel)
	h.mu.Unlock()
	if free <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	now := parley.Now()
	if due, err := h.DB.TestsDue(ctx, now); err != nil || !due { // a look costs less than a write
		return err
	}
	var list []parley.TestResult
	err := h.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = tx.ClaimTests(ctx, h.node, h.Line.IsValid(), now, now.Add(h.lease), free)
		return err
	})
	for i := range list {
		r := &list[i]
		performing, cancel := context.WithCancelCause(ctx)
		h.mu.Lock()
		h.cancel[r.ID] = cancel
		h.mu.Unlock()
		crash.Go(&h.busy, func() {
			defer func() {
				h.mu.Lock()
				delete(h.cancel, r.ID)
				h.mu.Unlock()
				cancel(nil)
				h.rouse() // there is room again
			}()
			h.perform(performing, ctx, r)
		}, crash.Log("the performance of a test", "result", r.ID))
	}
	return err
}

// errLost ends a performance that is not this process's any more.
var errLost = errors.New("the performance was stopped, or another process has it")

// hold says that this process is alive, and breaks off what has been stopped.
func (h *hands) hold(ctx context.Context) error {
	h.mu.Lock()
	ids := make([]int64, 0, len(h.cancel))
	for id := range h.cancel {
		ids = append(ids, id)
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	kept := map[int64]bool{}
	err := h.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		held, err := tx.HoldTests(ctx, h.node, ids, parley.Now().Add(h.lease))
		for _, id := range held {
			kept[id] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if cancel := h.cancel[id]; !kept[id] && cancel != nil {
			cancel(errLost)
		}
	}
	return nil
}

// perform performs one conversation and stores what became of it.
func (h *hands) perform(ctx, serving context.Context, r *parley.TestResult) {
	h.tell(r.RunID)
	began := time.Now()
	err := h.survive(func() error { return h.play(ctx, r) })
	r.TookMS = time.Since(began).Milliseconds()
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	due := parley.Time(0)
	switch {
	case serving.Err() != nil: // the server stops: the next one performs it
		due = parley.Now()
	case ctx.Err() == nil && errors.Is(err, rehearsal.ErrBusy): // others are performed meanwhile
		due = parley.Now().Add(h.again)
	}
	if due != 0 {
		err := h.DB.Write(writing, func(ctx context.Context, tx *store.Tx) error { return tx.ReturnTest(ctx, h.node, r.ID, due) })
		if err != nil {
			slog.Error("give a test back; it is taken again", "result", r.ID, "error", err)
		}
		return
	}
	if ctx.Err() != nil {
		return // stopped
	}
	if err != nil {
		r.State, r.Error = parley.TestBroken, reason(err)
	}
	err = h.DB.Write(writing, func(ctx context.Context, tx *store.Tx) error {
		tx.AfterCommit(func() { h.tell(r.RunID) })
		_, err := tx.FinishTest(ctx, r)
		return err
	})
	if err != nil {
		slog.Error("store what became of a test; it is performed again", "result", r.ID, "error", err)
	}
}

// survive turns a panic into an error.
func (h *hands) survive(fn func() error) (err error) {
	defer crash.Contain(func(e error) {
		slog.Error("performing a test panicked", "error", e)
		err = errors.New("the server failed to perform it; its log says why")
	})
	return fn()
}

// reason is an error in one sentence for people.
func reason(err error) string {
	text := err.Error()
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// play holds the conversation and fills in the result.
func (h *hands) play(ctx context.Context, r *parley.TestResult) error {
	if r.Tries > maxTries {
		return fmt.Errorf("the server stopped while it was performed, %d times", maxTries)
	}
	a, run, err := h.subject(ctx, r)
	if err != nil {
		return err
	}
	cases, err := Read(r.Script)
	if err != nil {
		return err
	}
	all := performances(cases)
	if r.Place >= len(all) {
		return errors.New("the script has no such performance")
	}
	c := all[r.Place].Case
	c.Draft, c.File = run.Draft, "script"
	if run.DraftAt != 0 {
		c.Run = run.ID
	}
	server := &rehearsal.Server{Only: a, SIP: h.Line, Client: rehearsal.Client{URL: "http://parley.internal",
		HTTP: &http.Client{Transport: h.Ask(a.UserID)}}}
	runner := &rehearsal.Runner{Server: server, Synthesize: h.Synthesize, Parallel: 1, Ears: defaultEars}
	if c.Caller.Persona != "" || len(c.Criteria) > 0 {
		if runner.Model, err = h.Assistants.Mind(a); err != nil {
			return err
		}
		if runner.Model == nil {
			return errors.New("a persona and judge need a language model, and this assistant thinks with the built-in responder: " +
				"choose a model for it")
		}
	}
	results := runner.Run(ctx, []rehearsal.Case{c})
	return keep(r, &results[0])
}

// subject is the assistant that a performance is of, and its run.
func (h *hands) subject(ctx context.Context, r *parley.TestResult) (*parley.Assistant, *parley.TestRun, error) {
	a, err := h.DB.Assistant(ctx, r.UserID, r.AssistantID)
	if err != nil {
		return nil, nil, err
	}
	run, err := h.DB.TestRun(ctx, r.UserID, r.AssistantID, r.RunID)
	return a, run, err
}

// keep takes over what became of a performance.
func keep(r *parley.TestResult, from *rehearsal.Result) error {
	if from.Record != nil {
		if id := from.Record.ID; id != 0 {
			r.PlayedCallID = &id
		}
		for _, t := range from.Record.Turns {
			r.Turns = append(r.Turns, parley.CallTurn{Speaker: t.Speaker, Text: t.Text, StartedAtMS: t.StartedAtMS, Interrupted: t.Interrupted})
		}
		for _, c := range from.Record.FunctionCalls {
			r.FunctionCalls = append(r.FunctionCalls, parley.CallTool{AtMS: c.AtMS,
				FunctionCall: parley.FunctionCall{Name: c.Name, Arguments: c.Arguments, Result: c.Result}})
		}
	}
	if from.Err != nil {
		return from.Err
	}
	r.State = parley.TestPassed
	if !from.Passed() {
		r.State = parley.TestFailed
		if r.Channel == "call" {
			var b strings.Builder
			if from.Picture(&b) == nil {
				r.Picture = b.String()
			}
		}
	}
	for _, v := range from.Verdicts {
		r.Verdicts = append(r.Verdicts, parley.TestVerdict{Line: v.Line, OK: v.OK, What: v.What, Got: v.Got, AtMS: v.At.Milliseconds()})
	}
	f := &from.Figures
	r.Figures = &parley.TestFigures{ReplyP50MS: f.Reply(0.5).Milliseconds(), ReplyP95MS: f.Reply(0.95).Milliseconds(),
		GreetingMS: f.Greeting.Milliseconds(), DeadAirMS: f.DeadAir.Milliseconds(), FalseCutoffs: f.Cutoffs, MissedTurns: f.Missed,
		StalePackets: f.Stale, Words: f.Words, Misheard: f.Wrong, Tools: f.Tools, Cost: f.Cost}
	return nil
}
