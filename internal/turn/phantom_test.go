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
		noSpeech       float64
		turn           bool
	}{
		{"Anything else?", "Thank you.", 25, 4, 0, true},
		{"Anything else?", "Thank you.", 25, 0, 0, true},   // nothing is known of the sound
		{"Anything else?", "Thank you.", 25, 1, 0, true},   // nothing speaks against it
		{"Anything else?", "Thank you.", 25, -2, 0, false}, // it sounds like a noise
		{"Anything else?", "Thank you.", 6, 0, 0, false},   // nobody says that so fast
		{"What is your phone number?", "Thank you.", 25, 1, 0, false},
		{"What is your phone number?", "Thank you.", 25, 4, 0, true},
		{"Anything else?", "Thanks for watching!", 60, 1, 0, false},
		{"Anything else?", "Thanks for watching!", 60, 0, 0, false},
		{"Anything else?", "Thanks for watching!", 60, 4, 0, true},
		{"Anything else?", "Subtitles by the Amara.org community", 60, 0, 0, false},
		{"Anything else?", "Thank you.", 25, 1, 0.5, true},
		{"Anything else?", "Thank you.", 25, 1, 0.7, false}, // the recognizer doubts it
		{"Anything else?", "Thank you.", 25, 4, 0.7, true},  // and is wrong: the sound is clear
		{"Anything else?", "A table for two.", 40, 1, 0.7, true},
		{"Anything else?", "A table for two.", 40, 1, 0.95, false},
		{"Anything else?", "Yes.", 10, -2, 0, true},
		{"Anything else?", "Thank you, that was all.", 40, 1, 0, true},
	} {
		a := asked("en", c.question, false)
		for i := range c.frames {
			a.step(Event{Kind: Voice, Speech: true, Voiced: true, Sure: i > 2, Silences: i > 2, Sound: c.words})
			a.last = a.at
			a.at += frameTime
		}
		a.wait(300 * time.Millisecond)
		a.step(Event{Kind: Text, N: 0, Text: c.text, Final: true, NoSpeech: c.noSpeech})
		a.wait(4 * time.Second)
		if got := len(a.turns) > 0; got != c.turn {
			t.Errorf("%q, %v: %q of %d frames, words %v: answered %v, want %v", c.question, c.turn, c.text, c.frames, c.words, got, c.turn)
		}
	}
}
