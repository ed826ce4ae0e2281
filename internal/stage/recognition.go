package stage

import (
	"context"
	"math"
	"strings"
	"sync"

	"parley/internal/ai"
)

// Tell has the recognizers that listen on the stage understand words: those that the caller is about to say. The first
// one understands what was told before it was there.
func (s *Stage) Tell(words string) {
	s.mu.Lock()
	if s.Told && !s.heard { // who is called speaks as soon as they answer
		s.early = more(s.early, words, maxEarly)
	}
	recognitions := make([]*recognition, 0, len(s.recognitions))
	for e := range s.recognitions {
		recognitions = append(recognitions, e)
	}
	s.mu.Unlock()
	for _, e := range recognitions {
		e.tell(words)
	}
}

// more is a text with words after it, if these find room in so many bytes.
func more(text, words string, most int) string {
	words = strings.Join(strings.Fields(words), " ")
	switch {
	case words == "" || len(text)+1+len(words) > most:
		return text
	case text == "":
		return words
	}
	return text + " " + words
}

// Recognizer understands what is told, without listening.
func (s *Stage) Recognizer() ai.Recognizer { return recognizer{s} }

type recognizer struct{ *Stage }

// Listen implements ai.Recognizer.
func (r recognizer) Listen(ctx context.Context, _ ai.Hearing) (ai.Recognition, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	e := &recognition{stage: r.Stage, out: make(chan ai.Transcript, 64)}
	r.mu.Lock()
	early := r.early
	r.recognitions[e], r.early, r.heard = struct{}{}, "", true
	r.mu.Unlock()
	if early != "" {
		e.tell(early)
	}
	e.stop = context.AfterFunc(ctx, e.close)
	return e, nil
}

// recognition understands what it is told, once it hears a voice: words are told as soon as their sound begins, which is before
// the sound has come this far. Those that nobody has said when an utterance ends belong to the next one.
type recognition struct {
	stage *Stage
	stop  func() bool

	mu        sync.Mutex
	out       chan ai.Transcript
	closed    bool
	told      string // and not heard yet
	words     string // of the utterance
	utterance int
	peak      float64 // dBFS of the loudest voice so far
}

func (e *recognition) tell(words string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.told = more(e.told, words, maxWords)
	}
}

const (
	audible = -50.0 // dBFS: less is no voice
	below   = 15.0  // dB: what is so much fainter than the voice was is the noise behind it
)

// voiced says whether a voice is heard in a sound.
func (e *recognition) voiced(pcm []int16) bool {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	level := 10 * math.Log10(sum/float64(max(1, len(pcm)))/(math.MaxInt16*math.MaxInt16)+1e-12)
	if e.peak == 0 || level > e.peak {
		e.peak = max(level, audible)
	}
	return level > audible && level > e.peak-below
}

// hear makes what was told the words of the utterance.
func (e *recognition) hear() {
	e.words, e.told = more(e.words, e.told, maxWords), ""
}

// send drops what nobody takes. Half of the room is for final texts: those are as many as utterances.
func (e *recognition) send(t ai.Transcript) {
	if !t.Final && len(e.out) > cap(e.out)/2 {
		return
	}
	select {
	case e.out <- t:
	default:
	}
}

// Write implements ai.Recognition.
func (e *recognition) Write(pcm []int16) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if heard := e.voiced(pcm); !heard || e.closed || e.told == "" {
		return
	}
	e.hear()
	e.send(ai.Transcript{Utterance: e.utterance, Text: e.words})
}

// End implements ai.Recognition.
func (e *recognition) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.words == "" { // there was a voice, or it would be no utterance
		e.hear()
	}
	e.send(ai.Transcript{Utterance: e.utterance, Text: e.words, Final: true})
	e.words = ""
	e.utterance++
}

// Continuous implements ai.Recognition.
func (e *recognition) Continuous() bool { return false }

// Transcripts implements ai.Recognition.
func (e *recognition) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Recognition.
func (e *recognition) Close() {
	e.stop()
	e.close()
}

func (e *recognition) close() {
	e.stage.mu.Lock()
	delete(e.stage.recognitions, e)
	e.stage.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		close(e.out)
	}
}
