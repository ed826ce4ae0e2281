package call

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
)

// waitAgain is how often a caller in the queue is told their place, and lineLook how often it is looked for a line.
const (
	waitAgain = 30 * time.Second
	lineLook  = 500 * time.Millisecond
)

// maxEarly is how long a caller hears the queue before the call is answered: exchanges cut calls that ring for three
// minutes (RFC 3261, section 13.3.1.1).
const maxEarly = 2 * time.Minute

// queue has the caller wait until an assistant has a line.
func (r *reception) queue() error {
	ring := r.ring()
	stop := r.watch()
	p, err := r.clerk()
	if err != nil {
		slog.WarnContext(r.ctx, "a caller waits without words", "call", r.id, "error", err)
	}
	ring()
	stop()
	if err := r.sound(); err != nil {
		return err
	}
	defer r.watch()()
	r.waiting.Music()
	over := time.After(time.Duration(r.route.QueueSeconds) * time.Second)
	answer := time.After(maxEarly)
	look := time.NewTicker(lineLook)
	defer look.Stop()
	place, told := 0, time.Time{}
	for {
		now, free, err := r.place()
		switch {
		case err != nil:
			slog.WarnContext(r.ctx, "look for a line", "call", r.id, "error", err)
		case free:
			if err := r.take(parley.TakenByAssistant); !errors.Is(err, errNext) {
				if err == nil {
					r.step = parley.RouteAssistant
					r.done = append(r.done, r.step)
					err = r.converse()
				}
				return err
			} else if r.a.Status != "active" {
				return errNext
			}
		case p.Synthesizer != nil && (now != place && place == 0 || now < place || time.Since(told) >= waitAgain):
			place, told = now, time.Now()
			r.waiting.Say(r.say(p, strings.ReplaceAll(p.Phrases().InLine, "{n}", strconv.Itoa(now))))
		}
		select {
		case <-look.C:
		case <-answer:
			if err := r.pickUp(); err != nil {
				return err
			}
		case <-over:
			return errNext
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

// place is the caller's place in the queue, and whether there is a line for them.
func (r *reception) place() (n int, free bool, err error) {
	u, err := r.DB.User(r.ctx, r.a.UserID)
	if err != nil {
		return 0, false, err
	}
	lines, err := r.DB.Lines(r.ctx, u.ID)
	if err != nil {
		return 0, false, err
	}
	w := parley.Waiter{ID: r.id, NumberID: r.number.ID}
	return lines.Position(w), lines.Free(r.Prices.Plan(u.Plan).ParallelCalls, w), nil
}
