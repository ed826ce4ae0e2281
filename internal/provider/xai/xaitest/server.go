// Package xaitest is a test server that speaks xAI's realtime protocol: its session, its events, and what it does that
// its documents don't say. The model behind it is an aitest.Server's, to which it translates.
package xaitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"parley/internal/ai/aitest"
)

// Key is the key that the server asks for, Model its model.
const (
	Key   = "xai-test-0123456789"
	Model = "grok-voice-latest"
)

// Voices are those that the server speaks with.
var Voices = []string{"eve", "ara", "leo", "rex", "sal"}

// Server stands in for xAI. Behaviours are scripted as for the aitest.Server.
type Server struct {
	*aitest.Server
	URL string // with /v1
	// Unmarked: replies come without the metadata that they were asked for with.
	Unmarked bool

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu         sync.Mutex
	complaints []string
	terms      []map[string]any
	unasked    int
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{Server: aitest.NewServer(t)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/realtime", s.guard(s.converse))
	mux.HandleFunc("GET /v1/tts/voices", s.guard(func(w http.ResponseWriter, _ *http.Request) {
		var list []any
		for _, v := range Voices {
			list = append(list, map[string]any{"voice_id": v, "name": strings.ToUpper(v[:1]) + v[1:]})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"voices": list})
	}))
	h := httptest.NewServer(mux)
	s.URL = h.URL + "/v1"
	t.Cleanup(func() {
		s.cancel()
		h.Close() // no more handlers begin
		s.wg.Wait()
	})
	return s
}

func (s *Server) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+Key {
			refuse(w, http.StatusBadRequest, "Incorrect API key provided. You can obtain an API key from https://console.x.ai.")
			return
		}
		next(w, r)
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": "invalid-argument", "error": message})
}

// Complaints lists what clients did that xAI refuses, or that goes wrong with it.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.Server.Complaints(), s.complaints...)
}

// Terms are the configurations that the server was sent, in order.
func (s *Server) Terms() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.terms...)
}

// Unasked is how many replies the server began by itself.
func (s *Server) Unasked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unasked
}

func (s *Server) complain(text string) {
	s.mu.Lock()
	s.complaints = append(s.complaints, text)
	s.mu.Unlock()
}

// converse is GET /v1/realtime: two goroutines pass on what each side says.
func (s *Server) converse(w http.ResponseWriter, r *http.Request) {
	s.wg.Add(1)
	defer s.wg.Done()
	model := r.URL.Query().Get("model")
	if model != Model {
		refuse(w, http.StatusNotFound, "The model "+model+" does not exist or your team does not have access to it.")
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	up, res, err := websocket.Dial(ctx, s.Server.URL+"/realtime?model="+aitest.RealtimeModel, nil)
	if err != nil {
		if res == nil {
			refuse(w, http.StatusBadGateway, err.Error())
			return
		}
		body, _ := io.ReadAll(res.Body)
		for _, name := range []string{"Retry-After", "Content-Type"} {
			w.Header().Set(name, res.Header.Get(name))
		}
		w.WriteHeader(res.StatusCode)
		_, _ = w.Write(body)
		return
	}
	down, err := websocket.Accept(w, r, nil)
	if err != nil {
		_ = up.CloseNow()
		return
	}
	up.SetReadLimit(16 << 20)
	down.SetReadLimit(16 << 20)
	c := &conn{s: s, ctx: ctx, up: up, down: down, heard: map[string]string{}, made: map[string][]string{},
		gone: map[string]bool{}, mute: map[string]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(ctx, up, down, c.server)
	}()
	pass(ctx, down, up, c.client)
	<-done
	cancel()
	c.wg.Wait()
}

// pass takes what one socket says until it ends, and ends the other in the same way.
func pass(ctx context.Context, from, to *websocket.Conn, take func(raw []byte)) {
	for {
		_, raw, err := from.Read(ctx)
		if err == nil {
			take(raw)
			continue
		}
		if code := websocket.CloseStatus(err); code > 0 && code != websocket.StatusNoStatusRcvd {
			_ = to.Close(code, "")
		}
		_ = to.CloseNow()
		_ = from.CloseNow()
		return
	}
}

func write(ctx context.Context, to *websocket.Conn, v any) {
	raw, ok := v.([]byte)
	if !ok {
		raw, _ = json.Marshal(v)
	}
	_ = to.Write(ctx, websocket.MessageText, raw) // the other side may have left
}

func decode(raw []byte) (m map[string]any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&m)
	return m
}
