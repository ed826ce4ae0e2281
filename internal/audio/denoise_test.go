package audio

import (
	"maps"
	"math"
	"slices"
	"testing"
)

func denoised(rate Rate, pcm []int16) []int16 {
	d, out := NewDenoiser(rate), slices.Clone(pcm)
	for n := rate.FrameSize(); n <= len(out); n += rate.FrameSize() {
		d.Clean(out[n-rate.FrameSize() : n])
	}
	return out
}

// TestDenoiser: with noise at 10 dB the pauses get quieter by at least 6 dB after half a second, and the speech stays;
// clean speech changes by less than a dB.
func TestDenoiser(t *testing.T) {
	least, most := map[string]float64{}, 0.0
	for _, rate := range []Rate{Narrow, Wide} {
		n, delay := rate.FrameSize(), int(rate)/100
		for _, v := range []string{"rms", "slt", "awb", "kal"} {
			clean := concat(int(rate)*3/2, make([]int16, n), speech(t, v, rate), nil)
			after := denoised(rate, clean)
			loud := activeLevel(clean, rate)
			var worst, square, count float64
			for i := 0; i+n+delay <= len(clean); i += n {
				if before := level(clean[i : i+n]); before > 20*math.Log10(loud)-20 {
					change := level(after[i+delay:i+delay+n]) - before
					square, count = square+change*change, count+1
					if math.Abs(change) > math.Abs(worst) {
						worst = change
					}
				}
			}
			rms := math.Sqrt(square / count)
			most = max(most, rms)
			if rms > 0.8 {
				t.Errorf("%s at %d Hz: clean speech is changed by %.2f dB", v, rate, rms)
			}
			t.Logf("%s at %d Hz: clean speech changed by %.2f dB rms, worst frame %.2f", v, rate, rms, worst)
			for kind, make := range noises {
				mixed := noisy(clean, make(t, 5, rate, len(clean)), rate, 10)
				after := denoised(rate, mixed)
				var in, out, speechIn, speechOut float64
				for i := int(rate) / 2; i+n+delay <= len(clean); i += n {
					a, b := math.Pow(10, level(mixed[i:i+n])/10), math.Pow(10, level(after[i+delay:i+delay+n])/10)
					if c := level(clean[i : i+n]); c < -90 {
						in, out = in+a, out+b
					} else if c > 20*math.Log10(loud)-10 {
						speechIn, speechOut = speechIn+a, speechOut+b
					}
				}
				less, kept := 10*math.Log10(in/out), 10*math.Log10(speechOut/speechIn)
				t.Logf("%s in %s at %d Hz: pauses %.1f dB quieter, speech %+.1f dB", v, kind, rate, less, kept)
				if was, ok := least[kind]; !ok || less < was {
					least[kind] = less
				}
				if less < 6 {
					t.Errorf("%s in %s at %d Hz: pauses are only %.1f dB quieter", v, kind, rate, less)
				}
				if kept < -2.5 {
					t.Errorf("%s in %s at %d Hz: speech is %.1f dB quieter", v, kind, rate, -kept)
				}
			}
		}
		// Its latency, measured with a click.
		click := make([]int16, 10*n)
		click[5*n+3] = 20000
		out, at := denoised(rate, click), 0
		for i, s := range out {
			if s > out[at] {
				at = i
			}
		}
		if at != 5*n+3+delay {
			t.Errorf("latency of %d samples, want %d", at-5*n-3, delay)
		}
		d, frame := NewDenoiser(rate), whiteNoise(1, 1000, n)
		quiet(t, "noise suppression", func() { d.Clean(frame) })
	}
	for _, kind := range slices.Sorted(maps.Keys(least)) {
		t.Logf("quality: noise suppression in %s at 10 dB: pauses %.1f dB quieter or more (goal >= 6 dB: %s)", kind,
			least[kind], verdict(least[kind] >= 6))
	}
	t.Logf("quality: noise suppression: clean speech changed by %.2f dB rms or less (goal <= 1 dB: %s)", most,
		verdict(most <= 1))
}

func BenchmarkDenoiser(b *testing.B) {
	d, frame := NewDenoiser(Wide), whiteNoise(1, 1000, 320)
	for b.Loop() {
		d.Clean(frame)
	}
}
