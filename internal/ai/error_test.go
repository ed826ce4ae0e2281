package ai

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRetry(t *testing.T) {
	safe := map[Kind]bool{RateLimited: true, Overloaded: true, Unreachable: true}
	for _, k := range []Kind{RateLimited, Overloaded, Unreachable, Interrupted, Stalled, Malformed, Config, TooLong,
		Refused} {
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

func TestErrorNamesItsPart(t *testing.T) {
	cause := errors.New("no route to host")
	plain := &Error{Kind: Unreachable, RetryAfter: 1, Err: cause}
	wrapped := fmt.Errorf("say it: %w", plain)
	for want, err := range map[string]error{
		"vendor unreachable: no route to host":     plain,
		"model unreachable: no route to host":      TheModel.Of(plain),
		"voice unreachable: no route to host":      TheVoice.Of(plain),
		"recognizer unreachable: no route to host": TheRecognizer.Of(plain),
		"embedder unreachable: no route to host":   TheVoice.Of(TheEmbedder.Of(plain)), // the error says already which part failed
		"voice overloaded: no route to host":       &Error{Part: TheVoice, Kind: Overloaded, Err: cause},
		"no route to host":                         TheVoice.Of(cause),
		wrapped.Error():                            TheVoice.Of(wrapped),
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
		if !errors.Is(err, cause) {
			t.Errorf("the cause is lost in %q", err)
		}
	}
	if named := TheVoice.Of(plain); KindOf(named) != Unreachable || !errors.Is(named, plain) || plain.Part != "" {
		t.Errorf("%+v of %+v", named, plain)
	}
	if TheVoice.Of(nil) != nil {
		t.Error("an error out of nothing")
	}
}

func TestUsage(t *testing.T) {
	u := Usage{1, 2, 3, 4}
	u.Add(Usage{10, 20, 30, 40})
	if u != (Usage{11, 22, 33, 44}) {
		t.Errorf("got %+v", u)
	}
}

// An assistant's owner is told which part failed and what can be done, and nothing of the vendor's own words.
func TestErrorExplained(t *testing.T) {
	for _, k := range []Kind{RateLimited, Overloaded, Unreachable, Interrupted, Stalled, Malformed, Config, TooLong,
		Refused, "new"} {
		e := TheVoice.Of(&Error{Kind: k, Err: errors.New("sk-secret at 10.0.0.1")}).(*Error)
		text := e.Explain()
		if !strings.HasPrefix(text, "The voice failed: ") || strings.Contains(text, "secret") ||
			strings.Contains(text, "10.0") || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", k, text)
		}
		if mends[k] == "" && k != "new" {
			t.Errorf("nothing mends %s", k)
		}
	}
	if text := (&Error{Kind: Config, Err: errors.New("no"),
		Mend: "Choose another."}).Explain(); text != "Choose another." {
		t.Error(text)
	}
}
