package xaitest

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai/aitest"
)

// conn is a session. What xAI does beside its documents, as others measured it: an utterance that is committed starts a
// reply unless the buffer is cleared at once; a reply that is asked for right after one, or after another reply, isn't
// made; sound stops a reply without ending it; a cancelled reply leaves the conversation; usage stands beside the
// response.
type conn struct {
	s        *Server
	ctx      context.Context
	wg       sync.WaitGroup
	up, down *websocket.Conn

	mu       sync.Mutex
	formed   bool // a session.update was taken
	buffered bool // there is sound that was not committed
	loud     bool // and it is not silence
	joining  int  // utterances that were committed, and are not in the conversation yet
	answered bool // nothing came since the last utterance or reply
	own      *own
	active   string              // the reply that is being made
	mute     map[string]bool     // replies that were stopped by sound
	made     map[string][]string // items of replies
	gone     map[string]bool     // items of cancelled replies
	heard    map[string]string
	read     bool    // the reply that comes next is a text that is said as it is
	billed   float64 // seconds
	count    int
}

// own is a reply that the server began by itself.
type own struct {
	id   string
	stop context.CancelFunc
}

const ownDelay = 30 * time.Millisecond // between an utterance and the reply that it starts

var sessionFields = []string{"model", "instructions", "reasoning", "voice", "turn_detection", "resumption", "audio", "tools", "replace"}

// client takes what the client says.
func (c *conn) client(raw []byte) {
	m := decode(raw)
	id, _ := m["event_id"].(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m["type"] {
	case "session.update":
		c.update(m, id)
	case "input_audio_buffer.append":
		c.append(m, raw)
	case "input_audio_buffer.commit":
		c.commit(raw)
	case "input_audio_buffer.clear":
		if c.own != nil {
			c.own.stop()
		}
		c.buffered, c.loud, c.answered = false, false, false
		write(c.ctx, c.up, raw)
	case "conversation.item.create":
		c.create(m)
	case "conversation.item.delete":
		if item, _ := m["item_id"].(string); !c.gone[item] {
			write(c.ctx, c.up, raw)
		}
	case "response.create":
		c.respond(m, id)
	case "response.cancel":
		if c.own != nil && m["response_id"] == c.own.id {
			c.own.stop()
			return
		}
		write(c.ctx, c.up, raw)
	case "conversation.item.truncate":
		write(c.ctx, c.up, raw)
	default:
		c.bad(id, fmt.Sprintf("Unknown event type: %v", m["type"]))
	}
}

func (c *conn) bad(id, message string) {
	c.s.complain(message)
	write(c.ctx, c.down, map[string]any{"type": "error", "event_id": "e", "error": map[string]any{
		"type": "invalid_request_error", "code": nil, "message": message, "param": nil, "event_id": id}})
}

// update translates the session's configuration.
func (c *conn) update(m map[string]any, id string) {
	in, _ := m["session"].(map[string]any)
	for name := range in {
		if !slices.Contains(sessionFields, name) {
			c.bad(id, "Unknown field: session."+name)
			return
		}
	}
	if v, ok := in["voice"].(string); ok && !slices.Contains(Voices, strings.ToLower(v)) {
		c.bad(id, "Voice not found: "+v)
		return
	}
	if d, ok := in["turn_detection"].(map[string]any); !c.formed && (!ok || d["type"] != nil) {
		c.s.complain("turns are found by the server")
	}
	c.formed = true
	c.s.mu.Lock()
	c.s.terms = append(c.s.terms, in)
	c.s.mu.Unlock()
	out := map[string]any{"type": "realtime", "output_modalities": []string{"audio"}}
	for _, name := range []string{"instructions", "tools"} {
		if v, ok := in[name]; ok {
			out[name] = v
		}
	}
	if sound, ok := in["audio"].(map[string]any); ok {
		out["audio"] = map[string]any{"input": side(sound["input"], true), "output": side(sound["output"], false)}
	}
	write(c.ctx, c.up, map[string]any{"type": "session.update", "event_id": id, "session": out})
}

// side is the configuration of one direction. G.711 has a rate here.
func side(v any, hears bool) map[string]any {
	in, _ := v.(map[string]any)
	out := maps.Clone(in)
	if f, ok := in["format"].(map[string]any); ok && f["type"] == "audio/pcmu" {
		out["format"] = map[string]any{"type": "audio/pcmu"}
	}
	if !hears {
		out["voice"] = "marin"
		return out
	}
	out["turn_detection"] = nil
	if in["transcription"] != nil {
		out["transcription"] = map[string]any{"model": aitest.TranscriptionModel}
	}
	return out
}

func (c *conn) append(m map[string]any, raw []byte) {
	text, _ := m["audio"].(string)
	sound, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sound) == 0 {
		c.bad("", "Invalid audio")
		return
	}
	c.buffered = true
	c.loud = c.loud || slices.ContainsFunc(sound, func(b byte) bool { return b != 0 && b != 0xff })
	if c.active != "" {
		c.mute[c.active] = true
		c.s.complain("sound stopped a reply")
	}
	write(c.ctx, c.up, raw)
}

// commit ends an utterance, which starts a reply. Silence starts none.
func (c *conn) commit(raw []byte) {
	if !c.buffered {
		return
	}
	loud := c.loud
	c.buffered, c.loud = false, false
	c.joining++
	write(c.ctx, c.up, raw)
	if !loud {
		return
	}
	c.answered = true
	c.count++
	ctx, stop := context.WithCancel(c.ctx)
	o := &own{fmt.Sprintf("own_%d", c.count), stop}
	c.own = o
	c.wg.Go(func() { c.begin(ctx, o) })
}

// begin makes a reply that nobody asked for.
func (c *conn) begin(ctx context.Context, o *own) {
	defer func() {
		c.mu.Lock()
		if c.own == o {
			c.own = nil
		}
		c.mu.Unlock()
	}()
	select {
	case <-time.After(ownDelay):
	case <-ctx.Done():
		return
	}
	c.s.mu.Lock()
	c.s.unasked++
	c.s.mu.Unlock()
	shape := map[string]any{"id": o.id, "metadata": nil, "status": "in_progress", "status_details": "unimplemented"}
	write(c.ctx, c.down, map[string]any{"type": "response.created", "response": shape})
	item := map[string]any{"id": o.id + "_item", "type": "message", "role": "assistant"}
	write(c.ctx, c.down, map[string]any{"type": "response.output_item.added", "response_id": o.id, "item": item})
	c.mu.Lock()
	c.gone[o.id+"_item"] = true
	c.mu.Unlock()
	write(c.ctx, c.down, map[string]any{"type": "response.output_audio_transcript.delta", "response_id": o.id,
		"item_id": o.id + "_item", "delta": "Unasked."})
	shape = maps.Clone(shape)
	select {
	case <-ctx.Done():
		shape["status"] = "cancelled"
	case <-time.After(2 * time.Second):
		shape["status"] = "completed"
		c.s.complain("a reply that nobody asked for was made")
	}
	write(c.ctx, c.down, map[string]any{"type": "response.done", "response": shape})
}

// create translates an item.
func (c *conn) create(m map[string]any) {
	item, _ := m["item"].(map[string]any)
	content, _ := item["content"].([]any)
	if item["type"] == "force_message" {
		c.read = true
		write(c.ctx, c.up, map[string]any{"type": "response.create", "event_id": m["event_id"], "response": map[string]any{
			"conversation": "none", "input": []any{map[string]any{"type": "message", "role": "user", "content": content}}}})
		return
	}
	for _, part := range content {
		if p, ok := part.(map[string]any); ok && item["role"] == "assistant" && p["type"] == "text" {
			p["type"] = "output_text"
		} else if ok && p["type"] == "output_text" {
			c.s.complain("a text of the assistant's has the type output_text")
		}
	}
	c.answered = false
	write(c.ctx, c.up, m)
}

// respond makes a reply, unless xAI would not.
func (c *conn) respond(m map[string]any, id string) {
	in, _ := m["response"].(map[string]any)
	for name := range in {
		if name != "modalities" && name != "instructions" && name != "metadata" {
			c.bad(id, "Unknown field: response."+name)
			return
		}
	}
	if c.joining > 0 {
		c.s.complain("a reply was asked for before the utterance was in the conversation")
	}
	switch {
	case c.answered:
		c.s.complain("a reply was asked for, and forgotten")
		return
	case c.buffered:
		c.s.complain("a reply was asked for in the middle of an utterance")
	}
	c.answered = true
	write(c.ctx, c.up, m)
}

// server takes what the model's side says.
func (c *conn) server(raw []byte) {
	m := decode(raw)
	if m == nil { // it is broken, and stays so
		write(c.ctx, c.down, raw)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, _ := m["response"].(map[string]any)
	of, _ := m["response_id"].(string)
	if r != nil {
		of, _ = r["id"].(string)
		if details, ok := r["status_details"].(map[string]any); !ok || details["type"] != "failed" {
			r["status_details"] = "unimplemented"
		}
	}
	item, _ := m["item_id"].(string)
	switch m["type"] {
	case "session.created": // its documents have this one too
		m = map[string]any{"type": "conversation.created", "conversation": map[string]any{"id": "conv_1"}}
	case "input_audio_buffer.committed":
		c.joining--
	case "conversation.item.input_audio_transcription.delta":
		delta, _ := m["delta"].(string)
		c.heard[item] += delta
		m = map[string]any{"type": "conversation.item.input_audio_transcription.updated", "item_id": item, "transcript": c.heard[item]}
	case "conversation.item.input_audio_transcription.completed":
		delete(m, "usage")
	case "conversation.item.input_audio_transcription.failed": // there is no such event
		return
	case "response.created":
		c.active = of
		if c.read || c.s.Unmarked {
			c.read, r["metadata"] = false, nil
		}
	case "response.output_item.added":
		if it, ok := m["item"].(map[string]any); ok {
			name, _ := it["id"].(string)
			c.made[of] = append(c.made[of], name)
		}
	case "response.done":
		if c.s.Unmarked {
			r["metadata"] = nil
		}
		if c.finish(of, m, r) {
			return
		}
	}
	if !c.mute[of] {
		write(c.ctx, c.down, m)
	}
}

// finish is the end of a reply. One that was stopped by sound has none.
func (c *conn) finish(of string, m, r map[string]any) (unsaid bool) {
	if c.active == of {
		c.active = ""
	}
	if c.mute[of] {
		return true
	}
	c.billed += 2
	if usage, ok := r["usage"].(map[string]any); ok {
		usage["billable_audio_seconds"] = c.billed
		m["usage"], r["usage"] = usage, map[string]any{}
	}
	if r["status"] == "cancelled" {
		for _, item := range c.made[of] {
			if !c.gone[item] {
				c.gone[item] = true
				write(c.ctx, c.up, map[string]any{"type": "conversation.item.delete", "item_id": item})
			}
		}
	}
	return false
}
