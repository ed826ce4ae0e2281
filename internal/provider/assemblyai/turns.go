package assemblyai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

const (
	// settled is how long to wait for the response to ForceEndpoint when nothing was understood. It is not documented
	// whether there is one then.
	settled = time.Second
	// unsettled is how long to wait otherwise, and neat how long to wait for the text with punctuation. After that, the
	// words known so far are the text.
	unsettled = 4 * time.Second
	neat      = 500 * time.Millisecond
	// lapse is how long before its end an idle session is left. The user of the recognizer then opens another one.
	lapse = 5 * time.Minute
)

// message is a message from AssemblyAI, with the fields that are used here.
type message struct {
	Type string `json:"type"`

	// Begin
	ExpiresAt int64 `json:"expires_at"`

	// Turn
	Order      int    `json:"turn_order"`
	Formatted  bool   `json:"turn_is_formatted"`
	End        bool   `json:"end_of_turn"`
	Transcript string `json:"transcript"`
	Language   string `json:"language_code"` // with language_detection, at the end of a turn
	Words      []struct {
		End   int    `json:"end"` // ms of the stream
		Text  string `json:"text"`
		Final bool   `json:"word_is_final"`
	} `json:"words"`

	// Error
	Code  int    `json:"error_code"`
	Error string `json:"error"`
}

func (m *message) failure(begun bool) *ai.Error {
	return &ai.Error{Kind: kindOf(m.Code, begun), Err: fmt.Errorf("%d: %.300q", m.Code, m.Error)}
}

// text is what was understood. During a turn, the transcript holds only words that won't change; the list of words
// holds the others too.
func (m *message) text() string {
	if m.End || len(m.Words) == 0 {
		return strings.TrimSpace(m.Transcript)
	}
	var all []string
	for _, w := range m.Words {
		all = append(all, w.Text)
	}
	return strings.Join(all, " ")
}

// turns speaks the protocol. All utterances are sent as one continuous stream of sound, and each is ended by
// ForceEndpoint. A turn of AssemblyAI's belongs to one utterance. An utterance may have several turns.
type turns struct {
	conn        *wire.Conn
	recognition *wire.Recognition
	rate        int
	ends        time.Time // of the session
	formats     bool      // the end of a turn comes twice

	rest   []byte // too little to be sent
	sent   int    // samples
	number int    // of the oldest utterance that is open
	open   []*spoken
	done   int // the first turn that belongs to none that was answered
}

// spoken is an utterance whose text is not final. If the last one is open, it has not ended yet.
type spoken struct {
	ended    bool
	from, to int       // of the stream, in ms
	asked    time.Time // when it was asked to be finished
	answered time.Time // when it was, without punctuation
	whole    bool
	lost     error
	turns    []turn
	language string // of the latest, if it is known
}

// turn is the text of one of AssemblyAI's turns.
type turn struct {
	order int
	text  string
}

type control struct {
	Type string `json:"type"`
}

// Sound implements wire.Protocol.
func (t *turns) Sound(raw []byte) error {
	t.rest = append(t.rest, raw...)
	if len(t.rest) < 2*t.samples(shortest) {
		return nil
	}
	return t.send()
}

func (t *turns) samples(d time.Duration) int { return int(d * time.Duration(t.rate) / time.Second) }

func (t *turns) send() error {
	t.sent += len(t.rest) / 2
	err := t.conn.SendBinary(t.rest)
	t.rest = t.rest[:0]
	return err
}

// End implements wire.Protocol.
func (t *turns) End(lost error) error {
	if short := 2*t.samples(shortest) - len(t.rest); len(t.rest) > 0 {
		t.rest = append(t.rest, make([]byte, short)...)
		if err := t.send(); err != nil {
			return err
		}
	}
	u := t.open[len(t.open)-1]
	u.ended, u.asked, u.lost, u.to = true, time.Now(), lost, t.sent*1000/t.rate
	t.open = append(t.open, &spoken{from: u.to})
	if u.whole = u.to == u.from; u.whole {
		return nil
	}
	return t.conn.Send(control{"ForceEndpoint"})
}

// Message implements wire.Protocol.
func (t *turns) Message(data []byte, _ bool) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	switch m.Type {
	case "Turn":
		t.understood(&m)
	case "Error":
		return m.failure(true)
	case "Termination": // nobody asked for it
		return &ai.Error{Kind: ai.Interrupted, Err: fmt.Errorf("the session was terminated")}
	} // SpeechStarted, Warning and Heartbeat tell nothing that is asked for
	return nil
}

// understood adds a turn to its utterance.
func (t *turns) understood(m *message) {
	if m.Order < t.done { // of one that was answered for without it
		return
	}
	i := t.of(m)
	u := t.open[i]
	text := m.text()
	if m.Language != "" {
		u.language, _, _ = strings.Cut(m.Language, "-")
	}
	if k := slices.IndexFunc(u.turns, func(o turn) bool { return o.order == m.Order }); k >= 0 {
		u.turns[k].text = text
	} else {
		u.turns = append(u.turns, turn{m.Order, text})
	}
	if m.End && u.ended {
		if m.Formatted || !t.formats {
			u.whole = true
		} else if u.answered.IsZero() {
			u.answered = time.Now()
		}
	}
	if text := u.text(); i == 0 && !u.whole && text != "" {
		t.recognition.Tell(ai.Transcript{Utterance: t.number, Text: text})
	}
}

// of returns the utterance that a turn belongs to: the one that has the turn already, or the one whose sound contains
// the end of its last word.
func (t *turns) of(m *message) int {
	for i, u := range t.open {
		if slices.ContainsFunc(u.turns, func(o turn) bool { return o.order == m.Order }) {
			return i
		}
	}
	if len(m.Words) == 0 {
		return 0
	}
	const slop = 100 // ms by which the vendor's clock may differ
	end := m.Words[len(m.Words)-1].End
	for i, u := range t.open {
		if !u.ended || end <= u.to+slop {
			return i
		}
	}
	return len(t.open) - 1
}

func (u *spoken) text() string {
	var all []string
	for _, o := range u.turns {
		if o.text != "" {
			all = append(all, o.text)
		}
	}
	return strings.Join(all, " ")
}

// patience is how much longer to wait for an utterance's text.
func (u *spoken) patience(now time.Time) time.Duration {
	switch {
	case u.whole:
		return 0
	case !u.answered.IsZero():
		return neat - now.Sub(u.answered)
	case u.text() == "":
		return settled - now.Sub(u.asked)
	}
	return unsettled - now.Sub(u.asked)
}

// Tick implements wire.Protocol.
func (t *turns) Tick(now time.Time) (time.Duration, error) {
	next := time.Hour
	for u := t.open[0]; u.ended; u = t.open[0] {
		if next = u.patience(now); next > 0 {
			break
		}
		r := ai.Transcript{Utterance: t.number, Text: u.text(), Language: u.language, Final: true, Err: u.lost}
		if r.Err != nil {
			r.Text, r.Language = "", ""
		}
		t.recognition.Tell(r)
		for _, o := range u.turns {
			t.done = max(t.done, o.order+1)
		}
		t.open, next = slices.Delete(t.open, 0, 1), time.Hour
		t.number++
		if text := t.open[0].text(); text != "" && !t.open[0].whole {
			t.recognition.Tell(ai.Transcript{Utterance: t.number, Text: text})
		}
	}
	if !t.ends.IsZero() {
		left := t.ends.Sub(now) - lapse
		idle := len(t.open) == 1 && t.sent*1000/t.rate == t.open[0].from && len(t.rest) == 0
		if left <= 0 && idle {
			return 0, wire.ErrClosed
		}
		next = min(next, max(left, time.Second))
	}
	return max(next, time.Millisecond), nil
}

// Waits implements wire.Protocol.
func (t *turns) Waits() (int, bool) { return t.number, t.open[0].ended }

// Bye implements wire.Protocol. A session that is not terminated is charged for until it ends by itself.
func (t *turns) Bye() { _ = t.conn.Send(control{"Terminate"}) }
