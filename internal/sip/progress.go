package sip

import (
	"context"
	"errors"
	"math/rand/v2"

	"parley/internal/audio"
	"parley/internal/parley"
)

// errNoEarly says that a caller can't hear anything before the answer.
var errNoEarly = errors.New("the caller left the offer to us: nothing can be heard before the answer")

// Progress lets the caller hear something before the call is answered (183 Session Progress with a description: early
// media, RFC 3960). The leg must be Run; it is the one that Answer returns, and goes on then. If the call is refused
// instead, or the caller gives up, it ends. Who knows 100rel gets the 183 until it is acknowledged.
func (in *Invite) Progress(ctx context.Context) (audio.Leg, error) {
	rseq, err := in.toldOf(ctx)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.final, in.keep != nil:
		return nil, errFinal
	case in.offer == nil:
		return nil, errNoEarly
	case in.ctx.Err() != nil:
		return nil, context.Cause(in.ctx)
	}
	l := in.leg
	var r *reliable
	if supports(in.req, "100rel") {
		r = &reliable{rseq: rseq, sound: true, acked: make(chan struct{})}
	}
	res := respond(in.req, 183)
	l.state.Lock()
	withSDP(res, l.answerLocked(in.offer, in.choice))
	if r != nil {
		l.state.reliable = r
	}
	l.state.Unlock()
	send := func() error { return in.respond(res) }
	if r != nil {
		send = func() error { return in.reliably(r, res) }
	}
	l.add() // the caller may change the call, or end it, from now on
	if err := send(); err != nil {
		l.end(err, false)
		return nil, err
	}
	in.keep = context.AfterFunc(in.ctx, func() { l.end(gaveUp(in.ctx), false) })
	return l, nil
}

// gaveUp is why a call ends before its answer.
func gaveUp(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errFinal) {
		return cause
	}
	return parley.AssistantHangup
}

// toldOf waits until the caller has acknowledged a ringing that it must acknowledge: there may be one such answer at a
// time (RFC 3262, section 3). It returns the number of the next one.
func (in *Invite) toldOf(ctx context.Context) (rseq uint32, err error) {
	l := in.leg
	l.state.Lock()
	r := l.state.reliable
	l.state.Unlock()
	if r == nil {
		return 1 + rand.Uint32N(1<<30), nil
	}
	in.await(ctx, r)
	if in.ctx.Err() != nil {
		return 0, context.Cause(in.ctx)
	}
	return r.rseq + 1, context.Cause(ctx)
}
