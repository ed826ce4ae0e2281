package geminitest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
)

// The models of the Live API that a server has.
const (
	Live    = "gemini-test-live"       // as those of today: it only speaks
	Writing = "gemini-test-live-write" // as the first ones: it also writes
)

// Voices are those that the server speaks with.
var Voices = []string{"Zephyr", "Puck", "Charon", "Kore", "Fenrir", "Leda", "Orus", "Aoede", "Callirrhoe",
	"Autonoe", "Enceladus", "Iapetus", "Umbriel", "Algieba", "Despina", "Erinome", "Algenib", "Rasalgethi", "Laomedeia",
	"Achernar", "Alnilam", "Schedar", "Gacrux", "Pulcherrima", "Achird", "Zubenelgenubi", "Vindemiatrix", "Sadachbia",
	"Sadaltager", "Sulafat"}

const (
	livePath        = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	liveRate        = 24000
	recognitionTime = 120 * time.Millisecond // of no sound, after which what was said is transcribed
)

// lives is what the server knows of its sessions.
type lives struct {
	// Voice makes the speech, and knows which text a tone in what is heard stands for.
	Voice *aitest.Synthesizer
	// Late has what was said transcribed only when the customer has finished.
	Late bool
	// Played reports a turn complete only when what was said in it would have been played.
	Played bool
	// Piecemeal sends messages in frames of a few octets, as a slow network does.
	Piecemeal bool
	// Unfinished has transcripts that don't say where they end, as those of many models.
	Unfinished bool
	// Spoken is the language of what is heard, as transcripts tell it (BCP 47); "" where they don't.
	Spoken string
	// Slow is how long a connection takes to be set up.
	Slow time.Duration

	mu         sync.Mutex
	next       []aitest.Behaviour
	hearing    []aitest.Behaviour
	sessions   []*session
	states     map[string]*state
	handles    int
	complaints []string
	connected  int
	closing    bool
	wg         sync.WaitGroup
}

// state is the content of a session, which outlives its connections.
type state struct {
	model string
	items []aitest.RealtimeItem
	count int
}

// session is a connection.
type session struct {
	s      *Server
	ws     *websocket.Conn
	ctx    context.Context
	wg     sync.WaitGroup
	setup  setup
	reader bool // it only reads out: its instruction says so

	mu        sync.Mutex
	state     *state
	activity  bool
	audio     []int16
	heard     string // in this activity
	sounds    int    // pieces of sound
	stop      context.CancelFunc
	turn      *turn
	owed      []string // calls that wait for their results
	cancelled []string
	leaving   bool // the connection has ended
	over      bool // and so has all that was under way
	left      int  // the code of the close frame with which the client left; -1: none
}

// turn is what the model is saying.
type turn struct{ made, complete bool }

// ScriptRealtime appends to how the next replies of live sessions are made, except those that only read out. A
// Behaviour's tokens are pieces of audio, of aitest.PieceTime each, or words if the model writes. With Status the next
// connection is refused instead.
func (s *Server) ScriptRealtime(b ...aitest.Behaviour) {
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	s.lives.next = append(s.lives.next, b...)
}

// ScriptTranscripts appends to how the next utterances are understood.
func (s *Server) ScriptTranscripts(b ...aitest.Behaviour) {
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	s.lives.hearing = append(s.lives.hearing, b...)
}

// Conversations lists those of the sessions so far, except those that only read out. A session that was resumed is in
// the list once more.
func (s *Server) Conversations() (list []aitest.RealtimeConversation) {
	s.lives.mu.Lock()
	sessions := slices.Clone(s.lives.sessions)
	s.lives.mu.Unlock()
	for _, c := range sessions {
		if c.reader {
			continue
		}
		c.mu.Lock()
		list = append(list, aitest.RealtimeConversation{Terms: c.setup.terms, Items: slices.Clone(c.state.items),
			Over: c.over, Left: c.left})
		c.mu.Unlock()
	}
	return list
}

// Connected counts the connections so far.
func (s *Server) Connected() int {
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	return s.lives.connected
}

// Complaints lists what clients did that a real server answers with an error.
func (s *Server) Complaints() []string {
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	return slices.Clone(s.lives.complaints)
}

// Leave tells all connections that they end, and ends them after that time.
func (s *Server) Leave(left time.Duration) {
	s.lives.mu.Lock()
	sessions := slices.Clone(s.lives.sessions)
	s.lives.mu.Unlock()
	for _, c := range sessions {
		c.emit(map[string]any{"goAway": map[string]any{"timeLeft": fmt.Sprintf("%gs", left.Seconds())}})
		c.mu.Lock()
		if !c.leaving {
			c.wg.Go(func() {
				if c.sleep(c.ctx, left) {
					_ = c.ws.Close(websocket.StatusInternalError, "Deadline expired before operation could complete.")
				}
			})
		}
		c.mu.Unlock()
	}
}

// Drop ends all connections with a close code; 0 resets their sockets.
func (s *Server) Drop(code int, reason string) {
	s.lives.mu.Lock()
	sessions := slices.Clone(s.lives.sessions)
	s.lives.mu.Unlock()
	for _, c := range sessions {
		if code == 0 {
			_ = c.ws.CloseNow()
		} else {
			_ = c.ws.Close(websocket.StatusCode(code), reason)
		}
	}
}

// hangUp ends all connections, and waits for their handlers.
func (s *Server) hangUp() {
	s.lives.mu.Lock()
	s.lives.closing = true
	s.lives.mu.Unlock()
	s.Drop(0, "")
	s.lives.wg.Wait()
}

// converse is the whole of the Live API.
func (s *Server) converse(w http.ResponseWriter, r *http.Request) {
	l := &s.lives
	l.mu.Lock()
	l.connected++
	if len(l.next) > 0 && l.next[0].Status != 0 {
		b := l.next[0]
		l.next = l.next[1:]
		l.mu.Unlock()
		scripted(w, b)
		return
	}
	if l.closing {
		l.mu.Unlock()
		return
	}
	l.wg.Add(1)
	l.mu.Unlock()
	defer l.wg.Done()
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(16 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &session{s: s, ws: ws, ctx: ctx}
	if r.Header.Get("x-goog-api-key") != Key {
		c.refuse(1007, "API key not valid. Please pass a valid API key.")
		return
	}
	if !c.begin() {
		return
	}
	var left int
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			left = int(websocket.CloseStatus(err))
			break
		}
		if code, wrong := c.take(raw); wrong != "" {
			c.refuse(code, wrong)
			break
		}
	}
	cancel()
	c.mu.Lock()
	c.leaving = true // nothing more begins
	c.mu.Unlock()
	c.wg.Wait()
	c.mu.Lock()
	c.over, c.left = true, left
	c.mu.Unlock()
}

// Inject sends this over all connections, as it is.
func (s *Server) Inject(raw string) {
	s.lives.mu.Lock()
	sessions := slices.Clone(s.lives.sessions)
	s.lives.mu.Unlock()
	for _, c := range sessions {
		_ = c.ws.Write(c.ctx, websocket.MessageBinary, []byte(raw)) // the client may have left
	}
}

// refuse complains, and closes the connection as Google does.
func (c *session) refuse(code int, wrong string) {
	c.s.lives.mu.Lock()
	c.s.lives.complaints = append(c.s.lives.complaints, wrong)
	c.s.lives.mu.Unlock()
	_ = c.ws.Close(websocket.StatusCode(code), wrong)
}

// emit sends a message: JSON in a binary frame, which is how Google sends it.
func (c *session) emit(message map[string]any) {
	raw, _ := json.Marshal(message)
	if !c.s.lives.Piecemeal {
		_ = c.ws.Write(c.ctx, websocket.MessageBinary, raw) // the client may have left
		return
	}
	w, err := c.ws.Writer(c.ctx, websocket.MessageBinary)
	for err == nil && len(raw) > 0 {
		n := min(7, len(raw))
		_, err = w.Write(raw[:n])
		raw = raw[n:]
	}
	if err == nil {
		_ = w.Close()
	}
}

func (c *session) content(fields map[string]any) { c.emit(map[string]any{"serverContent": fields}) }

func (c *session) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// begin takes the setup.
func (c *session) begin() bool {
	_, raw, err := c.ws.Read(c.ctx)
	if err != nil {
		return false
	}
	switch code, wrong := c.setup.read(raw); {
	case wrong != "" && c.setup.writes && c.setup.model == Live: // that is found out by asking
		_ = c.ws.Close(websocket.StatusCode(code), wrong)
		return false
	case wrong != "":
		c.refuse(code, wrong)
		return false
	}
	l := &c.s.lives
	l.mu.Lock()
	c.state = &state{model: c.setup.model}
	handle := c.setup.handle
	if handle != "" {
		old := l.states[handle]
		if old == nil || old.model != c.setup.model {
			l.mu.Unlock()
			c.refuse(1008, "BidiGenerateContent session not found")
			return false
		}
		c.state = &state{model: old.model, items: slices.Clone(old.items), count: old.count}
	}
	c.reader = strings.Contains(c.setup.system, "reads texts out")
	l.sessions = append(l.sessions, c)
	slow := l.Slow
	l.mu.Unlock()
	c.sleep(c.ctx, slow)
	c.emit(map[string]any{"setupComplete": map[string]any{}})
	c.resumable()
	return true
}

// resumable tells the handle of the session as it is now.
func (c *session) resumable() {
	if !c.setup.resumes {
		return
	}
	l := &c.s.lives
	c.mu.Lock()
	kept := &state{model: c.state.model, items: slices.Clone(c.state.items), count: c.state.count}
	c.mu.Unlock()
	l.mu.Lock()
	l.handles++
	handle := fmt.Sprintf("handle-%d", l.handles)
	if l.states == nil {
		l.states = map[string]*state{}
	}
	l.states[handle] = kept
	l.mu.Unlock()
	c.emit(map[string]any{"sessionResumptionUpdate": map[string]any{"newHandle": handle, "resumable": true}})
}

// transcribe understands what was said since the last time. The lock is held.
func (c *session) transcribe() {
	if len(c.audio) == 0 {
		return
	}
	pcm := c.audio
	c.audio = nil
	l := &c.s.lives
	text := ""
	l.mu.Lock()
	language := l.Spoken
	if len(l.hearing) > 0 {
		text = l.hearing[0].Text
		l.hearing = l.hearing[1:]
	} else {
		text = l.Voice.Find(pcm, audio.Rate(c.setup.rate))
	}
	l.mu.Unlock()
	c.heard = strings.TrimSpace(c.heard + " " + text)
	if text == "" || !c.setup.hears {
		return
	}
	words := strings.SplitAfter(" "+text, " ")
	half := len(words) / 2
	c.wg.Go(func() {
		c.content(map[string]any{"inputTranscription": map[string]any{"text": strings.Join(words[:half], "")}})
		last := map[string]any{"text": strings.Join(words[half:], "")}
		if language != "" {
			last["languageCode"] = language
		}
		if !l.Unfinished {
			last["finished"] = true
		}
		c.content(map[string]any{"inputTranscription": last})
	})
}

// add appends to the conversation. The lock is held.
func (c *session) add(it aitest.RealtimeItem) *aitest.RealtimeItem {
	c.state.count++
	it.ID = fmt.Sprintf("item_%d", c.state.count)
	c.state.items = append(c.state.items, it)
	return &c.state.items[len(c.state.items)-1]
}

// interrupt ends what is being said. Google reports an interruption, too, where all was made but not yet played. The
// lock is held.
func (c *session) interrupt() {
	if c.stop != nil {
		c.stop()
	}
	t := c.turn
	if t == nil || t.complete {
		return
	}
	t.made, t.complete = true, true
	c.content(map[string]any{"interrupted": true})
	c.content(map[string]any{"turnComplete": true})
	c.wg.Go(c.resumable)
}

// abandon gives up the calls that wait. The lock is held.
func (c *session) abandon() {
	if len(c.owed) == 0 {
		return
	}
	c.emit(map[string]any{"toolCallCancellation": map[string]any{"ids": c.owed}})
	c.cancelled, c.owed = append(c.cancelled, c.owed...), nil
}

// request is the conversation as a Model is asked.
func (c *session) request() ai.Request {
	req := ai.Request{System: c.setup.system, Tools: c.setup.tools}
	for _, it := range c.state.items {
		switch it.Type {
		case "message":
			req.Messages = append(req.Messages, ai.Message{Role: ai.Role(it.Role), Text: it.Text})
		case "function_call":
			req.Messages = append(req.Messages, ai.Message{Role: ai.Assistant, Calls: []ai.ToolCall{it.Call}})
		case "function_call_output":
			req.Messages = append(req.Messages, ai.Message{Role: ai.ToolRole, CallID: it.Call.ID, Text: it.Text})
		}
	}
	return req
}
