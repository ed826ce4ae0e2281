package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
)

// tape is a Sink that records its calls.
type tape struct {
	busy   sync.Mutex // held during each call: there are never two at a time
	t      *testing.T
	text   strings.Builder
	events []string
	on     func(text string)
}

func (p *tape) note(s string) {
	if !p.busy.TryLock() {
		p.t.Error("the sink is told two things at a time")
		return
	}
	defer p.busy.Unlock()
	p.events = append(p.events, s)
}

func (p *tape) Text(s string) {
	p.note("text")
	p.text.WriteString(s)
	if p.on != nil {
		p.on(s)
	}
}
func (p *tape) ToolStarted(c ToolCall)  { p.note("started " + c.Name) }
func (p *tape) ToolFinished(c ToolCall) { p.note("finished " + c.Name + " " + c.Result) }

func user(text string) []ai.Message { return []ai.Message{{Role: ai.User, Text: text}} }

var params = json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"},"b":{"type":"boolean"},"i":{"type":"integer"}},"required":["n"]}`)

func tool(name string, run func(ctx context.Context, args json.RawMessage) (string, error)) Tool {
	return Tool{Tool: ai.Tool{Name: name, Description: "does " + name, Schema: params}, Run: run}
}

func returns(s string) func(context.Context, json.RawMessage) (string, error) {
	return func(context.Context, json.RawMessage) (string, error) { return s, nil }
}

func TestTurnAnswers(t *testing.T) {
	m, sink := &aitest.Fake{}, &tape{t: t}
	half := 0.5
	turn := Turn{Model: m, System: "Be kind.", History: user("Hello"), Temperature: &half, MaxTokens: 77, Sink: sink}
	r, err := turn.Run(t.Context())
	if err != nil || r.Text != "You said: Hello (prompt: Be kind.)" || sink.text.String() != r.Text {
		t.Errorf("got %+v, %v; the sink %q", r, err, sink.text.String())
	}
	if len(r.Messages) != 1 || r.Messages[0].Text != r.Text || r.Messages[0].Role != ai.Assistant ||
		len(r.Calls) != 0 || r.Usage.In == 0 || r.Usage.Out == 0 {
		t.Errorf("got %+v", r)
	}
	if q := m.Requests()[0]; q.System != "Be kind." || *q.Temperature != 0.5 || q.MaxTokens != 77 || q.NoCalls {
		t.Errorf("asked with %+v", q)
	}
}

func TestTurnToolsInParallelAndInSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(d time.Duration, s string) func(context.Context, json.RawMessage) (string, error) {
			return func(_ context.Context, args json.RawMessage) (string, error) {
				time.Sleep(d)
				return s + string(args), nil
			}
		}
		m, sink := &aitest.Fake{}, &tape{t: t}
		turn := Turn{Model: m, Sink: sink, Tools: []Tool{tool("a", slow(3*time.Second, "A")),
			tool("b", slow(time.Second, "B")), tool("c", slow(time.Second, "C"))},
			History: user(`call a with {"n":1} and call b with {"n":2} then call c with {"n":3}`)}
		start := time.Now()
		r, err := turn.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("took %v: tools of one step don't run at the same time", took)
		}
		if got, want := fmt.Sprintf("%+v", calls(r.Calls)),
			`[a {"n":1} A{"n":1} b {"n":2} B{"n":2} c {"n":3} C{"n":3}]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := strings.Join(sink.events[:6], ", "),
			`started a, started b, finished b B{"n":2}, finished a A{"n":1}, started c, finished c C{"n":3}`; got != want {
			t.Errorf("the sink was told %s, want %s", got, want)
		}
		if r.Text != `The tool answered: C{"n":3}` || len(r.Messages) != 6 {
			t.Errorf("got %+v", r)
		}
		one := aitest.Fake{}
		if _, err := (&Turn{Model: &one, History: append(turn.History, r.Messages...)}).Run(t.Context()); err != nil {
			t.Errorf("the messages can't be a history: %v", err)
		}
	})
}

func calls(list []ToolCall) (out []string) {
	for _, c := range list {
		out = append(out, c.Name, string(c.Arguments), c.Result)
	}
	return out
}

// After a tool that ends the turn there is nothing more to say; if it fails to end it, there is.
func TestTurnEnds(t *testing.T) {
	for _, fails := range []bool{false, true} {
		m := &aitest.Fake{}
		hangUp := tool("hang_up", func(context.Context, json.RawMessage) (string, error) {
			if fails {
				return "", errors.New("the line is stuck")
			}
			return "done", nil
		})
		hangUp.Ends = true
		turn := Turn{Model: m, Tools: []Tool{hangUp}, History: user(`call hang_up with {"n":1}`)}
		r, err := turn.Run(t.Context())
		if asked := len(m.Requests()); err != nil || len(r.Calls) != 1 || (asked == 2) != fails ||
			(r.Text != "") != fails {
			t.Errorf("fails %v: asked %d times, got %+v, %v", fails, asked, r, err)
		}
	}
}

// The model is told about a tool's failure, and the turn goes on.
func TestTurnToolFailures(t *testing.T) {
	big := strings.Repeat("€", 40_000)
	m := &aitest.Fake{}
	m.Script(aitest.Step{Text: "Let me see.", Calls: []ai.ToolCall{
		{ID: "1", Name: "panics", Arguments: `{"n":1}`},
		{ID: "2", Name: "fails", Arguments: `{"n":1}`},
		{ID: "3", Name: "unknown", Arguments: `{}`},
		{ID: "4", Name: "ok", Arguments: `{"n":`},
		{ID: "5", Name: "ok", Arguments: `[1]`},
		{ID: "6", Name: "ok", Arguments: ``},
		{ID: "7", Name: "ok", Arguments: `{"n":"1","s":2,"b":"x","i":1.5}`},
		{ID: "8", Name: "big", Arguments: `{"n":1}`},
		{ID: "9", Name: "ok", Arguments: `{"n":1,"s":"x","b":true,"i":2,"other":[]}`},
		{ID: "10", Name: "broken", Arguments: `{"n":1}`},
	}}, aitest.Step{Text: "Done."})
	turn := Turn{Model: m, History: user("go"), Tools: []Tool{
		tool("panics", func(context.Context, json.RawMessage) (string, error) { panic("secret detail") }),
		tool("fails", func(context.Context, json.RawMessage) (string, error) {
			return "ignored",
				errors.New("status 500")
		}),
		tool("ok", returns("fine")), tool("big", returns(big)), tool("broken", returns("a\xffb")),
	}}
	r, err := turn.Run(t.Context())
	if err != nil || r.Text != "Let me see.\nDone." {
		t.Fatalf("got %q, %v", r.Text, err)
	}
	want := []string{
		"Error: the tool failed.", "Error: status 500", "Error: there is no tool of this name.",
		"Error: the arguments are not a JSON object: unexpected end of JSON input",
		"Error: the arguments are not a JSON object: json: cannot unmarshal array into Go value of type map[string]interface {}",
		`Error: the argument "n" is missing`,
		"Error: the argument \"b\" must be of type boolean\nthe argument \"i\" must be of type integer\n" +
			"the argument \"n\" must be of type number\nthe argument \"s\" must be of type string",
		big[:maxResult-1], "fine", "a\uFFFDb",
	}
	for i, c := range r.Calls {
		if c.Result != want[i] {
			t.Errorf("call %d: told %.200q, want %.200q", i, c.Result, want[i])
		}
		if !json.Valid(c.Arguments) {
			t.Errorf("call %d: the record's arguments are no JSON: %s", i, c.Arguments)
		}
	}
	if last := m.Requests()[1].Messages; len(last) != 12 || last[11].Text != "a\uFFFDb" {
		t.Errorf("the model was told %d messages", len(last))
	}
	if got, _ := json.Marshal(r.Calls[3]); string(got) != `{"name":"ok","arguments":"{\"n\":",`+
		`"result":"Error: the arguments are not a JSON object: unexpected end of JSON input"}` {
		t.Errorf("the record is %s", got)
	}
}

func TestTurnLimits(t *testing.T) {
	t.Run("steps", func(t *testing.T) {
		m := &aitest.Fake{}
		loop := aitest.Step{Calls: []ai.ToolCall{{ID: "1", Name: "a", Arguments: `{"n":1}`}}}
		m.Script(loop, loop, aitest.Step{Text: "Enough.", Calls: loop.Calls})
		r, err := (&Turn{Model: m, Steps: 3, History: user("go"),
			Tools: []Tool{tool("a", returns("x"))}}).Run(t.Context())
		if err != nil || r.Text != "Enough." || len(r.Calls) != 2 || len(m.Requests()) != 3 {
			t.Errorf("got %+v, %v after %d requests", r, err, len(m.Requests()))
		}
		if !m.Requests()[2].NoCalls || m.Requests()[1].NoCalls {
			t.Error("the last request, and only the last one, asks for words")
		}
	})
	t.Run("nothing but calls", func(t *testing.T) {
		m := &aitest.Fake{}
		loop := aitest.Step{Calls: []ai.ToolCall{{ID: "1", Name: "a", Arguments: `{"n":1}`}}}
		m.Script(loop, loop, loop)
		r, err := (&Turn{Model: m, Steps: 3, History: user("go"), Tools: []Tool{tool("a", returns("x"))}}).Run(t.Context())
		if ai.KindOf(err) != ai.Malformed || r.Text != "" || len(r.Calls) != 2 || !strings.HasPrefix(Sentence(err), "I'm sorry") ||
			!strings.Contains(parley.Explanation(err), "only calls tools") {
			t.Errorf("got %+v, %v: %q", r, err, parley.Explanation(err))
		}
	})
	t.Run("calls of a step", func(t *testing.T) {
		m, ran := &aitest.Fake{}, make(chan bool, 100)
		var many []ai.ToolCall
		for i := range maxCalls + 5 {
			many = append(many, ai.ToolCall{ID: fmt.Sprint(i), Name: "a", Arguments: `{"n":1}`})
		}
		m.Script(aitest.Step{Calls: many})
		r, err := (&Turn{Model: m, History: user("go"),
			Tools: []Tool{tool("a", func(context.Context, json.RawMessage) (string,
				error) {
				ran <- true
				return "x", nil
			})}}).Run(t.Context())
		if err != nil || len(ran) != maxCalls || len(r.Calls) != maxCalls+5 ||
			!strings.HasPrefix(r.Calls[maxCalls].Result, "Error: more than") {
			t.Errorf("%d ran, %d recorded, %v", len(ran), len(r.Calls), err)
		}
	})
	t.Run("silence after tools", func(t *testing.T) {
		m := &aitest.Fake{}
		m.Script(aitest.Step{Calls: []ai.ToolCall{{ID: "1", Name: "a", Arguments: `{"n":1}`}}},
			aitest.Step{Finish: ai.Stop}, aitest.Step{Text: "Well."})
		r, err := (&Turn{Model: m, History: user("go"), Tools: []Tool{tool("a", returns("x"))}}).Run(t.Context())
		if err != nil || r.Text != "Well." || !m.Requests()[2].NoCalls {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestTurnModelFailures(t *testing.T) {
	overloaded := &ai.Error{Kind: ai.Interrupted, Err: errors.New("reset")}
	m, sink := &aitest.Fake{}, &tape{t: t}
	m.Script(aitest.Step{Calls: []ai.ToolCall{{ID: "1", Name: "a", Arguments: `{"n":1}`}}},
		aitest.Step{Text: "Half a", Err: overloaded})
	r, err := (&Turn{Model: m, Sink: sink, History: user("go"),
		Tools: []Tool{tool("a", returns("x"))}}).Run(t.Context())
	if !errors.Is(err, overloaded) || ai.KindOf(err) != ai.Interrupted || r.Text != "Half a" || len(r.Calls) != 1 ||
		len(r.Messages) != 3 || sink.text.String() != "Half a" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, c := range []struct {
		step aitest.Step
		want ai.Kind
	}{
		{aitest.Step{Finish: ai.Stop}, ai.Malformed},
		{aitest.Step{Text: " ", Finish: ai.Stop}, ai.Malformed},
		{aitest.Step{Finish: ai.Filtered}, ai.Refused},
		{aitest.Step{Err: &ai.Error{Kind: ai.TooLong, Err: errors.New("x")}}, ai.TooLong},
	} {
		m := &aitest.Fake{}
		m.Script(c.step)
		if _, err := (&Turn{Model: m, History: user("go")}).Run(t.Context()); ai.KindOf(err) != c.want {
			t.Errorf("%+v: got %v", c.step, err)
		}
	}
}

func TestSentence(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range []ai.Kind{ai.RateLimited, ai.TooLong, ai.Refused, ai.Config, ""} {
		s := Sentence(fmt.Errorf("think: %w", &ai.Error{Kind: k, Err: errors.New("secret")}))
		if !strings.HasPrefix(s, "I'm sorry") || strings.Contains(s, "secret") {
			t.Errorf("%s: %q", k, s)
		}
		seen[s] = true
	}
	if len(seen) != 4 || Sentence(errors.New("x")) != Sentence(nil) {
		t.Errorf("got %v", seen)
	}
}

// A cancelled turn returns what was said and done so far, and leaves nothing running.
func TestTurnCancelled(t *testing.T) {
	cause := errors.New("hung up")
	before := runtime.NumGoroutine()
	t.Run("while it speaks", func(t *testing.T) {
		m, sink := &aitest.Fake{}, &tape{t: t}
		m.Script(aitest.Step{Text: "one two three", Gate: make(chan struct{})})
		ctx, cancel := context.WithCancelCause(t.Context())
		sink.on = func(string) { cancel(cause) }
		r, err := (&Turn{Model: m, Sink: sink, History: user("go")}).Run(ctx)
		if !errors.Is(err, cause) || r.Text != "one " || len(r.Messages) != 1 || r.Messages[0].Text != "one " {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("while tools run", func(t *testing.T) {
		m := &aitest.Fake{}
		m.Script(aitest.Step{Text: "Wait.", Calls: []ai.ToolCall{{ID: "1", Name: "waits", Arguments: `{"n":1}`},
			{ID: "2", Name: "quick", Arguments: `{"n":1}`}}})
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := false
		r, err := (&Turn{Model: m, History: user("go"), Tools: []Tool{
			tool("waits", func(ctx context.Context, _ json.RawMessage) (string, error) {
				cancel(cause)
				<-ctx.Done()
				ended = true
				return "", ctx.Err()
			}), tool("quick", returns("done"))}}).Run(ctx)
		if !errors.Is(err, cause) || !ended || r.Text != "Wait." || len(r.Calls) != 2 || len(r.Messages) != 3 {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		r, err := (&Turn{Model: &aitest.Fake{}, History: user("go")}).Run(ctx)
		if !errors.Is(err, cause) || r.Text != "" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, were %d", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
}

// FuzzArguments: whatever the model writes as arguments, either the tool gets a JSON object of the right types or the
// model gets an error.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"n":1}`, `{"n":"1"}`, `{"n":1,"n":"x"}`, `null`, `[]`, `{"n":1e999}`,
		"{\"n\":1,\"s\":\"\xff\"}", `{"n":1}{"n":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		m := &aitest.Fake{}
		m.Script(aitest.Step{Calls: []ai.ToolCall{{ID: "1", Name: "a", Arguments: raw}}}, aitest.Step{Text: "ok"})
		r, err := (&Turn{Model: m, History: user("go"),
			Tools: []Tool{tool("a", func(_ context.Context, args json.RawMessage) (string, error) {
				var v struct {
					N *float64 `json:"n"`
				}
				var o map[string]any
				if err := json.Unmarshal(args, &o); err != nil || o == nil {
					t.Errorf("the tool got %q", args)
				}
				if _, ok := o["n"].(float64); !ok {
					t.Errorf("without n: %q %v", args, v)
				}
				return "ran", nil
			})}}).Run(t.Context())
		if err != nil || len(r.Calls) != 1 || !json.Valid(r.Calls[0].Arguments) {
			t.Fatalf("got %+v, %v", r, err)
		}
		if c := r.Calls[0]; c.Result != "ran" && !strings.HasPrefix(c.Result, "Error: ") {
			t.Errorf("the model is told %q", c.Result)
		}
		if _, err := json.Marshal(r.Calls); err != nil {
			t.Error(err)
		}
	})
}
