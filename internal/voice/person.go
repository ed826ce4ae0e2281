package voice

import (
	"context"
	"errors"
	"strings"

	"parley"
	"parley/internal/audio"
	"parley/internal/turn"
)

// Line is a second leg of a call: somebody has answered, and may be joined with the customer.
type Line interface {
	// Rate is that of its frames.
	Rate() audio.Rate
	// Connect makes p the one who listens and speaks on it. When it returns, the one before is not called any more.
	Connect(p audio.Peer)
	// Dial presses keys, as audio.Leg does.
	Dial(digits string) error
	// Done is closed when the far end is gone.
	Done() <-chan struct{}
	// Close hangs up, and waits until nobody is called any more.
	Close()
}

// person is the driver of a call in which somebody else talks with the customer: the bridge carries the sound, and
// nothing is understood, thought or said here.
type person struct{}

func (person) enter(int, bool)      {}
func (person) hear([]int16, bool)   {}
func (person) utterance([]*frame)   {}
func (person) endUtterance()        {}
func (person) forget(int)           {}
func (person) think(*answer, bool)  {}
func (person) commit(*answer)       {}
func (person) giveUp(*answer)       {}
func (person) speak(*answer, *part) {}
func (person) stop(*answer)         {}
func (person) close()               {}

// party is one side of a bridge. The keys that it presses reach the other side.
type party struct {
	*audio.Member
	press func(digits string) error
}

// Digit implements audio.Peer.
func (p party) Digit(key byte) {
	_ = p.press(string(rune(key))) // a line that takes no keys gets none
}

// bridge is the sound that others than the customer and the assistant have in a call.
type bridge struct {
	member *audio.Member // the customer's and the assistant's side
	lines  []Line
	said   [audio.MaxFrame]int16
	heard  [audio.MaxFrame]int16
}

// exchange gives the others what the customer and the assistant say, and adds what they say to what the customer hears.
// It reports whether that is more than silence.
func (b *bridge) exchange(in, out audio.Frame, sound bool) bool {
	said, heard := b.said[:len(out)], b.heard[:len(out)]
	clear(said[copy(said, in):])
	if sound {
		audio.Mix(said, out, 1)
	}
	if b.member.Tick(said, heard) {
		audio.Mix(out, heard, 1)
		sound = true
	}
	return sound
}

var errOver = errors.New("the call is over")

// join joins the customer with somebody who waits on a line. Both hear message, and then the assistant leaves. The call
// ends when either of them hangs up.
func (r *run) join(a *answer, line Line, message string) error {
	room := audio.NewBridge()
	b := &bridge{member: room.Join(r.rate), lines: []Line{line}}
	joined := false
	r.inbox.ask(func() {
		if joined = !r.over; joined {
			r.bridge = b
			r.peer.bridge.Store(b)
		}
	})
	if !joined {
		line.Close()
		return errOver
	}
	line.Connect(party{room.Join(line.Rate()), r.leg.Dial})
	r.safely(func() {
		select {
		case <-line.Done():
			r.happens(turn.Event{Kind: turn.End, Reason: parley.Transferred})
		case <-r.ctx.Done():
		}
	})
	if strings.TrimSpace(message) != "" {
		r.happens(turn.Event{Kind: turn.Sentence, Reply: a.id, Text: " " + message})
		if err := r.untilHeard(r.ctx, a); err != nil && r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
	}
	r.inbox.post(r.leave)
	return nil
}

// leave has the assistant leave the call to those who are joined.
func (r *run) leave() {
	if r.over {
		return
	}
	r.step(turn.Event{Kind: turn.TakenOver})
	r.peer.away.Store(true)
	quiet := *r.cast.Assistant
	quiet.AmbientSound, quiet.EnableNoiseCancellation = "off", false
	r.enter(&cast{Persona{Assistant: &quiet, Language: r.cast.Language}, person{}})
}

// part hangs up on those who were joined with the customer.
func (r *run) part() {
	var lines []Line
	r.inbox.ask(func() {
		if r.bridge != nil {
			lines, r.bridge.lines = r.bridge.lines, nil
		}
	})
	for _, l := range lines {
		l.Close()
	}
}
