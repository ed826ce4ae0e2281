package call

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/telemetry"
)

const (
	reporters   = 32               // reports made at once, in this process
	reportersOf = 8                // of them one account's: those of a slow vendor hold up nobody else's
	reportTime  = 60 * time.Second // for the model to read a call
	reportHold  = reportTime + 10*time.Second
	reportGrace = 10 * time.Second // for those under way when the server stops
	reportLook  = time.Second      // how often it is looked for reports that another process was to make
)

// reportAgain is how long to wait before retrying a report after the model failed. When the retries are used up, the
// report is made without the model.
var reportAgain = []time.Duration{2 * time.Second, 15 * time.Second}

// wake signals that a report may be due. It never waits.
func (d *Center) wake() {
	select {
	case d.reports <- struct{}{}:
	default:
	}
}

// report makes the reports that are due until ctx ends. Then, for a short while, it makes those that became due
// meanwhile and finishes those under way.
func (d *Center) report(ctx context.Context) {
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var under sync.WaitGroup
	room := newDesk(reporters, reportersOf)
	tick := time.NewTicker(reportLook)
	defer tick.Stop()
	for {
		last := ctx.Err() != nil
		list, err := d.claim(work, room)
		if err != nil {
			slog.Error("look for calls to report", "error", err)
		}
		for i := range list {
			c := &list[i]
			room.take(c.UserID)
			under.Go(func() {
				defer func() { room.leave(c.UserID); d.wake() }()
				if err := crash.Run(func() error { return d.makeReport(work, c) }); err != nil {
					slog.Error("report a call; it is tried again", "call", c.ID, "error", err)
				}
			})
		}
		if last {
			cutting := time.AfterFunc(reportGrace, cut)
			under.Wait()
			cutting.Stop()
			return
		}
		select {
		case <-d.reports:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (d *Center) claim(ctx context.Context, room *desk) (list []parley.Call, err error) {
	if room.full() {
		return nil, nil
	}
	now := parley.Now()
	due, err := d.DB.ReportsDue(ctx, now) // a look costs less than a write
	if err != nil {
		return nil, err
	}
	share := room.share(due)
	if len(share) == 0 {
		return nil, nil
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		list = nil
		for user, n := range share {
			some, err := tx.ClaimReports(ctx, user, n, now, now.Add(reportHold))
			if err != nil {
				return err
			}
			list = append(list, some...)
		}
		return nil
	})
	return list, err
}

// desk is how many reports of each account are being made, and how many more may be.
type desk struct {
	most, each int
	mu         sync.Mutex
	under      map[int64]int // by account
	all        int
}

func newDesk(most, each int) *desk { return &desk{most: most, each: each, under: map[int64]int{}} }

func (d *desk) full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all >= d.most
}

func (d *desk) take(user int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.under[user]++
	d.all++
}

func (d *desk) leave(user int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all--
	if d.under[user]--; d.under[user] == 0 {
		delete(d.under, user)
	}
}

// share divides the free places among the accounts that have something to do: each gets one more in turn, those first
// that have the fewest.
func (d *desk) share(users []int64) map[int64]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := map[int64]int{}
	for free := d.most - d.all; free > 0; free-- {
		user, least := int64(0), d.each
		for _, u := range users {
			if n := d.under[u] + of[u]; n < least {
				user, least = u, n
			}
		}
		if user == 0 {
			break
		}
		of[user]++
	}
	return of
}

// makeReport extracts what is asked for from a call and announces the call. It may run twice: what is stored first
// counts.
func (d *Center) makeReport(ctx context.Context, c *parley.Call) error {
	ctx, span := telemetry.Start(telemetry.Continue(ctx, string(c.Trace)), "report", trace.SpanKindInternal)
	defer span.End()
	a, err := d.DB.CallAssistant(ctx, c.UserID, c.AssistantID)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, reportTime)
	tally := new(ai.Tally)
	found, evaluation, err := d.read(ai.Tallied(asking, tally), a, c)
	cancel()
	if err != nil {
		switch tries := c.ReportTries; {
		case ctx.Err() != nil: // the server has stopped: the next one makes it
			return d.putOff(ctx, c, 0)
		case ai.KindOf(err) != ai.Config && tries <= len(d.again):
			slog.Warn("a call could not be evaluated; it is tried again", "call", c.ID, "try", tries, "error", err)
			return d.putOff(ctx, c, d.again[tries-1])
		default:
			slog.Warn("a call is reported without its evaluation", "call", c.ID, "error", err)
		}
	}
	var told *parley.Call
	err = d.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		told = nil
		row, err := tx.CallForUpdate(ctx, c.ID)
		if err != nil || row.ReportDue == 0 {
			if store.IsNotFound(err) { // deleted
				err = nil
			}
			return err
		}
		row.Variables, row.VariablesNotes, row.Evaluation = found.Values, found.Notes, evaluation
		row.VendorUses = d.uses(row.VendorUses, tally)
		if err := tx.SaveReport(ctx, row); err != nil {
			return err
		}
		told = row
		return d.tellEnded(ctx, tx, row, a)
	})
	if err == nil && told != nil {
		d.Hub.Tell(Topic(c.ID), event.Event{Kind: Reported})
	}
	return err
}

func (d *Center) putOff(ctx context.Context, c *parley.Call, by time.Duration) error {
	time.AfterFunc(by+time.Millisecond, d.wake)
	return d.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		return tx.PutOffReport(ctx, c.ID, c.ReportDue, parley.Now().Add(by))
	})
}

// read asks the model for the data to extract from a call, and for its evaluation. If the customer said nothing, there
// is nothing to extract.
func (d *Center) read(ctx context.Context, a *parley.Assistant, c *parley.Call) (found parley.Findings, evaluation map[string]any,
	err error) {
	if !c.Answered() || !c.CustomerSpoke() || len(assistant.Asked(a)) == 0 && !a.PostCallEvaluation {
		return found, nil, nil
	}
	ready, err := d.Assistants.Ready(a, (&live{Center: d, a: a, call: *c}).occasion())
	if err != nil {
		return parley.Unread(assistant.Asked(a), err), nil, err
	}
	transcript := parley.CallTranscript(c.Turns)
	err = together(func() (err error) {
		if len(assistant.Asked(a)) > 0 {
			found, err = ready.Extract(ctx, transcript)
		}
		return err
	}, func() (err error) {
		if a.PostCallEvaluation {
			evaluation, err = ready.Evaluate(ctx, transcript)
		}
		return err
	})
	return found, evaluation, err
}

// together runs functions concurrently. A panic in one becomes its error.
func together(all ...func() error) error {
	var under sync.WaitGroup
	failed := make([]error, len(all))
	for i, fn := range all {
		under.Go(func() { failed[i] = crash.Run(fn) })
	}
	under.Wait()
	return errors.Join(failed...)
}

// endEvent returns the payload of the events of a call's end.
func (d *Center) endEvent(ctx context.Context, q store.Query, c *parley.Call) (e parley.CallEnded, err error) {
	e = parley.CallEnded{ID: c.ID, Type: c.Type, Status: c.Status, CustomerPhone: c.CustomerPhone,
		AssistantPhone: c.AssistantPhone, Duration: c.Duration,
		ExtractedVariables: c.Variables, ExtractedVariablesNotes: c.VariablesNotes, InputVariables: c.InputVariables,
		Transcript: parley.CallTranscript(c.Turns), Turns: c.Turns, Evaluation: c.Evaluation,
		AnsweredBy: c.AnsweredBy, TakenBy: c.TakenBy, EndedReason: c.EndedReason, EndedDetail: c.EndedDetail,
		CarrierCost: c.CarrierCost, TotalCost: c.TotalCost(), CreatedAt: parley.Time(c.CreatedAt),
		FinishedAt: parley.Time(c.EndedAt)}
	if e.Legs, err = q.CallLegs(ctx, c.UserID, c.ID); err != nil {
		return e, err
	}
	base := strings.TrimSuffix(d.BaseURL, "/") + "/api"
	d.LinkLegs(e.Legs, base)
	if path := d.RecordingPath(c); path != "" {
		e.RecordingURL = base + path
	}
	return e, nil
}

// TestEvents returns the events that would have been sent at the end of a test call, were it a real one. It returns false
// while the call is not over, or is still being evaluated.
func (d *Center) TestEvents(ctx context.Context, userID, callID int64) ([]*parley.Delivery, bool, error) {
	c, err := d.DB.Call(ctx, userID, callID)
	if err != nil || c.EndedAt == 0 || c.ReportDue != 0 {
		return nil, false, err
	}
	a, err := d.DB.CallAssistant(ctx, userID, c.AssistantID)
	if err != nil {
		return nil, false, err
	}
	e, err := d.endEvent(ctx, d.DB.Query, c)
	return e.Deliveries(a), err == nil, err
}

// tellEnded announces that a call is over: to the assistant's endpoints, and to those who asked for it
// (Config.Finished).
func (d *Center) tellEnded(ctx context.Context, tx *store.Tx, c *parley.Call, a *parley.Assistant) error {
	if a.DeletedAt == 0 && testOf(c) == "" { // nobody asks for events of a deleted assistant, nor of a test
		e, err := d.endEvent(ctx, tx.Query, c)
		if err != nil {
			return err
		}
		for _, describe := range d.Describe {
			if err := describe(ctx, tx, c, &e); err != nil {
				return err
			}
		}
		for _, delivery := range e.Deliveries(a) {
			if err := tx.EnqueueDelivery(ctx, c.UserID, delivery); err != nil {
				return err
			}
		}
	}
	for _, finished := range d.Finished {
		if err := finished(ctx, tx, c, a); err != nil {
			return err
		}
	}
	return nil
}
