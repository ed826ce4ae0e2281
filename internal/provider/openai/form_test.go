package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// oneEvent is one event of a stream, as a server writes it.
func oneEvent(json string) string { return "data: " + json + "\n\n" }

func delta(json string) string { return oneEvent(`{"choices":[{"index":0,"delta":` + json + `}]}`) }

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// Servers write answers in many forms. A row for each, with what is said and called.
func TestForms(t *testing.T) {
	for name, c := range map[string]struct{ raw, text, calls string }{
		"as it should be":        {delta(`{"content":"Hello"}`) + oneEvent(stop) + oneEvent("[DONE]"), "Hello", ""},
		"no reason for the end":  {delta(`{"content":"Hello"}`) + oneEvent("[DONE]"), "Hello", ""},
		"neither reason nor end": {delta(`{"content":"Hello"}`), "Hello", ""},
		"no last newline": {delta(`{"content":"Hel"}`) +
			`data: {"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}`, "Hello", ""},
		"one newline":          {delta(`{"content":"Hel"}`) + "data: " + `{"choices":[{"delta":{"content":"lo"}}]}` + "\n", "Hello", ""},
		"no space behind data": {`data:{"choices":[{"delta":{"content":"Hello"}}]}` + "\r\n\r\n", "Hello", ""},
		"message in place of delta": {oneEvent(`{"choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`),
			"Hello", ""},
		"plain JSON": {"{\n \"choices\": [\n" +
			"  {\"message\": {\"content\": \"Hello\"}, \"finish_reason\": \"stop\"}\n ]\n}\n", "Hello", ""},
		"plain JSON without a reason": {`{"choices":[{"message":{"content":"Hello"}}]}`, "Hello", ""},
		"plain JSON with calls":       {`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"n\":1}"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{\"n\":2}"}}]},"finish_reason":"tool_calls"}]}`, "", `look {"n":1} look {"n":2}`},
		"a list of parts": {delta(`{"content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}`) + oneEvent(stop),
			"Hello", ""},
		"a list with thoughts": {delta(`{"content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"Hello"}]}`) +
			oneEvent(stop), "Hello", ""},
		"parts of a message": {oneEvent(`{"choices":[{"message":{"content":[{"type":"text","text":"Hello"}]},"finish_reason":"stop"}]}`), "Hello",
			""},
		"reasoning_content": {delta(`{"reasoning_content":"x"}`) + delta(`{"content":"Hello"}`) + oneEvent(stop), "Hello", ""},
		"a thought over chunks": {delta(`{"content":"<thi"}`) + delta(`{"content":"nk>Hm. "}`) + delta(`{"content":"</th"}`) +
			delta(`{"content":"ink>\n\nHello"}`) + oneEvent(stop), "Hello", ""},
		"a call as text": {delta(`{"content":"<tool_call>{\"name\":\"look\","}`) + delta(`{"content":"\"arguments\":{\"n\":1}}</tool_call>"}`) +
			oneEvent(stop), "", `look {"n":1}`},
		"a stop token": {delta(`{"content":"Hello<|im_"}`) + delta(`{"content":"end|>"}`) + oneEvent(stop), "Hello", ""},
		"calls with one index": {delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{\"n\":1}"}}]}`) +
			delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"look","arguments":"{\"n\":2}"}}]}`) + oneEvent(stop), "",
			`look {"n":1} look {"n":2}`},
		"calls without ids": {delta(`{"tool_calls":[{"index":0,"function":{"name":"look","arguments":"{\"n\":1}"}},{"index":1,"function":{"name":"look","arguments":"{\"n\":2}"}}]}`) + oneEvent(stop), "", `look {"n":1} look {"n":2}`},
		"neither ids nor indices": {
			delta(`{"tool_calls":[{"function":{"name":"look","arguments":"{\"n\":1}"}},{"function":{"name":"look","arguments":"{\"n\":2}"}}]}`) +
				oneEvent(stop), "", `look {"n":1} look {"n":2}`},
		"neither, in pieces": {delta(`{"tool_calls":[{"function":{"name":"look","arguments":""}}]}`) +
			delta(`{"tool_calls":[{"function":{"arguments":"{\"n\":1}"}}]}`) +
			delta(`{"tool_calls":[{"function":{"name":"look","arguments":""}}]}`) +
			delta(`{"tool_calls":[{"function":{"arguments":"{\"n\":2}"}}]}`) + oneEvent(stop), "", `look {"n":1} look {"n":2}`},
		"neither, of different names": {
			delta(`{"tool_calls":[{"function":{"name":"look","arguments":""}},{"function":{"name":"hang_up","arguments":""}}]}`) + oneEvent(stop),
			"", `look {} hang_up {}`},
		"a name with every piece": {delta(`{"tool_calls":[{"index":0,"function":{"name":"look","arguments":"{\"n\""}}]}`) +
			delta(`{"tool_calls":[{"index":0,"function":{"name":"look","arguments":":1}"}}]}`) +
			delta(`{"tool_calls":[{"index":0,"function":{"name":"look","arguments":""}}]}`) + oneEvent(stop), "", `look {"n":1}`},
		"calls without a reason": {delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{\"n\":1}"}}]}`), "",
			`look {"n":1}`},
		"functions. before the name": {
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"functions.look","arguments":"{\"n\":1}"}}]}`) + oneEvent(stop), "",
			`look {"n":1}`},
		"text and a call in the same": {
			delta(`{"content":"Let me see.","tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}]}`) + oneEvent(stop),
			"Let me see.", `look {}`},
		"arguments that are an object": {delta(`{"tool_calls":[{"index":0,"id":7,"function":{"name":"look","arguments":{"n":1}}}]}`) +
			oneEvent(stop), "", `look {"n":1}`},
		"an index as text": {delta(`{"tool_calls":[{"index":"0","id":"a","function":{"name":"look","arguments":"{\"n\""}}]}`) +
			delta(`{"tool_calls":[{"index":0.0,"function":{"arguments":":1}"}}]}`) + oneEvent(stop), "", `look {"n":1}`},
		"fields of other types": {oneEvent(`{"id":7,"choices":[{"delta":{"content":"Hel","tool_calls":"none"}}],"usage":"none"}`) +
			oneEvent(`{"choices":[{"delta":{"content":"lo","refusal":null}}],"usage":null,"error":null}`) + oneEvent(stop), "Hello", ""},
		"a refusal":                     {delta(`{"content":null,"refusal":"No."}`) + oneEvent(stop), "No.", ""},
		"a comment and an empty choice": {": ping\n\n" + oneEvent(`{"choices":[]}`) + delta(`{"content":"Hello"}`) + oneEvent(stop), "Hello", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := aitest.NewServer(t)
			s.Script(aitest.Behaviour{Raw: c.raw})
			client, err := Open(Config{BaseURL: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var said strings.Builder
			r, err := client.Model(aitest.ModelName).Generate(t.Context(), ai.Request{Messages: []ai.Message{{Role: ai.User, Text: "Hi"}},
				Tools: []ai.Tool{{Name: "look"}, {Name: "hang_up"}}}, func(d ai.Delta) error { said.WriteString(d.Text); return nil })
			var calls []string
			ids := map[string]bool{}
			for _, c := range r.Calls {
				calls, ids[c.ID] = append(calls, c.Name+" "+c.Arguments), true
			}
			if err != nil || r.Text != c.text || said.String() != c.text || strings.Join(calls, " ") != c.calls || len(ids) != len(calls) {
				t.Errorf("said %q (%q), called %q, %v", r.Text, said.String(), calls, err)
			}
		})
	}
	// Half a call is no answer.
	s := aitest.NewServer(t)
	s.Script(aitest.Behaviour{Raw: delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{\"n\""}}]}`)})
	client, err := Open(Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if r, err := client.Model(aitest.ModelName).Generate(t.Context(), ai.Request{Messages: []ai.Message{{Role: ai.User, Text: "Hi"}},
		Tools: []ai.Tool{{Name: "look"}}}, func(ai.Delta) error { return nil }); ai.KindOf(err) != ai.Malformed || len(r.Calls) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Tokens are counted however a server writes them, and what is no answer is told as that.
func TestOddAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		use  ai.Usage
		kind ai.Kind
	}{
		"usage": {delta(`{"content":"Hi"}`) + oneEvent(stop) +
			oneEvent(`{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}`),
			ai.Usage{In: 12, Out: 3, Cached: 8}, ""},
		"usage as decimal": {delta(`{"content":"Hi"}`) +
			oneEvent(`{"choices":[{"delta":{},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":12.0,"completion_tokens":"3","prompt_tokens_details":null}}`), ai.Usage{In: 12, Out: 3}, ""},
		"endless usage": {delta(`{"content":"Hi"}`) +
			oneEvent(`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e99,"completion_tokens":3}}`),
			ai.Usage{Out: 3}, ""},
		"a list":           {oneEvent(`[{"choices":[]}]`), ai.Usage{}, ai.Malformed},
		"a text":           {oneEvent(`"Hello"`), ai.Usage{}, ai.Malformed},
		"an error as text": {delta(`{"content":"Hi"}`) + oneEvent(`{"error":"gone"}`), ai.Usage{}, ai.Interrupted},
		"too long":         {oneEvent(`{"error":{"message":"too many tokens","code":"context_length_exceeded"}}`), ai.Usage{}, ai.TooLong},
	} {
		s := aitest.NewServer(t)
		s.Script(aitest.Behaviour{Raw: c.raw})
		r, err := client(t, s, 0).Generate(t.Context(), ask("x"), ignore)
		if ai.KindOf(err) != c.kind || r.Usage != c.use {
			t.Errorf("%s: %+v, %v", name, r.Usage, err)
		}
	}
}

// Servers refuse what the templates of their models don't know. They get what they take, and that is remembered.
func TestTemplates(t *testing.T) {
	type sent struct {
		Tools    []json.RawMessage `json:"tools"`
		Choice   any               `json:"tool_choice"`
		Messages []struct {
			Role      string            `json:"role"`
			Content   string            `json:"content"`
			ToolCalls []json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
	}
	roles := func(r sent) (list []string) {
		for _, m := range r.Messages {
			list = append(list, m.Role)
		}
		return list
	}
	alternates := func(r sent) bool {
		want := "user"
		for i, m := range r.Messages {
			if m.Role == "system" && i == 0 {
				continue
			}
			if m.Role != want {
				return false
			}
			want = map[string]string{"user": "assistant", "assistant": "user"}[want]
		}
		return true
	}
	for name, c := range map[string]struct {
		status  int
		body    string
		refuses func(r sent) bool
	}{
		"no tools, Ollama": {400, `{"error":{"message":"registry.ollama.ai/library/gemma:latest does not support tools","type":"api_error"}}`,
			func(r sent) bool { return len(r.Tools) > 0 }},
		"no tools, vLLM": {400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`,
			func(r sent) bool { return len(r.Tools) > 0 }},
		"no tools, llama.cpp": {500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`,
			func(r sent) bool { return len(r.Tools) > 0 }},
		"no tools, a router": {404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`,
			func(r sent) bool { return len(r.Tools) > 0 }},
		"no system": {400, `{"object":"error","message":"System role not supported","type":"BadRequestError","code":400}`,
			func(r sent) bool { return r.Messages[0].Role == "system" }},
		"in turn": {400, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError"}}`,
			func(r sent) bool { return len(r.Tools) == 0 && !alternates(r) }},
		"the customer first": {500, `{"error":{"code":500,"message":"First message must be from user","type":"server_error"}}`,
			func(r sent) bool { return r.Messages[0].Role == "assistant" || r.Messages[1].Role == "assistant" }},
	} {
		t.Run(name, func(t *testing.T) {
			var taken []sent
			refused := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var in sent
				raw, _ := io.ReadAll(r.Body)
				if err := json.Unmarshal(raw, &in); err != nil {
					t.Error(err)
				}
				if c.refuses(in) {
					refused++
					w.WriteHeader(c.status)
					io.WriteString(w, c.body)
					return
				}
				taken = append(taken, in)
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, delta(`{"content":"Hello"}`)+oneEvent(stop))
			}))
			defer s.Close()
			client, err := Open(Config{BaseURL: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			req := ai.Request{System: "Be kind.", Messages: []ai.Message{{Role: ai.Assistant, Text: "Good morning."}, {Role: ai.User, Text: "Hi"},
				{Role: ai.User, Text: "Are you there?"}}}
			if strings.HasPrefix(name, "no tools") {
				req.Tools = []ai.Tool{{Name: "look", Description: "Looks", Schema: json.RawMessage(`{"type":"object"}`)}}
				req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Calls: []ai.ToolCall{{ID: "1", Name: "look", Arguments: `{"n":1}`}}},
					ai.Message{Role: ai.ToolRole, CallID: "1", Text: "seven"})
			}
			for range 2 {
				r, err := client.Model("m").Generate(t.Context(), req, func(ai.Delta) error { return nil })
				if err != nil || r.Text != "Hello" {
					t.Fatalf("%+v, %v after %d refusals", r, err, refused)
				}
			}
			if refused != 1 || len(taken) != 2 {
				t.Errorf("refused %d times, took %d", refused, len(taken))
			}
			last := taken[1]
			all := fmt.Sprint(last.Messages)
			for _, want := range []string{"Be kind.", "Good morning.", "Hi", "Are you there?"} {
				if !strings.Contains(all, want) {
					t.Errorf("%q is lost: %v %s", want, roles(last), all)
				}
			}
			if strings.HasPrefix(name, "no tools") && (!strings.Contains(all, `"name":"look"`) || !strings.Contains(all, "<tool_response>seven") ||
				!strings.Contains(all, `<tool_call>{"arguments":{"n":1},"name":"look"}</tool_call>`) || last.Choice != nil) {
				t.Errorf("the tools are lost: %s", all)
			}
		})
	}
}

// The owner reads what the server said, without the operator's secrets.
func TestOwnReason(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"model 'gemma' not found"}}`:                                                "model 'gemma' not found",
		`{"detail":"Unsupported model"}`:                                                                 "Unsupported model",
		`{"error":{"message":"org-abcdef123456 at http://10.0.0.1:8000/v1, which sk-12345678 may not"}}`: "… at … which … may not",
	} {
		err := refused(404, http.Header{}, []byte(body))
		e, ok := errors.AsType[*ai.Error](err)
		if !ok || e.Kind != ai.Config || !strings.Contains(e.Explain(), want) {
			t.Errorf("%s is told as %q", body, e.Explain())
		}
	}
	err := refused(401, http.Header{}, []byte(`{"error":{"message":"Incorrect API key provided: sk-12345678"}}`))
	if e, _ := errors.AsType[*ai.Error](err); strings.Contains(e.Explain(), "Incorrect") {
		t.Errorf("told %q", e.Explain())
	}
}
