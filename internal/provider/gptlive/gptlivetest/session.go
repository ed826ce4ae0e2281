package gptlivetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// session is a session, under its lock.
type session struct {
	s    *Server
	ws   *websocket.Conn
	mu   sync.Mutex
	over bool
	left int

	terms   map[string]any
	coded   bool
	rate    int
	tools   []string
	items   []aitest.RealtimeItem
	count   int
	counted int // seconds that were told

	inMS    int
	rest    []int16 // of what came, less than 20 ms
	words   []int16 // what the customer is saying
	fromMS  int
	quietMS int
	loudMS  int // over the model's words

	outMS   int
	out     []int16 // what the model is saying
	text    []string
	chars   int             // of the text that are due: 20 a second
	at      int             // the item of that
	queued  int             // what it says next, once it has said that
	paused  int             // frames of silence before that
	task    string          // the thinker's delegation
	open    map[string]bool // function calls without an output
	waiting bool            // the thinker waits for these
}

const (
	pauseFrames = 3 // of silence between two things that the model says

	frameMS  = 100 // of the model's sound
	endsMS   = 400 // of silence end what the customer says
	yieldsMS = 250 // of speech over the model's make it fall silent
)

func (c *session) name(kind string) string {
	c.count++
	return kind + "_" + strconv.Itoa(c.count)
}

// emit sends an event; the client may have left.
func (c *session) emit(kind string, fields map[string]any) {
	fields["type"] = kind
	if kind != "session.output_audio.delta" {
		fields["event_id"] = c.name("event")
	}
	raw, err := json.Marshal(fields)
	if err == nil {
		_ = c.ws.Write(c.s.ctx, websocket.MessageText, raw)
	}
}

func (c *session) bad(code, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.s.complain(text)
	c.emit("error", map[string]any{"error": map[string]any{"type": "invalid_request_error", "code": code, "message": text}})
}

// message is an event of the client's, with all fields that any may have.
type message struct {
	Type    string          `json:"type"`
	EventID string          `json:"event_id"`
	Session json.RawMessage `json:"session"`
	Audio   string          `json:"audio"`
	To      *string         `json:"delegation_id"`
	Content string          `json:"content"`
	Item    struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	} `json:"item"`
}

func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func (c *session) take(raw []byte) {
	var m message
	if err := strict(raw, &m); err != nil {
		c.bad("unknown_parameter", "%v", err)
		return
	}
	if (c.terms == nil) != (m.Type == "session.start") {
		c.bad("invalid_value", "%s is not possible now", m.Type)
		return
	}
	switch m.Type {
	case "session.start":
		c.start(m.Session)
	case "session.input_audio.append":
		c.hear(m.Audio)
	case "session.thinking.append", "session.commentary.append", "session.instructions.append":
		switch {
		case !bytes.Contains(raw, []byte(`"delegation_id"`)):
			c.bad("missing_required_parameter", "Missing required parameter: 'delegation_id'.")
		case m.Content == "" || len(strings.Fields(m.Content)) > 350 || len(m.Content) > 2000:
			c.bad("invalid_value", "content has at most 500 tokens")
		default:
			if m.Content[0] != '[' {
				m.Content = "[" + m.Content
			}
			c.items = append(c.items, aitest.RealtimeItem{Type: "message", Role: "user", Text: m.Content})
			c.emit(m.Type+"ed", map[string]any{"delegation_id": m.To})
			if m.Type == "session.commentary.append" {
				c.speak()
			}
		}
	case "response.item.create":
		if m.Item.Type != "function_call_output" || !c.open[m.Item.CallID] {
			c.bad("invalid_value", "no call %q waits for an output", m.Item.CallID)
			return
		}
		delete(c.open, m.Item.CallID)
		c.items = append(c.items, aitest.RealtimeItem{Type: "function_call_output", Text: m.Item.Output})
	case "response.create":
		if len(c.open) > 0 || !c.waiting {
			c.bad("invalid_request", "%d calls have no output", len(c.open))
			return
		}
		c.waiting = false
		c.thinks(nil, true)
		c.speak()
	case "session.close":
		c.close("close_requested")
	default:
		c.bad("invalid_value", "Invalid value: %q. Supported are session.start, session.update, session.input_audio.append, …", m.Type)
	}
}

func (c *session) start(raw json.RawMessage) {
	var t struct {
		Model        string `json:"model"`
		Instructions string `json:"instructions"`
		Store        bool   `json:"store"`
		Audio        struct {
			Format struct {
				Type string `json:"type"`
				Rate int    `json:"rate"`
			} `json:"format"`
			Output struct {
				Voice string `json:"voice"`
			} `json:"output"`
		} `json:"audio"`
		Delegation struct {
			Type      string `json:"type"`
			Responses struct {
				Model        string           `json:"model"`
				Instructions string           `json:"instructions"`
				Tools        []map[string]any `json:"tools"`
			} `json:"responses"`
		} `json:"delegation"`
	}
	f := &t.Audio.Format
	switch err := strict(raw, &t); {
	case err != nil:
		c.bad("unknown_parameter", "%v", err)
	case t.Model != Model:
		c.bad("model_not_found", "The model %q does not exist or you do not have access to it.", t.Model)
	case !slices.Contains(Voices, t.Audio.Output.Voice):
		c.bad("invalid_value", "Voice not found: %q", t.Audio.Output.Voice)
	case !(f.Type == "audio/pcm" && (f.Rate == 16000 || f.Rate == 24000) || f.Type == "audio/pcmu" && f.Rate == 8000):
		c.bad("invalid_value", "no such format: %v", t.Audio.Format)
	case t.Delegation.Type != "responses" || t.Delegation.Responses.Model != Thinker:
		c.bad("model_not_found", "nobody to delegate to: %v", t.Delegation)
	default:
		_ = json.Unmarshal(raw, &c.terms) // it was read above
		c.rate, c.coded = f.Rate, f.Type == "audio/pcmu"
		for _, tool := range t.Delegation.Responses.Tools {
			name, _ := tool["name"].(string)
			c.tools = append(c.tools, name)
		}
		c.emit("session.started", map[string]any{"session": c.resource()})
	}
}

func (c *session) resource() map[string]any {
	lasts := c.s.Lasts
	if lasts == 0 {
		lasts = 7200
	}
	r := map[string]any{"id": "live_1", "status": "active", "model": Model}
	if lasts > 0 {
		r["expires_at"] = time.Now().Unix() + int64(lasts)
	}
	return r
}

func (c *session) usage() map[string]any { return map[string]any{"seconds": float64(c.inMS) / 1000} }

func (c *session) close(reason string) {
	c.emit("session.closed", map[string]any{"reason": reason, "session": c.resource(), "usage": c.usage()})
}

// hear takes what the customer says, in frames of 20 ms.
func (c *session) hear(text string) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		c.bad("invalid_value", "audio is no base64")
		return
	}
	if c.coded {
		c.rest = audio.DecodeULaw(c.rest, raw)
	} else {
		for i := 0; i+1 < len(raw); i += 2 {
			c.rest = append(c.rest, int16(raw[i])|int16(raw[i+1])<<8)
		}
	}
	for n := c.rate / 50; len(c.rest) >= n; c.rest = c.rest[n:] {
		c.frame(c.rest[:n])
	}
}

func (c *session) frame(pcm []int16) {
	sum := 0
	for _, v := range pcm {
		sum += max(int(v), -int(v))
	}
	loud := sum > 100*len(pcm)
	if loud && c.words == nil {
		c.fromMS = c.inMS
	}
	c.inMS += 20
	if loud || c.words != nil {
		c.words = append(c.words, pcm...)
	}
	if c.quietMS += 20; loud {
		c.quietMS = 0
	}
	if loud && len(c.out) > 0 {
		if c.loudMS += 20; c.loudMS >= yieldsMS { // it hears that it is interrupted
			c.out, c.text, c.loudMS = nil, nil, 0
		}
	}
	if c.words != nil && c.quietMS >= endsMS {
		c.understand(c.words)
		c.words, c.loudMS = nil, 0
	}
}

func (c *session) understand(pcm []int16) {
	var b aitest.Behaviour
	c.s.mu.Lock()
	if len(c.s.words) > 0 {
		b, c.s.words = c.s.words[0], c.s.words[1:]
	} else {
		c.s.mu.Unlock()
		b.Text = c.s.Voice.Find(pcm, audio.Rate(c.rate))
		c.s.mu.Lock()
	}
	c.s.mu.Unlock()
	if b.Text == "" {
		return
	}
	for i, w := range strings.SplitAfter(b.Text, " ") {
		c.emit("session.input_transcript.delta", map[string]any{"delta": w, "start_ms": c.fromMS + 40*i, "end_ms": c.fromMS + 40*i + 40})
	}
	c.items = append(c.items, aitest.RealtimeItem{Type: "message", Role: "user", Text: b.Text})
	c.speak()
}

// speak begins what is scripted next, once the model has said what it is saying.
func (c *session) speak() {
	if len(c.out) > 0 {
		c.queued, c.paused = c.queued+1, pauseFrames
		return
	}
	c.s.mu.Lock()
	if len(c.s.next) == 0 {
		c.s.mu.Unlock()
		return
	}
	b := c.s.next[0]
	c.s.next = c.s.next[1:]
	c.s.mu.Unlock()
	if b.Code != "" {
		c.emit("error", map[string]any{"error": map[string]any{"type": "server_error", "code": b.Code, "message": b.Message}})
		return
	}
	if b.Text != "" {
		c.items = append(c.items, aitest.RealtimeItem{Type: "message", Role: "assistant"})
		c.at, c.text, c.out, c.chars = len(c.items)-1, strings.SplitAfter(b.Text, " "), nil, 0
		_ = ai.Say(c.s.ctx, c.s.Voice, ai.Speech{Rate: audio.Rate(c.rate)}, b.Text, func(pcm []int16) error { // it never fails
			c.out = append(c.out, pcm...)
			return nil
		})
	}
	if len(b.Calls) > 0 {
		c.task = c.name("delegation")
		c.emit("session.delegation.created", map[string]any{"offset_ms": c.outMS,
			"delegation": map[string]any{"id": c.task, "type": "delegation", "target": "responses"}})
		var items []map[string]any
		for _, call := range b.Calls {
			if !slices.Contains(c.tools, call.Name) {
				c.s.complain("the thinker has no tool " + call.Name)
			}
			call.ID = c.name("call")
			c.open[call.ID] = b.Fault == ""
			if b.Fault != "" {
				delete(c.open, call.ID)
			}
			c.items = append(c.items, aitest.RealtimeItem{Type: "function_call", Call: call})
			items = append(items, map[string]any{"type": "function_call", "id": c.name("fc"), "call_id": call.ID, "name": call.Name,
				"arguments": call.Arguments, "status": "completed"})
		}
		c.thinks(items, b.Fault == "")
		c.waiting = b.Fault == ""
	}
}

// thinks tells what a response of the thinker is.
func (c *session) thinks(items []map[string]any, well bool) {
	tell := func(kind string, fields map[string]any) {
		fields["type"] = kind
		c.emit("response.event", map[string]any{"delegation_id": c.task, "event": fields})
	}
	response := map[string]any{"id": c.name("resp"), "model": Thinker, "output": []any{}}
	tell("response.created", map[string]any{"response": response})
	for _, it := range items {
		tell("response.output_item.done", map[string]any{"item": it})
	}
	if !well {
		tell("response.failed", map[string]any{"response": response})
		return
	}
	response["usage"] = map[string]any{"input_tokens": 50, "output_tokens": 7, "total_tokens": 57,
		"input_tokens_details": map[string]any{"cached_tokens": 20}}
	tell("response.completed", map[string]any{"response": response})
}

// run sends the model's sound as it is made, silence included, and counts.
func (c *session) run(ctx context.Context) {
	t := time.NewTicker(frameMS * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		c.sounds()
		if c.inMS/1000 > c.counted {
			c.counted = c.inMS / 1000
			c.emit("session.usage.updated", map[string]any{"usage": c.usage()})
		}
		c.mu.Unlock()
	}
}

func (c *session) sounds() {
	if c.queued > 0 && len(c.out) == 0 {
		if c.paused--; c.paused < 0 {
			c.queued--
			if c.speak(); len(c.text) > 0 {
				c.text[0] = " " + c.text[0]
			}
		}
	}
	pcm := make([]int16, c.rate*frameMS/1000)
	said := copy(pcm, c.out)
	c.out = c.out[said:]
	for c.chars += 2; len(c.text) > 0 && (c.chars > 0 || len(c.out) == 0); c.text = c.text[1:] {
		c.emit("session.output_transcript.delta", map[string]any{"delta": c.text[0], "start_ms": c.outMS, "end_ms": c.outMS + frameMS})
		c.items[c.at].Text += c.text[0]
		c.chars -= len(c.text[0])
	}
	from := c.outMS
	if c.outMS += frameMS; said == 0 && c.s.Sparse {
		return
	}
	var raw []byte
	if c.coded {
		raw = audio.EncodeULaw(nil, pcm)
	} else {
		for _, v := range pcm {
			raw = append(raw, byte(v), byte(uint16(v)>>8))
		}
	}
	c.emit("session.output_audio.delta", map[string]any{"delta": base64.StdEncoding.EncodeToString(raw), "start_ms": from, "end_ms": c.outMS})
}
