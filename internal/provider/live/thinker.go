package live

import (
	"maps"
	"slices"
	"time"

	"parley/internal/ai"
)

// thinker is what is known of the text model to which a model that decides delegates thinking and tools.
type thinker struct {
	running int                      // of its responses
	resumed bool                     // it was asked to go on, and has not begun to
	heardOf time.Time                // the latest
	pending map[string][]ai.ToolCall // calls of responses that are not complete, by the task for which they are
	open    map[string]*speech       // the speeches with the calls whose results are waited for
	owed    bool                     // it was told results since it was last asked to go on
}

// lost is how long nothing is heard of a thinker until it counts as gone.
const lost = time.Minute

// Thinks notes that something was heard of the thinker; begins says that it was a response that begins. The lock is held.
func (s *Decided) Thinks(begins bool) {
	t := &s.thinker
	if t.heardOf = time.Now(); begins {
		t.running, t.resumed = t.running+1, false
	}
}

// Calls takes a call of a response of the thinker's, which may still fail. The lock is held.
func (s *Decided) Calls(task string, c ai.ToolCall) {
	if t := &s.thinker; t.running > 0 {
		t.pending[task] = append(t.pending[task], c)
	}
}

// Thought ends a response of the thinker's. Its calls count as a response of their own, beside what the model says meanwhile; those of one
// that failed are void. The lock is held.
func (s *Decided) Thought(task string, well bool) {
	t := &s.thinker
	if t.running == 0 {
		return
	}
	t.running--
	calls := t.pending[task]
	if delete(t.pending, task); !well || len(calls) == 0 {
		s.goOn()
		return
	}
	p := s.begin()
	for _, c := range calls {
		t.open[c.ID] = p
		s.say(&p.reply, ai.RealtimeEvent{Kind: ai.RealtimeCall, Call: &c})
	}
	s.finish(&p.reply, nil)
}

// busy reports whether the thinker has something to do, or waits for a tool. The lock is held.
func (s *Decided) busy() bool {
	return s.thinker.running > 0 || s.thinker.resumed || len(s.thinker.open) > 0
}

// goOn asks the thinker to go on once it has all results, and none of its responses is under way. The lock is held.
func (s *Decided) goOn() {
	if t := &s.thinker; t.owed && len(t.open) == 0 && t.running == 0 {
		t.owed, t.resumed, t.heardOf = false, true, time.Now()
		s.vendor.GoOn()
	}
}

// awake gives up a thinker of which nothing was heard for long. The lock is held.
func (s *Decided) awake(now time.Time) {
	if t := &s.thinker; (t.running > 0 || t.resumed) && now.Sub(t.heardOf) >= lost {
		t.running, t.resumed = 0, false
		clear(t.pending)
		s.goOn()
	}
}

// Result implements ai.RealtimeSession. The thinker goes on once it has all results.
func (s *Decided) Result(callID, result string) {
	s.Lock()
	defer s.Unlock()
	if s.thinker.open[callID] == nil {
		s.vendor.Note(resultOf(ai.ToolCall{}, result))
		return
	}
	s.answer(callID, result)
}

func (s *Decided) answer(callID, result string) {
	delete(s.thinker.open, callID)
	s.vendor.Answer(callID, result)
	s.thinker.owed = true
	s.goOn()
}

// void answers the calls of those speeches that nobody hears, and says why there are no results. The lock is held.
func (s *Decided) void(of func(*speech) bool, why string) {
	for _, id := range slices.Sorted(maps.Keys(s.thinker.open)) {
		if of(s.thinker.open[id]) {
			s.answer(id, why)
		}
	}
}
