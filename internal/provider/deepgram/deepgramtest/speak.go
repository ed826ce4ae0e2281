package deepgramtest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"parley/internal/ai"
)

const (
	maxText    = 2000 // characters before a Flush
	maxFlushes = 20   // in a minute
	torn       = 777  // octets of a message of sound: samples are torn apart
)

// speak is /v1/speak.
var speak = engine{
	fields: []string{"model", "encoding", "sample_rate", "speed"},
	judge: func(a asked) string {
		part := strings.Split(a.Get("model"), "-")
		switch {
		case len(part) != 4 || part[0] != "aura" || part[1] != "2" || !has("en es de fr nl it ja", part[3]):
			return "No such model."
		case !has("8000 16000 24000 32000 48000", a.Get("sample_rate")):
			return "Unsupported audio format: sample_rate must be one of 8000, 16000, 24000, 32000, 48000."
		case a.Has("speed") && !has("en es", part[3]):
			return "speed is not supported for this model."
		case !inRange(a.Get("speed"), 0.7, 1.5):
			return "speed must be between 0.7 and 1.5."
		}
		return ""
	},
	serve: func(p *peer) {
		ctx, cancel := context.WithCancel(p.ctx)
		defer cancel()
		p.ctx = ctx
		v := &voice{peer: p}
		defer v.working.Wait()
		defer cancel()
		v.send(map[string]any{"type": "Metadata", "request_id": requestID, "model_name": p.Get("model"),
			"model_version": "2026-11-22.0", "model_uuid": requestID})
		for v.answer() {
		}
	},
}

// voice is a socket of /v1/speak. What is flushed is said one after the other, by a goroutine that lasts as long as
// there is something.
type voice struct {
	*peer
	text    string // not flushed yet
	flushes []time.Time

	mu      sync.Mutex
	queue   []string
	number  int // of the next answer
	busy    bool
	quit    context.CancelFunc // of what is being said
	working sync.WaitGroup
}

func (v *voice) answer() bool {
	kind, data, ok := v.receive(10 * v.s.Patience)
	if !ok {
		return false
	}
	switch kind {
	case "Speak":
		var m struct{ Text string }
		if json.Unmarshal(data, &m) != nil || m.Text == "" {
			_ = v.ws.Close(websocket.StatusPolicyViolation, "DATA-0000")
			return false
		}
		if utf8.RuneCountInString(v.text+m.Text) > maxText {
			return v.warn("TEXT_TOO_LONG", "The text exceeds the limit of 2000 characters.")
		}
		v.text += m.Text
	case "Flush":
		now := time.Now()
		for len(v.flushes) > 0 && now.Sub(v.flushes[0]) > time.Minute {
			v.flushes = v.flushes[1:]
		}
		if len(v.flushes) >= maxFlushes || v.Fault == Warns {
			return v.warn("EXCESSIVE_FLUSH", "Flush limit exceeded: 20 per 60 seconds.")
		}
		v.flushes = append(v.flushes, now)
		v.push()
	case "Clear":
		v.clear()
	case "Close":
		_ = v.ws.Close(websocket.StatusNormalClosure, "")
		return false
	default:
		_ = v.ws.Close(websocket.StatusPolicyViolation, "DATA-0000")
		return false
	}
	return true
}

func (v *voice) warn(code, text string) bool {
	return v.send(map[string]any{"type": "Warning", "code": code, "description": text})
}

// push has the text said.
func (v *voice) push() {
	v.s.mu.Lock()
	v.s.said = append(v.s.said, v.text)
	v.s.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, v.text)
	v.text = ""
	if !v.busy {
		v.busy = true
		v.working.Go(v.work)
	}
}

// clear forgets what has not been said.
func (v *voice) clear() {
	v.mu.Lock()
	stale := len(v.queue)
	v.queue, v.text = nil, ""
	if v.quit != nil {
		stale++
		v.quit()
	}
	v.mu.Unlock()
	v.working.Wait()
	v.tell("Cleared")
	for ; v.s.Stale && stale > 0; stale-- {
		v.tell("Flushed")
	}
}

func (v *voice) tell(kind string) bool {
	v.mu.Lock()
	n := v.number
	v.number++
	v.mu.Unlock()
	return v.send(map[string]any{"type": kind, "sequence_id": n})
}

// work says what is queued.
func (v *voice) work() {
	for {
		v.mu.Lock()
		if len(v.queue) == 0 {
			v.busy, v.quit = false, nil
			v.mu.Unlock()
			return
		}
		text := v.queue[0]
		v.queue = v.queue[1:]
		ctx, quit := context.WithCancel(v.ctx)
		v.quit = quit
		v.mu.Unlock()
		v.utter(ctx, text)
		quit()
	}
}

// utter says a text, and that all of it has been.
func (v *voice) utter(ctx context.Context, text string) {
	speed, _ := strconv.ParseFloat(v.Get("speed"), 64) // it has been judged
	var raw []byte
	send := func(n int) bool {
		for len(raw) >= n && len(raw) > 0 {
			k := min(len(raw), torn)
			if ctx.Err() != nil || !v.send(raw[:k]) {
				return false
			}
			raw = raw[k:]
		}
		return true
	}
	ok := true
	if v.Fault != Soundless {
		ok = ai.Say(ctx, v.s.Voice, ai.Speech{Voice: v.Get("model"), Rate: v.rate, Speed: speed}, text,
			func(pcm []int16) error {
				for _, s := range pcm {
					raw = append(raw, byte(s), byte(uint16(s)>>8))
				}
				if !send(torn) {
					return context.Canceled
				}
				return nil
			}) == nil && send(1)
	}
	for v.Fault == Endless && ok {
		raw = make([]byte, 1<<16)
		ok = send(1)
	}
	v.mu.Lock()
	done := ok && ctx.Err() == nil
	if done { // who clears now need not be told again that it has been said
		v.quit = nil
	}
	v.mu.Unlock()
	if done {
		v.tell("Flushed")
	}
}
