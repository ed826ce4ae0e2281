package cartesia

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/speech"
	"parley/internal/provider/wire"
)

// tongue is Cartesia's speech with contexts on one socket. Each message says how it is to be spoken. Each text is
// followed by a flush, whose flush_done marks the end of its audio. A context without further texts expires within a
// second.
type tongue struct{ *client }

// Cartesia allows dozens of contexts per socket, and closes a socket that has been idle for five minutes.
var manners = speech.Manners{Contexts: 16, Dones: true, Brief: true, Idle: 4 * time.Minute}

// Reads implements ai.Reader. Cartesia normalizes texts without being asked to (normalization is "auto").
func (t tongue) Reads() bool { return true }

// Line implements speech.Tongue. Every voice can use every socket.
func (t tongue) Line(as ai.Speech) (string, error) {
	if as.Rate != audio.Narrow && as.Rate != audio.Wide {
		return "", &ai.Error{Kind: ai.Config, Err: fmt.Errorf("speak at %d Hz: calls have 8000 or 16000", as.Rate)}
	}
	return "", nil
}

// Dial implements speech.Tongue.
func (t tongue) Dial(ctx context.Context, _ ai.Speech) (*wire.Conn, error) {
	return t.dial(ctx, "/tts/websocket", url.Values{})
}

// request is any message that is sent. All messages of a context have the same fields, except for transcript, continue
// and flush.
type request struct {
	Model      string           `json:"model_id"`
	Transcript string           `json:"transcript"`
	Voice      voiceID          `json:"voice"`
	Language   string           `json:"language,omitempty"`
	Context    string           `json:"context_id"`
	Format     outputFormat     `json:"output_format"`
	Timestamps bool             `json:"add_timestamps"`
	Continue   bool             `json:"continue"`
	Flush      bool             `json:"flush,omitempty"`
	Delay      int              `json:"max_buffer_delay_ms"` // 0: texts are whole sentences; without being told it waits up to 3 s for more
	Generation generationConfig `json:"generation_config"`
}

type voiceID struct {
	Mode string `json:"mode"`
	ID   string `json:"id"`
}

type outputFormat struct {
	Container string     `json:"container"`
	Encoding  string     `json:"encoding"`
	Rate      audio.Rate `json:"sample_rate"`
}

type generationConfig struct {
	Speed float64 `json:"speed"`
}

func (t tongue) message(id string, as ai.Speech, text string, goesOn, flush bool) request {
	return request{Model: t.tts, Transcript: text, Voice: voiceID{"id", as.Voice},
		Language: as.Language, Context: id, Format: outputFormat{"raw", "pcm_s16le", as.Rate}, Timestamps: true,
		Continue: goesOn, Flush: flush, Generation: generationConfig{min(max(cmp.Or(as.Speed, 1), 0.6), 1.5)}}
}

// Open implements speech.Tongue. The first text opens the context.
func (t tongue) Open(string, ai.Speech) []any { return nil }

// Say implements speech.Tongue.
func (t tongue) Say(id string, as ai.Speech, text string) []any {
	return []any{t.message(id, as, text+" ", true, false), t.message(id, as, "", true, true)}
}

// Finish implements speech.Tongue.
func (t tongue) Finish(id string, as ai.Speech) []any {
	return []any{t.message(id, as, "", false, false)}
}

// Cancel implements speech.Tongue. Audio that is already being made still arrives, and is thrown away here.
func (t tongue) Cancel(id string, _ bool) []any {
	return []any{map[string]any{"context_id": id, "cancel": true}}
}

// Keep implements speech.Tongue. Contexts are not kept open.
func (t tongue) Keep(string) []any { return nil }

// response is what comes.
type response struct {
	Type    string `json:"type"`
	Context string `json:"context_id"`
	Data    []byte `json:"data"`
	Words   struct {
		Words []string  `json:"words"`
		Start []float64 `json:"start"` // in seconds
		End   []float64 `json:"end"`
	} `json:"word_timestamps"`
	trouble
}

var errWords = errors.New("times of words whose lists differ in length")

// Read implements speech.Tongue.
func (t tongue) Read(raw []byte) (speech.Event, error) {
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return speech.Event{}, err
	}
	e := speech.Event{Context: r.Context}
	switch r.Type {
	case "chunk":
		e.Sound = r.Data
	case "timestamps":
		w := r.Words
		if len(w.Start) != len(w.Words) || len(w.End) != len(w.Words) {
			return e, errWords
		}
		for i, word := range w.Words {
			e.Marks = append(e.Marks, speech.Mark{Text: word, From: seconds(w.Start[i]), To: seconds(w.End[i])})
		}
	case "flush_done":
		e.Done = true
	case "done":
		e.Over = true
	case "error":
		e.Err = &ai.Error{Kind: cmp.Or(r.kind(), ai.Interrupted), Err: fmt.Errorf("in mid-stream: %s", r.text())}
	}
	return e, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Closed implements speech.Tongue. The code says everything.
func (t tongue) Closed(string) ai.Kind { return "" }
