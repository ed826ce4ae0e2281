package aitest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
)

// RealtimeModel is a Server's model that hears and speaks; SpareRealtimeModel is another one.
const (
	RealtimeModel      = "test-realtime"
	SpareRealtimeModel = "test-realtime-spare"
	// ReasoningRealtimeModel can be told how much to reason.
	ReasoningRealtimeModel = "gpt-realtime-2.1-mini"
)

// StrangeEvents are events of the protocol about responses, items and calls that nobody knows, and of unknown types.
var StrangeEvents = []string{
	`{"type":"rate_limits.updated","rate_limits":[]}`,
	`{"type":"response.telepathy.delta","response_id":"resp_x","delta":"x"}`,
	`{"type":"response.output_audio.delta","response_id":"resp_x","item_id":"item_x","delta":"AAAA"}`,
	`{"type":"response.output_audio_transcript.delta","response_id":"resp_x","item_id":"item_x","delta":"Stray."}`,
	`{"type":"response.output_item.added","response_id":"resp_x","item":{"id":"item_x","type":"message"}}`,
	`{"type":"response.function_call_arguments.done","response_id":"resp_x","item_id":"item_x","call_id":"call_x","name":"order","arguments":"{}"}`,
	`{"type":"response.done","response":{"id":"resp_x","status":"completed","status_details":null}}`,
	`{"type":"conversation.item.input_audio_transcription.delta","item_id":"item_x","delta":"stray"}`,
	`{"type":"conversation.item.input_audio_transcription.completed","item_id":"item_x","transcript":"stray"}`,
	`{"type":"conversation.item.truncated","item_id":"item_x","content_index":0,"audio_end_ms":1}`,
	`{"type":"error","error":{"type":"invalid_request_error","code":"item_truncate_invalid_item_id","message":"no such item","event_id":"x"}}`,
}

// RealtimeConversation is the content of one of the Server's realtime sessions.
type RealtimeConversation struct {
	Model string
	Terms map[string]any // of its last session.update
	Items []RealtimeItem // in order
	Over  bool
	Left  int // the code of the close frame with which the client left; -1: none
}

// RealtimeItem is one item of a conversation.
type RealtimeItem struct {
	ID, Type, Role, Text string
	Sound                time.Duration // of spoken ones: as much as there is of it
	Cut                  bool          // it was truncated
	Call                 ai.ToolCall   // of function_call
}

// ScriptRealtime appends to how the next responses of realtime sessions are made. A Behaviour's tokens are then pieces
// of audio, of PieceTime each, or words if it writes. With Status the next session is refused instead.
func (s *Server) ScriptRealtime(b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.realtime.next = append(s.realtime.next, b...)
}

// UsuallyRealtime sets how unscripted responses are made.
func (s *Server) UsuallyRealtime(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.realtime.usual = b
}

// Conversations lists those of all realtime sessions so far.
func (s *Server) Conversations() (list []RealtimeConversation) {
	s.mu.Lock()
	sessions := slices.Clone(s.sessions)
	s.mu.Unlock()
	for _, c := range sessions {
		list = append(list, c.conversation())
	}
	return list
}

// Complaints lists what realtime clients did that a real server answers with an error.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.complaints)
}

// DropRealtime ends all realtime sessions with a close code; 0 resets their sockets.
func (s *Server) DropRealtime(code int, reason string) {
	s.mu.Lock()
	sessions := slices.Clone(s.sessions)
	s.mu.Unlock()
	for _, c := range sessions {
		if code == 0 {
			_ = c.ws.CloseNow()
		} else {
			_ = c.ws.Close(websocket.StatusCode(code), reason)
		}
	}
}

// Inject sends this in all realtime sessions, as it is.
func (s *Server) Inject(raw string) {
	s.mu.Lock()
	sessions := slices.Clone(s.sessions)
	s.mu.Unlock()
	for _, c := range sessions {
		_ = c.ws.Write(c.ctx, websocket.MessageText, []byte(raw)) // the client may have left
	}
}

// Expire ends all realtime sessions as those that have lasted as long as they may.
func (s *Server) Expire() {
	s.mu.Lock()
	sessions := slices.Clone(s.sessions)
	s.mu.Unlock()
	for _, c := range sessions {
		c.expire()
	}
}

// realtimeConn is a realtime session.
type realtimeConn struct {
	s     *Server
	model string
	ws    *websocket.Conn
	ctx   context.Context
	wg    sync.WaitGroup

	mu      sync.Mutex
	terms   map[string]any
	items   []*realtimeItem
	buffer  []int16 // at the format's rate
	count   int
	active  *realtimeResponse
	outside map[string]*realtimeResponse
	over    bool
	left    int
}

type realtimeItem struct {
	RealtimeItem
}

type realtimeResponse struct {
	id     string
	cancel context.CancelFunc
	apart  bool
}

var realtimeModels = []string{RealtimeModel, SpareRealtimeModel, ReasoningRealtimeModel}

// converse is GET /v1/realtime.
func (s *Server) converse(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	if !s.allowed(w, r) {
		return
	}
	s.mu.Lock()
	refuse := len(s.realtime.next) > 0 && s.realtime.next[0].Status != 0
	var b Behaviour
	if refuse {
		b = s.realtime.take()
	}
	s.mu.Unlock()
	if refuse {
		scripted(w, b)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(16 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	c := &realtimeConn{s: s, model: r.URL.Query().Get("model"), ws: ws, ctx: ctx,
		outside: map[string]*realtimeResponse{}, terms: map[string]any{}}
	defer func() { _ = ws.CloseNow() }()
	if !slices.Contains(realtimeModels, c.model) {
		c.fail("", "invalid_request_error", "model_not_found", "The model `"+c.model+"` does not exist.")
		_ = ws.Close(websocket.StatusPolicyViolation, "model_not_found")
		return
	}
	s.mu.Lock()
	s.sessions = append(s.sessions, c)
	life, slow := s.SessionTime, s.SessionDelay
	s.mu.Unlock()
	created := map[string]any{"type": "realtime", "id": "sess_1", "object": "realtime.session"}
	if life > 0 {
		created["expires_at"] = time.Now().Add(life).Unix()
		expire := time.AfterFunc(life, c.expire)
		defer expire.Stop()
	}
	if sleepOr(ctx, slow) != nil {
		return
	}
	c.emit("session.created", map[string]any{"session": created})
	var left int
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			left = int(websocket.CloseStatus(err))
			break
		}
		c.take(raw)
	}
	cancel()
	c.wg.Wait()
	c.mu.Lock()
	c.over, c.left = true, left
	c.mu.Unlock()
}

func (c *realtimeConn) conversation() RealtimeConversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := RealtimeConversation{Model: c.model, Terms: maps.Clone(c.terms), Over: c.over, Left: c.left}
	for _, i := range c.items {
		out.Items = append(out.Items, i.RealtimeItem)
	}
	return out
}

func (c *realtimeConn) emit(kind string, fields map[string]any) {
	fields["type"], fields["event_id"] = kind, "event_x"
	raw, _ := json.Marshal(fields)
	_ = c.ws.Write(c.ctx, websocket.MessageText, raw) // the client may have left
}

func (c *realtimeConn) fail(eventID, kind, code, message string) {
	if code != "session_expired" {
		c.s.mu.Lock()
		c.s.complaints = append(c.s.complaints, eventID+" "+code+": "+message)
		c.s.mu.Unlock()
	}
	c.emit("error", map[string]any{"error": map[string]any{"type": kind, "code": code, "message": message,
		"param": nil, "event_id": orNull(eventID)}})
}

func (c *realtimeConn) fault(ctx context.Context, f Fault) {
	switch f {
	case Reset:
		_ = c.ws.CloseNow()
	case Cutoff:
		_ = c.ws.Close(websocket.StatusInternalError, "internal error")
	case Expired:
		c.expire()
	case Garbage:
		_ = c.ws.Write(c.ctx, websocket.MessageText, []byte(`{"type": nonsense`))
	case Stall:
		<-ctx.Done()
	}
}

// expire ends the session as one that has lasted as long as it may.
func (c *realtimeConn) expire() {
	c.fail("", "invalid_request_error", "session_expired", "Your session hit the maximum duration of 60 minutes.")
	_ = c.ws.Close(websocket.StatusNormalClosure, "session_expired")
}
