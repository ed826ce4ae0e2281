package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/gemini/geminitest"
	"parley/internal/provider/rest"
	"parley/internal/provider/rest/resttest"
)

func client(t *testing.T, s *geminitest.Server, stall time.Duration) *Client {
	t.Helper()
	c, err := Open(Config{BaseURL: s.URL, APIKey: geminitest.Key, Stall: stall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ask(text string) ai.Request { return resttest.Ask(text) }

func TestConforms(t *testing.T) {
	for _, model := range []string{geminitest.Lite, geminitest.Flash, geminitest.Old} {
		t.Run(model, func(t *testing.T) {
			s := geminitest.New(t)
			aitest.Conform(t, client(t, s, 0).Model("models/"+model))
		})
	}
}

func TestFails(t *testing.T) {
	resttest.Conform(t, func(t *testing.T, stall time.Duration) (*resttest.Server, ai.Model) {
		s := geminitest.New(t)
		return s.Server, client(t, s, stall).Model(geminitest.Lite)
	})
}

func event(text string) string { return "data: " + text + "\r\n\r\n" }

func TestFailuresOfItsOwn(t *testing.T) {
	ok := aitest.Behaviour{Text: "Fine."}
	clumsy := aitest.Behaviour{Raw: event(`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"call x("}]}`)}
	for _, c := range []struct {
		name   string
		script []aitest.Behaviour
		want   ai.Kind
		asked  int
	}{
		{"the prompt is blocked",
			[]aitest.Behaviour{{Raw: event(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`)}},
			ai.Refused, 1},
		{"a call that is none", []aitest.Behaviour{clumsy, ok}, "", 2},
		{"nothing but such calls", []aitest.Behaviour{clumsy, clumsy, ok}, ai.Malformed, 2},
		{"a quota that is soon free", []aitest.Behaviour{{Status: 429, Code: "0.01s"}, ok}, "", 2},
		{"a quota that is not", []aitest.Behaviour{{Status: 429, Code: "37s"}}, ai.RateLimited, 1},
		{"forbidden", []aitest.Behaviour{{Status: 403}}, ai.Config, 1},
		{"too late", []aitest.Behaviour{{Status: 504}, ok}, "", 2},
		{"too long",
			[]aitest.Behaviour{{Status: 400, Message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}},
			ai.TooLong, 1},
		{"an error in a list",
			[]aitest.Behaviour{{Status: 400, Raw: `[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`}, ok},
			"", 2},
	} {
		s := geminitest.New(t)
		s.Script(c.script...)
		_, err := client(t, s, 0).Model(geminitest.Lite).Generate(t.Context(), ask("x"), resttest.Ignore)
		if ai.KindOf(err) != c.want || (err != nil) != (c.want != "") || s.Count() != c.asked {
			t.Errorf("%s: got %v, asked %d times; want %q, %d", c.name, err, s.Count(), c.want, c.asked)
		}
	}
}

func TestFinishes(t *testing.T) {
	s := geminitest.New(t)
	m := client(t, s, 0).Model(geminitest.Flash)
	if _, err := m.Generate(t.Context(), ask("x"), resttest.Ignore); err != nil { // it learns how to limit thinking
		t.Fatal(err)
	}
	for _, f := range []ai.Finish{ai.Stop, ai.Length, ai.Filtered} {
		s.Script(aitest.Behaviour{Text: "Half a", Finish: f})
		r, err := m.Generate(t.Context(), ask("x"), resttest.Ignore)
		if err != nil || r.Finish != f || r.Text != "Half a" {
			t.Errorf("%q: got %+v, %v", f, r, err)
		}
		if want := (ai.Usage{In: resttest.Tokens("Be kind."), Out: resttest.Tokens("Half a") + 7, Cached: 1}); r.Usage != want {
			t.Errorf("used %+v, want %+v", r.Usage, want)
		}
	}
	for _, why := range []string{"RECITATION", "SPII", "BLOCKLIST", "LANGUAGE", "A_NEW_ONE"} {
		s.Script(aitest.Behaviour{Raw: event(fmt.Sprintf(`{"candidates":[{"finishReason":%q}]}`, why))})
		if r, err := m.Generate(t.Context(), ask("x"), resttest.Ignore); err != nil || r.Finish != ai.Filtered {
			t.Errorf("%s: got %+v, %v", why, r, err)
		}
	}
}

// A model is told to think as little as it can, in the way that its earlier answers have shown to work.
func TestLearns(t *testing.T) {
	for _, c := range []struct {
		model, level string
		budget       bool
		asked        int // the first time
	}{
		{geminitest.Lite, "minimal", false, 1}, {geminitest.Flash, "low", false, 2}, {geminitest.Old, "", true, 3},
	} {
		s := geminitest.New(t)
		m := client(t, s, 0).Model(c.model)
		for round := range 2 {
			if _, err := m.Generate(t.Context(), ask("x"), resttest.Ignore); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[round]
			if s.Count() != c.asked+round || got.Level != c.level || (got.Budget != nil) != c.budget {
				t.Errorf("%s, round %d: asked %d times, %s", c.model, round, s.Count(), got.Body)
			}
		}
	}
}

// Calls are sent back with the id and the signature that they came with; calls of another model with a placeholder.
func TestSignatures(t *testing.T) {
	s := geminitest.New(t)
	m := client(t, s, 0).Model(geminitest.Flash)
	req := ask("call a with {\"x\":1} and call b with {}")
	req.Tools = []ai.Tool{{Name: "a"}, {Name: "b"}}
	turn := func(r ai.Reply) {
		req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Text: r.Text, Calls: slices.Clone(r.Calls)})
		for i := range r.Calls {
			id := fmt.Sprint("ours", len(req.Messages), i) // in the form of agent.Trim's ids
			req.Messages[len(req.Messages)-1-i].Calls[i].ID = id
			req.Messages = append(req.Messages, ai.Message{Role: ai.ToolRole, CallID: id, Text: `{"n":12}`})
		}
	}
	first, err := m.Generate(t.Context(), req, resttest.Ignore)
	if err != nil || len(first.Calls) != 2 {
		t.Fatalf("got %+v, %v", first, err)
	}
	turn(first)
	before := s.Count()
	second, err := m.Generate(t.Context(), req, resttest.Ignore)
	if err != nil || second.Text != `The tool answered: {"n":12}; {"n":12}` || s.Count() != before+1 {
		t.Fatalf("got %+v, %v, asked %d times", second, err, s.Count()-before)
	}
	last := func() Request { list := s.Requests(); return Request(list[len(list)-1]) }
	if got := last().Signatures; len(got) != 2 || got[0] == "" || got[0] == unknown || got[1] != "" {
		t.Errorf("signed %q", got)
	}

	for name, foreign := range map[string]string{"none": "", "another vendor's": `{"vendor":"x","signature":"eA=="}`,
		"another account's": `{"vendor":"gemini","id":"fn-9","signature":"eA=="}`} {
		req = ask("go")
		req.Tools = []ai.Tool{{Name: "a"}}
		turn(ai.Reply{Calls: []ai.ToolCall{{Name: "a", Arguments: "{}", Seal: foreign}}})
		r, err := m.Generate(t.Context(), req, resttest.Ignore)
		if got := last().Signatures; err != nil || r.Text == "" || len(got) != 1 || got[0] != unknown {
			t.Errorf("%s: got %+v, %v, signed %q", name, r, err, got)
		}
	}
}

// Request is short for geminitest's.
type Request geminitest.Request

// The API takes a conversation of any shape.
func TestContents(t *testing.T) {
	call := func(ids ...string) (m ai.Message) {
		m.Role = ai.Assistant
		for _, id := range ids {
			m.Calls = append(m.Calls, ai.ToolCall{ID: id, Name: "odd name!", Arguments: "not json"})
		}
		return m
	}
	said := func(r ai.Role, text string) ai.Message { return ai.Message{Role: r, Text: text} }
	result := func(id, text string) ai.Message { return ai.Message{Role: ai.ToolRole, CallID: id, Text: text} }
	s := geminitest.New(t)
	m := client(t, s, 0).Model(geminitest.Lite)
	for i, c := range []struct {
		list []ai.Message
		want string
	}{
		{[]ai.Message{said(ai.User, "a"), said(ai.User, "b"), said(ai.Assistant, "c"), said(ai.Assistant, "d"),
			said(ai.User, "e")}, "user ab|assistant cd|user e"},
		{[]ai.Message{said(ai.Assistant, "Welcome."), said(ai.User, "Hi")},
			"user " + opening + "|assistant Welcome.|user Hi"},
		{[]ai.Message{said(ai.User, "Hi"), said(ai.Assistant, "Yes?")}, "user Hi|assistant Yes?|user " + closing},
		{[]ai.Message{said(ai.User, " \n"), said(ai.Assistant, "")}, "user " + opening},
		{[]ai.Message{said(ai.User, "go"), call("1", "2"), result("1", "12"), result("2", "13"), said(ai.User, "and?")},
			"user go|assistant |tool 12|tool 13|user and?"},
		{[]ai.Message{call("1"), result("1", ""), said(ai.Assistant, "so"), call("2"), result("2", `{"b":1}`)},
			"user " + opening + `|assistant |tool |assistant so|tool {"b":1}`},
	} {
		req := ai.Request{Messages: c.list, Tools: []ai.Tool{{Name: "odd name!"}}}
		if _, err := m.Generate(t.Context(), req, resttest.Ignore); err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		var got []string
		requests := s.Requests()
		for _, m := range requests[len(requests)-1].Messages {
			got = append(got, string(m.Role)+" "+m.Text)
		}
		if so := strings.Join(got, "|"); so != c.want {
			t.Errorf("%d: got %s, want %s", i, so, c.want)
		}
	}
}

// A schema that is too complex for the API goes into the prompt, this time only.
func TestSchemaInWords(t *testing.T) {
	s := geminitest.New(t)
	m := client(t, s, 0).Model(geminitest.Lite)
	for i, n := range []int{70, 1} {
		properties := map[string]any{}
		for k := range n {
			properties[fmt.Sprintf("item_%d", k)] = map[string]any{"type": "string"}
		}
		raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		req := ask("x")
		req.Schema = &ai.Schema{Name: "x", JSON: raw}
		if _, err := m.Generate(t.Context(), req, resttest.Ignore); err != nil {
			t.Fatal(err)
		}
		if got := s.Requests()[i]; strings.Contains(got.System, "item_0") != (i == 0) || (got.Schema == nil) != (i == 0) {
			t.Errorf("%d: asked %s", i, got.Body)
		}
	}
}

// What Gemini has no word for stands in the description, also of a reply's schema.
func TestSchemaInItsWords(t *testing.T) {
	s := geminitest.New(t)
	req := ask("x")
	req.Schema = &ai.Schema{Name: "x", JSON: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string","pattern":"^[A-Z]$"}}}`)}
	if _, err := client(t, s, 0).Model(geminitest.Lite).Generate(t.Context(), req, resttest.Ignore); err != nil {
		t.Fatal(err)
	}
	if got := string(s.Requests()[0].Body); strings.Contains(got, `"pattern":"`) || !strings.Contains(got, "[A-Z]") {
		t.Errorf("asked for %s", got)
	}
}

func TestKeyAndModel(t *testing.T) {
	s := geminitest.New(t)
	t.Setenv("GEMINI_API_KEY", geminitest.Key)
	for key, model := range map[string]string{"wr0ng-key": geminitest.Lite, geminitest.Key: "none"} {
		c, err := Open(Config{BaseURL: s.URL + "/v1beta/", APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Model(model).Generate(t.Context(), ask("x"), resttest.Ignore)
		if ai.KindOf(err) != ai.Config || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", model, err)
		}
	}
	if _, err := Open(Config{BaseURL: "nonsense"}); err == nil {
		t.Error("a base URL that is none was accepted")
	}
}

func TestDoctor(t *testing.T) {
	s := geminitest.New(t)
	for name, c := range map[string]struct {
		set  Settings
		want string
	}{
		"all is well": {Settings{APIKey: geminitest.Key, BaseURL: s.URL, Model: []string{"models/" + geminitest.Lite}},
			"ok|answers; " + geminitest.Lite},
		"another is well": {Settings{APIKey: geminitest.Key, BaseURL: s.URL, Model: []string{geminitest.Lite}, Live: []string{geminitest.Live}},
			"ok|" + geminitest.Live + " hear"},
		"not that one": {Settings{APIKey: geminitest.Key, BaseURL: s.URL, Model: []string{geminitest.Lite}, Live: []string{"other"}},
			"FAIL|no model other: set PARLEY_GEMINI_LIVE_MODEL"},
		"not configured": {Settings{}, "note|PARLEY_GEMINI_API_KEY"},
		"a wrong key":    {Settings{APIKey: "wr0ng", BaseURL: s.URL}, "FAIL|PARLEY_GEMINI_API_KEY"},
		"no such model":  {Settings{APIKey: geminitest.Key, BaseURL: s.URL}, "FAIL|no model gemini-3.5-flash-lite: set PARLEY_GEMINI_MODEL"},
		"nobody there":   {Settings{APIKey: "k", BaseURL: "http://127.0.0.1:1"}, "FAIL|PARLEY_GEMINI_BASE_URL"},
		"no URL":         {Settings{BaseURL: "nonsense"}, "FAIL|PARLEY_GEMINI_BASE_URL"},
	} {
		list := Declare(&c.set).Check(t.Context())
		state, text, _ := strings.Cut(c.want, "|")
		said := func(f parley.Finding) bool { return f.State == state && strings.Contains(f.Text, text) }
		if len(list) > 2 || !slices.ContainsFunc(list, said) || strings.Contains(fmt.Sprint(list), "wr0ng") {
			t.Errorf("%s: got %+v, want %s", name, list, c.want)
		}
	}
}

func TestDeclared(t *testing.T) {
	if v := Declare(&Settings{}); len(v.Models()) != 0 {
		t.Errorf("without a key there are %v", v.Models())
	}
	v := Declare(&Settings{APIKey: "k"})
	if list := v.Models(); len(list) != 4 || list[0].Kind != parley.LLM || list[0].Code != "gemini-3.5-flash-lite" ||
		list[2].Kind != parley.Multimodal || list[3].Kind != parley.Dualplex || list[3].Code != "gemini-3.8-live" {
		t.Errorf("got %v", list)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzStream reads anything that a server may send.
func FuzzStream(f *testing.F) {
	f.Add([]byte(event(`{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"b","args":{"c":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}`)))
	f.Add([]byte(event(`{"error":{"code":"x"}}`) + "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":null}]}}]}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := open(Config{BaseURL: "http://model.test"}, roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		rd := rest.NewReading(func(d ai.Delta) error { text.WriteString(d.Text); return nil })
		in := &reading{Reading: rd}
		err = c.rest.Post(t.Context(), "/v1beta/x", struct{}{}, in.take, rd.Seen)
		if err == nil {
			err = rd.End(nil)
		}
		if r := rd.Reply(); r.Text != text.String() || err == nil && r.Finish == "" {
			t.Errorf("reply %+v, yielded %q, %v", r, text.String(), err)
		}
		if err != nil && ai.KindOf(err) == "" && !errors.Is(err, context.Canceled) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}
