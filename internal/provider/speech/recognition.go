package speech

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/wire"
)

// Dialect is a vendor's protocol for listening to utterances: it is sent audio, and asked for its text when an
// utterance is over. Its methods may be called by many goroutines at once.
type Dialect interface {
	// Dial opens a session, whose errors are *ai.Error, unless ctx has ended.
	Dial(ctx context.Context, h ai.Hearing) (*wire.Conn, error)
	// Sound sends sound: samples of 16 bits, the lower octet first.
	Sound(c *wire.Conn, raw []byte, h ai.Hearing) error
	// Ask asks for the text of all that was sent since it asked last.
	Ask(c *wire.Conn, h ai.Hearing) error
	// Keep keeps an idle session alive.
	Keep(c *wire.Conn, h ai.Hearing) error
	// Bye says goodbye.
	Bye(c *wire.Conn)
	// Read reads a message.
	Read(raw []byte) (Understood, error)
}

// Understood is what a vendor says about the audio that it was sent.
type Understood struct {
	Text string
	// Fixed means that Text is appended to the utterance. Otherwise it is a guess about what follows the fixed text.
	Fixed bool
	// Answered means that this was the whole response to Ask.
	Answered bool
	// Language is in which it was said, ISO 639-1, with Answered; "" where nobody tells.
	Language string
}

// Listening says how to listen with a Dialect.
type Listening struct {
	// Shortest is the least sound of an utterance. Silence is added to a shorter one.
	Shortest time.Duration
	// Keep is how often an idle session gets a sign of life.
	Keep time.Duration
}

const (
	pieceTime  = 100 * time.Millisecond // of sound that is sent at once
	answerTime = 8 * time.Second        // for a text: then the session has stalled
)

// Listen opens a recognizer that speaks a Dialect.
func Listen(ctx context.Context, d Dialect, l Listening, h ai.Hearing) (ai.Recognition, error) {
	return Open(ctx, h, wire.RecognitionOptions{Piece: pieceTime},
		func(ctx context.Context) (*wire.Conn, error) { return d.Dial(ctx, h) },
		func(c *wire.Conn, e *wire.Recognition) wire.Protocol {
			return &asking{d: d, l: l, h: h, conn: c, recognition: e, open: []*utterance{{}}, said: time.Now()}
		})
}

// Open opens a recognizer with a protocol of its own. It connects at once, so that a wrong key is noticed before anybody
// speaks.
func Open(ctx context.Context, h ai.Hearing, o wire.RecognitionOptions, dial func(context.Context) (*wire.Conn, error),
	protocol func(*wire.Conn, *wire.Recognition) wire.Protocol) (ai.Recognition, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if h.Rate != audio.Narrow && h.Rate != audio.Wide {
		return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("hear at %d Hz: calls have 8000 or 16000", h.Rate)}
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	o.Rate = h.Rate
	return wire.NewRecognition(ctx, conn, o, func(e *wire.Recognition) wire.Protocol { return protocol(conn, e) }), nil
}

// asking uses a Dialect for a recognizer. Each response belongs to the oldest utterance that was sent and has no final text.
type asking struct {
	d           Dialect
	l           Listening
	h           ai.Hearing
	conn        *wire.Conn
	recognition *wire.Recognition

	said   time.Time // when something was sent last
	number int       // of the oldest utterance that is open
	open   []*utterance
}

// utterance is one without a final text. If the last one is open, it has not ended yet.
type utterance struct {
	sent  int // octets
	ended bool
	asked time.Time
	lost  error
	text  string // what is fixed
}

// Sound implements wire.Protocol.
func (a *asking) Sound(raw []byte) error {
	a.open[len(a.open)-1].sent += len(raw)
	a.said = time.Now()
	return a.d.Sound(a.conn, raw, a.h)
}

// End implements wire.Protocol.
func (a *asking) End(lost error) error {
	u := a.open[len(a.open)-1]
	if u.sent > 0 {
		if short := 2*int(a.l.Shortest*time.Duration(a.h.Rate)/time.Second) - u.sent; short > 0 {
			if err := a.Sound(make([]byte, short)); err != nil {
				return err
			}
		}
		if err := a.d.Ask(a.conn, a.h); err != nil {
			return err
		}
	}
	u.ended, u.asked, u.lost, a.said = true, time.Now(), lost, time.Now()
	a.open = append(a.open, &utterance{})
	return nil
}

// Message implements wire.Protocol.
func (a *asking) Message(data []byte, _ bool) error {
	t, err := a.d.Read(data)
	if err != nil {
		if ai.KindOf(err) == "" {
			err = &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("%w in a message of %d octets", err, len(data))}
		}
		return err
	}
	a.settle()
	u := a.open[0]
	if u.sent == 0 || t.Text == "" && !t.Answered { // nothing, or of sound that nobody asked for
		return nil
	}
	text := u.text + t.Text
	if t.Fixed {
		u.text = text
	}
	if t.Answered && u.ended {
		a.finish(u.text, t.Language)
	} else if text = strings.TrimSpace(text); text != "" {
		a.recognition.Tell(ai.Transcript{Utterance: a.number, Text: text})
	}
	return nil
}

// settle finishes utterances without any sound.
func (a *asking) settle() {
	for u := a.open[0]; u.ended && u.sent == 0; u = a.open[0] {
		a.finish("", "")
	}
}

// finish tells the final text of the oldest utterance.
func (a *asking) finish(text, language string) {
	u := a.open[0]
	t := ai.Transcript{Utterance: a.number, Text: strings.TrimSpace(text), Language: language, Final: true, Err: u.lost}
	if t.Err != nil {
		t.Text, t.Language = "", ""
	}
	a.recognition.Tell(t)
	a.open = slices.Delete(a.open, 0, 1)
	a.number++
}

// Tick implements wire.Protocol.
func (a *asking) Tick(now time.Time) (time.Duration, error) {
	a.settle()
	next := a.l.Keep - now.Sub(a.said)
	if next <= 0 {
		a.said, next = now, a.l.Keep
		if err := a.d.Keep(a.conn, a.h); err != nil {
			return 0, err
		}
	}
	if u := a.open[0]; u.ended {
		left := answerTime - now.Sub(u.asked)
		if left <= 0 {
			return 0, &ai.Error{Kind: ai.Stalled, Err: errStalled}
		}
		next = min(next, left)
	}
	return next, nil
}

// Waits implements wire.Protocol.
func (a *asking) Waits() (int, bool) { return a.number, a.open[0].ended }

// Bye implements wire.Protocol.
func (a *asking) Bye() { a.d.Bye(a.conn) }
