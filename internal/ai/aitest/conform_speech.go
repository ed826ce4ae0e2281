package aitest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"parley/internal/ai"
	"parley/internal/audio"
)

const sentence = "Thank you for calling the bakery, how can I help you today?"

// ConformSynthesizer checks that a Synthesizer keeps the promises of ai.Synthesizer; as names one of its voices, and
// that voice's language.
func ConformSynthesizer(t *testing.T, s ai.Synthesizer, as ai.Speech) {
	as.Rate = audio.Narrow
	t.Run("speaks", func(t *testing.T) {
		wider := as
		wider.Rate = audio.Wide
		narrow, wide, short := heard(t, s, as, sentence), heard(t, s, wider, sentence), heard(t, s, as, "Thank you.")
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
		at := func(speed float64) int {
			how := as
			how.Speed = speed
			return len(heard(t, s, how, sentence))
		}
		slow, usual, fast := at(0.7), at(1), at(1.2)
		// Within a tenth of the expected ratio, part of which goes to pauses, which are never stretched.
		if r := float64(slow) / float64(usual); r < 1.25 || r > 1.55 {
			t.Errorf("at 0.7 it takes %.2f of the time", r)
		}
		if r := float64(fast) / float64(usual); r < 0.75 || r > 0.93 {
			t.Errorf("at 1.2 it takes %.2f of the time", r)
		}
	})
	for _, text := range []string{"", "   ", "...", "\n\t", "?!"} {
		t.Run(fmt.Sprintf("has nothing to say about %q", text), func(t *testing.T) {
			if n := len(heard(t, s, as, text)); n > 0 {
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
			if n := len(heard(t, s, as, text)); n == 0 {
				t.Error("nothing")
			}
		})
	}
	t.Run("says texts as they come", func(t *testing.T) { conformTexts(t, s, as) })
	t.Run("stops", func(t *testing.T) { conformSilence(t, s, as) })
	t.Run("serves many at once", func(t *testing.T) {
		want := len(heard(t, s, as, sentence))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for _, pcm := range recite(t, s, as, sentence, sentence).pcm {
					if n := len(pcm); math.Abs(float64(n-want)) > 0.2*float64(want) {
						t.Errorf("%d samples, alone %d", n, want)
					}
				}
			})
		}
		wg.Wait()
	})
}

// conformTexts checks that texts are said one after the other, whenever they come.
func conformTexts(t *testing.T, s ai.Synthesizer, as ai.Speech) {
	texts := []string{"One moment please.", "...", sentence, "", "Is there anything else?", "Good bye."}
	alone := make([]int, len(texts))
	for i, text := range texts {
		alone[i] = len(heard(t, s, as, text))
	}
	check := func(t *testing.T, r *recital) {
		t.Helper()
		for i, pcm := range r.pcm {
			if got, want := float64(len(pcm)), float64(alone[i]); math.Abs(got-want) > 0.3*want {
				t.Errorf("text %d is said in %.0f samples, alone in %.0f", i, got, want)
			}
		}
	}
	t.Run("together", func(t *testing.T) { check(t, recite(t, s, as, texts...)) })
	t.Run("each when the former has been said", func(t *testing.T) {
		r := newRecital(t, as.Rate)
		r.after = func(last ai.Sound) {
			if last.Last && len(r.texts) < len(texts) {
				r.give(texts[len(r.texts)])
			}
		}
		r.run(s, as, texts[0], len(texts))
		check(t, r)
	})
	t.Run("each when the former has begun", func(t *testing.T) {
		r := newRecital(t, as.Rate)
		r.after = func(piece ai.Sound) {
			if piece.Text == len(r.texts)-1 && len(r.texts) < len(texts) {
				r.give(texts[len(r.texts)])
			}
		}
		r.run(s, as, texts[0], len(texts))
		check(t, r)
	})
	t.Run("none", func(t *testing.T) { recite(t, s, as) })
}

// recital is a Synthesizer's output, checked as it comes.
type recital struct {
	t     *testing.T
	rate  audio.Rate
	feed  chan string
	after func(ai.Sound) // is called with each piece
	upTo  int            // texts that will be given

	texts []string // that were given
	pcm   [][]int16
	words [][]ai.Word
	lasts int
}

func newRecital(t *testing.T, rate audio.Rate) *recital {
	return &recital{t: t, rate: rate, feed: make(chan string, 16), after: func(ai.Sound) {}}
}

// recite has texts said that are all available from the beginning.
func recite(t *testing.T, s ai.Synthesizer, as ai.Speech, texts ...string) *recital {
	t.Helper()
	r := newRecital(t, as.Rate)
	r.upTo = len(texts)
	for _, text := range texts {
		r.give(text)
	}
	r.finish(s, as)
	return r
}

// run has a first text said, and those that are given meanwhile.
func (r *recital) run(s ai.Synthesizer, as ai.Speech, first string, upTo int) {
	r.t.Helper()
	r.upTo = upTo
	r.give(first)
	r.finish(s, as)
}

func (r *recital) give(text string) {
	r.texts = append(r.texts, text)
	r.pcm, r.words = append(r.pcm, nil), append(r.words, nil)
	r.feed <- text
	if len(r.texts) == r.upTo {
		close(r.feed)
	}
}

func (r *recital) finish(s ai.Synthesizer, as ai.Speech) {
	r.t.Helper()
	if r.upTo == 0 {
		close(r.feed)
	}
	ctx, cancel := context.WithTimeoutCause(r.t.Context(), time.Minute, errors.New("it takes more than a minute"))
	defer cancel()
	if err := s.Speak(ctx, as, r.feed, r.take); err != nil {
		r.t.Errorf("say %.80q: %v", r.texts, err)
	}
	if r.lasts != len(r.texts) {
		r.t.Errorf("%d of %d texts came to their end", r.lasts, len(r.texts))
	}
}

func (r *recital) take(s ai.Sound) error {
	switch {
	case s.Text != r.lasts || s.Text >= len(r.texts):
		r.t.Errorf("a piece of text %d, %d were given, and %d have ended", s.Text, len(r.texts), r.lasts)
		return ErrYield
	case len(s.PCM) == 0 && len(s.Words) == 0 && !s.Last:
		r.t.Error("an empty piece")
	}
	i := s.Text
	r.pcm[i] = append(r.pcm[i], s.PCM...)
	clear(s.PCM) // it is ours as long as we are here
	r.words[i] = append(r.words[i], s.Words...)
	if s.Last {
		r.lasts++
		checkWords(r.t, r.texts[i], r.words[i], time.Duration(seconds(r.pcm[i], r.rate)*float64(time.Second)))
	}
	r.after(s)
	return nil
}

// checkWords checks the times of a text's words: they ascend, and lie within its audio.
func checkWords(t *testing.T, text string, words []ai.Word, length time.Duration) {
	t.Helper()
	for i, w := range words {
		switch {
		case w.Until <= 0 || w.Until > len(text) || w.Until < len(text) && !utf8.RuneStart(text[w.Until]):
			t.Errorf("a word of %q ends at octet %d", text, w.Until)
		case i > 0 && (w.Until <= words[i-1].Until || w.At < words[i-1].At):
			t.Errorf("a word of %q follows %v as %v", text, words[i-1], w)
		case w.At < 0 || w.At > length+100*time.Millisecond: // their clock is not ours
			t.Errorf("a word of %q, of %v, has been said at %v", text, length, w.At)
		}
	}
}

// conformSilence checks that nothing is heard, and nothing read, after the end.
func conformSilence(t *testing.T, s ai.Synthesizer, as ai.Speech) {
	cause := errors.New("the customer hung up")
	many := slices.Repeat([]string{strings.Repeat(sentence+" ", 5)}, 3)
	for name, c := range map[string]struct {
		texts []string
		stop  func(i int, s ai.Sound, cancel func()) error // with each piece
		want  error
		count int // of pieces
	}{
		"cancelled before":           {many, nil, cause, 0},
		"cancelled without any text": {nil, nil, cause, 0},
		"cancelled at the first piece": {many, func(_ int, _ ai.Sound, cancel func()) error {
			cancel()
			return nil
		}, cause, 1},
		"refused at the first piece": {many, func(int, ai.Sound, func()) error { return ErrYield }, ErrYield, 1},
		"cancelled while it waits for a text": {[]string{"Good bye."}, func(_ int, s ai.Sound, cancel func()) error {
			if s.Last {
				cancel()
			}
			return nil
		}, cause, -1},
		"refused at the last piece": {[]string{"Good bye.", "Good bye."}, func(_ int, s ai.Sound, _ func()) error {
			if s.Last {
				return ErrYield
			}
			return nil
		}, ErrYield, -1},
	} {
		t.Run(name, func(t *testing.T) {
			guard, release := context.WithTimeout(t.Context(), 30*time.Second)
			defer release()
			ctx, cancel := context.WithCancelCause(guard)
			defer cancel(nil)
			texts := make(chan string)
			returned := make(chan struct{})
			var sender sync.WaitGroup
			sender.Go(func() { // as a conversation does: until it has returned
				for _, text := range c.texts {
					select {
					case texts <- text:
					case <-returned:
						return
					}
				}
			})
			if c.stop == nil && len(c.texts) > 0 {
				cancel(cause)
			} else if c.stop == nil {
				sender.Go(func() { cancel(cause) }) // it waits already, or is going to
			}
			count, lasts := 0, 0
			err := s.Speak(ctx, as, texts, func(s ai.Sound) error {
				if count++; s.Last {
					lasts++
				}
				if c.stop == nil {
					t.Error("yielded after the end")
					return ErrYield
				}
				return c.stop(count, s, func() { cancel(cause) })
			})
			close(returned)
			sender.Wait()
			if err != c.want || c.count >= 0 && count != c.count || lasts > 1 { //nolint:errorlint // it must come back as it is
				t.Errorf("%v, after %d pieces, want %v after %d", err, count, c.want, c.count)
			}
			select {
			case texts <- "more":
				t.Error("it still reads")
			default:
			}
		})
	}
}

// heard is all of a text's audio.
func heard(t *testing.T, s ai.Synthesizer, as ai.Speech, text string) []int16 {
	t.Helper()
	return recite(t, s, as, text).pcm[0]
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
