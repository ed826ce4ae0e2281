package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/provider/wire"
)

// session is a conversation with the program. Who holds ready talks with it.
type session struct {
	ready chan struct{}
	sleep *time.Timer // until it has been idle for too long; under the client's lock
	begun bool        // the program was told of it before
	party ai.Party    // whom it is for

	conn    *wire.Conn
	reading sync.WaitGroup // who reads the connection
	lost    chan struct{}  // closed when the connection is
	why     error          // of that
	turns   int
	prompt  string
	tools   []byte // as they were sent last

	last *turn // the latest
	mu   sync.Mutex
	now  *turn // that the program may say something in
}

// turn is one of the customer's turns, and what the program says in it.
type turn struct {
	n       int
	in      chan heard
	over    chan struct{} // closed when nobody reads in any more
	once    sync.Once
	said    strings.Builder
	before  string   // what the assistant had said last when it was asked
	pending []string // calls whose results the program waits for
	done    bool     // the program has said so, or was told to stop
}

func (t *turn) close() { t.once.Do(func() { close(t.over) }) }

// rest stops the clock of an idle session.
func (s *session) rest() {
	if s.sleep != nil {
		s.sleep.Stop()
	}
}

// broken reports whether the connection is lost.
func (s *session) broken() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// dial connects the session, and tells the program whom it is for.
func (s *session) dial(ctx context.Context, server ai.Server, p ai.Party) error {
	s.drop()
	header := http.Header{}
	if server.Key != "" {
		header.Set("Authorization", "Bearer "+server.Key)
	}
	conn, err := wire.Dial(ctx, server.URL, wire.Options{Header: header, Ping: pingTime, Transport: server.Transport, Most: maxMessage})
	if err != nil {
		return err
	}
	s.conn, s.lost, s.why, s.turns, s.prompt, s.tools, s.last = conn, make(chan struct{}), nil, 0, "", nil, nil
	crash.Go(&s.reading, func() { s.listen(conn, s.lost) }, crash.Log("a session with an endpoint"))
	if err = conn.Send(s.introduce(p)); err != nil {
		s.drop()
	}
	return err
}

// introduce is what the program is told of whom it is asked for.
func (s *session) introduce(p ai.Party) *begun {
	vars := p.Variables
	if vars == nil {
		vars = map[string]string{}
	}
	again := s.begun
	s.begun = true
	return &begun{"session", Protocol, p.Of, again, assistant{p.Assistant, p.Name, p.Language}, p.Customer, vars}
}

// listen passes on what the program says, to the turn that it is for.
func (s *session) listen(conn *wire.Conn, lost chan struct{}) {
	defer close(lost)
	for {
		raw, text, err := conn.Receive()
		if err != nil {
			s.why = err
			return
		}
		var h heard
		if !text || json.Unmarshal(raw, &h) != nil {
			s.why = wrong("it sent what is no JSON text: %.200q", raw)
			return
		}
		s.mu.Lock()
		now := s.now
		s.mu.Unlock()
		if now == nil || now.n != h.Turn {
			continue // of a turn that nobody waits for any more
		}
		select {
		case now.in <- h:
		case <-now.over:
		}
	}
}

// drop closes the connection, if there is one.
func (s *session) drop() {
	if s.conn == nil {
		return
	}
	s.current(nil)
	s.conn.Close()
	s.reading.Wait()
	s.conn = nil
}

// leave says goodbye, once nobody talks with the program any more.
func (s *session) leave(why string) {
	s.ready <- struct{}{}
	defer func() { <-s.ready }()
	if s.conn == nil || s.broken() {
		s.drop()
		return
	}
	s.current(nil)
	_ = s.conn.Send(farewell(why)) // if it is gone, it is
	s.conn.Leave()
	s.reading.Wait()
	s.conn = nil
}

// farewell is what the program is told at the end.
func farewell(why string) *cut { return &cut{Type: "end", Why: why} }

// current is the turn in which the program may say something from now on.
func (s *session) current(t *turn) {
	s.mu.Lock()
	before := s.now
	s.now = t
	s.mu.Unlock()
	if before != nil && before != t {
		before.close()
	}
}

func wrong(format string, a ...any) error {
	return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("the endpoint: "+format, a...)}
}

// reply is one reply: the answer to a new turn, or what follows the results of its calls.
func (s *session) reply(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (reply ai.Reply, err error) {
	t, err := s.ask(req)
	if err != nil {
		s.current(nil)
		s.conn.Close() // so that it counts as lost
		s.reading.Wait()
		return reply, s.failed(ctx, err)
	}
	var text strings.Builder
	defer func() {
		reply.Text = text.String()
		if err != nil || reply.Finish == ai.Stop { // nothing more is wanted of this turn
			s.current(nil)
			_ = s.cancel(t)
		}
	}()
	quiet := time.NewTimer(stall)
	defer quiet.Stop()
	for {
		var h heard
		select {
		case h = <-t.in:
		case <-ctx.Done():
			return reply, context.Cause(ctx)
		case <-quiet.C:
			return reply, &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("the endpoint said nothing for %v", stall)}
		case <-s.lost:
			select {
			case h = <-t.in: // what it said before
			default:
				return reply, s.failed(ctx, s.why)
			}
		}
		quiet.Reset(stall)
		over, err := s.heed(t, h, req, &reply, &text, yield)
		if over || err != nil {
			return reply, err
		}
	}
}

// cancel tells the program that nothing more is wanted in a turn.
func (s *session) cancel(t *turn) error {
	if m := s.stop(t); m != nil && !s.broken() {
		return s.conn.Send(m)
	}
	return nil
}

// stop notes that nothing more is wanted in a turn. It returns what the program is told of that, nil where it has said that it
// is done, or was told.
func (s *session) stop(t *turn) *cut {
	t.pending = nil
	if t.done {
		return nil
	}
	t.done = true
	return &cut{Type: "cancel", Turn: t.n}
}

// heed takes a message of the program's; over says that the reply ends with it.
func (s *session) heed(t *turn, h heard, req ai.Request, reply *ai.Reply, text *strings.Builder,
	yield func(ai.Delta) error) (over bool, err error) {
	switch h.Type {
	case "say":
		if t.said.Len()+len(h.Text) > maxReply {
			return false, wrong("its reply is longer than %d octets", maxReply)
		}
		if h.Text == "" {
			return false, nil
		}
		t.said.WriteString(h.Text)
		text.WriteString(h.Text)
		return false, yield(ai.Delta{Text: h.Text})
	case "call":
		return true, s.calls(t, h.Calls, reply, yield)
	case "transfer":
		name := h.Tool
		if name == "" {
			name = first(req.Tools, "call_transfer", "warm_call_transfer", "assistant_transfer")
		}
		return true, s.calls(t, []call{{Name: name, Arguments: h.Arguments}}, reply, yield)
	case "end":
		return true, s.calls(t, []call{{Name: "end_call", Arguments: h.Arguments}}, reply, yield)
	case "done":
		if reply.Finish, t.done = ai.Stop, true; h.Usage != nil {
			reply.Usage = *h.Usage
		}
		return true, nil
	case "error":
		return true, &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("the endpoint failed: %.300q", h.Text)}
	}
	return true, wrong("it sent a message of the unknown type %.50q", h.Type)
}

// first is the first of some tools that there is, or else the first name.
func first(tools []ai.Tool, names ...string) string {
	for _, t := range tools {
		if slices.Contains(names, t.Name) {
			return t.Name
		}
	}
	return names[0]
}

// calls passes on calls of tools. The program is told their results in the next reply.
func (s *session) calls(t *turn, list []call, reply *ai.Reply, yield func(ai.Delta) error) error {
	if len(list) == 0 || len(list) > maxCalls {
		return wrong("it made %d calls at once, and 1 to %d are possible", len(list), maxCalls)
	}
	for i, c := range list {
		if c.Name == "" {
			return wrong("a call has no name")
		}
		if c.ID == "" {
			c.ID = "call_" + strconv.Itoa(t.n) + "_" + strconv.Itoa(len(t.pending)+i+1)
		}
		if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
			c.Arguments = json.RawMessage("{}")
		}
		if slices.Contains(t.pending, c.ID) {
			return wrong("two calls have the id %.50q", c.ID)
		}
		t.pending = append(t.pending, c.ID)
		one := ai.ToolCall{ID: c.ID, Name: c.Name, Arguments: string(c.Arguments)}
		reply.Calls = append(reply.Calls, one)
		if err := yield(ai.Delta{Call: &one}); err != nil {
			return err
		}
	}
	reply.Finish = ai.ToolCalls
	return nil
}

// failed is why the program could not be asked.
func (s *session) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil || errors.Is(err, wire.ErrClosed):
		return &ai.Error{Kind: ai.Interrupted, Err: errors.New("the endpoint's connection was closed")}
	}
	return err
}

// ask tells the program the results that it waits for, or else a new turn.
func (s *session) ask(req ai.Request) (*turn, error) {
	t, out, err := s.next(req, false)
	if err != nil {
		return nil, err
	}
	for _, m := range out.list() {
		if err := s.conn.Send(m); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// next is what the program is told for a request: the results that it waits for, or else a new turn. Of a turn it is told the
// whole, or else what it doesn't know yet.
func (s *session) next(req ai.Request, whole bool) (t *turn, out told, err error) {
	results := s.results(req.Messages)
	if results != nil {
		t = s.last
		for i, m := range results {
			out.Results = append(out.Results, answered{"result", t.n, t.pending[i], m.Text})
		}
		t.pending = nil
		t.said.WriteByte(' ') // what follows the results is a reply of its own
	} else {
		before := spoken(req.Messages)
		if s.last != nil {
			out.cancel, out.Interrupted = s.stop(s.last), s.lastHeard(before)
		}
		s.turns++
		t = &turn{n: s.turns, in: make(chan heard, unread), over: make(chan struct{}), before: before}
		s.last = t
		s.current(t)
	}
	if results == nil || whole {
		out.Turn, err = s.asked(t, req, whole)
	}
	return t, out, err
}

// asked is a turn as the program is told of it.
func (s *session) asked(t *turn, req ai.Request, whole bool) (*asked, error) {
	out := &asked{Type: "turn", Turn: t.n, Messages: messagesOf(req.Messages)}
	for _, m := range req.Messages {
		if m.Role == ai.User {
			out.Text = m.Text
		}
	}
	if whole || req.System != s.prompt {
		out.Prompt, s.prompt = req.System, req.System
	}
	list := toolsOf(req.Tools)
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	if whole || !bytes.Equal(raw, s.tools) {
		out.Tools, s.tools = &list, raw
	}
	return out, nil
}

// results are the messages that answer the calls for which the program waits, in their order; nil where it is asked something
// new. Their ids say nothing: a history has ids of its own.
func (s *session) results(list []ai.Message) []ai.Message {
	t := s.last
	if t == nil || len(t.pending) == 0 || len(list) <= len(t.pending) {
		return nil
	}
	at := len(list) - len(t.pending)
	if made := list[at-1]; made.Role != ai.Assistant || len(made.Calls) != len(t.pending) {
		return nil
	}
	for _, m := range list[at:] {
		if m.Role != ai.ToolRole {
			return nil
		}
	}
	return list[at:]
}

// lastHeard is what the program is told of how much of its latest reply the customer heard, nil where that is all. before is what
// the assistant said last, as far as it was heard.
func (s *session) lastHeard(before string) *cut {
	t := s.last
	said := plain(t.said.String())
	switch {
	case said == "" || before == said:
		return nil
	case before == t.before: // nothing was added
		before = ""
	case !strings.HasPrefix(said, before): // another answered in its place
		return nil
	}
	return &cut{Type: "interrupted", Turn: t.n, Heard: &before}
}

// spoken is what the assistant said before the customer's latest words.
func spoken(list []ai.Message) string {
	i := len(list) - 1
	for i >= 0 && list[i].Role == ai.User {
		i--
	}
	text := ""
	for ; i >= 0 && list[i].Role != ai.User; i-- {
		if list[i].Role == ai.Assistant {
			text = list[i].Text + " " + text
		}
	}
	return plain(text)
}

// plain is a text with single spaces.
func plain(text string) string { return strings.Join(strings.Fields(text), " ") }
