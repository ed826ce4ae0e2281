// Package cartesiatest is a test server that speaks Cartesia's protocol: speech by contexts on one WebSocket with word
// times, transcription that is told when an utterance is over, and voices. It refuses what Cartesia refuses, and
// misbehaves on request.
package cartesiatest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// Key is the key that the server asks for, Voice the one that it speaks with.
const (
	Key   = "sk_car_test"
	Voice = "f786b574-daa5-4673-aa0c-cbe3e8534c02"
)

// Server stands in for Cartesia. It speaks every text as a tone of its own, from its Speaker.
type Server struct {
	URL     string
	Speaker *aitest.Synthesizer
	// Hear understands an utterance that nothing is scripted for; nil: whose tone it is.
	Hear func(pcm []int16, rate audio.Rate) string
	// Detect is what languages ink-preview finds in a text, with their confidences; nil: English.
	Detect func(text string) map[string]float64
	// Relative has the times of words count from the beginning of their text, not of the context. Set it, and Expiry,
	// before the server is asked.
	Relative bool
	// Expiry is how long a context lasts after its last sound.
	Expiry time.Duration

	wg   sync.WaitGroup
	stop chan struct{}

	mu      sync.Mutex
	refuse  []Refusal
	script  []Hearing
	sockets map[*websocket.Conn]bool
	opened  int
	queries []string
	said    []string
	ids     map[string]bool
	cancels int
}

// Refusal is how a handshake, or a request, is refused. With Status 0 the next context is refused, with Code and In.
type Refusal struct {
	Status     int
	Code       string
	RetryAfter int
	In         int // the status in the event
}

// Hearing is how an utterance is understood.
type Hearing struct {
	Text  string
	Error int // an error with this status comes instead
	Close websocket.StatusCode
	Never bool // nothing comes
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{Speaker: &aitest.Synthesizer{}, Expiry: time.Second, stop: make(chan struct{}),
		sockets: map[*websocket.Conn]bool{}, ids: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tts/websocket", s.guard(s.speak))
	mux.HandleFunc("GET /stt/websocket", s.guard(s.listen))
	mux.HandleFunc("GET /stt/turns/websocket", s.guard(s.follow))
	mux.HandleFunc("GET /voices", s.guard(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"data": []any{map[string]string{"id": Voice}}, "has_more": true})
	}))
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

// Opened is the number of sockets opened.
func (s *Server) Opened() (n int) {
	s.locked(func() { n = s.opened })
	return n
}

// Contexts is the number of contexts opened, and of those cancelled.
func (s *Server) Contexts() (opened, cancelled int) {
	s.locked(func() { opened, cancelled = len(s.ids), s.cancels })
	return opened, cancelled
}

// Said lists what was spoken, whole or in part, in the order in which it was begun.
func (s *Server) Said() (texts []string) {
	s.locked(func() { texts = slices.Clone(s.said) })
	return texts
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

// refused is how the next handshake, or context, is refused.
func (s *Server) refused(handshake bool) (no Refusal) {
	s.locked(func() {
		if len(s.refuse) > 0 && (s.refuse[0].Status != 0) == handshake {
			no, s.refuse = s.refuse[0], s.refuse[1:]
		}
	})
	return no
}

// guard lets through who has the key, and is not to be refused.
func (s *Server) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		no := s.refused(true)
		switch {
		case no.Status != 0:
		case r.Header.Get("X-Api-Key") != Key:
			no = Refusal{Status: 401, Code: "unauthorized"}
		case r.Header.Get("Cartesia-Version") == "":
			no = Refusal{Status: 400, Code: "version_required"}
		}
		if no.Status != 0 {
			if no.RetryAfter > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(no.RetryAfter))
			}
			answer(w, no.Status, map[string]any{"error_code": no.Code, "title": "No", "message": "no", "request_id": "r"})
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

// accept opens a socket.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, known ...string) *websocket.Conn {
	for name := range r.URL.Query() {
		if !slices.Contains(known, name) {
			answer(w, 400, map[string]any{"error_code": "bad_request", "title": "Unknown", "message": name})
			return nil
		}
	}
	// Before who dials knows that the socket is open.
	s.locked(func() { s.queries = append(s.queries, r.URL.RawQuery) })
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return nil
	}
	c.SetReadLimit(4 << 20)
	s.locked(func() {
		s.sockets[c] = true
		s.opened++
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
