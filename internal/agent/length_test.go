package agent

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/provider/anthropic"
	"parley/internal/provider/anthropic/anthropictest"
	"parley/internal/provider/gemini"
	"parley/internal/provider/gemini/geminitest"
	"parley/internal/provider/openai"
)

// narrow stands before a vendor's server and refuses requests of more than so many bytes, in the vendor's words; %d is
// what a request has and what the model takes, in tokens.
type narrow struct {
	url string

	mu      sync.Mutex
	refused int
	taken   []string // the requests that went through
}

func narrowed(t *testing.T, server string, most, status int, refusal string) *narrow {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	n := &narrow{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(body) > most {
			n.refused++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if strings.Contains(refusal, "%") {
				fmt.Fprintf(w, refusal, len(body)/4, most/4)
			} else {
				io.WriteString(w, refusal)
			}
			return
		}
		n.taken = append(n.taken, string(body))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	n.url = s.URL + to.Path
	return n
}

// A conversation that has become more than its model takes goes on, with every vendor: what tools answered is
// shortened, older turns are left out, and the request is made once more.
func TestTooLongGoesOn(t *testing.T) {
	const most = 24 << 10 // bytes
	oa := aitest.NewServer(t).URL
	openAI := func(url string) (ai.Model, error) {
		c, err := openai.Open(openai.Config{BaseURL: url})
		return c.Model(aitest.ModelName), err
	}
	for name, c := range map[string]struct {
		server  string
		model   func(url string) (ai.Model, error)
		status  int
		refusal string
	}{
		"OpenAI": {oa, openAI, 400, `{"error":{"message":"This model's maximum context length is %[2]d tokens. However, your messages resulted in %[1]d tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
		"OpenAI, newer": {oa, openAI, 400,
			`{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`},
		"vLLM": {oa, openAI, 400,
			`{"object":"error","message":"This model's maximum context length is %[2]d tokens. However, you requested %[1]d tokens in the messages.","type":"BadRequestError","param":null,"code":400}`},
		"llama.cpp": {oa, openAI, 400,
			`{"error":{"code":400,"message":"request (%d tokens) exceeds the available context size (%d tokens), try increasing it","type":"exceed_context_size_error"}}`},
		"llama.cpp, older": {oa, openAI, 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}}`},
		"Ollama": {oa, openAI, 400,
			`{"error":{"message":"prompt too long; exceeded max context length by 90 tokens","type":"api_error","param":null,"code":null}}`},
		"a proxy": {oa, openAI, 413, `<html>413 Request Entity Too Large</html>`},
		"Anthropic": {anthropictest.New(t).URL, func(url string) (ai.Model, error) {
			c, err := anthropic.Open(anthropic.Config{BaseURL: url, APIKey: anthropictest.Key})
			return c.Model(anthropictest.Plain), err
		}, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: %d tokens > %d maximum"}}`},
		"Gemini": {geminitest.New(t).URL, func(url string) (ai.Model, error) {
			c, err := gemini.Open(gemini.Config{BaseURL: url, APIKey: geminitest.Key})
			return c.Model(geminitest.Lite), err
		}, 400, `{"error":{"code":400,"message":"The input token count (%d) exceeds the maximum number of tokens allowed (%d).","status":"INVALID_ARGUMENT"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			n := narrowed(t, c.server, most, c.status, c.refusal)
			m, err := c.model(n.url)
			if err != nil {
				t.Fatal(err)
			}
			var history []ai.Message
			for i := range 60 {
				history = append(history, user(fmt.Sprintf("Question %d: %s", i, strings.Repeat("and what then? ", 25)))...)
				history = append(history, Replay("Answer.", []ToolCall{{Name: "look", Arguments: written("{}"),
					Result: strings.Repeat("row ", 100)}})...)
			}
			history = append(history, user("My name is Ana Ruiz and I order seven.")...)
			turn := Turn{Model: m, System: "Be kind.", History: history, Tools: []Tool{tool("look", returns("x"))}}
			r, err := turn.Run(t.Context())
			if err != nil || !strings.Contains(r.Text, "Ana Ruiz") {
				t.Fatalf("got %+v, %v", r, err)
			}
			if n.refused != 1 || len(n.taken) != 1 || !strings.Contains(n.taken[0], "Answer.") {
				t.Errorf("refused %d times, took %.300q", n.refused, n.taken)
			}
		})
	}
	// What is too long by itself is told to the customer.
	n := narrowed(t, oa, 2000, 400, `{"error":{"message":"too many tokens"}}`)
	m, err := openAI(n.url)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Turn{Model: m, System: strings.Repeat("Be kind. ", 1000), History: user("Hi")}).Run(t.Context())
	if ai.KindOf(err) != ai.TooLong || n.refused != 1 {
		t.Errorf("%d tries, %v", n.refused, err)
	}
	// A transcript is read by its end.
	n = narrowed(t, oa, most, 400, `{"error":{"message":"request (%d tokens) exceeds the available context size (%d tokens)"}}`)
	if m, err = openAI(n.url); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("Customer: Nothing yet.\n", 3000) + "Customer: My name is Ana Ruiz."
	if s, err := Summarize(t.Context(), m, text, "", "en"); err != nil || n.refused != 1 || !strings.Contains(n.taken[0], "Ana Ruiz") {
		t.Errorf("the summary is %q, %v", s, err)
	}
}

// An answer of 64 KB leaves room for the customer's own words.
func TestLongResults(t *testing.T) {
	long := strings.Repeat("0123456789 wörd ", 4096)
	call := []ToolCall{{Name: "look", Arguments: written("{}"), Result: "head " + long + " tail"}}
	var history []ai.Message
	for i := range 5 {
		history = append(history, user(fmt.Sprintf("My order is number %d.", i))...)
		history = append(history, Replay("", call)...)
	}
	got := Trim(history, DefaultBudget)
	sound(t, got)
	if len(got) != len(history) || size(got) > DefaultBudget {
		t.Errorf("%d of %d messages are left, %d tokens", len(got), len(history), size(got))
	}
	for i, m := range got {
		if m.Role == ai.ToolRole && (!strings.HasPrefix(m.Text, "head 0123") || !strings.HasSuffix(m.Text, " tail") ||
			!strings.Contains(m.Text, "characters are left out here")) {
			t.Errorf("message %d is %.100q", i, m.Text)
		}
	}
	older, latest := len(got[2].Text), len(got[len(got)-1].Text)
	if latest < 3*older || latest < 8000 {
		t.Errorf("the latest has %d bytes, an older one %d", latest, older)
	}
	for _, tokens := range []int{200, 1000, 5000} {
		for _, text := range []string{long, strings.Repeat("語", 20_000), strings.Repeat("a", 30_000)} {
			if n := Tokens(Shorten(text, tokens)); n > tokens || n < tokens*9/10 {
				t.Errorf("%d tokens of %d", n, tokens)
			}
		}
	}
	// A session that hears and speaks keeps what it is told, so it gets less.
	records, _, err := (&Turn{Tools: []Tool{tool("look", returns(long))}}).Call(t.Context(),
		[]ai.ToolCall{{ID: "1", Name: "look", Arguments: `{"n":1}`}})
	if err != nil || Tokens(records[0].Result) > sessionResult || !strings.Contains(records[0].Result, "left out here") {
		t.Errorf("a session is told %d tokens, %v", Tokens(records[0].Result), err)
	}
	if Shorten("short", 200) != "short" {
		t.Error("what is short was changed")
	}
}
