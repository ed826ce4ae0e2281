// Package resttest is for tests: what our vendor test servers have in common. A vendor's server defines its protocol's
// requests and events; scripted behaviours make it slow, tear its events apart, and break off.
package resttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// Server is a server on a loopback port.
type Server struct {
	URL string

	mux      *http.ServeMux
	http     *http.Server
	handlers sync.WaitGroup
	stop     chan struct{}

	mu     sync.Mutex
	closed bool // no handler starts any more
	script []aitest.Behaviour
	usual  aitest.Behaviour
	count  int
}

// New starts a server that is closed at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + ln.Addr().String(), mux: http.NewServeMux(), stop: make(chan struct{})}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	s.handlers.Go(func() { _ = s.http.Serve(ln) }) // ends by Close
	t.Cleanup(s.Close)
	return s
}

// Handle adds a route.
func (s *Server) Handle(pattern string, h http.HandlerFunc) { s.mux.HandleFunc(pattern, h) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.handlers.Add(1)
	}
	s.mu.Unlock()
	if closed {
		return
	}
	defer s.handlers.Done()
	s.mux.ServeHTTP(w, r)
}

// Close ends all streams and waits for them. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	close(s.stop)
	_ = s.http.Close() // what it says of closed connections matters to nobody
	s.handlers.Wait()
}

// Script appends to how the next requests are answered.
func (s *Server) Script(b ...aitest.Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, b...)
}

// Usually sets how unscripted requests are answered.
func (s *Server) Usually(b aitest.Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usual = b
}

// Count is how many requests used a behaviour.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Next is how the current request is to be answered.
func (s *Server) Next() aitest.Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if len(s.script) == 0 {
		return s.usual
	}
	b := s.script[0]
	s.script = s.script[1:]
	return b
}

// Said is what a behaviour answers a request with: its own text and calls, or Echo's.
func Said(b aitest.Behaviour, req ai.Request) ai.Reply {
	if b.Text == "" && b.Calls == nil && b.Finish == "" {
		return aitest.Echo(req)
	}
	r := ai.Reply{Text: b.Text, Calls: b.Calls, Finish: b.Finish}
	if r.Finish == "" {
		r.Finish = ai.Stop
		if len(r.Calls) > 0 {
			r.Finish = ai.ToolCalls
		}
	}
	return r
}

// Words are a text as it is streamed.
func Words(text string) (list []string) {
	for _, w := range strings.SplitAfter(text, " ") {
		if w != "" {
			list = append(list, w)
		}
	}
	return list
}

// Tokens counts words as tokens, one at least.
func Tokens(texts ...string) (n int) {
	for _, t := range texts {
		n += len(strings.Fields(t)) + 1
	}
	return n
}

// JSON answers with an object.
func JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}

// Event is an event of a stream; its name may be empty.
type Event struct {
	Name string
	Data any
}

// Answer is a stream: what comes at once, the pieces that take their time, the end, and the vendor's error.
type Answer struct {
	Head, Pieces, Tail []Event
	Failure            Event
	Newline            string // "\n" or "\r\n"
}

// Stream sends an answer as a behaviour wants it.
func (s *Server) Stream(w http.ResponseWriter, r *http.Request, b aitest.Behaviour, a Answer) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	t := &stream{Behaviour: b, Answer: a, w: w, ctx: r.Context(), stop: s.stop}
	if b.Raw != "" {
		t.write([]byte(b.Raw))
		return
	}
	t.run()
}

type stream struct {
	aitest.Behaviour
	Answer
	w    http.ResponseWriter
	ctx  context.Context // ends when the client leaves
	stop chan struct{}   // closed when the server stops
}

func (t *stream) run() {
	if !t.send(t.Head) || !t.wait(t.FirstDelay, nil) {
		return
	}
	for i, e := range t.Pieces {
		if t.Fault != "" && i == t.After {
			break
		}
		if i > 0 && !t.wait(t.TokenDelay, nil) || !t.send([]Event{e}) {
			return
		}
		if i == 0 && t.Gate != nil && !t.wait(0, t.Gate) {
			return
		}
	}
	if t.Fault != "" {
		t.fault()
		return
	}
	t.send(t.Tail)
}

func (t *stream) send(list []Event) bool {
	for _, e := range list {
		var b bytes.Buffer
		if e.Name != "" {
			b.WriteString("event: " + e.Name + t.Newline)
		}
		b.WriteString("data: ")
		j := json.NewEncoder(&b)
		j.SetEscapeHTML(false)
		_ = j.Encode(e.Data) // plain values can't fail
		b.Truncate(b.Len() - 1)
		b.WriteString(t.Newline + t.Newline)
		if !t.write(b.Bytes()) {
			return false
		}
	}
	return true
}

// write sends bytes, each piece of Cut bytes as a segment and chunk of its own. It says whether the client is still
// there.
func (t *stream) write(p []byte) bool {
	for len(p) > 0 {
		n := len(p)
		if t.Cut > 0 {
			n = min(t.Cut, n)
		}
		if _, err := t.w.Write(p[:n]); err != nil {
			return false
		}
		if err := http.NewResponseController(t.w).Flush(); err != nil {
			return false
		}
		p = p[n:]
	}
	return t.ctx.Err() == nil
}

// wait pauses for a time and until a gate opens, where there is one.
func (t *stream) wait(d time.Duration, gate <-chan struct{}) bool {
	if d <= 0 && gate == nil {
		return true
	}
	var after <-chan time.Time
	if gate == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-after:
		return true
	case <-gate:
		return true
	case <-t.ctx.Done():
	case <-t.stop:
	}
	return false
}

func (t *stream) fault() {
	switch t.Fault {
	case aitest.Reset:
		if c, _, err := http.NewResponseController(t.w).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0) // RST instead of FIN
			_ = c.Close()
		}
	case aitest.Stall:
		t.wait(0, make(chan struct{}))
	case aitest.Failure:
		t.send([]Event{t.Failure})
	case aitest.Garbage:
		t.write([]byte(fmt.Sprintf("event: content_block_delta%sdata: {\"type\":%s%s", t.Newline, t.Newline, t.Newline)))
	case aitest.Endless:
		line := append(bytes.Repeat([]byte("x"), 64<<10), '\n')
		for t.write([]byte("data: ")) {
			if _, err := io.Copy(t.w, bytes.NewReader(line)); err != nil {
				return
			}
		}
	}
}
