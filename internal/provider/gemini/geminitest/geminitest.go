// Package geminitest is for tests: a server that speaks the Gemini API's streamGenerateContent and its Live API on a
// loopback port. It refuses what the API refuses, answers as aitest.Echo does, and misbehaves on request.
package geminitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/provider/rest/resttest"
)

// Key is the key that the server accepts.
const Key = "AIza-test-0123456789"

// The models that a server has, which take different things.
const (
	Lite  = "gemini-test-lite"  // as 3.5 Flash-Lite: thinks minimally when told, wants signatures back
	Flash = "gemini-test-flash" // as 3.8 Flash: thinks little at least, wants signatures back
	Old   = "gemini-test-old"   // as 2.5 Flash: a budget for thinking, no ids, no signatures
)

// Server is the server. Script and Usually say how it behaves, ScriptRealtime and ScriptTranscripts how the Live API
// does.
type Server struct {
	*resttest.Server
	lives

	mu       sync.Mutex
	requests []Request
}

// Request is a request that the server accepted.
type Request struct {
	Header http.Header
	Body   json.RawMessage
	ai.Request
	Model string
	// Signatures are those of the calls in the request, in order, "" for none.
	Signatures []string
	Level      string
	Budget     *int
}

// New starts a server that is closed at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{Server: resttest.New(t), lives: lives{Voice: &aitest.Synthesizer{}}}
	t.Cleanup(s.hangUp) // before the server waits for its handlers
	s.Handle("GET "+livePath, s.converse)
	s.Handle("POST /v1beta/models/{call}", s.generate)
	s.Handle("GET /v1beta/models/{model}", s.model)
	s.Handle("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "NOT_FOUND", "Not Found: "+r.URL.Path)
	})
	return s
}

// Requests lists the accepted requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func fail(w http.ResponseWriter, status int, kind, message string, details ...any) {
	resttest.JSON(w, status, errorOf(status, kind, message, details...))
}

func errorOf(status int, kind, message string, details ...any) map[string]any {
	return map[string]any{"error": map[string]any{"code": status, "message": message, "status": kind,
		"details": details}}
}

func allowed(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("x-goog-api-key") == Key {
		return true
	}
	fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
		map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"})
	return false
}

func known(model string) bool { return model == Lite || model == Flash || model == Old }

func missing(w http.ResponseWriter, model string) {
	fail(w, http.StatusNotFound, "NOT_FOUND",
		fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent.", model))
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("model")
	switch {
	case !allowed(w, r):
	case id == Live || id == Writing:
		resttest.JSON(w, http.StatusOK, map[string]any{"name": "models/" + id,
			"supportedGenerationMethods": []string{"bidiGenerateContent"}})
	case !known(id):
		missing(w, id)
	default:
		resttest.JSON(w, http.StatusOK, map[string]any{"name": "models/" + id,
			"supportedGenerationMethods": []string{"generateContent"}})
	}
}

func (s *Server) generate(w http.ResponseWriter, r *http.Request) {
	if !allowed(w, r) {
		return
	}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if method != "streamGenerateContent" || r.URL.Query().Get("alt") != "sse" {
		fail(w, http.StatusNotFound, "NOT_FOUND", "this server streams events alone")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "", "Request payload size exceeds the limit")
		return
	}
	b := s.Next()
	if b.Status != 0 {
		scripted(w, b)
		return
	}
	if !known(model) {
		missing(w, model)
		return
	}
	var in request
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", "Invalid JSON payload received. "+err.Error())
		return
	}
	req, wrong := in.read(model)
	if wrong != "" {
		fail(w, http.StatusBadRequest, "INVALID_ARGUMENT", wrong)
		return
	}
	req.Header, req.Body = r.Header.Clone(), body
	s.mu.Lock()
	if len(s.requests) < 1000 {
		s.requests = append(s.requests, req)
	}
	s.mu.Unlock()
	s.Stream(w, r, b, answer(model, resttest.Said(b, req.Request), req.Request))
}

// scripted answers with an error.
func scripted(w http.ResponseWriter, b aitest.Behaviour) {
	if b.RetryAfter != "" {
		w.Header().Set("Retry-After", b.RetryAfter)
	}
	if b.Raw != "" {
		w.WriteHeader(b.Status)
		_, _ = io.WriteString(w, b.Raw)
		return
	}
	kind := map[int]string{400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}[b.Status]
	var details []any
	if b.Code != "" { // how long to wait
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": b.Code})
	}
	fail(w, b.Status, kind, b.Message, details...)
}

// sign is the signature of a call.
func sign(name string, args []byte) string {
	var o map[string]any
	_ = json.Unmarshal(args, &o) // one that is none signs as nothing
	plain, _ := json.Marshal(o)
	return base64.StdEncoding.EncodeToString([]byte("thoughts of " + name + string(plain)))
}

// answer is a reply in the events of the API: a thought, the words, the calls, and the end, which has the figures.
func answer(model string, said ai.Reply, req ai.Request) resttest.Answer {
	figures := func(out int) map[string]any {
		u := map[string]any{"promptTokenCount": resttest.Tokens(req.System), "candidatesTokenCount": out,
			"totalTokenCount": out + resttest.Tokens(req.System), "cachedContentTokenCount": 1}
		if model == Flash {
			u["thoughtsTokenCount"] = 7
		}
		return u
	}
	event := func(finish string, parts ...map[string]any) resttest.Event {
		c := map[string]any{"index": 0}
		if len(parts) > 0 {
			c["content"] = map[string]any{"role": "model", "parts": parts}
		}
		if finish != "" {
			c["finishReason"] = finish
		}
		return resttest.Event{Data: map[string]any{"candidates": []any{c}, "usageMetadata": figures(1),
			"modelVersion": model, "responseId": "test"}}
	}
	a := resttest.Answer{Newline: "\r\n",
		Failure: resttest.Event{Data: errorOf(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")}}
	if model == Flash {
		a.Head = append(a.Head, event("", map[string]any{"text": "The customer asks.", "thought": true}))
	}
	for _, w := range resttest.Words(said.Text) {
		a.Pieces = append(a.Pieces, event("", map[string]any{"text": w}))
	}
	for i, c := range said.Calls {
		call := map[string]any{"name": c.Name}
		if c.Arguments != "{}" {
			call["args"] = json.RawMessage(c.Arguments)
		}
		p := map[string]any{"functionCall": call}
		if model != Old {
			call["id"] = fmt.Sprintf("fn-%d-%s", i, c.ID)
			if i == 0 {
				p["thoughtSignature"] = sign(c.Name, []byte(c.Arguments))
			}
		}
		a.Pieces = append(a.Pieces, event("", p))
	}
	end := event(reason(said.Finish), map[string]any{"text": ""})
	end.Data.(map[string]any)["usageMetadata"] = figures(resttest.Tokens(said.Text))
	a.Tail = []resttest.Event{end}
	return a
}

func reason(f ai.Finish) string {
	switch f {
	case ai.Length:
		return "MAX_TOKENS"
	case ai.Filtered:
		return "SAFETY"
	}
	return "STOP"
}
