package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"parley"
	"parley/internal/auth"
)

// openStream counts a live stream against those that its client address has, until leave is called.
func (a *API) openStream(r *request) (leave func(), err error) {
	leave, ok := a.Streams.Take(a.address(r.Request))
	if !ok {
		return nil, &auth.LimitError{RetryAfter: 10}
	}
	return leave, nil
}

// stands says whether the credential that began a stream still counts.
func (a *API) stands(r *request) bool {
	if r.Who == nil {
		return true
	}
	_, err := a.Auth.Authenticate(r.Context(), auth.BearerToken(r.Header.Get("Authorization")), parley.APIKey, parley.Session)
	return !errors.Is(err, auth.ErrUnauthenticated) // a database that does not answer says nothing about it
}

// stream sends server-sent events (WHATWG HTML, section 9.2).
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	open bool
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, rc: http.NewResponseController(w)}
}

func (s *stream) begin() {
	if s.open {
		return
	}
	s.open = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold it back
	h.Set("X-Content-Type-Options", "nosniff")
	s.w.WriteHeader(http.StatusOK)
}

// send writes one event; id "" for none. Failures show at the next flush.
func (s *stream) send(event, id string, data any) {
	s.begin()
	b := buffers.Get()
	defer buffers.Put(b)
	b.WriteString("event: " + event + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("data: ")
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if enc.Encode(data) != nil { // of our own types
		return
	}
	b.WriteByte('\n') // Encode has ended the data line
	s.w.Write(b.Bytes())
}

// comment writes a line that clients ignore: it opens the stream and keeps it open.
func (s *stream) comment(text string) {
	s.begin()
	s.w.Write([]byte(": " + text + "\n\n"))
}

// flush sends what was written; an error means that the reader is gone.
func (s *stream) flush() error { return s.rc.Flush() }
