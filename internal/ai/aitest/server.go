package aitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
)

// ModelName is a Server's model unless Models says otherwise.
const ModelName = "test-model"

// Server speaks the OpenAI-compatible protocol on a loopback port. Chat completions: streamed and whole replies, usage,
// tool calls in pieces, structured output, the list of models, and errors in OpenAI's shape for what a real server
// refuses (an unknown model, a wrong key, invalid tool names, calls without results). Script makes it misbehave;
// otherwise it answers as Echo does. Speech: its voice is a Synthesizer, so each text is a tone. Transcripts: it
// understands those tones, or what Transcribe says. Vectors. Realtime sessions, which do all of this at once.
//
// The exported fields may be set before the first request.
type Server struct {
	URL    string // the base URL, with /v1
	APIKey string // asked for when it is not empty
	Models []string
	// SpeechModels, TranscriptionModels and EmbeddingModels are the models of the other endpoints: SpeechModel and so
	// on.
	SpeechModels, TranscriptionModels, EmbeddingModels []string
	// Ends are the days on which models are shut down, as the list of models tells them.
	Ends map[string]string
	// Voice makes the speech.
	Voice *Synthesizer
	// Transcribe returns the text of an utterance for which no Text is scripted; nil means the text whose tone it is.
	Transcribe func(Utterance) string
	// Detect returns the languages that the DetectingModel finds in a text; nil means none.
	Detect func(text string) []string
	// WholeTranscripts sends whole transcripts even to clients that ask for a stream, like servers that don't support
	// streaming.
	WholeTranscripts bool
	// Refuses lists the fields of a request that this server answers with 400, like servers that don't know them
	// (response_format, stream_options) and models that don't take them (temperature, max_tokens).
	Refuses []string
	// SessionTime is how long a realtime session lasts; 0 means for ever.
	SessionTime  time.Duration
	SessionDelay time.Duration // before a realtime session is there

	http     *http.Server
	handlers sync.WaitGroup
	stop     chan struct{}

	mu       sync.Mutex
	closed   bool // no handler starts any more
	script   []Behaviour
	usual    Behaviour
	requests []Request
	count    int

	speech, hearing script
	realtime        script
	sessions        []*realtimeConn
	complaints      []string
	speeches        []SpeechRequest
	utterances      []Utterance
}

// Behaviour is how the server answers one request. For a chat completion the zero value answers as Echo does, at once.
type Behaviour struct {
	Text   string // with Calls, instead of Echo's answer
	Calls  []ai.ToolCall
	Finish ai.Finish // stop or tool_calls when it is empty

	FirstDelay time.Duration // before the first token
	TokenDelay time.Duration // between tokens
	Cut        int           // bytes per TCP segment and HTTP chunk, also inside runes; 0 sends event by event
	NoUsage    bool          // says nothing of usage, as older servers

	// Status other than 0 answers with an error in OpenAI's shape.
	Status     int
	RetryAfter string // of a Retry-After header
	Code       string // error.code
	Message    string // error.message
	// Raw is a whole body, sent with Status (or 200) instead of all of that: to a chat as an event stream when Status
	// is 0, elsewhere with the content type Type.
	Raw, Type string

	// Fault happens after After tokens.
	Fault Fault
	After int
	// Gate, if set, holds the stream back after its first token until it is closed.
	Gate <-chan struct{}
}

// Fault is what goes wrong in a stream.
type Fault string

// The faults.
const (
	Reset   Fault = "reset"   // the connection is reset (RST)
	Cutoff  Fault = "cutoff"  // the stream ends as if it were whole, without a finish reason
	Stall   Fault = "stall"   // not a byte more, until the client leaves
	Failure Fault = "failure" // an error event in OpenAI's shape, as a server's 500 in mid-stream
	Garbage Fault = "garbage" // an event that is no JSON
	Endless Fault = "endless" // one event that never ends
	Expired Fault = "expired" // a realtime session has lasted as long as it may
)

// Request is a request that the server received.
type Request struct {
	Header http.Header
	Body   json.RawMessage
	ai.Request
	Model  string
	Stream bool
}

// maxRecorded bounds what a long benchmark records; Count counts everything.
const maxRecorded = 1000

// Serve starts a server for a program, which must close it.
func Serve() (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve test model: %w", err)
	}
	s := &Server{URL: "http://" + ln.Addr().String() + "/v1", Models: []string{ModelName}, stop: make(chan struct{}),
		SpeechModels: []string{SpeechModel}, TranscriptionModels: []string{TranscriptionModel, DetectingModel, WhisperModel},
		EmbeddingModels: []string{EmbeddingModel}, Voice: &Synthesizer{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1/audio/speech", s.speak)
	mux.HandleFunc("POST /v1/audio/transcriptions", s.transcribe)
	mux.HandleFunc("POST /v1/embeddings", s.embed)
	mux.HandleFunc("GET /v1/realtime", s.converse)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "invalid_request_error", "",
			fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path))
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.handlers.Go(func() { _ = s.http.Serve(ln) }) // ends by Close
	return s, nil
}

// NewServer starts a server that is closed at the end of the test.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Close ends all streams and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	_ = s.http.Close() // what it says of closed connections matters to nobody
	s.handlers.Wait()
}

// Script appends to how the next chat completions are answered.
func (s *Server) Script(b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, b...)
}

// Usually sets how unscripted chat completions are answered: a benchmark's delays.
func (s *Server) Usually(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usual = b
}

// Requests lists the last 1000 chat completion requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count is the number of chat completion requests.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handlers.Add(1)
	}
	return !s.closed
}

func (s *Server) next(r Request) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.requests = record(s.requests, r)
	if len(s.script) == 0 {
		return s.usual
	}
	b := s.script[0]
	s.script = s.script[1:]
	return b
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if !s.allowed(w, r) {
		return
	}
	list := []map[string]any{}
	for _, m := range slices.Concat(s.Models, s.SpeechModels, s.TranscriptionModels, s.EmbeddingModels,
		realtimeModels) {
		list = append(list, map[string]any{"id": m, "object": "model", "created": 1700000000, "owned_by": "test",
			"shutdown_date": orNull(s.Ends[m])})
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *Server) allowed(w http.ResponseWriter, r *http.Request) bool {
	if s.APIKey == "" || r.Header.Get("Authorization") == "Bearer "+s.APIKey {
		return true
	}
	fail(w, http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.")
	return false
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	if !s.allowed(w, r) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", "", "We could not read the body of your request.")
		return
	}
	in, bad := s.read(body)
	in.Header, in.Body = r.Header.Clone(), body
	b := s.next(in)
	switch {
	case b.Status != 0 && b.Raw != "":
		w.WriteHeader(b.Status)
		_, _ = io.WriteString(w, b.Raw)
	case b.Status != 0:
		if b.RetryAfter != "" {
			w.Header().Set("Retry-After", b.RetryAfter)
		}
		kind := "server_error"
		if b.Status < 500 {
			kind = "invalid_request_error"
		}
		fail(w, b.Status, kind, b.Code, b.Message)
	case bad != nil:
		reply(w, bad.status, map[string]any{"error": bad})
	default:
		if b.Text == "" && b.Calls == nil && b.Finish == "" {
			echo := Echo(in.Request)
			b.Text, b.Calls = echo.Text, echo.Calls
		}
		if b.Finish == "" {
			b.Finish = finish(b.Calls)
		}
		a := &answer{Behaviour: b, in: in, w: w, ctx: r.Context(), stop: s.stop}
		if in.Stream {
			a.stream()
		} else {
			a.whole()
		}
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}

func fail(w http.ResponseWriter, status int, kind, code, message string) {
	reply(w, status, map[string]any{"error": &refusal{Message: message, Type: kind, Code: orNull(code)}})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
