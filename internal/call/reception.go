package call

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/voice"
)

// reception is an incoming call on its way through the steps of its number's route: telephones ring, a caller waits, an
// assistant answers, a message is left. Each step answers the call only when there is somebody, or something, to hear.
type reception struct {
	*live
	in     Arrival
	to     *parley.Assistant // whose call it is
	number *parley.Number    // nil for a softphone
	route  *parley.NumberRoute
	open   bool // within the hours
	step   parley.RouteStep
	done   []parley.RouteStep // the present step and those before it

	line    *patch         // the leg that the caller hears; nil before that
	early   atomic.Bool    // it is heard, and not answered yet
	waiting *voice.Waiting // what is heard on it meanwhile
	ringing sync.WaitGroup // telephones that nobody waits for any more
}

// errNext says that a step has come to nothing, and that the next one follows.
var errNext = errors.New("the next step follows")

// takers are who has a call in each step.
var takers = map[parley.RouteStep]parley.CallTaker{parley.RouteAssistant: parley.TakenByAssistant,
	parley.RouteTelephone: parley.TakenByTelephone, parley.RouteVoicemail: parley.TakenByVoicemail,
	parley.RouteQueue: parley.TakenByQueue, parley.RouteWords: parley.TakenByNobody}

// admit stores the row of a call in the first step of its route that has room for it. A caller for whom none has hears a
// busy tone, which costs nothing.
func (r *reception) admit(ctx context.Context, d *Center, c *parley.Call) error {
	if r.step == "" {
		r.step = parley.RouteAssistant
	}
	for {
		r.done = append(r.done, r.step)
		c.TakenBy, c.MaxDuration = takers[r.step], r.to.MaxDuration
		if r.step != parley.RouteAssistant {
			c.MaxDuration = r.route.Longest(c.MaxDuration)
		}
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			err := d.admit(ctx, tx, r.to.UserID, c)
			if err == nil && r.step == parley.RouteQueue {
				err = r.hasPlace(ctx, tx.Query, c)
			}
			return err
		})
		if !errors.Is(err, ErrFull) || r.route == nil {
			return err
		}
		if r.step = r.route.Next(r.open, r.done...); r.step == parley.RouteWords || r.step == parley.RouteRefuse {
			return err
		}
	}
}

// hasPlace reports whether the queue has a place for a call.
func (r *reception) hasPlace(ctx context.Context, q store.Query, c *parley.Call) error {
	lines, err := q.Lines(ctx, r.to.UserID)
	if err == nil && int64(lines.Position(waiter(c))) > r.route.QueuePlaces {
		err = ErrFull
	}
	return err
}

// receive takes the call through its steps; the error is why it is over.
func (r *reception) receive() error {
	defer r.ringing.Wait()
	defer func() {
		if r.line != nil {
			r.line.Close()
		}
	}()
	for {
		err := r.take(takers[r.step])
		if err == nil {
			err = r.does()
		}
		if !errors.Is(err, errNext) {
			return err
		}
		if cause := context.Cause(r.ctx); cause != nil {
			r.turnAway(notNow)
			return cause
		}
		r.step = r.route.Next(r.open, r.done...)
		r.done = append(r.done, r.step)
	}
}

func (r *reception) does() error {
	switch r.step {
	case parley.RouteTelephone:
		return r.telephones()
	case parley.RouteVoicemail:
		return r.voicemail()
	case parley.RouteQueue:
		return r.queue()
	case parley.RouteWords, parley.RouteRefuse:
		return r.words()
	}
	return r.converse()
}

// take has somebody else take the call over from here on. An assistant needs a line for it, and one that is inactive
// takes none.
func (r *reception) take(by parley.CallTaker) error {
	c := r.snapshot()
	if c.TakenBy == by {
		return nil
	}
	if by == parley.TakenByAssistant && r.a.Status != "active" {
		return errNext
	}
	beside := c.TakenBy != parley.TakenByAssistant && c.TakenBy != parley.TakenByQueue // has a place beside the lines
	c.TakenBy = by
	if c.AnsweredAt != 0 {
		c.TakenAt = parley.DateTime(parley.Now())
	}
	err := r.write(r.ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.LockUser(ctx, r.a.UserID); err != nil {
			return err
		}
		u, err := tx.User(ctx, r.a.UserID)
		if err != nil {
			return err
		}
		if by == parley.TakenByAssistant || !beside {
			if err := r.hasRoom(ctx, tx.Query, u, &c); err != nil {
				return err
			}
		}
		mine, err := tx.TakeCall(ctx, &c)
		if err == nil && by == parley.TakenByQueue {
			err = r.hasPlace(ctx, tx.Query, &c)
		}
		if err == nil && !mine {
			err = parley.Canceled
		}
		return err
	})
	if errors.Is(err, ErrFull) {
		return errNext
	}
	if err == nil {
		r.change(func(live *parley.Call) { live.TakenBy, live.TakenAt = c.TakenBy, c.TakenAt })
	}
	return err
}

// converse has the assistant answer, or greet a caller who has waited.
func (r *reception) converse() error {
	if r.line == nil {
		return r.answer(r.in)
	}
	defer r.watch()()
	r.ask()
	s, err := r.ready()
	if err != nil {
		return r.unready(err)
	}
	greeted := prepare(r.ctx, s, r.line.Rate())
	defer greeted.stop()
	select {
	case <-greeted.done:
	case <-time.After(prepareTime):
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
	if err := r.pickUp(); err != nil {
		return err
	}
	return r.talk(s, r.seat())
}

// rates are those that the leg may turn out to have.
func (r *reception) rates() []audio.Rate {
	if r.line != nil {
		return []audio.Rate{r.line.Rate()}
	}
	if known, ok := r.in.Ringer.(interface{ Rate() audio.Rate }); ok {
		return []audio.Rate{known.Rate()}
	}
	return []audio.Rate{audio.Narrow, audio.Wide}
}

// ring lets the caller hear that the call is ringing, until stop is called. Exchanges forget a call that says nothing
// for three minutes (RFC 3261, section 13.3.1.1).
func (r *reception) ring() (stop func()) {
	if r.line != nil {
		return func() {}
	}
	done := make(chan struct{})
	var telling sync.WaitGroup
	crash.Go(&telling, func() {
		again := time.NewTicker(time.Minute)
		defer again.Stop()
		for {
			if err := r.in.Ring(); err != nil {
				slog.DebugContext(r.ctx, "ring", "call", r.id, "error", err) // a caller who has gone is seen elsewhere
			}
			r.live.ringing()
			select {
			case <-again.C:
			case <-done:
				return
			}
		}
	}, r.crashed)
	return func() { close(done); telling.Wait() }
}

// watch ends the call when the caller leaves before anybody talks with them; the returned function ends the watch.
func (r *reception) watch() (stop func()) {
	gone := r.in.Done()
	if r.line != nil {
		gone = r.line.done
	}
	done := make(chan struct{})
	var watching sync.WaitGroup
	crash.Go(&watching, func() {
		select {
		case <-gone:
			cause := r.in.left()
			if r.line != nil && r.line.err != nil {
				if cause = r.line.err; !isReason(cause) {
					_, cause = parley.Disposition(r.line.err, !r.early.Load())
				}
			}
			r.cancel(cause)
		case <-done:
		}
	}, r.crashed)
	return func() { close(done); watching.Wait() }
}

// pickUp answers the call, if it is not answered yet. The leg runs by itself from then on.
func (r *reception) pickUp() error {
	if r.line != nil && !r.early.Load() {
		return nil
	}
	leg, err := r.in.Answer(r.ctx)
	if err != nil {
		return causeOr(r.ctx, err)
	}
	r.early.Store(false)
	r.answered(func(*parley.Call) {})
	if r.line == nil {
		r.runs(leg)
	}
	return nil
}

// runs has the caller hear the leg.
func (r *reception) runs(leg audio.Leg) {
	r.known(leg)
	r.waiting = voice.NewWaiting(leg.Rate())
	r.line = runPatch(r.ctx, leg, nil)
	r.line.Connect(r.waiting)
}

// canSound reports whether the caller is to hear something before the answer, and can.
func (r *reception) canSound() bool {
	_, ok := r.in.Ringer.(progresser)
	return ok && r.route.EarlyMedia
}

// sound lets the caller hear what comes before anybody talks with them: ahead of the answer where the route says so.
func (r *reception) sound() error {
	if r.line == nil && r.canSound() {
		leg, err := r.in.Ringer.(progresser).Progress(r.ctx)
		if err == nil {
			r.early.Store(true)
			r.runs(leg)
			return nil
		}
		slog.DebugContext(r.ctx, "a caller can't hear anything before the answer", "call", r.id, "error", err)
	}
	if r.line != nil {
		return nil
	}
	return r.pickUp()
}

// turnAway refuses a call that was not answered.
func (r *reception) turnAway(code int) {
	if r.line == nil || r.early.Load() {
		refuse(r.in, code)
	}
}

// seat is the answered leg as the leg of whoever has the call now.
func (r *reception) seat() seat { return seat{r.line} }

// seat is a patch that somebody runs for a while, and leaves running.
type seat struct{ *patch }

// Run implements audio.Leg.
func (s seat) Run(ctx context.Context, peer audio.Peer) error {
	s.Connect(peer)
	defer s.Connect(nil)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.done:
		return s.err
	}
}

// Hangup implements audio.Leg: whoever runs the leg hangs up.
func (seat) Hangup() {}

// under is the leg that a seat is on, for what it can do besides.
func under(leg audio.Leg) audio.Leg {
	if s, ok := leg.(seat); ok {
		return s.leg
	}
	return leg
}
