package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// Result is what became of one performance of a case.
type Result struct {
	Case     *Case
	Round    int // from 1, of the case's repeats
	Verdicts []Verdict
	Figures  Figures
	Err      error // it could not be performed
	Took     time.Duration
	Timeline *Timeline
	Record   *Record
	Heard    []int16 // the assistant's sound, in its time
	Said     []int16 // the caller's
	Rate     audio.Rate
	Files    []string // its sound and picture, where they were kept
}

// Passed says whether all that was expected came.
func (r *Result) Passed() bool { return r.Err == nil && len(r.Failed()) == 0 }

// Failed are the expectations that were not met.
func (r *Result) Failed() (out []Verdict) {
	for _, v := range r.Verdicts {
		if !v.OK {
			out = append(out, v)
		}
	}
	return out
}

// Seed is what made its line and its chance.
func (r *Result) Seed() uint64 { return r.Case.Seed + uint64(r.Round-1)*rounds }

// rounds is what lies between the seeds of a case's rounds.
const rounds = 1_000_003

// Title is the case's name with what sets this performance apart.
func (r *Result) Title() string {
	title := r.Case.Name
	if len(r.Case.Values) > 0 {
		title += " [" + strings.Join(r.Case.Values, " ") + "]"
	}
	if r.Case.Repeat > 1 {
		title += fmt.Sprintf(" #%d", r.Round)
	}
	return title
}

// Runner performs cases, several at a time.
type Runner struct {
	Server   *Server
	Mouth    Mouth
	Parallel int
	Ears     Ears     // of cases that name none
	Model    ai.Model // plays personas and judges; nil: there is none
	// Done is told of each result as it comes, one at a time; it may be nil
	Done func(r *Result, done, all int)
}

// Run performs all cases and returns their results in the cases' order.
func (n *Runner) Run(ctx context.Context, cases []Case) []Result {
	var results []Result
	for i := range cases {
		for round := range cases[i].Repeat {
			results = append(results, Result{Case: &cases[i], Round: round + 1})
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	room, done := make(chan struct{}, max(1, n.Parallel)), 0
	for i := range results {
		r := &results[i]
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			began := time.Now()
			if r.Err = context.Cause(ctx); r.Err == nil {
				r.Err = n.perform(ctx, r)
			}
			r.Took = time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			if done++; n.Done != nil {
				n.Done(r, done, len(results))
			}
		})
	}
	wg.Wait()
	return results
}

// errLimit ends a case that takes too long.
var errLimit = errors.New("the case took longer than its limit")

// perform holds one conversation and judges it.
func (n *Runner) perform(ctx context.Context, r *Result) error {
	c := *r.Case // its seed and ears are this performance's
	if c.Ears == "" {
		c.Ears = n.Ears
	}
	c.Seed = r.Seed()
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit, errLimit)
	defer cancel()
	if n.Model == nil && (len(c.Criteria) > 0 || c.Caller.Persona != "") {
		return errMind
	}
	a, err := n.Server.callee(ctx, &c)
	if err != nil {
		return err
	}
	token, err := a.begin(ctx, &c, a.ID)
	if err != nil {
		return err
	}
	defer a.ask(context.WithoutCancel(ctx), "DELETE", "/user/rehearsals/"+token, nil, nil)
	if c.Channel == Chat {
		r.Timeline, r.Record, err = a.chat(ctx, &c, token)
	} else {
		err = n.dial(ctx, r, &c, a, token)
	}
	if err != nil {
		return err
	}
	r.Verdicts, r.Figures = c.Judge(r.Timeline, r.Record), c.Figures(r.Timeline, r.Record)
	return mind{n.Model}.review(ctx, &c, r)
}

// dial performs a case by telephone.
func (n *Runner) dial(ctx context.Context, r *Result, c *Case, a *callee, token string) error {
	p := &performer{Case: c, ctx: ctx, mouth: n.Mouth, mind: mind{n.Model}}
	following, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	defer follower.Wait()
	defer stop()
	if c.Ears == Told {
		p.tell = func(words string) {
			// a call that is over has no ears
			_ = a.ask(ctx, "POST", "/user/rehearsals/"+token+"/words", map[string]any{"words": words}, nil)
		}
	}
	id := int64(0)
	err := p.perform(token, fmt.Sprint(a.ID), n.Server.SIP, func() *live {
		var now struct {
			CallID int64 `json:"call_id"`
		}
		if a.ask(ctx, "GET", "/user/rehearsals/"+token, nil, &now) != nil || now.CallID == 0 {
			return nil
		}
		id = now.CallID
		l := &live{}
		follower.Go(func() { _ = a.follow(following, id, l) }) // what it lacks is in the record
		return l
	})
	if err != nil && !errors.Is(err, errLimit) {
		return err
	}
	if id == 0 {
		return errors.New("the server doesn't know the call")
	}
	r.Timeline = &p.t
	// the record of a case that took too long is read too
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	r.Record, err = a.record(reading, id, c.End != nil && len(c.End.Variables) > 0)
	r.Heard, r.Said, r.Rate = p.tape()
	return err
}

// tape is the sound of both sides in its time.
func (p *performer) tape() (heard, said []int16, rate audio.Rate) {
	if p.call == nil {
		return nil, nil, 0
	}
	rate = p.call.Rate()
	length := int(p.t.Ended.Seconds()*float64(rate)) + int(rate)
	heard, said = make([]int16, length), make([]int16, length)
	place := func(to []int16, at time.Duration, pcm []int16) {
		if i := int(at.Seconds() * float64(rate)); i >= 0 && i < len(to) {
			copy(to[i:], pcm)
		}
	}
	sound, n := p.call.Sound(), rate.FrameSize()
	at := 0 // of the next packet's sound: one after the other, as they lag and catch up
	for _, one := range p.t.Heard {
		if len(sound) < n {
			break
		}
		due := int(one.At.Seconds() * float64(rate))
		if due-at > 3*n || at == 0 {
			at = max(due, 0)
		}
		if at+n <= len(heard) {
			copy(heard[at:], sound[:n])
		}
		at += n
		sound = sound[n:]
	}
	for _, a := range p.t.Acts {
		if a.Kind != Press {
			pcm, _, _ := p.speech(&p.Steps[a.Step])
			place(said, a.From, pcm)
		}
	}
	return heard, said, rate
}
