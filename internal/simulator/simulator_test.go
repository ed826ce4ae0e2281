package simulator

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/parley"
)

// heard is what happened on the line, in frames since the answer.
type heard struct {
	frames int
	says   []span // of the far end
	beeps  []int  // when each beep ended
	keys   []byte
	// speak tells for each frame whether we speak in it; nil for never.
	speak func(h *heard) bool

	signals *audio.SignalDetector
	hearing int // calls of Hear that are waiting for their Tick
	fail    string
	voice   []int16
}

// span is from the first to the last frame of an utterance.
type span struct{ from, to int }

func newHeard(speak func(*heard) bool) *heard {
	return &heard{speak: speak, signals: audio.NewSignalDetector(rate),
		voice: murmur("We talk, and talk, and talk about it all day long and nobody minds.")}
}

func (h *heard) Hear(f audio.Frame) {
	if len(f) != rate.FrameSize() {
		h.fail = "a frame of another length"
	}
	h.hearing++
}

func (h *heard) Tick(in, out audio.Frame) bool {
	if h.hearing--; h.hearing != 0 || len(in) != len(out) {
		h.fail = "Hear and Tick do not take turns"
	}
	loud := audio.Level(in) > -45
	if h.signals.Detect(in) == audio.Beep {
		h.beeps = append(h.beeps, h.frames)
	}
	last := len(h.says) - 1
	switch {
	case loud && (last < 0 || h.frames-h.says[last].to > 30):
		h.says = append(h.says, span{h.frames, h.frames})
	case loud:
		h.says[last].to = h.frames
	}
	h.frames++
	if h.speak == nil || !h.speak(h) {
		return false // out holds whatever it held: nobody may listen to it
	}
	at := h.frames * len(out) % (len(h.voice) - len(out))
	copy(out, h.voice[at:])
	return true
}

func (h *heard) Digit(key byte) { h.keys = append(h.keys, key) }

// answering speaks for a second, half a second after each utterance of the far end.
func answering(h *heard) bool {
	if len(h.says) == 0 {
		return false
	}
	since := h.frames - h.says[len(h.says)-1].to
	return since > 25 && since < 75
}

// call dials, and stays until the far end hangs up or ctx ends.
func call(t *testing.T, ctx context.Context, o Options, h *heard) (rang, answered, ended time.Duration, err error) {
	t.Helper()
	began := time.Now()
	l, err := Dial(ctx, o, func() { rang = time.Since(began) })
	answered = time.Since(began)
	if err == nil {
		err = l.Run(ctx, h)
		ended = time.Since(began) - answered
	}
	if h.fail != "" {
		t.Error(h.fail)
	}
	return rang, answered, ended, err
}

func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rang, after, _, err := call(t, t.Context(), Options{To: "+15550100003"}, newHeard(nil))
		if err != parley.LineBusy || rang != 0 || after != ringAfter {
			t.Errorf("a busy line: %v after %v, rang after %v", err, after, rang)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 40*time.Second, parley.NoAnswer)
		defer cancel()
		rang, after, _, err = call(t, ctx, Options{To: "+15550100004"}, newHeard(nil))
		if err != parley.NoAnswer || rang != ringAfter || after != 40*time.Second {
			t.Errorf("nobody there: %v after %v, rang after %v", err, after, rang)
		}
		for _, patience := range []time.Duration{100 * time.Millisecond, time.Second} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, parley.APIHangup)
			_, after, _, err := call(t, ctx, Options{To: "+15550100123"}, newHeard(nil))
			if cancel(); err != parley.APIHangup || after != patience {
				t.Errorf("given up after %v: %v after %v", patience, err, after)
			}
		}
	})
}

func TestPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeard(answering)
		rang, answered, ended, err := call(t, t.Context(), Options{To: "+15550100123"}, h)
		if err != parley.CustomerHangup || rang != ringAfter || answered != answerAfter {
			t.Errorf("%v; rang after %v, answered after %v", err, rang, answered)
		}
		if len(h.says) != len(talk) {
			t.Fatalf("spoke %d times: %v", len(h.says), h.says)
		}
		// we stop 74 frames after the far end is silent; 40 frames later it speaks, as the detector sees it
		for i, s := range h.says[1:] {
			if gap := s.from - h.says[i].to; gap < 74+38 || gap > 74+55 {
				t.Errorf("answered %d frames after its own words ended: %v", gap, h.says)
			}
		}
		if left := ended - time.Duration(h.says[3].to)*audio.FrameTime; left < putDown || left > putDown+time.Second {
			t.Errorf("hung up %v after its goodbye", left)
		}
	})
}

// spoken is a flite voice. A murmur of half a minute without a pause would be taken for music.
func spoken(t *testing.T) []int16 {
	t.Helper()
	data, err := os.ReadFile("../audio/testdata/slt.g722")
	if err != nil {
		t.Fatal(err)
	}
	down, err := audio.NewResampler(16000, int(rate))
	if err != nil {
		t.Fatal(err)
	}
	return down.Resample(nil, audio.NewDecoder(audio.G722).Decode(nil, data))
}

func TestPersonWaits(t *testing.T) {
	for name, speak := range map[string]func(*heard) bool{
		"silence":     nil,
		"a monologue": func(*heard) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeard(speak)
				h.voice = spoken(t)
				_, _, ended, err := call(t, t.Context(), Options{To: "+15550100123"}, h)
				if err != parley.CustomerHangup || ended != stay || len(h.says) != 1 {
					t.Errorf("%v after %v; spoke %d times", err, ended, len(h.says))
				}
			})
		})
	}
}

// If the person's hello interrupted the greeting and the assistant resumes it a moment later, the person lets it
// finish; if the assistant says nothing more, the person goes on after a while.
func TestPersonTalksOver(t *testing.T) {
	for name, c := range map[string]struct {
		resumes     int // frames after the hello, for 100 frames; 0 for never
		least, most int // frames from the hello to what the person says next
	}{
		"at once":      {10, 10 + 100 + 38, 10 + 100 + 55},
		"a second":     {60, 60 + 100 + 38, 60 + 100 + 55},
		"two and more": {120, 120 + 100 + 38, 120 + 100 + 55},
		"never":        {0, 110, 150}, // of the three seconds it spoke for a part
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeard(func(h *heard) bool {
					switch len(h.says) {
					case 0:
						return true
					case 1: // it takes a moment to notice
						since := h.frames - h.says[0].to
						return h.frames-h.says[0].from < 10 || c.resumes > 0 && since > c.resumes &&
							since <= c.resumes+100
					}
					return answering(h)
				})
				_, _, _, err := call(t, t.Context(), Options{To: "+15550100123"}, h)
				if err != parley.CustomerHangup || len(h.says) != len(talk) {
					t.Fatalf("%v; spoke %d times: %v", err, len(h.says), h.says)
				}
				if gap := h.says[1].from - h.says[0].to; gap < c.least || gap > c.most {
					t.Errorf("went on after %d frames: %v", gap, h.says)
				}
			})
		})
	}
}

func TestAmbientSoundIsNobody(t *testing.T) {
	places := []string{"office", "city", "forest", "crowded_room", "cafe", "nature"}
	for _, place := range places {
		ambient, err := audio.NewAmbient(place, rate, 1)
		if err != nil {
			t.Fatal(err)
		}
		n := newLine(t.Context(), &leg{}, nil)
		n.clock.Stop()
		voice, position := murmur("Good morning, this is the bakery."), 0
		for i := range 400 {
			clear(n.out[:])
			if at := i * len(n.out); at+len(n.out) <= len(voice) {
				copy(n.out[:], voice[at:])
			}
			position = ambient.Mix(n.out[:], position, 1)
			n.hear()
		}
		if n.voiced < time.Second || n.quiet < manners {
			t.Errorf("%s: heard %v of speech, then %v of silence", place, n.voiced, n.quiet)
		}
	}
}

func TestMailbox(t *testing.T) {
	message := func(frames int) func(*heard) bool {
		return func(h *heard) bool { return len(h.beeps) > 0 && h.frames-h.beeps[0] < frames }
	}
	for name, c := range map[string]struct {
		speak func(*heard) bool
		least time.Duration // counted from the end of the beep
		most  time.Duration
	}{
		"no message":     {nil, patience - 100*time.Millisecond, patience},
		"a message":      {message(200), 4*time.Second + patience - 300*time.Millisecond, 4*time.Second + patience},
		"an endless one": {message(1 << 20), recorded - 100*time.Millisecond, recorded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeard(c.speak)
				_, _, ended, err := call(t, t.Context(), Options{To: "+15550100005"}, h)
				if err != parley.CustomerHangup || len(h.beeps) != 1 {
					t.Fatalf("%v; beeps %v", err, h.beeps)
				}
				at := time.Duration(h.beeps[0]) * audio.FrameTime
				if at < 4*time.Second || at > 10*time.Second {
					t.Errorf("the beep ended after %v", at)
				}
				if left := ended - at; left < c.least || left > c.most {
					t.Errorf("hung up %v after the beep, not within %v to %v", left, c.least, c.most)
				}
			})
		})
	}
}

// speaker is a synthesizer that takes a second for each line, and makes a tone of it.
type speaker struct {
	texts []string
	err   error
	takes time.Duration
	gives int
}

func (s *speaker) Say(ctx context.Context, as ai.Speech, text string, yield func([]int16) error) error {
	s.texts = append(s.texts, text)
	if as.Rate != rate || as.Language != language || as.Voice != "rms" {
		s.err = errors.New("another voice is meant")
	}
	if err := sleep(ctx, s.takes); err != nil {
		return err
	}
	for range s.gives {
		pcm := make([]int16, 1000)
		for i := range pcm {
			pcm[i] = 1234
		}
		if err := yield(pcm); err != nil {
			return err
		}
	}
	return s.err
}

func TestVoice(t *testing.T) {
	const own = -1 // the sound of the package
	for name, c := range map[string]struct {
		speaker
		samples  int
		answered time.Duration
	}{
		"quick":  {speaker{gives: 5}, 5000, answerAfter},
		"slow":   {speaker{gives: 5, takes: time.Second}, 5000, ringAfter + 4*time.Second},
		"hangs":  {speaker{gives: 5, takes: time.Hour}, own, ringAfter + renderTime},
		"fails":  {speaker{gives: 5, err: errors.New("no voice")}, own, answerAfter},
		"mute":   {speaker{}, own, answerAfter},
		"chatty": {speaker{gives: 1000}, longest, answerAfter},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, lines := time.Now(), &Lines{}
				for range 2 {
					got, err := Dial(t.Context(), Options{To: "+15550100123", Synthesizer: ai.Streamed(&c.speaker), Voice: "rms",
						Lines: lines}, nil)
					if err != nil {
						t.Fatal(err)
					}
					if after := time.Since(began); after != c.answered && lines.pcm == nil {
						t.Errorf("answered after %v", after)
					}
					for i, pcm := range got.(*leg).sounds {
						want := c.samples
						if want == own {
							want = len(murmur(talk[i]))
						}
						if len(pcm) != want {
							t.Errorf("%q has %d samples, not %d", talk[i], len(pcm), want)
						}
					}
					began = time.Now()
				}
				if c.samples != own && !slices.Equal(c.texts, talk) {
					t.Errorf("asked for %q: each once is enough", c.texts)
				}
			})
		})
	}
}

func TestHungUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(answerAfter+3*time.Second, func() { cancel(parley.AssistantHangup) })
		h := newHeard(nil)
		_, _, ended, err := call(t, ctx, Options{To: "+15550100123"}, h)
		if err != parley.AssistantHangup || ended != 3*time.Second || h.frames < 149 || h.frames > 151 {
			t.Errorf("%v after %v and %d frames", err, ended, h.frames)
		}
	})
}

func TestTransfer(t *testing.T) {
	for to, want := range map[string]error{"+15550100003": parley.LineBusy, "+15550100004": parley.NoAnswer,
		"+15550100200": nil} {
		synctest.Test(t, func(t *testing.T) {
			l, err := Dial(t.Context(), Options{To: "+15550100123"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, parley.AssistantHangup)
			defer cancel()
			over := make(chan error, 1)
			go func() { over <- l.Run(ctx, newHeard(nil)) }()
			if err := l.(interface {
				Transfer(context.Context, string) error
			}).Transfer(ctx, to); err != want {
				t.Errorf("sent to %s: %v", to, err)
			}
			ended := parley.CustomerHangup
			if want != nil {
				ended = parley.AssistantHangup // it went on
			}
			if err := <-over; err != ended {
				t.Errorf("after being sent to %s: %v", to, err)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	l := &leg{}
	if err := l.Dial("01234#*"); err != nil {
		t.Error(err)
	}
	if l.Dial("1x") == nil {
		t.Error("x is taken for a key")
	}
}

// Without a synthesizer the far end must still sound like a speaking person, at the level of speech.
func TestMurmur(t *testing.T) {
	for _, text := range append([]string{greeting}, talk...) {
		pcm := murmur(text)
		if again := murmur(text); !slices.Equal(pcm, again) {
			t.Errorf("%q sounds different each time", text)
		}
		vad, hits, loud := audio.NewVAD(rate), 0, 0
		signals := audio.NewSignalDetector(rate)
		for range 25 { // the line is open for a while before anybody speaks
			vad.Detect(make([]int16, rate.FrameSize()))
		}
		for i := 0; i+rate.FrameSize() <= len(pcm); i += rate.FrameSize() {
			f := pcm[i : i+rate.FrameSize()]
			if signals.Detect(f) == audio.Music {
				t.Errorf("%q is taken for music", text)
			}
			if _, voiced := vad.Detect(f); audio.Level(f) > -35 {
				loud++
				if voiced {
					hits++
				}
			}
		}
		if loud < 10 || hits*10 < loud*8 {
			t.Errorf("%q: %d of %d frames are taken for speech", text, hits, loud)
		}
		if peak := audio.Peak(pcm); peak < -14 || peak > -3 {
			t.Errorf("%q: peaks at %.1f dBFS", text, peak)
		}
	}
}

func TestTickAllocates(t *testing.T) {
	n := newLine(t.Context(), &leg{}, mute{})
	defer n.clock.Stop()
	if a := testing.AllocsPerRun(20, func() {
		if err := n.tick(); err != nil {
			t.Fatal(err)
		}
	}); a != 0 {
		t.Errorf("%v allocations per frame", a)
	}
}

type mute struct{}

func (mute) Hear(audio.Frame)              {}
func (mute) Tick(in, out audio.Frame) bool { return true }
func (mute) Digit(byte)                    {}
