package voice_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/audio"
	"parley/internal/parley"
	"parley/internal/voice"
)

// talker is a voice that says the same for a long time, whatever it is given.
type talker []int16

func (v talker) Say(_ context.Context, _ ai.Speech, _ string, yield func([]int16) error) error {
	return yield(slices.Clone(v))
}

// TestEchoCancelled: an assistant whose own voice comes back by a telephone, half as loud, does not fall silent because of it
// but for a moment, and nothing of it is heard as the caller's. Who speaks over it is heard all the same.
func TestEchoCancelled(t *testing.T) {
	talk := narrowed(t, leveled(say(t, "slt", "You can bring it back within thirty days, and you will have the money on your account within the week after that. We also have a new branch, next to the station, where you find us every day until nine in the evening."), -18))
	stop := narrowed(t, leveled(say(t, "rms", "wait a moment please I would like to ask something else"), -18))
	for _, speaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			recognizer := &aitest.Recognizer{}
			recognizer.Say(slices.Repeat([]string{"wait a moment please"}, 20)...)
			p := persona(&aitest.Fake{}, ai.Streamed(talker(talk)), recognizer)
			p.Initial = "You can bring it back."
			s := voice.Session{Persona: p}
			r := rand.New(rand.NewPCG(1, 2))
			var room [80]float64
			for i := range room {
				room[i] = 0.015 * r.NormFloat64() * float64(80-i) / 80
			}
			room[0] = 0.45
			n, line, silent := 160, make([]float64, 8000*20), []time.Duration(nil)
			leg := &driven{rate: audio.Narrow, run: func(_ context.Context, p audio.Peer) error {
				tick := time.NewTicker(audio.FrameTime)
				defer tick.Stop()
				out, in := make(audio.Frame, n), make(audio.Frame, n)
				for i := range 500 {
					<-tick.C
					for j := range in {
						in[j] = int16(line[i*n+j] + 5*r.NormFloat64())
						if k := (i-250)*n + j; speaks && k >= 0 && k < len(stop) {
							in[j] += stop[k]
						}
					}
					p.Hear(in)
					sound := p.Tick(in, out)
					if at := time.Duration(i) * audio.FrameTime; !sound && i > 25 {
						silent = append(silent, at)
					}
					for j, v := range out {
						for k, g := range room {
							if at := (i+7)*n + j + k; at < len(line) && sound {
								line[at] += g * float64(v)
							}
						}
					}
				}
				return parley.CustomerHangup
			}}
			res := s.Run(t.Context(), leg)
			heard := 0
			for _, turn := range res.Turns {
				if turn.Speaker == parley.SpeakerCustomer {
					heard++
				}
			}
			length := time.Duration(len(talk)) * time.Second / 8000
			switch {
			case speaks && len(silent) == 0:
				t.Errorf("speaks %v: it is never silent", speaks)
			case !speaks && (before(silent, length) > 30 || heard > 0): // once, until it is clear that nobody speaks
				t.Errorf("it was silent for %d packets of %v, and heard %d turns: %s", before(silent, length), length, heard, parley.CallTranscript(res.Turns))
			case speaks && (before(silent, 5*time.Second) > 30 || before(silent, 6*time.Second) < before(silent, 5*time.Second)+40 || heard < 1):
				t.Errorf("the caller spoke at 5 s; it was silent for %d packets until then, %d in the second after it, and heard %d turns",
					before(silent, 5*time.Second), before(silent, 6*time.Second)-before(silent, 5*time.Second), heard)
			}
		})
	}
}

// before is how many of some times are before another.
func before(times []time.Duration, end time.Duration) (n int) {
	for _, at := range times {
		if at < end {
			n++
		}
	}
	return n
}

// narrowed is a sound at 8 kHz.
func narrowed(t *testing.T, pcm []int16) (out []int16) {
	t.Helper()
	re, err := audio.NewResampler(wide, 8000)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(pcm) >= wide/50; pcm = pcm[wide/50:] {
		out = re.Resample(out, pcm[:wide/50])
	}
	return out
}
