// Package elevenlabstest is a test server that speaks ElevenLabs' protocol: speech by several contexts on one WebSocket
// with the time of each character, realtime transcription, models and voices. It refuses what ElevenLabs refuses, and
// misbehaves on request.
package elevenlabstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// Key is the key that the server asks for, Voice the one that every test can speak with.
const (
	Key   = "sk_test"
	Voice = "EXAVITQu4vr4xnSDxMaL"
)

// maxContexts is how many contexts a socket may have.
const maxContexts = 5

// Server stands in for ElevenLabs. It speaks every text as a tone of its own, from its Speaker.
type Server struct {
	URL     string
	Speaker *aitest.Synthesizer
	// Hear understands an utterance that nothing is scripted for; nil: whose tone it is.
	Hear func(pcm []int16, rate audio.Rate) string
	// Manner changes how it speaks. Set it before it is asked.
	Manner Manner
	// Voices are those of GET /v2/voices, in pages of Page; nil: none.
	Voices []map[string]any
	Page   int

	t    testing.TB
	wg   sync.WaitGroup
	stop chan struct{}

	mu      sync.Mutex
	refuse  []Refusal
	script  []Hearing
	sockets map[*websocket.Conn]bool
	opened  map[string]int // sockets, by path
	queries []string
	said    []string
	cancels int // contexts that were closed before they had said all
	most    int // contexts that a socket had at once
	now     int // contexts that there are
}

// Manner is how the server speaks, within what ElevenLabs documents and does.
type Manner struct {
	Unaligned bool // no alignment
	Absolute  bool // times count from the beginning of the context
	Snake     bool // names as in the documents' examples: context_id, is_final, charsDurationsMs
	Across    bool // the end of a text and the beginning of the next are one message, where both are there
	Odd       bool // messages end within a sample
	Uneven    bool // a text is said ever more slowly
	Zombie    bool // a context that is closed stays: nothing more is said of it

	TimesFirst  bool // of a transcript, the message with times comes first
	SilenceOnce bool // a commit of silence is answered by one message alone
}

// Refusal is how a handshake, or a request, is refused.
type Refusal struct {
	Status     int
	Code       string
	RetryAfter int
}

// Hearing is how an utterance is understood.
type Hearing struct {
	Text     string
	Language string // that is detected, as ElevenLabs writes it; "": the session's
	Error    string // a message of this type comes instead, and the socket is closed
	Close    websocket.StatusCode
	Never    bool // nothing comes
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{Speaker: &aitest.Synthesizer{}, Page: 2, t: t, stop: make(chan struct{}),
		sockets: map[*websocket.Conn]bool{}, opened: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/text-to-speech/{voice}/multi-stream-input", s.guard(s.speak))
	mux.HandleFunc("GET /v1/speech-to-text/realtime", s.guard(s.listen))
	mux.HandleFunc("GET /v1/models", s.guard(s.models))
	mux.HandleFunc("GET /v2/voices", s.guard(s.voices))
	h := httptest.NewServer(mux)
	s.URL = h.URL
	t.Cleanup(func() {
		close(s.stop)
		s.Kick(0, "")
		h.Close() // no more handlers begin
		s.wg.Wait()
	})
	return s
}

// Refuse has the next requests refused.
func (s *Server) Refuse(r ...Refusal) { s.locked(func() { s.refuse = append(s.refuse, r...) }) }

// Script sets how the next utterances are understood.
func (s *Server) Script(h ...Hearing) { s.locked(func() { s.script = append(s.script, h...) }) }

// Kick closes all sockets; with code 0 they break.
func (s *Server) Kick(code websocket.StatusCode, reason string) {
	var all []*websocket.Conn
	s.locked(func() {
		for c := range s.sockets {
			all = append(all, c)
		}
	})
	for _, c := range all {
		if code == 0 {
			c.CloseNow()
		} else {
			c.Close(code, reason)
		}
	}
}

// Opened is the number of sockets opened for speech, and for listening.
func (s *Server) Opened() (speech, hearing int) {
	s.locked(func() { speech, hearing = s.opened["speech"], s.opened["hearing"] })
	return speech, hearing
}

// Said lists what was spoken, whole or in part, in the order in which it was begun.
func (s *Server) Said() (texts []string) {
	s.locked(func() { texts = slices.Clone(s.said) })
	return texts
}

// Contexts is the number of contexts now, the most that one socket had, and how many were closed before their end.
func (s *Server) Contexts() (now, most, cancelled int) {
	s.locked(func() { now, most, cancelled = s.now, s.most, s.cancels })
	return now, most, cancelled
}

// Queries lists the queries with which sockets were opened.
func (s *Server) Queries() (q []string) {
	s.locked(func() { q = slices.Clone(s.queries) })
	return q
}

func (s *Server) locked(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

// guard lets through who has the key, and is not to be refused.
func (s *Server) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var no Refusal
		s.locked(func() {
			if len(s.refuse) > 0 {
				no, s.refuse = s.refuse[0], s.refuse[1:]
			}
		})
		if key := r.Header.Get("Xi-Api-Key"); no.Status == 0 && key != Key {
			no = Refusal{Status: 401, Code: "invalid_api_key"}
		}
		if no.Status != 0 {
			if no.RetryAfter > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(no.RetryAfter))
			}
			answer(w, no.Status, map[string]any{"detail": map[string]string{"status": no.Code, "message": "no"}})
			return
		}
		next(w, r)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// query refuses what ElevenLabs does not know.
func query(w http.ResponseWriter, r *http.Request, known ...string) bool {
	for name := range r.URL.Query() {
		if !slices.Contains(known, name) {
			answer(w, 400, map[string]any{"detail": map[string]string{"status": "bad_request",
				"message": fmt.Sprintf("unknown parameter %s", name)}})
			return false
		}
	}
	return true
}

// accept opens a socket.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, kind string) *websocket.Conn {
	// Before who dials knows that the socket is open.
	s.locked(func() { s.queries = append(s.queries, r.URL.RawQuery) })
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return nil
	}
	c.SetReadLimit(4 << 20)
	s.locked(func() {
		s.sockets[c] = true
		s.opened[kind]++
	})
	select {
	case <-s.stop:
		c.CloseNow()
	default:
	}
	return c
}

func (s *Server) leave(c *websocket.Conn) {
	c.CloseNow()
	s.locked(func() { delete(s.sockets, c) })
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	answer(w, 200, []map[string]any{{"model_id": "eleven_flash_v2_5", "can_do_text_to_speech": true},
		{"model_id": "eleven_multilingual_v2", "can_do_text_to_speech": true},
		{"model_id": "eleven_english_sts_v2", "can_do_text_to_speech": false}})
}

// voices is GET /v2/voices.
func (s *Server) voices(w http.ResponseWriter, r *http.Request) {
	if !query(w, r, "next_page_token", "page_size", "search", "sort", "sort_direction", "voice_type", "category",
		"fine_tuning_state", "collection_id", "include_total_count", "voice_ids") {
		return
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("page_size")); err != nil || n < 1 || n > 100 {
		answer(w, 422, map[string]any{"detail": []map[string]string{{"msg": "page_size is 1 to 100"}}})
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("next_page_token"))
	to := min(from+s.Page, len(s.Voices))
	page := map[string]any{"voices": s.Voices[from:to], "has_more": to < len(s.Voices), "total_count": 0,
		"next_page_token": nil}
	if to < len(s.Voices) {
		page["next_page_token"] = strconv.Itoa(to)
	}
	answer(w, 200, page)
}
