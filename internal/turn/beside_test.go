package turn

import (
	"testing"
	"time"
)

// Somebody else in the room silences a reply until that is told, and cuts nothing off, whatever the ear understands. The
// customer does, before and after it.
func TestBeside(t *testing.T) {
	type part struct {
		beside bool
		frames int
	}
	for name, c := range map[string]struct {
		sound      []part
		n          int // the utterance whose text comes
		text       string
		held, cut  bool
		utterances int
	}{
		"somebody else, not told yet":          {sound: []part{{false, 25}}, text: "shut the door", held: true, cut: true, utterances: 1},
		"somebody else":                        {sound: []part{{false, 25}, {true, 50}}, text: "shut the door", utterances: 1},
		"somebody else, who says stop":         {sound: []part{{false, 25}, {true, 5}}, text: "stop", utterances: 1},
		"somebody else, known from the outset": {sound: []part{{true, 50}}, text: "shut the door"},
		"the customer, and then somebody else": {sound: []part{{false, 80}, {true, 20}}, text: "shut the door", held: true, cut: true, utterances: 1},
		"somebody else, and then the customer": {sound: []part{{false, 25}, {true, 20}, {false, 20}}, n: 1, text: "shut the door", held: true,
			cut: true, utterances: 2},
		"somebody else, and then the customer, of whom nothing is understood": {sound: []part{{false, 25}, {true, 20}, {false, 20}},
			text: "shut the door", held: true, utterances: 2},
	} {
		w := newWorld(t, manners(0))
		w.op('S')
		w.at += time.Second
		for _, p := range c.sound {
			for range p.frames {
				w.at += 20 * time.Millisecond
				if w.voiced++; p.beside {
					w.voiced = 0
				}
				w.send(Event{Kind: Voice, Speech: true, Voiced: true, Beside: p.beside, Sure: w.voiced >= 3})
			}
		}
		if w.held != c.held {
			t.Errorf("%s: held %v", name, w.held)
		}
		for range 12 {
			w.op('.')
		}
		w.send(Event{Kind: Text, N: c.n, Text: c.text, Final: true})
		for range 60 {
			w.op('.')
		}
		if w.dead[1] != c.cut || !c.cut && w.held {
			t.Errorf("%s: cut off %v, held %v", name, w.dead[1], w.held)
		}
		if w.m.next != c.utterances {
			t.Errorf("%s: %d utterances", name, w.m.next)
		}
	}
}

// A turn isn't prolonged by somebody else who speaks after it.
func TestBesideTurn(t *testing.T) {
	for name, pause := range map[string]int{"at once": 0, "after a pause": 15} {
		m := manners(0)
		w := newWorld(t, m)
		w.op('S')
		for range 600 { // the greeting
			w.op('.')
			w.op('p')
		}
		send := func(n int, beside bool) {
			for range n {
				w.at += 20 * time.Millisecond
				w.send(Event{Kind: Voice, Speech: true, Voiced: true, Beside: beside})
				w.send(Event{Kind: Tick})
			}
		}
		send(100, false)
		last := w.at
		for range pause {
			w.op('.')
		}
		said := w.m.next - 1
		for range 15 {
			send(1, true) // the utterance is over meanwhile
		}
		w.send(Event{Kind: Text, N: said, Text: "I would like a table for two please.", Final: true})
		if pause > 0 {
			send(5, false) // it isn't told yet that this is somebody else
		}
		for range 200 {
			if len(w.turns) > 0 {
				break
			}
			send(1, true)
		}
		if len(w.turns) != 1 || w.at-last > m.Endpoint+200*time.Millisecond+time.Duration(pause)*20*time.Millisecond {
			t.Errorf("%s: %d turns after %v", name, len(w.turns), w.at-last)
		}
	}
}
