package resttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// Open makes a model of a new server, which counts as gone when it sends nothing for stall.
type Open func(t *testing.T, stall time.Duration) (*Server, ai.Model)

// Ask is a request that every model accepts.
func Ask(text string) ai.Request {
	return ai.Request{System: "Be kind.", Messages: []ai.Message{{Role: ai.User, Text: text}}}
}

// Ignore is a yield that accepts everything.
func Ignore(ai.Delta) error { return nil }

// Conform checks what must hold for every text vendor beyond aitest.Conform: how its servers fail. A failure before
// anything was seen is retried if that may help; the rest are reported at once.
func Conform(t *testing.T, open Open) {
	t.Run("torn apart", func(t *testing.T) {
		for _, cut := range []int{1, 3, 7} { // bytes of a TCP segment: runes and lines are torn
			t.Run(fmt.Sprint(cut), func(t *testing.T) {
				s, m := open(t, 0)
				s.Usually(aitest.Behaviour{Cut: cut})
				aitest.Conform(t, m)
			})
		}
	})
	t.Run("failures", func(t *testing.T) { failures(t, open) })
	t.Run("a call and its text", func(t *testing.T) { calls(t, open) })
	t.Run("stall", func(t *testing.T) { stalls(t, open) })
	t.Run("nobody there", func(t *testing.T) {
		s, m := open(t, 0)
		s.Close()
		if _, err := m.Generate(t.Context(), Ask("x"), Ignore); ai.KindOf(err) != ai.Unreachable {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing is left running", func(t *testing.T) { leaves(t, open) })
}

func failures(t *testing.T, open Open) {
	ok := aitest.Behaviour{Text: "Fine."}
	call := []ai.ToolCall{{ID: "1", Name: "n", Arguments: `{"a":1}`}}
	for _, c := range []struct {
		name   string
		script []aitest.Behaviour
		want   ai.Kind // "" when it succeeds in the end
		asked  int
		text   string
	}{
		{"429 then well", []aitest.Behaviour{{Status: 429, RetryAfter: "0.01"}, ok}, "", 2, "Fine."},
		{"429 three times", []aitest.Behaviour{{Status: 429}, {Status: 429}, {Status: 429}}, ai.RateLimited, 3, ""},
		{"429 for a minute", []aitest.Behaviour{{Status: 429, RetryAfter: "60"}}, ai.RateLimited, 1, ""},
		{"429 until a date", []aitest.Behaviour{{Status: 429,
			RetryAfter: time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}, ai.RateLimited, 1, ""},
		{"500 then well", []aitest.Behaviour{{Status: 500}, {Status: 503}, ok}, "", 3, "Fine."},
		{"502 of a proxy", []aitest.Behaviour{{Status: 502, Raw: "<html>Bad Gateway</html>"},
			{Status: 502, Raw: "<html>"}, {Status: 502, Raw: "{\"error\":\"gone\"}"}}, ai.Overloaded, 3, ""},
		{"400", []aitest.Behaviour{{Status: 400, Message: "bad"}}, ai.Config, 1, ""},
		{"413", []aitest.Behaviour{{Status: 413}}, ai.TooLong, 1, ""},
		{"reset before anything", []aitest.Behaviour{{Fault: aitest.Reset}, ok}, "", 2, "Fine."},
		{"reset in the middle", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Reset, After: 2}}, ai.Interrupted,
			1, "a b "},
		{"500 in a stream before anything", []aitest.Behaviour{{Fault: aitest.Failure}, ok}, "", 2, "Fine."},
		{"500 in mid-stream", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Failure, After: 1}}, ai.Interrupted,
			1, "a "},
		{"cut off", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Cutoff, After: 2}}, ai.Interrupted, 1, "a b "},
		{"cut off at once", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Cutoff}}, ai.Malformed, 1, ""},
		{"garbage", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Garbage, After: 1}}, ai.Malformed, 1, "a "},
		{"garbage at once", []aitest.Behaviour{{Fault: aitest.Garbage}}, ai.Malformed, 1, ""},
		{"endless", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Endless, After: 1}}, ai.Malformed, 1, "a "},
		{"no stream", []aitest.Behaviour{{Status: 200, Raw: `{"text":"whole"}`}}, ai.Malformed, 1, ""},
		{"call cut off, then well", []aitest.Behaviour{{Calls: call, Fault: aitest.Reset}, ok}, "", 2, "Fine."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, m := open(t, 0)
			s.Script(c.script...)
			var text strings.Builder
			r, err := m.Generate(t.Context(), Ask("x"),
				func(d ai.Delta) error { text.WriteString(d.Text); return nil })
			if ai.KindOf(err) != c.want || (err != nil) != (c.want != "") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if s.Count() != c.asked || text.String() != c.text || r.Text != c.text {
				t.Errorf("asked %d times (want %d), yielded %q, reply %q (want %q)", s.Count(), c.asked,
					text.String(), r.Text, c.text)
			}
		})
	}
}

func calls(t *testing.T, open Open) {
	s, m := open(t, 0)
	s.Script(aitest.Behaviour{Text: "Let me see. ", Cut: 2, Calls: []ai.ToolCall{
		{ID: "c1", Name: "weather", Arguments: `{"city":"Zürich"}`}, {ID: "c2", Name: "time", Arguments: `{}`}}})
	req := Ask("go")
	req.Tools = []ai.Tool{{Name: "weather"}, {Name: "time"}}
	r, err := m.Generate(t.Context(), req, Ignore)
	if err != nil || r.Text != "Let me see. " || len(r.Calls) != 2 || r.Finish != ai.ToolCalls {
		t.Fatalf("got %+v, %v", r, err)
	}
	for i, want := range []string{`weather {"city":"Zürich"}`, `time {}`} {
		if c := r.Calls[i]; c.Name+" "+c.Arguments != want || c.ID == "" {
			t.Errorf("call %d is %+v, want %s", i, c, want)
		}
	}
}

func stalls(t *testing.T, open Open) {
	for _, after := range []int{0, 1} {
		s, m := open(t, time.Second)
		s.Script(aitest.Behaviour{Text: "one two", Fault: aitest.Stall, After: after})
		r, err := m.Generate(t.Context(), Ask("x"), Ignore)
		if ai.KindOf(err) != ai.Stalled || r.Text != "one "[:4*after] || s.Count() != 1 {
			t.Errorf("after %d: got %q, %v, asked %d times", after, r.Text, err, s.Count())
		}
	}
}

func leaves(t *testing.T, open Open) {
	s, m := open(t, 0)
	for range 20 {
		s.Script(aitest.Behaviour{Text: "one two three", Fault: aitest.Stall, After: 1})
		cause := errors.New("hung up")
		ctx, cancel := context.WithCancelCause(t.Context())
		r, err := m.Generate(ctx, Ask("x"), func(ai.Delta) error { cancel(cause); return nil })
		if !errors.Is(err, cause) || r.Text != "one " {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	s.Close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		buf := make([]byte, 1<<20)
		all := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(all, "net/http.(*persistConn)") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("connections are left:\n%s", all)
		}
		runtime.Gosched()
	}
}
