package audio

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// TestFFT compares the transform with the sum that defines it.
func TestFFT(t *testing.T) {
	for _, n := range []int{8, 64, 256, 512} {
		f, r := newFFT(n), rand.New(rand.NewPCG(1, uint64(n)))
		x, back, spectrum := make([]float32, n), make([]float32, n), make([]complex64, n/2+1)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		f.forward(spectrum, x)
		for k := range spectrum {
			var want complex128
			for i, v := range x {
				want += complex(float64(v), 0) * cmplx.Rect(1, -2*math.Pi*float64(i*k)/float64(n))
			}
			if cmplx.Abs(complex128(spectrum[k])-want) > 1e-3 {
				t.Fatalf("n=%d: value %d is %v, want %v", n, k, spectrum[k], want)
			}
		}
		f.inverse(back, spectrum)
		for i := range x {
			if math.Abs(float64(back[i]-x[i])) > 1e-4 {
				t.Fatalf("n=%d: sample %d came back as %v, not %v", n, i, back[i], x[i])
			}
		}
	}
}

// amplitudeAt is the amplitude of one frequency in pcm, by a sum over a Hann window that is long enough to exclude
// neighbouring frequencies.
func amplitudeAt(pcm []int16, rate int, hz float64) float64 {
	var sum complex128
	n := float64(len(pcm))
	for i, s := range pcm {
		w := 1 - math.Cos(2*math.Pi*float64(i)/n)
		sum += complex(w*float64(s), 0) * cmplx.Rect(1, -2*math.Pi*hz*float64(i)/float64(rate))
	}
	return 2 * cmplx.Abs(sum) / n
}

var rates = []int{8000, 16000, 24000, 48000}

// TestResampler sends tones through every pair of rates. Below 80 % of the lower Nyquist frequency they come out as
// they went in; everywhere else (images, aliases) there is nothing.
func TestResampler(t *testing.T) {
	const amplitude = 20000
	all := append([]int{22050}, rates...)
	for _, from := range all {
		for _, to := range all {
			low := float64(min(from, to))
			for _, part := range []float64{0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 1.0, 1.05, 1.2, 1.5, 1.9} {
				hz := part*low/2 + 3
				if hz > float64(from)/2-20 {
					continue
				}
				out := resampled(t, tone(from, hz, amplitude, from/2), from, to)
				if len(out) != to/2 {
					t.Fatalf("%d to %d: half a second is %d samples", from, to, len(out))
				}
				out = out[to/10:] // after the beginning
				got := 20 * math.Log10(amplitudeAt(out, to, hz)/amplitude+1e-9)
				if part <= 0.8 {
					if math.Abs(got) > 0.05 {
						t.Errorf("%d to %d: %.0f Hz is changed by %.3f dB", from, to, hz, got)
					}
					// The rest is rounding and images: subtract the tone and look at what remains.
					if rest := residue(out, to, hz) - level(tone(to, hz, amplitude, to)); rest > -70 {
						t.Errorf("%d to %d: %.0f Hz leaves %.1f dB of what isn't it", from, to, hz, rest)
					}
				} else if part >= 1 && from > to {
					if rest := level(out) - level(tone(from, hz, amplitude, from)); rest > -70 {
						t.Errorf("%d to %d: %.0f Hz leaves %.1f dB", from, to, hz, rest)
					}
				}
			}
		}
	}
}

// residue is the level of what remains when the tone at hz is subtracted by least squares.
func residue(pcm []int16, rate int, hz float64) float64 {
	var cc, cs, ss, xc, xs float64
	for i, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		cc, cs, ss, xc, xs = cc+c*c, cs+c*s, ss+s*s, xc+float64(v)*c, xs+float64(v)*s
	}
	det := cc*ss - cs*cs
	a, b := (xc*ss-xs*cs)/det, (xs*cc-xc*cs)/det
	var sum float64
	for i, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		e := float64(v) - a*c - b*s
		sum += e * e
	}
	return 10 * math.Log10(sum/float64(len(pcm))/(1<<30)+1e-12)
}

// TestResamplerImages looks for mirror images in an upsampler's output near the edge of the band, where they are
// strongest.
func TestResamplerImages(t *testing.T) {
	for _, part := range []float64{0.25, 0.5, 0.8} {
		hz := part * 4000
		plain := resampled(t, tone(8000, hz, 20000, 8000), 8000, 16000)[1600:]
		if got := 20 * math.Log10(amplitudeAt(plain, 16000, 8000-hz)/20000+1e-9); got > -70 {
			t.Errorf("the image of %.0f Hz is at %.1f dB", hz, got)
		}
		r := NewMirrorResampler()
		var mirrored []int16
		in := tone(8000, hz, 20000, 8000)
		for ; len(in) > 0; in = in[160:] {
			mirrored = r.Resample(mirrored, in[:160])
		}
		if got := amplitudeAt(mirrored[1600:], 16000, 8000-hz) / 20000; math.Abs(got-0.25) > 0.005 {
			t.Errorf("the image of %.0f Hz has %.3f of its amplitude, want a quarter", hz, got)
		}
		if got := amplitudeAt(mirrored[1600:], 16000, hz) / 20000; math.Abs(got-1) > 0.01 {
			t.Errorf("%.0f Hz has %.3f of its amplitude beside its image", hz, got)
		}
	}
}

// TestResamplerStream: a click comes out ResampleLatency later; how a stream is divided into calls changes nothing;
// frames allocate nothing.
func TestResamplerStream(t *testing.T) {
	for _, from := range rates {
		for _, to := range rates {
			click := make([]int16, from/10)
			click[from/100] = 30000
			out := resampled(t, click, from, to)
			at := 0
			for i, s := range out {
				if s > out[at] {
					at = i
				}
			}
			want := to / 100
			if from != to {
				want += ResampleLatency * to / min(from, to)
			}
			if at != want {
				t.Errorf("%d to %d: the click is at %d, want %d", from, to, at, want)
			}

			in := whiteNoise(1, 8000, from/5)
			whole := resampled(t, in, from, to)
			r, _ := NewResampler(from, to)
			rnd := rand.New(rand.NewPCG(1, 2))
			var pieces []int16
			for len(in) > 0 {
				n := min(1+rnd.IntN(500), len(in))
				pieces, in = r.Resample(pieces, in[:n]), in[n:]
			}
			if len(pieces) != len(whole) || sum(octets(pieces)) != sum(octets(whole)) {
				t.Errorf("%d to %d: pieces make another sound than the whole", from, to)
			}

			r, _ = NewResampler(from, to)
			frame, dst := whiteNoise(1, 8000, from/50), make([]int16, 0, to/50)
			quiet(t, "resampler", func() {
				if dst = r.Resample(dst[:0], frame); len(dst) != to/50 || r.Size(len(frame)) != to/50 {
					t.Fatalf("%d to %d: a frame of %d samples", from, to, len(dst))
				}
			})
		}
	}
	if _, err := NewResampler(8000, 44100); err == nil {
		t.Error("44100 Hz is taken")
	}
}

func BenchmarkResample(b *testing.B) {
	for _, c := range []struct {
		name     string
		from, to int
	}{{"8to16", 8000, 16000}, {"16to8", 16000, 8000}, {"48to16", 48000, 16000}, {"24to8", 24000, 8000}} {
		b.Run(c.name, func(b *testing.B) {
			r, _ := NewResampler(c.from, c.to)
			frame, dst := whiteNoise(1, 8000, c.from/50), make([]int16, 0, c.to/50)
			for b.Loop() {
				dst = r.Resample(dst[:0], frame)
			}
		})
	}
}

// TestDot: sums of products of any length are right, and one that is too short is no silent fault.
func TestDot(t *testing.T) {
	for n := range 140 {
		a, b, want := make([]float32, n), make([]float32, n+1), 0.0
		for i := range a {
			a[i], b[i] = float32(i%7)-3, float32(i%5)/2-1
			want += float64(a[i] * b[i])
		}
		b[n] = 100
		if got := dot(a, b); math.Abs(float64(got)-want) > 1e-3 {
			t.Errorf("%d products: %v, want %v", n, got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("what is behind the end of a row was read")
		}
	}()
	dot(make([]float32, 8), make([]float32, 7)[:7:7])
}

// TestProducts: those of a network's rows are what dot gives, whatever is between the rows.
func TestProducts(t *testing.T) {
	for n := range 70 {
		const step = 75
		rows, x, out := make([]float32, 5*step), make([]float32, n), make([]float32, 5)
		for i := range rows {
			rows[i] = float32(i%11) - 5
		}
		for i := range x {
			x[i] = float32(i%7)/2 - 1
		}
		products(out, x, rows, step)
		for i, got := range out {
			if want := dot(x, rows[i*step:]); got != want {
				t.Errorf("row %d of %d values: %v, want %v", i, n, got, want)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("what is behind the last row was read")
		}
	}()
	products(make([]float32, 3), make([]float32, 8), make([]float32, 27)[:27:27], 10)
}

// TestSquash: many at a time are squashed as each of them is, at the ends of the scale, too.
func TestSquash(t *testing.T) {
	for n := range 9 {
		for v := float32(-120); v < 120; v += 0.37 {
			x := make([]float32, n)
			for i := range x {
				x[i] = v + float32(i)
			}
			squashAll(x)
			for i, got := range x {
				want := 1 / (1 + math.Exp(-float64(v+float32(i))))
				if math.Abs(float64(got)-want) > 1e-6 {
					t.Fatalf("%v of %v: %v, want %v", i, v, got, want)
				}
			}
		}
	}
}
