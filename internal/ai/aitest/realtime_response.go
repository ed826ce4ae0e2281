package aitest

import (
	"context"
	"encoding/base64"
	"math"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

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
			"usage": c.usage(b)}})
	})
}

// usage is what a response is counted as: a few words of prompt, half of them cached, and sound in and out.
func (c *realtimeConn) usage(b Behaviour) map[string]any {
	text, sound := len(strings.Fields(b.Text))+1, 20*len(strings.Fields(b.Text))
	if c.writes() {
		sound = 0
	}
	return map[string]any{"input_tokens": 10 + 40, "output_tokens": text + sound, "total_tokens": 50 + text + sound,
		"input_token_details": map[string]any{"text_tokens": 10, "audio_tokens": 40, "cached_tokens": 35,
			"cached_tokens_details": map[string]any{"text_tokens": 5, "audio_tokens": 30}},
		"output_token_details": map[string]any{"text_tokens": text, "audio_tokens": sound}}
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
	speed, _ := c.term("audio", "output", "speed").(float64)
	pcm := c.s.Voice.tone(b.Text, speed, rate)
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
		cut := it.Cut
		if !cut {
			it.Sound += time.Duration(n) * time.Second / time.Duration(rate)
		}
		c.mu.Unlock()
		if cut {
			return false
		}
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

// tone is the audio of a text.
func (s *Synthesizer) tone(text string, speed float64, rate audio.Rate) []int16 {
	pitch := s.Pitch(text)
	pcm := make([]int16, int(SpeechTime(text, speed)*time.Duration(rate)/time.Second))
	for i := range pcm {
		pcm[i] = int16(loudness * math.Sin(2*math.Pi*pitch*float64(i)/float64(rate)))
	}
	return pcm
}
