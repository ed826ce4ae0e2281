package voice

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/turn"
)

// recognition understands a guest. The guest's leg gives it frames; it finds what is said by silences.
type recognition struct {
	ai.Recognition
	r        *run
	detector Detector
	before   [preroll / audio.FrameTime][audio.MaxFrame]int16 // the newest frames
	frames   int                                              // so far

	speaking bool
	overrule bool // the assistant is to give way
	voiced   int  // frames of the phrase
	quiet    int  // since the last of these

	mu      sync.Mutex
	phrases []phrase
}

// phrase is something that a guest says.
type phrase struct {
	from time.Duration
	mode parley.LegMode // when it began

	language string // in which it was said, once that is known
}

const (
	phraseEnd = int(600 * time.Millisecond / audio.FrameTime)
	maxPhrase = int(30 * time.Second / audio.FrameTime)
	// who speaks for so long wants to be listened to
	phraseSure = int(400 * time.Millisecond / audio.FrameTime)
	maxPhrases = 1000 // that wait for their texts: of a recognizer that gives none
)

// listen opens a recognizer for a guest, when the mode is the first that needs one.
func (g *Guest) listen(mode parley.LegMode) error {
	if mode == parley.LegListen || g.recognition.Load() != nil {
		return nil
	}
	r := g.r
	var who Persona
	r.inbox.ask(func() {
		if r.cast != nil {
			who = r.cast.Persona
		}
	})
	if who.Recognizer == nil {
		return errNoRecognizer
	}
	opened, err := who.Recognizer.Listen(r.ctx, ai.Hearing{Language: who.Language, Rate: g.Line.Rate(),
		Keywords: who.Assistant.Keywords})
	if err != nil {
		return fmt.Errorf("listen to who joined the call: %w", ai.TheRecognizer.Of(err))
	}
	e := &recognition{Recognition: opened, r: r}
	if r.Detect != nil {
		e.detector = r.Detect(g.Line.Rate())
	} else {
		e.detector = audio.NewVAD(g.Line.Rate())
	}
	if !g.recognition.CompareAndSwap(nil, e) {
		opened.Close()
		return nil
	}
	r.safely(func() {
		defer e.Close()
		defer context.AfterFunc(r.ctx, e.Close)()
		defer g.recognition.CompareAndSwap(e, nil) // of one that is lost, the next change of mode opens another
		for t := range e.Transcripts() {
			p, ok := e.phrase(t.Utterance)
			if text := spoken(t, who.Language); ok && t.Final && text != "" && p.mode != parley.LegListen {
				p.language = cmp.Or(t.Language, who.Language)
				r.inbox.post(func() { r.said(g, p, text) })
			}
		}
	})
	return nil
}

// spoken is the text of a transcript, "" where it stands for no speech.
func spoken(t ai.Transcript, language string) string {
	if lang.Unspoken(t.Text, language, t.NoSpeech) {
		return ""
	}
	return parley.CleanText(t.Text)
}

// hear takes a frame.
func (e *recognition) hear(f audio.Frame, mode parley.LegMode) {
	speech, voiced := e.detector.Detect(f)
	if !e.speaking && speech && voiced {
		e.speaking, e.overrule, e.voiced = true, mode == parley.LegTalk, 0
		e.mu.Lock()
		if len(e.phrases) < maxPhrases {
			e.phrases = append(e.phrases, phrase{from: e.r.clock.now(), mode: mode})
		}
		e.mu.Unlock()
		if !e.Continuous() {
			for i := range min(e.frames, len(e.before)) {
				at := (e.frames - min(e.frames, len(e.before)) + i) % len(e.before)
				e.Write(e.before[at][:len(f)])
			}
		}
	}
	if e.speaking || e.Continuous() {
		e.Write(f)
	}
	copy(e.before[e.frames%len(e.before)][:], f)
	e.frames++
	if !e.speaking {
		return
	}
	e.quiet++
	if speech && voiced {
		e.voiced++
		e.quiet = 0
	}
	if e.overrule && e.voiced == phraseSure {
		e.overrule = false
		e.r.happens(turn.Event{Kind: turn.Others})
	}
	if e.quiet >= phraseEnd || e.voiced >= maxPhrase {
		e.speaking = false
		e.End()
	}
}

// phrase is the one that an utterance is the text of.
func (e *recognition) phrase(n int) (phrase, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n < 0 || n >= len(e.phrases) {
		return phrase{}, false
	}
	return e.phrases[n], true
}
