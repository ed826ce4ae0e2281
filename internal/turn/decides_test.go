package turn

import (
	"slices"
	"testing"
	"time"
)

// decided is a world with a model that decides by itself when it speaks.
func decided(t *testing.T, initial string) *world {
	return newWorld(t, Manner{Language: "en", Interruptible: true, Confirm: 300 * time.Millisecond, Endpoint: 600 * time.Millisecond,
		Initial: initial, Sound: true, Decides: true, MaxSilence: 10 * time.Second, Reengage: 5 * time.Second, MaxDuration: time.Hour})
}

// voices is speech of so long, and then silence.
func (w *world) voices(speech, silence time.Duration) {
	for ; speech > 0; speech -= frameTime {
		w.at += frameTime
		w.send(Event{Kind: Voice, Speech: true, Voiced: true, Sure: true, Silences: true})
	}
	for ; silence > 0; silence -= frameTime {
		w.at += frameTime
		w.send(Event{Kind: Voice})
		w.send(Event{Kind: Tick})
	}
}

// plays is a reply that the model says, of which all is played.
func (w *world) plays() {
	id := w.m.reply.id
	w.parts++
	w.send(Event{Kind: Spoken, Reply: id})
	w.send(Event{Kind: Sounded, Reply: id})
	w.send(Event{Kind: Thought, Reply: id, Text: "Well."})
	w.parts, w.think = 0, false
	w.send(Event{Kind: Played, Reply: id})
}

func TestDecides(t *testing.T) {
	w := decided(t, "")
	w.voices(time.Second, 3*time.Second)
	w.send(Event{Kind: Text, N: 0, Text: "a table please", Final: true})
	w.voices(0, time.Second)
	if w.m.reply != nil || w.armed {
		w.failf("a reply was begun, or would be silenced")
	}
	w.send(Event{Kind: Speaks})
	if w.live != 1 || w.turns[1] != "a table please" {
		w.failf("reply %d answers %q", w.live, w.turns[w.live])
	}
	w.send(Event{Kind: Spoken, Reply: 1})
	w.send(Event{Kind: Sounded, Reply: 1})
	w.voices(2*time.Second, 2*time.Second) // over the reply
	w.send(Event{Kind: Text, N: 1, Text: "no wait, for four people please", Final: true})
	if w.live != 1 || w.held {
		w.failf("what the customer says cuts the reply off, or holds it")
	}
	w.plays()
	w.send(Event{Kind: Speaks})
	if w.live != 2 || w.turns[2] != "no wait, for four people please" {
		w.failf("reply %d answers %q", w.live, w.turns[w.live])
	}
	w.plays()
	w.send(Event{Kind: Speaks}) // nobody has said anything
	if w.live != 3 || w.turns[3] != "" {
		w.failf("reply %d answers %q", w.live, w.turns[w.live])
	}
}

// The initial message gives way to what the model says; a goodbye doesn't, nor does a reply that is still made.
func TestDecidesOver(t *testing.T) {
	w := decided(t, "Hello, this is the bakery.")
	if w.live != 1 {
		w.failf("nobody is greeted")
	}
	w.voices(time.Second, time.Second)
	w.send(Event{Kind: Speaks})
	if w.live != 2 || !w.dead[1] {
		w.failf("reply %d is said", w.live)
	}
	w.send(Event{Kind: Speaks})
	if w.live != 2 {
		w.failf("reply %d is said", w.live)
	}
	w.send(Event{Kind: Leave, Reply: 2, Reason: "goodbye"})
	w.send(Event{Kind: Spoken, Reply: 2})
	w.think = false
	w.send(Event{Kind: Thought, Reply: 2})
	w.send(Event{Kind: Speaks})
	if w.live != 2 || w.ended > 0 {
		w.failf("reply %d is said", w.live)
	}
}

// What the model leaves unanswered stands in the transcript when the silence is broken.
func TestDecidesSilence(t *testing.T) {
	w := decided(t, "")
	w.voices(time.Second, time.Second)
	w.send(Event{Kind: Text, N: 0, Text: "I will think about it", Final: true})
	w.voices(0, 12*time.Second)
	if w.live != 1 || !slices.Equal(w.noted, []string{"I will think about it"}) {
		w.failf("reply %d is said, and %q noted", w.live, w.noted)
	}
}
