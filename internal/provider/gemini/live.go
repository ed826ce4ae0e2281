package gemini

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/provider/rest"
	"parley/internal/provider/wire"
	"parley/internal/schema"
)

// LiveModel is one of the models of the Live API, which hears and speaks over a WebSocket.
func (c *Client) LiveModel(code string) ai.RealtimeModel {
	return liveModel{client: c, code: strings.TrimPrefix(code, "models/")}
}

type liveModel struct {
	client *Client
	code   string
}

const (
	livePath    = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	connectTime = 10 * time.Second
	pingTime    = 20 * time.Second
	liveRate    = 24000 // of what it says; what it hears is taken at any rate
)

// Connect implements ai.RealtimeModel.
func (m liveModel) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	s, err := m.connect(ctx, setup)
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	return s, nil
}

// connect opens a session. Google's models all speak, and those that also write are few: one that is to write is asked
// for text at first, and if it refuses, the transcript of what it says is its text.
func (m liveModel) connect(ctx context.Context, setup ai.RealtimeSetup) (*live, error) {
	_, speaks := m.client.speaks.Load(m.code)
	s := &live{model: m, setup: setup, names: rest.NewNames(setup.Tools), tally: ai.TallyOf(ctx),
		text: setup.Writes && !speaks, out: make(chan ai.RealtimeEvent, 16), done: make(chan struct{}),
		answers: map[int]*answer{}, calls: map[string]string{}, told: map[string]string{}}
	if s.heard.languages = []string{setup.Language}; len(setup.Others) > 0 {
		s.heard.languages = append(s.heard.languages, setup.Others...)
	}
	s.box = wire.Outbox{Piece: 2 * int(setup.Rate) / 10, Tail: `"}}}`,
		Head: fmt.Sprintf(`{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=%d","data":"`, setup.Rate)}
	var err error
	if s.rateOut, err = audio.NewResampler(liveRate, int(setup.Rate)); err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	conn, err := s.open(ctx, "")
	if err != nil && s.text && ai.KindOf(err) == ai.Config {
		s.text = false
		if conn, err = s.open(ctx, ""); err == nil {
			m.client.speaks.Store(m.code, true)
		}
	}
	if err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.line = conn
	s.box.Resume(conn)
	go s.run(conn)
	return s, nil
}

// live is a session. The model answers as soon as it is told that the customer has finished, so it is told only when a
// response is asked for; until then everything that is said is one activity. What it was told can't be taken back:
// what the customer heard of a reply that was cut is told in a note.
type live struct {
	model   liveModel
	setup   ai.RealtimeSetup
	names   rest.Names
	tally   *ai.Tally // of the call
	text    bool      // the model writes
	ctx     context.Context
	cancel  context.CancelFunc
	out     chan ai.RealtimeEvent
	done    chan struct{}
	rateOut *audio.Resampler // of who reads
	// While a reply is made it is shut: speech would interrupt the reply, and whether it is to do so is not the vendor's
	// decision.
	box wire.Outbox

	order   sync.Mutex // events are told in the order in which they happened
	mu      sync.Mutex
	answers map[int]*answer // by their numbers
	waiting []*answer       // asked for while another is made
	active  *answer         // is being made
	turns   []*answer       // what the server owes, in order: its content has no names
	begun   bool            // something was put into the conversation

	activity bool // the server was told that the customer speaks, or is going to be
	uttering bool // an utterance is under way
	heard    hearing

	pending []*added          // texts that the server has not been told yet
	owed    []string          // calls whose results the server waits for
	results []response        // that it has not been told yet
	calls   map[string]string // names of its calls, by their ids
	told    map[string]string // names of calls that other sessions made

	resumption
}

// answer is something that the model was asked to say, or a text that was added.
type answer struct {
	n           int
	instruction string
	words       bool
	added       []*added // it is a text

	begun    bool // some of it has come
	made     bool // the server has no more of it
	madeAt   time.Time
	told     bool // that it is over
	cut      bool
	again    bool // it was empty, and is asked for once more
	refused  int  // calls that were refused
	ghost    bool // goes on after calls, whose turn may be reported complete once more
	usage    ai.Usage
	leftover []byte // half a sample
}

// added is a text on its way to the server; a later cut changes it as long as it is not sent.
type added struct {
	content content
	sent    bool
}

// The messages of the protocol: exactly one field of each is there.
type (
	setupMessage struct {
		Setup liveSetup `json:"setup"`
	}
	liveSetup struct {
		Model       string         `json:"model"`
		Config      map[string]any `json:"generationConfig"`
		System      *content       `json:"systemInstruction,omitempty"`
		Tools       []any          `json:"tools,omitempty"`
		Input       map[string]any `json:"realtimeInputConfig"`
		Hears       any            `json:"inputAudioTranscription,omitempty"`
		Says        any            `json:"outputAudioTranscription,omitempty"`
		Resumption  map[string]any `json:"sessionResumption"`
		Compression map[string]any `json:"contextWindowCompression"`
	}
	clientContent struct {
		Content struct {
			Turns    []content `json:"turns,omitempty"`
			Complete bool      `json:"turnComplete"`
		} `json:"clientContent"`
	}
	toolResponse struct {
		Response struct {
			Functions []response `json:"functionResponses"`
		} `json:"toolResponse"`
	}
)

// terms are what a connection is set up with; a handle goes on with the session of another one.
func (s *live) terms(handle string) setupMessage {
	setup := liveSetup{Model: "models/" + s.model.code, Config: map[string]any{},
		Input:       map[string]any{"automaticActivityDetection": map[string]any{"disabled": true}},
		Resumption:  map[string]any{},
		Compression: map[string]any{"slidingWindow": map[string]any{}}}
	if handle != "" {
		setup.Resumption["handle"] = handle
	}
	if s.text {
		setup.Config["responseModalities"] = []string{"TEXT"}
	} else {
		setup.Config["responseModalities"] = []string{"AUDIO"}
		setup.Says = map[string]any{}
		if s.setup.Voice != "" && !s.setup.Writes { // else it is a synthesizer's
			setup.Config["speechConfig"] = map[string]any{"voiceConfig": map[string]any{
				"prebuiltVoiceConfig": map[string]any{"voiceName": s.setup.Voice}}}
		}
	}
	if s.setup.Reads {
		setup.System = &content{Parts: []part{{Text: readOut}}}
		return setupMessage{setup}
	}
	if strings.TrimSpace(s.setup.System) != "" {
		setup.System = &content{Parts: []part{{Text: s.setup.System}}}
	}
	hears := map[string]any{}
	if s.setup.Language != "" {
		hears["languageCodes"] = s.heard.languages
	}
	if len(s.setup.Keywords) > 0 {
		hears["customVocabulary"] = s.setup.Keywords
	}
	setup.Hears = hears
	var list []any
	for _, t := range s.setup.Tools {
		// One that blocks ends the reply, which goes on when the result is there. Some models would otherwise talk on.
		list = append(list, struct {
			function
			Behavior string `json:"behavior"`
		}{function{s.names.Wire(t.Name), t.Description, schema.ForGemini(t.Schema)}, "BLOCKING"})
	}
	if len(list) > 0 {
		setup.Tools = []any{map[string]any{"functionDeclarations": list}}
	}
	return setupMessage{setup}
}

// open opens a connection, and has the server take the session's terms. A server that is silent meanwhile has
// stalled.
func (s *live) open(ctx context.Context, handle string) (*wire.Conn, error) {
	address, err := wire.Address(s.model.client.rest.Base, livePath, nil)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	header := http.Header{}
	s.model.client.rest.Sign(header)
	conn, err := wire.Dial(ctx, address, wire.Options{Header: header, Ping: pingTime})
	if err != nil {
		return nil, err
	}
	if err := conn.Within(ctx, connectTime, func() error { return s.accepted(conn, handle) }); err != nil {
		conn.Leave()
		return nil, err
	}
	return conn, nil
}

func (s *live) accepted(conn *wire.Conn, handle string) error {
	if err := conn.Send(s.terms(handle)); err != nil {
		return closed(err, false)
	}
	for {
		raw, _, err := conn.Receive()
		if err != nil {
			return closed(err, false)
		}
		m, err := parseLive(raw)
		if err != nil {
			return err
		}
		if m.Accepted != nil {
			return nil
		}
	}
}

// closed says what the end of a connection means. Google gives its reasons in the close frame's text; the codes are
// 1007 for an argument or a key, 1008 for a model or a session that it doesn't know, 1011 for most else, a quota too.
func closed(err error, begun bool) error {
	code, reason := wire.CloseOf(err)
	said := strings.ToLower(reason)
	kind := ai.Kind("")
	switch {
	case code == 0:
		return err
	case strings.Contains(said, "quota"), strings.Contains(said, "exhausted"), strings.Contains(said, "rate limit"):
		kind = ai.RateLimited
	case begun:
		kind = ai.Interrupted
	case code == 1007, code == 1008:
		kind = ai.Config
	default:
		kind = ai.Overloaded
	}
	return &ai.Error{Kind: kind, Err: fmt.Errorf("closed with %d: %s", code, reason)}
}

// run holds the session until it ends.
func (s *live) run(conn *wire.Conn) {
	defer close(s.done)
	defer close(s.out)
	stop := context.AfterFunc(s.ctx, func() {
		for _, c := range s.conns() {
			c.Leave()
		}
	})
	var wg sync.WaitGroup
	crash.Go(&wg, func() { s.box.Run(s.ctx) }, s.crashed)
	crash.Go(&wg, s.watch, s.crashed)
	var err error
	for conn != nil {
		err = crash.Run(func() error { return s.read(conn) })
		conn.Leave()
		conn = s.moved()
	}
	ended := s.ctx.Err() != nil
	s.cancel()
	stop()
	wg.Wait()
	if !ended {
		s.out <- ai.RealtimeEvent{Kind: ai.RealtimeLost, Err: ai.TheModel.Of(closed(err, true))}
	}
}

func (s *live) tell(e ai.RealtimeEvent) {
	select {
	case s.out <- e:
	case <-s.ctx.Done():
	}
}

// crashed ends the session after a panic, as if the vendor had.
func (s *live) crashed(err error) {
	slog.Error("a session with a realtime model panicked", "error", err)
	for _, c := range s.conns() {
		c.Close()
	}
}

// Events implements ai.RealtimeSession.
func (s *live) Events() <-chan ai.RealtimeEvent { return s.out }

// Close implements ai.RealtimeSession.
func (s *live) Close() {
	s.cancel()
	for range s.out { // nobody reads it any more
	}
	<-s.done
}
