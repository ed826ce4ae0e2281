package elevenlabs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/speech"
	"parley/internal/provider/wire"
)

// tongue is ElevenLabs' speech with several contexts on one socket (multi-stream-input). A socket has one voice, format
// and language. Each context has its own voice settings.
type tongue struct{ *client }

const (
	contexts   = 5                 // of a socket, by ElevenLabs' limit: a sixth closes it
	inactivity = 180 * time.Second // that is the longest it allows; without being asked for, 20 s
)

var manners = speech.Manners{Contexts: contexts, Idle: inactivity - 30*time.Second,
	Bye: map[string]bool{"close_socket": true}}

// Line implements speech.Tongue.
func (t tongue) Line(as ai.Speech) (string, error) {
	if as.Rate != audio.Narrow && as.Rate != audio.Wide {
		return "", &ai.Error{Kind: ai.Config, Err: fmt.Errorf("speak at %d Hz: calls have 8000 or 16000", as.Rate)}
	}
	return fmt.Sprintf("%s %d %s", as.Voice, as.Rate, t.language(as)), nil
}

// language is the language code to send. Models without this parameter refuse it.
func (t tongue) language(as ai.Speech) string {
	if strings.HasSuffix(t.tts, "_v2_5") {
		return as.Language
	}
	return ""
}

// Reads implements ai.Reader. The fast models don't normalize texts, unless a large customer's account has it allowed.
func (t tongue) Reads() bool {
	return !strings.Contains(t.tts, "flash") && !strings.Contains(t.tts, "turbo")
}

// Dial implements speech.Tongue.
func (t tongue) Dial(ctx context.Context, as ai.Speech) (*wire.Conn, error) {
	q := url.Values{
		"model_id":           {t.tts},
		"output_format":      {fmt.Sprintf("pcm_%d", as.Rate)},
		"auto_mode":          {"true"}, // texts are whole sentences: nothing is gained by waiting for more
		"sync_alignment":     {"true"},
		"inactivity_timeout": {strconv.Itoa(int(inactivity / time.Second))},
	}
	if t.Reads() {
		q.Set("apply_text_normalization", "on")
	}
	if code := t.language(as); code != "" {
		q.Set("language_code", code)
	}
	return t.dial(ctx, "/v1/text-to-speech/"+url.PathEscape(as.Voice)+"/multi-stream-input", q)
}

// request is any message that is sent. Each kind uses some of the fields.
type request struct {
	Text         *string        `json:"text,omitempty"`
	Settings     *voiceSettings `json:"voice_settings,omitempty"`
	Context      string         `json:"context_id"`
	Flush        bool           `json:"flush,omitempty"`
	CloseContext bool           `json:"close_context,omitempty"`
}

type voiceSettings struct {
	Stability  float64 `json:"stability"`
	Similarity float64 `json:"similarity_boost"`
	Speed      float64 `json:"speed"`
}

// Open implements speech.Tongue. The first message of a context is a single space with the settings.
func (t tongue) Open(id string, as ai.Speech) []any {
	return []any{request{Text: new(" "), Context: id, Settings: &voiceSettings{
		Stability: min(max(as.Stability, 0), 1), Similarity: min(max(as.Similarity, 0), 1),
		Speed: min(max(cmp.Or(as.Speed, 1), 0.7), 1.2)}}}
}

// Say implements speech.Tongue. Each text ends with a space, as ElevenLabs requires.
func (t tongue) Say(id string, _ ai.Speech, text string) []any {
	return []any{request{Text: new(text + " "), Context: id, Flush: true}}
}

// Finish implements speech.Tongue. Flushed text is spoken before the context closes.
func (t tongue) Finish(id string, _ ai.Speech) []any {
	return []any{request{Context: id, CloseContext: true}}
}

// Cancel implements speech.Tongue. ElevenLabs still sends the audio of flushed text, which is thrown away here.
func (t tongue) Cancel(id string, finished bool) []any {
	if finished {
		return nil
	}
	return []any{request{Context: id, CloseContext: true}}
}

// Keep implements speech.Tongue. An empty text restarts the context's inactivity timeout.
func (t tongue) Keep(id string) []any { return []any{request{Text: new(""), Context: id}} }

// response is a message from ElevenLabs. Its documentation spells some names in two ways, and its servers use both.
type response struct {
	Audio      []byte          `json:"audio"`
	Final      bool            `json:"isFinal"`
	Final2     bool            `json:"is_final"`
	Context    string          `json:"contextId"`
	Context2   string          `json:"context_id"`
	Alignment  *alignment      `json:"alignment"`
	Normalized *alignment      `json:"normalizedAlignment"`
	Error      json.RawMessage `json:"error"`
	Message    string          `json:"message"`
}

// alignment is the time of each character, in milliseconds from the start of the audio in the same message.
type alignment struct {
	Chars      []string  `json:"chars"`
	Starts     []float64 `json:"charStartTimesMs"`
	Starts2    []float64 `json:"charsStartTimesMs"`
	Durations  []float64 `json:"charDurationsMs"`
	Durations2 []float64 `json:"charsDurationsMs"`
}

var errAlignment = errors.New("an alignment whose lists differ in length")

func (a *alignment) marks() ([]speech.Mark, error) {
	if a == nil {
		return nil, nil
	}
	starts, durations := a.Starts, a.Durations
	if starts == nil {
		starts = a.Starts2
	}
	if durations == nil {
		durations = a.Durations2
	}
	if len(starts) != len(a.Chars) || len(durations) != len(a.Chars) {
		return nil, errAlignment
	}
	marks := make([]speech.Mark, len(a.Chars))
	for i, c := range a.Chars {
		from := time.Duration(starts[i] * float64(time.Millisecond))
		marks[i] = speech.Mark{Text: c, From: from, To: from + time.Duration(durations[i]*float64(time.Millisecond))}
	}
	return marks, nil
}

// Read implements speech.Tongue.
func (t tongue) Read(raw []byte) (speech.Event, error) {
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return speech.Event{}, err
	}
	e := speech.Event{Context: cmp.Or(r.Context, r.Context2), Sound: r.Audio, Over: r.Final || r.Final2}
	if code := text(r.Error); code != "" {
		e.Err = &ai.Error{Kind: cmp.Or(kinds[code], closed(r.Message), ai.Interrupted),
			Err: fmt.Errorf("in mid-stream: %.100s: %.200s", code, r.Message)}
		return e, nil
	}
	if r.Alignment == nil {
		r.Alignment = r.Normalized
	}
	var err error
	e.Marks, err = r.Alignment.marks()
	return e, err
}

// text is a string. Any other JSON value is accepted in its place.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// Closed implements speech.Tongue.
func (t tongue) Closed(reason string) ai.Kind { return closed(reason) }
