// Package realtime is a session with a model that hears and speaks, in OpenAI's realtime protocol, which other vendors
// speak too: what they do differently is a Dialect.
package realtime

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/live"
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
	Vendor          string // its code
	RecognizerModel string // the model that writes down what is heard, as it is counted
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

// expiryNotice is how long before its end a session says that it is going to end.
const expiryNotice = 5 * time.Minute

// Connect implements ai.RealtimeModel.
func (m Model) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	s := &session{setup: setup, names: rest.NewNames(setup.Tools), model: m.Code, dialect: m.Dialect, responses: map[int]*response{},
		named: map[string]*response{}, heard: map[string]*hearsay{}, calls: map[string]string{}}
	s.Tally, s.Take, s.Passes = ai.TallyOf(ctx), s.take, s.passes
	err := s.format()
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	conn, err := live.Dial(ctx, m.Base, "/realtime", url.Values{"model": {m.Code}}, m.Sign, nil, s.accepted)
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	s.Serve(ctx, conn)
	return s, nil
}

// session is an open conversation. Its user writes to the outbox; the reader's goroutine handles what the server sends.
// Both use the items under the lock.
type session struct {
	live.Link
	setup   ai.RealtimeSetup
	names   rest.Names
	model   string
	dialect Dialect
	begun   bool          // session.created has come
	written int           // samples since the utterance began
	billed  time.Duration // that the server has counted of the session's sound

	rateIn, rateOut *audio.Resampler // nil where the line's own codec is sent
	wide            []int16          // scratch of who writes

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

// format prepares the sound of both directions.
func (s *session) format() error {
	s.Box.Head, s.Box.Tail = `{"type":"input_audio_buffer.append","audio":"`, `"}`
	s.Box.Piece, s.Box.Encode = int(audio.Narrow)/10, audio.EncodeULaw
	if s.setup.Rate != audio.Narrow {
		s.Box.Piece, s.Box.Encode = 2*Rate/10, nil
		var err error
		if s.rateIn, err = audio.NewResampler(int(s.setup.Rate), Rate); err != nil {
			return &ai.Error{Kind: ai.Config, Err: err}
		}
		if s.rateOut, err = audio.NewResampler(Rate, int(s.setup.Rate)); err != nil {
			return &ai.Error{Kind: ai.Config, Err: err}
		}
	}
	return nil
}

// accepted configures the session as soon as there is one, and reports whether the server has taken that.
func (s *session) accepted(conn *wire.Conn, raw []byte) (bool, error) {
	var e realtimeEvent
	if err := live.Read(raw, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "error":
		return false, e.Error.Failure()
	case "session.updated":
		return s.begun, nil
	case "session.created", "conversation.created": // xAI may send the second alone
		if s.begun {
			return false, nil
		}
		s.begun = true
		if at := e.Session.ExpiresAt; at > 0 {
			s.Ends(time.Unix(at, 0), expiryNotice)
		} else if s.dialect.Lasts > 0 {
			s.Ends(time.Now().Add(s.dialect.Lasts), expiryNotice)
		}
		return false, conn.Send(map[string]any{"type": "session.update", "session": s.dialect.Terms(s.setup, s.tools())})
	}
	return false, nil
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
	s.Box.Sound(pcm)
}

// shortest is the least sound that the server accepts as an utterance.
const shortest = 100 * time.Millisecond

// End implements ai.RealtimeSession.
func (s *session) End() {
	s.Lock()
	u := &hearsay{n: s.utterances, ended: time.Now()}
	s.utterances++
	s.committed, s.said = append(s.committed, u), append(s.said, u)
	s.Unlock()
	rate := int(audio.Narrow)
	if s.rateIn != nil {
		rate = Rate
	}
	if lacks := int(shortest)*rate/int(time.Second) - s.written; lacks > 0 {
		s.sound(make([]int16, lacks))
	}
	s.written = 0
	s.Box.Send(map[string]any{"type": "input_audio_buffer.commit", "event_id": "commit_" + strconv.Itoa(u.n)})
	if s.dialect.Eager {
		s.Box.Send(clearBuffer)
		s.speaks(false)
	}
}

// Forget implements ai.RealtimeSession.
func (s *session) Forget(n int) {
	s.Lock()
	defer s.Unlock()
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
	s.Box.Send(map[string]any{"type": "conversation.item.delete", "item_id": id})
}

// Add implements ai.RealtimeSession.
func (s *session) Add(n int, messages ...ai.Message) {
	s.Lock()
	defer s.Unlock()
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
			s.Box.Send(map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "function_call",
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
	s.Box.Send(create)
}

func (s *session) result(callID, text string) {
	create := map[string]any{"type": "conversation.item.create", "item": map[string]any{"type": "function_call_output",
		"call_id": callID, "output": text}}
	if after := s.calls[callID]; after != "" {
		create["previous_item_id"] = after
	}
	s.Box.Send(create)
}

// Result implements ai.RealtimeSession. The result is placed directly after its call, whatever was said since.
func (s *session) Result(callID, result string) {
	s.Lock()
	defer s.Unlock()
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
	s.Lock()
	defer s.Unlock()
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
			s.Box.Send(r.create)
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
		s.Box.Send(r.create)
	}
}
