package audio

import (
	"math"
	"strings"
	"testing"
)

// detect runs a detector over sound, frame by frame.
func detect(rate Rate, pcm []int16) string {
	d := NewDigitDetector(rate)
	var keys []byte
	for n := rate.FrameSize(); len(pcm) > 0; pcm = pcm[min(n, len(pcm)):] {
		if k := d.Detect(pcm[:min(n, len(pcm))]); k != 0 {
			keys = append(keys, k)
		}
	}
	return string(keys)
}

// press is a key pressed for some ms, after a silence of offset samples. low and high are the tones' levels in dBFS;
// off is a factor on their frequencies.
func press(rate Rate, key byte, offset int, ms, low, high, off float64) []int16 {
	i := strings.IndexByte(dtmfKeys, key)
	n := int(ms * float64(rate) / 1000)
	a := tone(int(rate), dtmfLow[i/4]*off, Gain(low+3.01)*32768, n)
	Mix(a, tone(int(rate), dtmfHigh[i%4]*off, Gain(high+3.01)*32768, n), 1)
	return append(make([]int16, offset, offset+2*n+int(rate)/5), concat(int(rate)/5, a)...)
}

func TestDigits(t *testing.T) {
	const keys = "0123456789*#ABCD11"
	for _, rate := range []Rate{Narrow, Wide} {
		d := NewDigits(rate)
		d.Dial("0123456789 *#")
		d.Dial("xABCD11")
		var pcm []int16
		frame := make(Frame, rate.FrameSize())
		for d.Fill(frame) {
			pcm = append(pcm, frame...)
		}
		if want := int(rate) * 18 * 180 / 1000; len(pcm) != want {
			t.Errorf("%d samples, want %d", len(pcm), want)
		}
		if got := detect(rate, pcm); got != keys {
			t.Errorf("at %d Hz: played %s, detected %s", rate, keys, got)
		}
		// As on a line: through µ-law, 20 dB weaker, with noise 20 dB below it.
		Fade(pcm, 0.1, 0.1)
		Mix(pcm, whiteNoise(1, Gain(level(pcm)-20)*32768, len(pcm)), 1)
		pcm = DecodeULaw(nil, EncodeULaw(nil, pcm))
		if got := detect(rate, pcm); got != keys {
			t.Errorf("at %d Hz: played %s on a bad line, detected %s", rate, keys, got)
		}
		d.Dial(strings.Repeat("1", 100))
		quiet(t, "digits", func() { d.Fill(frame) })
	}
	if !ValidKeys("01*#AD") || ValidKeys("1 2") || ValidKeys("a") {
		t.Error("ValidKeys")
	}
}

// TestDigitDetector tests Q.24's limits for every key, with beginnings anywhere in a block.
func TestDigitDetector(t *testing.T) {
	for _, c := range []struct {
		name               string
		ms, low, high, off float64
		want               bool
	}{
		{"40 ms", 40, -10, -10, 1, true},
		{"loud", 50, -4, -4, 1, true},
		{"weak", 50, -35, -35, 1, true},
		{"upper 4 dB stronger", 50, -14, -10, 1, true},
		{"lower 8 dB stronger", 50, -10, -18, 1, true},
		{"1.5 % sharp", 50, -10, -10, 1.015, true},
		{"1.5 % flat", 50, -10, -10, 0.985, true},
		{"a second", 1000, -10, -10, 1, true},
		{"23 ms", 23, -10, -10, 1, false},
		{"10 ms", 10, -10, -10, 1, false},
		{"too weak", 60, -46, -46, 1, false},
		{"3.5 % sharp", 60, -10, -10, 1.035, false},
		{"3.5 % flat", 60, -10, -10, 0.965, false},
		{"upper 12 dB stronger", 60, -22, -10, 1, false},
		{"lower 14 dB stronger", 60, -8, -22, 1, false},
	} {
		wrong := 0
		for _, key := range []byte(dtmfKeys) {
			for offset := range 11 {
				for _, rate := range []Rate{Narrow, Wide} {
					want := ""
					if c.want {
						want = string(key)
					}
					if got := detect(rate, press(rate, key, offset*23, c.ms, c.low, c.high, c.off)); got != want {
						if wrong++; wrong < 4 {
							t.Errorf("%s: key %c at %d Hz, offset %d: detected %q", c.name, key, rate, offset*23, got)
						}
					}
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: wrong %d times of 352", c.name, wrong)
		}
	}
}

// TestDigitDetectorGaps: 10 ms of silence within a key don't make a second key; 40 ms do.
func TestDigitDetectorGaps(t *testing.T) {
	for offset := range 30 {
		one := press(Narrow, '5', 0, 60, -10, -10, 1)[:480]
		lead := make([]int16, 7*offset)
		if got := detect(Narrow, concat(800, concat(0, lead, one, make([]int16, 80), one))); got != "5" {
			t.Errorf("offset %d: a gap of 10 ms: %q", offset, got)
		}
		if got := detect(Narrow, concat(800, concat(0, lead, one, make([]int16, 320), one))); got != "55" {
			t.Errorf("offset %d: a gap of 40 ms: %q", offset, got)
		}
	}
}

// TestDigitTalkOff: no keys are found in speech, noise and single tones.
func TestDigitTalkOff(t *testing.T) {
	for _, rate := range []Rate{Narrow, Wide} {
		for _, name := range voices {
			if got := detect(rate, speech(t, name, rate)); got != "" {
				t.Errorf("%s at %d Hz: detected %q in speech", name, rate, got)
			}
		}
		for _, hz := range append(dtmfLow[:], dtmfHigh[:]...) {
			if got := detect(rate, tone(int(rate), hz, 10000, int(rate))); got != "" {
				t.Errorf("%.0f Hz alone: %q", hz, got)
			}
		}
		if got := detect(rate, whiteNoise(4, 5000, 20*int(rate))); got != "" {
			t.Errorf("noise: %q", got)
		}
	}
	d, frame := NewDigitDetector(Wide), whiteNoise(1, 5000, 320)
	quiet(t, "digit detector", func() { d.Detect(frame) })
}

func BenchmarkDigitDetector(b *testing.B) {
	d, frame := NewDigitDetector(Wide), whiteNoise(1, 5000, 320)
	for b.Loop() {
		d.Detect(frame)
	}
}

func TestGoertzelOffset(t *testing.T) {
	d := NewDigitDetector(Narrow)
	for _, off := range []float64{-15, 0, 8, 25} {
		pcm := tone(8000, 770+off, 10000, 204)
		g := &d.tones[1]
		var v [2]complex128
		for i, s := range pcm {
			if g.take(float64(s)); i%102 == 101 {
				v[i/102] = g.value()
			}
		}
		if got := d.offset(v[0], v[1], g.turn) * 8000 / 2 / math.Pi; math.Abs(got-off) > 1.5 {
			t.Errorf("a tone %v Hz off is measured %v Hz off", off, got)
		}
	}
}
