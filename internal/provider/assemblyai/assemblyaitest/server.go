// Package assemblyaitest is for tests: a server that speaks AssemblyAI's streaming protocol. It understands tones,
// refuses what AssemblyAI refuses, and misbehaves on request.
package assemblyaitest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// Key is the key that the server asks for.
const Key = "aai-test-0123456789"

// models are those that the server has; the first two send the end of a turn twice.
var models = []string{"universal-streaming-english", "universal-streaming-multilingual", "universal-3-5-pro"}

// Server stands in for AssemblyAI.
type Server struct {
	URL string
	// Voice knows which text a tone in what is heard stands for.
	Voice *aitest.Synthesizer
	// Lasts is how long a session lasts; 0: three hours. It ends then, whatever happens.
	Lasts time.Duration
	// Eager ends a turn by itself after so much sound.
	Eager time.Duration

	wg sync.WaitGroup

	mu      sync.Mutex
	script  []Hearing
	refuse  []Refusal
	sockets map[*websocket.Conn]bool
	opened  []map[string]string
	got     map[string]int
	wrong   []string
}

// Hearing is how an utterance is understood.
type Hearing struct {
	Text string
	// Language is told with it, in a session that detects languages.
	Language string
	Delay    time.Duration
	Error    int  // comes instead, and closes
	Close    int  // likewise, without an Error
	Never    bool // nothing comes
	Plain    bool // the text with punctuation doesn't come
	Torn     bool // the message is no JSON
	Reset    bool // the connection is gone
}

// Refusal is how a session is refused: by a status of HTTP, or by a code on the open socket.
type Refusal struct {
	Status     int
	RetryAfter string
	Code       int
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{Voice: &aitest.Synthesizer{}, sockets: map[*websocket.Conn]bool{}, got: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v3/ws", s.listen)
	mux.HandleFunc("GET /v3/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != Key {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"Invalid API key"}`))
			return
		}
		_, _ = w.Write([]byte(`{"token":"t","expires_in_seconds":60}`))
	})
	h := httptest.NewServer(mux)
	s.URL = h.URL
	t.Cleanup(func() {
		s.Kick(0)
		h.Close() // no more handlers begin
		s.wg.Wait()
	})
	return s
}

func (s *Server) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Script sets how the next utterances are understood, Hears those that are just texts.
func (s *Server) Script(h ...Hearing) { s.locked(func() { s.script = append(s.script, h...) }) }

// Hears sets what the next utterances say.
func (s *Server) Hears(texts ...string) {
	for _, text := range texts {
		s.Script(Hearing{Text: text})
	}
}

// Refuse has the next sessions refused.
func (s *Server) Refuse(r ...Refusal) { s.locked(func() { s.refuse = append(s.refuse, r...) }) }

// Kick closes all sockets with a code; with 0 they break.
func (s *Server) Kick(code int) {
	var all []*websocket.Conn
	s.locked(func() {
		for c := range s.sockets {
			all = append(all, c)
		}
	})
	for _, c := range all {
		if code == 0 {
			_ = c.CloseNow()
		} else {
			_ = c.Close(websocket.StatusCode(code), "as it was told to")
		}
	}
}

// Opened lists how sessions were opened.
func (s *Server) Opened() (list []map[string]string) {
	s.locked(func() { list = slices.Clone(s.opened) })
	return list
}

// Got is how many messages of a type have arrived; "" stands for sound.
func (s *Server) Got(kind string) (n int) {
	s.locked(func() { n = s.got[kind] })
	return n
}

// Complaints lists what clients did that AssemblyAI refuses.
func (s *Server) Complaints() (list []string) {
	s.locked(func() { list = slices.Clone(s.wrong) })
	return list
}

// session is a socket.
type session struct {
	s        *Server
	ws       *websocket.Conn
	rate     audio.Rate
	formats  bool
	detects  bool
	order    int
	pcm      []int16 // of the turn
	sent     int     // samples before it
	told     bool    // something of it
	eager    bool    // it may be ended by the server itself
	finished bool
}

// send sends a message.
func (c *session) send(v map[string]any) {
	raw, _ := json.Marshal(v) // of texts
	_ = c.ws.Write(context.Background(), websocket.MessageText, raw)
}

// fail ends the session as AssemblyAI does: with an Error and its code.
func (c *session) fail(code int, why string) {
	c.s.locked(func() { c.s.wrong = append(c.s.wrong, why) })
	c.send(map[string]any{"type": "Error", "error_code": code, "error": why})
	_ = c.ws.Close(websocket.StatusCode(code), "See Error message for details")
	c.finished = true
}

var parameters = []string{"speech_model", "sample_rate", "encoding", "format_turns", "end_of_turn_confidence_threshold",
	"min_turn_silence", "max_turn_silence", "keyterms_prompt", "language_codes", "language_detection"}

func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	s.wg.Add(1)
	defer s.wg.Done()
	var no Refusal
	asked := map[string]string{}
	for name := range r.URL.Query() {
		asked[name] = r.URL.Query().Get(name)
	}
	s.locked(func() {
		s.opened = append(s.opened, asked)
		if len(s.refuse) > 0 {
			no, s.refuse = s.refuse[0], s.refuse[1:]
		}
	})
	if no.Status != 0 {
		if no.RetryAfter != "" {
			w.Header().Set("Retry-After", no.RetryAfter)
		}
		w.WriteHeader(no.Status)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(1 << 20)
	s.locked(func() { s.sockets[ws] = true })
	defer s.locked(func() { delete(s.sockets, ws) })
	defer ws.CloseNow()
	c := &session{s: s, ws: ws, formats: strings.HasPrefix(asked["speech_model"], "universal-streaming"), eager: true,
		detects: asked["language_detection"] == "true"}
	rate, _ := strconv.Atoi(asked["sample_rate"])
	c.rate = audio.Rate(rate)
	switch {
	case no.Code != 0:
		c.fail(no.Code, "as it was told to")
	case r.Header.Get("Authorization") != Key:
		c.fail(1008, "Unauthorized Connection: Missing or invalid API key")
	case !slices.Contains(models, asked["speech_model"]):
		c.fail(3006, "Invalid speech_model")
	case rate == 0 || asked["encoding"] != "pcm_s16le":
		c.fail(3006, "Sample rate must be a positive integer")
	}
	for name := range asked {
		if !slices.Contains(parameters, name) {
			c.fail(3006, "Unknown parameter "+name)
		}
	}
	if c.finished {
		return
	}
	lasts := s.Lasts
	if lasts == 0 {
		lasts = 3 * time.Hour
	}
	c.send(map[string]any{"type": "Begin", "id": "de5d9927", "expires_at": time.Now().Add(lasts).Unix()})
	expire := time.AfterFunc(lasts, func() { _ = ws.Close(3008, "Session Expired: Maximum session duration exceeded") })
	defer expire.Stop()
	for !c.finished {
		kind, raw, err := ws.Read(context.Background())
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			s.locked(func() { s.got[""]++ })
			c.sound(raw)
			continue
		}
		var m struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(raw, &m)
		s.locked(func() { s.got[m.Type]++ })
		switch m.Type {
		case "ForceEndpoint":
			c.end()
			c.eager = true
		case "KeepAlive", "UpdateConfiguration":
		case "Terminate":
			c.send(map[string]any{"type": "Termination", "audio_duration_seconds": 1, "session_duration_seconds": 1})
			_ = ws.Close(websocket.StatusNormalClosure, "")
			return
		default:
			c.fail(3006, "Invalid message "+m.Type)
		}
	}
}

// sound takes 50 to 1000 ms of it.
func (c *session) sound(raw []byte) {
	if ms := len(raw) / 2 * 1000 / int(c.rate); ms < 50 || ms > 1000 {
		c.fail(3007, "Input Duration Error: 50 to 1000 ms are expected")
		return
	}
	for ; len(raw) > 1; raw = raw[2:] {
		c.pcm = append(c.pcm, int16(binary.LittleEndian.Uint16(raw)))
	}
	if text := c.s.Voice.Find(c.pcm, c.rate); text != "" && !c.told && c.long() > 200*time.Millisecond {
		c.told = true
		c.send(map[string]any{"type": "SpeechStarted", "timestamp": c.sent * 1000 / int(c.rate)})
		first, _, _ := strings.Cut(text, " ")
		c.turn(first, "", false, false)
	}
	if c.s.Eager > 0 && c.eager && c.long() >= c.s.Eager {
		c.eager = false
		c.end()
	}
}

func (c *session) long() time.Duration {
	return time.Duration(len(c.pcm)) * time.Second / time.Duration(c.rate)
}

// end ends the turn. Where nothing was said there is none.
func (c *session) end() {
	pcm := c.pcm
	loud := slices.ContainsFunc(pcm, func(v int16) bool { return v > 300 || v < -300 })
	if !loud {
		c.sent, c.pcm = c.sent+len(pcm), nil
		return
	}
	h := Hearing{Text: c.s.Voice.Find(pcm, c.rate)}
	if h.Text == "" || !c.eager {
		c.s.locked(func() {
			if len(c.s.script) > 0 {
				h, c.s.script = c.s.script[0], c.s.script[1:]
			}
		})
	}
	time.Sleep(h.Delay)
	switch {
	case h.Error != 0:
		c.fail(h.Error, "as it was told to")
		return
	case h.Close != 0:
		_ = c.ws.Close(websocket.StatusCode(h.Close), "as it was told to")
		c.finished = true
		return
	case h.Reset:
		_ = c.ws.CloseNow()
		c.finished = true
		return
	case h.Torn:
		_ = c.ws.Write(context.Background(), websocket.MessageText, []byte(`{"type":"Turn",`))
		return
	case h.Never:
	case h.Text != "":
		plain := h.Text
		if c.formats {
			plain = strings.ToLower(strings.Trim(plain, ".?!"))
		}
		c.turn(plain, h.Language, true, !c.formats)
		if c.formats && !h.Plain {
			c.turn(h.Text, h.Language, true, true)
		}
		c.order++
	}
	c.sent, c.pcm, c.told = c.sent+len(pcm), nil, false
}

// turn sends what was understood so far.
func (c *session) turn(text, language string, end, formatted bool) {
	var words []map[string]any
	all := strings.Fields(text)
	for i, w := range all {
		at := func(k int) int { return (c.sent + len(c.pcm)*k/len(all)) * 1000 / int(c.rate) }
		words = append(words, map[string]any{"text": w, "start": at(i), "end": at(i + 1), "confidence": 0.9,
			"word_is_final": end || i < len(all)-1})
	}
	transcript, utterance := text, ""
	if end {
		utterance = text
	} else {
		transcript = strings.Join(all[:len(all)-1], " ")
	}
	told := map[string]any{"type": "Turn", "turn_order": c.order, "turn_is_formatted": formatted, "end_of_turn": end,
		"transcript": transcript, "utterance": utterance, "end_of_turn_confidence": 0.5, "words": words}
	if language != "" && end && c.detects {
		told["language_code"], told["language_confidence"] = language, 0.98
	}
	c.send(told)
}
