package turn

import (
	"testing"
	"time"
)

// pausing is how long somebody is waited for whose voice ends in such a way, and whether an external detector has judged.
func pausing(question, text string, cadence float32, smart bool, judged float64) time.Duration {
	x := asked("en", question, smart)
	for i := range 50 {
		x.step(Event{Kind: Voice, Speech: true, Voiced: true, Sure: i > 2, Silences: i > 2})
		x.last = x.at
		x.at += frameTime
	}
	for range 12 {
		x.step(Event{Kind: Voice, Speech: true, Cadence: cadence})
		x.at += frameTime
	}
	x.step(Event{Kind: Text, N: 0, Text: text, Final: true})
	if judged > 0 {
		x.step(Event{Kind: Judged, Text: text, Over: judged})
	}
	x.wait(6 * time.Second)
	if len(x.ends) != 1 {
		return 0
	}
	return x.ends[0]
}

// How a voice ends makes the wait shorter or longer where the words leave something open, and nowhere else.
func TestCadence(t *testing.T) {
	for _, c := range []struct {
		name, asks, text string
		smart            bool
		judged           float64
		counts           bool
	}{
		{"doubtful words", "How can I help?", "can you tell me about the old one", true, 0, true},
		{"likely the end", "How can I help?", "I would like to cancel my order", true, 0, true},
		{"they break off", "How can I help?", "so I wanted to ask about the", true, 0, false},
		{"an answer", "How can I help?", "yes please", true, 0, false},
		{"silence alone", "How can I help?", "can you tell me about the old one", false, 0, false},
		{"another judges", "How can I help?", "can you tell me about the old one", true, 0.5, false},
		{"a number", "What is your six-digit code?", "I don't have it here now", true, 0, false},
	} {
		low, none, high := pausing(c.asks, c.text, 0.9, c.smart, c.judged), pausing(c.asks, c.text, 0, c.smart, c.judged),
			pausing(c.asks, c.text, -0.9, c.smart, c.judged)
		if none == 0 || c.counts && (low >= none || high <= none) || !c.counts && (low != none || high != none) {
			t.Errorf("%s: %v where the voice falls, %v where it goes on, else %v", c.name, low, high, none)
		}
	}
	// It can't make a text one that breaks off.
	if got, most := pausing("How can I help?", "can you tell me about the old one", -50, true, 0),
		Pause(600*time.Millisecond, brokenOff)+frameTime; got == 0 || got > most {
		t.Errorf("a voice makes us wait %v, want %v at most", got, most)
	}
}

// What the voice said at the end of one utterance doesn't count for the next.
func TestCadenceOfTheLast(t *testing.T) {
	x := asked("en", "How can I help?", true)
	for range 2 {
		for i := range 50 {
			x.step(Event{Kind: Voice, Speech: true, Voiced: true, Sure: i > 2, Silences: i > 2})
			x.at += frameTime
		}
		x.step(Event{Kind: Voice, Speech: true, Cadence: -1})
	}
	x.step(Event{Kind: Voice, Speech: true, Voiced: true})
	x.step(Event{Kind: Voice, Speech: true, Cadence: 0.5})
	if got := x.m.turn[x.m.latest()].cadence; got != 0.5 {
		t.Errorf("the voice counts %v, want 0.5", got)
	}
}
