package limit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/limit"
	"parley/internal/parley"
)

func refused(t *testing.T, err error, words string) {
	t.Helper()
	var late *parley.LimitError
	if !errors.As(err, &late) || late.RetryAfter < 1 || !strings.Contains(late.Detail, words) {
		t.Errorf("refused with %v (%+v), want %q", err, late, words)
	}
}

// Every limit of things at the same time lets in as many as the table or the plan says, for each account, and one more
// when one has left.
func TestEnter(t *testing.T) {
	plan := parley.Plan{ParallelCalls: 3, RequestsTogether: 3, Streams: 3}
	g := limit.New(func(string) parley.Plan { return plan }, auth.Rate{})
	for _, l := range parley.Limits {
		if l.Span != parley.Together || l.Setting != "" {
			continue
		}
		var leave func()
		for range l.Of(plan) {
			out, err := g.Enter(1, "default", l.Name)
			if err != nil {
				t.Fatalf("%s: %v", l.Name, err)
			}
			leave = out
		}
		_, err := g.Enter(1, "default", l.Name)
		refused(t, err, fmt.Sprintf("%d %s at the same time", l.Of(plan), l.What))
		if _, err := g.Enter(2, "default", l.Name); err != nil {
			t.Errorf("%s: another account: %v", l.Name, err)
		}
		leave()
		leave() // once is enough
		if _, err := g.Enter(1, "default", l.Name); err != nil {
			t.Errorf("%s: after one has left: %v", l.Name, err)
		}
		_, err = g.Enter(1, "default", l.Name)
		refused(t, err, l.What)
	}
}

// A live stream carries several pages, and the pages of all of an account's streams are bounded.
func TestFollow(t *testing.T) {
	g := limit.New(func(string) parley.Plan { return parley.Plan{Streams: 3} }, auth.Rate{})
	var leave func()
	for range 3 * limit.PagesPerStream {
		out, err := g.Follow(1, "default")
		if err != nil {
			t.Fatal(err)
		}
		leave = out
	}
	_, err := g.Follow(1, "default")
	refused(t, err, fmt.Sprintf("%d pages kept up to date at the same time", 3*limit.PagesPerStream))
	for _, user := range []int64{2, 1} {
		if _, err := g.Follow(user, "default"); err != nil {
			t.Errorf("%d: %v", user, err)
		}
		leave()
	}
	if _, err := g.Enter(1, "default", parley.LimitStreams); err != nil {
		t.Errorf("pages take the place of streams: %v", err)
	}
}

// An account asks twice as often as a key, and off is off.
func TestAsk(t *testing.T) {
	now := time.Now()
	g := limit.New(nil, auth.Rate{PerSecond: 5, Burst: 10})
	for i := range 20 {
		if err := g.Ask(1, now); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	refused(t, g.Ask(1, now), "10 requests per second (20 in a burst)")
	if err := g.Ask(2, now); err != nil {
		t.Errorf("another account: %v", err)
	}
	if err := g.Ask(1, now.Add(100*time.Millisecond)); err != nil {
		t.Errorf("a tenth of a second later: %v", err)
	}
	off := limit.New(nil, auth.Rate{})
	for range 10_000 {
		if err := off.Ask(1, now); err != nil {
			t.Fatal(err)
		}
	}
}
