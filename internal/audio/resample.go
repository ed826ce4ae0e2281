package audio

import (
	"fmt"
	"math"
)

// Resampler changes the rate of a stream among 8, 16, 22.05, 24 and 48 kHz. Its filter is a windowed sinc in
// polyphase form: the pass band, to 80 % of the lower rate's half (3.2 kHz between 8 and 16 kHz), is flat within 0.05
// dB; from the lower rate's half on everything is down by 70 dB or more. The latency is ResampleLatency samples of
// the lower rate: 3 ms where 8 kHz is the lower one, 1.5 ms at 16 kHz.
type Resampler struct {
	up, down int // the rate becomes up/down of what it was
	taps     int // per phase
	phases   []float32
	history  []float32 // the last taps-1 samples, then room for a frame
	at       int       // phase of the next sample, in units of 1/up of an input sample
	mirror   bool
}

// ResampleLatency is how far a resampler is behind its input, in samples of the lower of the two rates.
const ResampleLatency = 24

// NewResampler changes from one rate to another, in Hz; equal rates copy.
func NewResampler(from, to int) (*Resampler, error) {
	for _, r := range []int{from, to} {
		if r != 8000 && r != 16000 && r != 22050 && r != 24000 && r != 48000 {
			return nil, fmt.Errorf("resample from %d to %d Hz: neither may be other than 8000, 16000, 22050, 24000 or 48000", from, to)
		}
	}
	return newResampler(from, to), nil
}

// NewMirrorResampler goes from 8 to 16 kHz and leaves a quarter (-12 dB) of the mirror image above 4 kHz. It is for
// recognisers whose models learned on wide-band speech: an empty upper half misleads them more than one that follows
// the lower.
func NewMirrorResampler() *Resampler {
	r := newResampler(8000, 16000)
	r.mirror = true
	return r
}

func newResampler(from, to int) *Resampler {
	g := gcd(from, to)
	r := &Resampler{up: to / g, down: from / g}
	if from == to {
		return r
	}
	// The prototype runs at from*up = to*down. Its cutoff lies in the middle of the transition, from 80 % to 100 % of
	// the lower half rate.
	wide := max(r.up, r.down)
	length := 2*ResampleLatency*wide + 1
	cutoff := 0.9 / float64(2*wide) // cycles per sample of the prototype
	r.taps = (length + r.up - 1) / r.up
	r.phases = make([]float32, r.taps*r.up)
	for i := range length {
		x := float64(i - ResampleLatency*wide)
		v := 2 * cutoff * float64(r.up)
		if x != 0 {
			v *= math.Sin(2*math.Pi*cutoff*x) / (2 * math.Pi * cutoff * x)
		}
		v *= kaiser(x/float64(ResampleLatency*wide), 7.2)
		r.phases[i%r.up*r.taps+r.taps-1-i/r.up] = float32(v) // each phase reversed: oldest sample first
	}
	r.history = make([]float32, r.taps-1, r.taps-1+48000/50)
	return r
}

// Size is how many samples come out for so many that go in, from the beginning of the stream: exact whenever the
// input is of whole 20 ms, or of any other length that gives a whole number.
func (r *Resampler) Size(in int) int { return in * r.up / r.down }

// Resample appends the resampled pcm to dst. Nothing is held back: n samples give Size(n). It allocates only when pcm
// is longer than any before it, and than 20 ms of 48 kHz.
func (r *Resampler) Resample(dst, pcm []int16) []int16 {
	if r.taps == 0 {
		return append(dst, pcm...)
	}
	h := r.history
	for _, s := range pcm {
		h = append(h, float32(s))
	}
	for ; r.at < len(pcm)*r.up; r.at += r.down {
		dst = append(dst, r.sample(h[r.at/r.up:], r.at%r.up))
	}
	r.at -= len(pcm) * r.up
	r.history = h[:copy(h, h[len(pcm):])]
	return dst
}

// sample is the output at one phase. A signal whose every other sample has its sign turned is its own mirror image; a
// quarter of that added to the signal itself is one factor for even samples and another for odd ones.
func (r *Resampler) sample(h []float32, phase int) int16 {
	sum := dot(h[:r.taps], r.phases[phase*r.taps:(phase+1)*r.taps])
	if r.mirror {
		const quarter = 0.25
		if phase == 0 {
			return clip32(sum * (1 + quarter))
		}
		return clip32(sum * (1 - quarter))
	}
	return clip32(sum)
}

func clip32(v float32) int16 {
	switch { // min and max of floats look for NaN
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	case v < 0:
		return int16(v - 0.5)
	}
	return int16(v + 0.5)
}

// kaiser is the Kaiser window at x in [-1, 1].
func kaiser(x, beta float64) float64 {
	if x < -1 || x > 1 {
		return 0
	}
	return bessel0(beta*math.Sqrt(1-x*x)) / bessel0(beta)
}

// bessel0 is the modified Bessel function of the first kind and order 0.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
