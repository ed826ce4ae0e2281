package web

import (
	"bytes"
	"encoding/json"
	"net/http"

	"parley/internal/auth"
)

// EventStream is the content type of server-sent events.
const EventStream = "text/event-stream"

// Stream sends server-sent events (WHATWG HTML, section 9.2).
type Stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	open bool
	b    bytes.Buffer
	err  error // the first failure: the reader is gone
}

// NewStream makes a stream; the first thing that is sent begins the answer.
func NewStream(w http.ResponseWriter) *Stream {
	return &Stream{w: w, rc: http.NewResponseController(w)}
}

// Enter counts a live stream against those that its client's address has, until leave is called.
func (f Front) Enter(slots *auth.Slots, r *http.Request) (leave func(), err error) {
	leave, ok := slots.Take(f.Client(r))
	if !ok {
		return nil, &auth.LimitError{RetryAfter: 10}
	}
	return leave, nil
}

func (s *Stream) write() {
	if !s.open {
		s.open = true
		h := s.w.Header()
		h.Set("Content-Type", EventStream)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx would hold it back
		h.Set("X-Content-Type-Options", "nosniff")
		s.w.WriteHeader(http.StatusOK)
	}
	if s.err == nil {
		_, s.err = s.w.Write(s.b.Bytes())
	}
	s.b.Reset()
}

// Send writes one event; id "" for none. Failures show at the next flush.
func (s *Stream) Send(event, id string, data any) {
	s.b.WriteString("event: " + event + "\n")
	if id != "" {
		s.b.WriteString("id: " + id + "\n")
	}
	s.b.WriteString("data: ")
	enc := json.NewEncoder(&s.b)
	enc.SetEscapeHTML(false)
	if enc.Encode(data) != nil { // of our own types; line breaks are escaped
		s.b.Reset()
		return
	}
	s.b.WriteByte('\n') // Encode has ended the data line
	s.write()
}

// Comment writes a line that clients ignore: it opens the stream and keeps it open.
func (s *Stream) Comment(text string) {
	s.b.WriteString(": " + text + "\n\n")
	s.write()
}

// Flush sends what was written; an error means that the reader is gone.
func (s *Stream) Flush() error {
	s.write()
	if s.err != nil {
		return s.err
	}
	return s.rc.Flush()
}
