package call_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/internal/auth"
	"parley/internal/call"
	"parley/internal/limit"
	"parley/internal/parley"
)

// asked is a line whose checks wait until they are let go.
type asked struct{ in, out chan struct{} }

func (l asked) Check(ctx context.Context, _ *parley.Trunk) (call.Health, error) {
	l.in <- struct{}{}
	select {
	case <-l.out:
	case <-ctx.Done():
	}
	return call.Health{OptionsMS: 5}, nil
}
func (asked) Registered(int64) bool { return false }
func (asked) Secure() bool          { return false }

// An account has one trunk checked at a time, and so many a minute, over all of its trunks.
func TestTrunkChecks(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		line := asked{make(chan struct{}, 100), make(chan struct{}, 100)}
		d := call.New(call.Config{DB: h.db, Line: line, Gate: limit.New(h.prices.Plan, auth.Rate{})})
		trunk, other := h.trunk("+4930123456"), h.trunk("+4930123457")
		done := make(chan error, 1)
		go func() { _, _, err := d.CheckTrunk(t.Context(), trunk); done <- err }()
		<-line.in
		refused := func(err error, words string) {
			t.Helper()
			var late *parley.LimitError
			if !errors.As(err, &late) || !strings.Contains(late.Detail, words) {
				t.Errorf("refused with %v, want %q", err, words)
			}
		}
		_, _, err := d.CheckTrunk(t.Context(), other)
		refused(err, "An account can have 1 trunk checks at the same time")
		line.out <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		most := parley.LimitNamed(parley.LimitTrunkCheckRate).Most
		n := int64(1)
		for ; n <= 2*most; n++ { // the minute may change once meanwhile
			line.out <- struct{}{}
			if _, _, err = d.CheckTrunk(t.Context(), other); err != nil {
				break
			}
		}
		if n < most {
			t.Errorf("refused after %d", n)
		}
		refused(err, fmt.Sprintf("%d trunk checks per minute", most))
	})
}

// The places of those who make reports are shared: an account with a long backlog has its own share at most, and what
// others need first.
func TestReportShares(t *testing.T) {
	for _, c := range []struct {
		under map[int64]int
		due   []int64
		want  map[int64]int
	}{
		{nil, []int64{1}, map[int64]int{1: 4}},
		{map[int64]int{1: 4}, []int64{1, 2}, map[int64]int{2: 4}},
		{map[int64]int{1: 3}, []int64{1, 2, 3}, map[int64]int{1: 1, 2: 3, 3: 3}},
		{map[int64]int{1: 4, 2: 4}, []int64{1, 2, 3, 4}, map[int64]int{3: 1, 4: 1}},
		{map[int64]int{1: 4, 2: 4, 3: 2}, []int64{4}, nil},
	} {
		got := call.ReportShare(10, 4, c.under, c.due)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("under way %v, due %v: %v, want %v", c.under, c.due, got, c.want)
		}
	}
}
