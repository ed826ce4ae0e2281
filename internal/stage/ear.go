package stage

import (
	"context"
	"strings"
	"sync"

	"parley/internal/ai"
)

// Tell has the ears that listen on the stage understand words: those that the caller is about to say. The first ear
// understands what was told before it was there.
func (s *Stage) Tell(words string) {
	s.mu.Lock()
	if s.Told && !s.heard { // who is called speaks as soon as they answer
		s.early = more(s.early, words, mostEarly)
	}
	ears := make([]*ear, 0, len(s.ears))
	for e := range s.ears {
		ears = append(ears, e)
	}
	s.mu.Unlock()
	for _, e := range ears {
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
func (r recognizer) Listen(ctx context.Context, _ ai.Hearing) (ai.Ear, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	e := &ear{stage: r.Stage, out: make(chan ai.Transcript, 64)}
	r.mu.Lock()
	early := r.early
	r.ears[e], r.early, r.heard = struct{}{}, "", true
	r.mu.Unlock()
	if early != "" {
		e.tell(early)
	}
	e.stop = context.AfterFunc(ctx, e.close)
	return e, nil
}

// ear understands what it is told. The words of an utterance are those that were told since the last one ended.
type ear struct {
	stage *Stage
	stop  func() bool

	mu        sync.Mutex
	out       chan ai.Transcript
	closed    bool
	words     string
	utterance int
}

func (e *ear) tell(words string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.words = more(e.words, words, mostWords)
	e.send(ai.Transcript{Utterance: e.utterance, Text: e.words})
}

// send drops what nobody takes. Half of the room is for final texts: those are as many as utterances.
func (e *ear) send(t ai.Transcript) {
	if !t.Final && len(e.out) > cap(e.out)/2 {
		return
	}
	select {
	case e.out <- t:
	default:
	}
}

// Write implements ai.Ear.
func (e *ear) Write([]int16) {}

// End implements ai.Ear.
func (e *ear) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.send(ai.Transcript{Utterance: e.utterance, Text: e.words, Final: true})
	e.words = ""
	e.utterance++
}

// Continuous implements ai.Ear.
func (e *ear) Continuous() bool { return false }

// Transcripts implements ai.Ear.
func (e *ear) Transcripts() <-chan ai.Transcript { return e.out }

// Close implements ai.Ear.
func (e *ear) Close() {
	e.stop()
	e.close()
}

func (e *ear) close() {
	e.stage.mu.Lock()
	delete(e.stage.ears, e)
	e.stage.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		close(e.out)
	}
}
