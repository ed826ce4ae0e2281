package voice_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
)

// halting is a synthesizer whose first text takes long for its first words, after a silence that is left out. It
// reports the times of words one piece late.
type halting struct{ words []time.Duration }

func (h *halting) Speak(_ context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	i := 0
	for text := range texts {
		quiet := make([]int16, as.Rate/10)
		if err := yield(ai.Sound{Text: i, PCM: quiet}); err != nil {
			return err
		}
		at, until := 100*time.Millisecond, 0
		for n, word := range strings.SplitAfter(text, " ") {
			length := h.words[min(n, len(h.words)-1)]
			at, until = at+length, until+len(word)
			pcm := make([]int16, int(length*time.Duration(as.Rate)/time.Second))
			for j := range pcm {
				pcm[j] = 5000
			}
			if err := yield(ai.Sound{Text: i, PCM: pcm}); err != nil {
				return err
			}
			told := ai.Word{Until: len(strings.TrimRight(text[:until], " .,")), At: at}
			if err := yield(ai.Sound{Text: i, Words: []ai.Word{told}}); err != nil {
				return err
			}
		}
		if err := yield(ai.Sound{Text: i, Last: true}); err != nil {
			return err
		}
		i++
	}
	return nil
}

// If the vendor reports the times of words, what was heard is known to the word, however unevenly the words are said,
// and even if they are written differently; sound from the cache too.
func TestHeardToTheWord(t *testing.T) {
	const initial = "Call **Nguyen** at the office, now."
	written := []string{"Call", "Call **Nguyen**", "Call **Nguyen** at", "Call **Nguyen** at the",
		"Call **Nguyen** at the office,", initial}
	synthesizer := &halting{words: []time.Duration{900 * time.Millisecond, 60 * time.Millisecond, 300 * time.Millisecond,
		40 * time.Millisecond}} // for the words: Call win at the office, now.
	var ends []time.Duration
	for i, at := 0, time.Duration(0); i < 6; i++ {
		at += synthesizer.words[min(i, len(synthesizer.words)-1)]
		ends = append(ends, at)
	}
	for _, cached := range []bool{false, true} {
		for at := 20 * time.Millisecond; at < ends[5]+200*time.Millisecond; at += 60 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := voice.Session{Persona: persona(&aitest.Fake{}, synthesizer, deaf{})}
				s.Persona.Initial = initial
				s.Persona.Assistant.Pronunciations = map[string]string{"Nguyen": "win"}
				if cached {
					if err := s.Prepare(t.Context(), audio.Narrow); err != nil {
						t.Fatal(err)
					}
				}
				var played time.Duration
				r := s.Run(t.Context(), &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
					out := make([]int16, 160)
					for now := time.Duration(0); now < at; now += audio.FrameTime {
						time.Sleep(audio.FrameTime)
						p.Hear(make([]int16, 160))
						if p.Tick(nil, out) {
							played += audio.FrameTime
						}
						synctest.Wait()
					}
					return parley.CustomerHangup
				}})
				want, got := "", ""
				for i, end := range ends {
					if played >= end {
						want = written[i]
					}
				}
				if len(r.Turns) > 0 {
					got = r.Turns[0].Text
				}
				if got != want || r.Err != nil {
					t.Errorf("cached %v, after %v: %q was heard, not %q: %v", cached, played, got, want, r.Err)
				}
			})
		}
	}
}

// sparing is a synthesizer that counts the allocations for its pieces.
type sparing struct{ each float64 }

func (s *sparing) Speak(_ context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) (err error) {
	<-texts
	pcm := make([]int16, as.Rate.FrameSize())
	for i := range pcm {
		pcm[i] = 5000
	}
	_ = yield(ai.Sound{PCM: pcm})
	s.each = testing.AllocsPerRun(100, func() { err = errors.Join(err, yield(ai.Sound{PCM: pcm})) })
	return errors.Join(err, yield(ai.Sound{Last: true}))
}

// A piece of sound allocates nothing on its way to the playout.
func TestPiecesAllocateNothing(t *testing.T) {
	synthesizer := &sparing{each: -1}
	s := voice.Session{Persona: persona(&aitest.Fake{}, synthesizer, deaf{})}
	s.Persona.Assistant.MaxSilenceDuration = 1 // then it asks, in a sentence that is not cached
	r := s.Run(t.Context(), &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
		for range 200 {
			time.Sleep(audio.FrameTime)
			p.Tick(nil, make([]int16, 160))
		}
		return parley.CustomerHangup
	}})
	if synthesizer.each != 0 || r.Err != nil {
		t.Errorf("%v allocations for each: %v", synthesizer.each, r.Err)
	}
}

// meddler is a synthesizer that passes each piece of its sound to a function, which may drop it or fail.
type meddler struct {
	aitest.Synthesizer
	requests int
	meddle   func(request int, s ai.Sound) (keep bool, err error)
}

func (m *meddler) Speak(ctx context.Context, as ai.Speech, texts <-chan string, yield func(ai.Sound) error) error {
	m.requests++
	return m.Synthesizer.Speak(ctx, as, texts, func(s ai.Sound) error {
		if m.meddle != nil {
			if keep, err := m.meddle(m.requests, s); !keep {
				return err
			}
		}
		return yield(s)
	})
}

// A reply is one request to the synthesizer, whatever comes from the cache meanwhile. Text that it fails to say is
// requested again, once, as far as it was not heard.
func TestReplyIsOneStream(t *testing.T) {
	lost := &ai.Error{Kind: ai.Interrupted, Err: errors.New("the socket broke")}
	pieces := 0
	for name, c := range map[string]struct {
		delay    time.Duration // of the model, before each word
		meddle   func(request int, s ai.Sound) (keep bool, err error)
		requests int
		heard    []string
		err      string
		reason   parley.EndedReason
	}{
		"well":            {0, nil, 1, []string{"a", "b", "c", "d"}, "", parley.CustomerHangup},
		"by a slow model": {11 * time.Second, nil, 1, []string{"a", "b", "c", "d"}, "", parley.CustomerHangup},
		"breaking before anything was heard": {0, func(n int, s ai.Sound) (bool, error) {
			return n > 1 || s.Text < 1, lost
		}, 2, []string{"a", "b", "c", "d"}, "speak: ", parley.CustomerHangup},
		"breaking in the middle": {0, func(n int, s ai.Sound) (bool, error) {
			if n == 1 && s.Text == 1 {
				pieces++
			}
			return n > 1 || s.Text < 1 || pieces < 3, lost
		}, 2, []string{"a", "b", "c", "d"}, "speak to the end: ", parley.CustomerHangup},
		"breaking twice": {0, func(n int, s ai.Sound) (bool, error) {
			return n == 1 && s.Text < 1, lost
		}, 2, nil, "speak again: ", parley.ProviderFailure},
		"without an end": {0, func(n int, s ai.Sound) (bool, error) {
			return n > 1 || s.Text != 1 || !s.Last, nil
		}, 2, []string{"a", "b", "c", "d"}, "sound of text 2", parley.CustomerHangup},
		"without the last end": {0, func(n int, s ai.Sound) (bool, error) {
			return s.Text != 2 || !s.Last, nil
		}, 1, []string{"a", "b", "c", "d"}, "stopped before all was said", parley.CustomerHangup},
		"out of order": {0, func(n int, s ai.Sound) (bool, error) {
			return n > 1 || s.Text != 0, nil
		}, 2, []string{"a", "b", "c", "d"}, "sound of text 1", parley.CustomerHangup},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				texts := map[string]string{"a": "This is the first.", "b": "And the second here.", "c": "Now the third one.",
					"d": "And so the fourth."}
				synthesizer, model := &meddler{}, &aitest.Fake{}
				model.Script(aitest.Step{Delay: c.delay, Text: texts["a"] + " " + texts["b"] + " " + texts["c"] + " " +
					texts["d"]})
				s := voice.Session{Persona: persona(model, synthesizer, deaf{})}
				s.Persona.Initial = texts["c"] // cached, but not played when the customer must speak first
				s.Persona.Assistant.WaitForCustomer = true
				if err := s.Prepare(t.Context(), audio.Narrow); err != nil {
					t.Fatal(err)
				}
				s.Persona.Initial, s.Persona.Reengagement = "", "Ask."
				s.Persona.Assistant.MaxSilenceDuration, s.Persona.Assistant.MaxDuration = 2, 600
				synthesizer.meddle, synthesizer.requests = c.meddle, 0
				pieces = 0
				var heard []string
				r := s.Run(t.Context(), &driven{rate: audio.Narrow, run: func(ctx context.Context, p audio.Peer) error {
					var sound []int16
					out := make([]int16, 160)
					for range int((3*time.Second + 18*c.delay + 8*time.Second) / audio.FrameTime) {
						time.Sleep(audio.FrameTime)
						if ctx.Err() != nil {
							return context.Cause(ctx)
						}
						p.Hear(make([]int16, 160))
						if p.Tick(nil, out); len(sound) >= 320 {
							sound = sound[:0]
						}
						if sound = append(sound, out...); len(sound) < 320 {
							continue
						}
						for k, text := range texts {
							if synthesizer.Find(sound, audio.Narrow) == text && (len(heard) == 0 || heard[len(heard)-1] != k) {
								heard = append(heard, k)
							}
						}
					}
					return parley.CustomerHangup
				}})
				if !slices.Equal(heard, c.heard) || synthesizer.requests != c.requests || r.Reason != c.reason {
					t.Errorf("heard %q by %d requests, ended with %s: %v", heard, synthesizer.requests, r.Reason, r.Err)
				}
				if c.err == "" && r.Err != nil || c.err != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), c.err)) {
					t.Errorf("the error is %v, not %q", r.Err, c.err)
				}
				if n := synthesizer.Live(); n > 0 {
					t.Errorf("%d texts are still being said", n)
				}
			})
		})
	}
}
