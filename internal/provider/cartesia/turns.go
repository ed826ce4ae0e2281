package cartesia

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

// The models that find turns by themselves.
const (
	turnsModel = "ink-2"       // used for English alone: it does not tell which language was spoken
	mixedModel = "ink-preview" // it tells
)

// quiet is how long to wait after an utterance if Cartesia doesn't report the end of its turn and nothing new arrives.
// Then the words known so far are the text.
const quiet = 300 * time.Millisecond

// turns speaks the protocol of /stt/turns/websocket. Cartesia gets all sound and finds turns by itself. The session
// finds utterances, which may end earlier or later. A message has all the words of a turn, without times: the words
// that have arrived when an utterance ends belong to it.
type turns struct {
	conn        *wire.Conn
	recognition *wire.Recognition
	tells       bool // the language

	number int // of the oldest utterance whose final text was not told
	ends   []end
	news   time.Time // when something was understood last
	past   []string  // words of turns that have ended, that are in no final text yet
	turn   []string  // words of the present turn
	taken  int       // how many of these are in a final text
	state  ai.Turn   // of the present turn; "" between turns
	told   string    // the last text of an utterance that was told

	language string // of the latest words, ISO 639-1
}

type end struct {
	asked time.Time
	lost  error
}

// Sound implements wire.Protocol.
func (t *turns) Sound(raw []byte) error { return t.conn.SendBinary(raw) }

// End implements wire.Protocol. The protocol has no message for it.
func (t *turns) End(lost error) error {
	t.ends = append(t.ends, end{time.Now(), lost})
	return nil
}

// Message implements wire.Protocol.
func (t *turns) Message(data []byte, _ bool) error {
	var m struct {
		Type       string   `json:"type"`
		Transcript *string  `json:"transcript"`
		Languages  []spoken `json:"languages"`
		trouble
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	if m.Type == "error" {
		return &ai.Error{Kind: cmp.Or(m.kind(), ai.Interrupted), Err: fmt.Errorf("in mid-stream: %s", m.text())}
	}
	state, known := map[string]ai.Turn{"turn.start": ai.TurnStarted, "turn.update": "", "turn.eager_end": ai.TurnEager,
		"turn.resume": ai.TurnResumed, "turn.end": ai.TurnEnded}[m.Type]
	if !known { // connected, and what is to come
		return nil
	}
	if m.Transcript != nil {
		t.turn = strings.Fields(*m.Transcript)
	}
	if state == ai.TurnStarted {
		t.language = ""
	}
	if t.tells && len(m.Languages) > 0 {
		t.language = most(m.Languages)
	}
	t.news = time.Now()
	t.follow(state)
	return nil
}

// follow handles what Cartesia reports about the current turn; with "", only its words.
func (t *turns) follow(state ai.Turn) {
	began := state != ai.TurnStarted && t.state == "" // whose beginning was not told
	switch {
	case state == ai.TurnEnded:
		t.past = append(t.past, t.turn[min(t.taken, len(t.turn)):]...)
		t.turn, t.taken, t.state = nil, 0, ""
	case state != "":
		t.state = state
	case began:
		t.state = ai.TurnStarted
	}
	t.answer(t.news)
	text := t.text()
	if began {
		t.recognition.Tell(ai.Transcript{Utterance: t.number, Text: text, Language: t.language, Turn: ai.TurnStarted})
	}
	if state != "" || !began && text != "" && text != t.told {
		t.recognition.Tell(ai.Transcript{Utterance: t.number, Text: text, Language: t.language, Turn: state})
	}
	t.told = text
}

// spoken is a language that was detected in the latest audio.
type spoken struct {
	Language   string  `json:"language"`
	Confidence float64 `json:"confidence"`
}

// most is the likeliest of several languages.
func most(list []spoken) string {
	return slices.MaxFunc(list, func(a, b spoken) int { return cmp.Compare(a.Confidence, b.Confidence) }).Language
}

// text is the text of the oldest utterance.
func (t *turns) text() string {
	return strings.Join(append(slices.Clone(t.past), t.turn[min(t.taken, len(t.turn)):]...), " ")
}

// answer reports the final texts of the utterances whose words have arrived.
func (t *turns) answer(now time.Time) {
	for len(t.ends) > 0 {
		e, text := t.ends[0], t.text()
		over := text != "" && (t.state == "" || t.state == ai.TurnEager)
		if !over && now.Sub(e.asked) < quiet || !over && now.Sub(t.news) < quiet {
			return
		}
		final := ai.Transcript{Utterance: t.number, Text: text, Language: t.language, Final: true, Err: e.lost}
		if final.Err != nil || text == "" {
			final.Text, final.Language = "", ""
		}
		t.recognition.Tell(final)
		t.past, t.taken, t.told = nil, len(t.turn), ""
		t.ends = slices.Delete(t.ends, 0, 1)
		t.number++
	}
}

// Tick implements wire.Protocol. Pings keep the socket alive.
func (t *turns) Tick(now time.Time) (time.Duration, error) {
	t.answer(now)
	if len(t.ends) > 0 {
		return quiet / 4, nil
	}
	return time.Hour, nil
}

// Waits implements wire.Protocol.
func (t *turns) Waits() (int, bool) { return t.number, len(t.ends) > 0 }

// Bye implements wire.Protocol.
func (t *turns) Bye() { _ = t.conn.Send(map[string]string{"type": "close"}) }
