package live

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// decider notes what a session has it do.
type decider struct{ did []string }

func (d *decider) Take([]byte) error        { return nil }
func (d *decider) Note(text string)         { d.did = append(d.did, "note "+text) }
func (d *decider) Prompt(text string)       { d.did = append(d.did, "prompt "+text) }
func (d *decider) Answer(id, result string) { d.did = append(d.did, "answer "+id+" "+result) }
func (d *decider) GoOn()                    { d.did = append(d.did, "go on") }

// decided is a session without a connection, whose line is not silent.
func decided(t *testing.T) (*Decided, *decider) {
	d := &decider{}
	s := NewDecided(t.Context(), d, audio.Wide, nil)
	s.wrote = time.Now().Add(time.Hour)
	return s, d
}

func kinds(s *Decided) (list []ai.RealtimeKind) {
	for _, e := range s.events {
		list = append(list, e.Kind)
	}
	return list
}

var tone = slices.Repeat([]int16{1000}, 1600)

// The text of a speech may come after its sound; it is told before the speech is done, with the time at which it has been said.
func TestTextAfterSound(t *testing.T) {
	s, _ := decided(t)
	s.Respond(1, "", false)
	s.Sound(0, tone)
	s.lacks(endSilenceMS)
	s.Words("Yes.", 0, 80)
	over := s.past.overAt
	s.passes(over.Add(textAfterSound - 1))
	if want := []ai.RealtimeKind{ai.RealtimeSound, ai.RealtimeText}; !slices.Equal(kinds(s), want) {
		t.Fatalf("%v, not %v", kinds(s), want)
	}
	if e := s.events[1]; e.N != 1 || e.Text != "Yes." || e.At != 80*time.Millisecond {
		t.Errorf("%+v", e)
	}
	s.passes(over.Add(textAfterSound))
	if e := s.events[len(s.events)-1]; e.Kind != ai.RealtimeDone || e.N != 1 {
		t.Errorf("%+v", e)
	}
}

// The calls of two tasks that overlap stay apart, and a result that comes while the thinker thinks is thought about afterwards.
func TestDelegations(t *testing.T) {
	s, d := decided(t)
	for range 3 {
		s.Thinks(true)
	}
	s.Calls("a", ai.ToolCall{ID: "1", Name: "price"})
	s.Calls("b", ai.ToolCall{ID: "2", Name: "price"})
	s.Thought("b", false)
	s.Thought("a", true)
	if open := s.thinker.open; len(open) != 1 || open["1"] == nil || s.thinker.running != 1 {
		t.Errorf("calls %v, %d responses", open, s.thinker.running)
	}
	if s.Result("1", "3 EUR"); !slices.Equal(d.did, []string{"answer 1 3 EUR"}) {
		t.Errorf("while the thinker thinks: %v", d.did)
	}
	if s.Thought("c", true); !slices.Equal(d.did, []string{"answer 1 3 EUR", "go on"}) || !s.busy() {
		t.Errorf("afterwards: %v", d.did)
	}
}

// A thinker of which nothing is heard for a minute counts as gone: what was asked for is not owed any longer.
func TestSilentThinker(t *testing.T) {
	s, _ := decided(t)
	s.Respond(1, "", false)
	s.Thinks(true)
	now := s.thinker.heardOf
	if s.passes(now.Add(lost - time.Second)); len(s.waiting) != 1 {
		t.Error("it isn't waited for")
	}
	if s.passes(now.Add(lost)); len(s.waiting) != 0 || s.events[0].N != 1 || ai.KindOf(s.events[0].Err) != ai.Stalled {
		t.Errorf("%+v", s.waiting)
	}
}

// A model that hesitates is asked to speak after four seconds, and twelve later counts as silent.
func TestHesitates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := decided(t)
		s.End()
		s.Respond(1, "", false)
		for _, o := range []struct {
			after             time.Duration
			prompted, stalled bool
		}{{promptAfter - 1, false, false}, {1, true, false}, {stalledAfter - 1, true, false}, {1, true, true}} {
			time.Sleep(o.after)
			s.passes(time.Now())
			stalled := slices.ContainsFunc(s.events, func(e *ai.RealtimeEvent) bool { return ai.KindOf(e.Err) == ai.Stalled && e.N == 1 })
			if len(d.did) > 0 != o.prompted || stalled != o.stalled || (len(s.waiting) == 0) != o.stalled {
				t.Errorf("after %v more: %v, stalled %t", o.after, d.did, stalled)
			}
		}
	})
}

// What the model says by itself waits five seconds for somebody to ask for it. Then it is told that it wasn't heard, and the rest of it is
// nobody's.
func TestUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := decided(t)
		s.Sound(0, tone)
		time.Sleep(unaskedAfter - 1)
		if s.passes(time.Now()); len(d.did) > 0 || !slices.Equal(kinds(s), []ai.RealtimeKind{ai.RealtimeBegan}) {
			t.Errorf("too early: %v, %v", d.did, kinds(s))
		}
		time.Sleep(time.Nanosecond)
		if s.passes(time.Now()); !slices.Equal(d.did, []string{"note What you said just now was not heard"}) || len(s.events) > 0 {
			t.Errorf("%v, %v", d.did, kinds(s))
		}
		if s.Respond(1, "", false); len(s.events) > 0 {
			t.Errorf("%v", kinds(s))
		}
	})
}

// The line is never silent to a model whose time is that of what it hears.
func TestSoundNeverStops(t *testing.T) {
	s, _ := decided(t)
	now := time.Now()
	s.wrote = time.Time{} // nobody has spoken since the session was served
	s.passes(now)
	if s.passes(now.Add(sendSilenceAfter - 1)); s.heardMS != 0 {
		t.Errorf("%d ms were heard too early", s.heardMS)
	}
	if s.passes(now.Add(3 * sendSilenceAfter)); s.heardMS != 300 || !s.Box.Unsent() {
		t.Errorf("%d ms were heard", s.heardMS)
	}
}

// Silence that the server sends or leaves out ends a speech after 800 ms, and after 200 ms if the customer has said something over it.
func TestSpeechEnds(t *testing.T) {
	for _, o := range []struct {
		quietMS int
		spoke   bool
		want    int // responses that the next sound is of
	}{{endSilenceMS - 1, false, 1}, {endSilenceMS, false, 2}, {interruptedSilenceMS - 1, true, 1}, {interruptedSilenceMS, true, 2}} {
		for _, left := range []bool{false, true} {
			s, _ := decided(t)
			s.Respond(1, "", false)
			s.Respond(2, "Go on.", false)
			s.Sound(0, tone)
			s.customerSpoke = o.spoke
			if left {
				s.came = s.came.Add(-time.Second)
				s.Sound(100+o.quietMS, tone)
			} else {
				s.Sound(100, make([]int16, 16*o.quietMS))
				s.Sound(100+o.quietMS, tone)
			}
			last := s.events[len(s.events)-1]
			if last.Kind != ai.RealtimeSound || last.N != o.want {
				t.Errorf("%+v, left out %t: sound of response %d", o, left, last.N)
			}
		}
	}
}
