package audio

import (
	"math"
	"slices"
	"testing"
)

// signals runs a detector over sound.
func signals(rate Rate, pcm []int16) (all []Signal) {
	d := NewSignalDetector(rate)
	for n := rate.FrameSize(); len(pcm) >= n; pcm = pcm[n:] {
		if s := d.Detect(pcm[:n]); s != NoSignal {
			all = append(all, s)
		}
	}
	return all
}

// bursts are some tones together for on ms, then silence for off ms, repeated.
func bursts(rate Rate, times int, on, off int, hz ...float64) (pcm []int16) {
	for range times {
		b := make([]int16, int(rate)*on/1000)
		for _, f := range hz {
			Mix(b, tone(int(rate), f, 6000, len(b)), 1)
		}
		pcm = append(append(pcm, b...), make([]int16, int(rate)*off/1000)...)
	}
	return pcm
}

func TestSignals(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		r := rate
		talk := speech(t, "slt", r)
		for _, c := range []struct {
			name string
			pcm  []int16
			want []Signal
		}{
			{"beep of 100 ms", bursts(r, 1, 100, 100, 1000), []Signal{Beep}},
			{"beep of 1.9 s", bursts(r, 1, 1900, 100, 1000), []Signal{Beep}},
			{"low beep", bursts(r, 1, 400, 100, 425), []Signal{Beep}},
			{"high beep", bursts(r, 1, 400, 100, 2070), []Signal{Beep}},
			{"beep after a greeting", slices.Concat(talk, bursts(r, 1, 500, 1000, 1400)), []Signal{Beep}},
			{"beep too short", bursts(r, 1, 50, 100, 1000), nil},
			{"tone too long", bursts(r, 1, 2500, 100, 1000), []Signal{Music}},
			{"a fax machine", bursts(r, 1, 3000, 100, 2100), []Signal{Fax}},
			{"a tone at a fax's pitch, but short", bursts(r, 1, 1900, 100, 2100), []Signal{Beep}},
			{"tone too low", bursts(r, 1, 400, 100, 300), nil},
			{"tone too high", bursts(r, 1, 400, 100, 2500), nil},
			{"busy, North America", bursts(r, 3, 500, 500, 480, 620), []Signal{Busy, Busy}},
			{"congestion, North America", bursts(r, 3, 250, 250, 480, 620), []Signal{Busy, Busy}},
			{"busy, Europe", bursts(r, 3, 500, 500, 425), []Signal{Beep, Busy, Busy}},
			{"busy, Britain", bursts(r, 3, 375, 375, 400), []Signal{Beep, Busy, Busy}},
			{"ringback, North America", bursts(r, 2, 2000, 4000, 440, 480), []Signal{Ringback, Ringback}},
			{"ringback, Europe", bursts(r, 3, 1000, 4000, 425), []Signal{Beep, Ringback, Ringback}},
			{"special information", slices.Concat(bursts(r, 1, 330, 0, 950), bursts(r, 1, 330, 0, 1400),
				bursts(r, 1, 330, 1000, 1800)), []Signal{Beep, Information}},
			{"digits", bursts(r, 3, 100, 80, 697, 1209), nil},
			{"silence", make([]int16, int(r)), nil},
			{"noise", whiteNoise(3, 4000, 10*int(r)), nil},
		} {
			noisy := slices.Clone(c.pcm)
			Mix(noisy, whiteNoise(5, 6000/math.Sqrt2*Gain(-20), len(noisy)), 1)
			if got := signals(r, c.pcm); !slices.Equal(got, c.want) {
				t.Errorf("%s at %d Hz: %v, want %v", c.name, r, got, c.want)
			}
			if got := signals(r, DecodeALaw(nil, EncodeALaw(nil, noisy))); !slices.Equal(got, c.want) {
				t.Errorf("%s at %d Hz, with noise 20 dB below and A-law: %v, want %v", c.name, r, got, c.want)
			}
		}
		for _, v := range voices {
			if got := signals(r, speech(t, v, r)); len(got) > 0 {
				t.Errorf("%s at %d Hz: %v in speech", v, r, got)
			}
		}
	}
	d, frame := NewSignalDetector(Wide), tone(16000, 1000, 5000, 320)
	quiet(t, "signal detector", func() { d.Detect(frame) })
}

func BenchmarkSignalDetector(b *testing.B) {
	d, frame := NewSignalDetector(Wide), tone(16000, 1000, 5000, 320)
	for b.Loop() {
		d.Detect(frame)
	}
}

func TestExp(t *testing.T) {
	for x := float32(-87); x <= 88; x += 0.013 {
		if want := math.Exp(float64(x)); math.Abs(float64(exp(x))/want-1) > 5e-6 {
			t.Fatalf("e^%v: %v, not %v", x, exp(x), want)
		}
	}
	if got := exp(-1000); got != exp(-87) {
		t.Errorf("e^-1000: %v", got)
	}
	if got := exp(1000); got != exp(88) || math.IsInf(float64(got), 0) {
		t.Errorf("e^1000: %v", got)
	}
}
