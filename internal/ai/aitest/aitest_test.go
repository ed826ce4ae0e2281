package aitest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/internal/ai"
)

func TestFakeConforms(t *testing.T) { Conform(t, &Fake{}) }

func TestFakeScript(t *testing.T) {
	f := &Fake{}
	boom := errors.New("boom")
	f.Script(Step{Text: "one two", Err: boom}, Step{Text: "x", Finish: ai.Length})
	var got []string
	r, err := f.Generate(t.Context(), ai.Request{System: "s"},
		func(d ai.Delta) error { got = append(got, d.Text); return nil })
	if err != boom || r.Text != "one two" || strings.Join(got, "|") != "one |two" {
		t.Errorf("got %+v, %v, %q", r, err, got)
	}
	if r, err := f.Generate(t.Context(), ai.Request{}, func(ai.Delta) error { return nil }); err != nil ||
		r.Finish != ai.Length {
		t.Errorf("got %+v, %v", r, err)
	}
	if r := f.Requests(); len(r) != 2 || r[0].System != "s" {
		t.Errorf("recorded %+v", r)
	}
}

func TestEcho(t *testing.T) {
	tools := []ai.Tool{{Name: "a"}, {Name: "b"}}
	steps := ai.Request{Tools: tools, Messages: user(`call a with {"x":"}"} and call b with {} then call a with {"y":{"z":1}}`)}
	first := Echo(steps)
	if len(first.Calls) != 2 || first.Calls[0].Arguments != `{"x":"}"}` || first.Calls[1].Name != "b" ||
		first.Calls[0].ID == first.Calls[1].ID {
		t.Fatalf("got %+v", first)
	}
	steps.Messages = append(steps.Messages, ai.Message{Role: ai.Assistant, Calls: first.Calls},
		ai.Message{Role: ai.ToolRole, Text: "1"}, ai.Message{Role: ai.ToolRole, Text: "2"})
	second := Echo(steps)
	if len(second.Calls) != 1 || second.Calls[0].Arguments != `{"y":{"z":1}}` ||
		second.Calls[0].ID == first.Calls[0].ID {
		t.Fatalf("got %+v", second)
	}
	steps.Messages = append(steps.Messages, ai.Message{Role: ai.Assistant, Calls: second.Calls},
		ai.Message{Role: ai.ToolRole, Text: "3"})
	if last := Echo(steps); last.Text != "The tool answered: 3" {
		t.Errorf("got %+v", last)
	}
	for text, want := range map[string]string{
		`call c with {}`: "You said: call c with {} (prompt: P)",
		`call a with {`:  "You said: call a with { (prompt: P)", "hi": "You said: hi (prompt: P)",
	} {
		if got := Echo(ai.Request{System: "P", Tools: tools, Messages: user(text)}); got.Text != want ||
			len(got.Calls) > 0 {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func post(t *testing.T, s *Server, body string) *http.Response {
	t.Helper()
	res, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// The server refuses what OpenAI refuses, in the same format.
func TestServerRefuses(t *testing.T) {
	s := NewServer(t)
	s.Refuses = []string{"logprobs"}
	const u = `{"role":"user","content":"x"}`
	const call = `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]}`
	for _, c := range []struct {
		body   string
		status int
		holds  string
	}{
		{`{`, 400, "parse"},
		{`{"model":"none","messages":[` + u + `]}`, 404, "model_not_found"},
		{`{"model":"test-model","messages":[]}`, 400, "empty_array"},
		{`{"model":"test-model","messages":[{"role":"robot","content":"x"}]}`, 400, "role"},
		{`{"model":"test-model","messages":[{"role":"user","content":null}]}`, 400, "content"},
		{`{"model":"test-model","messages":[` + u + `,` + call + `]}`, 400, "tool_call_id"},
		{`{"model":"test-model","messages":[` + u + `,` + call + `,` + u + `]}`, 400, "tool_call_id"},
		{`{"model":"test-model","messages":[` + u + `,{"role":"tool","tool_call_id":"1","content":"x"}]}`, 400,
			"preceding"},
		{`{"model":"test-model","messages":[` + u + `],"tools":[{"type":"function","function":{"name":"a b"}}]}`,
			400, "tools[0].function.name"},
		{`{"model":"test-model","messages":[` + u +
			`],"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]}`,
			400, "unique"},
		{`{"model":"test-model","messages":[` + u + `],"tool_choice":"none"}`, 400, "tool_choice"},
		{`{"model":"test-model","messages":[` + u + `],"temperature":3}`, 400, "temperature"},
		{`{"model":"test-model","messages":[` + u + `],"logprobs":true}`, 400, "unsupported_parameter"},
		{`{"model":"test-model","messages":[` + u + `],"stream_options":{"include_usage":true}}`, 400,
			"stream_options"},
		{`{"model":"test-model","messages":[` + u + `],"max_tokens":1,"max_completion_tokens":1}`, 400, "max_tokens"},
		{`{"model":"test-model","messages":[` + u +
			`],"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object","properties":{"a":{}}}}}}`,
			400, "additionalProperties"},
		{`{"model":"test-model","messages":[` + u + `]}`, 200, `"content":"You said: x (prompt: )"`},
	} {
		res := post(t, s, c.body)
		b, _ := io.ReadAll(res.Body)
		var e struct {
			Error *struct{ Message, Type string }
		}
		if err := json.Unmarshal(b, &e); err != nil || res.StatusCode != c.status ||
			!strings.Contains(string(b), c.holds) || (c.status != 200) != (e.Error != nil) {
			t.Errorf("%s\n got %d %s, want %d with %s", c.body, res.StatusCode, b, c.status, c.holds)
		}
	}
	for path, status := range map[string]int{"/models": 200, "/nothing": 404} {
		res, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != status || status == 200 && !bytes.Contains(b, []byte(`"id":"test-model"`)) {
			t.Errorf("%s: %d %s", path, res.StatusCode, b)
		}
	}
	s.APIKey = "k"
	if res := post(t, s, `{}`); res.StatusCode != 401 {
		t.Errorf("without a key: %d", res.StatusCode)
	}
}

const streamed = `{"model":"test-model","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"x"}]}`

// The stream is OpenAI's: a role first, deltas, a finish reason, usage in a chunk without choices, [DONE].
func TestServerStream(t *testing.T) {
	s := NewServer(t)
	s.Script(Behaviour{Text: "Zoë ok", Calls: []ai.ToolCall{{ID: "c", Name: "n", Arguments: `{"a":123}`}}})
	res := post(t, s, streamed)
	if ct := res.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("content type %q", ct)
	}
	var got []string
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var c struct {
			Choices []struct {
				Delta  json.RawMessage
				Finish *string `json:"finish_reason"`
			}
			Usage json.RawMessage
		}
		switch err := json.Unmarshal([]byte(data), &c); {
		case err != nil:
			got = append(got, data)
		case len(c.Choices) == 0:
			got = append(got, "usage "+string(c.Usage))
		case c.Choices[0].Finish != nil:
			got = append(got, *c.Choices[0].Finish)
		default:
			got = append(got, string(c.Choices[0].Delta))
		}
	}
	want := []string{
		`{"content":"","role":"assistant"}`, `{"content":"Zoë "}`, `{"content":"ok"}`,
		`{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"n","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"123}"}}]}`,
		"tool_calls", `usage {"completion_tokens":3,"prompt_tokens":3,"total_tokens":6}`, "[DONE]",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r := s.Requests(); len(r) != 1 || !r[0].Stream || r[0].Messages[0].Text != "x" || s.Count() != 1 {
		t.Errorf("recorded %+v", r)
	}
}

// Cut splits runes on the wire: some chunk of the raw HTTP is not valid UTF-8 by itself.
func TestServerCutsRunes(t *testing.T) {
	s := NewServer(t)
	s.Script(Behaviour{Text: "ééé", Cut: 1})
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "+
		itoa(len(streamed))+"\r\n\r\n"+streamed); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	torn := 0
	for chunk := range strings.SplitSeq(string(raw), "\r\n") {
		if !utf8.ValidString(chunk) {
			torn++
		}
	}
	if torn != 6 {
		t.Errorf("%d chunks hold half a rune, want 6", torn)
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestServerFaults(t *testing.T) {
	for fault, want := range map[Fault]struct {
		end   error
		holds string
	}{
		Cutoff:  {nil, "one"},
		Failure: {nil, `data: {"error":{"message":"The server had an error`},
		Garbage: {nil, `{"delta":` + "\n"},
		Reset:   {io.ErrUnexpectedEOF, "one"},
	} {
		s := NewServer(t)
		s.Script(Behaviour{Text: "one two", Fault: fault, After: 1})
		b, err := io.ReadAll(post(t, s, streamed).Body)
		if (err != nil) != (want.end != nil) || !strings.Contains(string(b), want.holds) ||
			strings.Contains(string(b), "[DONE]") {
			t.Errorf("%s: %v, %s", fault, err, b)
		}
	}
}

func TestServerDelays(t *testing.T) {
	s := NewServer(t)
	s.Usually(Behaviour{Text: "a b c", FirstDelay: 30 * time.Millisecond, TokenDelay: 10 * time.Millisecond})
	start := time.Now()
	if _, err := io.Copy(io.Discard, post(t, s, streamed).Body); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 50*time.Millisecond {
		t.Errorf("took %v, at least 50 ms", took)
	}
}

// Close ends stalled streams, so that nobody waits for them.
func TestServerClose(t *testing.T) {
	s, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	s.Script(Behaviour{Text: "one two", Fault: Stall, After: 1})
	res := post(t, s, streamed)
	read := make(chan struct{})
	go func() {
		_, _ = io.ReadAll(res.Body)
		close(read)
	}()
	s.Close()
	select {
	case <-read:
	case <-time.After(10 * time.Second):
		t.Fatal("the stream is still open")
	}
}
