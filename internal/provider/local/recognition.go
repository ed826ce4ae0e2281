package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/crash"
)

const (
	// tapeTime is how far the decoder may be behind who speaks. It covers the loading of the model, and a busy machine.
	tapeTime     = 10 * time.Second
	chunkTime    = 100 * time.Millisecond // of sound that is decoded at once: so often the text may change
	maxUtterance = 60 * time.Second       // what is said beyond that is not heard
)

// sphinxRecognition keeps what it is told on a tape; its goroutine has it decoded.
type sphinxRecognition struct {
	s      *Sphinx
	cancel context.CancelFunc
	out    chan ai.Transcript
	done   chan struct{}
	tape   *audio.Tape

	// The goroutine's own.
	resample *audio.Resampler // nil at 16 kHz
	wide     []int16
}

func newSphinxRecognition(s *Sphinx, h ai.Hearing) *sphinxRecognition {
	e := &sphinxRecognition{s: s, out: make(chan ai.Transcript, 8), done: make(chan struct{}),
		tape: audio.NewTape(h.Rate, tapeTime, chunkTime, maxUtterance)}
	if h.Rate == audio.Narrow {
		e.resample = audio.NewMirrorResampler()
	}
	return e
}

// Write implements ai.Ear.
func (e *sphinxRecognition) Write(pcm []int16) { e.tape.Write(pcm) }

// End implements ai.Ear.
func (e *sphinxRecognition) End() { e.tape.End() }

// Continuous implements ai.Ear.
func (e *sphinxRecognition) Continuous() bool { return false }

// Transcripts implements ai.Ear.
func (e *sphinxRecognition) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Ear.
func (e *sphinxRecognition) Close() {
	e.cancel()
	<-e.done
}

// run decodes utterance after utterance until ctx ends.
func (e *sphinxRecognition) run(ctx context.Context) {
	defer close(e.done)
	defer close(e.out)
	defer e.s.leave(e)
	if n, err := e.s.start(); err == nil {
		_ = n.wait(ctx) // the first utterance will find it ready, or ask again
	}
	for number := 0; ctx.Err() == nil; number++ {
		var text string
		err := crash.Run(func() (err error) { text, err = e.utterance(ctx, number); return err })
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
func (e *sphinxRecognition) utterance(ctx context.Context, number int) (text string, err error) {
	var d *decoder
	defer func() {
		if d != nil {
			e.s.drop(d)
		}
	}()
	var chunk []int16
	told := ""
	for {
		p, ok := e.tape.Next(chunk[:0])
		chunk = p.PCM
		if !ok {
			select {
			case <-e.tape.Wake():
				continue
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		if d == nil && err == nil && len(p.PCM) > 0 {
			d, err = e.s.take(ctx, e)
		}
		if d != nil && (len(p.PCM) > 0 || p.End) {
			kind := byte(soundGoesOn)
			if p.End {
				kind = soundEnds
			}
			if text, err = d.hear(ctx, kind, e.widen(p.PCM)); err != nil {
				e.s.drop(d)
				d = nil
			}
		}
		if !p.End {
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
		return text, errorOf(err, p.Lost)
	}
}

// errorOf is an utterance's *ai.Error. It says that the failure is this server's, not a provider's.
func errorOf(err error, lost int) error {
	if err == nil && lost > 0 {
		err = &ai.Error{Kind: ai.Overloaded, Err: fmt.Errorf("the recognizer was more than %v behind", tapeTime)}
	}
	if err == nil {
		return nil
	}
	own := ai.Error{Kind: ai.Interrupted, Err: err}
	if e, ok := errors.AsType[*ai.Error](err); ok {
		own = *e
	}
	if own.Mend == "" {
		own.Mend = "This server's own recognizer failed: " + cmp.Or(mends[own.Kind], "the operator finds the reason in the log.")
	}
	return &own
}

// mends says what can be done about each kind of failure.
var mends = map[ai.Kind]string{
	ai.Overloaded: "the machine is too slow for the calls that it has. " +
		"Choose another transcriber, or ask this server's operator for a larger machine.",
	ai.Unreachable: "its process can't be started. Choose another transcriber, or ask this server's operator to look into the log.",
	ai.Interrupted: "its process has ended. If that goes on, choose another transcriber, or ask this server's operator to look into the " +
		"log.",
	ai.Stalled: "it said nothing for too long. If that goes on, choose another transcriber, or ask this server's operator for a larger " +
		"machine.",
	ai.Config: "it can't be loaded. Choose another transcriber, or ask this server's operator ('parley doctor' says what is wrong).",
}

func (e *sphinxRecognition) widen(pcm []int16) []int16 {
	if e.resample == nil {
		return pcm
	}
	e.wide = e.resample.Resample(e.wide[:0], pcm)
	return e.wide
}

// tell hands on a transcript, and says whether the recognizer is still open.
func (e *sphinxRecognition) tell(ctx context.Context, t ai.Transcript) bool {
	select {
	case e.out <- t:
		return true
	case <-ctx.Done():
		return false
	}
}
