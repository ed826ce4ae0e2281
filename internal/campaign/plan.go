package campaign

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// State is what a running campaign's next calls depend on.
type State struct {
	ID, User int64
	Hours    Hours
	Limit    int       // its calls at once, as its user and the plan want it
	Live     int       // its calls, those that are about to begin counted
	Account  int       // its user's calls at once, by the plan
	Paused   time.Time // no calls before then
	Probing  bool      // the last calls failed: one at a time
	Broke    bool      // its user has no money left
	Due      time.Time // when the first of its leads may be called; zero when none waits
	Left     bool      // leads wait or are being called
	Ends     bool      // it completes when none is left
}

// Step is what is to be done about a campaign now.
type Step struct {
	*State
	Calls    int       // to begin
	Complete bool      // no lead is left
	Broke    bool      // it would call, and its user can't pay
	Again    time.Time // when to look again though nothing has happened; zero for never
}

// Plan decides what running campaigns do now. live is how many calls each user has of whatever kind, those that are
// about to begin counted; room is how many calls may begin altogether. Where room is short, those who have the fewest
// calls are served first, so that nobody's long list holds up another's short one. Plan has no clock, reads nothing
// and changes nothing but live, which counts what it grants.
func Plan(now time.Time, list []State, live map[int64]int, room int) []Step {
	steps := make([]Step, len(list))
	queue := map[int64]*turn{}
	for i := range list {
		s := &steps[i]
		s.State = &list[i]
		n := s.look(now)
		if n == 0 {
			continue
		}
		t := queue[s.User]
		if t == nil {
			t = &turn{user: s.User, live: live[s.User], most: s.Account}
			queue[s.User] = t
		}
		t.wants = append(t.wants, want{s, n})
	}
	turns := make(turns, 0, len(queue))
	for _, t := range queue {
		turns = append(turns, t)
	}
	heap.Init(&turns)
	for ; room > 0 && len(turns) > 0; room-- {
		t := turns[0]
		if t.grant() {
			live[t.user] = t.live
			heap.Fix(&turns, 0)
		} else {
			heap.Pop(&turns)
			room++
		}
	}
	return steps
}

// look says how many calls the campaign could begin now if it were alone, and notes when it is worth looking again.
func (s *Step) look(now time.Time) int {
	if !s.Left {
		s.Complete = s.Ends
		return 0
	}
	at := now
	for _, t := range []time.Time{s.Paused, s.Due} {
		if t.After(at) {
			at = t
		}
	}
	if s.Due.IsZero() {
		return 0 // the end of a call will tell
	}
	if open := s.Hours.Open(at); !open || at.After(now) {
		if s.Again = at; !open {
			s.Again = s.Hours.Next(at)
		}
		return 0
	}
	limit := s.Limit
	if s.Probing {
		limit = 1
	}
	n := max(0, limit-s.Live)
	if n > 0 && s.State.Broke {
		s.Broke = true
		return 0
	}
	return n
}

// turn is a user whose campaigns could call.
type turn struct {
	user       int64
	live, most int
	wants      []want
}

type want struct {
	step *Step
	n    int // calls that it could begin
}

// grant gives the user's campaign that has the fewest calls one more, and says whether there was one to be given.
func (t *turn) grant() bool {
	if t.live >= t.most || len(t.wants) == 0 {
		return false
	}
	least := slices.IndexFunc(t.wants, func(w want) bool { return w.n > 0 })
	if least < 0 {
		return false
	}
	load := func(w want) int { return w.step.Live + w.step.Calls }
	for i, w := range t.wants {
		if w.n > 0 && load(w) < load(t.wants[least]) {
			least = i
		}
	}
	w := &t.wants[least]
	w.step.Calls++
	w.n--
	t.live++
	return true
}

// turns are users, those with the fewest calls first.
type turns []*turn

func (l turns) Len() int { return len(l) }
func (l turns) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].live, l[j].live), cmp.Compare(l[i].user, l[j].user)) < 0
}
func (l turns) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *turns) Push(t any)   { *l = append(*l, t.(*turn)) }
func (l *turns) Pop() any {
	old := *l
	t := old[len(old)-1]
	*l = old[:len(old)-1]
	return t
}
