// Package gptlivetest is a test server that speaks OpenAI's GPT-Live as its documents have it: sound both ways all the time, a
// model that speaks when it likes and falls silent when it is interrupted, and a thinker that calls functions.
package gptlivetest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"parley/internal/ai/aitest"
)

// Key is the key that the server asks for, Model its model, and Thinker the one that models may delegate to.
const (
	Key     = "live-test-0123456789"
	Model   = "gpt-live-1"
	Thinker = "gpt-6-luna"
)

// Voices are those that the server speaks with.
var Voices = []string{"marin", "cedar", "alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse"}

// Server stands in for OpenAI. Behaviours are what the model says next, and the functions that its thinker calls meanwhile; without
// one it says nothing.
type Server struct {
	URL    string // with /v1
	Voice  *aitest.Synthesizer
	Lasts  int  // seconds of a session; 0 is two hours, and less than that is not told
	Sparse bool // the model's silence is left out

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu         sync.Mutex
	next       []aitest.Behaviour
	words      []aitest.Behaviour
	sessions   []*session
	complaints []string
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{Voice: &aitest.Synthesizer{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/live/sessions", s.converse)
	h := httptest.NewServer(mux)
	s.URL = h.URL + "/v1"
	t.Cleanup(func() {
		s.cancel()
		h.Close() // no more handlers begin
		s.wg.Wait()
	})
	return s
}

// ScriptRealtime appends to what the model says. With Status the next session is refused instead.
func (s *Server) ScriptRealtime(b ...aitest.Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = append(s.next, b...)
}

// ScriptTranscripts appends to what is understood; without any, the text is that of which a sound is the tone.
func (s *Server) ScriptTranscripts(b ...aitest.Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words = append(s.words, b...)
}

// Conversations lists those of all sessions so far. What the client has appended is of the customer's side.
func (s *Server) Conversations() (list []aitest.RealtimeConversation) {
	for _, c := range s.all() {
		c.mu.Lock()
		list = append(list, aitest.RealtimeConversation{Model: Model, Terms: c.terms, Items: slices.Clone(c.items), Over: c.over, Left: c.left})
		c.mu.Unlock()
	}
	return list
}

func (s *Server) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions)
}

// Complaints lists what clients did that OpenAI refuses.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.complaints)
}

func (s *Server) complain(text string) {
	s.mu.Lock()
	s.complaints = append(s.complaints, text)
	s.mu.Unlock()
}

// Speak has the model say what is scripted next, in all sessions, although nobody has said anything.
func (s *Server) Speak() {
	for _, c := range s.all() {
		c.mu.Lock()
		c.speak()
		c.mu.Unlock()
	}
}

// Inject sends this in all sessions, as it is.
func (s *Server) Inject(raw string) {
	for _, c := range s.all() {
		_ = c.ws.Write(s.ctx, websocket.MessageText, []byte(raw)) // the client may have left
	}
}

// Drop ends all sessions with a close code; 0 resets their sockets.
func (s *Server) Drop(code int) {
	for _, c := range s.all() {
		if code == 0 {
			_ = c.ws.CloseNow()
		} else {
			_ = c.ws.Close(websocket.StatusCode(code), "")
		}
	}
}

// Expire ends all sessions as those that have lasted as long as they may.
func (s *Server) Expire() {
	for _, c := range s.all() {
		c.mu.Lock()
		c.close("expired")
		c.mu.Unlock()
		_ = c.ws.Close(websocket.StatusNormalClosure, "")
	}
}

// HeardMS is how much sound the latest session was sent, in milliseconds.
func (s *Server) HeardMS() int {
	list := s.all()
	c := list[len(list)-1]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inMS
}

func (s *Server) refused(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, code, kind := 0, "", "invalid_request_error"
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Key:
		status, code = http.StatusUnauthorized, "invalid_api_key"
	case len(s.next) > 0 && s.next[0].Status != 0:
		b := s.next[0]
		s.next = s.next[1:]
		if status, code, kind = b.Status, "server_error", "server_error"; status == http.StatusTooManyRequests {
			code = "rate_limit_exceeded"
		}
		if b.RetryAfter != "" {
			w.Header().Set("Retry-After", b.RetryAfter)
		}
	default:
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).
		Encode(map[string]any{"error": map[string]any{"message": "refused with " + strconv.Itoa(status), "type": kind, "code": code}})
	return true
}

// converse is GET /v1/live/sessions.
func (s *Server) converse(w http.ResponseWriter, r *http.Request) {
	s.wg.Add(1)
	defer s.wg.Done()
	if s.refused(w, r) {
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ws.SetReadLimit(16 << 20)
	c := &session{s: s, ws: ws, left: -1, open: map[string]bool{}}
	s.mu.Lock()
	s.sessions = append(s.sessions, c)
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	for {
		_, raw, err := ws.Read(ctx)
		c.mu.Lock()
		if err != nil {
			c.over, c.left = true, int(websocket.CloseStatus(err))
			c.mu.Unlock()
			return
		}
		was := c.terms != nil
		c.take(raw)
		if !was && c.terms != nil {
			s.wg.Go(func() { c.run(ctx) })
		}
		c.mu.Unlock()
	}
}
