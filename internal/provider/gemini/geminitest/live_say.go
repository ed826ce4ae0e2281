package geminitest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// generate begins a reply. The lock is held.
func (c *session) generate() {
	c.interrupt()
	l := &c.s.lives
	l.mu.Lock()
	var b aitest.Behaviour
	switch {
	case c.reader:
		b.Text = c.state.items[len(c.state.items)-1].Text
	case len(l.next) > 0:
		b = l.next[0]
		l.next = l.next[1:]
	}
	l.mu.Unlock()
	if b.Text == "" && b.Calls == nil && b.Code == "" {
		echo := aitest.Echo(c.request())
		b.Text, b.Calls = echo.Text, echo.Calls
	}
	ctx, stop := context.WithCancel(c.ctx)
	t := &turn{}
	c.stop, c.turn = stop, t
	if c.setup.resumes {
		c.emit(map[string]any{"sessionResumptionUpdate": map[string]any{"newHandle": "", "resumable": false}})
	}
	c.wg.Go(func() {
		defer stop()
		c.answer(ctx, t, b)
	})
}

// answer makes a reply.
func (c *session) answer(ctx context.Context, t *turn, b aitest.Behaviour) {
	began := time.Now()
	switch {
	case b.Code == "rate_limit_exceeded":
		_ = c.ws.Close(websocket.StatusInternalError, "Resource has been exhausted (e.g. check quota).")
		return
	case b.Code != "":
		c.mu.Lock()
		t.made, t.complete = true, true
		c.content(map[string]any{"turnComplete": true, "turnCompleteReason": b.Code})
		c.mu.Unlock()
		return
	case b.FirstDelay > 0 && !c.sleep(ctx, b.FirstDelay):
		return
	}
	if b.Text != "" && !c.speak(ctx, t, b) {
		return
	}
	if b.Fault != "" {
		c.fault(ctx, b.Fault)
		return
	}
	if len(b.Calls) > 0 {
		c.call(ctx, t, b.Calls)
		return
	}
	c.mu.Lock()
	if ctx.Err() != nil || t.complete {
		c.mu.Unlock()
		return
	}
	t.made = true
	c.content(map[string]any{"generationComplete": true})
	c.mu.Unlock()
	if c.s.lives.Played && !c.setup.writes && !c.sleep(ctx, aitest.SpeechTime(b.Text, 1)-time.Since(began)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil || t.complete {
		return
	}
	t.complete = true
	n := len(strings.Fields(b.Text)) + 1
	kind := "AUDIO"
	if c.setup.writes {
		kind = "TEXT"
	}
	c.emit(map[string]any{"serverContent": map[string]any{"turnComplete": true},
		"usageMetadata": map[string]any{"promptTokenCount": 10, "responseTokenCount": n + 2, "totalTokenCount": 12 + n,
			"promptTokensDetails":   []any{count("TEXT", 4), count("AUDIO", 6)},
			"responseTokensDetails": []any{count("TEXT", 2), count(kind, n)}}})
	c.wg.Go(c.resumable)
}

func count(kind string, n int) map[string]any {
	return map[string]any{"modality": kind, "tokenCount": n}
}

// call asks for calls: the reply goes on when all have their results.
func (c *session) call(ctx context.Context, t *turn, calls []ai.ToolCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil || t.complete {
		return
	}
	t.made, t.complete = true, true
	var list []map[string]any
	for _, call := range calls {
		c.state.count++
		call.ID = fmt.Sprintf("function-call-%d", c.state.count)
		c.add(aitest.RealtimeItem{Type: "function_call", Call: call})
		c.owed = append(c.owed, call.ID)
		f := map[string]any{"id": call.ID, "name": call.Name}
		if call.Arguments != "{}" {
			f["args"] = rawJSON(call.Arguments)
		}
		list = append(list, f)
	}
	c.emit(map[string]any{"toolCall": map[string]any{"functionCalls": list}})
	c.emit(map[string]any{"usageMetadata": map[string]any{"promptTokenCount": 3, "responseTokenCount": 1}})
}

type rawJSON string

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// speak sends the audio of a text with its transcript, or the text alone; it is false if it was ended early.
func (c *session) speak(ctx context.Context, t *turn, b aitest.Behaviour) bool {
	c.mu.Lock()
	c.add(aitest.RealtimeItem{Type: "message", Role: "assistant"})
	at := len(c.state.items) - 1
	c.mu.Unlock()
	words := strings.SplitAfter(b.Text, " ")
	const rate = audio.Rate(liveRate)
	pitch, n := c.s.lives.Voice.Pitch(b.Text), int(aitest.SpeechTime(b.Text, 1)*time.Duration(rate)/time.Second)
	piece := int(aitest.PieceTime * time.Duration(rate) / time.Second)
	sent := 0
	for i := 0; len(words) > 0 || !c.setup.writes && sent < n; i++ {
		if b.Fault != "" && i == b.After {
			return true
		}
		if i > 0 && !c.sleep(ctx, b.TokenDelay) {
			return false
		}
		k := min(len(words), 2)
		if c.setup.writes {
			k = min(len(words), 1)
		}
		text := strings.Join(words[:k], "")
		words = words[k:]
		c.mu.Lock()
		if ctx.Err() != nil || t.complete {
			c.mu.Unlock()
			return false
		}
		c.state.items[at].Text += text
		switch {
		case c.setup.writes:
			c.content(map[string]any{"modelTurn": map[string]any{"role": "model",
				"parts": []any{map[string]any{"text": text}}}})
		default:
			if text != "" && c.setup.says {
				c.content(map[string]any{"outputTranscription": map[string]any{"text": text}})
			}
			to := min(sent+piece, n)
			if raw := tone(pitch, sent, to); len(raw) > 0 { // a sample is torn between two messages
				c.pieces(raw[:len(raw)/2|1], raw[len(raw)/2|1:])
			}
			sent = to
		}
		c.mu.Unlock()
		if i == 0 && b.Gate != nil {
			select {
			case <-b.Gate:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

func (c *session) pieces(pieces ...[]byte) {
	for _, p := range pieces {
		if len(p) > 0 {
			c.content(map[string]any{"modelTurn": map[string]any{"role": "model", "parts": []any{
				map[string]any{"inlineData": map[string]any{"mimeType": "audio/pcm;rate=24000", "data": p}}}}})
		}
	}
}

// tone is a part of the audio of a text.
func tone(pitch float64, from, to int) (raw []byte) {
	for i := from; i < to; i++ {
		v := int16(8000 * math.Sin(2*math.Pi*pitch*float64(i)/liveRate))
		raw = append(raw, byte(v), byte(uint16(v)>>8))
	}
	return raw
}

func (c *session) fault(ctx context.Context, f aitest.Fault) {
	switch f {
	case aitest.Reset:
		_ = c.ws.CloseNow()
	case aitest.Cutoff:
		_ = c.ws.Close(websocket.StatusNormalClosure, "")
	case aitest.Failure:
		_ = c.ws.Close(websocket.StatusInternalError, "Internal error encountered.")
	case aitest.Garbage:
		_ = c.ws.Write(c.ctx, websocket.MessageBinary, []byte(`{"serverContent": nonsense`))
	case aitest.Stall:
		<-ctx.Done()
	}
}
