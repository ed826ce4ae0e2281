package voice

import (
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/turn"
)

// connect begins a call in which somebody who has answered on another line has the customer from the first moment: the
// assistant has no part in it.
func (r *run) connect(line Line) {
	var member *audio.Member
	r.inbox.ask(func() {
		member, r.joined = r.seat(line), true
		r.pressing(line, true)
		r.enter(&cast{Persona: r.Persona})
		r.do(r.m.Start(r.clock.now()))
		r.leave()
	})
	line.Connect(party{member, r.leg.Dial})
	r.safely(func() {
		select {
		case <-line.Done():
			r.happens(turn.Event{Kind: turn.End, Reason: parley.Transferred})
		case <-r.ctx.Done():
		}
	})
}
