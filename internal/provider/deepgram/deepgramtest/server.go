// Package deepgramtest is for tests: a server that speaks Deepgram's protocol on loopback, understands tones that stand
// for texts, and misbehaves on request.
package deepgramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// Key is the key that a Server accepts.
const Key = "d33pgram"

// The paths that a Server has sockets on.
const (
	ListenPath = "/v1/listen"
	FluxPath   = "/v2/listen"
	SpeakPath  = "/v1/speak"
)

// Server stands in for Deepgram, as far as calls need it. Set the fields before its first request.
type Server struct {
	URL string
	// Voice says what is spoken, and knows which text a tone in what is heard stands for.
	Voice *aitest.Synthesizer
	// Patience is how long a socket may be silent before it is closed with NET-0001.
	Patience time.Duration
	// Piece is how much sound a transcript that is final is about, at most: longer utterances come in several.
	Piece time.Duration
	// NoTimes leaves out when words were said, which Flux does not promise to tell.
	NoTimes bool
	// Stale answers the flushes that were cleared, after all that has been cleared.
	Stale bool
	// Refuses are query parameters that are answered with 400.
	Refuses []string

	http *httptest.Server
	stop context.CancelFunc
	ctx  context.Context
	wg   sync.WaitGroup

	mu     sync.Mutex
	script map[string][]Behaviour
	hears  []string
	opened []Opened
	said   []string
	got    map[string]int // messages by their type; "" is sound
	live   int
	sent   int
}

// Opened is a requested socket.
type Opened struct {
	Path  string
	Query url.Values
}

// Behaviour is how a socket behaves. The zero value behaves correctly.
type Behaviour struct {
	// Status refuses the handshake; 0: it is taken.
	Status     int
	RetryAfter string

	Delay time.Duration // before each answer
	Fault Fault
	After int             // messages that are answered as they should be before Fault
	At    string          // where there is one, Fault comes in place of this event of Flux's, not before
	Hold  <-chan struct{} // where there is one, Fault comes when it is closed, not before
	// Mute answers no Finalize.
	Mute bool
}

// Fault is how a socket fails.
type Fault string

// The faults.
const (
	Reset     Fault = "reset"     // the connection is gone
	Close     Fault = "close"     // closed with 1011
	Policy    Fault = "policy"    // closed with 1008
	Stall     Fault = "stall"     // nothing is read or sent any more, pings neither
	Garbage   Fault = "garbage"   // a message that is no JSON
	Trouble   Fault = "trouble"   // an Error message, and closed
	Endless   Fault = "endless"   // sound without an end
	Soundless Fault = "soundless" // flushed without any sound
	Warns     Fault = "warns"     // that there were too many flushes
)

// NewServer starts a server that ends with the test.
func NewServer(t testing.TB) *Server {
	s := &Server{Voice: &aitest.Synthesizer{}, Patience: 10 * time.Second, Piece: 3 * time.Second,
		script: map[string][]Behaviour{}, got: map[string]int{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/projects", func(w http.ResponseWriter, r *http.Request) {
		if s.allowed(w, r) {
			_, _ = w.Write([]byte(`{"projects":[{"project_id":"p","name":"Test"}]}`))
		}
	})
	mux.HandleFunc("GET "+ListenPath, s.socket(nova))
	mux.HandleFunc("GET "+FluxPath, s.socket(flux))
	mux.HandleFunc("GET "+SpeakPath, s.socket(speak))
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	t.Cleanup(func() {
		s.stop()
		s.http.CloseClientConnections()
		s.http.Close()
		s.wg.Wait()
	})
	return s
}

// Script appends to how the next sockets on a path behave.
func (s *Server) Script(path string, b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script[path] = append(s.script[path], b...)
}

// Hears sets how the next utterances that are not tones are understood.
func (s *Server) Hears(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hears = append(s.hears, texts...)
}

func (s *Server) next() (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hears) > 0 {
		text, s.hears = s.hears[0], s.hears[1:]
	}
	return text
}

// Opened lists the requested sockets, in order.
func (s *Server) Opened() []Opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.opened)
}

// Said lists the texts that were flushed, in order.
func (s *Server) Said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

// Got is how many messages of a type have arrived; "" stands for audio.
func (s *Server) Got(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[kind]
}

// Answers is how many messages the server has sent.
func (s *Server) Answers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// Live is how many sockets are open.
func (s *Server) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

func (s *Server) allowed(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == "Token "+Key {
		return true
	}
	refuse(w, http.StatusUnauthorized, "INVALID_AUTH", "Invalid credentials.")
	return false
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("dg-error", text)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"err_code": code, "err_msg": text, "request_id": requestID})
}

const requestID = "550e8400-e29b-41d4-a716-446655440000"

// asked is how a socket was opened.
type asked struct {
	Behaviour
	url.Values
	rate audio.Rate
}

// engine judges how a socket is opened, and serves it.
type engine struct {
	fields []string // of the query
	judge  func(asked) string
	serve  func(*peer)
}

func (s *Server) socket(e engine) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.wg.Add(1)
		defer s.wg.Done()
		if !s.allowed(w, r) {
			return
		}
		a := asked{Values: r.URL.Query()}
		s.mu.Lock()
		s.opened = append(s.opened, Opened{r.URL.Path, a.Values})
		if list := s.script[r.URL.Path]; len(list) > 0 {
			a.Behaviour, s.script[r.URL.Path] = list[0], list[1:]
		}
		s.mu.Unlock()
		if a.Status != 0 {
			if a.RetryAfter != "" {
				w.Header().Set("Retry-After", a.RetryAfter)
			}
			refuse(w, a.Status, "SCRIPTED", "It is told to.")
			return
		}
		if why := s.judge(&a, e); why != "" {
			refuse(w, http.StatusBadRequest, "Bad Request", why)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		ws.SetReadLimit(1 << 20)
		p := &peer{s: s, ws: ws, asked: a, ctx: s.ctx}
		s.count(1)
		defer s.count(-1)
		defer ws.CloseNow()
		e.serve(p)
	}
}

func (s *Server) count(n int) {
	s.mu.Lock()
	s.live += n
	s.mu.Unlock()
}

func (s *Server) judge(a *asked, e engine) string {
	for name := range a.Values {
		if !slices.Contains(e.fields, name) || slices.Contains(s.Refuses, name) {
			return fmt.Sprintf("Failed to deserialize query parameters: unknown field %q", name)
		}
	}
	rate, err := strconv.Atoi(a.Get("sample_rate"))
	if err != nil || a.Get("encoding") != "linear16" {
		return "This server has linear16 alone, at a sample rate."
	}
	a.rate = audio.Rate(rate)
	return e.judge(*a)
}

// peer is an open socket.
type peer struct {
	asked
	s   *Server
	ws  *websocket.Conn
	ctx context.Context

	mu   sync.Mutex
	sent int
}

// receive is the next message; false when the socket is over, for whatever reason.
func (p *peer) receive(patience time.Duration) (kind string, data []byte, ok bool) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	type read struct {
		kind websocket.MessageType
		data []byte
		err  error
	}
	got := make(chan read, 1)
	p.s.wg.Go(func() { // a read that is given up would close the socket without a word
		kind, data, err := p.ws.Read(p.ctx)
		got <- read{kind, data, err}
	})
	var r read
	select {
	case r = <-got:
	case <-ctx.Done():
		if p.ctx.Err() == nil {
			_ = p.ws.Close(websocket.StatusInternalError,
				"Deepgram did not receive audio data or a text message within the timeout window. See https://dpgr.am/net0001")
		}
		return "", nil, false
	}
	if r.err != nil {
		return "", nil, false
	}
	if r.kind == websocket.MessageText {
		var m struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(r.data, &m) != nil || m.Type == "" {
			_ = p.ws.Close(websocket.StatusPolicyViolation, "DATA-0000")
			return "", nil, false
		}
		kind = m.Type
	}
	p.s.mu.Lock()
	p.s.got[kind]++
	p.s.mu.Unlock()
	return kind, r.data, true
}

// send sends a message, or fails as it is told to; false when the socket is over.
func (p *peer) send(v any) bool {
	raw, binary := v.([]byte)
	if !binary {
		raw, _ = json.Marshal(v)
	}
	if p.Delay > 0 {
		select {
		case <-time.After(p.Delay):
		case <-p.ctx.Done():
			return false
		}
	}
	p.s.mu.Lock()
	p.s.sent++
	p.s.mu.Unlock()
	p.mu.Lock()
	p.sent++
	fails := p.Fault != "" && p.sent > p.After
	if m, ok := v.(map[string]any); ok && p.At != "" {
		fails = fails && m["event"] == p.At
	}
	p.mu.Unlock()
	if fails && !p.fail() {
		return false
	}
	kind := websocket.MessageText
	if binary {
		kind = websocket.MessageBinary
	}
	return p.ws.Write(p.ctx, kind, raw) == nil
}

// fail does what it is told to; true when the socket goes on.
func (p *peer) fail() bool {
	if p.Hold != nil {
		select {
		case <-p.Hold:
		case <-p.ctx.Done():
		}
	}
	switch p.Fault {
	case Reset:
		_ = p.ws.CloseNow()
	case Close:
		_ = p.ws.Close(websocket.StatusInternalError, "NET-0000")
	case Policy:
		_ = p.ws.Close(websocket.StatusPolicyViolation, "DATA-0000")
	case Stall:
		<-p.ctx.Done()
	case Garbage:
		_ = p.ws.Write(p.ctx, websocket.MessageText, []byte("<html>502"))
		<-p.ctx.Done()
	case Trouble:
		_ = p.ws.Write(p.ctx, websocket.MessageText,
			[]byte(`{"type":"Error","sequence_id":7,"code":"INTERNAL_SERVER_ERROR","description":"an internal error"}`))
		_ = p.ws.Close(websocket.StatusInternalError, "")
	default:
		return true // of the voice
	}
	return false
}

// inRange says whether a parameter is a number between two, where it is there.
func inRange(v string, from, to float64) bool {
	n, err := strconv.ParseFloat(v, 64)
	return v == "" || err == nil && n >= from && n <= to
}

// has says that a list separated by spaces has a word.
func has(list, word string) bool { return slices.Contains(strings.Fields(list), word) }
