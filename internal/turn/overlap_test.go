package turn

import (
	"slices"
	"testing"
	"time"

	"parley/internal/parley"
)

const ms = time.Millisecond

// overlapped is a moment in which the customer speaks, or has spoken, over a reply.
type overlapped struct {
	about string

	// The reply: an answer of which something was heard, and which fell silent, or
	asks, greets, parts bool // it asks a question; is the initial message; is the goodbye
	unheard, firm       bool // nothing of it was heard yet; it can't be cut off
	heard, deaf         bool // it has not fallen silent; a noise was judged already
	whole               Manner

	// The customer
	says     string        // what the recognizer has understood so far
	awaited  bool          // it may say more
	lasts    time.Duration // so long they have spoken
	pause    time.Duration // and so long they have been quiet since
	speaking bool          // their utterance is not over yet
	sound    float32       // how likely it has words by its sound, as a logit
	with     func(m *Machine, s *segment)

	want outcome
	left int // so many utterances wait for the reply's end
}

// overlaps is the table of who goes on when both speak. Unless something else is said, the assistant may be interrupted with
// 300 ms of any speech, and the customer's sound was certainly speech.
var overlaps = []overlapped{
	{about: "nothing was said", want: goesOn, with: func(m *Machine, _ *segment) { m.turn = nil }},

	// Words cut a reply off once they are final, and before that where more was said than a word of listening takes.
	{about: "words", says: "stop it please", lasts: 600 * ms, want: cutOff},
	{about: "words that may change", says: "I want to", lasts: 880 * ms, speaking: true, want: undecided},
	{about: "many words that may change", says: "I want to", lasts: 900 * ms, speaking: true, want: cutOff},
	{about: "many, of whom much is asked", says: "I want to", lasts: 940 * ms, speaking: true, want: undecided,
		whole: Manner{Confirm: 950 * ms}},
	{about: "two words, where two are asked for", says: "wait please", lasts: 400 * ms, whole: Manner{MinWords: 2}, want: cutOff},
	{about: "a word, where two are asked for", says: "Tuesday", lasts: 500 * ms, whole: Manner{MinWords: 2}, want: later, left: 1},
	{about: "as little as an interruption takes", says: "the cat", lasts: 300 * ms, want: cutOff},
	{about: "too little for an interruption", says: "the cat", lasts: 280 * ms, want: later},
	{about: "too little, which surely has words", says: "the cat", lasts: 200 * ms, sound: 3, want: cutOff},
	{about: "hardly any, which surely has words", says: "the cat", lasts: 180 * ms, sound: 3, want: later},
	{about: "too little, which surely has words, where much is asked", says: "the cat", lasts: 280 * ms, sound: 3,
		whole: Manner{Confirm: 700 * ms}, want: later},

	// "Stop" is enough however short it is.
	{about: "stop", says: "Stop.", lasts: 60 * ms, want: cutOff},
	{about: "stop, by a sound that is hardly speech", says: "stop", lasts: 60 * ms, want: later,
		with: func(_ *Machine, s *segment) { s.sure = false }},
	{about: "stop, where much is asked of an interruption", says: "stop", lasts: 200 * ms, want: later, whole: Manner{Confirm: 310 * ms}},
	{about: "stop, where two words are asked for", says: "stop", lasts: 200 * ms, want: later, whole: Manner{MinWords: 2}},

	// Words of listening don't, neither by their text nor by their sound.
	{about: "a word of listening", says: "okay", lasts: 400 * ms, want: dismissed},
	{about: "long words of listening", says: "yeah okay", lasts: 1200 * ms, want: dismissed},
	{about: "oh, by a sound that has words", says: "oh", lasts: 400 * ms, sound: 5, want: cutOff},
	{about: "oh, by a sound that may have words", says: "oh", lasts: 400 * ms, sound: 3.9, want: dismissed},
	{about: "oh, by an echo that has words", says: "oh", lasts: 400 * ms, sound: 5, want: dismissed,
		with: func(_ *Machine, s *segment) { s.sure = false }},
	{about: "yeah, by a sound that has words", says: "yeah", lasts: 400 * ms, sound: 5, want: dismissed},
	{about: "a word, by a sound that is a hum", says: "cat", lasts: 540 * ms, sound: -1.1, want: dismissed},
	{about: "a word, by a sound that is no hum", says: "cat", lasts: 540 * ms, sound: -0.9, want: cutOff},
	{about: "a word, by a longer hum", says: "cat", lasts: 560 * ms, sound: -2.4, want: cutOff},
	{about: "a word, by a longer hum that is surer", says: "cat", lasts: 680 * ms, sound: -2.6, want: dismissed},
	{about: "a word, by a long hum", says: "cat", lasts: 700 * ms, sound: -3.9, want: cutOff},
	{about: "a word, by a long hum that is certain", says: "cat", lasts: 880 * ms, sound: -4.1, want: dismissed},
	{about: "a word, by a hum as long as speech", says: "cat", lasts: 900 * ms, sound: -9, want: cutOff},
	{about: "three words, by a hum", says: "the grey cat", lasts: 500 * ms, sound: -9, want: cutOff},
	{about: "stop, by a hum", says: "stop", lasts: 400 * ms, sound: -9, want: cutOff},
	{about: "it begins with stop, by a hum", says: "wait please", lasts: 400 * ms, sound: -9, want: cutOff},
	{about: "hollow words", says: "the", lasts: 600 * ms, want: dismissed},
	{about: "hollow words, by a sound that has words", says: "the", lasts: 600 * ms, sound: 2.6, want: cutOff},
	{about: "long hollow words", says: "the", lasts: 700 * ms, want: cutOff},
	{about: "what was taken for a nod and is a short word", says: "shah", lasts: 400 * ms, want: dismissed, with: nods("sure")},
	{about: "what was taken for a nod and has words", says: "shah", lasts: 400 * ms, sound: 3, want: cutOff, with: nods("sure")},
	{about: "what was taken for a nod and is three words", says: "she was late", lasts: 400 * ms, want: cutOff, with: nods("sure")},
	{about: "what was taken for a nod and goes on", says: "sure thing", lasts: 400 * ms, want: cutOff, with: nods("sure")},
	{about: "what was taken for a nod and lasts", says: "shah", lasts: 700 * ms, want: cutOff, with: nods("sure")},

	// What answers the reply's question waits for its end, however short it is.
	{about: "yes, to a question", asks: true, says: "yes", lasts: 200 * ms, want: answersLater, left: 1},
	{about: "no, to a question", asks: true, says: "no", lasts: 200 * ms, want: answersLater, left: 1},
	{about: "no", says: "no", lasts: 200 * ms, want: cutOff},
	{about: "a short answer to a question", asks: true, says: "yes please", lasts: 280 * ms, want: answersLater, left: 1},
	{about: "something short that may go on, to a question", asks: true, says: "Boston", lasts: 280 * ms, want: later},
	{about: "a long answer to a question", asks: true, says: "yes please", lasts: 600 * ms, want: cutOff},
	{about: "yes, in the middle of what asks a question", asks: true, says: "yes", lasts: 200 * ms, want: dismissed,
		with: func(m *Machine, _ *segment) { m.reply.spoken = 3 }},
	{about: "yes, to a question that is still thought about", asks: true, says: "yes", lasts: 200 * ms, want: dismissed,
		with: func(m *Machine, _ *segment) { m.reply.thinking = true }},

	// The word with which people pick up a call is none.
	{about: "hello, over the initial message", greets: true, says: "hello", lasts: 500 * ms, want: dismissed},
	{about: "hello, over an answer", says: "hello", lasts: 500 * ms, want: cutOff},
	{about: "hello, over an initial message that asks", greets: true, asks: true, says: "hello", lasts: 500 * ms, want: dismissed},
	{about: "yes, over an initial message that asks", greets: true, asks: true, says: "yes", lasts: 200 * ms, want: answersLater, left: 1},
	{about: "somebody picks up, and says yes to the initial message", greets: true, asks: true, says: "yes", lasts: 200 * ms,
		want: dismissed, with: picksUp},
	{about: "somebody picks up: nobody waits for the text", greets: true, awaited: true, lasts: 400 * ms, want: goesOn, with: picksUp},
	{about: "somebody picks up and says much", greets: true, awaited: true, lasts: 920 * ms, want: undecided, with: picksUp},
	{about: "somebody is called and says something later", greets: true, awaited: true, lasts: 700 * ms, want: undecided,
		whole: Manner{Outbound: true}},

	// Thanks and goodbyes don't cut a goodbye off.
	{about: "bye, over a goodbye", parts: true, says: "thank you, bye", lasts: 600 * ms, want: dismissed},
	{about: "bye, over an answer", says: "thank you, bye", lasts: 600 * ms, want: cutOff},

	// A reply that can't be cut off goes on; words are answered after it.
	{about: "words over a reply that can't be cut off", firm: true, says: "stop it please", lasts: 600 * ms, want: later, left: 1},
	{about: "words over an unheard reply that can't be cut off", firm: true, unheard: true, says: "stop it please", lasts: 600 * ms,
		want: later, left: 1},
	{about: "words over an assistant that can't be interrupted", says: "stop it please", lasts: 600 * ms, want: later, left: 1,
		with: func(m *Machine, _ *segment) { m.manner.Interruptible = false }},

	// Where nothing of the reply was heard, any words go on with what it answers.
	{about: "words before anything is heard", unheard: true, says: "and on Friday", lasts: 100 * ms, want: rejoined},
	{about: "words before anything is heard, where nobody may interrupt", unheard: true, says: "on Friday", lasts: 100 * ms,
		want: rejoined, with: func(m *Machine, _ *segment) { m.manner.Interruptible = false }},
	{about: "hollow words before anything is heard", unheard: true, says: "the", lasts: 100 * ms, sound: -9, want: rejoined},
	{about: "words of listening before anything is heard", unheard: true, says: "okay", lasts: 400 * ms, want: dismissed},
	{about: "before anything is heard, words that may change", unheard: true, says: "and", awaited: true, lasts: 100 * ms, want: undecided},
	{about: "before anything is heard, in a pause", unheard: true, lasts: 200 * ms, pause: 160 * ms, speaking: true, want: undecided},
	{about: "words over an initial message that nobody has heard", greets: true, unheard: true, says: "stop it please",
		lasts: 600 * ms, want: cutOff},

	// Without a text.
	{about: "nothing was understood of what surely had words", lasts: 400 * ms, want: later, left: 1,
		with: func(_ *Machine, s *segment) { s.unclear = true }},
	{about: "nothing was understood, and the reply can't be cut off", firm: true, lasts: 400 * ms, want: later, left: 1,
		with: func(_ *Machine, s *segment) { s.unclear = true }},
	{about: "the recognizer failed", lasts: 400 * ms, want: later, left: 1, with: func(_ *Machine, s *segment) { s.lost = true }},
	{about: "a noise", lasts: 400 * ms, want: later},
	{about: "a key", lasts: 20 * ms, want: later, left: 1, says: "[keypad: 1]", with: func(_ *Machine, s *segment) { s.keypad = true }},
	{about: "a text is awaited", awaited: true, lasts: 700 * ms, pause: 1180 * ms, want: undecided},
	{about: "a text was awaited for long enough", awaited: true, lasts: 700 * ms, pause: 1200 * ms, want: goesOn},
	{about: "the text of a short sound is awaited", awaited: true, lasts: 680 * ms, want: goesOn},
	{about: "the text of a short sound is awaited, which may have words", awaited: true, lasts: 680 * ms, sound: 0.9, want: goesOn},
	{about: "the text of a short sound is awaited, which likely has words", awaited: true, lasts: 100 * ms, sound: 1, want: undecided},
	{about: "it has been awaited for long", awaited: true, lasts: 100 * ms, sound: 1, pause: 2180 * ms, want: undecided},
	{about: "it was awaited for long enough", awaited: true, lasts: 100 * ms, sound: 1, pause: 2200 * ms, want: goesOn},
	{about: "the text of an echo that has words is awaited", awaited: true, lasts: 100 * ms, sound: 5, want: goesOn,
		with: func(_ *Machine, s *segment) { s.sure = false }},
	{about: "the text seems to be a word", awaited: true, says: "what", lasts: 300 * ms, want: undecided},
	{about: "the text seems to be a very short word", awaited: true, says: "what", lasts: 280 * ms, want: goesOn},
	{about: "before anything is heard, the text of a short sound is awaited", unheard: true, awaited: true, lasts: 100 * ms,
		want: undecided},
	{about: "the text seems to be a word of listening", awaited: true, says: "okay", lasts: 400 * ms, want: goesOn},
	{about: "the text seems to be a word of listening, by a sound that likely has words", awaited: true, says: "okay", lasts: 400 * ms,
		sound: 1, want: undecided},

	// By its sound, where the model hears for itself.
	{about: "a long sound", awaited: true, lasts: 900 * ms, pause: 600 * ms, whole: Manner{Sound: true}, want: cutOff},
	{about: "a long sound that may go on", awaited: true, lasts: 900 * ms, pause: 580 * ms, whole: Manner{Sound: true}, want: undecided},
	{about: "a sound like a word", awaited: true, lasts: 880 * ms, pause: 600 * ms, whole: Manner{Sound: true}, want: undecided},
	{about: "a sound like two words, where three are asked for", awaited: true, lasts: 1180 * ms, pause: 600 * ms,
		whole: Manner{Sound: true, MinWords: 3}, want: undecided},
	{about: "a sound like three words, where three are asked for", awaited: true, lasts: 1200 * ms, pause: 600 * ms,
		whole: Manner{Sound: true, MinWords: 3}, want: cutOff},
	{about: "a sound before anything is heard", unheard: true, awaited: true, lasts: 500 * ms, pause: 600 * ms,
		whole: Manner{Sound: true}, want: rejoined},
	{about: "a noise before anything is heard", unheard: true, awaited: true, lasts: 480 * ms, pause: 600 * ms,
		whole: Manner{Sound: true}, want: undecided},

	// While they speak, the reply stays silent, unless they only seem to listen.
	{about: "it has not fallen silent", heard: true, lasts: 400 * ms, pause: 160 * ms, speaking: true, want: undecided},
	{about: "speech", lasts: 600 * ms, speaking: true, want: undecided},
	{about: "a pause that is too short for one", lasts: 400 * ms, pause: 100 * ms, speaking: true, want: undecided},
	{about: "a pause after a short sound", lasts: 400 * ms, pause: 180 * ms, speaking: true, want: undecided},
	{about: "a pause after words of listening", says: "yeah okay", lasts: 600 * ms, pause: 180 * ms, speaking: true, want: undecided},
	{about: "a hum", lasts: 600 * ms, sound: -9, speaking: true, want: undecided},
	{about: "a hum of listening", says: "mm-hm", lasts: 600 * ms, sound: -9, speaking: true, want: undecided},

	// Not for ever.
	{about: "almost three seconds of sound", lasts: 3000 * ms, speaking: true, want: undecided},
	{about: "three seconds of sound", lasts: 3020 * ms, speaking: true, want: mustDecide},
	{about: "three seconds of sound, in a pause", lasts: 400 * ms, pause: 2620 * ms, speaking: true, want: mustDecide},
	{about: "it was judged: a noise that goes on", deaf: true, lasts: 400 * ms, speaking: true, want: goesOn},
	{about: "it was judged, and its text is awaited", deaf: true, lasts: 400 * ms, speaking: true, want: undecided, with: before(980 * ms)},
	{about: "it was judged, and its text has not come", deaf: true, lasts: 400 * ms, speaking: true, want: goesOn, with: before(1000 * ms)},
}

// nods has the recognizer take an utterance for words of listening first.
func nods(word string) func(*Machine, *segment) {
	return func(_ *Machine, s *segment) { s.nod = word }
}

// picksUp has the customer be called, and speak in the first two seconds.
func picksUp(m *Machine, s *segment) {
	m.manner.Outbound = true
	s.from, s.last = 1980*ms, 1980*ms+s.last-s.from
}

// before has the customer say something else before, which ended so long ago and is not understood yet.
func before(ago time.Duration) func(*Machine, *segment) {
	return func(m *Machine, _ *segment) {
		end := m.now - ago
		m.turn = slices.Insert(m.turn, 0, segment{n: 8, from: end - 3*time.Second, last: end, closed: end, sure: true})
	}
}

// machine is a machine at that moment.
func (o *overlapped) machine() *Machine {
	manner := o.whole
	manner.Language, manner.Interruptible, manner.Endpoint = "en", true, 600*ms
	if manner.Confirm == 0 {
		manner.Confirm = 300 * ms
	}
	m := New(manner)
	m.now = time.Minute
	m.reply = &reply{id: 1, phase: audible, firm: o.firm, held: !o.heard, deaf: o.deaf, question: o.asks, spoken: 1}
	if o.unheard {
		m.reply.phase = begun
	}
	if o.greets {
		m.reply.purpose = Greeting
	}
	if o.parts {
		m.reply.leave = parley.AssistantHangup
	}
	s := segment{n: 9, text: o.says, sure: true, words: o.sound, last: m.now - o.pause, final: !o.awaited && !o.speaking}
	s.from = s.last + frameTime - o.lasts
	if s.told, m.open, m.last = s.from, o.speaking, s.last; !o.speaking {
		s.closed = min(s.last+segmentSilence, m.now)
	}
	m.turn = append(m.turn, s)
	if o.with != nil {
		o.with(m, &m.turn[0])
	}
	return m
}

// fate is what a machine has made of a reply, by what it did.
func fate(m *Machine, before []segment) outcome {
	has := func(kind ActionKind) bool {
		return slices.ContainsFunc(m.out, func(a Action) bool { return a.Kind == kind })
	}
	switch {
	case m.reply == nil && m.out[len(m.out)-1].Join:
		return rejoined
	case m.reply == nil:
		return cutOff
	case has(CloseRecognizer):
		return mustDecide
	case len(m.turn) < len(before):
		return dismissed
	case slices.ContainsFunc(m.turn, func(s segment) bool { return s.queued }):
		return later
	case has(Resume):
		return goesOn
	}
	return undecided
}

// TestOverlap: the facts of each moment lead to what is wanted, and the machine does it.
func TestOverlap(t *testing.T) {
	for _, o := range overlaps {
		m := o.machine()
		before := slices.Clone(m.turn)
		facts := m.facts(m.reply)
		if got := facts.outcome(); got != o.want {
			t.Errorf("%s: %s, want %s", o.about, got, o.want)
		}
		m.overlap()
		seen, left := o.want, 0
		switch { // of what waits it can't be seen why
		case o.left > 0:
			seen = later
		case seen == later:
			seen = dismissed
		}
		for i := range m.turn {
			if m.turn[i].queued {
				left++
			}
		}
		if got := fate(m, before); got != seen || left != o.left {
			t.Errorf("%s: the machine did %s, and %d utterances wait; want %s, %d", o.about, got, left, seen, o.left)
		}
	}
}
