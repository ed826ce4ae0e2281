package parley_test

import (
	"testing"

	"parley/internal/parley"
)

func TestLinesFree(t *testing.T) {
	queue := []parley.Waiter{{ID: 5, NumberID: 1}, {ID: 6, NumberID: 2}, {ID: 7, NumberID: 1}}
	for name, c := range map[string]struct {
		lines parley.Lines
		plan  int
		who   parley.Waiter
		free  bool
	}{
		"nobody":     {parley.Lines{}, 1, parley.Waiter{}, true},
		"taken":      {parley.Lines{Taken: map[int64]int{0: 1}}, 1, parley.Waiter{NumberID: 1}, false},
		"one of two": {parley.Lines{Taken: map[int64]int{1: 1}}, 2, parley.Waiter{NumberID: 1}, true},
		"the number's own limit": {parley.Lines{Taken: map[int64]int{1: 1}, Most: map[int64]int{1: 1}}, 2,
			parley.Waiter{NumberID: 1}, false},
		"another number's limit": {parley.Lines{Taken: map[int64]int{1: 1}, Most: map[int64]int{1: 1}}, 2,
			parley.Waiter{NumberID: 2}, true},
		"who waits goes first":           {parley.Lines{Queue: queue[:1]}, 1, parley.Waiter{NumberID: 2}, false},
		"the first who waits":            {parley.Lines{Queue: queue}, 1, queue[0], true},
		"the second, with one line":      {parley.Lines{Queue: queue}, 1, queue[1], false},
		"the second, with two":           {parley.Lines{Queue: queue}, 2, queue[1], true},
		"nobody waits for a full number": {parley.Lines{Taken: map[int64]int{1: 1}, Queue: queue, Most: map[int64]int{1: 1}}, 2, queue[1], true},
		"who does is not held up by them": {parley.Lines{Taken: map[int64]int{1: 1}, Queue: queue[:1], Most: map[int64]int{1: 1}}, 2,
			parley.Waiter{}, true},
		"but waits all the same": {parley.Lines{Taken: map[int64]int{1: 1}, Queue: queue, Most: map[int64]int{1: 1}}, 9, queue[2], false},
	} {
		if got := c.lines.Free(c.plan, c.who); got != c.free {
			t.Errorf("%s: %v", name, got)
		}
	}
	l := parley.Lines{Queue: queue}
	for i, want := range []int{1, 1, 2} {
		if got := l.Position(queue[i]); got != want {
			t.Errorf("call %d is number %d", queue[i].ID, got)
		}
	}
}

// Whatever a route says, nothing is tried twice, and every route ends.
func TestRouteSteps(t *testing.T) {
	steps := []parley.RouteStep{"refuse", "words", "assistant", "telephone", "voicemail", "queue"}
	for _, first := range steps {
		for _, unanswered := range steps {
			for _, full := range steps {
				for _, after := range steps {
					for _, open := range []bool{true, false} {
						r := parley.NumberRoute{Otherwise: first, Unanswered: unanswered, WhenFull: full, AfterQueue: after, RingFirst: open}
						done := []parley.RouteStep{r.First(open)}
						for done[len(done)-1] != parley.RouteWords && len(done) < 10 {
							done = append(done, r.Next(open, done...))
						}
						if len(done) > 6 {
							t.Fatalf("%+v goes on: %v", r, done)
						}
					}
				}
			}
		}
	}
	r := parley.NumberRoute{RingFirst: true, Unanswered: "voicemail", WhenFull: "queue", AfterQueue: "voicemail"}
	for _, c := range []struct {
		open bool
		done []parley.RouteStep
		next parley.RouteStep
	}{
		{true, []parley.RouteStep{"telephone"}, "assistant"},
		{true, []parley.RouteStep{"telephone", "assistant"}, "queue"},
		{true, []parley.RouteStep{"telephone", "assistant", "queue"}, "voicemail"},
		{false, []parley.RouteStep{"telephone"}, "voicemail"},
		{true, []parley.RouteStep{"assistant", "queue", "voicemail"}, "words"},
	} {
		if got := r.Next(c.open, c.done...); got != c.next {
			t.Errorf("after %v comes %s, not %s", c.done, got, c.next)
		}
	}
}
