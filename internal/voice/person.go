package voice

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/internal/audio"
	"parley/internal/parley"
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

// party is one side of a bridge. The keys that it presses reach the other side.
type party struct {
	*audio.Member
	press func(digits string) error
}

// Digit implements audio.Peer.
func (p party) Digit(key byte) {
	_ = p.press(string(rune(key))) // a line that takes no keys gets none
}

// bridge is the sound that others than the customer and the assistant have in a call. The leg's goroutine uses it: when
// somebody comes or goes, another takes its place.
type bridge struct {
	room   *audio.Bridge
	member *audio.Member // the customer's and the assistant's side
	keys   []Line        // get what the customer presses
	said   [audio.MaxFrame]int16
	heard  [audio.MaxFrame]int16
}

// seat gives a line its place on the bridge, which is there from the first one on.
func (r *run) seat(l Line) *audio.Member {
	room := r.room()
	r.lines = append(r.lines, l)
	return room.Join(l.Rate())
}

func (r *run) room() *audio.Bridge {
	if r.bridge == nil {
		room := audio.NewBridge()
		r.build(&bridge{room: room, member: room.Join(r.rate)})
	}
	return r.bridge.room
}

// pressing has a line get the customer's keys, or not any more.
func (r *run) pressing(l Line, on bool) {
	keys := slices.DeleteFunc(slices.Clone(r.bridge.keys), func(o Line) bool { return o == l })
	if on {
		keys = append(keys, l)
	}
	r.build(&bridge{room: r.bridge.room, member: r.bridge.member, keys: keys})
}

func (r *run) build(b *bridge) {
	r.bridge = b
	r.peer.bridge.Store(b)
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
	var member *audio.Member
	r.inbox.ask(func() {
		if !r.over {
			member, r.joined = r.seat(line), true
			r.pressing(line, true)
		}
	})
	if member == nil {
		line.Close()
		return errOver
	}
	line.Connect(party{member, r.leg.Dial})
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
	quiet.AmbientSound, quiet.EnableNoiseCancellation, quiet.BackgroundSpeechCancellation = "off", false, false
	r.enter(&cast{Persona: Persona{Assistant: &quiet, Language: r.cast.Language}})
}

// part hangs up on those who were in the call besides the customer.
func (r *run) part() {
	var lines []Line
	r.inbox.ask(func() {
		lines, r.lines = r.lines, nil
	})
	for _, l := range lines {
		l.Close()
	}
}
