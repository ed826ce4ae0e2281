package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley"
	"parley/internal/event"
	"parley/internal/store"
)

// end ends a call of this process: in the row, for those who listen, and with its recording in blob storage.
func (l *live) end(cause error) {
	if said := context.Cause(l.ctx); said != nil && isReason(said) {
		cause = said // who ended it, whatever it tore on its way
	}
	if !isReason(cause) || errors.Is(cause, parley.Unreachable) && !errors.Is(cause, ErrNoSuchNumber) { // the row does not say what is wrong with a line
		slog.Warn("a call failed", "call", l.id, "assistant", l.a.ID, "error", cause)
	}
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	mine := l.snapshot()
	mine.End(cause, parley.Now())
	var closed *parley.Call
	for told := l.Unanswered; ; told = nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err := l.write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			closed, err = l.close(ctx, tx, l.id, l.node, cause, told, func(row *parley.Call) bool {
				row.RingingAt, row.AnsweredAt, row.AnsweredBy = mine.RingingAt, mine.AnsweredAt, mine.AnsweredBy
				row.Turns, row.FunctionCalls, row.InputVariables, row.RecordingDue = mine.Turns, mine.FunctionCalls, mine.InputVariables, mine.RecordingDue
				row.End(cause, parley.Time(mine.EndedAt))
				return true
			})
			return err
		})
		cancel()
		if err == nil {
			break
		}
		closed = nil
		slog.Error("end a call", "call", l.id, "error", err)
		select {
		case <-time.After(time.Second): // the row stands, and is ours as long as it is renewed
			continue
		case <-l.Desk.ctx.Done(): // the server stops: another closes it
		}
		break
	}
	l.mu.Lock()
	l.call = mine // nobody sees the end before it stands
	l.mu.Unlock()
	l.Desk.mu.Lock()
	l.ended[mine.Status]++
	l.over++
	l.Desk.mu.Unlock()
	l.tellOver(closed)
	l.Hub.Tell(Topic(l.id), event.Event{Kind: Status, Data: mine.Status})
	l.Hub.Tell(Topic(l.id), event.Event{Kind: End})
	if mine.RecordingDue {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.upload(ctx, &mine); err != nil {
			slog.Error("store a recording; it is tried again", "call", l.id, "error", err)
		}
	}
}

// write is a transaction whose panic is its error: what can't begin or end one call must not end the process, and so all others.
func (d *Desk) write(ctx context.Context, fn func(context.Context, *store.Tx) error) error {
	return survive(func() error { return d.DB.Write(ctx, fn) })
}

// isReason says whether an error tells why a call is over, and is no failure of ours.
func isReason(err error) bool {
	var reason parley.EndedReason
	var ended interface{ Ended() parley.EndedReason }
	return errors.As(err, &reason) || errors.As(err, &ended)
}

// waitRecording is how long a report waits for the recording of a call whose process may be gone.
const waitRecording = 20 * time.Second

// close ends a row: apply brings it up to date and ends it for a cause. What the call cost is taken, what was set aside for it is free again, and
// its report is due; told are told of one that nobody took. It is nil when the row has ended already, is not node's ("": anybody's), or apply
// refuses.
func (d *Desk) close(ctx context.Context, tx *store.Tx, id int64, node string, cause error, told []Unanswered, apply func(row *parley.Call) bool) (*parley.Call, error) {
	c, err := tx.CallForUpdate(ctx, id)
	if err != nil || c.EndedAt != 0 || node != "" && c.Node != node {
		if store.IsNotFound(err) { // its user was removed
			err = nil
		}
		return nil, err
	}
	if !apply(c) {
		return nil, nil
	}
	ref, who := reference(c.ID), c.AssistantName
	for _, e := range []struct {
		cost *parley.Money
		parley.LedgerEntry
	}{
		{&c.CarrierCost, parley.LedgerEntry{Kind: parley.CarrierCharge, Description: fmt.Sprintf("Call of %s: %d min over the line", who, c.Costs().CarrierMinutes)}},
		{&c.AssistantCost, parley.LedgerEntry{Kind: parley.CallCharge, Description: fmt.Sprintf("Call of %s: %d s (%s)", who, c.Costs().AssistantSeconds, c.Type)}},
	} {
		e.Amount, e.Reference = -*e.cost, ref
		if _, err := tx.Post(ctx, c.UserID, &e.LedgerEntry); errors.Is(err, store.Insufficient) {
			// It was set aside; only an operator who took the money meanwhile leads here.
			slog.Error("a call can't be charged: the balance is gone", "call", c.ID, "user", c.UserID, "amount", *e.cost)
			*e.cost = 0
		} else if err != nil {
			return nil, err
		}
	}
	if err := tx.Release(ctx, c.UserID, ref); err != nil {
		return nil, err
	}
	if c.Type == parley.CallOutbound {
		if err := tx.CorrectSpend(ctx, c.UserID, parley.Time(c.CreatedAt), c.TotalCost()-c.Reserved); err != nil {
			return nil, err
		}
	}
	c.ReportDue = parley.Now()
	if c.RecordingDue {
		c.ReportDue = c.ReportDue.Add(waitRecording)
	}
	if err := tx.EndCall(ctx, c); err != nil {
		return nil, err
	}
	if !c.Answered() {
		for _, tell := range told {
			if err := tell(ctx, tx, c, cause); err != nil {
				return nil, err
			}
		}
	}
	tx.AfterCommit(d.wake)
	return c, nil
}

// tellOver tells those who asked for it (Config.Ended) of a call that close has ended, nil for none.
func (d *Desk) tellOver(c *parley.Call) {
	if c == nil {
		return
	}
	for _, ended := range d.Ended {
		ended(c)
	}
}

// lostAtOnce is how many lost calls are looked for at a time.
const lostAtOnce = 100

// closeLost closes the calls of processes that are gone, for at most a Beat. One that can't be closed holds up no other.
func (d *Desk) closeLost(ctx context.Context) error {
	var failed error
	for began := time.Now(); time.Since(began) < d.Beat; {
		since := parley.Now().Add(-d.Lost)
		ids, err := d.DB.LostCalls(ctx, since, lostAtOnce)
		if err != nil {
			return err
		}
		failed = nil
		for _, id := range ids {
			err := d.closeLostCall(ctx, id, since, d.Unanswered)
			if err != nil {
				err = d.closeLostCall(ctx, id, since, nil)
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("close lost call %d: %w", id, err))
			}
		}
		if failed != nil || len(ids) < lostAtOnce {
			break
		}
	}
	return failed
}

// closeLostCall closes a call of which nothing was heard since a time. It is charged from the answer to the last sign of life: that of its process,
// or the last that was stored of it. The answer is one, and begins the first second and minute.
func (d *Desk) closeLostCall(ctx context.Context, id int64, since parley.Time, told []Unanswered) error {
	var closed *parley.Call
	err := d.write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		closed, err = d.close(ctx, tx, id, "", parley.NodeLost, told, func(row *parley.Call) bool {
			if row.SeenAt >= since {
				return false // it lives after all
			}
			at := max(row.SeenAt, parley.Time(row.UpdatedAt))
			if row.Answered() {
				at = max(at, parley.Time(row.AnsweredAt)+1)
			}
			row.End(parley.NodeLost, at)
			return true
		})
		return err
	})
	if err != nil || closed == nil {
		return err
	}
	slog.Warn("a call was closed whose process is gone", "call", id, "node", closed.Node)
	d.tellOver(closed)
	d.Hub.Tell(Topic(id), event.Event{Kind: End})
	return nil
}
