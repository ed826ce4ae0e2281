package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/internal/ai"
)

// service is a service of the test's, which answers requests as the test wants.
type service struct {
	*program
	asked chan *asking
}

// asking is a request to it.
type asking struct {
	testing.TB
	header http.Header
	object
	w    http.ResponseWriter
	over <-chan struct{} // nobody wants the answer any more
	done chan struct{}   // the answer is whole
}

func newService(t testing.TB) *service {
	s := &service{&program{TB: t}, make(chan *asking, 10)}
	quit := make(chan struct{})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &asking{t, r.Header, object{}, w, r.Context().Done(), make(chan struct{})}
		if err := json.NewDecoder(r.Body).Decode(&a.object); err != nil || r.Method != http.MethodPost || r.URL.String() != "/turn?of=mine" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s of %s: %v", r.Method, r.URL, r.Header, err)
		}
		s.asked <- a
		select {
		case <-a.done:
		case <-quit:
		}
	}))
	o, err := At(ai.Server{URL: far.URL + "/turn?of=mine", Key: "key", Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	s.client = o.Model("").(*Client)
	t.Cleanup(func() {
		close(quit)
		o.Close()
		far.Close()
	})
	return s
}

// next is the next request.
func (s *service) next() *asking {
	s.Helper()
	select {
	case a := <-s.asked:
		return a
	case <-time.After(10 * time.Second):
		s.Fatal("nothing was asked")
		return nil
	}
}

// writes writes a piece of the answer.
func (a *asking) writes(text string) {
	a.w.Header().Set("Content-Type", "text/event-stream")
	_, _ = a.w.Write([]byte(text))
	a.w.(http.Flusher).Flush()
}

// says answers with messages, and then ends.
func (a *asking) says(list ...object) {
	for _, m := range list {
		raw, err := json.Marshal(m)
		if err != nil {
			a.Error(err)
		}
		a.writes("data: " + string(raw) + "\n\n")
	}
	close(a.done)
}

func say(text string) object { return object{"type": "say", "text": text} }

var done = object{"type": "done"}

// part is a part of the request as JSON.
func (a *asking) part(name string) string {
	if a.object[name] == nil {
		return ""
	}
	raw, _ := json.Marshal(a.object[name])
	return string(raw)
}

// Each reply is a request, which has all that the program needs to know; the results of calls are a request too, and the end of the
// conversation.
func TestRequests(t *testing.T) {
	s, ctx := newService(t), in(t, "call 12")
	s.client.Warm(ctx) // there is nothing to ask yet
	req := words("Is there bread?")
	req.System, req.Tools = "You are a baker.", []ai.Tool{{Name: "stock", Description: "What there is"}}
	got := s.ask(ctx, req, 0)
	a := s.next()
	const who = `"assistant":{"id":7,"language":"en","name":"Front desk"},"conversation":"call 12","customer":"+4930123456","protocol":1,` +
		`"resumed":%v,` +
		`"type":"session","variables":{"company":"Acme"}}`
	const tools = `"tools":[{"description":"What there is","name":"stock","parameters":{"properties":{},"type":"object"}}],` +
		`"turn":1,"type":"turn"}`
	for part, want := range map[string]string{"session": "{" + fmt.Sprintf(who, false), "interrupted": "", "results": "", "end": "",
		"turn": `{"messages":[{"role":"user","text":"Is there bread?"}],"prompt":"You are a baker.","text":"Is there bread?",` + tools} {
		if is := a.part(part); is != want {
			t.Errorf("%s is %s, want %s", part, is, want)
		}
	}
	if a.header.Get("Authorization") != "Bearer key" || a.header.Get("Accept") != "text/event-stream" || len(a.object) != 2 {
		t.Errorf("it was asked %v with %v", a.object, a.header)
	}
	a.says(say("Let me see."), object{"type": "call", "calls": []any{object{"name": "stock", "id": "a", "arguments": object{"of": "bread"}}}})
	r := <-got
	if r.err != nil || r.Text != "Let me see." || r.Finish != ai.ToolCalls || len(r.Calls) != 1 ||
		r.Calls[0] != (ai.ToolCall{ID: "a", Name: "stock", Arguments: `{"of":"bread"}`}) {
		t.Fatalf("%+v", r)
	}
	req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Text: r.Text, Calls: r.Calls},
		ai.Message{Role: ai.ToolRole, CallID: "a", Text: "three"})
	got = s.ask(ctx, req, 0)
	a = s.next()
	for part, want := range map[string]string{"session": "{" + fmt.Sprintf(who, true), "interrupted": "",
		"results": `[{"id":"a","text":"three","turn":1,"type":"result"}]`,
		"turn": `{"messages":[{"role":"user","text":"Is there bread?"},{"calls":[{"arguments":{"of":"bread"},"id":"a","name":"stock"}],` +
			`"role":"assistant","text":"Let me see."},{"id":"a","role":"tool","text":"three"}],` +
			`"prompt":"You are a baker.","text":"Is there bread?",` + tools} {
		if is := a.part(part); is != want {
			t.Errorf("%s is %s, want %s", part, is, want)
		}
	}
	a.says(say("There are "), say("three."), object{"type": "done", "usage": object{"in": 3, "out": 2}})
	if r := <-got; r.err != nil || r.Text != "There are three." || len(r.pieces) != 2 ||
		r.Finish != ai.Stop || r.Usage != (ai.Usage{In: 3, Out: 2}) {
		t.Fatalf("%+v", r)
	}
	got = s.ask(ctx, words("Is there bread?", "Let me see. There are", "Stop, bye!"), 0)
	a = s.next()
	if is := a.part("interrupted"); is != `{"heard":"Let me see. There are","turn":1,"type":"interrupted"}` ||
		a.object["turn"].(object)["turn"] != 2.0 {
		t.Errorf("it was asked %v", a.object)
	}
	a.says(object{"type": "end"})
	if r := <-got; r.err != nil || len(r.Calls) != 1 || r.Calls[0].Name != "end_call" {
		t.Errorf("%+v", r)
	}
	s.client.Over("call 12")
	a = s.next()
	if a.part("end") != `{"type":"end","why":"over"}` || a.part("session") != "{"+fmt.Sprintf(who, true) || a.part("turn") != "" {
		t.Errorf("it was told %v", a.object)
	}
	a.says()
}

// A request that nobody wants the answer of any more is closed, and the program sees that; the next turn is asked as ever.
func TestRequestClosed(t *testing.T) {
	s := newService(t)
	for name, stop := range map[string]func(cancel context.CancelCauseFunc) int{
		"enough": func(context.CancelCauseFunc) int { return 1 },
		"cancelled": func(cancel context.CancelCauseFunc) int {
			time.AfterFunc(50*time.Millisecond, func() { cancel(errEnough) })
			return 0
		},
	} {
		ctx, cancel := context.WithCancelCause(in(t, name))
		defer cancel(nil)
		enough := stop(cancel)
		got := s.ask(ctx, words("Hello"), enough)
		a := s.next()
		a.writes("data: " + `{"type":"say","text":"Once "}` + "\n\n")
		if r := <-got; !errors.Is(r.err, errEnough) || enough > 0 && r.Text != "Once " {
			t.Errorf("%s: %+v", name, r)
		}
		select {
		case <-a.over:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the request is still there", name)
		}
		close(a.done)
		got = s.ask(in(t, name), words("Hello", "Once", "Hello again"), 0)
		s.next().says(say("Yes."), done)
		if r := <-got; r.err != nil || r.Text != "Yes." {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A service that breaks off, or breaks the protocol, has failed; the next turn is asked as ever.
func TestRequestBroken(t *testing.T) {
	event := func(text string) func(a *asking) {
		return func(a *asking) { a.writes(text); close(a.done) }
	}
	message := func(m object) func(a *asking) { return func(a *asking) { a.says(m) } }
	status := func(code int) func(a *asking) {
		return func(a *asking) { a.w.WriteHeader(code); event("out of order")(a) }
	}
	for name, c := range map[string]struct {
		does func(a *asking)
		kind ai.Kind
	}{
		"refused": {status(401), ai.Config},
		"failed":  {status(500), ai.Overloaded},
		"busy":    {status(429), ai.RateLimited},
		"no stream": {func(a *asking) {
			a.w.Header().Set("Content-Type", "application/json")
			_, _ = a.w.Write([]byte(`{"type":"done"}`))
			close(a.done)
		}, ai.Malformed},
		"no JSON":      {event("data: hello\n\n"), ai.Malformed},
		"empty":        {event(""), ai.Interrupted},
		"unfinished":   {event("data: {\"type\":\"say\",\"text\":\"So \"}\n\n"), ai.Interrupted},
		"half":         {event("data: {\"type\":\"done\"}\n"), ai.Interrupted},
		"unknown":      {message(object{"type": "sing"}), ai.Malformed},
		"no calls":     {message(object{"type": "call"}), ai.Malformed},
		"its own":      {message(object{"type": "error", "text": "out of order"}), ai.Overloaded},
		"too long":     {message(say(strings.Repeat("a", maxMessage))), ai.Malformed},
		"never so big": {event("data: " + strings.Repeat("a", 2<<20) + "\n\n"), ai.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			got := s.ask(in(t, "call 1"), words("Hello"), 0)
			c.does(s.next())
			if r := <-got; ai.KindOf(r.err) != c.kind || strings.Contains(r.err.Error(), "key") {
				t.Errorf("%q: %v, want %s", ai.KindOf(r.err), r.err, c.kind)
			}
			got = s.ask(in(t, "call 1"), words("Hello"), 0)
			s.next().says(say("Yes."), done)
			if r := <-got; r.err != nil || r.Text != "Yes." {
				t.Errorf("%+v", r)
			}
		})
	}
}

// What other servers put into a stream of events is no harm: comments, names, ids, lines that end in CR LF, data in several lines.
func TestRequestEvents(t *testing.T) {
	s := newService(t)
	got := s.ask(t.Context(), words("Hello"), 0)
	a := s.next()
	a.writes(": here\n\nid: 1\nevent: message\r\ndata:{\"type\":\"say\",\r\ndata: \"text\":\"Yes.\"}\r\n\r\nretry: 10\n\n")
	a.says(done)
	if r := <-got; r.err != nil || r.Text != "Yes." {
		t.Errorf("%+v", r)
	}
	s.client.Close() // a reply of no conversation has no end to be told of
	if len(s.asked) > 0 {
		t.Errorf("it was told %v", s.next().object)
	}
	if r := <-s.ask(in(t, "call 1"), words("Hello"), 0); ai.KindOf(r.err) != ai.Interrupted {
		t.Errorf("after Close: %+v", r)
	}
}
