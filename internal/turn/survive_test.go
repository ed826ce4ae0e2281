package turn

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// step lets 20 ms pass in silence; what is to be said is played.
func (w *world) step() {
	w.at += 20 * time.Millisecond
	for _, kind := range []EventKind{Voice, Tick} {
		if w.ended == 0 {
			w.send(Event{Kind: kind})
		}
	}
	for w.ended == 0 && w.parts > 0 && !w.held {
		w.play()
	}
}

// pass lets time pass in silence; what is thought of is answered with a sentence.
func (w *world) pass(d time.Duration) {
	for end := w.at + d; w.at < end && w.ended == 0; {
		w.step()
		if w.ended == 0 && w.think && w.live != 0 {
			w.send(Event{Kind: Sentence, Reply: w.live, Text: "Well, that is so."})
			w.think = false
			w.send(Event{Kind: Thought, Reply: w.live})
		}
	}
}

// thinks presses a key and waits until a reply to it is thought of.
func (w *world) thinks() {
	w.send(Event{Kind: Key, Key: '1'})
	for end := w.at + 10*time.Second; !w.think && w.at < end; {
		w.step()
	}
	if !w.think {
		w.failf("the key is not answered")
	}
}

// says counts the fixed sentences of a kind that were said.
func (w *world) says(what Purpose) (n int) {
	for _, o := range w.log {
		if o.acts && o.action.Kind == Say && o.action.Purpose == what {
			n++
		}
	}
	return n
}

// A customer who presses keys is there: the call goes on, however often they had to be asked before.
func TestKeysAreSignsOfLife(t *testing.T) {
	m := manners(0)
	w := newWorld(t, m)
	w.pass(2 * time.Second)
	for range 4 {
		asked := w.says(StillThere)
		w.pass(m.MaxSilence + 2*time.Second)
		if w.ended > 0 || w.says(StillThere) != asked+1 {
			w.failf("the call has ended (%d), or they were asked %d times", w.ended, w.says(StillThere)-asked)
		}
		w.send(Event{Kind: Key, Key: '1'})
		w.pass(5 * time.Second)
	}
}

// The longest duration is the call's, whoever takes over and whatever theirs is.
func TestHandOverKeepsTheLimit(t *testing.T) {
	for name, theirs := range map[string]time.Duration{"a longer one": time.Hour, "a shorter one": 30 * time.Second} {
		m := manners(0)
		m.Reengage, m.MaxSilence = time.Hour, time.Hour
		w := newWorld(t, m)
		w.pass(2 * time.Second)
		w.thinks()
		next := m
		next.MaxDuration, next.Initial = theirs, "Hello, this is the shop."
		w.send(Event{Kind: Handed, Reply: w.live, Manner: &next})
		w.pass(m.MaxDuration - w.at - time.Second)
		if w.ended > 0 || w.says(Greeting) != 2 {
			t.Errorf("%s: the call ended after %v, %d greetings", name, w.at, w.says(Greeting))
			continue
		}
		w.pass(2 * time.Second)
		if last := w.log[len(w.log)-1].action; w.ended != 1 || last.Kind != HangUp || last.Reason != parley.MaxDuration {
			t.Errorf("%s: after %v it ended (%d) with %q", name, w.at, w.ended, last.Reason)
		}
	}
}

// A key silences what is being said, where the assistant may be interrupted.
func TestKeysOverWords(t *testing.T) {
	for bits, cut := range map[byte]bool{0: true, 1: false} {
		m := manners(bits)
		m.Initial = "Hello, how can I help?"
		w := newWorld(t, m)
		w.send(Event{Kind: Sounded, Reply: w.live})
		w.at += time.Second
		w.send(Event{Kind: Key, Key: '1'})
		if w.dead[1] != cut {
			t.Errorf("interruptible %v: cut off %v", m.Interruptible, w.dead[1])
		}
		if !cut { // it is answered afterwards
			w.sounds = true
			w.thinks()
		}
	}
}

// An assistant that lets the customer speak first greets them with its first reply; where nothing was heard of that, with
// the next one.
func TestGreetingIsNotLost(t *testing.T) {
	m := manners(8)
	w := newWorld(t, m)
	for range 30 {
		w.op('v')
	}
	for range 100 {
		w.op('.')
		if w.live == 0 && w.at > time.Second {
			w.send(Event{Kind: Text, N: 0, Text: "I need a table for two", Final: true})
		}
	}
	if !w.think || w.says(Greeting) != 1 || w.sounds {
		w.failf("they spoke, and were greeted %d times", w.says(Greeting))
	}
	w.send(Event{Kind: Key, Key: '1'})
	w.pass(5 * time.Second)
	if n := w.says(Greeting); n != 2 {
		w.failf("nothing was heard of the greeting, and it was said %d times", n)
	}
}

// A customer who talks with a person in the assistant's place is neither heard nor answered, whatever was under way: nobody is
// there who could do it.
func TestTakenOver(t *testing.T) {
	for seed := range 300 {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		w := newWorld(t, manners(byte(r.Uint32())))
		play := func(steps int) {
			for range steps {
				op := "vvv...tfhbeSspddWcFGO1#gnraBQj"[r.IntN(30)]
				for range 1 + r.IntN(20) {
					if w.ended > 0 || strings.IndexByte("v.", op) < 0 {
						break
					}
					w.op(op)
				}
				if w.ended == 0 {
					w.op(op)
				}
			}
		}
		if play(1 + r.IntN(60)); w.ended > 0 {
			continue
		}
		w.m.Step(Event{Kind: TakenOver, At: w.at})
		from := len(w.log)
		play(60)
		for _, o := range w.log[from:] {
			if o.acts && o.action.Kind != HangUp {
				w.failf("they talk with somebody else, and action %d follows", o.action.Kind)
			}
		}
	}
}

// A wait for a tool is bridged three times at most, however long it takes.
func TestStillOnItEnds(t *testing.T) {
	m := manners(0)
	w := newWorld(t, m)
	w.pass(2 * time.Second)
	w.thinks()
	w.send(Event{Kind: ToolBegan, Reply: w.live})
	for end := w.at + 2*time.Minute; w.at < end; {
		w.step()
	}
	if moments, still := w.says(Moment), w.says(StillOn); moments != 1 || still != 2 {
		w.failf("in two minutes it said %d times that it takes a moment, and %d times that it is still on it", moments, still)
	}
}

// A handover that is prepared happens, whatever the customer says as it completes: that waits for who takes over.
func TestHandOverIsNotCutOff(t *testing.T) {
	m := manners(0)
	w := newWorld(t, m)
	w.pass(2 * time.Second)
	w.thinks()
	w.send(Event{Kind: Sentence, Reply: w.live, Text: "I am putting you through."})
	w.step()
	handing := w.live
	w.send(Event{Kind: Firm, Reply: handing, Final: true})
	next := m
	next.Initial = "Hello, this is the shop."
	w.send(Event{Kind: Handed, Reply: handing, Manner: &next})
	for range 50 {
		w.at += 20 * time.Millisecond
		w.send(Event{Kind: Voice, Speech: true, Voiced: true, Sure: true, Silences: true})
	}
	w.send(Event{Kind: Text, N: w.unheard[len(w.unheard)-1], Text: "please hold on there"})
	w.send(Event{Kind: Firm, Reply: handing})
	w.think = false
	w.send(Event{Kind: Thought, Reply: handing})
	var ended []ActionKind
	for _, o := range w.log {
		if o.acts && (o.action.Kind == Cut || o.action.Kind == Finish) && o.action.Reply == handing || o.action.Kind == Enter {
			ended = append(ended, o.action.Kind)
		}
	}
	if !slices.Equal(ended, []ActionKind{Finish, Enter}) {
		w.failf("the reply ended with %v, not with its finish and the other's entrance", ended)
	}
}
