package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/provider/openai"
)

func served(t *testing.T) (*aitest.Server, ai.Model) {
	t.Helper()
	s := aitest.NewServer(t)
	c, err := openai.Open(openai.Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return s, c.Model(aitest.ModelName)
}

// The whole way: a turn over HTTP, with tools called at once and one after the other, split into single bytes, on a
// server that is busy at first.
func TestTurnOverTheWire(t *testing.T) {
	s, m := served(t)
	s.Usually(aitest.Behaviour{Cut: 1})
	s.Script(aitest.Behaviour{Status: 429, RetryAfter: "0.01"})
	sink := &tape{t: t}
	history := append(Replay("Früher.", []ToolCall{{Name: "old", Arguments: json.RawMessage(`"{"`),
		Result: "Error: x"}}), user(`call b with {"n":1} and call b with {"n":2} then call b with {"n":3}`)...)
	turn := Turn{Model: m, System: "Sei nett 😀.", Sink: sink, History: history,
		Tools: []Tool{tool("wetter_für_ort", returns("Sonne ☀")), tool("b", returns("ok"))}}
	r, err := turn.Run(t.Context())
	if err != nil || r.Text != "The tool answered: ok" || sink.text.String() != r.Text || len(r.Calls) != 3 {
		t.Errorf("got %+v, %v", r, err)
	}
	if s.Count() != 4 {
		t.Errorf("asked %d times", s.Count())
	}
	again := Turn{Model: m, History: append(append(history, r.Messages...), user("And now 😀?")...)}
	if r, err := again.Run(t.Context()); err != nil || !strings.Contains(r.Text, "And now 😀?") {
		t.Errorf("the messages are no history that a server takes: %+v, %v", r, err)
	}
}

func TestTurnOverABrokenWire(t *testing.T) {
	for _, c := range []struct {
		fault aitest.Fault
		kind  ai.Kind
	}{{aitest.Reset, ai.Interrupted}, {aitest.Failure, ai.Interrupted}, {aitest.Garbage, ai.Malformed}} {
		s, m := served(t)
		s.Script(aitest.Behaviour{Text: "one two three", Fault: c.fault, After: 2})
		r, err := (&Turn{Model: m, History: user("go")}).Run(t.Context())
		if ai.KindOf(err) != c.kind || r.Text != "one two " || !strings.HasPrefix(Sentence(err), "I'm sorry") {
			t.Errorf("%s: got %q, %v", c.fault, r.Text, err)
		}
	}
	s, m := served(t)
	s.Script(aitest.Behaviour{Text: "one two three", Fault: aitest.Stall, After: 1})
	cause := errors.New("hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	sink := &tape{t: t, on: func(string) { cancel(cause) }}
	if r, err := (&Turn{Model: m, Sink: sink, History: user("go")}).Run(ctx); !errors.Is(err, cause) ||
		r.Text != "one " {
		t.Errorf("stalled and cancelled: %q, %v", r.Text, err)
	}
}

// A thousand turns at once, each with tools.
func TestThousandTurns(t *testing.T) {
	_, m := served(t)
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			turn := Turn{Model: m, System: "Be kind.",
				History: user(`call a with {"n":1} then call a with {"n":2}`), Tools: []Tool{tool("a", returns("x"))}}
			if r, err := turn.Run(t.Context()); err != nil || r.Text != "The tool answered: x" || len(r.Calls) != 2 {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
}
