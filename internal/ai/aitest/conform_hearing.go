package aitest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// Heard is the audio with which ConformRecognizer tests a Recognizer.
type Heard struct {
	Language string
	// Texts are three texts that it understands when Sound says them.
	Texts []string
	Sound func(t *testing.T, text string, rate audio.Rate) []int16
	// Same reports whether a transcript matches a text; nil compares letters and digits only.
	Same func(got, want string) bool
}

// ConformRecognizer checks that a Recognizer keeps the promises of ai.Recognizer and ai.Recognition.
func ConformRecognizer(t *testing.T, r ai.Recognizer, h Heard) {
	if h.Same == nil {
		h.Same = func(got, want string) bool { return plain(got) == plain(want) }
	}
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		t.Run(fmt.Sprintf("understands at %d Hz", rate), func(t *testing.T) {
			e := listen(t, r, h, rate)
			for i, text := range h.Texts {
				e.utter(h.Sound(t, text, rate))
				if got := e.final(i); got.Err != nil || !h.Same(got.Text, text) {
					t.Errorf("utterance %d is %q, %v, want %q", i, got.Text, got.Err, text)
				}
			}
		})
	}
	t.Run("understands nothing in silence", func(t *testing.T) {
		e := listen(t, r, h, audio.Narrow)
		e.write(make([]int16, audio.Narrow))
		e.End()
		e.End() // nothing at all
		for i := range 2 {
			if got := e.final(i); got.Text != "" || got.Err != nil {
				t.Errorf("got %+v", got)
			}
		}
	})
	t.Run("hears the next utterance while it finds the text of one", func(t *testing.T) {
		e := listen(t, r, h, audio.Narrow)
		for _, text := range h.Texts {
			e.utter(h.Sound(t, text, audio.Narrow))
		}
		for i, text := range h.Texts {
			if got := e.final(i); got.Err != nil || !h.Same(got.Text, text) {
				t.Errorf("utterance %d is %q, %v, want %q", i, got.Text, got.Err, text)
			}
		}
	})
	t.Run("never makes who writes wait", func(t *testing.T) {
		e := listen(t, r, h, audio.Narrow)
		sound := h.Sound(t, h.Texts[0], audio.Narrow)
		began := time.Now()
		for range 20 { // nobody reads what it says
			e.utter(sound)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		e.Close()
	})
	t.Run("serves many at once", func(t *testing.T) {
		sound := h.Sound(t, h.Texts[0], audio.Narrow)
		var wg sync.WaitGroup
		for range 4 {
			e := listen(t, r, h, audio.Narrow)
			wg.Go(func() {
				e.utter(sound)
				if got := e.final(0); got.Err != nil || !h.Same(got.Text, h.Texts[0]) {
					t.Errorf("got %q, %v", got.Text, got.Err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("finds turns", func(t *testing.T) {
		if e := listen(t, r, h, audio.Narrow); e.Continuous() {
			conformTurns(t, e, h)
		}
	})
	t.Run("closes", func(t *testing.T) { conformClose(t, r, h) })
}

// conformTurns checks that a recognizer that is given all audio finds turns in it, and answers for each End however little
// was said before.
func conformTurns(t *testing.T, e *listening, h Heard) {
	n := 0
	for _, text := range h.Texts {
		e.utter(h.Sound(t, text, audio.Narrow))
		if got := e.final(n); got.Err != nil || !h.Same(got.Text, text) {
			t.Errorf("utterance %d is %q, %v, want %q", n, got.Text, got.Err, text)
		}
		e.write(make([]int16, 6*audio.Narrow)) // longer than any vendor waits for more
		e.End()
		if got := e.final(n + 1); got.Err != nil || got.Text != "" {
			t.Errorf("six seconds of silence are %+v", got)
		}
		e.ended()
		n += 2
	}
	if e.started < len(h.Texts) || e.finished != e.started {
		t.Errorf("of %d turns %d started and %d ended", len(h.Texts), e.started, e.finished)
	}
}

func conformClose(t *testing.T, r ai.Recognizer, h Heard) {
	sound := h.Sound(t, h.Texts[0], audio.Narrow)
	cause := errors.New("the customer hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	//nolint:errorlint // it must come back as it is
	if _, err := r.Listen(ctx, ai.Hearing{Language: h.Language, Rate: audio.Narrow}); err != cause {
		t.Errorf("listen after the end: %v", err)
	}
	for name, begin := range map[string]func(e ai.Recognition){
		"before anything": func(ai.Recognition) {},
		"in mid-speech":   func(e ai.Recognition) { write(e, sound[:len(sound)/2], audio.Narrow) },
		"at the end":      func(e ai.Recognition) { write(e, sound, audio.Narrow); e.End() },
	} {
		for _, how := range []string{"by Close", "by its context"} {
			t.Run(name+" "+how, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				e, err := r.Listen(ctx, ai.Hearing{Language: h.Language, Rate: audio.Narrow})
				if err != nil {
					t.Fatal(err)
				}
				begin(e)
				if how == "by Close" {
					e.Close()
				} else {
					cancel()
				}
				for range e.Transcripts() { // ends
				}
				write(e, sound, audio.Narrow)
				e.End()
				e.Close()
				e.Close()
			})
		}
	}
}

// listening is a recognizer, and what has come from it so far.
type listening struct {
	ai.Recognition
	t    *testing.T
	rate audio.Rate

	turn              ai.Turn
	started, finished int // turns
}

func listen(t *testing.T, r ai.Recognizer, h Heard, rate audio.Rate) *listening {
	t.Helper()
	e, err := r.Listen(t.Context(), ai.Hearing{Language: h.Language, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return &listening{Recognition: e, t: t, rate: rate}
}

// utter plays an utterance to the recognizer as a session does: with the silence around it if the recognizer is given everything.
func (e *listening) utter(pcm []int16) {
	if !e.Continuous() {
		e.write(pcm)
		e.End()
		return
	}
	e.write(make([]int16, e.rate/5))
	e.write(pcm)
	e.write(make([]int16, e.rate/5))
	e.End()
}

// write writes audio in the frames of a call.
func (e *listening) write(pcm []int16) { write(e, pcm, e.rate) }

func write(e ai.Recognition, pcm []int16, rate audio.Rate) {
	for n := rate.FrameSize(); len(pcm) > 0; {
		n = min(n, len(pcm))
		e.Write(pcm[:n])
		pcm = pcm[n:]
	}
}

// final waits for the final transcript of an utterance, and checks the ones before it.
func (e *listening) final(utterance int) (got ai.Transcript) {
	e.t.Helper()
	e.until(fmt.Sprintf("utterance %d to be understood", utterance), func(t ai.Transcript) bool {
		late := t.Turn != "" && t.Text == "" && !t.Final && t.Utterance < utterance
		if t.Utterance != utterance && !late || !t.Final && t.Err != nil || t.Err != nil && ai.KindOf(t.Err) == "" {
			e.t.Errorf("got %+v, want a transcript of utterance %d", t, utterance)
		}
		got = t
		return t.Final
	})
	return got
}

// ended waits for the end of the turn.
func (e *listening) ended() {
	e.t.Helper()
	if e.turn != ai.TurnEnded {
		e.until("the turn to end", func(ai.Transcript) bool { return e.turn == ai.TurnEnded })
	}
}

func (e *listening) until(what string, ok func(ai.Transcript) bool) {
	e.t.Helper()
	guard := time.NewTimer(30 * time.Second)
	defer guard.Stop()
	for {
		select {
		case got, open := <-e.Transcripts():
			if !open {
				e.t.Errorf("the ear closed, waiting for %s", what)
				return
			}
			e.follow(got.Turn)
			if ok(got) {
				return
			}
		case <-guard.C:
			e.t.Errorf("waited for 30 s for %s", what)
			return
		}
	}
}

// follow checks the order in which turn events come.
func (e *listening) follow(next ai.Turn) {
	e.t.Helper()
	was := e.turn
	if next == "" {
		return
	}
	e.turn = next
	ok := false
	switch next {
	case ai.TurnStarted:
		e.started++
		ok = was == "" || was == ai.TurnEnded
	case ai.TurnEager:
		ok = was == ai.TurnStarted || was == ai.TurnResumed
	case ai.TurnResumed:
		ok = was == ai.TurnEager
	case ai.TurnEnded:
		e.finished++
		ok = was != "" && was != ai.TurnEnded
	}
	if !ok {
		e.t.Errorf("of a turn is told %q after %q", next, was)
	}
}

// plain is a text's letters and digits.
func plain(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127) })
	return strings.Join(words, " ")
}
