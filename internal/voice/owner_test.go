package voice_test

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
	"parley/internal/voice/voicetest"
)

// stuck is a Recognizer whose recognition blocks its first writer, which breaks the contract.
type stuck struct {
	deafRecognition
	time   time.Duration
	frames atomic.Int32
}

func (s *stuck) Listen(context.Context, ai.Hearing) (ai.Recognition, error) {
	s.out = make(chan ai.Transcript)
	return s, nil
}

func (s *stuck) Write([]int16) {
	if s.frames.Add(1) == 1 {
		time.Sleep(s.time)
	}
}

// The sound of a call waits for nobody. While the session is blocked, its legs go on, a customer who speaks for 60 ms
// silences the assistant with the very next packet, and what they say is kept for the recognizer, as far as there is room for
// it.
func TestSoundWaitsForNobody(t *testing.T) {
	for _, late := range []time.Duration{500 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			recognizer := &stuck{time: late}
			s := voice.Session{Persona: persona(&aitest.Fake{}, ai.Streamed(spokenBy(speechLike(audio.Narrow, 500))), recognizer)}
			s.Detect = func(audio.Rate) voice.Detector { return &voicetest.Detector{} }
			s.Persona.Initial = "Hello."
			if err := s.Prepare(t.Context(), audio.Narrow); err != nil {
				t.Fatal(err)
			}
			said, noise := 0, rand.New(rand.NewPCG(1, 1))
			leg := &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
				speech, silence, out := make([]int16, 160), make([]int16, 160), make([]int16, 160)
				for i := range 250 {
					time.Sleep(audio.FrameTime)
					in := silence
					if i >= 20 && i < 220 {
						for j := range speech { // nothing like what the assistant says: it is no echo
							speech[j] = int16(1000 + noise.IntN(4000))
						}
						in = speech
						said++
					}
					began := time.Now()
					p.Hear(in)
					p.Tick(nil, out)
					if took := time.Since(began); took > 0 {
						t.Errorf("frame %d took %v", i, took)
					}
					// The detector notices the third frame, and the fifth is the third of speech: the packet after it
					// fades out, and the next one is silent.
					if sound := audio.Level(out[80:]) > -60; sound != (i < 24) && i > 1 && i < 40 {
						t.Errorf("held up for %v: there is sound in packet %d: %v", late, i, sound)
					}
				}
				return parley.CustomerHangup
			}}
			r := s.Run(t.Context(), leg)
			if r.Reason != parley.CustomerHangup {
				t.Error(r.Reason, r.Err)
			}
			lost := r.Err != nil && strings.Contains(r.Err.Error(), "frames")
			if heard := int(recognizer.frames.Load()); lost != (late > time.Second) || !lost && heard < said {
				t.Errorf("held up for %v: the ear heard %d frames of %d: %v", late, heard, said, r.Err)
			}
		})
	}
}

// A reply steps back for speech that may have words, and is as loud as before when that is over. Likely words silence it after
// 140 ms, surer ones after 60. A hum changes nothing, nor does anything over an assistant that can't be interrupted.
func TestReplyStepsBack(t *testing.T) {
	const from = 70 // the frame in which the customer begins to speak: by then an echo would be known
	for name, c := range map[string]struct {
		words       int16
		firm        bool
		back, still int  // the first packet that is fainter, or silent
		again       int  // and the first that is not, of all
		to          int  // the frame in which the customer stops, 90 where there is none
		unsent      bool // and the telephone sends nothing more
	}{
		"a hum":            {words: -4},
		"it may be words":  {words: -2, back: 74, again: 99},
		"it sends no more": {words: -2, back: 74, again: 99, unsent: true},
		"a television":     {words: -2, back: 74, again: 223, to: 250},
		"likely words":     {words: 1, back: 74, still: 78},
		"surer words":      {words: 2, still: 74},
		"not to be cut":    {words: 2, firm: true},
		"nothing is known": {words: 0, still: 74, again: 99},
	} {
		synctest.Test(t, func(t *testing.T) {
			to := cmp.Or(c.to, 90)
			hiss, noise := make([][]int16, 300), rand.New(rand.NewPCG(1, 1))
			for i := range hiss {
				hiss[i] = make([]int16, 160)
				for j := range hiss[i] {
					hiss[i][j] = int16(noise.IntN(10000) - 5000)
				}
			}
			s := voice.Session{Persona: persona(&aitest.Fake{}, ai.Streamed(spokenBy(hiss)), deaf{})}
			s.Persona.Assistant.AllowInterruptions = !c.firm
			s.Detect = func(audio.Rate) voice.Detector { return &voicetest.Detector{} }
			s.Persona.Initial = "Hello."
			if err := s.Prepare(t.Context(), audio.Narrow); err != nil {
				t.Fatal(err)
			}
			s.Run(t.Context(), &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
				in, out := make([]int16, 160), make([]int16, 160)
				for i := range to + 20 {
					time.Sleep(audio.FrameTime)
					if clear(in); i >= from && i < to {
						for j := range in {
							in[j] = int16(1000 + noise.IntN(4000))
						}
						in[3] = c.words
					}
					if i < to || !c.unsent {
						p.Hear(in)
					}
					synctest.Wait() // the owner may judge this frame before the packet goes, or after it: here always before
					p.Tick(nil, out)
					want := -21. // dBFS
					switch over := c.again > 0 && i >= c.again; {
					case c.still > 0 && i >= c.still && !over:
						want = -96
					case c.back > 0 && i >= c.back && !over:
						want = -33
					}
					if got := max(audio.Level(out[80:]), -96); i > 1 && math.Abs(got-want) > 2 {
						t.Errorf("%s: packet %d has %.0f dBFS, want %.0f", name, i, got, want)
					}
				}
				return parley.CustomerHangup
			}})
		})
	}
}
