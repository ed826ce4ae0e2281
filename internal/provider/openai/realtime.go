package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
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

// RealtimeModel is one of the server's models that hear and speak, over a WebSocket. hears is the model that
// transcribes what it heard.
func (c *Client) RealtimeModel(code, hears string) ai.RealtimeModel {
	return realtimeModel{c, code, hears}
}

type realtimeModel struct {
	client      *Client
	code, hears string
}

const (
	connectTime  = 10 * time.Second
	pingTime     = 20 * time.Second
	expiryNotice = 5 * time.Minute // so long before its end a session says that it is going to end
)

// Connect implements ai.RealtimeModel.
func (m realtimeModel) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	address, err := wire.Address(m.client.rest.Base, "/realtime", url.Values{"model": {m.code}})
	if err != nil {
		return nil, ai.TheModel.Of(&ai.Error{Kind: ai.Config, Err: err})
	}
	header := http.Header{}
	m.client.rest.Sign(header)
	conn, err := wire.Dial(ctx, address, wire.Options{Header: header, Ping: pingTime})
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	s := &session{conn: conn, setup: setup, names: rest.NewNames(setup.Tools), model: m.code, hears: m.hears,
		tally: ai.TallyOf(ctx),
		out:   make(chan ai.RealtimeEvent, 16), done: make(chan struct{}), responses: map[int]*response{},
		named: map[string]*response{}, heard: map[string]*hearsay{}, calls: map[string]string{}}
	s.box.Resume(conn)
	if err := s.accepted(ctx); err != nil {
		conn.Close()
		return nil, ai.TheModel.Of(err)
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	go s.run()
	return s, nil
}

// accepted waits until the server accepts the session's settings. A server that stays silent has stalled.
func (s *session) accepted(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	stop := context.AfterFunc(patience, s.conn.Close)
	err := s.begin()
	switch stopped := stop(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !stopped:
		return &ai.Error{Kind: ai.Stalled, Err: errors.New("the session was not accepted in time")}
	}
	return err
}

// session is an open conversation. Its user writes to the outbox; the reader's goroutine handles what the server sends.
// Both use the items under the lock.
type session struct {
	conn    *wire.Conn
	setup   ai.RealtimeSetup
	names   rest.Names
	model   string
	hears   string    // the model that writes down what was heard
	tally   *ai.Tally // of the call
	ctx     context.Context
	cancel  context.CancelFunc
	out     chan ai.RealtimeEvent
	done    chan struct{}
	expiry  time.Time // zero where the server doesn't say
	box     wire.Outbox
	written int // samples since the utterance began

	rateIn, rateOut *audio.Resampler // nil where the line's own codec is sent
	wide            []int16          // scratch of who writes

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
}

// response is something that the model was asked to say, or a text that was added.
type response struct {
	n      int
	create any // the message that asks for it
	apart  bool
	id     string
	items  []item
	over   bool // the server has said so
	told   bool // and so have we
	cut    bool
	at     time.Duration
	text   string
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
	forgotten bool
	final     bool
}

// format is the audio format to ask for: G.711 as it is on the line, and 24 kHz PCM for anything else.
func (s *session) format() map[string]any {
	if s.setup.Rate == audio.Narrow {
		return map[string]any{"type": "audio/pcmu"}
	}
	return map[string]any{"type": "audio/pcm", "rate": realtimeRate}
}

// realtimeRate is the sample rate of realtime sessions' PCM.
const realtimeRate = 24000

// begin waits for the session, configures it, and waits until that is accepted.
func (s *session) begin() error {
	s.box.Head, s.box.Tail = `{"type":"input_audio_buffer.append","audio":"`, `"}`
	s.box.Piece, s.box.Encode = int(audio.Narrow)/10, audio.EncodeULaw
	if s.setup.Rate != audio.Narrow {
		s.box.Piece, s.box.Encode = 2*realtimeRate/10, nil
		var err error
		if s.rateIn, err = audio.NewResampler(int(s.setup.Rate), realtimeRate); err != nil {
			return &ai.Error{Kind: ai.Config, Err: err}
		}
		if s.rateOut, err = audio.NewResampler(realtimeRate, int(s.setup.Rate)); err != nil {
			return &ai.Error{Kind: ai.Config, Err: err}
		}
	}
	created, err := s.expect("session.created")
	if err != nil {
		return err
	}
	if at := created.Session.ExpiresAt; at > 0 {
		s.expiry = time.Unix(at, 0)
	}
	if err := s.conn.Send(map[string]any{"type": "session.update", "session": s.terms()}); err != nil {
		return err
	}
	_, err = s.expect("session.updated")
	return err
}

// terms is the configuration of the session.
func (s *session) terms() map[string]any {
	input := map[string]any{"format": s.format(), "turn_detection": nil}
	if !s.setup.Reads { // it hears nothing
		input["transcription"] = s.transcription()
	}
	sound := map[string]any{"input": input}
	modality := "text"
	if !s.setup.Writes {
		modality = "audio"
		output := map[string]any{"format": s.format(), "voice": s.setup.Voice}
		if s.setup.Speed > 0 {
			output["speed"] = min(max(s.setup.Speed, 0.25), 1.5)
		}
		sound["output"] = output
	}
	tools := []any{}
	for _, t := range s.setup.Tools {
		tools = append(tools, map[string]any{"type": "function", "name": s.names.Wire(t.Name),
			"description": t.Description, "parameters": schema.ForOpenAI(t.Schema)})
	}
	terms := map[string]any{"type": "realtime", "instructions": s.setup.System, "output_modalities": []string{modality},
		"audio": sound, "tools": tools, "tool_choice": "auto",
		// Old turns are dropped in large steps, so that the rest stays in the server's cache.
		"truncation": map[string]any{"type": "retention_ratio", "retention_ratio": 0.8}}
	if s.setup.Reads && reasoner.MatchString(s.model) { // there is nothing to think about
		terms["reasoning"] = map[string]any{"effort": "minimal"}
	}
	return terms
}

// reasoner matches the realtime models that reason; others refuse a session that says how much.
var reasoner = regexp.MustCompile(`^gpt-realtime-[2-9](\.\d+)?(-\D|$)`)

// transcription is the configuration of the model that writes down what is heard. A field that it doesn't take would
// refuse the whole session.
func (s *session) transcription() map[string]any {
	hears := map[string]any{"model": s.hears}
	lists := takesHints(s.hears)
	switch {
	case lists && s.setup.Language != "":
		hears["languages"] = append([]string{s.setup.Language}, s.setup.Others...)
	case len(s.setup.Others) == 0 && s.setup.Language != "":
		hears["language"] = s.setup.Language
	}
	switch words := terms(s.setup.Keywords); {
	case len(words) == 0:
	case lists:
		hears["keywords"] = words
	default:
		hears["prompt"] = strings.Join(words, ", ")
	}
	return hears
}

// expect reads until an event of a given kind arrives. Its error is the one with which the session was refused.
func (s *session) expect(kind string) (realtimeEvent, error) {
	for {
		raw, _, err := s.conn.Receive()
		if err != nil {
			return realtimeEvent{}, err
		}
		var e realtimeEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			return realtimeEvent{}, &ai.Error{Kind: ai.Malformed, Err: err}
		}
		switch e.Type {
		case kind:
			return e, nil
		case "error":
			return realtimeEvent{}, e.Error.failure()
		}
	}
}

// run keeps the session going until it ends.
func (s *session) run() {
	defer close(s.done)
	defer close(s.out)
	stop := context.AfterFunc(s.ctx, s.conn.Close)
	var wg sync.WaitGroup
	crash.Go(&wg, func() { s.box.Run(s.ctx) }, s.crashed)
	crash.Go(&wg, s.watch, s.crashed)
	err := crash.Run(s.read)
	ended := s.ctx.Err() != nil
	s.cancel()
	if stop() {
		s.conn.Close()
	}
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
	s.written += len(pcm)
	s.box.Sound(pcm)
}

// shortest is the least sound that the server accepts as an utterance.
const shortest = 100 * time.Millisecond

// End implements ai.RealtimeSession.
func (s *session) End() {
	s.mu.Lock()
	u := &hearsay{n: s.utterances}
	s.utterances++
	s.committed, s.said = append(s.committed, u), append(s.said, u)
	s.mu.Unlock()
	rate := int(audio.Narrow)
	if s.rateIn != nil {
		rate = realtimeRate
	}
	if lacks := int(shortest)*rate/int(time.Second) - s.written; lacks > 0 {
		s.sound(make([]int16, lacks))
	}
	s.written = 0
	s.box.Send(map[string]any{"type": "input_audio_buffer.commit", "event_id": "commit_" + strconv.Itoa(u.n)})
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
		role, kind = "assistant", "output_text"
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
	if words {
		terms["tool_choice"] = "none"
	}
	s.ask(&response{n: n, create: map[string]any{"type": "response.create", "event_id": eventOf(n), "response": terms}})
}

// Say implements ai.RealtimeSession. It is an out-of-band response: within the conversation, the model might say more
// than the text.
func (s *session) Say(n int, text string) {
	s.ask(&response{n: n, apart: true, create: map[string]any{"type": "response.create", "event_id": eventOf(n),
		"response": map[string]any{"metadata": map[string]string{"n": strconv.Itoa(n)}, "conversation": "none",
			"tools": []any{}, "tool_choice": "none",
			"instructions": verbatim, "input": []any{map[string]any{"type": "message", "role": "user",
				"content": []any{map[string]any{"type": "input_text", "text": text}}}}}}})
}

// verbatim is the instruction to read a text aloud.
const verbatim = "You are a voice that reads out. Say the text of the message exactly as it is written, word for word, in its own language: add nothing, leave nothing out, and answer nothing that it asks."

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
		case r.apart:
			s.box.Send(r.create)
		case s.active == nil:
			s.active = r
			s.box.Send(r.create)
		default:
			wait = append(wait, r)
		}
	}
	s.waiting = wait
}
