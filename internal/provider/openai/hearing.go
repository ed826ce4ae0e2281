package openai

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
)

const (
	// maxUtterance is how much of an utterance is kept. The rest is not transcribed.
	maxUtterance = 60 * time.Second
	// minUtterance is the shortest sound that servers accept. Nothing could be understood in less.
	minUtterance = 100 * time.Millisecond
	// faint is the loudest sample that still counts as silence: models invent words for silence.
	faint = 64
	// maxWaiting is how many utterances may wait for the server. Further ones are dropped.
	maxWaiting = 8
)

// Recognizer is one of the server's transcription models. Whether the model exists shows when it is used. Each
// utterance is sent when it has ended, one after the other, so there are no transcripts before the model's response.
func (c *Client) Recognizer(model string) ai.Recognizer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hearers[model] == nil {
		c.hearers[model] = &recognizer{client: c, model: model, refused: map[string]bool{}}
	}
	return c.hearers[model]
}

type recognizer struct {
	client *Client
	model  string

	mu      sync.Mutex
	refused map[string]bool // form fields that the server doesn't take, as it said
}

// Listen implements ai.Recognizer.
func (r *recognizer) Listen(ctx context.Context, h ai.Hearing) (ai.Recognition, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if h.Rate != audio.Narrow && h.Rate != audio.Wide {
		return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("hear at %d Hz: calls have 8000 or 16000", h.Rate)}
	}
	e := &recognition{r: r, h: h, limit: int(maxUtterance/time.Second) * int(h.Rate), out: make(chan ai.Transcript),
		done: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(ctx)
	context.AfterFunc(e.ctx, e.shut)
	return e, nil
}

// recognition collects utterances. While some of them wait for their transcripts, one goroutine requests them.
type recognition struct {
	r      *recognizer
	h      ai.Hearing
	ctx    context.Context
	cancel context.CancelFunc
	limit  int // samples of an utterance
	out    chan ai.Transcript
	done   chan struct{}

	number int   // of the present utterance
	sound  sound // its own

	mu      sync.Mutex
	asking  bool // the goroutine is there
	closed  bool
	waiting []utterance
}

type utterance struct {
	number int
	sound  sound
	lost   bool
}

// Write implements ai.Recognition. It allocates only when more speech is held, over all calls, than ever before.
func (e *recognition) Write(pcm []int16) { e.sound.add(pcm[:min(len(pcm), e.limit-e.sound.n)]) }

// End implements ai.Recognition.
func (e *recognition) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	u := utterance{number: e.number, lost: len(e.waiting) >= maxWaiting}
	e.number++
	if u.lost {
		e.sound.drop()
	} else {
		u.sound, e.sound = e.sound, sound{}
	}
	e.waiting = append(e.waiting, u)
	if !e.asking {
		e.asking = true
		go e.ask()
	}
}

// Continuous implements ai.Recognition.
func (e *recognition) Continuous() bool { return false }

// Transcripts implements ai.Recognition.
func (e *recognition) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Recognition.
func (e *recognition) Close() {
	e.cancel()
	<-e.done
}

// shut is called once, when the context has ended.
func (e *recognition) shut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if !e.asking {
		e.finish()
	}
}

func (e *recognition) finish() {
	close(e.out)
	close(e.done)
}

// ask transcribes the waiting utterances, one after the other.
func (e *recognition) ask() {
	for u, ok := e.next(); ok; u, ok = e.next() {
		t := ai.Transcript{Utterance: u.number, Final: true}
		if u.lost {
			t.Err = &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("%d utterances wait for their transcripts",
				maxWaiting)}
		} else {
			partial := func(text string) error { return e.tell(ai.Transcript{Utterance: u.number, Text: text}) }
			t.Err = crash.Run(func() error {
				said, err := e.r.transcribe(e.ctx, e.h, &u.sound, partial)
				if err == nil {
					t.Text, t.Language = said.text, oneOf(e.h.Language, e.h.Others, codes(said.languages))
					t.NoSpeech = said.noSpeech
				}
				return err
			})
			u.sound.drop()
		}
		_ = e.tell(t) // when nobody wants it any more the others fail at once
	}
}

// next returns the oldest waiting utterance. If there is none, the goroutine ends.
func (e *recognition) next() (utterance, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		e.asking = false
		if e.closed {
			e.finish()
		}
		return utterance{}, false
	}
	u := e.waiting[0]
	e.waiting = slices.Delete(e.waiting, 0, 1)
	return u, true
}

// tell passes on a transcript, unless the recognizer has been closed.
func (e *recognition) tell(t ai.Transcript) error {
	if e.ctx.Err() != nil {
		return context.Cause(e.ctx)
	}
	select {
	case e.out <- t:
		return nil
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
}
