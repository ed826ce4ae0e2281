package turn

import (
	"testing"
	"time"
)

// TestPhantom: what recognizers write for noise is no turn, and what a customer says with those words is one.
func TestPhantom(t *testing.T) {
	for _, c := range []struct {
		question, text string
		frames         int
		words          float32
		turn           bool
	}{
		{"Anything else?", "Thank you.", 25, 4, true},
		{"Anything else?", "Thank you.", 25, 0, true},   // nothing is known of the sound
		{"Anything else?", "Thank you.", 25, 1, true},   // nothing speaks against it
		{"Anything else?", "Thank you.", 25, -2, false}, // it sounds like a noise
		{"Anything else?", "Thank you.", 6, 0, false},   // nobody says that so fast
		{"What is your phone number?", "Thank you.", 25, 1, false},
		{"What is your phone number?", "Thank you.", 25, 4, true},
		{"Anything else?", "Thanks for watching!", 60, 1, false},
		{"Anything else?", "Thanks for watching!", 60, 0, false},
		{"Anything else?", "Thanks for watching!", 60, 4, true},
		{"Anything else?", "Subtitles by the Amara.org community", 60, 0, false},
		{"Anything else?", "Yes.", 10, -2, true},
		{"Anything else?", "Thank you, that was all.", 40, 1, true},
	} {
		a := asked("en", c.question, false)
		for i := range c.frames {
			a.step(Event{Kind: Voice, Speech: true, Voiced: true, Sure: i > 2, Words: c.words})
			a.last = a.at
			a.at += frameTime
		}
		a.wait(300 * time.Millisecond)
		a.step(Event{Kind: Text, N: 0, Text: c.text, Final: true})
		a.wait(4 * time.Second)
		if got := len(a.turns) > 0; got != c.turn {
			t.Errorf("%q, %v: %q of %d frames, words %v: answered %v, want %v", c.question, c.turn, c.text, c.frames, c.words, got, c.turn)
		}
	}
}
