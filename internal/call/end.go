package call

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// end ends a call of this process: in the row, for those who listen, and with its recording in blob storage.
func (l *live) end(cause error) {
	signalled := l.signalled(cause)
	if said := context.Cause(l.ctx); said != nil && isReason(said) {
		cause = said // who ended it, whatever it tore on its way
	}
	// the row does not say what is wrong with a line
	if !isReason(cause) || errors.Is(cause, parley.Unreachable) && !errors.Is(cause, ErrNoSuchNumber) {
		slog.WarnContext(l.ctx, "a call failed", "call", l.id, "assistant", l.a.ID, "error", cause)
	}
	l.mu.Lock()
	l.ending = true
	over := cmp.Or(l.gone, parley.Now()) // what is done after the last word takes time, and is nobody's to pay
	l.mu.Unlock()
	mine := l.snapshot()
	mine.End(cause, over)
	closed := l.settle(&mine, cause)
	l.mu.Lock()
	l.call = mine // nobody sees the end before it stands
	l.mu.Unlock()
	l.Center.mu.Lock()
	l.ended[mine.Status]++
	l.over++
	l.counted = true
	l.Center.mu.Unlock()
	l.measureEnd(&mine)
	l.tellOver(closed)
	l.Hub.Tell(Topic(l.id), event.Event{Kind: Status, Data: mine.Status})
	l.Hub.Tell(Topic(l.id), event.Event{Kind: End})
	if signalled != nil {
		l.keepSIP(signalled.Ladder())
	}
	if mine.RecordingDue {
		ctx, cancel := l.whileServing()
		defer cancel()
		if err := l.upload(ctx, &mine); err != nil {
			slog.ErrorContext(l.ctx, "store a recording; it is tried again", "call", l.id, "error", err)
		}
	}
}

// settle writes the end of a call into its row, however long that takes, and returns the row; nil if another process
// has ended it, or will. The details of the end (told) and the transcript must not tie up the call's money and its
// line: if the database refuses them, the call ends without them, and keeps what was stored while it was live.
func (l *live) settle(mine *parley.Call, cause error) (closed *parley.Call) {
	told, texts := l.Unanswered, true
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err := l.write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			closed, err = l.close(ctx, tx, l.id, l.node, cause, told, func(row *parley.Call) bool {
				row.RingingAt, row.AnsweredAt, row.AnsweredBy, row.RecordingDue = mine.RingingAt, mine.AnsweredAt,
					mine.AnsweredBy, mine.RecordingDue
				row.Media = mine.Media
				if texts {
					row.Turns, row.FunctionCalls, row.InputVariables = mine.Turns, mine.FunctionCalls,
						mine.InputVariables
					row.VendorSwitches, row.VendorUses = mine.VendorSwitches, mine.VendorUses
				}
				row.End(cause, parley.Time(mine.EndedAt))
				return true
			})
			return err
		})
		cancel()
		if err == nil {
			return closed
		}
		slog.ErrorContext(l.ctx, "end a call", "call", l.id, "error", err)
		if told == nil && store.Refused(err) {
			texts = false
		}
		told = nil
		select {
		case <-time.After(time.Second): // the row stands, and is ours as long as it is renewed
			continue
		case <-l.Center.ctx.Done(): // the server stops: another closes it
			return nil
		}
	}
}

// write runs a transaction and turns a panic in it into an error: a failure to begin or end one call must not end the
// process, and with it all the others.
func (d *Center) write(ctx context.Context, fn func(context.Context, *store.Tx) error) error {
	return crash.Run(func() error { return d.DB.Write(ctx, fn) })
}

// isReason reports whether an error is a regular reason why a call is over, and not a failure of ours.
func isReason(err error) bool {
	var reason parley.EndedReason
	var ended interface{ Ended() parley.EndedReason }
	return errors.As(err, &reason) || errors.As(err, &ended)
}

// A report waits for the recording of its call, so that the events carry the link. It waits for waitRecording while the
// process that has the audio lives and keeps trying to store it, and for lostRecording if that process is gone and may
// come back with it.
const (
	waitRecording = time.Hour
	lostRecording = 10 * time.Minute
)

// close ends a row: apply brings it up to date and ends it with a cause. The cost of the call is charged, what was set
// aside for it is released, and its report becomes due; told are called if nobody took the call. It returns nil when
// the row has already ended, does not belong to node ("" means any), or apply refuses.
func (d *Center) close(ctx context.Context, tx *store.Tx, id int64, node string, cause error, told []Unanswered,
	apply func(row *parley.Call) bool) (*parley.Call, error) {
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
		{&c.CarrierCost, parley.LedgerEntry{Kind: parley.CarrierCharge,
			Description: fmt.Sprintf("Call of %s: %d min over the line", who, c.Costs().CarrierMinutes)}},
		{&c.AssistantCost, parley.LedgerEntry{Kind: parley.CallCharge,
			Description: fmt.Sprintf("Call of %s: %d s (%s)", who, c.Costs().AssistantSeconds, c.Type)}},
	} {
		if c.Test { // its costs say what a real one would have cost
			break
		}
		e.Amount, e.Reference = -*e.cost, ref
		if _, err := tx.Post(ctx, c.UserID, &e.LedgerEntry); errors.Is(err, store.Insufficient) {
			// It was set aside, so this happens only if an operator took the money meanwhile.
			slog.Error("a call can't be charged: the balance is gone", "call", c.ID, "user", c.UserID, "amount",
				*e.cost)
			*e.cost = 0
		} else if err != nil {
			return nil, err
		}
	}
	if err := tx.Release(ctx, c.UserID, ref); err != nil {
		return nil, err
	}
	if c.Type == parley.CallOutbound {
		if err := tx.CorrectSpend(ctx, c.UserID, parley.Time(c.CreatedAt),
			c.CarrierCost+c.AssistantCost-c.Reserved); err != nil {
			return nil, err
		}
	}
	if c.Test {
		unused := minutes(c.MaxDuration) - minutes(c.Duration)
		if err := tx.GiveDay(ctx, c.UserID, parley.LimitTestMinutes, unused, parley.Time(c.CreatedAt)); err != nil {
			return nil, err
		}
	}
	if err := d.closeLegs(ctx, tx, c); err != nil {
		return nil, err
	}
	c.ReportDue = parley.Now()
	if c.RecordingDue {
		wait := waitRecording
		if node == "" {
			wait = lostRecording
		}
		c.ReportDue = c.ReportDue.Add(wait)
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

// tellOver notifies those who asked for it (Config.Ended) of a call that close has ended, nil for none.
func (d *Center) tellOver(c *parley.Call) {
	if c == nil {
		return
	}
	for _, ended := range d.Ended {
		ended(c)
	}
}
