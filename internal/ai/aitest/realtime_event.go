package aitest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

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
	hears, _ := c.term("audio", "input", "transcription", "model").(string)
	for _, name := range []string{"languages", "keywords"} {
		v := c.term("audio", "input", "transcription", name)
		list, ok := v.([]any)
		switch at := "session.audio.input.transcription." + name; {
		case v != nil && hears != DetectingModel:
			bad("invalid_parameter", "'%s' is not supported with this model.", at)
			return
		case v != nil && (!ok || len(list) == 0 || slices.ContainsFunc(list, func(v any) bool { s, ok := v.(string); return !ok || badHint(s) })):
			bad("invalid_value", "Invalid value: '%s'.", at)
			return
		}
	}
	if c.term("audio", "input", "transcription", "language") != nil && c.term("audio", "input", "transcription", "languages") != nil {
		bad("invalid_parameter", "'language' and 'languages' can't both be set.")
		return
	}
	if c.term("reasoning") != nil && c.model != ReasoningRealtimeModel {
		bad("invalid_parameter", "'session.reasoning' is not supported with this model.")
		return
	}
	if v, ok := c.term("audio", "output", "voice").(string); ok && (!slices.Contains(Voices, v) || slices.Contains(speechVoices, v)) {
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
		model, _ := c.term("audio", "input", "transcription", "model").(string)
		for name, v := range c.s.found(model, text) {
			at[name] = v
		}
		delete(at, "text")
		at["transcript"] = text
		at["usage"] = map[string]any{"type": "tokens", "input_tokens": 12, "output_tokens": 3, "total_tokens": 15,
			"input_token_details": map[string]any{"text_tokens": 2, "audio_tokens": 10}}
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
