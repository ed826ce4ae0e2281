package campaign

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// ready is a campaign that could start as many calls as it may have.
func ready(id, user int64, change func(*State)) State {
	s := State{ID: id, User: user, Hours: hours("UTC", "09:00", "17:00"), Limit: 3, Account: 10,
		Due: noon.Add(-time.Hour), Left: true, Ends: true}
	if change != nil {
		change(&s)
	}
	return s
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestPlan(t *testing.T) {
	night := noon.Add(10 * time.Hour)
	for _, c := range []struct {
		name   string
		change func(*State)
		now    time.Time
		live   int // of its user
		want   Step
	}{
		{"as many as it may have", nil, noon, 0, Step{Calls: 3}},
		{"less those that are live", func(s *State) { s.Live = 2 }, noon, 2, Step{Calls: 1}},
		{"more than it may have are live", func(s *State) { s.Live = 5 }, noon, 5, Step{}},
		{"the plan's bound, other calls counted", nil, noon, 9, Step{Calls: 1}},
		{"the plan is full", nil, noon, 10, Step{}},
		{"outside of the hours", nil, night, 0, Step{Again: noon.Add(21 * time.Hour)}},
		{"no hours ever", func(s *State) { s.Hours = Hours{zone: time.UTC} }, noon, 0, Step{}},
		{"the first lead is due later", func(s *State) { s.Due = noon.Add(time.Minute) }, noon, 0,
			Step{Again: noon.Add(time.Minute)}},
		{"due later, and then it is closed", func(s *State) { s.Due = noon.Add(8 * time.Hour) }, noon, 0,
			Step{Again: noon.Add(21 * time.Hour)}},
		{"all leads are being called", func(s *State) { s.Due, s.Live = time.Time{}, 1 }, noon, 1, Step{}},
		{"paused", func(s *State) { s.Paused = noon.Add(time.Minute) }, noon, 0, Step{Again: noon.Add(time.Minute)}},
		{"the pause is over", func(s *State) { s.Paused = noon }, noon, 0, Step{Calls: 3}},
		{"one call tries the line", func(s *State) { s.Probing = true }, noon, 0, Step{Calls: 1}},
		{"it is being tried", func(s *State) { s.Probing, s.Live = true, 1 }, noon, 1, Step{}},
		{"no money", func(s *State) { s.Broke = true }, noon, 0, Step{Broke: true}},
		{"no money, and nothing to pay for", func(s *State) { s.Broke, s.Live = true, 3 }, noon, 3, Step{}},
		{"no lead is left", func(s *State) { s.Left, s.Due = false, time.Time{} }, noon, 0, Step{Complete: true}},
		{"no lead is left at night, in a pause", func(s *State) {
			s.Left, s.Due, s.Paused = false, time.Time{},
				noon.Add(time.Hour)
		}, night, 0, Step{Complete: true}},
		{"no lead is left, and it goes on", func(s *State) { s.Left, s.Ends, s.Due = false, false, time.Time{} },
			noon, 0, Step{}},
	} {
		list := []State{ready(1, 1, c.change)}
		got := Plan(c.now, list, map[int64]int{1: c.live}, math.MaxInt)[0]
		if got.State != &list[0] || got.Calls != c.want.Calls || got.Complete != c.want.Complete ||
			got.Broke != c.want.Broke || !got.Again.Equal(c.want.Again) {
			t.Errorf("%s: %d calls, complete %v, broke %v, again %s; want %+v", c.name, got.Calls, got.Complete,
				got.Broke, got.Again, c.want)
		}
	}
}

// When room is short, the user with the fewest calls is served first, however long the others' lists are.
func TestPlanIsFair(t *testing.T) {
	list := []State{ready(1, 1, func(s *State) { s.Limit, s.Live = 10, 4 }),
		ready(2, 1, func(s *State) { s.Limit = 10 }), ready(3, 2, func(s *State) { s.Limit = 2 }),
		ready(4, 3, func(s *State) { s.Limit = 10 })}
	calls := func(room int) (n []int) {
		for _, s := range Plan(noon, list, map[int64]int{1: 4}, room) {
			n = append(n, s.Calls)
		}
		return n
	}
	for _, c := range []struct {
		room int
		want []int
	}{
		{0, []int{0, 0, 0, 0}},
		{1, []int{0, 0, 1, 0}},
		{4, []int{0, 0, 2, 2}},    // the user with four calls has to wait
		{6, []int{0, 0, 2, 4}},    //
		{9, []int{0, 2, 2, 5}},    // and then has its turn, starting with the campaign that has fewer calls
		{100, []int{1, 5, 2, 10}}, // up to the plan's ten
	} {
		if got := calls(c.room); !slices.Equal(got, c.want) {
			t.Errorf("room for %d: %v, want %v", c.room, got, c.want)
		}
	}
}

// In every combination no limit is exceeded, and no usable room is left.
func TestPlanKeepsBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		live, list := map[int64]int{}, []State{}
		for i := range r.IntN(12) {
			s := ready(int64(i), int64(r.IntN(4)), func(s *State) {
				s.Limit, s.Live, s.Account, s.Probing, s.Broke = 1+r.IntN(10), r.IntN(6), 10, r.IntN(5) == 0,
					r.IntN(9) == 0
			})
			live[s.User] += s.Live
			list = append(list, s)
		}
		before := map[int64]int{}
		for u, n := range live {
			before[u] = n
		}
		room := r.IntN(30)
		granted, used := map[int64]int{}, 0
		steps := Plan(noon, list, live, room)
		for _, s := range steps {
			granted[s.User] += s.Calls
			used += s.Calls
			limit := s.Limit
			if s.Probing {
				limit = 1
			}
			if s.Calls > 0 && (s.Live+s.Calls > limit || s.State.Broke) {
				t.Fatalf("%+v is granted %d", *s.State, s.Calls)
			}
		}
		for u, n := range granted {
			if n > 0 && before[u]+n > 10 || live[u] != before[u]+n {
				t.Fatalf("user %d has %d calls and is granted %d; counted are %d", u, before[u], n, live[u])
			}
		}
		if used > room {
			t.Fatalf("%d calls in room for %d", used, room)
		}
		for _, s := range steps {
			limit := s.Limit
			if s.Probing {
				limit = 1
			}
			if used < room && !s.State.Broke && s.Live+s.Calls < limit && live[s.User] < 10 {
				t.Fatalf("%+v could have had more than %d", *s.State, s.Calls)
			}
		}
	}
}

func BenchmarkPlan1000(b *testing.B) {
	list := make([]State, 1000)
	for i := range list {
		list[i] = ready(int64(i), int64(i/10), nil)
	}
	for b.Loop() {
		Plan(noon, list, map[int64]int{}, 10_000)
	}
}
