package live

import (
	"slices"
	"testing"
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
	s.wrote = s.wrote.Add(time.Hour)
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
	s.lacks(quiet)
	s.Words("Yes.", 0, 80)
	over := s.past.overAt
	s.passes(over.Add(trails - 1))
	if want := []ai.RealtimeKind{ai.RealtimeSound, ai.RealtimeText}; !slices.Equal(kinds(s), want) {
		t.Fatalf("%v, not %v", kinds(s), want)
	}
	if e := s.events[1]; e.N != 1 || e.Text != "Yes." || e.At != 80*time.Millisecond {
		t.Errorf("%+v", e)
	}
	s.passes(over.Add(trails))
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
