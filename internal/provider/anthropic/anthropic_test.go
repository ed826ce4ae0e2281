package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/provider/anthropic/anthropictest"
	"parley/internal/provider/rest"
	"parley/internal/provider/rest/resttest"
)

func client(t *testing.T, s *anthropictest.Server, stall time.Duration) *Client {
	t.Helper()
	c, err := Open(Config{BaseURL: s.URL, APIKey: anthropictest.Key, Stall: stall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ask(text string) ai.Request { return resttest.Ask(text) }

func TestConforms(t *testing.T) {
	for _, model := range []string{anthropictest.Quick, anthropictest.Plain, anthropictest.Deep} {
		t.Run(model, func(t *testing.T) {
			s := anthropictest.New(t)
			aitest.Conform(t, client(t, s, 0).Model(model))
		})
	}
}

func TestFails(t *testing.T) {
	resttest.Conform(t, func(t *testing.T, stall time.Duration) (*resttest.Server, ai.Model) {
		s := anthropictest.New(t)
		return s.Server, client(t, s, stall).Model(anthropictest.Plain)
	})
}

func TestFailuresOfItsOwn(t *testing.T) {
	ok := aitest.Behaviour{Text: "Fine."}
	for _, c := range []struct {
		name   string
		script []aitest.Behaviour
		want   ai.Kind
		asked  int
	}{
		{"529", []aitest.Behaviour{{Status: 529}, ok}, "", 2},
		{"529 for good", []aitest.Behaviour{{Status: 529}, {Status: 529}, {Status: 529}}, ai.Overloaded, 3},
		{"no credit", []aitest.Behaviour{{Status: 400, Message: "Your credit balance is too low to access the Anthropic API."}},
			ai.Config, 1},
		{"billing", []aitest.Behaviour{{Status: 402}}, ai.Config, 1},
		{"forbidden", []aitest.Behaviour{{Status: 403}}, ai.Config, 1},
		{"too long", []aitest.Behaviour{{Status: 400, Message: "prompt is too long: 208310 tokens > 200000 maximum"}},
			ai.TooLong, 1},
		{"a rate limit in the stream",
			[]aitest.Behaviour{{Raw: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n"},
				ok},
			"", 2},
		{"arguments of no call",
			[]aitest.Behaviour{
				{Raw: "event: content_block_delta\n" +
					"data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n"}},
			ai.Malformed, 1},
	} {
		s := anthropictest.New(t)
		s.Script(c.script...)
		_, err := client(t, s, 0).Model(anthropictest.Plain).Generate(t.Context(), ask("x"), resttest.Ignore)
		if ai.KindOf(err) != c.want || (err != nil) != (c.want != "") || s.Count() != c.asked {
			t.Errorf("%s: got %v, asked %d times; want %q, %d", c.name, err, s.Count(), c.want, c.asked)
		}
	}
}

func TestFinishes(t *testing.T) {
	s := anthropictest.New(t)
	m := client(t, s, 0).Model(anthropictest.Plain)
	for _, f := range []ai.Finish{ai.Stop, ai.Length, ai.Filtered} {
		s.Script(aitest.Behaviour{Text: "Half a", Finish: f})
		if r, err := m.Generate(t.Context(), ask("x"), resttest.Ignore); err != nil || r.Finish != f {
			t.Errorf("%q: got %+v, %v", f, r, err)
		}
	}
}

// A field that a model refuses is left out, and not sent again.
func TestLearns(t *testing.T) {
	half := 0.5
	for _, c := range []struct {
		model            string
		asked            int // the first time
		thinking, effort string
		warm             bool
	}{
		{anthropictest.Quick, 1, "disabled", "", true},
		{anthropictest.Plain, 2, "disabled", "", false},
		{anthropictest.Deep, 3, "", "low", false},
	} {
		s := anthropictest.New(t)
		m := client(t, s, 0).Model(c.model)
		for round := range 2 {
			req := ask("x")
			req.Temperature = &half
			if _, err := m.Generate(t.Context(), req, resttest.Ignore); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()[round]
			if s.Count() != c.asked+round || got.Thinking != c.thinking || got.Effort != c.effort ||
				(got.Temperature != nil) != c.warm {
				t.Errorf("%s, round %d: asked %d times, %s", c.model, round, s.Count(), got.Body)
			}
		}
	}
}

// The thoughts of a model before a tool call are sent back with the result if the model thinks; thoughts that it
// refuses are not.
func TestThoughts(t *testing.T) {
	s := anthropictest.New(t)
	c := client(t, s, 0)
	req := ask("call a with {\"x\":1} and call b with {}")
	req.Tools = []ai.Tool{{Name: "a"}, {Name: "b"}}
	first, err := c.Model(anthropictest.Deep).Generate(t.Context(), req, resttest.Ignore)
	if err != nil || len(first.Calls) != 2 || first.Calls[0].Seal == "" || first.Calls[1].Seal != "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	for name, c := range map[string]struct {
		model       ai.Model
		seal        string
		back, asked int
	}{
		"its own":             {c.Model(anthropictest.Deep), first.Calls[0].Seal, 1, 1},
		"another account's":   {c.Model(anthropictest.Deep), strings.Replace(first.Calls[0].Seal, "c2ln", "eHh4", 1), 0, 2},
		"another vendor's":    {c.Model(anthropictest.Deep), `{"vendor":"gemini","thoughts":[{"type":"thinking"}]}`, 0, 1},
		"none":                {c.Model(anthropictest.Deep), "", 0, 1},
		"one that thinks not": {c.Model(anthropictest.Plain), first.Calls[0].Seal, 0, 1},
	} {
		calls := append([]ai.ToolCall(nil), first.Calls...)
		calls[0].Seal = c.seal
		with := req
		with.Messages = append(append([]ai.Message(nil), req.Messages...),
			ai.Message{Role: ai.Assistant, Text: "Let me see.", Calls: calls},
			ai.Message{Role: ai.ToolRole, CallID: calls[0].ID, Text: "12"},
			ai.Message{Role: ai.ToolRole, CallID: calls[1].ID, Text: "13"})
		before := s.Count()
		r, err := c.model.Generate(t.Context(), with, resttest.Ignore)
		requests := s.Requests()
		if got := requests[len(requests)-1]; err != nil || r.Text != "The tool answered: 12; 13" ||
			got.Thoughts != c.back || s.Count()-before != c.asked {
			t.Errorf("%s: got %q, %v, asked %d times, %s", name, r.Text, err, s.Count()-before, got.Body)
		}
	}
}

// A schema that is too complex for the API goes into the prompt, this time only.
func TestSchemaInWords(t *testing.T) {
	s := anthropictest.New(t)
	m := client(t, s, 0).Model(anthropictest.Plain)
	properties := map[string]any{}
	for i := range 20 {
		properties[fmt.Sprintf("item_%d", i)] = map[string]any{"type": []string{"string", "null"}}
	}
	schema := func(properties map[string]any) *ai.Schema {
		raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties,
			"additionalProperties": false})
		if err != nil {
			t.Fatal(err)
		}
		return &ai.Schema{Name: "x", JSON: raw}
	}
	for i, sch := range []*ai.Schema{schema(properties), schema(map[string]any{"item_1": properties["item_1"]})} {
		req := ask("x")
		req.Schema = sch
		if _, err := m.Generate(t.Context(), req, resttest.Ignore); err != nil {
			t.Fatal(err)
		}
		got := s.Requests()[i]
		if inWords := strings.Contains(got.System, "item_1"); inWords != (i == 0) || (got.Schema == nil) != (i == 0) {
			t.Errorf("%d: asked %s", i, got.Body)
		}
		if got.Marks != 0 {
			t.Errorf("%d: what is asked once is stored in the cache", i)
		}
	}
}

// The API takes a conversation of any shape.
func TestMessages(t *testing.T) {
	call := func(id string) ai.Message {
		return ai.Message{Role: ai.Assistant, Calls: []ai.ToolCall{{ID: id, Name: "odd name!", Arguments: "not json"}}}
	}
	said := func(r ai.Role, text string) ai.Message { return ai.Message{Role: r, Text: text} }
	s := anthropictest.New(t)
	m := client(t, s, 0).Model(anthropictest.Plain)
	for i, c := range []struct {
		list []ai.Message
		want string // the roles and texts that arrive
	}{
		{[]ai.Message{said(ai.User, "a"), said(ai.User, "b"), said(ai.Assistant, "c"), said(ai.Assistant, "d"),
			said(ai.User, "e")}, "user ab|assistant cd|user e"},
		{[]ai.Message{said(ai.Assistant, "Welcome."), said(ai.User, "Hi")},
			"user " + opening + "|assistant Welcome.|user Hi"},
		{[]ai.Message{said(ai.User, "Hi"), said(ai.Assistant, "Yes? ")}, "user Hi|assistant Yes? |user " + closing},
		{[]ai.Message{said(ai.User, " \n"), said(ai.Assistant, "")}, "user " + opening},
		{nil, "user " + opening},
		{[]ai.Message{said(ai.User, "go"), call("1"), {Role: ai.ToolRole, CallID: "1", Text: "12"},
			said(ai.User, "and?")}, "user go|assistant |tool 12|user and?"},
		{[]ai.Message{call("1"), {Role: ai.ToolRole, CallID: "1", Text: ""}, said(ai.Assistant, "so"), call("2"),
			{Role: ai.ToolRole, CallID: "2", Text: "13"}}, "user " + opening + "|assistant |tool |assistant so|tool 13"},
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

// What a request has in common with the one before it comes from the cache, and the usage shows that.
func TestCache(t *testing.T) {
	s := anthropictest.New(t)
	m := client(t, s, 0).Model(anthropictest.Plain)
	req := ask("one")
	req.Tools = []ai.Tool{{Name: "a"}, {Name: "b"}}
	first, err := m.Generate(t.Context(), req, resttest.Ignore)
	if err != nil || first.Usage.Stored == 0 || first.Usage.Cached != 0 || first.Usage.In <= first.Usage.Stored-1 {
		t.Fatalf("got %+v, %v", first.Usage, err)
	}
	req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Text: first.Text},
		ai.Message{Role: ai.User, Text: "two"})
	second, err := m.Generate(t.Context(), req, resttest.Ignore)
	if err != nil || second.Usage.Cached < first.Usage.Stored || second.Usage.In <= second.Usage.Cached {
		t.Fatalf("got %+v after %+v, %v", second.Usage, first.Usage, err)
	}
	if n := s.Requests()[0].Marks; n != 3 {
		t.Errorf("%d marks", n)
	}
}

func TestKeyAndModel(t *testing.T) {
	s := anthropictest.New(t)
	t.Setenv("ANTHROPIC_API_KEY", anthropictest.Key)
	for key, model := range map[string]string{"sk-wrong": anthropictest.Plain, anthropictest.Key: "none"} {
		c, err := Open(Config{BaseURL: s.URL + "/v1/", APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Model(model).Generate(t.Context(), ask("x"), resttest.Ignore)
		if ai.KindOf(err) != ai.Config || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", model, err)
		}
	}
	for _, u := range []string{"ftp://x", "nonsense", "http://", "http://[::1", "/v1"} {
		if _, err := Open(Config{BaseURL: u}); err == nil {
			t.Errorf("%q was accepted", u)
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	s := anthropictest.New(t)
	c := client(t, s, 0)
	dials := 0
	tr := c.rest.HTTP.Transport.(*http.Transport)
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return dial(ctx, network, addr)
	}
	for range 20 {
		if _, err := c.Model(anthropictest.Plain).Generate(t.Context(), ask("x"), resttest.Ignore); err != nil {
			t.Fatal(err)
		}
	}
	if dials != 1 {
		t.Errorf("%d connections for 20 replies, one after the other", dials)
	}
}

func TestDoctor(t *testing.T) {
	s := anthropictest.New(t)
	good := Settings{APIKey: anthropictest.Key, BaseURL: s.URL, Model: []string{anthropictest.Plain}}
	for name, c := range map[string]struct {
		change func(*Settings)
		want   string
	}{
		"all is well":    {func(*Settings) {}, "ok|answers; " + anthropictest.Plain},
		"not configured": {func(s *Settings) { *s = Settings{} }, "note|PARLEY_ANTHROPIC_API_KEY"},
		"a wrong key":    {func(s *Settings) { s.APIKey = "wr0ng" }, "FAIL|PARLEY_ANTHROPIC_API_KEY"},
		"no such model":  {func(s *Settings) { s.Model = append(s.Model, "none") }, "FAIL|no model none: set PARLEY_ANTHROPIC_MODEL"},
		"nobody there":   {func(s *Settings) { s.BaseURL = "http://127.0.0.1:1" }, "FAIL|PARLEY_ANTHROPIC_BASE_URL"},
		"no URL":         {func(s *Settings) { s.BaseURL = "nonsense" }, "FAIL|PARLEY_ANTHROPIC_BASE_URL"},
	} {
		s := good
		s.Model = append([]string(nil), good.Model...)
		c.change(&s)
		list := Declare(&s).Check(t.Context())
		state, text, _ := strings.Cut(c.want, "|")
		if len(list) != 1 || list[0].State != state || !strings.Contains(list[0].Text, text) ||
			strings.Contains(list[0].Text, "wr0ng") {
			t.Errorf("%s: got %+v, want %s", name, list, c.want)
		}
	}
}

// A server that takes connections and says nothing is reported when the doctor's time is up.
func TestDoctorOfTheSilent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	list := Declare(&Settings{APIKey: "k", BaseURL: "http://" + ln.Addr().String()}).Check(ctx)
	if len(list) != 1 || list[0].State != "FAIL" || !strings.Contains(list[0].Text, "does not answer: check PARLEY_ANTHROPIC_BASE_URL") {
		t.Errorf("got %+v", list)
	}
}

func TestDeclared(t *testing.T) {
	if v := Declare(&Settings{}); len(v.Models()) != 0 {
		t.Errorf("without a key there are %v", v.Models())
	}
	v := Declare(&Settings{APIKey: "k"})
	if list := v.Models(); len(list) != 2 || list[0].Kind != parley.LLM || list[0].Code != "claude-haiku-5-5" {
		t.Errorf("got %v", list)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzStream reads anything that a server may send.
func FuzzStream(f *testing.F) {
	f.Add([]byte("event: content_block_start\n" +
		"data: {\"type\":\"content_block_start\",\"index\":0," +
		"\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"b\",\"input\":{}}}\n\n" +
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n" +
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":3}}\n\n" +
		"data: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte("event: ping\r\ndata: {}\r\n\r\n: x\ndata: {\"type\":\"content_block_delta\",\n" +
		"data: \"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n"))
	f.Add([]byte("data: {\"type\":\"error\",\"error\":5}\n\n"))
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
		in := &reading{Reading: rd, open: map[int]*rest.Call{}}
		err = c.rest.Post(t.Context(), "/v1/messages", struct{}{}, in.take, rd.Seen)
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
