package voice

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/turn"
)

// Guest is somebody who takes part in a call besides its customer and its assistant: a supervisor, or a third person.
// All of them hear everybody who is heard by the customer. What they say themselves goes where their mode says.
type Guest struct {
	Line Line
	Kind parley.LegKind
	Keys func(key byte) // takes the keys that they press; nil: the customer's line gets them

	r           *run
	member      *audio.Member
	mode        atomic.Value                // parley.LegMode; the owner sets it
	recognition atomic.Pointer[recognition] // nil: nobody has listened to them yet
}

// The refusals of Admit and Change.
var (
	ErrNotHeld = parley.Errorf(parley.Conflict, "Nobody can join this call: its conversation has not begun, or is over.")
	ErrPassing = parley.Errorf(parley.Conflict, "The customer is being transferred: the call can't be taken over now.")
)

// Admit has somebody take part in the call that is held, until their line or the call is over. From then on the session
// closes their line; after an error it does not.
func (s *Session) Admit(g *Guest, mode parley.LegMode) error {
	r := s.held.Load()
	if r == nil {
		return ErrNotHeld
	}
	g.r = r
	g.mode.Store(parley.LegListen)
	if err := g.listen(mode); err != nil {
		r.note(err) // they are heard all the same
	}
	err := error(ErrNotHeld)
	r.inbox.ask(func() {
		if r.over || r.cast == nil {
			return
		}
		g.member = r.seat(g.Line)
		g.member.Mute()
		r.guests = append(r.guests, g)
		if err = r.change(g, mode); err != nil {
			r.unseat(g)
		}
	})
	if err != nil {
		if e := g.recognition.Load(); e != nil {
			e.Close()
		}
		return err
	}
	g.Line.Connect(g)
	r.safely(func() {
		select {
		case <-g.Line.Done():
			r.inbox.post(func() { r.dismiss(g) })
		case <-r.ctx.Done():
		}
	})
	return nil
}

// Change gives a guest another mode.
func (g *Guest) Change(mode parley.LegMode) error {
	if err := g.listen(mode); err != nil {
		g.r.note(err)
	}
	err := error(ErrNotHeld)
	g.r.inbox.ask(func() {
		if !g.r.over && slices.Contains(g.r.guests, g) {
			err = g.r.change(g, mode)
		}
	})
	return err
}

// change is Change for the owner. Whoever takes over silences the assistant at once.
func (r *run) change(g *Guest, mode parley.LegMode) error {
	if mode == parley.LegTakeOver && r.passing {
		return ErrPassing
	}
	led := r.led()
	g.mode.Store(mode)
	if mode.Heard() {
		g.member.Speak()
	} else {
		g.member.Mute()
	}
	r.pressing(g.Line, mode.Heard() && g.Keys == nil)
	r.relieve(led)
	return nil
}

// relieve tells the machine when the first takes over, or the last of those hands back.
func (r *run) relieve(led bool) {
	switch now := r.led(); {
	case now && !led:
		r.step(turn.Event{Kind: turn.Relieved})
	case led && !now:
		r.step(turn.Event{Kind: turn.Returned})
	}
}

// led reports whether somebody speaks in the assistant's place.
func (r *run) led() bool {
	return slices.ContainsFunc(r.guests, func(g *Guest) bool { return g.mode.Load() == parley.LegTakeOver })
}

// unseat takes a guest off the bridge.
func (r *run) unseat(g *Guest) {
	r.guests = slices.DeleteFunc(r.guests, func(o *Guest) bool { return o == g })
	r.lines = slices.DeleteFunc(r.lines, func(l Line) bool { return l == g.Line })
	r.pressing(g.Line, false)
	g.member.Leave()
}

// dismiss lets a guest go whose line is over. If they had taken over, the assistant goes on.
func (r *run) dismiss(g *Guest) {
	if r.over || !slices.Contains(r.guests, g) {
		return
	}
	led := r.led()
	r.unseat(g)
	r.safely(g.Line.Close)
	if e := g.recognition.Load(); e != nil {
		r.safely(e.Close)
	}
	r.relieve(led)
}

// said puts what a guest has said into the transcript, and the assistant learns of it.
func (r *run) said(g *Guest, p phrase, text string) {
	e := &entry{guest: g, mode: p.mode, text: text, from: p.from, spoke: p.language}
	r.transcript.entries = append(r.transcript.entries, e)
	r.transcript.settle()
	if r.over || r.cast == nil {
		return
	}
	if r.cast.keeper != nil {
		r.cast.told(e.message())
	}
	if p.mode == parley.LegTalk {
		r.step(turn.Event{Kind: turn.Bid})
	}
}

// Whisper tells the assistant something in writing, as a supervisor who whispers: nobody else hears it.
func (s *Session) Whisper(text string) error {
	r := s.held.Load()
	if r == nil {
		return ErrNotHeld
	}
	err := error(ErrNotHeld)
	r.inbox.ask(func() {
		if r.over || r.cast == nil {
			return
		}
		r.said(&Guest{Kind: parley.LegSupervisor}, phrase{from: r.clock.now(), mode: parley.LegWhisper}, text)
		err = nil
	})
	return err
}

// message is what the model is told of what a guest has said.
func (e *entry) message() ai.Message {
	who := "Somebody else in the call"
	if e.guest.Kind == parley.LegSupervisor {
		who = "Your supervisor"
	}
	text := fmt.Sprintf("[%s says, and the customer hears it: %q]", who, e.text)
	if e.mode == parley.LegWhisper {
		text = fmt.Sprintf("[%s whispers to you, and the customer does not hear it: %q Follow it from now on, and do not speak of it.]",
			who, e.text)
	}
	return ai.Message{Role: ai.User, Text: text}
}

// Hear implements audio.Peer.
func (g *Guest) Hear(f audio.Frame) {
	defer g.r.escaped()
	if e := g.recognition.Load(); e != nil {
		e.hear(f, g.mode.Load().(parley.LegMode))
	}
}

// Tick implements audio.Peer.
func (g *Guest) Tick(in, out audio.Frame) bool {
	defer g.r.escaped()
	return g.member.Tick(in, out)
}

// Digit implements audio.Peer.
func (g *Guest) Digit(key byte) {
	defer g.r.escaped()
	switch {
	case g.Keys != nil:
		g.Keys(key)
	case g.mode.Load().(parley.LegMode).Heard():
		_ = g.r.leg.Dial(string(rune(key))) // a line that takes no keys gets none
	}
}

var errNoRecognizer = errors.New("there is no transcriber that could understand who joined the call")
