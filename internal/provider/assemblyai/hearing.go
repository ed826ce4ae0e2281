package assemblyai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

const (
	path = "/v3/ws"
	// piece is how much sound is sent in one message. AssemblyAI accepts 50 to 1000 ms.
	piece    = 100 * time.Millisecond
	shortest = 50 * time.Millisecond
	// signs is the time between two pings of a socket. AssemblyAI doesn't close idle sockets unless it is asked to.
	signs = 10 * time.Second
	// beginTime is how long a session may take to begin. Keys and parameters are checked after the socket has opened.
	beginTime   = 5 * time.Second
	maxKeywords = 100
	maxKeyword  = 50 // characters
)

// The models that detect the language, and the end of an utterance, by themselves.
const (
	english      = "universal-streaming-english"
	multilingual = "universal-streaming-multilingual"
)

// modelFor returns the model for what is to be heard: the configured one, unless it understands English only.
func modelFor(set string, h ai.Hearing) string {
	switch {
	case (set == "" || set == english) && h.Language == "en" && len(h.Others) == 0:
		return english
	case set == "" || set == english:
		return multilingual
	}
	return set
}

type recognizer struct{ base, key, model string }

// Listen implements ai.Recognizer.
func (r *recognizer) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if h.Rate != audio.Narrow && h.Rate != audio.Wide {
		return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("hear at %d Hz: calls have 8000 or 16000", h.Rate)}
	}
	model := modelFor(r.model, h)
	address, err := wire.Address(r.base, path, question(model, h))
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	conn, err := wire.Dial(ctx, address, wire.Options{Header: http.Header{"Authorization": {r.key}}, Ping: signs})
	if err != nil {
		return nil, err
	}
	ends, err := begin(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return wire.NewRecognition(ctx, conn, wire.RecognitionOptions{Rate: h.Rate, Piece: piece}, func(e *wire.Recognition) wire.Protocol {
		return &turns{conn: conn, recognition: e, rate: int(h.Rate), ends: ends, formats: formats(model), open: []*spoken{{}}}
	}), nil
}

// formats reports whether a model sends the end of a turn a second time, with punctuation. Other models send it with
// punctuation at once.
func formats(model string) bool { return strings.HasPrefix(model, "universal-streaming") }

// question returns the query with which a session is opened. Our own voice detector ends utterances. The model's own
// end-of-turn detection is switched off where that is possible, and made slow elsewhere.
func question(model string, h ai.Hearing) url.Values {
	q := url.Values{"speech_model": {model}, "sample_rate": {strconv.Itoa(int(h.Rate))}, "encoding": {"pcm_s16le"},
		"max_turn_silence": {"3000"}}
	if formats(model) {
		q.Set("format_turns", "true")
		q.Set("end_of_turn_confidence_threshold", "1")
	} else {
		q.Set("min_turn_silence", "1000")
		if h.Language != "" {
			q.Set("language_codes", list(append([]string{h.Language}, h.Others...)))
		}
	}
	if len(h.Others) > 0 {
		q.Set("language_detection", "true")
	}
	var words []string
	for _, w := range h.Keywords {
		if len([]rune(w)) <= maxKeyword && len(words) < maxKeywords {
			words = append(words, w)
		}
	}
	if len(words) > 0 {
		q.Set("keyterms_prompt", list(words))
	}
	return q
}

// list is a list in a query.
func list(words []string) string {
	raw, _ := json.Marshal(words) // texts can't fail
	return string(raw)
}

// begin waits until the session has begun, and reports when it will end.
func begin(ctx context.Context, conn *wire.Conn) (ends time.Time, err error) {
	var raw []byte
	if err := conn.Within(ctx, beginTime, func() (err error) {
		if raw, _, err = conn.Receive(); err != nil {
			err = closed(err, false)
		}
		return err
	}); err != nil {
		return ends, err
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return ends, &ai.Error{Kind: ai.Malformed, Err: err}
	}
	switch m.Type {
	case "Begin":
		if m.ExpiresAt > 0 {
			ends = time.Unix(m.ExpiresAt, 0)
		}
		return ends, nil
	case "Error":
		return ends, m.failure(false)
	}
	return ends, &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("the session began with %.30q", m.Type)}
}

// kinds maps AssemblyAI's codes, in Error messages and of closed sockets, to our kinds of errors.
var kinds = map[int]ai.Kind{1008: ai.Config, 3006: ai.Config, 3007: ai.Malformed, 3009: ai.RateLimited,
	4000: ai.Config, 4001: ai.Config, 4002: ai.Config, 4003: ai.Config, 4029: ai.RateLimited, 4102: ai.RateLimited,
	3005: ai.Overloaded, 1011: ai.Overloaded, 1013: ai.Overloaded}

func kindOf(code int, begun bool) ai.Kind {
	k := kinds[code]
	if k == "" || begun && k == ai.Overloaded {
		return ai.Interrupted
	}
	return k
}

// closed returns the error that a closed socket means.
func closed(err error, begun bool) error {
	code, reason := wire.CloseOf(err)
	if code == 0 {
		return err
	}
	return &ai.Error{Kind: kindOf(code, begun), Err: fmt.Errorf("closed with %d: %s", code, reason)}
}
