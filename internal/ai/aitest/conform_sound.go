package aitest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
)

// ConformSynthesizer checks that a Synthesizer keeps what ai.Synthesizer promises; as names a voice of its, and that
// voice's language.
func ConformSynthesizer(t *testing.T, s ai.Synthesizer, as ai.Speech) {
	const sentence = "Thank you for calling the bakery, how can I help you today?"
	say := func(text string, change func(*ai.Speech)) ai.Speech {
		what := as
		what.Text, what.Rate = text, audio.Narrow
		if change != nil {
			change(&what)
		}
		return what
	}
	t.Run("speaks", func(t *testing.T) {
		narrow := heard(t, s, say(sentence, nil))
		wide := heard(t, s, say(sentence, func(w *ai.Speech) { w.Rate = audio.Wide }))
		short := heard(t, s, say("Thank you.", nil))
		a, b := seconds(narrow, audio.Narrow), seconds(wide, audio.Wide)
		if a < 0.5 || a > 30 || math.Abs(a-b) > 0.05*a+0.05 {
			t.Errorf("%.2f s at 8 kHz, %.2f s at 16 kHz", a, b)
		}
		if len(short) == 0 || len(short)*2 > len(narrow)*3/2 {
			t.Errorf("two words take %d samples, a sentence %d", len(short), len(narrow))
		}
		for rate, pcm := range map[audio.Rate][]int16{audio.Narrow: narrow, audio.Wide: wide} {
			if v := volume(pcm); v < 300 || v > 20000 {
				t.Errorf("at %d Hz its volume is %.0f", rate, v)
			}
		}
	})
	t.Run("speaks slower and faster", func(t *testing.T) {
		slow := len(heard(t, s, say(sentence, func(w *ai.Speech) { w.Speed = 0.7 })))
		usual := len(heard(t, s, say(sentence, func(w *ai.Speech) { w.Speed = 1 })))
		fast := len(heard(t, s, say(sentence, func(w *ai.Speech) { w.Speed = 1.2 })))
		// As it should be within a tenth, of which pauses that are never stretched take a part.
		if r := float64(slow) / float64(usual); r < 1.25 || r > 1.55 {
			t.Errorf("at 0.7 it takes %.2f of the time", r)
		}
		if r := float64(fast) / float64(usual); r < 0.75 || r > 0.93 {
			t.Errorf("at 1.2 it takes %.2f of the time", r)
		}
	})
	for _, text := range []string{"", "   ", "...", "\n\t", "?!"} {
		t.Run(fmt.Sprintf("has nothing to say about %q", text), func(t *testing.T) {
			if n := len(heard(t, s, say(text, nil))); n > 0 {
				t.Errorf("%d samples", n)
			}
		})
	}
	for _, text := range []string{
		"-o /tmp/spoken", "--help me please", "/etc/passwd", "a; touch /tmp/x `id` $(id) | more",
		"zero\x00byte \x01\x1b[31m", "<speak>one &amp; two</speak>",
		`She said "it’s fine" — yes…`, "[[h@l'oU]] there", "Zoë paid 4 € 🙂", "100% of e.g. A/B\r\nnext line",
		"\xff\xfe broken",
	} {
		t.Run(fmt.Sprintf("says %q", text), func(t *testing.T) {
			if n := len(heard(t, s, say(text, nil))); n == 0 {
				t.Error("nothing")
			}
		})
	}
	t.Run("stops", func(t *testing.T) { conformSilence(t, s, say(strings.Repeat(sentence+" ", 5), nil)) })
	t.Run("serves many at once", func(t *testing.T) {
		want := len(heard(t, s, say(sentence, nil)))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if n := len(heard(t, s, say(sentence, nil))); math.Abs(float64(n-want)) > 0.2*float64(want) {
					t.Errorf("%d samples, alone %d", n, want)
				}
			})
		}
		wg.Wait()
	})
}

// conformSilence checks that nothing is heard after the end.
func conformSilence(t *testing.T, s ai.Synthesizer, what ai.Speech) {
	cause := errors.New("the customer hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	err := s.Speak(ctx, what, func([]int16) error { t.Error("yielded after the end"); return nil })
	if err != cause { //nolint:errorlint // it must come back as it is
		t.Errorf("cancelled before: %v", err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	defer cancel(nil)
	count := 0
	err = s.Speak(ctx, what, func([]int16) error { count++; cancel(cause); return nil })
	if err != cause || count != 1 { //nolint:errorlint // likewise
		t.Errorf("cancelled at the first piece: %v, after %d pieces", err, count)
	}
	count = 0
	err = s.Speak(t.Context(), what, func([]int16) error { count++; return ErrYield })
	if err != ErrYield || count != 1 { //nolint:errorlint // likewise
		t.Errorf("refused by yield: %v, after %d pieces", err, count)
	}
}

// heard is all of a speech's sound.
func heard(t *testing.T, s ai.Synthesizer, what ai.Speech) (pcm []int16) {
	t.Helper()
	err := s.Speak(t.Context(), what, func(p []int16) error {
		if len(p) == 0 {
			t.Error("an empty piece")
		}
		pcm = append(pcm, p...)
		clear(p) // it is ours as long as we are here
		return nil
	})
	if err != nil {
		t.Errorf("say %.50q: %v", what.Text, err)
	}
	return pcm
}

func seconds(pcm []int16, rate audio.Rate) float64 { return float64(len(pcm)) / float64(rate) }

// volume is the root of the mean square.
func volume(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(1, len(pcm))))
}

// Heard is what ConformRecognizer lets a Recognizer hear.
type Heard struct {
	Language string
	// Texts are three that it understands when Sound says them.
	Texts []string
	Sound func(t *testing.T, text string, rate audio.Rate) []int16
	// Same says whether a transcript is that of a text; nil: when letters and digits are the same.
	Same func(got, want string) bool
}

// ConformRecognizer checks that a Recognizer keeps what ai.Recognizer and ai.Ear promise.
func ConformRecognizer(t *testing.T, r ai.Recognizer, h Heard) {
	if h.Same == nil {
		h.Same = func(got, want string) bool { return plain(got) == plain(want) }
	}
	for _, rate := range []audio.Rate{audio.Narrow, audio.Wide} {
		t.Run(fmt.Sprintf("understands at %d Hz", rate), func(t *testing.T) {
			e := listen(t, r, h, rate)
			for i, text := range h.Texts {
				write(e, h.Sound(t, text, rate), rate)
				e.End()
				if got := final(t, e, i); got.Err != nil || !h.Same(got.Text, text) {
					t.Errorf("utterance %d is %q, %v, want %q", i, got.Text, got.Err, text)
				}
			}
		})
	}
	t.Run("understands nothing in silence", func(t *testing.T) {
		e := listen(t, r, h, audio.Narrow)
		write(e, make([]int16, audio.Narrow), audio.Narrow)
		e.End()
		e.End() // nothing at all
		for i := range 2 {
			if got := final(t, e, i); got.Text != "" || got.Err != nil {
				t.Errorf("got %+v", got)
			}
		}
	})
	t.Run("hears the next utterance while it finds the text of one", func(t *testing.T) {
		e := listen(t, r, h, audio.Narrow)
		for _, text := range h.Texts {
			write(e, h.Sound(t, text, audio.Narrow), audio.Narrow)
			e.End()
		}
		for i, text := range h.Texts {
			if got := final(t, e, i); got.Err != nil || !h.Same(got.Text, text) {
				t.Errorf("utterance %d is %q, %v, want %q", i, got.Text, got.Err, text)
			}
		}
	})
	t.Run("never makes who writes wait", func(t *testing.T) {
		e := listen(t, r, h, audio.Narrow)
		sound := h.Sound(t, h.Texts[0], audio.Narrow)
		began := time.Now()
		for range 20 { // nobody reads what it says
			write(e, sound, audio.Narrow)
			e.End()
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
				write(e, sound, audio.Narrow)
				e.End()
				if got := final(t, e, 0); got.Err != nil || !h.Same(got.Text, h.Texts[0]) {
					t.Errorf("got %q, %v", got.Text, got.Err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("closes", func(t *testing.T) { conformClose(t, r, h) })
}

func conformClose(t *testing.T, r ai.Recognizer, h Heard) {
	sound := h.Sound(t, h.Texts[0], audio.Narrow)
	cause := errors.New("the customer hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := r.Listen(ctx, ai.Hearing{Language: h.Language, Rate: audio.Narrow}); err != cause { //nolint:errorlint // it must come back as it is
		t.Errorf("listen after the end: %v", err)
	}
	for name, begin := range map[string]func(e ai.Ear){
		"before anything": func(ai.Ear) {},
		"in mid-speech":   func(e ai.Ear) { write(e, sound[:len(sound)/2], audio.Narrow) },
		"at the end":      func(e ai.Ear) { write(e, sound, audio.Narrow); e.End() },
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

func listen(t *testing.T, r ai.Recognizer, h Heard, rate audio.Rate) ai.Ear {
	t.Helper()
	e, err := r.Listen(t.Context(), ai.Hearing{Language: h.Language, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// write writes sound as a call's frames.
func write(e ai.Ear, pcm []int16, rate audio.Rate) {
	for n := rate.FrameSize(); len(pcm) > 0; {
		n = min(n, len(pcm))
		e.Write(pcm[:n])
		pcm = pcm[n:]
	}
}

// final waits for the final transcript of an utterance, and checks those before it.
func final(t *testing.T, e ai.Ear, utterance int) ai.Transcript {
	t.Helper()
	guard := time.NewTimer(30 * time.Second)
	defer guard.Stop()
	for {
		select {
		case got, ok := <-e.Transcripts():
			if !ok {
				t.Errorf("the ear closed before utterance %d was understood", utterance)
				return got
			}
			if got.Utterance != utterance || !got.Final && got.Err != nil || got.Err != nil &&
				ai.KindOf(got.Err) == "" {
				t.Errorf("got %+v, want a transcript of utterance %d", got, utterance)
			}
			if got.Final {
				return got
			}
		case <-guard.C:
			t.Errorf("utterance %d is not understood within 30 s", utterance)
			return ai.Transcript{}
		}
	}
}

// plain is a text's letters and digits.
func plain(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127) })
	return strings.Join(words, " ")
}
