package deepgram

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

const (
	// keepAlive is the time between two KeepAlive messages while nobody speaks. Deepgram closes a socket after 10 s
	// without a message (1011, NET-0001).
	keepAlive = 4 * time.Second
	// settled is how long to wait for the response to Finalize when all known words are final. According to Deepgram
	// there is usually a response, but not always.
	settled = time.Second
	// unsettled is how long to wait otherwise. After that, the words known so far are the text.
	unsettled = 4 * time.Second
	// slop is how far Deepgram's clock may differ from ours, in seconds.
	slop = 0.04
)

// results is a message of /v1/listen, with the fields that are used here.
type results struct {
	Type string `json:"type"`

	// Results
	Start    float64 `json:"start"`
	Duration float64 `json:"duration"`
	IsFinal  bool    `json:"is_final"`
	// Channel is an object in Results, and a list of numbers elsewhere.
	Channel      json.RawMessage `json:"channel"`
	FromFinalize bool            `json:"from_finalize"`

	// Error
	Description string `json:"description"`
	Code        string `json:"code"`
}

// channel is what was understood in a piece of the stream.
type channel struct {
	Alternatives []struct {
		Transcript string `json:"transcript"`
		// with language=multi, where the vendor is certain
		Languages []string `json:"languages"`
		Words     []struct {
			Language string `json:"language"`
		} `json:"words"`
	} `json:"alternatives"`
}

// tongues counts the words of each language.
type tongues map[string]int

// add counts the words of a piece.
func (t *tongues) add(c *channel) {
	if len(c.Alternatives) == 0 {
		return
	}
	if *t == nil {
		*t = tongues{}
	}
	a, known := &c.Alternatives[0], false
	for _, w := range a.Words {
		if w.Language != "" {
			(*t)[base(w.Language)]++
			known = true
		}
	}
	if !known && len(a.Languages) > 0 { // the most spoken one is the first
		(*t)[base(a.Languages[0])] += max(len(a.Words), 1)
	}
}

// most is the language of most words, "" if none is known.
func (t tongues) most() (language string) {
	for l, n := range t {
		if n > t[language] || n == t[language] && l < language {
			language = l
		}
	}
	return language
}

// base is a language without its country: en for en-US.
func base(tag string) string {
	tag, _, _ = strings.Cut(tag, "-")
	return tag
}

// nova speaks the protocol of /v1/listen. All utterances are sent as one continuous stream of sound. Each response says
// which part of the stream it belongs to.
type nova struct {
	conn        *wire.Conn
	recognition *wire.Recognition
	rate        float64

	sent     int // samples
	lastSent time.Time
	done     float64 // where the last utterance ends whose text was told, in seconds of the stream
	number   int     // of the oldest utterance that is open
	open     []*spoken
	told     string // of the oldest, as a transcript that is not final
}

// spoken is an utterance whose text is not final. If the last one is open, it has not ended yet.
type spoken struct {
	ended     bool
	end       float64   // where, in seconds of the stream
	asked     time.Time // when it was asked to be finished
	lost      error
	pieces    []string // final ones
	interim   string
	languages tongues // of the pieces
	covered   float64 // how far the vendor has heard it
	whole     bool    // all of it is final
}

func newNova(conn *wire.Conn, recognition *wire.Recognition, rate audio.Rate) *nova {
	return &nova{conn: conn, recognition: recognition, rate: float64(rate), lastSent: time.Now(), open: []*spoken{{}}}
}

// Sound implements wire.Protocol.
func (n *nova) Sound(raw []byte) error {
	n.sent += len(raw) / 2
	n.lastSent = time.Now()
	return n.conn.SendBinary(raw)
}

// End implements wire.Protocol.
func (n *nova) End(lost error) error {
	u := n.open[len(n.open)-1]
	u.ended, u.end, u.asked, u.lost = true, float64(n.sent)/n.rate, time.Now(), lost
	began := n.done
	if len(n.open) > 1 {
		began = n.open[len(n.open)-2].end
	}
	u.whole = u.end == began // nothing at all
	n.open = append(n.open, &spoken{})
	if u.whole {
		return nil
	}
	n.lastSent = u.asked
	return n.conn.Send(control{"Finalize"})
}

type control struct {
	Type string `json:"type"`
}

// Message implements wire.Protocol.
func (n *nova) Message(data []byte, _ bool) error {
	var m results
	if err := json.Unmarshal(data, &m); err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	switch m.Type {
	case "Results":
		var c channel
		if err := json.Unmarshal(m.Channel, &c); err != nil {
			return &ai.Error{Kind: ai.Malformed, Err: err}
		}
		text := ""
		if len(c.Alternatives) > 0 {
			text = strings.TrimSpace(c.Alternatives[0].Transcript)
		}
		n.result(&m, text, &c)
	case "Error": // documented for Flux alone; here they come as closes
		return &ai.Error{Kind: ai.Interrupted, Err: fmt.Errorf("%s: %.300q", m.Code, m.Description)}
	} // Metadata, SpeechStarted and UtteranceEnd tell nothing that is asked for
	return nil
}

// result adds a piece of text to its utterance, which is found by the middle of the piece: its ends are only as precise
// as Deepgram's frames.
func (n *nova) result(m *results, text string, c *channel) {
	end := m.Start + m.Duration
	middle := m.Start + m.Duration/2
	if end <= n.done+slop { // of one that was answered for without it
		return
	}
	i := 0
	for i < len(n.open)-1 && middle > n.open[i].end+slop {
		i++
	}
	u := n.open[i]
	u.covered, u.interim = max(u.covered, end), text
	if m.IsFinal {
		u.interim = ""
		if text != "" {
			u.pieces = append(u.pieces, text)
			u.languages.add(c)
		}
	}
	u.whole = u.whole || u.ended && m.IsFinal && (m.FromFinalize || end >= u.end-slop)
	if i == 0 && !u.whole {
		n.tell(u)
	}
}

func (u *spoken) text() string {
	if u.interim == "" {
		return strings.Join(u.pieces, " ")
	}
	return strings.Join(append(slices.Clone(u.pieces), u.interim), " ")
}

// tell reports the text so far.
func (n *nova) tell(u *spoken) {
	if text := u.text(); text != n.told && text != "" {
		n.told = text
		n.recognition.Tell(ai.Transcript{Utterance: n.number, Text: text})
	}
}

// Tick implements wire.Protocol.
func (n *nova) Tick(now time.Time) (time.Duration, error) {
	for u := n.open[0]; u.ended && (u.whole || n.patience(u, now) <= 0); u = n.open[0] {
		t := ai.Transcript{Utterance: n.number, Text: u.text(), Language: u.languages.most(), Final: true, Err: u.lost}
		if t.Err != nil {
			t.Text, t.Language = "", ""
		}
		n.recognition.Tell(t)
		n.done, n.told = u.end, ""
		n.open = slices.Delete(n.open, 0, 1)
		n.number++
		n.tell(n.open[0])
	}
	next := keepAlive - now.Sub(n.lastSent)
	if next <= 0 {
		n.lastSent, next = now, keepAlive
		if err := n.conn.Send(control{"KeepAlive"}); err != nil {
			return 0, err
		}
	}
	if u := n.open[0]; u.ended {
		next = min(next, n.patience(u, now))
	}
	return max(next, time.Millisecond), nil
}

// patience is how much longer to wait for an utterance's text.
func (n *nova) patience(u *spoken, now time.Time) time.Duration {
	wait := unsettled
	if u.interim == "" && u.covered > u.end-1 {
		wait = settled // the vendor hears in steps of a second at most
	}
	return wait - now.Sub(u.asked)
}

// Waits implements wire.Protocol.
func (n *nova) Waits() (int, bool) { return n.number, n.open[0].ended }

// Bye implements wire.Protocol.
func (n *nova) Bye() { _ = n.conn.Send(control{"CloseStream"}) }
