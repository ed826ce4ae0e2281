package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"parley/internal/ai"
)

type object = map[string]any

// program is a program of the test's, which reads what it is sent and says what the test wants.
type program struct {
	testing.TB
	URL    string
	came   chan *visit // connections
	client *Client
	header http.Header // of the last connection
}

// visit is a connection to it.
type visit struct {
	testing.TB
	*websocket.Conn
	done chan struct{}
}

func newProgram(t testing.TB) *program {
	p := &program{TB: t, came: make(chan *visit, 10)}
	var mu sync.Mutex
	var all []*visit
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.header = r.Header
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		v := &visit{t, c, make(chan struct{})}
		mu.Lock()
		all = append(all, v)
		mu.Unlock()
		p.came <- v
		<-v.done
	}))
	p.URL = "ws" + strings.TrimPrefix(s.URL, "http")
	o, err := At(ai.Server{URL: p.URL, Key: "key", Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	p.client = o.Model("").(*Client)
	t.Cleanup(func() {
		mu.Lock()
		for _, v := range all {
			v.leave()
		}
		mu.Unlock()
		o.Close()
		s.Close()
	})
	return p
}

func (v *visit) leave() {
	v.CloseNow()
	select {
	case <-v.done:
	default:
		close(v.done)
	}
}

// hears is the next message, which must be of a type.
func (v *visit) hears(kind string) object {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), 10*time.Second)
	defer cancel()
	var in object
	if err := wsjson.Read(ctx, v.Conn, &in); err != nil {
		v.Fatalf("wanted %s: %v", kind, err)
	}
	if in["type"] != kind {
		v.Fatalf("got %v, wanted %s", in, kind)
	}
	return in
}

func (v *visit) says(out object) {
	v.Helper()
	if err := wsjson.Write(v.Context(), v.Conn, out); err != nil {
		v.Error(err)
	}
}

// result is how a reply ended.
type result struct {
	ai.Reply
	err    error
	pieces []string
}

// ask asks the client, and goes on.
func (p *program) ask(ctx context.Context, req ai.Request, enough int) <-chan result {
	out := make(chan result, 1)
	go func() {
		var r result
		r.Reply, r.err = p.client.Generate(ctx, req, func(d ai.Delta) error {
			if d.Text != "" {
				r.pieces = append(r.pieces, d.Text)
			}
			if enough > 0 && len(r.pieces) == enough {
				return errEnough
			}
			return nil
		})
		out <- r
	}()
	return out
}

var errEnough = errors.New("enough")

// in is a context of a conversation.
func in(t testing.TB, of string) context.Context {
	return ai.ForParty(t.Context(), ai.Party{Of: of, Assistant: 7, Name: "Front desk", Language: "en", Customer: "+4930123456",
		Variables: map[string]string{"company": "Acme"}})
}

func words(list ...string) (req ai.Request) {
	for i, text := range list {
		req.Messages = append(req.Messages, ai.Message{Role: []ai.Role{ai.User, ai.Assistant}[i%2], Text: text})
	}
	return req
}

// A conversation has one connection. The program is told whom it is for, and in each turn what is new.
func TestConversation(t *testing.T) {
	p, ctx := newProgram(t), in(t, "call 12")
	req := words("Hello")
	req.System, req.Tools = "You are a baker.", []ai.Tool{{Name: "stock", Description: "What there is"}}
	got := p.ask(ctx, req, 0)
	v := <-p.came
	if p.header.Get("Authorization") != "Bearer key" {
		t.Errorf("it was sent %v", p.header)
	}
	s := v.hears("session")
	if fmt.Sprint(s) != "map[assistant:map[id:7 language:en name:Front desk] conversation:call 12 customer:+4930123456 protocol:1 "+
		"resumed:false type:session variables:map[company:Acme]]" {
		t.Errorf("the session is %v", s)
	}
	turn := v.hears("turn")
	tools, _ := json.Marshal(turn["tools"])
	if turn["text"] != "Hello" || turn["turn"] != 1.0 || turn["prompt"] != "You are a baker." ||
		string(tools) != `[{"description":"What there is","name":"stock","parameters":{"properties":{},"type":"object"}}]` {
		t.Errorf("the turn is %v", turn)
	}
	v.says(object{"type": "say", "turn": 1, "text": "Good "})
	v.says(object{"type": "say", "turn": 1, "text": "day."})
	v.says(object{"type": "done", "turn": 1, "usage": object{"in": 3, "out": 2}})
	if r := <-got; r.err != nil || r.Text != "Good day." || len(r.pieces) != 2 || r.Finish != ai.Stop || r.Usage != (ai.Usage{In: 3, Out: 2}) {
		t.Fatalf("%+v", r)
	}
	again := words("Hello", "Good day.", "Bread, please.")
	again.System, again.Tools = req.System, req.Tools
	got = p.ask(ctx, again, 0)
	turn = v.hears("turn")
	if turn["turn"] != 2.0 || turn["text"] != "Bread, please." || turn["tools"] != nil || turn["prompt"] != nil ||
		len(turn["messages"].([]any)) != 3 {
		t.Errorf("the second turn is %v", turn)
	}
	v.says(object{"type": "say", "turn": 1, "text": "late"}) // of a turn that is over
	v.says(object{"type": "say", "turn": 2, "text": "Yes."})
	v.says(object{"type": "done", "turn": 2})
	if r := <-got; r.err != nil || r.Text != "Yes." {
		t.Fatalf("%+v", r)
	}
	p.client.Over("call 12")
	if end := v.hears("end"); end["why"] != "over" {
		t.Errorf("the end is %v", end)
	}
	if _, _, err := v.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("closed with %v", err)
	}
}

// Calls of tools end a reply, and their results go on with the same turn.
func TestTools(t *testing.T) {
	p, ctx := newProgram(t), in(t, "call 1")
	req := words("What is there?")
	got := p.ask(ctx, req, 0)
	v := <-p.came
	v.hears("session")
	v.hears("turn")
	v.says(object{"type": "say", "turn": 1, "text": "Let me see."})
	v.says(object{"type": "call", "turn": 1, "calls": []any{object{"name": "stock", "id": "a", "arguments": object{"of": "bread"}},
		object{"name": "hours"}}})
	r := <-got
	if r.err != nil || r.Finish != ai.ToolCalls || len(r.Calls) != 2 ||
		r.Calls[0] != (ai.ToolCall{ID: "a", Name: "stock", Arguments: `{"of":"bread"}`}) ||
		r.Calls[1].Name != "hours" || r.Calls[1].Arguments != "{}" || r.Calls[1].ID == "" {
		t.Fatalf("%+v", r)
	}
	req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Text: r.Text, Calls: r.Calls},
		ai.Message{Role: ai.ToolRole, CallID: "0", Text: "three"}, ai.Message{Role: ai.ToolRole, CallID: "1", Text: "until six"})
	got = p.ask(ctx, req, 0)
	for i, want := range []string{"three", "until six"} {
		if res := v.hears("result"); res["text"] != want || res["turn"] != 1.0 || res["id"] != r.Calls[i].ID {
			t.Errorf("the result is %v", res)
		}
	}
	v.says(object{"type": "end", "turn": 1})
	if r := <-got; r.err != nil || len(r.Calls) != 1 || r.Calls[0].Name != "end_call" {
		t.Errorf("%+v", r)
	}
	// The call ended the turn; where it did not, the next turn begins with a cancel.
	req = words("Hand me over.")
	req.Tools = []ai.Tool{{Name: "stock"}, {Name: "assistant_transfer"}}
	got = p.ask(ctx, req, 0)
	v.hears("cancel")
	v.hears("interrupted") // the history has nothing of it
	v.hears("turn")
	v.says(object{"type": "transfer", "turn": 2, "arguments": object{"reason": "asked"}})
	if r := <-got; r.err != nil || len(r.Calls) != 1 || r.Calls[0].Name != "assistant_transfer" ||
		r.Calls[0].Arguments != `{"reason":"asked"}` {
		t.Errorf("%+v", r)
	}
}

// A reply that is wanted no longer is cancelled; the program is told how much of the last one was heard.
func TestInterrupted(t *testing.T) {
	p := newProgram(t)
	for _, c := range []struct {
		name  string
		next  []string // the history of the next turn
		heard any      // nil: it is told nothing
	}{
		{"in the middle", []string{"Tell me.", "Once upon", "Stop."}, "Once upon"},
		{"before a word", []string{"Tell me.", "", "Stop."}, ""},
		{"not at all", []string{"Tell me.", "Once upon a time.", "And then?"}, nil},
		{"another answered", []string{"Tell me.", "I can't.", "Why?"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := in(t, c.name)
			got := p.ask(ctx, words("Tell me."), 0)
			v := <-p.came
			v.TB = t
			v.hears("session")
			v.hears("turn")
			v.says(object{"type": "say", "turn": 1, "text": "Once upon a time."})
			v.says(object{"type": "done", "turn": 1})
			<-got
			req := words(c.next...)
			req.Messages = slices.DeleteFunc(req.Messages, func(m ai.Message) bool { return m.Text == "" })
			got = p.ask(ctx, req, 1)
			if c.heard != nil {
				if m := v.hears("interrupted"); m["heard"] != c.heard || m["turn"] != 1.0 {
					t.Errorf("it was told %v", m)
				}
			}
			v.hears("turn")
			v.says(object{"type": "say", "turn": 2, "text": "one "})
			if r := <-got; !errors.Is(r.err, errEnough) || r.Text != "one " {
				t.Errorf("%+v", r)
			}
			if m := v.hears("cancel"); m["turn"] != 2.0 {
				t.Errorf("it was told %v", m)
			}
		})
	}
}

// A context that ends in the middle of a reply ends it, and the next turn has the same session.
func TestCancelled(t *testing.T) {
	p := newProgram(t)
	ctx, cancel := context.WithCancelCause(in(t, "call 1"))
	got := p.ask(ctx, words("Hello"), 0)
	v := <-p.came
	v.hears("session")
	v.hears("turn")
	cancel(errEnough)
	if r := <-got; !errors.Is(r.err, errEnough) {
		t.Errorf("%+v", r)
	}
	v.hears("cancel")
	got = p.ask(in(t, "call 1"), words("Hello again"), 0)
	v.hears("turn")
	v.says(object{"type": "say", "turn": 2, "text": "Yes."})
	v.says(object{"type": "done", "turn": 2})
	if r := <-got; r.err != nil || r.Text != "Yes." {
		t.Errorf("%+v", r)
	}
}

// A program that breaks off, or breaks the protocol, has failed; the next turn begins a session that says so.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct {
		does func(v *visit)
		kind ai.Kind
	}{
		"gone":     {func(v *visit) { v.leave() }, ai.Interrupted},
		"no JSON":  {func(v *visit) { _ = v.Write(v.Context(), websocket.MessageText, []byte("hello")) }, ai.Malformed},
		"unknown":  {func(v *visit) { v.says(object{"type": "sing", "turn": 1}) }, ai.Malformed},
		"no calls": {func(v *visit) { v.says(object{"type": "call", "turn": 1}) }, ai.Malformed},
		"twice": {func(v *visit) {
			v.says(object{"type": "call", "turn": 1, "calls": []any{object{"name": "a", "id": "1"}, object{"name": "b", "id": "1"}}})
		}, ai.Malformed},
		"its own":    {func(v *visit) { v.says(object{"type": "error", "turn": 1, "text": "out of order"}) }, ai.Overloaded},
		"too long":   {func(v *visit) { v.says(object{"type": "say", "turn": 1, "text": strings.Repeat("a", maxMessage)}) }, ai.Malformed},
		"unfinished": {func(v *visit) { v.says(object{"type": "say", "turn": 1, "text": "So "}); v.leave() }, ai.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			got := p.ask(in(t, "call 1"), words("Hello"), 0)
			v := <-p.came
			v.hears("session")
			v.hears("turn")
			c.does(v)
			r := <-got
			if ai.KindOf(r.err) != c.kind {
				t.Errorf("%q: %v, want %s", ai.KindOf(r.err), r.err, c.kind)
			}
			v.leave()
			got = p.ask(in(t, "call 1"), words("Hello"), 0)
			select {
			case v = <-p.came:
				if s := v.hears("session"); s["resumed"] != true {
					t.Errorf("the session is %v", s)
				}
				v.hears("turn")
				v.says(object{"type": "say", "turn": 1, "text": "Yes."})
				v.says(object{"type": "done", "turn": 1})
			case r := <-got:
				t.Fatalf("%+v", r)
			}
			if r := <-got; r.err != nil || r.Text != "Yes." {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A reply of no conversation has a session of its own; a schema is refused; a server that is not there can't be reached.
func TestAlone(t *testing.T) {
	p := newProgram(t)
	got := p.ask(t.Context(), words("Hello"), 0)
	v := <-p.came
	v.hears("session")
	v.hears("turn")
	v.says(object{"type": "say", "turn": 1, "text": "Yes."})
	v.says(object{"type": "done", "turn": 1})
	if r := <-got; r.err != nil {
		t.Errorf("%+v", r)
	}
	v.hears("end")
	_, _, _ = v.Read(t.Context()) // the close frame
	if r := <-p.ask(t.Context(), ai.Request{Schema: &ai.Schema{}}, 0); ai.KindOf(r.err) != ai.Config {
		t.Errorf("%+v", r)
	}
	for _, nobody := range []string{"ws://127.0.0.1:1", "http://127.0.0.1:1"} {
		o, err := At(ai.Server{URL: nobody, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Model("").Generate(t.Context(), words("Hello"), func(ai.Delta) error { return nil }); ai.KindOf(err) != ai.Unreachable {
			t.Errorf("%s: %v", nobody, err)
		}
	}
	for _, wrong := range []string{"ftp://example.com", "ws://", "https:///turn", "example.com", ":"} {
		if _, err := At(ai.Server{URL: wrong}); err == nil {
			t.Errorf("%q is an address", wrong)
		}
	}
}

// Warm begins a session, which the first turn finds.
func TestWarm(t *testing.T) {
	p, ctx := newProgram(t), in(t, "call 1")
	p.client.Warm(ctx)
	v := <-p.came
	v.hears("session")
	got := p.ask(ctx, words("Hello"), 0)
	v.hears("turn")
	v.says(object{"type": "say", "turn": 1, "text": "Yes."})
	v.says(object{"type": "done", "turn": 1})
	if r := <-got; r.err != nil || len(p.came) != 0 {
		t.Errorf("%+v, %d more connections", r, len(p.came))
	}
	p.client.Close()
	if r := <-p.ask(ctx, words("Hello"), 0); ai.KindOf(r.err) != ai.Interrupted {
		t.Errorf("after Close: %+v", r)
	}
}
