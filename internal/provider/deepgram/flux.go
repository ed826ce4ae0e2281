package deepgram

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

// Flux's thresholds: the confidence for a possible end of turn and for a certain one, and the silence in milliseconds
// after which a turn ends in any case.
const (
	eagerThreshold = "0.4"
	endThreshold   = "0.7"
	endTimeout     = "5000"
)

const (
	// pause is how long no sound may arrive while a text is still expected. Then silence is sent, because Flux only
	// makes progress while it receives sound.
	pause = 120 * time.Millisecond
	// idle is the longest time between two calls of Tick.
	idle = time.Second
)

// turnInfo is a message of /v2/listen, with the fields that are used here.
type turnInfo struct {
	Type       string     `json:"type"`
	Event      string     `json:"event"`
	WindowEnd  float64    `json:"audio_window_end"`
	Transcript string     `json:"transcript"`
	Words      []fluxWord `json:"words"`
	Languages  []string   `json:"languages"` // of the turn, by flux-general-multi; the most spoken one first

	Code        string `json:"code"`
	Description string `json:"description"`
}

type fluxWord struct {
	Word  string   `json:"word"`
	Start *float64 `json:"start"` // documented, but not promised
}

// flux speaks the protocol of /v2/listen. Flux gets all sound and finds turns by itself. The session finds utterances,
// which may end earlier or later than Flux's turns. A word belongs to the utterance in which it began.
type flux struct {
	conn        *wire.Conn
	recognition *wire.Recognition
	rate        float64

	sent     int // samples
	lastSent time.Time
	heard    float64 // how far the vendor has heard, in seconds of the stream
	number   int     // of the oldest utterance whose final text was not told
	ends     []fluxEnd
	past     []timed // words of turns that have ended, that are in no final text yet
	turn     []timed // words of the present turn
	taken    int     // how many of these are in a final text
	state    ai.Turn // of the present turn; "" between turns
	told     string  // the last text of an utterance that was told
	mixed    bool    // several languages may be spoken
	language string  // of the latest turn
}

type fluxEnd struct {
	at    float64
	asked time.Time
	lost  error
}

// timed is a word and the time at which it began.
type timed struct {
	word string
	at   float64
}

func newFlux(conn *wire.Conn, recognition *wire.Recognition, rate audio.Rate, mixed bool) *flux {
	return &flux{conn: conn, recognition: recognition, rate: float64(rate), lastSent: time.Now(), mixed: mixed}
}

// Sound implements wire.Protocol.
func (f *flux) Sound(raw []byte) error {
	f.sent += len(raw) / 2
	f.lastSent = time.Now()
	return f.conn.SendBinary(raw)
}

// End implements wire.Protocol. It does not force the end of Flux's turn (ForceEndTurn): if the caller went on after a
// pause, one turn would become two, and Flux judges the end of a turn better than the session does.
func (f *flux) End(lost error) error {
	f.ends = append(f.ends, fluxEnd{float64(f.sent) / f.rate, time.Now(), lost})
	return nil
}

// Message implements wire.Protocol.
func (f *flux) Message(data []byte, _ bool) error {
	var m turnInfo
	if err := json.Unmarshal(data, &m); err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	switch m.Type {
	case "TurnInfo":
		f.info(&m)
	case "Error":
		return &ai.Error{Kind: ai.Interrupted, Err: fmt.Errorf("%s: %.300q", m.Code, m.Description)}
	} // Connected says nothing that is asked for
	return nil
}

// info handles what Flux reports about the current turn.
func (f *flux) info(m *turnInfo) {
	f.words(m)
	if f.mixed && len(m.Languages) > 0 {
		f.language = base(m.Languages[0])
	}
	f.heard = max(f.heard, m.WindowEnd)
	state := map[string]ai.Turn{"StartOfTurn": ai.TurnStarted, "EagerEndOfTurn": ai.TurnEager,
		"TurnResumed": ai.TurnResumed, "EndOfTurn": ai.TurnEnded}[m.Event]
	began := state != "" && state != ai.TurnStarted && f.state == "" // whose beginning was not told
	if state != "" {
		f.state = state
	}
	if state == ai.TurnEnded {
		f.past = append(f.past, f.turn[min(f.taken, len(f.turn)):]...)
		f.turn, f.taken, f.state = nil, 0, ""
	}
	f.answer(time.Now())
	text := f.text(f.until())
	switch {
	case began:
		f.recognition.Tell(ai.Transcript{Utterance: f.number, Text: text, Turn: ai.TurnStarted})
		fallthrough
	case state != "":
		f.recognition.Tell(ai.Transcript{Utterance: f.number, Text: text, Language: f.language, Turn: state})
	case text != "" && text != f.told:
		f.recognition.Tell(ai.Transcript{Utterance: f.number, Text: text})
	}
	f.told = text
}

// words stores the words of the current turn. If the vendor doesn't say when a word began, it is taken to have begun
// with the latest sound.
func (f *flux) words(m *turnInfo) {
	words := m.Words
	if len(words) == 0 {
		for _, w := range strings.Fields(m.Transcript) {
			words = append(words, fluxWord{Word: w})
		}
	}
	f.turn = f.turn[:min(len(f.turn), len(words))]
	for i, w := range words {
		t := timed{w.Word, f.heard}
		if i < len(f.turn) {
			t.at = f.turn[i].at
		} else {
			f.turn = append(f.turn, t)
		}
		if w.Start != nil {
			t.at = *w.Start
		}
		f.turn[i] = t
	}
}

// until is the end of the oldest utterance. Words that began later don't belong to it.
func (f *flux) until() float64 {
	if len(f.ends) == 0 {
		return math.Inf(1)
	}
	return f.ends[0].at
}

// text is the text of the oldest utterance.
func (f *flux) text(until float64) string {
	var words []string
	for _, w := range append(slices.Clone(f.past), f.turn[min(f.taken, len(f.turn)):]...) {
		if w.at < until {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// answer reports the final texts of the utterances that are complete, or that Flux will say no more about.
func (f *flux) answer(now time.Time) {
	for len(f.ends) > 0 {
		end := f.ends[0]
		text := f.text(end.at)
		// Flux reported the end of the turn, and has heard nothing since.
		done := text != "" && (f.state == "" || f.state == ai.TurnEager)
		if f.heard < end.at-slop && !done && now.Sub(end.asked) < unsettled {
			return
		}
		t := ai.Transcript{Utterance: f.number, Text: text, Language: f.language, Final: true, Err: end.lost}
		if t.Err != nil {
			t.Text, t.Language = "", ""
		}
		f.recognition.Tell(t)
		before := func(w timed) bool { return w.at < end.at }
		f.past = slices.DeleteFunc(f.past, before)
		for f.taken < len(f.turn) && before(f.turn[f.taken]) {
			f.taken++
		}
		f.ends = slices.Delete(f.ends, 0, 1)
		f.number++
		f.told = ""
	}
}

// Tick implements wire.Protocol. The socket's pings keep it alive while there is no sound at all.
func (f *flux) Tick(now time.Time) (time.Duration, error) {
	f.answer(now)
	if len(f.ends) == 0 {
		return idle, nil
	}
	if now.Sub(f.lastSent) >= pause {
		if err := f.Sound(make([]byte, 2*int(f.rate)/10)); err != nil {
			return 0, err
		}
	}
	return pause, nil
}

// Waits implements wire.Protocol.
func (f *flux) Waits() (int, bool) { return f.number, len(f.ends) > 0 }

// Bye implements wire.Protocol.
func (f *flux) Bye() { _ = f.conn.Send(control{"CloseStream"}) }
