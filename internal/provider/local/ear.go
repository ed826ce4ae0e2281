package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

const (
	// ringTime is how far the decoder may be behind who speaks. It covers the loading of the model, and a busy machine.
	ringTime     = 10 * time.Second
	chunkTime    = 100 * time.Millisecond // of sound that is decoded at once: so often the text may change
	maxUtterance = 60 * time.Second       // what is said beyond that is not heard
)

// sphinxEar keeps what it is told in a ring; its goroutine has it decoded.
type sphinxEar struct {
	s      *Sphinx
	cancel context.CancelFunc
	out    chan ai.Transcript
	done   chan struct{}
	wake   chan struct{}
	chunk  int // samples

	mu      sync.Mutex
	ring    []int16
	written int64 // samples, of all utterances
	read    int64
	lost    bool // a part of the present utterance did not fit
	ends    []utteranceEnd

	// The goroutine's own.
	resample *audio.Resampler // nil at 16 kHz
	wide     []int16
}

type utteranceEnd struct {
	at   int64 // of written
	lost bool
}

func newSphinxEar(s *Sphinx, h ai.Hearing) *sphinxEar {
	e := &sphinxEar{s: s, out: make(chan ai.Transcript, 8), done: make(chan struct{}), wake: make(chan struct{}, 1),
		chunk: int(chunkTime * time.Duration(h.Rate) / time.Second),
		ring:  make([]int16, int(ringTime*time.Duration(h.Rate)/time.Second)), ends: make([]utteranceEnd, 0, 16)}
	if h.Rate == audio.Narrow {
		e.resample = audio.NewMirrorResampler()
	}
	return e
}

// Write implements ai.Ear.
func (e *sphinxEar) Write(pcm []int16) {
	e.mu.Lock()
	if free := len(e.ring) - int(e.written-e.read); len(pcm) > free {
		pcm, e.lost = pcm[:free], true
	}
	at := int(e.written % int64(len(e.ring)))
	n := copy(e.ring[at:], pcm)
	copy(e.ring, pcm[n:])
	e.written += int64(len(pcm))
	enough := int(e.written-e.read) >= e.chunk
	e.mu.Unlock()
	if enough {
		e.nudge()
	}
}

// End implements ai.Ear.
func (e *sphinxEar) End() {
	e.mu.Lock()
	e.ends = append(e.ends, utteranceEnd{e.written, e.lost})
	e.lost = false
	e.mu.Unlock()
	e.nudge()
}

func (e *sphinxEar) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Continuous implements ai.Ear.
func (e *sphinxEar) Continuous() bool { return false }

// Transcripts implements ai.Ear.
func (e *sphinxEar) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Ear.
func (e *sphinxEar) Close() {
	e.cancel()
	<-e.done
}

// next copies the next chunk of the present utterance to dst; end is not nil when it is the last. Without either
// there is nothing yet.
func (e *sphinxEar) next(dst []int16) (pcm []int16, end *utteranceEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	have := int(e.written - e.read)
	if len(e.ends) > 0 {
		have = int(e.ends[0].at - e.read)
	} else if have < e.chunk {
		return nil, nil
	}
	n := min(have, e.chunk)
	at := int(e.read % int64(len(e.ring)))
	dst = append(dst, e.ring[at:min(at+n, len(e.ring))]...)
	dst = append(dst, e.ring[:n-len(dst)]...)
	e.read += int64(n)
	if n == have && len(e.ends) > 0 {
		last := e.ends[0]
		e.ends = e.ends[:copy(e.ends, e.ends[1:])]
		return dst, &last
	}
	return dst, nil
}

// run decodes utterance after utterance until ctx ends.
func (e *sphinxEar) run(ctx context.Context) {
	defer close(e.done)
	defer close(e.out)
	defer e.s.leave(e)
	if n, err := e.s.start(); err == nil {
		_ = n.wait(ctx) // the first utterance will find it ready, or ask again
	}
	for number := 0; ctx.Err() == nil; number++ {
		text, err := e.utterance(ctx, number)
		if ctx.Err() != nil {
			return
		}
		t := ai.Transcript{Utterance: number, Text: text, Final: true}
		if err != nil {
			t.Text, t.Err = "", err
		}
		if !e.tell(ctx, t) {
			return
		}
	}
}

// utterance decodes one utterance as it comes, and returns its text.
func (e *sphinxEar) utterance(ctx context.Context, number int) (text string, err error) {
	var d *decoder
	defer func() {
		if d != nil {
			e.s.drop(d)
		}
	}()
	chunk := make([]int16, 0, e.chunk)
	heard, told := 0, ""
	for {
		pcm, end := e.next(chunk[:0])
		if pcm == nil && end == nil {
			select {
			case <-e.wake:
				continue
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		if heard += len(pcm); heard > e.chunk*int(maxUtterance/chunkTime) {
			pcm = nil
		}
		if d == nil && err == nil && len(pcm) > 0 {
			d, err = e.s.take(ctx, e)
		}
		if d != nil && (len(pcm) > 0 || end != nil) {
			kind := byte(soundGoesOn)
			if end != nil {
				kind = soundEnds
			}
			if text, err = d.hear(ctx, kind, e.widen(pcm)); err != nil {
				e.s.drop(d)
				d = nil
			}
		}
		if end == nil {
			if err == nil && text != told && text != "" {
				told = text
				e.tell(ctx, ai.Transcript{Utterance: number, Text: text})
			}
			continue
		}
		if d != nil {
			e.s.park(e, d)
			d = nil
		}
		return text, e.errorOf(err, end)
	}
}

// errorOf is an utterance's *ai.Error.
func (e *sphinxEar) errorOf(err error, end *utteranceEnd) error {
	if err != nil {
		if _, ok := errors.AsType[*ai.Error](err); !ok {
			err = &ai.Error{Kind: ai.Interrupted, Err: err}
		}
		return err
	}
	if end.lost {
		return &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("the recognizer was more than %v behind", ringTime)}
	}
	return nil
}

func (e *sphinxEar) widen(pcm []int16) []int16 {
	if e.resample == nil {
		return pcm
	}
	e.wide = e.resample.Resample(e.wide[:0], pcm)
	return e.wide
}

// tell hands on a transcript, and says whether the ear is still open.
func (e *sphinxEar) tell(ctx context.Context, t ai.Transcript) bool {
	select {
	case e.out <- t:
		return true
	case <-ctx.Done():
		return false
	}
}
