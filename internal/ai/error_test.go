package ai

import (
	"errors"
	"fmt"
	"testing"
)

func TestRetry(t *testing.T) {
	safe := map[Kind]bool{RateLimited: true, Overloaded: true, Unreachable: true}
	for _, k := range []Kind{RateLimited, Overloaded, Unreachable, Interrupted, Stalled, Malformed, Config, TooLong, Refused} {
		e := &Error{Kind: k, Err: errors.New("x")}
		if e.Retry() != safe[k] {
			t.Errorf("%s: retry %v", k, e.Retry())
		}
		if wrapped := fmt.Errorf("think: %w", e); KindOf(wrapped) != k || !errors.Is(wrapped, e.Err) {
			t.Errorf("%s is lost in %v", k, wrapped)
		}
	}
	if KindOf(errors.New("x")) != "" || KindOf(nil) != "" {
		t.Error("a kind out of nothing")
	}
}

func TestUsage(t *testing.T) {
	u := Usage{1, 2}
	u.Add(Usage{10, 20})
	if u != (Usage{11, 22}) {
		t.Errorf("got %+v", u)
	}
}
