// Package realtime is a session with a model that hears and speaks, in OpenAI's realtime protocol, which other vendors
// speak too: what they do differently is a Dialect.
package realtime

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/provider/rest"
	"parley/internal/provider/wire"
	"parley/internal/schema"
)

// Model is a model that hears and speaks, at a server that speaks the protocol.
type Model struct {
	Base    string // of the API, without a slash at the end
	Sign    func(http.Header)
	Code    string // the model's
	Dialect Dialect
}

// Dialect is what a vendor's server does differently.
type Dialect struct {
	Vendor string // its code
	Ear    string // the model that writes down what is heard, as it is counted
	// Terms is the configuration of a session, with its tools.
	Terms func(setup ai.RealtimeSetup, tools []any) map[string]any
	// Aloud is the message that has a text said as it is; it may lack its event_id.
	Aloud func(n int, text string) map[string]any
	// Language is the language in which something was said, of those that the server found; nil where it finds none.
	Language func(setup ai.RealtimeSetup, codes []string) string
	// Text is the type of a text of the assistant's in an item.
	Text string
	// Lasts is how long a session lasts where the server doesn't say it; 0 where nothing is known.
	Lasts time.Duration
	// Eager says that the server answers what it heard by itself, takes sound for an interruption, and asks for nothing
	// but the words of a reply: see eager.go.
	Eager bool
}

const (
	connectTime  = 10 * time.Second
	pingTime     = 20 * time.Second
	expiryNotice = 5 * time.Minute // so long before its end a session says that it is going to end
)

// Connect implements ai.RealtimeModel.
func (m Model) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	address, err := wire.Address(m.Base, "/realtime", url.Values{"model": {m.Code}})
	if err != nil {
		return nil, ai.TheModel.Of(&ai.Error{Kind: ai.Config, Err: err})
	}
	header := http.Header{}
	m.Sign(header)
	conn, err := wire.Dial(ctx, address, wire.Options{Header: header, Ping: pingTime})
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	s := &session{conn: conn, setup: setup, names: rest.NewNames(setup.Tools), model: m.Code, dialect: m.Dialect,
		tally: ai.TallyOf(ctx),
		out:   make(chan ai.RealtimeEvent, 16), done: make(chan struct{}), responses: map[int]*response{},
		named: map[string]*response{}, heard: map[string]*hearsay{}, calls: map[string]string{}}
	s.box.Resume(conn)
	if err := conn.Within(ctx, connectTime, s.begin); err != nil {
		conn.Leave()
		return nil, ai.TheModel.Of(err)
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	go s.run()
	return s, nil
}

// session is an open conversation. Its user writes to the outbox; the reader's goroutine handles what the server sends.
// Both use the items under the lock.
type session struct {
	conn    *wire.Conn
	setup   ai.RealtimeSetup
	names   rest.Names
	model   string
	dialect Dialect
	tally   *ai.Tally // of the call
	ctx     context.Context
	cancel  context.CancelFunc
	out     chan ai.RealtimeEvent
	done    chan struct{}
	expiry  time.Time // zero where the server doesn't say
	box     wire.Outbox
	written int           // samples since the utterance began
	billed  time.Duration // that the server has counted of the session's sound

	rateIn, rateOut *audio.Resampler // nil where the line's own codec is sent
	wide            []int16          // scratch of who writes

	telling    sync.Mutex // while events are collected and told, so that they stay in order; locked before mu
	mu         sync.Mutex
	responses  map[int]*response    // by our number
	named      map[string]*response // by the server's
	waiting    []*response          // asked for while another is under way
	active     *response            // writes to the conversation
	utterances int                  // that have ended
	committed  []*hearsay           // whose item is not known yet, in order
	said       []*hearsay           // all
	heard      map[string]*hearsay
	items      []string          // of the conversation, in order
	calls      map[string]string // the items of calls

	eager
}

// response is something that the model was asked to say, or a text that was added.
type response struct {
	n      int
	create map[string]any // the message that asks for it
	words  bool           // nothing is called in it
	apart  bool
	id     string
	items  []item
	over   bool // the server has said so
	told   bool // and so have we
	cut    bool
	lost   bool // the server forgets what it had made of it, so it is told what was heard
	at     time.Duration
	text   string
	due    time.Time // when an eager server must have said more of it
}

// item is one item of a response.
type item struct {
	id      string
	call    bool
	samples int
	settled bool // it was made what was heard
}

// hearsay is an utterance of the customer.
type hearsay struct {
	n         int
	item      string
	text      string
	ended     time.Time
	forgotten bool
	final     bool
}

// Rate is the sample rate of sessions' PCM.
const Rate = 24000

// Format is the audio format to ask for: G.711 as it is on the line, and 24 kHz PCM for anything else.
func Format(rate audio.Rate) map[string]any {
	if rate == audio.Narrow {
		return map[string]any{"type": "audio/pcmu"}
	}
	return map[string]any{"type": "audio/pcm", "rate": Rate}
}

// begin waits for the session, configures it, and waits until that is accepted.
func (s *session) begin() error {
	s.box.Head, s.box.Tail = `{"type":"input_audio_buffer.append","audio":"`, `"}`
	s.box.Piece, s.box.Encode = int(audio.Narrow)/10, audio.EncodeULaw
	if s.setup.Rate != audio.Narrow {
		s.box.Piece, s.box.Encode = 2*Rate/10, nil
		var err error
		if s.rateIn, err = audio.NewResampler(int(s.setup.Rate), Rate); err != nil {
			return &ai.Error{Kind: ai.Config, Err: err}
		}
		if s.rateOut, err = audio.NewResampler(Rate, int(s.setup.Rate)); err != nil {
			return &ai.Error{Kind: ai.Config, Err: err}
		}
	}
	created, err := s.expect("session.created", "conversation.created") // xAI may send the second alone
	if err != nil {
		return err
	}
	if at := created.Session.ExpiresAt; at > 0 {
		s.expiry = time.Unix(at, 0)
	} else if s.dialect.Lasts > 0 {
		s.expiry = time.Now().Add(s.dialect.Lasts)
	}
	if err := s.conn.Send(map[string]any{"type": "session.update", "session": s.dialect.Terms(s.setup, s.tools())}); err != nil {
		return err
	}
	_, err = s.expect("session.updated")
	return err
}

func (s *session) tools() []any { return Tools(s.setup, s.names) }

// Tools are a session's tools as OpenAI's protocols have them.
func Tools(setup ai.RealtimeSetup, names rest.Names) []any {
	tools := []any{}
	for _, t := range setup.Tools {
		tools = append(tools, map[string]any{"type": "function", "name": names.Wire(t.Name),
			"description": t.Description, "parameters": schema.ForOpenAI(t.Schema)})
	}
	return tools
}

// expect reads until an event of one of these kinds arrives. Its error is the one with which the session was refused.
func (s *session) expect(kinds ...string) (realtimeEvent, error) {
	for {
		raw, _, err := s.conn.Receive()
		if err != nil {
			return realtimeEvent{}, err
		}
		var e realtimeEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			return realtimeEvent{}, &ai.Error{Kind: ai.Malformed, Err: err}
		}
		switch {
		case slices.Contains(kinds, e.Type):
			return e, nil
		case e.Type == "error":
			return realtimeEvent{}, e.Error.Failure()
		}
	}
}

// run keeps the session going until it ends.
func (s *session) run() {
	defer close(s.done)
	defer close(s.out)
	context.AfterFunc(s.ctx, s.conn.Leave)
	var wg sync.WaitGroup
	crash.Go(&wg, func() { s.box.Run(s.ctx) }, s.crashed)
	crash.Go(&wg, s.watch, s.crashed)
	if s.dialect.Eager {
		crash.Go(&wg, s.sweep, s.crashed)
	}
	err := crash.Run(s.read)
	ended := s.ctx.Err() != nil
	s.cancel()
	wg.Wait()
	if !ended {
		s.out <- ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: ai.TheModel.Of(err)}
	}
}

// watch reports when the session is about to expire.
func (s *session) watch() {
	if s.expiry.IsZero() {
		return
	}
	left := time.Until(s.expiry)
	t := time.NewTimer(left - min(expiryNotice, left/2))
	defer t.Stop()
	select {
	case <-t.C:
		s.tell(ai.RealtimeEvent{Kind: ai.RealtimeExpiring, Remaining: time.Until(s.expiry)})
	case <-s.ctx.Done():
	}
}

func (s *session) tell(e ai.RealtimeEvent) {
	select {
	case s.out <- e:
	case <-s.ctx.Done():
	}
}

// crashed ends the session after a panic, as if the vendor had.
func (s *session) crashed(err error) {
	slog.Error("a session with a realtime model panicked", "error", err)
	s.conn.Close()
}

// Events implements ai.RealtimeSession.
func (s *session) Events() <-chan ai.RealtimeEvent { return s.out }

// Close implements ai.RealtimeSession.
func (s *session) Close() {
	s.cancel()
	for range s.out { // nobody reads it any more
	}
	<-s.done
}

// Write implements ai.RealtimeSession.
func (s *session) Write(pcm []int16) {
	if s.rateIn != nil {
		s.wide = s.rateIn.Resample(s.wide[:0], pcm)
		pcm = s.wide
	}
	s.sound(pcm)
}

func (s *session) sound(pcm []int16) {
	if s.written == 0 && s.dialect.Eager {
		s.speaks(true)
	}
	s.written += len(pcm)
	s.box.Sound(pcm)
}

// shortest is the least sound that the server accepts as an utterance.
const shortest = 100 * time.Millisecond

// End implements ai.RealtimeSession.
func (s *session) End() {
	s.mu.Lock()
	u := &hearsay{n: s.utterances, ended: time.Now()}
	s.utterances++
	s.committed, s.said = append(s.committed, u), append(s.said, u)
	s.mu.Unlock()
	rate := int(audio.Narrow)
	if s.rateIn != nil {
		rate = Rate
	}
	if lacks := int(shortest)*rate/int(time.Second) - s.written; lacks > 0 {
		s.sound(make([]int16, lacks))
	}
	s.written = 0
	s.box.Send(map[string]any{"type": "input_audio_buffer.commit", "event_id": "commit_" + strconv.Itoa(u.n)})
	if s.dialect.Eager {
		s.box.Send(clearBuffer)
		s.speaks(false)
	}
}

// Forget implements ai.RealtimeSession.
func (s *session) Forget(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 || n >= len(s.said) || s.said[n].forgotten {
		return
	}
	u := s.said[n]
	u.forgotten = true
	if u.item != "" {
		s.remove(u.item)
	}
}

// remove deletes an item from the conversation. The lock is held.
func (s *session) remove(id string) {
	for i, known := range s.items {
		if known == id {
			s.items = append(s.items[:i], s.items[i+1:]...)
			break
		}
	}
	s.box.Send(map[string]any{"type": "conversation.item.delete", "item_id": id})
}

// Add implements ai.RealtimeSession.
func (s *session) Add(n int, messages ...ai.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &response{n: n, over: true, told: true}
	s.responses[n] = r
	for i, m := range messages {
		id := fmt.Sprintf("parley_%d_%d", n, i)
		switch {
		case m.Role == ai.ToolRole:
			s.result(m.CallID, m.Text)
			continue
		case m.Text != "":
			r.items = append(r.items, item{id: id})
			s.insert(id, "", m)
		}
		for j, c := range m.Calls {
			args := c.Arguments
			if !json.Valid([]byte(args)) {
				args = "{}"
			}
			s.box.Send(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "function_call",
				"id": fmt.Sprintf("%s_%d", id, j), "call_id": c.ID, "name": s.names.Wire(c.Name), "arguments": args}})
		}
	}
}

// insert adds a text to the conversation, after another item ("" for the end). The lock is held.
func (s *session) insert(id, after string, m ai.Message) {
	role, kind := "user", "input_text"
	if m.Role == ai.Assistant {
		role, kind = "assistant", s.dialect.Text
	}
	create := map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "message", "id": id,
		"role": role, "content": []any{map[string]any{"type": kind, "text": m.Text}}}}
	if after != "" {
		create["previous_item_id"] = after
	}
	s.box.Send(create)
}

func (s *session) result(callID, text string) {
	create := map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "function_call_output",
		"call_id": callID, "output": text}}
	if after := s.calls[callID]; after != "" {
		create["previous_item_id"] = after
	}
	s.box.Send(create)
}

// Result implements ai.RealtimeSession. The result is placed directly after its call, whatever was said since.
func (s *session) Result(callID, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result(callID, result)
}

// Respond implements ai.RealtimeSession.
func (s *session) Respond(n int, instruction string, words bool) {
	terms := map[string]any{"metadata": map[string]string{"n": strconv.Itoa(n)}}
	if instruction != "" { // they stand in place of the session's own
		terms["instructions"] = strings.TrimSpace(s.setup.System + "\n\n" + instruction)
	}
	if words && !s.dialect.Eager {
		terms["tool_choice"] = "none"
	}
	s.ask(&response{n: n, words: words, create: map[string]any{"type": "response.create", "event_id": eventOf(n), "response": terms}})
}

// Say implements ai.RealtimeSession.
func (s *session) Say(n int, text string) {
	create := s.dialect.Aloud(n, text)
	create["event_id"] = eventOf(n)
	s.ask(&response{n: n, apart: true, create: create})
}

func eventOf(n int) string { return "response_" + strconv.Itoa(n) }

// ask requests a response, or keeps the request until no other response is being written to the conversation.
func (s *session) ask(r *response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responses[r.n] = r
	s.waiting = append(s.waiting, r)
	s.next()
}

// next requests the responses that need not wait. The lock is held.
func (s *session) next() {
	var wait []*response
	for _, r := range s.waiting {
		switch {
		case r.apart && !s.dialect.Eager:
			s.box.Send(r.create)
		case s.active == nil && s.quiet():
			s.active = r
			s.request(r)
		default:
			wait = append(wait, r)
		}
	}
	s.waiting = wait
}

// request asks for a response. The lock is held.
func (s *session) request(r *response) {
	if s.dialect.Eager {
		s.coax(r)
	} else {
		s.box.Send(r.create)
	}
}
