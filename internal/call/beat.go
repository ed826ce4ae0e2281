package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// beat looks for calls to hang up, or that another process looks at. At every Beat it first gives the sign of life and then closes lost
// calls, in this order, so that a process that was stopped for a while doesn't take its own calls for lost.
func (d *Center) beat(ctx context.Context) {
	var renewed time.Time
	crash.Every(ctx, min(time.Second, d.Beat), "look after calls", func(ctx context.Context) error {
		if len(d.all()) > 0 {
			list, err := d.DB.CallsToNotice(ctx, d.node)
			if err != nil {
				return err
			}
			for _, c := range list {
				if c.Hangup {
					d.Cut(c.ID, parley.APIHangup)
				} else if l := d.here(c.ID); l != nil {
					l.change(func(*parley.Call) {}) // its row gets the figures of this moment
				}
			}
		}
		if time.Since(renewed) < d.Beat {
			return nil
		}
		now, err := d.renew(ctx)
		if err != nil {
			return err
		}
		renewed = time.Now()
		if d.steady.Seen(now, d.Lost/2); !d.steady.Judges(d.Lost) {
			return nil
		}
		return d.closeLost(ctx, now.Add(-d.Lost))
	})
}

// renew gives the sign of life of the calls that are here, and of no others: a call whose row was committed although we
// were told that it wasn't belongs to nobody. It hangs up calls that another process has closed, and returns the
// database's time.
func (d *Center) renew(ctx context.Context) (now parley.Time, err error) {
	mine := d.all() // before the rows are looked at: what begins meanwhile is not missed among them
	if len(mine) == 0 {
		return d.DB.Clock(ctx)
	}
	ids := make([]int64, len(mine))
	for i, l := range mine {
		ids[i] = l.id
	}
	var live []int64
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if now, err = tx.Clock(ctx); err == nil {
			live, err = tx.RenewCalls(ctx, d.node, ids, now)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, l := range mine {
		l.mu.Lock()
		lost := !l.ending && !slices.Contains(live, l.id)
		l.mu.Unlock()
		if lost {
			slog.WarnContext(l.ctx, "a live call was closed by another node: this one was taken for gone", "call", l.id)
			l.cancel(parley.NodeLost)
		}
	}
	return now, nil
}

// lostAtOnce is how many lost calls are looked for at a time.
const lostAtOnce = 100

// closeLost closes the calls that have not been heard of since a time of the database's clock, for at most a Beat. All
// processes that live do so at the same time, each in an order of its own: in the same order they would wait for each other at
// every call, and many would close no more than one could. A call that can't be closed does not hold up the others.
func (d *Center) closeLost(ctx context.Context, since parley.Time) error {
	var failed error
	for began := time.Now(); time.Since(began) < d.Beat; {
		ids, err := d.DB.LostCalls(ctx, since, lostAtOnce)
		if err != nil {
			return err
		}
		failed = nil
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids {
			if time.Since(began) >= d.Beat { // our own calls' sign of life is due
				return failed
			}
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

// closeLostCall closes a call that has not been heard of since a given time. It is charged from the answer to the last
// sign of life, both by the clock of the process that had it. The answer counts as a sign of life, and begins the first
// second and minute.
func (d *Center) closeLostCall(ctx context.Context, id int64, since parley.Time, told []Unanswered) error {
	var closed *parley.Call
	err := d.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		closed = nil
		lost, err := tx.LockLost(ctx, id, since)
		if err != nil || !lost {
			return err
		}
		closed, err = d.close(ctx, tx, id, "", parley.NodeLost, told, func(row *parley.Call) bool {
			at := parley.Time(row.UpdatedAt)
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
