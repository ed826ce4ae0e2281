package audio

import "math"

// Level is the rms of samples in dBFS, 0 being a square wave of full scale (a sine of full scale has -3). Digital
// silence has -100.
func Level(pcm []int16) float64 {
	if len(pcm) == 0 {
		return -100
	}
	var sum float64
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	return max(-100, 10*math.Log10(sum/float64(len(pcm))/(1<<30)+1e-12))
}

// Peak is the largest magnitude, in dBFS.
func Peak(pcm []int16) float64 {
	peak := 0
	for _, s := range pcm {
		peak = max(peak, int(s), -int(s))
	}
	return max(-100, 20*math.Log10(float64(peak)/(1<<15)+1e-12))
}

// Gain is the factor of so many dB.
func Gain(db float64) float64 { return math.Pow(10, db/20) }

// Mix adds gain times src to dst. The sum is clipped at full scale.
func Mix(dst, src []int16, gain float64) {
	g := int64(gain * (1 << 16))
	for i := range min(len(dst), len(src)) {
		dst[i] = int16(min(max(int64(dst[i])+(int64(src[i])*g+1<<15)>>16, math.MinInt16), math.MaxInt16))
	}
}

// Fade multiplies pcm by a factor that goes evenly from one to the other, so that a change of volume doesn't click.
// With from equal to to it sets a volume.
func Fade(pcm []int16, from, to float64) {
	step := (to - from) / float64(max(len(pcm), 1))
	for i, s := range pcm {
		pcm[i] = clip(float64(s) * (from + step*float64(i+1)))
	}
}

// clip rounds to a sample; what is beyond full scale stops there.
func clip(v float64) int16 {
	return int16(math.Round(min(max(v, math.MinInt16), math.MaxInt16)))
}

// random is a small generator of noise (xorshift*): the zero value is seeded by the first call.
type random uint64

func (r *random) next() uint64 {
	x := uint64(*r)
	if x == 0 {
		x = 0x9E3779B97F4A7C15
	}
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*r = random(x)
	return x * 0x2545F4914F6CDD1D
}

// uniform is in [0, 1).
func (r *random) uniform() float64 { return float64(r.next()>>11) / (1 << 53) }

// noise is in [-1, 1), with an rms of 1/sqrt(3).
func (r *random) noise() float64 { return float64(int64(r.next())) / (1 << 63) }
