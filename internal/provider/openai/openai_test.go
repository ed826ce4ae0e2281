package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/provider/rest"
)

func client(t testing.TB, s *aitest.Server, stall time.Duration) ai.Model {
	t.Helper()
	c, err := Open(Config{BaseURL: s.URL, APIKey: s.APIKey, Stall: stall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Model(aitest.ModelName)
}

func ask(text string) ai.Request {
	return ai.Request{System: "Be kind.", Messages: []ai.Message{{Role: ai.User, Text: text}}}
}

func ignore(ai.Delta) error { return nil }

func TestConforms(t *testing.T) {
	s := aitest.NewServer(t)
	aitest.Conform(t, client(t, s, 0))
}

func TestConformsInPieces(t *testing.T) {
	for _, cut := range []int{1, 3, 7} { // bytes per TCP segment: runes and lines are split
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			s := aitest.NewServer(t)
			s.APIKey = "sk-test"
			s.Usually(aitest.Behaviour{Cut: cut})
			aitest.Conform(t, client(t, s, 0))
		})
	}
}

func TestOpenRefusesAddresses(t *testing.T) {
	for _, u := range []string{"ftp://x/v1", "nonsense", "http://", "http://[::1", "/v1"} {
		if _, err := Open(Config{BaseURL: u}); err == nil {
			t.Errorf("%q was accepted", u)
		}
	}
}

func TestRequest(t *testing.T) {
	s := aitest.NewServer(t)
	m := client(t, s, 0)
	t.Setenv("OPENAI_API_KEY", "sk-not-ours")
	temperature := 0.25
	req := ask("Hello ✓")
	req.Temperature, req.MaxTokens = &temperature, 321
	req.Tools = []ai.Tool{{Name: "odd name!", Description: "does"}}
	req.Messages = append([]ai.Message{{Role: ai.Assistant, Text: "Hi",
		Calls: []ai.ToolCall{{ID: "a", Name: "odd name!", Arguments: "not json"}}},
		{Role: ai.ToolRole, CallID: "a", Text: "12"}}, req.Messages...)
	if _, err := m.Generate(t.Context(), req, ignore); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if got.Header.Get("Authorization") != "" {
		t.Errorf("no key is configured, yet %q was sent", got.Header.Get("Authorization"))
	}
	if !got.Stream || *got.Temperature != 0.25 || got.MaxTokens != 321 || got.System != "Be kind." ||
		!strings.Contains(string(got.Body), `"include_usage":true`) {
		t.Errorf("got %s", got.Body)
	}
	if len(got.Messages) != 3 || got.Messages[0].Calls[0].Arguments != "{}" ||
		got.Messages[0].Calls[0].Name != got.Tools[0].Name || got.Messages[2].Text != "Hello ✓" {
		t.Errorf("got %+v", got.Messages)
	}
}

func TestToolCalls(t *testing.T) {
	s := aitest.NewServer(t)
	m := client(t, s, 0)
	calls := []ai.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city":"Zürich"}`},
		{ID: "c2", Name: "time", Arguments: `{}`}}
	s.Script(aitest.Behaviour{Text: "Let me see. ", Calls: calls, Cut: 2},
		aitest.Behaviour{Calls: calls, Finish: ai.Stop, NoUsage: true}, // Ollama says stop
		aitest.Behaviour{Raw: sse(
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"y","function":{"name":"b","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"name":"c","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)})
	for i, want := range []string{"[{c1 weather {\"city\":\"Zürich\"} } {c2 time {} }]",
		"[{c1 weather {\"city\":\"Zürich\"} } {c2 time {} }]", "[{x a {} } {y b {} } {call_2 c {} }]"} {
		r, err := m.Generate(t.Context(), ask("go"), ignore)
		if err != nil || fmt.Sprint(r.Calls) != want || r.Finish != ai.ToolCalls {
			t.Errorf("%d: got %+v, %v", i, r, err)
		}
	}
}

func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(": a comment\r\nevent: message\r\ndata:" + e + "\r\n\r\n")
	}
	return b.String() + "data: [DONE]\n\n"
}

// Failures before any output are retried where that may help; others are reported at once.
func TestFailures(t *testing.T) {
	ok := aitest.Behaviour{Text: "Fine."}
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
		{"no quota", []aitest.Behaviour{{Status: 429, Code: "insufficient_quota"}}, ai.Config, 1, ""},
		{"500 then well", []aitest.Behaviour{{Status: 500}, {Status: 503}, ok}, "", 3, "Fine."},
		{"502 of a proxy", []aitest.Behaviour{{Status: 502, Raw: "<html>Bad Gateway</html>"},
			{Status: 502, Raw: "<html>"}, {Status: 502, Raw: "{\"error\":\"gone\"}"}}, ai.Overloaded, 3, ""},
		{"400", []aitest.Behaviour{{Status: 400, Message: "bad"}}, ai.Config, 1, ""},
		{"401", []aitest.Behaviour{{Status: 401, Code: "invalid_api_key"}}, ai.Config, 1, ""},
		{"context", []aitest.Behaviour{{Status: 400, Code: "context_length_exceeded"}}, ai.TooLong, 1, ""},
		{"context of vLLM", []aitest.Behaviour{{Status: 400,
			Message: "This model's maximum context length is 4096 tokens."}}, ai.TooLong, 1, ""},
		{"413", []aitest.Behaviour{{Status: 413}}, ai.TooLong, 1, ""},
		{"content", []aitest.Behaviour{{Status: 400, Code: "content_filter"}}, ai.Refused, 1, ""},
		{"reset before anything", []aitest.Behaviour{{Fault: aitest.Reset}, ok}, "", 2, "Fine."},
		{"reset in the middle", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Reset, After: 2}}, ai.Interrupted,
			1, "a b "},
		{"500 in a stream before anything", []aitest.Behaviour{{Fault: aitest.Failure}, ok}, "", 2, "Fine."},
		{"500 in mid-stream", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Failure, After: 1}}, ai.Interrupted,
			1, "a "},
		{"an end without a reason", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Cutoff, After: 2}}, "", 1, "a b "},
		{"cut off at once", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Cutoff}}, ai.Malformed, 1, ""},
		{"garbage", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Garbage, After: 1}}, ai.Malformed, 1, "a "},
		{"garbage at once", []aitest.Behaviour{{Fault: aitest.Garbage}}, ai.Malformed, 1, ""},
		{"endless", []aitest.Behaviour{{Text: "a b c", Fault: aitest.Endless, After: 1}}, ai.Malformed, 1, "a "},
		{"no stream", []aitest.Behaviour{{Raw: `{"choices":[{"message":{"content":"whole"}}]}`}}, "", 1, "whole"},
		{"JSON that is no answer", []aitest.Behaviour{{Raw: `{"hello":"whole"}`}}, ai.Malformed, 1, ""},
		{"call cut off, then well", []aitest.Behaviour{
			{Calls: []ai.ToolCall{{ID: "1", Name: "n", Arguments: `{"a":1}`}}, Fault: aitest.Reset, After: 2}, ok},
			"", 2, "Fine."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := aitest.NewServer(t)
			s.Script(c.script...)
			var text strings.Builder
			r, err := client(t, s, 0).Generate(t.Context(), ask("x"),
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

func TestWrongKeyAndModel(t *testing.T) {
	s := aitest.NewServer(t)
	s.APIKey = "sk-right"
	c, err := Open(Config{BaseURL: s.URL + "/", APIKey: "sk-wrong"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Model(aitest.ModelName).Generate(t.Context(), ask("x"), ignore); ai.KindOf(err) != ai.Config ||
		strings.Contains(err.Error(), "sk-wrong") {
		t.Errorf("wrong key: %v", err)
	}
	s.APIKey = ""
	if _, err := c.Model("none").Generate(t.Context(), ask("x"), ignore); ai.KindOf(err) != ai.Config ||
		!strings.Contains(err.Error(), "none") {
		t.Errorf("wrong model: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	s, err := aitest.Serve()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := client(t, s, 0).Generate(t.Context(), ask("x"), ignore); ai.KindOf(err) != ai.Unreachable {
		t.Errorf("got %v", err)
	}
}

// A model is held to a tool's arguments where its schema allows it, and the server takes that.
func TestStrictTools(t *testing.T) {
	s := aitest.NewServer(t)
	m := client(t, s, 0)
	req := ask("x")
	req.Tools = []ai.Tool{{Name: "open", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		{Name: "closed",
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}}
	strict := func() (list []bool) {
		if _, err := m.Generate(t.Context(), req, ignore); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Tools []struct {
				Function struct{ Strict bool }
			}
		}
		all := s.Requests()
		if err := json.Unmarshal(all[len(all)-1].Body, &sent); err != nil {
			t.Fatal(err)
		}
		for _, tool := range sent.Tools {
			list = append(list, tool.Function.Strict)
		}
		return list
	}
	if got := strict(); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("strict: %v", got)
	}
	s.Refuses = []string{"strict"}
	if got := strict(); !slices.Equal(got, []bool{false, false}) {
		t.Errorf("refused: %v", got)
	}
}

// A reply is held to its schema where OpenAI takes that; else the model is told it alone.
func TestStrictReplies(t *testing.T) {
	s := aitest.NewServer(t)
	m := client(t, s, 0)
	for i, c := range []struct{ property, strict string }{{`{"type":["integer","null"]}`, `"strict":true`},
		{`{"minimum":1,"type":["integer","null"]}`, `"strict":false`}} {
		req := ask("x")
		req.Schema = &ai.Schema{Name: "x",
			JSON: json.RawMessage(`{"type":"object","properties":{"n":` + c.property + `},"required":["n"],"additionalProperties":false}`)}
		if _, err := m.Generate(t.Context(), req, ignore); err != nil {
			t.Fatal(err)
		}
		if got := string(s.Requests()[i].Body); !strings.Contains(got, c.strict) || !strings.Contains(got, c.property) {
			t.Errorf("asked %s", got)
		}
	}
}

// When a server refuses a field, the request is sent without it, and later requests too.
func TestRefusedFields(t *testing.T) {
	s := aitest.NewServer(t)
	s.Refuses = []string{"response_format", "temperature", "max_tokens", "stream_options", "tool_choice"}
	m := client(t, s, 0)
	zero := 0.0
	req := ask("x")
	req.Temperature, req.MaxTokens, req.NoCalls = &zero, 9, true
	req.Tools = []ai.Tool{{Name: "a"}}
	req.Schema = &ai.Schema{Name: "s", JSON: json.RawMessage(
		`{"type":"object","properties":{"marker":{"type":"string"}},"required":["marker"],"additionalProperties":false}`)}
	for i, want := range []int{6, 7} {
		if _, err := m.Generate(t.Context(), req, ignore); err != nil {
			t.Fatal(err)
		}
		if s.Count() != want {
			t.Errorf("%d: asked %d times", i, s.Count())
		}
	}
	last := s.Requests()[6]
	if !strings.Contains(last.System, `"marker"`) || !strings.Contains(string(last.Body), `"max_completion_tokens":9`) {
		t.Errorf("got %s", last.Body)
	}
}

// Models that reason unless they are told not to are told so, and take tools and a temperature then. One that always reasons
// refuses that, and is asked without; those from before, and other vendors', are never asked.
func TestReasoning(t *testing.T) {
	s := aitest.NewServer(t)
	s.Models = []string{aitest.ReasoningModel, aitest.AlwaysReasoningModel, aitest.UnreasoningModel, "openai/gpt-5.2", "gpt-5"}
	c, err := Open(Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	warm := 0.7
	for _, o := range []struct {
		model  string
		tools  bool
		asked  int
		effort string
		kind   ai.Kind
	}{
		{aitest.ReasoningModel, true, 1, `"reasoning_effort":"none"`, ""},
		{aitest.UnreasoningModel, true, 1, "", ""},
		{"openai/gpt-5.2", true, 1, `"reasoning_effort":"none"`, ""},
		{"gpt-5", false, 1, "", ""},
		{aitest.AlwaysReasoningModel, false, 3, "", ""}, // without the effort, without the temperature
		{aitest.AlwaysReasoningModel, false, 1, "", ""},
		{aitest.AlwaysReasoningModel, true, 1, "", ai.Config},
	} {
		req := ask("x")
		req.Temperature, req.MaxTokens = &warm, 9
		if o.tools {
			req.Tools = []ai.Tool{{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}
		}
		before := s.Count()
		_, err := c.Model(o.model).Generate(t.Context(), req, ignore)
		if ai.KindOf(err) != o.kind || s.Count()-before != o.asked {
			t.Errorf("%+v: %v, asked %d times", o, err, s.Count()-before)
		}
		all := s.Requests()
		body := string(all[len(all)-1].Body)
		if strings.Contains(body, "reasoning_effort") != (o.effort != "") || !strings.Contains(body, o.effort) {
			t.Errorf("%+v: sent %s", o, body)
		}
	}
}

func TestCancelledInTheMiddle(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := aitest.Serve()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	m := c.Model(aitest.ModelName)
	for range 20 {
		s.Script(aitest.Behaviour{Text: "one two three", Fault: aitest.Stall, After: 1})
		cause := errors.New("hung up")
		ctx, cancel := context.WithCancelCause(t.Context())
		r, err := m.Generate(ctx, ask("x"), func(ai.Delta) error { cancel(cause); return nil })
		if !errors.Is(err, cause) || r.Text != "one " {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	c.Close()
	s.Close()
	settled(t, before)
}

// settled waits until there are no more than n goroutines.
func settled(t *testing.T, n int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > n {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, want %d:\n%s", runtime.NumGoroutine(), n, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	s := aitest.NewServer(t)
	c, err := Open(Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dials := 0
	tr := c.rest.HTTP.Transport.(*http.Transport)
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		dials++
		return dial(ctx, network, addr)
	}
	for range 20 {
		if _, err := c.Model(aitest.ModelName).Generate(t.Context(), ask("x"), ignore); err != nil {
			t.Fatal(err)
		}
	}
	if dials != 1 {
		t.Errorf("%d connections for 20 replies, one after the other", dials)
	}
}

// A thousand replies at the same time take little memory each.
func TestThousandStreams(t *testing.T) {
	const streams, most = 1000, 160 << 10 // bytes of heap each, both sides together
	s := aitest.NewServer(t)
	gate := make(chan struct{})
	s.Usually(aitest.Behaviour{Text: "one two three", Gate: gate})
	m := client(t, s, 0)
	heap := func() uint64 {
		runtime.GC()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		return ms.HeapAlloc + ms.StackInuse
	}
	before := heap()
	var begun, done sync.WaitGroup
	begun.Add(streams)
	errs := make(chan error, streams)
	for range streams {
		done.Go(func() {
			first := true
			r, err := m.Generate(t.Context(), ask("x"), func(ai.Delta) error {
				if first {
					begun.Done()
				}
				first = false
				return nil
			})
			if first {
				begun.Done()
			}
			if err == nil && r.Text != "one two three" {
				err = fmt.Errorf("got %q", r.Text)
			}
			errs <- err
		})
	}
	begun.Wait()
	each := (heap() - before) / streams
	close(gate)
	done.Wait()
	for range streams {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if each > most {
		t.Errorf("%d bytes each, at most %d", each, most)
	}
	t.Logf("%d bytes each", each)
}

// pipe answers every request with a stream that the test writes, on fake time.
type pipe struct {
	mu    sync.Mutex
	after []time.Duration // how long the headers of each request take
	write func(w io.Writer)
	asked []time.Time
}

func (p *pipe) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.asked = append(p.asked, time.Now())
	p.mu.Unlock()
	r.Body.Close()
	if len(p.after) > 0 {
		d := p.after[0]
		p.after = p.after[1:]
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	pr, pw := io.Pipe()
	go func() {
		p.write(pw)
		pw.Close()
	}()
	context.AfterFunc(r.Context(), func() { pr.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr,
		Request: r}, nil
}

const word = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n"

func TestStalls(t *testing.T) {
	write := func(w io.Writer, texts ...any) {
		for _, x := range texts {
			switch x := x.(type) {
			case string:
				if _, err := io.WriteString(w, x); err != nil {
					return
				}
			case time.Duration:
				time.Sleep(x)
			}
		}
	}
	end := "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for _, c := range []struct {
		name  string
		pipe  *pipe
		slow  time.Duration // how long yield takes
		kind  ai.Kind
		text  string
		after time.Duration
	}{
		{"headers", &pipe{after: []time.Duration{time.Hour}}, 0, ai.Stalled, "", 10 * time.Second},
		{"first token", &pipe{write: func(w io.Writer) { write(w, time.Hour) }}, 0, ai.Stalled, "", 10 * time.Second},
		{"in the middle", &pipe{write: func(w io.Writer) { write(w, word, 9*time.Second, word, time.Hour) }}, 0,
			ai.Stalled, "word word ", 19 * time.Second},
		{"comments keep it alive", &pipe{write: func(w io.Writer) {
			write(w, 9*time.Second, ": wait\n\n",
				9*time.Second, word, end)
		}}, 0, "", "word ", 18 * time.Second},
		{"a slow reader is no stall", &pipe{write: func(w io.Writer) { write(w, word, word, end) }}, time.Minute,
			"", "word word ", 2 * time.Minute},
		{"a connection that isn't ended holds nobody up",
			&pipe{write: func(w io.Writer) { write(w, word, end, time.Hour) }}, 0, "", "word ", rest.DrainTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(Config{BaseURL: "http://model.test/v1", Stall: 10 * time.Second}, c.pipe).Model("m")
				start := time.Now()
				r, err := m.Generate(t.Context(), ask("x"), func(ai.Delta) error { time.Sleep(c.slow); return nil })
				if ai.KindOf(err) != c.kind || (err != nil) != (c.kind != "") || r.Text != c.text {
					t.Errorf("got %q, %v", r.Text, err)
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("took %v, want %v", took, c.after)
				}
				time.Sleep(2 * time.Hour) // until the server's goroutines have ended
			})
		})
	}
}

// The pauses grow, and when a server says how long to wait, that is obeyed.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		retryAfter string
		least      []time.Duration
	}{
		{"", []time.Duration{rest.FirstPause, 2 * rest.FirstPause}},
		{"3", []time.Duration{3 * time.Second, 3 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked []time.Time
			m := open(Config{BaseURL: "http://model.test/v1"}, roundTrip(func(r *http.Request) (*http.Response, error) {
				asked = append(asked, time.Now())
				return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {c.retryAfter}},
					Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
			})).Model("m")
			_, err := m.Generate(t.Context(), ask("x"), ignore)
			if e, ok := errors.AsType[*ai.Error](err); !ok || e.Kind != ai.RateLimited || !e.Retry() {
				t.Errorf("got %v", err)
			}
			var pauses []time.Duration
			for i := range len(asked) - 1 {
				pauses = append(pauses, asked[i+1].Sub(asked[i]))
			}
			if len(pauses) != 2 || pauses[0] < c.least[0] || pauses[1] < c.least[1] ||
				slices.Max(pauses) > 2*c.least[1] {
				t.Errorf("pauses %v", pauses)
			}
			ctx, cancel := context.WithTimeout(t.Context(), rest.FirstPause/2)
			defer cancel()
			if _, err := m.Generate(ctx, ask("x"), ignore); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("cancelled in a pause: %v", err)
			}
		})
	}
}

// A server that loads its model first may be silent for long, but not for ever.
func TestEmbedWaits(t *testing.T) {
	for wait, kind := range map[time.Duration]ai.Kind{50 * time.Second: "", 2 * time.Minute: ai.Stalled} {
		synctest.Test(t, func(t *testing.T) {
			c := open(Config{BaseURL: "http://vectors.test/v1", Stall: 10 * time.Second}, &pipe{write: func(w io.Writer) {
				time.Sleep(wait)
				io.WriteString(w, `{"data":[{"index":0,"embedding":[1]}]}`)
			}})
			if _, err := c.Embedder("m").Embed(t.Context(), []string{"x"}); ai.KindOf(err) != kind {
				t.Errorf("after %v: %v", wait, err)
			}
			time.Sleep(time.Hour)
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzStream reads anything that a server may send.
func FuzzStream(f *testing.F) {
	f.Add([]byte(word + "data: [DONE]\n\n"))
	f.Add([]byte(sse(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)))
	f.Add([]byte("data: {\"error\":{\"message\":\"x\",\"code\":500}}\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}],\"usage\":{\"prompt_tokens\":1e99}}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := open(Config{BaseURL: "http://model.test/v1"}, roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, nil
		}))
		m := c.Model("m").(*model)
		var text strings.Builder
		calls := 0
		rd := rest.NewReading(func(d ai.Delta) error {
			text.WriteString(d.Text)
			if d.Call != nil {
				calls++
			}
			return nil
		})
		err := m.attempt(t.Context(), ask("x"), rd, m.refused.Begin())
		r := rd.Reply()
		if r.Text != text.String() || len(r.Calls) != calls {
			t.Errorf("reply %+v, yielded %q and %d calls", r, text.String(), calls)
		}
		if err != nil && ai.KindOf(err) == "" {
			t.Errorf("an error of no kind: %v", err)
		}
		if err == nil && r.Finish == "" {
			t.Error("whole, but without a reason")
		}
	})
}
