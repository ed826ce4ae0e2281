package elevenlabs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/text/language"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/speech"
	"parley/internal/provider/wire"
)

// dialect is ElevenLabs' realtime transcription (Scribe) for one recognizer. A segment ends when it is committed.
type dialect struct {
	*client
	tells   bool   // each commit is answered twice: once by its text alone, once with the language
	silence string // the message that has answered a commit without a text, until the other one comes
}

// ElevenLabs ignores a commit of less than 0.3 s of sound (commit_throttled).
var listening = speech.Listening{Shortest: 300 * time.Millisecond, Keep: 10 * time.Second}

// maxKeyterms is the most keywords that can be sent.
const maxKeyterms = 100

// recognizer opens recognitions.
type recognizer struct{ *client }

// Listen implements ai.Recognizer.
func (r recognizer) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	return speech.Listen(ctx, &dialect{client: r.client, tells: len(h.Others) > 0}, listening, h)
}

// Dial implements speech.Dialect.
func (d *dialect) Dial(ctx context.Context, h ai.Hearing) (*wire.Conn, error) {
	q := url.Values{
		"model_id":        {d.stt},
		"audio_format":    {fmt.Sprintf("pcm_%d", h.Rate)},
		"commit_strategy": {"manual"},
	}
	if h.Language != "" {
		q.Set("language_code", h.Language)
	}
	if d.tells { // the language comes with the times
		q["secondary_languages"] = h.Others
		q.Set("include_language_detection", "true")
		q.Set("include_timestamps", "true")
	}
	if len(h.Keywords) > 0 {
		q["keyterms"] = h.Keywords[:min(len(h.Keywords), maxKeyterms)]
	}
	return d.dial(ctx, "/v1/speech-to-text/realtime", q)
}

// chunk is the only kind of message that is sent.
type chunk struct {
	Type   string     `json:"message_type"`
	Audio  []byte     `json:"audio_base_64"`
	Commit bool       `json:"commit"`
	Rate   audio.Rate `json:"sample_rate"`
}

func send(c *wire.Conn, raw []byte, commit bool, h ai.Hearing) error {
	return c.Send(chunk{Type: "input_audio_chunk", Audio: raw, Commit: commit, Rate: h.Rate})
}

// Sound implements speech.Dialect.
func (d *dialect) Sound(c *wire.Conn, raw []byte, h ai.Hearing) error { return send(c, raw, false, h) }

// Ask implements speech.Dialect. A commit is sent with a piece of sound, which may be empty.
func (d *dialect) Ask(c *wire.Conn, h ai.Hearing) error { return send(c, []byte{}, true, h) }

// Keep implements speech.Dialect. Pings alone don't keep the session open.
func (d *dialect) Keep(c *wire.Conn, h ai.Hearing) error { return send(c, []byte{}, false, h) }

// Bye implements speech.Dialect. The protocol has no message for it.
func (d *dialect) Bye(*wire.Conn) {}

// Read implements speech.Dialect.
func (d *dialect) Read(raw []byte) (u speech.Understood, err error) {
	var m struct {
		Type     string          `json:"message_type"`
		Text     string          `json:"text"`
		Language string          `json:"language_code"`
		Error    json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return u, err
	}
	switch m.Type {
	case "partial_transcript":
		u.Text = m.Text
	case committed, committedWithTimes:
		if d.answers(m.Type, strings.TrimSpace(m.Text) == "") {
			u = speech.Understood{Text: m.Text + " ", Fixed: true, Answered: true, Language: short(m.Language)}
		}
	case "commit_throttled": // too little was said to be committed
		u.Answered = true
	case "session_started":
	default:
		if len(m.Error) > 0 {
			return u, &ai.Error{Kind: cmp.Or(kinds[m.Type], ai.Overloaded),
				Err: fmt.Errorf("%s: %.200s", m.Type, text(m.Error))}
		}
	}
	return u, nil
}

// The messages that answer a commit.
const (
	committed          = "committed_transcript"
	committedWithTimes = "committed_transcript_with_timestamps"
)

// answers reports whether a message is the answer to a commit. Where the language is told, two messages come, in an
// order that is not documented: the one with the times counts, as only it tells the language. If nothing was
// understood, the first one counts, as it is not documented whether both come then.
func (d *dialect) answers(kind string, empty bool) bool {
	switch {
	case !d.tells:
		return kind == committed
	case !empty:
		return kind == committedWithTimes
	case d.silence == "" || d.silence == kind:
		d.silence = kind
		return true
	}
	d.silence = ""
	return false
}

// short is a language's code of two letters: ElevenLabs also uses those of three.
func short(code string) string {
	base, err := language.ParseBase(code)
	if err != nil {
		return ""
	}
	return base.String()
}
