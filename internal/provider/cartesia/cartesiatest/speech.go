package cartesiatest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// request is a message as it comes. No other fields are known.
type request struct {
	Model      string `json:"model_id"`
	Transcript string `json:"transcript"`
	Voice      struct {
		Mode string `json:"mode"`
		ID   string `json:"id"`
	} `json:"voice"`
	Language string `json:"language"`
	Context  string `json:"context_id"`
	Format   struct {
		Container string     `json:"container"`
		Encoding  string     `json:"encoding"`
		Rate      audio.Rate `json:"sample_rate"`
	} `json:"output_format"`
	Timestamps bool `json:"add_timestamps"`
	Continue   bool `json:"continue"`
	Flush      bool `json:"flush"`
	Delay      *int `json:"max_buffer_delay_ms"`
	Generation struct {
		Speed float64 `json:"speed"`
	} `json:"generation_config"`
	Cancel bool `json:"cancel"`
}

// desk is one socket of speech.
type desk struct {
	*Server
	conn  *websocket.Conn
	write sync.Mutex

	mu       sync.Mutex
	contexts map[string]*talk
}

// talk is a context. A goroutine of its own speaks.
type talk struct {
	first  request
	jobs   chan request
	cancel context.CancelFunc
	flushs int
	done   time.Duration
}

// speak is the socket of speech.
func (s *Server) speak(w http.ResponseWriter, r *http.Request) {
	conn := s.accept(w, r, "cartesia_version")
	if conn == nil {
		return
	}
	s.wg.Add(1)
	defer s.wg.Done()
	defer s.leave(conn)
	ctx, cancel := context.WithCancel(context.Background())
	d := &desk{Server: s, conn: conn, contexts: map[string]*talk{}}
	var speaking sync.WaitGroup
	defer speaking.Wait()
	defer cancel()
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return
		}
		d.take(ctx, raw, &speaking)
	}
}

// take does what a message asks for.
func (d *desk) take(ctx context.Context, raw []byte, speaking *sync.WaitGroup) {
	r := request{}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		d.fail(r.Context, 400, "invalid_request", err.Error())
		return
	}
	d.mu.Lock()
	c := d.contexts[r.Context]
	d.mu.Unlock()
	if r.Cancel {
		d.locked(func() { d.cancels++ })
		if c != nil {
			c.cancel()
		}
		return
	}
	switch {
	case r.Context == "" || r.Model != "sonic-3" || r.Voice.Mode != "id" || r.Format.Container != "raw" ||
		r.Format.Encoding != "pcm_s16le" || r.Format.Rate != audio.Narrow && r.Format.Rate != audio.Wide:
		d.fail(r.Context, 400, "model_not_found", "a model or format that this server doesn't have")
		return
	case r.Voice.ID != Voice:
		d.fail(r.Context, 404, "voice_not_found", "no such voice")
		return
	case r.Delay == nil || *r.Delay != 0: // it would wait for more
		d.fail(r.Context, 400, "test", "max_buffer_delay_ms is not 0")
		return
	case r.Generation.Speed < 0.6 || r.Generation.Speed > 1.5:
		d.fail(r.Context, 400, "invalid_request", "speed is 0.6 to 1.5")
		return
	case r.Flush && (r.Transcript != "" || !r.Continue):
		d.fail(r.Context, 400, "invalid_request", "a flush has no transcript, and goes on")
		return
	}
	if c == nil {
		if no := d.refused(false); no.In != 0 {
			d.fail(r.Context, no.In, no.Code, "as it was told to")
			return
		}
		used := false
		d.locked(func() { used, d.ids[r.Context] = d.ids[r.Context], true })
		if used {
			d.fail(r.Context, 400, "invalid_request", "the context has expired")
			return
		}
		c = &talk{first: r, jobs: make(chan request, 1000)}
		var own context.Context
		own, c.cancel = context.WithCancel(ctx)
		d.mu.Lock()
		d.contexts[r.Context] = c
		d.mu.Unlock()
		speaking.Go(func() { d.talk(own, c) })
	}
	same := c.first
	same.Transcript, same.Continue, same.Flush, same.Delay = r.Transcript, r.Continue, r.Flush, r.Delay
	if same != r {
		d.fail(r.Context, 400, "invalid_request", "inputs of a context have the same fields")
		return
	}
	c.jobs <- r
}

// talk says what a context is given until it ends, or has run out for too long.
func (d *desk) talk(ctx context.Context, c *talk) {
	id := c.first.Context
	defer func() {
		d.mu.Lock()
		delete(d.contexts, id)
		d.mu.Unlock()
	}()
	defer c.cancel()
	for {
		var r request
		select {
		case r = <-c.jobs:
		case <-ctx.Done():
			return
		case <-time.After(d.Expiry):
			return
		}
		if strings.TrimSpace(r.Transcript) != "" {
			if err := d.say(ctx, c, r); err != nil {
				if ctx.Err() == nil {
					d.fail(id, 500, "internal_error", "the voice failed")
				}
				return
			}
		}
		if r.Flush {
			c.flushs++
			d.send(map[string]any{"type": "flush_done", "done": false, "flush_done": true, "flush_id": c.flushs,
				"status_code": 206, "context_id": id})
		}
		if !r.Continue {
			d.send(map[string]any{"type": "done", "done": true, "status_code": 206, "context_id": id})
			return
		}
	}
}

// say makes a text's sound, with the times of its words ahead of the sound that they are of.
func (d *desk) say(ctx context.Context, c *talk, r request) error {
	text := strings.TrimSpace(r.Transcript)
	d.locked(func() { d.said = append(d.said, text) })
	as := ai.Speech{Voice: r.Voice.ID, Rate: r.Format.Rate, Speed: r.Generation.Speed}
	times := aitest.WordTimes(text, as.Speed)
	base := c.done
	if d.Relative {
		base = 0
	}
	first, from, at := true, 0, time.Duration(0)
	return ai.Say(ctx, d.Speaker, as, text, func(pcm []int16) error {
		if first {
			first = false
			var words []string
			var start, end []float64
			for _, w := range times {
				words = append(words, strings.Trim(text[from:w.Until], " ,.!?"))
				start, end = append(start, (base+at).Seconds()), append(end, (base+w.At).Seconds())
				from, at = w.Until, w.At
			}
			d.send(map[string]any{"type": "timestamps", "done": false, "status_code": 206, "context_id": c.first.Context,
				"word_timestamps": map[string]any{"words": words, "start": start, "end": end}})
		}
		var raw []byte
		for _, v := range pcm {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(v))
		}
		c.done += time.Duration(len(pcm)) * time.Second / time.Duration(as.Rate)
		cut := len(raw)/2 | 1 // in the middle of a sample
		for _, part := range [][]byte{raw[:cut], raw[cut:]} {
			d.send(map[string]any{"type": "chunk", "data": part, "done": false, "status_code": 206, "step_time": 1.5,
				"context_id": c.first.Context, "flush_id": c.flushs + 1})
		}
		return nil
	})
}

// fail sends an error.
func (d *desk) fail(id string, status int, code, why string) {
	d.send(map[string]any{"type": "error", "done": true, "status_code": status, "error_code": code, "title": "No",
		"message": why, "request_id": "r", "context_id": id})
}

// send sends a message in two frames.
func (d *desk) send(v any) {
	raw, _ := json.Marshal(v) // of what can be written
	d.write.Lock()
	defer d.write.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w, err := d.conn.Writer(ctx, websocket.MessageText)
	if err != nil {
		return
	}
	_, _ = w.Write(raw[:len(raw)/2])
	_, _ = w.Write(raw[len(raw)/2:])
	_ = w.Close()
}
