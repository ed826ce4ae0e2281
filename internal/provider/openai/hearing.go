package openai

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

const (
	// maxUtterance is how much of an utterance is kept; what is said beyond that is not heard.
	maxUtterance = 60 * time.Second
	// minUtterance is what servers take at least; of less nothing can be understood.
	minUtterance = 100 * time.Millisecond
	// faint is the loudest sample of what is silence: models make words out of it.
	faint = 64
	// maxWaiting is how many utterances may wait for the server; of a caller who is so far ahead no more is taken.
	maxWaiting = 8
)

// Recognizer is one of the server's transcription models; whether there is such a one shows when it is asked. Each utterance is sent when it
// is over, one after the other; there are no earlier transcripts than the model's answer.
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
func (r *recognizer) Listen(ctx context.Context, h ai.Hearing) (ai.Ear, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &ear{r: r, h: h, cancel: cancel, limit: int(maxUtterance/time.Second) * int(h.Rate),
		wake: make(chan struct{}, 1), out: make(chan ai.Transcript), done: make(chan struct{})}
	if _, err := audio.NewResampler(int(h.Rate), int(audio.Wide)); err != nil {
		cancel()
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	go e.run(ctx)
	return e, nil
}

// ear collects utterances; its goroutine has them transcribed.
type ear struct {
	r      *recognizer
	h      ai.Hearing
	cancel context.CancelFunc
	limit  int // samples of an utterance
	wake   chan struct{}
	out    chan ai.Transcript
	done   chan struct{}

	number int     // of the present utterance
	pcm    []int16 // its sound

	mu      sync.Mutex
	closed  bool
	waiting []utterance
	spare   [][]int16 // buffers of utterances that are done with
}

type utterance struct {
	number int
	pcm    []int16
	lost   bool
}

// Write implements ai.Ear. It allocates only while an utterance grows longer than those before.
func (e *ear) Write(pcm []int16) {
	if n := min(len(pcm), e.limit-len(e.pcm)); n > 0 {
		e.pcm = append(e.pcm, pcm[:n]...)
	}
}

// End implements ai.Ear.
func (e *ear) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	u := utterance{number: e.number, pcm: e.pcm, lost: len(e.waiting) >= maxWaiting}
	e.number++
	e.pcm = nil
	if u.lost {
		e.pcm, u.pcm = u.pcm[:0], nil
	} else if n := len(e.spare); n > 0 {
		e.pcm, e.spare = e.spare[n-1][:0], e.spare[:n-1]
	}
	e.waiting = append(e.waiting, u)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Transcripts implements ai.Ear.
func (e *ear) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Ear.
func (e *ear) Close() {
	e.cancel()
	<-e.done
}

func (e *ear) run(ctx context.Context) {
	defer close(e.done)
	defer close(e.out)
	defer func() {
		e.mu.Lock()
		e.closed = true
		e.mu.Unlock()
	}()
	for {
		u, ok := e.next()
		if !ok {
			select {
			case <-e.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		t := ai.Transcript{Utterance: u.number, Final: true}
		if u.lost {
			t.Err = &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("%d utterances wait for their transcripts", maxWaiting)}
		} else {
			partial := func(text string) error {
				return e.tell(ctx, ai.Transcript{Utterance: u.number, Text: text})
			}
			if t.Text, t.Err = e.r.transcribe(ctx, e.h, u.pcm, partial); t.Err != nil {
				t.Text = ""
			}
		}
		e.mu.Lock()
		if len(e.spare) < 2 && u.pcm != nil {
			e.spare = append(e.spare, u.pcm)
		}
		e.mu.Unlock()
		if e.tell(ctx, t) != nil {
			return
		}
	}
}

func (e *ear) next() (utterance, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return utterance{}, false
	}
	u := e.waiting[0]
	e.waiting = slices.Delete(e.waiting, 0, 1)
	return u, true
}

// tell hands on a transcript, unless the ear has closed meanwhile.
func (e *ear) tell(ctx context.Context, t ai.Transcript) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case e.out <- t:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
