// Package anthropictest is for tests: a server that speaks Anthropic's Messages API, streamed, on a loopback port. It
// refuses what the API refuses, answers as aitest.Echo does, and misbehaves on request.
package anthropictest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"parley/internal/ai"
	"parley/internal/provider/rest/resttest"
)

// Key is the key that the server accepts.
const Key = "sk-ant-test-0123456789"

// The models that a server has, which take different things.
const (
	Quick = "claude-test-quick" // as Haiku 4.5: temperature, no thinking unless asked, no effort
	Plain = "claude-test-plain" // as Haiku 5.5: thinking can be switched off, no temperature
	Deep  = "claude-test-deep"  // as Sonnet 5.5: always thinks, takes an effort, no temperature
)

// Server is the server. Script and Usually say how it behaves.
type Server struct {
	*resttest.Server

	mu       sync.Mutex
	requests []Request
	cached   map[string]bool // prompts up to a mark
}

// Request is a request that the server accepted.
type Request struct {
	Header http.Header
	Body   json.RawMessage
	ai.Request
	Model    string
	Thinking string // "" where it is left to the model
	Effort   string
	Marks    int // cache_control
	Thoughts int // that came back
}

// New starts a server that is closed at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{Server: resttest.New(t), cached: map[string]bool{}}
	s.Handle("POST /v1/messages", s.messages)
	s.Handle("GET /v1/models/{id}", s.model)
	s.Handle("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "not_found_error", "Not Found")
	})
	return s
}

// Requests lists the accepted requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("request-id", "req_test")
	resttest.JSON(w, status, errorOf(kind, message))
}

func errorOf(kind, message string) map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message},
		"request_id": "req_test"}
}

func allowed(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Header.Get("x-api-key") != Key:
		fail(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
	case r.Header.Get("anthropic-version") != "2023-06-01":
		fail(w, http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
	default:
		return true
	}
	return false
}

func known(model string) bool { return model == Quick || model == Plain || model == Deep }

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	if !allowed(w, r) {
		return
	}
	id := r.PathValue("id")
	if !known(id) {
		fail(w, http.StatusNotFound, "not_found_error", "model: "+id)
		return
	}
	resttest.JSON(w, http.StatusOK, map[string]any{"type": "model", "id": id, "display_name": "Claude Test",
		"created_at": "2026-10-07T00:00:00Z"})
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	if !allowed(w, r) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size")
		return
	}
	b := s.Next()
	if b.Status != 0 {
		if b.RetryAfter != "" {
			w.Header().Set("retry-after", b.RetryAfter)
		}
		if b.Raw != "" {
			w.WriteHeader(b.Status)
			_, _ = io.WriteString(w, b.Raw)
			return
		}
		fail(w, b.Status, kindOf(b.Status, b.Code), b.Message)
		return
	}
	var in request
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", "Extra inputs are not permitted: "+err.Error())
		return
	}
	if !known(in.Model) {
		fail(w, http.StatusNotFound, "not_found_error", "model: "+in.Model)
		return
	}
	req, wrong := in.read()
	if wrong != "" {
		fail(w, http.StatusBadRequest, "invalid_request_error", wrong)
		return
	}
	req.Header, req.Body = r.Header.Clone(), body
	u := s.take(&in, req)
	s.Stream(w, r, b, answer(in.Model, resttest.Said(b, req.Request), u, in.Thinking == nil && in.Model == Deep))
}

// take notes a request, and what of it was read from the cache.
func (s *Server) take(in *request, req Request) usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) < 1000 {
		s.requests = append(s.requests, req)
	}
	var u usage
	n := 0
	for _, p := range in.prefixes() { // the longest that is there is read, the rest up to the last mark is stored
		n = resttest.Tokens(p.text)
		switch {
		case s.cached[p.text]:
			u.Cached, u.Stored = n, 0
		case p.marked:
			u.Stored = n - u.Cached
			s.cached[p.text] = true
		}
	}
	u.In = max(1, n-u.Cached-u.Stored)
	return u
}

func kindOf(status int, code string) string {
	if code != "" {
		return code
	}
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
