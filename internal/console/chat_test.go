package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/auth"
	"parley/internal/chat"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/tool"
)

// think gives a console's assistants a model and a chat.
func think(t *testing.T, c *Config) *aitest.Server {
	t.Helper()
	model := aitest.NewServer(t)
	model.Models = []string{"gpt-6-luna"}
	providers, err := provider.Open(provider.All(openai.Declare(&openai.Settings{BaseURL: model.URL,
		Stall: 10 * time.Second})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(providers.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	t.Cleanup(guard.Close)
	c.Assistants.Providers, c.Assistants.Tools, c.Hub = providers, tool.New(guard), event.NewHub()
	c.Chat = chat.New(chat.Config{DB: c.DB, Assistants: c.Assistants, Prices: c.Prices, Hub: c.Hub})
	t.Cleanup(func() {
		gone, cut := context.WithCancel(context.Background())
		cut()
		c.Chat.Stop(gone)
	})
	return model
}

// talk starts a conversation.
func (h *harness) talk(t *testing.T, a *parley.Assistant, kind parley.ConversationType) *parley.Conversation {
	t.Helper()
	conv, _, err := h.Chat.Start(t.Context(), a, kind, map[string]string{"company": "Own Bakery"})
	if err != nil {
		t.Fatal(err)
	}
	return conv
}

// say has a customer say something, and waits for the reply.
func (h *harness) say(t *testing.T, conv *parley.Conversation, text string) {
	t.Helper()
	w, err := h.Chat.Send(t.Context(), conv, text)
	if err == nil {
		defer w.Leave()
		_, err = w.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Without scripts the test chat is a form that leads to the conversation, which has a box to write in.
func TestTestChatWithoutScript(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		map[string]any{"status": "inactive", "system_prompt": "Serve {{who}} on {{current_date}}."}); err != nil {
		t.Fatal(err)
	}
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID) + "/talk"
	form := v.get(path).is(http.StatusOK).form(path)
	var names []string
	for _, i := range []string{"0", "1", "2"} {
		if name := form.Get("variables." + i + ".key"); name != "" {
			names = append(names, name)
		}
	}
	if got := strings.Join(names, " "); got != "company who" {
		t.Fatalf("asks for %q", got)
	}
	if got := v.get("/assistants/" + id(a.ID)).doc().Find("#talk input[placeholder='Acme Bakery']").Length(); got != 1 {
		t.Error("the editor's test chat does not show the assistant's own values")
	}
	form.Set("variables.1.value", "Ana")
	at := v.post(path, form).is(http.StatusSeeOther).header.Get("Location")
	conv, err := h.DB.Conversation(t.Context(), u.ID, strings.TrimPrefix(at, "/conversations/"))
	if err != nil || conv.Type != parley.TestConversation || len(conv.Variables) != 1 ||
		conv.Variables["who"] != "Ana" {
		t.Fatalf("%+v %v", conv, err)
	}
	v.get(at).is(http.StatusOK).says("Hello, this is Acme Bakery.")

	h.model.Script(aitest.Behaviour{Text: "Until six."})
	v.post(at+"/say", url.Values{"message": {"How long are\r\nyou open?"}}).moved(at)
	v.get(at).says("How long are\nyou open?").says("Until six.")
	if u, err = h.DB.User(t.Context(), u.ID); err != nil || u.Balance != 5*parley.USD {
		t.Errorf("a test costs: the balance is %v, %v", u.Balance, err)
	}

	// When the model fails, that is shown beside the message.
	h.model.Script(aitest.Behaviour{Status: 400})
	v.post(at+"/say", url.Values{"message": {"Hello?"}}).moved(at)
	v.get(at).says("There was no reply")

	for text, want := range map[string]int{"": 422, " \r\n ": 422, strings.Repeat("ü", maxWords+1): 422} {
		v.post(at+"/say", url.Values{"message": {text}}).is(want)
		v.post(at+"/reply", url.Values{"message": {text}}).is(want)
	}
	// In a real conversation nobody can speak as the customer.
	widget := h.talk(t, a, parley.WidgetConversation)
	v.post("/conversations/"+widget.ID+"/say", url.Values{"message": {"Hi"}}).is(http.StatusForbidden)
}

// streamWait is how long a stream may send no event that a test waits for.
const streamWait = 20 * time.Second

// heard is a parsed event of a stream.
type heard struct {
	kind string
	data map[string]string
}

func (v *visitor) stream(method, path string, form url.Values) (*http.Response, func() (heard, bool)) {
	v.t.Helper()
	req, err := http.NewRequest(method, v.harness.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("HX-Request", "true")
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { res.Body.Close() })
	var rest string
	return res, func() (heard, bool) {
		v.t.Helper()
		var late atomic.Bool
		guard := time.AfterFunc(streamWait, func() { late.Store(true); res.Body.Close() })
		defer guard.Stop()
		for {
			if one, more, ok := strings.Cut(rest, "\n\n"); ok {
				rest = more
				kind, raw, ok := strings.Cut(strings.TrimPrefix(one, "event: "), "\ndata: ")
				if !ok {
					continue // a comment
				}
				e := heard{kind: kind}
				if err := json.Unmarshal([]byte(raw), &e.data); err != nil {
					v.t.Fatalf("%q: %v", one, err)
				}
				return e, true
			}
			b := make([]byte, 4096)
			n, err := res.Body.Read(b)
			rest += string(b[:n])
			if err == io.EOF && n == 0 && !late.Load() {
				return heard{}, false
			}
			if late.Load() {
				v.t.Fatalf("%s sent nothing for %v, but what shows that it is alive", path, streamWait)
			}
			if err != nil && err != io.EOF {
				v.t.Fatal(err)
			}
		}
	}
}

// until reads events up to one that contains some words.
func until(t *testing.T, next func() (heard, bool), kind, words string) heard {
	t.Helper()
	for {
		e, ok := next()
		if !ok {
			t.Fatalf("the stream ended before %s %q", kind, words)
		}
		if e.kind == kind && (words == "" || strings.Contains(
			e.data["html"]+e.data["text"]+e.data["message"]+e.data["version"], words)) {
			return e
		}
	}
}

// A reply appears as it forms: the customer's message, a tool's call, the text, the complete reply, the end.
func TestSayStreams(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	conv := h.talk(t, a, parley.TestConversation)
	v := h.signedIn(t, u)
	at := "/conversations/" + conv.ID
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>`
	h.model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c1", Name: "no_such_tool",
		Arguments: `{"x":"<script>alert(3)</script>"}`}}}, aitest.Behaviour{Text: "Hello " + evil})
	res, next := v.stream("POST", at+"/say", url.Values{"message": {evil}})
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" ||
		res.Header.Get("Content-Security-Policy") == "" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	var text, html strings.Builder
	var kinds []string
	for {
		e, ok := next()
		if !ok {
			break
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != e.kind {
			kinds = append(kinds, e.kind)
		}
		text.WriteString(e.data["text"])
		html.WriteString(e.data["html"])
	}
	if got := strings.Join(kinds, " "); got != "put tool delta put done" {
		t.Errorf("the stream is %s", got)
	}
	if text.String() != "Hello "+evil {
		t.Errorf("the text is %q", text.String())
	}
	if strings.Contains(html.String(), "<script") || strings.Contains(html.String(), "<img") ||
		!strings.Contains(html.String(), "&lt;script&gt;alert(3)") {
		t.Errorf("the pieces are %s", html.String())
	}
	if !strings.Contains(html.String(), `class="tool-call failed"`) {
		t.Error("the failed call does not look failed")
	}

	// The customer's message comes back before the model has a word. Taking over ends the reply, which is not an error.
	h.model.Script(aitest.Behaviour{Fault: aitest.Stall})
	_, next = v.stream("POST", at+"/say", url.Values{"message": {"Hello?"}})
	until(t, next, "put", "Hello?")
	v.post(at+"/ai", url.Values{"on": {"0"}}).moved(at)
	for kind := ""; kind != "done"; {
		e, ok := next()
		if !ok || e.kind == "delta" || e.kind == "error" {
			t.Fatalf("after taking over comes %v %+v", ok, e)
		}
		kind = e.kind
	}
	v.post(at+"/ai", url.Values{"on": {"1"}}).moved(at)

	// When the model fails, the stream ends with an error text, and the message says that it got no reply.
	h.model.Script(aitest.Behaviour{Status: 400})
	_, next = v.stream("POST", at+"/say", url.Values{"message": {"Again"}})
	until(t, next, "put", "There was no reply")
	if e := until(t, next, "error", ""); e.data["message"] == "" {
		t.Error("a failure without words")
	}
	// So does a stream to an assistant that has been silenced.
	v.post(at+"/ai", url.Values{"on": {"0"}}).moved(at)
	_, next = v.stream("POST", at+"/say", url.Values{"message": {"Anybody?"}})
	until(t, next, "error", "a person has taken over")
}

// A test chat has the same limits as one by the API.
func TestTestChatIsLimited(t *testing.T) {
	h := open(t, func(c *Config) {
		c.Create = auth.NewLimiter(auth.Rate{PerSecond: .001, Burst: 2})
		c.Message = auth.NewLimiter(auth.Rate{PerSecond: .001, Burst: 1})
	})
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID) + "/talk"
	at := v.post(path, nil).is(http.StatusSeeOther).header.Get("Location")
	v.post(path, nil).is(http.StatusSeeOther)
	if r := v.post(path, nil).is(http.StatusTooManyRequests); r.header.Get("Retry-After") == "" {
		t.Error("nobody says when to come back")
	}
	v.post(at+"/say", url.Values{"message": {"Hi"}}).moved(at)
	v.post(at+"/say", url.Values{"message": {"Hi"}}).is(http.StatusTooManyRequests)
}

func TestToolCallsShow(t *testing.T) {
	for result, want := range map[string]bool{"Error: no tool": true, "The tool failed with HTTP status 500.": true,
		"The tool was not called: x.": true,
		`{"ok":true}`:                 false, "An Error: of theirs": false, "": false} {
		if got := (parley.FunctionCall{Result: result}).Failed(); got != want {
			t.Errorf("%q failed: %t", result, got)
		}
	}
	for raw, want := range map[string]string{`{"a":[1]}`: "{\n  \"a\": [\n    1\n  ]\n}", "plain": "plain", "": "",
		"{bad": "{bad"} {
		if got := indented(raw); got != want {
			t.Errorf("%q: %q", raw, got)
		}
	}
}
