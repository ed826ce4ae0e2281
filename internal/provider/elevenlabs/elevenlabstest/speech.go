package elevenlabstest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// request is a message as it comes. No other fields are known.
type request struct {
	Text     *string `json:"text"`
	Settings *struct {
		Stability    float64 `json:"stability"`
		Similarity   float64 `json:"similarity_boost"`
		Style        float64 `json:"style"`
		SpeakerBoost bool    `json:"use_speaker_boost"`
		Speed        float64 `json:"speed"`
	} `json:"voice_settings"`
	Context      string `json:"context_id"`
	Flush        bool   `json:"flush"`
	CloseContext bool   `json:"close_context"`
	CloseSocket  bool   `json:"close_socket"`
}

// desk is one socket of speech.
type desk struct {
	*Server
	conn  *websocket.Conn
	voice string
	rate  audio.Rate
	write sync.Mutex

	contexts map[string]*talk // of the goroutine that reads
	over     chan string
}

// talk is a context. A goroutine of its own speaks.
type talk struct {
	id     string
	speed  float64
	buffer string
	closed bool
	texts  chan string // each flushed
	late   chan struct{}
	done   int // samples that were sent
}

// speak is the socket of speech.
func (s *Server) speak(w http.ResponseWriter, r *http.Request) {
	if !query(w, r, "model_id", "language_code", "output_format", "auto_mode", "sync_alignment", "inactivity_timeout",
		"enable_logging", "enable_ssml_parsing", "apply_text_normalization", "seed") {
		return
	}
	q := r.URL.Query()
	rate := map[string]audio.Rate{"pcm_8000": audio.Narrow, "pcm_16000": audio.Wide}[q.Get("output_format")]
	idle, err := strconv.Atoi(q.Get("inactivity_timeout"))
	switch {
	case rate == 0 || err != nil || idle < 1 || idle > 180:
		answer(w, 400, map[string]any{"detail": "a format or timeout that this server doesn't have"})
		return
	case r.PathValue("voice") != Voice:
		answer(w, 404, map[string]any{"detail": map[string]string{"status": "voice_not_found", "message": "no such voice"}})
		return
	case !slices.Contains([]string{"eleven_flash_v2_5", "eleven_multilingual_v2"}, q.Get("model_id")):
		answer(w, 400, map[string]any{"detail": map[string]string{"status": "model_not_found", "message": "no such model"}})
		return
	case q.Get("language_code") != "" && !strings.HasSuffix(q.Get("model_id"), "_v2_5"):
		answer(w, 400, map[string]any{"detail": map[string]string{"status": "unsupported_language", "message": "no"}})
		return
	}
	conn := s.accept(w, r, "speech")
	if conn == nil {
		return
	}
	s.wg.Add(1)
	defer s.wg.Done()
	defer s.leave(conn)
	ctx, cancel := context.WithCancel(context.Background())
	d := &desk{Server: s, conn: conn, voice: r.PathValue("voice"), rate: rate, contexts: map[string]*talk{},
		over: make(chan string)}
	var speaking sync.WaitGroup
	d.serve(ctx, &speaking)
	cancel()
	speaking.Wait()
}

// serve takes messages until the socket ends.
func (d *desk) serve(ctx context.Context, speaking *sync.WaitGroup) {
	in := make(chan []byte)
	speaking.Go(func() {
		defer close(in)
		for {
			_, raw, err := d.conn.Read(ctx)
			if err != nil {
				return
			}
			select {
			case in <- raw:
			case <-ctx.Done():
				return
			}
		}
	})
	defer func() { d.locked(func() { d.now -= len(d.contexts) }) }()
	for {
		select {
		case raw, ok := <-in:
			if !ok {
				return
			}
			if code, why := d.take(ctx, raw, speaking); code != "" {
				d.send(map[string]any{"message": why, "error": code, "code": 1008})
				d.conn.Close(websocket.StatusPolicyViolation, why)
				for range in { // until it has ended
				}
				return
			}
		case id := <-d.over:
			delete(d.contexts, id)
			d.locked(func() { d.now-- })
		}
	}
}

// take does what a message asks for; else it says what is wrong with it.
func (d *desk) take(ctx context.Context, raw []byte, speaking *sync.WaitGroup) (code, why string) {
	var r request
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return "invalid_message", err.Error()
	}
	if r.CloseSocket {
		return "closed", "bye"
	}
	c := d.contexts[r.Context]
	if c == nil {
		if r.CloseContext {
			return "", "" // of one that is over
		}
		// Whatever names a context makes one, also an empty text that was to keep it alive.
		if len(d.contexts) >= maxContexts {
			d.locked(func() { d.most = maxContexts + 1 })
			return "max_active_conversations", "Maximum simultaneous contexts per WebSocket connection exceeded (5). " +
				"Please close an existing context before opening a new one."
		}
		if r.Settings == nil || r.Text == nil || *r.Text != " " || r.Context == "" {
			return "invalid_message", fmt.Sprintf("a context begins with a space, and settings: %s", raw)
		}
		v := r.Settings
		if v.Speed < 0.7 || v.Speed > 1.2 || v.Stability < 0 || v.Stability > 1 || v.Similarity < 0 || v.Similarity > 1 {
			return "invalid_voice_settings", "settings out of their range"
		}
		c = &talk{id: r.Context, speed: v.Speed, texts: make(chan string, 1000), late: make(chan struct{})}
		d.contexts[c.id] = c
		d.locked(func() { d.now++; d.most = max(d.most, len(d.contexts)) })
		speaking.Go(func() { d.talk(ctx, c) })
		return "", ""
	}
	if r.Settings != nil {
		return "invalid_message", "voice_settings can only be set in the first message"
	}
	if c.closed {
		return "", ""
	}
	if r.Text != nil {
		c.buffer += *r.Text
	}
	if r.Text != nil && *r.Text != "" && !strings.HasSuffix(*r.Text, " ") {
		return "invalid_message", "a text ends with a space"
	}
	if r.Flush && c.buffer != "" {
		c.texts <- c.buffer
		c.buffer = ""
	}
	if r.CloseContext {
		c.closed = true
		close(c.texts)
	}
	return "", ""
}

// piece is a message of sound.
type piece struct {
	pcm   []int16
	chars []string
	from  []time.Duration // from the beginning of the piece
	long  []time.Duration
}

// talk says what a context is given until it is closed.
func (d *desk) talk(ctx context.Context, c *talk) {
	var held *piece
	for {
		var text string
		ok := true
		select {
		case text, ok = <-c.texts:
		case <-ctx.Done():
			return
		}
		if !ok {
			break
		}
		err := d.sound(ctx, c, text, func(p *piece) { d.piece(c, &held, p) })
		if ctx.Err() != nil {
			return
		}
		if err != nil { // a voice that fails ends the socket
			d.conn.Close(websocket.StatusInternalError, "internal error")
			return
		}
		if held != nil && !(d.Manner.Across && len(c.texts) > 0) {
			d.sendPiece(c, held)
			held = nil
		}
	}
	if d.Manner.Zombie {
		return
	}
	select {
	case d.over <- c.id:
	case <-ctx.Done():
		return
	}
	name, final := "contextId", "isFinal"
	if d.Manner.Snake {
		name, final = "context_id", "is_final"
	}
	d.send(map[string]any{final: true, name: c.id})
}

// piece sends a piece, and keeps the last of a text where it may become one with the next text's first.
func (d *desk) piece(c *talk, held **piece, p *piece) {
	if h := *held; h != nil {
		if d.Manner.Across && p.from != nil && len(p.from) > 0 && p.from[0] == 0 && h.end() {
			shift := time.Duration(len(h.pcm)) * time.Second / time.Duration(d.rate)
			for _, f := range p.from {
				h.from = append(h.from, f+shift)
			}
			h.pcm, h.chars, h.long = append(h.pcm, p.pcm...), append(h.chars, p.chars...), append(h.long, p.long...)
			d.sendPiece(c, h)
			*held = nil
			return
		}
		d.sendPiece(c, h)
	}
	*held = p
}

// end says whether a text ends with the piece.
func (p *piece) end() bool { return len(p.chars) > 0 && p.chars[len(p.chars)-1] == " " }

// sound makes a text's sound, and when each of its characters is said.
func (d *desk) sound(ctx context.Context, c *talk, text string, yield func(*piece)) error {
	d.locked(func() { d.said = append(d.said, strings.TrimSpace(text)) })
	runes := []rune(text)
	at, next := time.Duration(0), 0
	as := ai.Speech{Voice: d.voice, Rate: d.rate, Speed: c.speed}
	all := aitest.SpeechTime(text, c.speed)
	begins := func(i int) time.Duration { return d.Manner.At(i, len(runes), all) }
	err := ai.Say(ctx, d.Speaker, as, strings.TrimSpace(text), func(pcm []int16) error {
		p := &piece{pcm: slices.Clone(pcm)}
		end := at + time.Duration(len(pcm))*time.Second/time.Duration(d.rate)
		for ; next < len(runes) && (begins(next) < end || end >= all); next++ {
			p.chars = append(p.chars, string(runes[next]))
			p.from = append(p.from, min(begins(next), end)-at)
			p.long = append(p.long, begins(next+1)-begins(next))
		}
		at = end
		yield(p)
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// At is when the i-th of n characters begins to be said, of a text that takes so long.
func (m Manner) At(i, n int, all time.Duration) time.Duration {
	if m.Uneven {
		return all * time.Duration(i*i) / time.Duration(n*n)
	}
	return all * time.Duration(i) / time.Duration(n)
}

// sendPiece sends a message of sound.
func (d *desk) sendPiece(c *talk, p *piece) {
	var raw []byte
	for _, v := range p.pcm {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(v))
	}
	base := 0.0
	if d.Manner.Absolute {
		base = float64(c.done) * 1000 / float64(d.rate)
	}
	c.done += len(p.pcm)
	starts, durations := []float64{}, []float64{}
	for i, f := range p.from {
		starts = append(starts, float64(int(base+f.Seconds()*1000)))
		durations = append(durations, float64(int(p.long[i].Seconds()*1000)))
	}
	length := "charDurationsMs"
	name := "contextId"
	if d.Manner.Snake {
		length, name = "charsDurationsMs", "context_id"
	}
	var alignment any
	if len(p.chars) > 0 && !d.Manner.Unaligned {
		alignment = map[string]any{"chars": p.chars, "charStartTimesMs": starts, length: durations}
	}
	if d.Manner.Odd && len(raw) > 3 {
		d.send(map[string]any{"audio": raw[:3], name: c.id, "alignment": nil})
		raw = raw[3:]
	}
	d.send(map[string]any{"audio": raw, name: c.id, "alignment": alignment, "normalizedAlignment": alignment})
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
