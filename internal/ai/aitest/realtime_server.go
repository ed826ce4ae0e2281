package aitest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/audio"
)

// RealtimeModel is a Server's model that hears and speaks.
const RealtimeModel = "test-realtime"

// RealtimeConversation is the content of one of the Server's realtime sessions.
type RealtimeConversation struct {
	Terms map[string]any // of its last session.update
	Items []RealtimeItem // in order
	Over  bool
}

// RealtimeItem is one item of a conversation.
type RealtimeItem struct {
	ID, Type, Role, Text string
	Sound                time.Duration // of spoken ones: as much as there is of it
	Cut                  bool          // it was truncated
	Call                 ai.ToolCall   // of function_call
}

// ScriptRealtime appends to how the next responses of realtime sessions are made. A Behaviour's tokens are then pieces
// of audio, of PieceTime each, or words if it writes. With Status the next session is refused instead.
func (s *Server) ScriptRealtime(b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.realtime.next = append(s.realtime.next, b...)
}

// UsuallyRealtime sets how unscripted responses are made.
func (s *Server) UsuallyRealtime(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.realtime.usual = b
}

// Conversations lists those of all realtime sessions so far.
func (s *Server) Conversations() (list []RealtimeConversation) {
	s.mu.Lock()
	sessions := slices.Clone(s.sessions)
	s.mu.Unlock()
	for _, c := range sessions {
		list = append(list, c.conversation())
	}
	return list
}

// Complaints lists what realtime clients did that a real server answers with an error.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.complaints)
}

// DropRealtime ends all realtime sessions with a close code; 0 resets their sockets.
func (s *Server) DropRealtime(code int, reason string) {
	s.mu.Lock()
	sessions := slices.Clone(s.sessions)
	s.mu.Unlock()
	for _, c := range sessions {
		if code == 0 {
			_ = c.ws.CloseNow()
		} else {
			_ = c.ws.Close(websocket.StatusCode(code), reason)
		}
	}
}

// realtimeConn is a realtime session.
type realtimeConn struct {
	s   *Server
	ws  *websocket.Conn
	ctx context.Context
	wg  sync.WaitGroup

	mu      sync.Mutex
	terms   map[string]any
	items   []*realtimeItem
	buffer  []int16 // at the format's rate
	count   int
	active  *realtimeResponse
	outside map[string]*realtimeResponse
	over    bool
}

type realtimeItem struct {
	RealtimeItem
}

type realtimeResponse struct {
	id     string
	cancel context.CancelFunc
	apart  bool
}

// converse is GET /v1/realtime.
func (s *Server) converse(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	if !s.allowed(w, r) {
		return
	}
	s.mu.Lock()
	refuse := len(s.realtime.next) > 0 && s.realtime.next[0].Status != 0
	var b Behaviour
	if refuse {
		b = s.realtime.take()
	}
	s.mu.Unlock()
	if refuse {
		scripted(w, b)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(16 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	c := &realtimeConn{s: s, ws: ws, ctx: ctx, outside: map[string]*realtimeResponse{}, terms: map[string]any{}}
	defer func() { _ = ws.CloseNow() }()
	if m := r.URL.Query().Get("model"); m != RealtimeModel {
		c.fail("", "invalid_request_error", "model_not_found", "The model `"+m+"` does not exist.")
		_ = ws.Close(websocket.StatusPolicyViolation, "model_not_found")
		return
	}
	s.mu.Lock()
	s.sessions = append(s.sessions, c)
	life := s.SessionTime
	s.mu.Unlock()
	created := map[string]any{"type": "realtime", "id": "sess_1", "object": "realtime.session"}
	if life > 0 {
		created["expires_at"] = time.Now().Add(life).Unix()
		expire := time.AfterFunc(life, func() {
			c.fail("", "invalid_request_error", "session_expired",
				"Your session hit the maximum duration of 60 minutes.")
			_ = ws.Close(websocket.StatusNormalClosure, "session_expired")
		})
		defer expire.Stop()
	}
	c.emit("session.created", map[string]any{"session": created})
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			break
		}
		c.take(raw)
	}
	cancel()
	c.wg.Wait()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
}

func (c *realtimeConn) conversation() RealtimeConversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := RealtimeConversation{Terms: c.terms, Over: c.over}
	for _, i := range c.items {
		out.Items = append(out.Items, i.RealtimeItem)
	}
	return out
}

func (c *realtimeConn) emit(kind string, fields map[string]any) {
	fields["type"], fields["event_id"] = kind, "event_x"
	raw, _ := json.Marshal(fields)
	_ = c.ws.Write(c.ctx, websocket.MessageText, raw) // the client may have left
}

func (c *realtimeConn) fail(eventID, kind, code, message string) {
	if code != "session_expired" {
		c.s.mu.Lock()
		c.s.complaints = append(c.s.complaints, eventID+" "+code+": "+message)
		c.s.mu.Unlock()
	}
	c.emit("error", map[string]any{"error": map[string]any{"type": kind, "code": code, "message": message,
		"param": nil, "event_id": orNull(eventID)}})
}

// clientEvent is an event sent by a client.
type clientEvent struct {
	Type         string          `json:"type"`
	EventID      string          `json:"event_id"`
	Session      json.RawMessage `json:"session"`
	Audio        string          `json:"audio"`
	ItemID       string          `json:"item_id"`
	Previous     *string         `json:"previous_item_id"`
	ContentIndex *int            `json:"content_index"`
	AudioEndMS   *int64          `json:"audio_end_ms"`
	ResponseID   string          `json:"response_id"`
	Item         *struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Role    string `json:"role"`
		Status  string `json:"status"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Output    string `json:"output"`
	} `json:"item"`
	Response *struct {
		Instructions string            `json:"instructions"`
		Metadata     map[string]string `json:"metadata"`
		Conversation string            `json:"conversation"`
		Tools        []any             `json:"tools"`
		ToolChoice   string            `json:"tool_choice"`
		Input        []struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content []struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content"`
		} `json:"input"`
	} `json:"response"`
}

func (c *realtimeConn) take(raw []byte) {
	var e clientEvent
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		c.fail("", "invalid_request_error", "unknown_parameter", err.Error())
		return
	}
	bad := func(code, format string, args ...any) {
		c.fail(e.EventID, "invalid_request_error", code, fmt.Sprintf(format, args...))
	}
	switch e.Type {
	case "session.update":
		c.update(&e, bad)
	case "input_audio_buffer.append":
		data, err := base64.StdEncoding.DecodeString(e.Audio)
		if err != nil {
			bad("invalid_value", "Invalid 'audio'. Expected base64.")
			return
		}
		if c.coded() {
			c.buffer = audio.DecodeULaw(c.buffer, data)
			return
		}
		for i := 0; i+1 < len(data); i += 2 {
			c.buffer = append(c.buffer, int16(data[i])|int16(data[i+1])<<8)
		}
	case "input_audio_buffer.commit":
		c.commit(bad)
	case "input_audio_buffer.clear":
		c.buffer = nil
		c.emit("input_audio_buffer.cleared", map[string]any{})
	case "conversation.item.create":
		c.create(&e, bad)
	case "conversation.item.delete":
		c.remove(e.ItemID, bad)
	case "conversation.item.truncate":
		c.truncate(&e, bad)
	case "response.create":
		c.respond(&e, bad)
	case "response.cancel":
		c.mu.Lock()
		r := c.active
		if e.ResponseID != "" && (r == nil || r.id != e.ResponseID) {
			r = c.outside[e.ResponseID]
		}
		c.mu.Unlock()
		if r == nil {
			c.emit("error", map[string]any{"error": map[string]any{"type": "invalid_request_error",
				"code": "response_cancel_not_active", "message": "Cancellation failed: no active response found"}})
			return
		}
		r.cancel()
	default:
		bad("invalid_value", "Invalid value: '%s'.", e.Type)
	}
}

var sessionFields = []string{"type", "instructions", "output_modalities", "audio", "tools", "tool_choice", "truncation",
	"model", "include", "max_output_tokens", "tracing", "prompt", "parallel_tool_calls", "reasoning"}

func (c *realtimeConn) update(e *clientEvent, bad func(code, format string, args ...any)) {
	var terms map[string]any
	if json.Unmarshal(e.Session, &terms) != nil || terms["type"] != "realtime" {
		bad("missing_required_parameter", "Missing required parameter: 'session.type'.")
		return
	}
	for name := range terms {
		if !slices.Contains(sessionFields, name) {
			bad("unknown_parameter", "Unknown parameter: 'session.%s'.", name)
			return
		}
	}
	c.mu.Lock()
	for name, v := range terms {
		c.terms[name] = v
	}
	c.mu.Unlock()
	if v, ok := c.term("audio", "output", "voice").(string); ok && !slices.Contains(Voices, v) {
		bad("invalid_value", "Invalid value: '%s'.", v)
		return
	}
	c.emit("session.updated", map[string]any{"session": terms})
}

// term is one of the session's terms.
func (c *realtimeConn) term(path ...string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	var v any = c.terms
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func (c *realtimeConn) coded() bool {
	return c.term("audio", "input", "format", "type") == "audio/pcmu"
}

func (c *realtimeConn) rate() audio.Rate {
	if c.coded() {
		return audio.Narrow
	}
	return serverRate
}

func (c *realtimeConn) writes() bool {
	list, _ := c.term("output_modalities").([]any)
	return len(list) == 1 && list[0] == "text"
}

// commit turns the audio heard into an item, and notes what it said.
func (c *realtimeConn) commit(bad func(code, format string, args ...any)) {
	pcm := c.buffer
	c.buffer = nil
	if len(pcm) < int(c.rate())/10 {
		bad("input_audio_buffer_commit_empty",
			"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has %dms of audio.",
			len(pcm)*1000/int(c.rate()))
		return
	}
	c.s.mu.Lock()
	b := c.s.hearing.take()
	c.s.mu.Unlock()
	text := b.Text
	switch {
	case text != "":
	case c.s.Transcribe != nil:
		text = c.s.Transcribe(Utterance{PCM: pcm, Rate: c.rate()})
	default:
		text = c.s.Voice.Find(pcm, c.rate())
	}
	it := &realtimeItem{RealtimeItem: RealtimeItem{ID: c.name("item"), Type: "message", Role: "user", Text: text,
		Sound: time.Duration(len(pcm)) * time.Second / time.Duration(c.rate())}}
	previous := c.insert(it, nil)
	c.emit("input_audio_buffer.committed", map[string]any{"item_id": it.ID, "previous_item_id": orNull(previous)})
	c.tellItem(it, previous)
	if c.term("audio", "input", "transcription") == nil {
		return
	}
	c.wg.Go(func() {
		if sleepOr(c.ctx, b.FirstDelay) != nil {
			return
		}
		at := map[string]any{"item_id": it.ID, "content_index": 0}
		if b.Status != 0 {
			at["error"] = map[string]any{"type": "server_error", "code": "audio_unintelligible", "message": b.Message}
			c.emit("conversation.item.input_audio_transcription.failed", at)
			return
		}
		for _, w := range pieces(text, nil) {
			c.emit("conversation.item.input_audio_transcription.delta",
				map[string]any{"item_id": it.ID, "content_index": 0, "delta": w.Text})
		}
		at["transcript"] = text
		c.emit("conversation.item.input_audio_transcription.completed", at)
	})
}

func sleepOr(ctx context.Context, d time.Duration) error { return wait(ctx, d, nil, 0) }

func (c *realtimeConn) name(kind string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	return fmt.Sprintf("%s_%d", kind, c.count)
}

// insert puts an item after another (nil for last), and returns the one before it.
func (c *realtimeConn) insert(it *realtimeItem, after *string) (previous string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := len(c.items)
	if after != nil {
		at = slices.IndexFunc(c.items, func(i *realtimeItem) bool { return i.ID == *after }) + 1
	}
	c.items = slices.Insert(c.items, at, it)
	if at > 0 {
		previous = c.items[at-1].ID
	}
	return previous
}

func (c *realtimeConn) tellItem(it *realtimeItem, previous string) {
	c.emit("conversation.item.added", map[string]any{"previous_item_id": orNull(previous),
		"item": map[string]any{"id": it.ID, "type": it.Type, "role": it.Role, "object": "realtime.item"}})
}

func (c *realtimeConn) find(id string) *realtimeItem {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, it := range c.items {
		if it.ID == id {
			return it
		}
	}
	return nil
}

func (c *realtimeConn) create(e *clientEvent, bad func(code, format string, args ...any)) {
	in := e.Item
	switch {
	case in == nil:
		bad("missing_required_parameter", "Missing required parameter: 'item'.")
		return
	case len(in.ID) > 32:
		bad("string_above_max_length", "Invalid 'item.id': string too long.")
		return
	case in.ID != "" && c.find(in.ID) != nil:
		bad("item_create_item_id_already_exists", "Item with id '%s' already exists.", in.ID)
		return
	case e.Previous != nil && *e.Previous != "root" && c.find(*e.Previous) == nil:
		bad("item_create_previous_item_id_not_found", "Previous item '%s' not found.", *e.Previous)
		return
	}
	it := &realtimeItem{RealtimeItem: RealtimeItem{ID: in.ID, Type: in.Type, Role: in.Role}}
	switch want := map[string]string{"user": "input_text", "assistant": "output_text", "system": "input_text"}; in.Type {
	case "message":
		for _, part := range in.Content {
			if part.Type != want[in.Role] {
				bad("invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", part.Type, want[in.Role])
				return
			}
			it.Text += part.Text
		}
	case "function_call":
		it.Call = ai.ToolCall{ID: in.CallID, Name: in.Name, Arguments: in.Arguments}
	case "function_call_output":
		it.Call.ID, it.Text = in.CallID, in.Output
		c.mu.Lock()
		known := slices.ContainsFunc(c.items, func(i *realtimeItem) bool {
			return i.Type == "function_call" && i.Call.ID == in.CallID
		})
		c.mu.Unlock()
		if !known {
			bad("invalid_tool_call_id", "Tool call ID '%s' not found in conversation.", in.CallID)
			return
		}
	default:
		bad("invalid_value", "Invalid value: '%s'.", in.Type)
		return
	}
	if it.ID == "" {
		it.ID = c.name("item")
	}
	after := e.Previous
	if after != nil && *after == "root" {
		empty := ""
		after = &empty
	}
	c.tellItem(it, c.insert(it, after))
}

func (c *realtimeConn) remove(id string, bad func(code, format string, args ...any)) {
	if c.find(id) == nil {
		bad("item_delete_invalid_item_id", "Error deleting item: the item with id '%s' does not exist.", id)
		return
	}
	c.mu.Lock()
	c.items = slices.DeleteFunc(c.items, func(i *realtimeItem) bool { return i.ID == id })
	c.mu.Unlock()
	c.emit("conversation.item.deleted", map[string]any{"item_id": id})
}

func (c *realtimeConn) truncate(e *clientEvent, bad func(code, format string, args ...any)) {
	it := c.find(e.ItemID)
	if it == nil || e.AudioEndMS == nil || e.ContentIndex == nil {
		bad("invalid_value", "Error truncating item: '%s' not found.", e.ItemID)
		return
	}
	c.mu.Lock()
	role, had := it.Role, it.Sound
	end := time.Duration(*e.AudioEndMS) * time.Millisecond
	ok := role == "assistant" && had > 0 && end <= had
	if ok {
		it.Text, it.Sound, it.Cut = cutWords(it.Text, end), end, true
	}
	c.mu.Unlock()
	if !ok {
		bad("invalid_value", "Only model output audio messages can be truncated, and not beyond their end: %s has %v, not %v",
			e.ItemID, had, end)
		return
	}
	c.emit("conversation.item.truncated", map[string]any{"item_id": e.ItemID, "content_index": 0,
		"audio_end_ms": *e.AudioEndMS})
}

// cutWords is the part of a text that is heard until a time. The server's own transcript is deleted; this stands for
// what its model holds, which is the audio.
func cutWords(text string, end time.Duration) string {
	whole := SpeechTime(text, 1)
	words := strings.Fields(text)
	n := int(math.Round(float64(len(words)) * float64(end) / float64(max(whole, 1))))
	return strings.Join(words[:min(n, len(words))], " ")
}

// request is the conversation in the form in which a Model is asked.
func (c *realtimeConn) request(e *clientEvent) ai.Request {
	req := ai.Request{}
	req.System, _ = c.term("instructions").(string)
	if e.Response != nil && e.Response.Instructions != "" {
		req.System = e.Response.Instructions
	}
	tools, _ := c.term("tools").([]any)
	for _, t := range tools {
		if m, ok := t.(map[string]any); ok {
			name, _ := m["name"].(string)
			req.Tools = append(req.Tools, ai.Tool{Name: name})
		}
	}
	req.NoCalls = e.Response != nil && e.Response.ToolChoice == "none"
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, it := range c.items {
		switch it.Type {
		case "message":
			req.Messages = append(req.Messages, ai.Message{Role: ai.Role(it.Role), Text: it.Text})
		case "function_call":
			req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Calls: []ai.ToolCall{it.Call}})
		case "function_call_output":
			req.Messages = append(req.Messages, ai.Message{Role: ai.ToolRole, CallID: it.Call.ID, Text: it.Text})
		}
	}
	return req
}

// respond makes a response.
func (c *realtimeConn) respond(e *clientEvent, bad func(code, format string, args ...any)) {
	apart := e.Response != nil && e.Response.Conversation == "none"
	c.mu.Lock()
	busy := c.active
	c.mu.Unlock()
	if !apart && busy != nil {
		bad("conversation_already_has_active_response",
			"Conversation already has an active response in progress: %s. Wait until the response is finished before creating a new one.", busy.id)
		return
	}
	var b Behaviour
	if apart { // which reads out what it is given
		for _, in := range e.Response.Input {
			for _, part := range in.Content {
				b.Text += part.Text
			}
		}
	} else {
		c.s.mu.Lock()
		b = c.s.realtime.take()
		c.s.mu.Unlock()
		if b.Text == "" && b.Calls == nil && b.Finish == "" {
			echo := Echo(c.request(e))
			b.Text, b.Calls = echo.Text, echo.Calls
		}
	}
	ctx, cancel := context.WithCancel(c.ctx)
	r := &realtimeResponse{id: c.name("resp"), cancel: cancel, apart: apart}
	c.mu.Lock()
	if apart {
		c.outside[r.id] = r
	} else {
		c.active = r
	}
	c.mu.Unlock()
	metadata := map[string]string{}
	if e.Response != nil && e.Response.Metadata != nil {
		metadata = e.Response.Metadata
	}
	shape := map[string]any{"id": r.id, "object": "realtime.response", "status": "in_progress", "metadata": metadata}
	c.emit("response.created", map[string]any{"response": shape})
	c.wg.Go(func() {
		defer cancel()
		status, details := c.make(ctx, r, b)
		c.mu.Lock()
		if c.active == r {
			c.active = nil
		}
		delete(c.outside, r.id)
		c.mu.Unlock()
		if status == "" {
			return
		}
		c.emit("response.done", map[string]any{"response": map[string]any{"id": r.id, "object": "realtime.response",
			"status": status, "status_details": details, "metadata": metadata,
			"usage": map[string]any{"input_tokens": 10, "output_tokens": len(strings.Fields(b.Text)) + 1}}})
	})
}

// make sends a response's output and returns its status; "" if the socket is gone.
func (c *realtimeConn) make(ctx context.Context, r *realtimeResponse, b Behaviour) (status string, details any) {
	ended := func() (string, any) {
		if c.ctx.Err() != nil {
			return "", nil
		}
		return "cancelled", map[string]any{"type": "cancelled", "reason": "client_cancelled"}
	}
	if b.Code != "" {
		return "failed", map[string]any{"type": "failed",
			"error": map[string]any{"type": "server_error", "code": b.Code, "message": b.Message}}
	}
	if sleepOr(ctx, b.FirstDelay) != nil {
		return ended()
	}
	if b.Text != "" {
		it := &realtimeItem{RealtimeItem: RealtimeItem{ID: c.name("item"), Type: "message", Role: "assistant"}}
		c.addOutput(r, it, 0)
		if !c.speak(ctx, r, it, b) {
			return ended()
		}
	}
	if b.Fault != "" {
		c.fault(ctx, b.Fault)
		if b.Fault == Failure {
			return "failed", map[string]any{"type": "failed",
				"error": map[string]any{"type": "server_error", "code": "server_error", "message": "The server had an error"}}
		}
		return ended()
	}
	for i, call := range b.Calls {
		if ctx.Err() != nil {
			return ended()
		}
		call.ID = c.name("call")
		it := &realtimeItem{RealtimeItem: RealtimeItem{ID: c.name("item"), Type: "function_call", Call: call}}
		c.addOutput(r, it, i+1)
		c.emit("response.function_call_arguments.done", map[string]any{"response_id": r.id, "item_id": it.ID,
			"output_index": i + 1, "call_id": call.ID, "name": call.Name, "arguments": call.Arguments})
	}
	if ctx.Err() != nil {
		return ended()
	}
	return "completed", nil
}

func (c *realtimeConn) addOutput(r *realtimeResponse, it *realtimeItem, index int) {
	if !r.apart {
		previous := c.insert(it, nil)
		defer c.tellItem(it, previous)
	}
	c.emit("response.output_item.added", map[string]any{"response_id": r.id, "output_index": index,
		"item": map[string]any{"id": it.ID, "type": it.Type, "role": it.Role, "object": "realtime.item"}})
}

// speak sends the audio of a text with its transcript, or the text alone; it is false if it was ended early.
func (c *realtimeConn) speak(ctx context.Context, r *realtimeResponse, it *realtimeItem, b Behaviour) bool {
	at := func(kind string, delta string) {
		c.emit(kind, map[string]any{"response_id": r.id, "item_id": it.ID, "output_index": 0, "content_index": 0,
			"delta": delta})
	}
	words := pieces(b.Text, nil)
	if c.writes() {
		for i, w := range words {
			if b.Fault != "" && i == b.After {
				return true
			}
			if i > 0 && sleepOr(ctx, b.TokenDelay) != nil || ctx.Err() != nil {
				return false
			}
			c.mu.Lock()
			it.Text += w.Text
			c.mu.Unlock()
			at("response.output_text.delta", w.Text)
		}
		return true
	}
	c.mu.Lock()
	it.Text = b.Text
	c.mu.Unlock()
	rate := c.rate()
	pcm := c.s.Voice.tone(b.Text, rate)
	piece := int(PieceTime * time.Duration(rate) / time.Second)
	for i := 0; len(pcm) > 0; i++ {
		if b.Fault != "" && i == b.After {
			return true
		}
		if i > 0 && sleepOr(ctx, b.TokenDelay) != nil || ctx.Err() != nil {
			return false
		}
		if len(words) > 0 { // the text is ahead of the sound
			n := min(len(words), 2)
			for _, w := range words[:n] {
				at("response.output_audio_transcript.delta", w.Text)
			}
			words = words[n:]
		}
		n := min(piece, len(pcm))
		var raw []byte
		if c.coded() {
			raw = audio.EncodeULaw(nil, pcm[:n])
		} else {
			for _, v := range pcm[:n] {
				raw = append(raw, byte(v), byte(uint16(v)>>8))
			}
		}
		pcm = pcm[n:]
		c.mu.Lock()
		it.Sound += time.Duration(n) * time.Second / time.Duration(rate)
		c.mu.Unlock()
		at("response.output_audio.delta", base64.StdEncoding.EncodeToString(raw))
		if i == 0 && b.Gate != nil {
			select {
			case <-b.Gate:
			case <-ctx.Done():
				return false
			}
		}
	}
	for _, w := range words {
		at("response.output_audio_transcript.delta", w.Text)
	}
	return true
}

func (c *realtimeConn) fault(ctx context.Context, f Fault) {
	switch f {
	case Reset:
		_ = c.ws.CloseNow()
	case Cutoff:
		_ = c.ws.Close(websocket.StatusInternalError, "internal error")
	case Garbage:
		_ = c.ws.Write(c.ctx, websocket.MessageText, []byte(`{"type": nonsense`))
	case Stall:
		<-ctx.Done()
	}
}

// tone is the audio of a text.
func (s *Synthesizer) tone(text string, rate audio.Rate) []int16 {
	pitch := s.Pitch(text)
	pcm := make([]int16, int(SpeechTime(text, 1)*time.Duration(rate)/time.Second))
	for i := range pcm {
		pcm[i] = int16(loudness * math.Sin(2*math.Pi*pitch*float64(i)/float64(rate)))
	}
	return pcm
}
