package call

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/voice"
)

// telephones rings the route's telephones, and joins the caller with whoever answers first.
func (r *reception) telephones() error {
	if r.line != nil { // a caller who has waited may have to wait for longer than anybody may before the answer
		if err := r.pickUp(); err != nil {
			return err
		}
	}
	stop := r.watch()
	ring := r.ring()
	line, leg := r.reach()
	ring()
	stop()
	if line == nil {
		if cause := context.Cause(r.ctx); cause != nil {
			r.turnAway(notNow)
			return cause
		}
		return errNext
	}
	if err := r.pickUp(); err != nil {
		line.Close()
		return err // the leg ends with the call
	}
	leg.JoinedAt, leg.Status = parley.DateTime(parley.Now()), parley.LegJoined
	r.keepLeg(leg)
	quiet := *r.a
	quiet.AmbientSound, quiet.EnableNoiseCancellation, quiet.BackgroundSpeechCancellation, quiet.WaitForCustomer = "off", false, false, false
	seat := r.seat()
	return r.hold(seat, r.route.RingRecord, r.a.MaxDuration, func(rec io.WriteSeeker) voice.Result {
		s := &voice.Session{Persona: voice.Persona{Assistant: &quiet}, Line: line, Record: rec, Tell: r.tell}
		return r.Converse(r.ctx, s, seat)
	})
}

// reach rings the telephones in their order until one is answered; nil where none is.
func (r *reception) reach() (*patch, *parley.CallLeg) {
	groups := [][]parley.RingTarget{r.route.Telephones}
	if r.route.Ring == parley.RingInTurn {
		groups = slices.Collect(slices.Chunk(r.route.Telephones, 1))
	}
	for _, group := range groups {
		if line, leg := r.reachAny(group); line != nil || r.ctx.Err() != nil {
			return line, leg
		}
	}
	return nil, nil
}

// picked is a telephone that has rung: line is nil where nobody answered.
type picked struct {
	line *patch
	leg  *parley.CallLeg
}

// reachAny rings telephones at once, until one is answered.
func (r *reception) reachAny(group []parley.RingTarget) (*patch, *parley.CallLeg) {
	ctx, stop := context.WithCancelCause(r.ctx)
	rung := make(chan picked, len(group))
	for _, t := range group {
		r.ringing.Go(func() {
			p, err := picked{}, errors.New("it was not called")
			failed := crash.Run(func() error { p, err = r.ringOne(ctx, t); return nil })
			if err = errors.Join(failed, err); err != nil && p.line == nil {
				slog.DebugContext(r.ctx, "a telephone was not answered", "call", r.id, "to", t.PhoneNumber, "error", err)
			}
			rung <- p
		})
	}
	for left := len(group); left > 0; left-- {
		first := <-rung
		if first.line == nil {
			continue
		}
		stop(parley.ErrAnsweredElsewhere)
		crash.Go(&r.ringing, func() { // of the others, who may have answered at the same moment
			for range left - 1 {
				if late := <-rung; late.line != nil {
					late.line.Close()
					r.endLeg(late.leg, parley.Canceled)
				}
			}
		}, r.crashed)
		return first.line, first.leg
	}
	stop(nil)
	return nil, nil
}

// ringOne calls one telephone, and lets it ring for as long as it may.
func (r *reception) ringOne(ctx context.Context, t parley.RingTarget) (p picked, err error) {
	route, err := r.target(ctx, &parley.AssistantTool{SupervisorPhone: t.PhoneNumber,
		CallerIDMode: r.route.RingCallerID})
	if err != nil {
		return p, err
	}
	if p.leg, err = r.callIn(ctx, parley.LegRing, "", route); err != nil {
		return p, err
	}
	ringing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(time.Duration(t.Seconds)*time.Second, func() { cancel(parley.NoAnswer) })
	defer patience.Stop()
	far, err := r.Dial(ringing, route, func() {
		p.leg.Status = parley.LegRinging
		r.keepLeg(p.leg)
	})
	if err != nil {
		if cause := context.Cause(ringing); cause != nil && !isReason(err) {
			err = cause
		}
		_, reason := parley.Disposition(err, false)
		r.endLeg(p.leg, reason)
		return p, err
	}
	p.leg.AnsweredAt = parley.DateTime(parley.Now())
	var tape *tape
	if r.route.RingRecord {
		tape = r.tape(p.leg, far.Rate())
	}
	p.line = runPatch(r.ctx, far, tape)
	return p, nil
}
