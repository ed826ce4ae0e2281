package cartesia

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/speech"
	"parley/internal/provider/wire"
)

// dialect is Cartesia's transcription. It is told when an utterance has ended (finalize).
type dialect struct{ *client }

var listening = speech.Listening{Keep: time.Hour} // pings keep it alive

const (
	whisper     = "ink-whisper" // it has a hundred languages
	maxKeyterms = 100
)

// Listen implements ai.Recognizer.
func (d dialect) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	if !turnsIn(d.stt, h) {
		return speech.Listen(ctx, d, listening, h)
	}
	return speech.Open(ctx, h, wire.RecognitionOptions{Piece: 100 * time.Millisecond, Continuous: true},
		func(ctx context.Context) (*wire.Conn, error) {
			q := query(d.stt, h)
			if d.stt == mixedModel {
				q["language_hint"] = append([]string{h.Language}, h.Others...)
			}
			if len(h.Keywords) > 0 {
				q["keyterm"] = h.Keywords[:min(len(h.Keywords), maxKeyterms)]
			}
			return d.dial(ctx, "/stt/turns/websocket", q)
		},
		func(c *wire.Conn, e *wire.Recognition) wire.Protocol {
			return &turns{conn: c, recognition: e, tells: len(h.Others) > 0}
		})
}

// turnsIn reports whether a model finds turns in all languages that may be spoken.
func turnsIn(model string, h ai.Hearing) bool {
	known := strings.Fields(turnsBy[model])
	return !slices.ContainsFunc(append([]string{h.Language}, h.Others...), func(l string) bool { return !slices.Contains(known, l) })
}

// query returns the parameters of the stream.
func query(model string, h ai.Hearing) url.Values {
	return url.Values{"model": {model}, "encoding": {"pcm_s16le"}, "sample_rate": {fmt.Sprint(h.Rate)}}
}

// Dial implements speech.Dialect.
func (d dialect) Dial(ctx context.Context, h ai.Hearing) (*wire.Conn, error) {
	model := d.stt
	if turnsBy[model] != "" { // it does not have these languages
		model = whisper
	}
	q := query(model, h)
	if h.Language != "" {
		q.Set("language", h.Language)
	}
	return d.dial(ctx, "/stt/websocket", q)
}

// Sound implements speech.Dialect.
func (d dialect) Sound(c *wire.Conn, raw []byte, _ ai.Hearing) error { return c.SendBinary(raw) }

// Ask implements speech.Dialect. Commands are plain text messages.
func (d dialect) Ask(c *wire.Conn, _ ai.Hearing) error { return c.SendText("finalize") }

// Keep implements speech.Dialect. The protocol has no message for it.
func (d dialect) Keep(*wire.Conn, ai.Hearing) error { return nil }

// Bye implements speech.Dialect.
func (d dialect) Bye(c *wire.Conn) { _ = c.SendText("close") }

// Read implements speech.Dialect.
func (d dialect) Read(raw []byte) (u speech.Understood, err error) {
	var m struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Final bool   `json:"is_final"`
		trouble
		Code int `json:"code"` // of older versions
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return u, err
	}
	switch m.Type {
	case "transcript":
		u.Text, u.Fixed = m.Text, m.Final
	case "flush_done":
		u.Answered = true
	case "error":
		m.Status = cmp.Or(m.Status, m.Code)
		return u, &ai.Error{Kind: cmp.Or(m.kind(), ai.Interrupted), Err: fmt.Errorf("in mid-stream: %s", m.text())}
	}
	return u, nil
}
