package simulator

import (
	"math"
	"math/rand/v2"
	"time"
)

// beep is what a voicemail records after: 1 kHz at -12 dBFS.
var beep = func() []int16 {
	pcm := make([]int16, int(rate)*int(beepTime/time.Millisecond)/1000)
	for i := range pcm {
		pcm[i] = int16(8230 * math.Sin(2*math.Pi*1000*float64(i)/float64(rate)))
	}
	return pcm
}()

// vowels are the frequencies of the first three formants, Hz, of a man's a, e, i, o, u.
var vowels = [5][3]float64{{730, 1090, 2440}, {530, 1840, 2480}, {270, 2290, 3010}, {570, 840, 2410}, {300, 870, 2240}}

// murmur is a sound like speech that says nothing: a voice whose pitch glides and falls, a vowel for each two letters, a
// hiss here and there between them, a pause at commas and full stops. The same text always sounds the same.
func murmur(text string) []int16 {
	var pcm []float64
	r := rand.New(rand.NewPCG(uint64(len(text)), 5))
	v := voice{pitch: highest}
	letters := 0
	for _, c := range text {
		switch {
		case c == '.' || c == ',' || c == '?' || c == '!':
			pcm, v.pitch = append(pcm, make([]float64, int(rate)/5)...), highest
		case c == ' ':
		default:
			if letters++; letters%2 == 0 {
				pcm = v.syllable(pcm, r, vowels[int(c)%len(vowels)], c%3 == 0)
			}
		}
	}
	var power float64
	for _, x := range pcm {
		power += x * x
	}
	gain := loudness / math.Sqrt(power/float64(letters/2*syllable))
	out := make([]int16, len(pcm))
	for i, x := range pcm {
		out[i] = int16(max(min(x*gain, math.MaxInt16), math.MinInt16))
	}
	return out
}

const (
	syllable = int(rate) * 16 / 100 // samples
	highest  = 130.0                // Hz, of the pitch
	loudness = 2600                 // rms, -22 dBFS: as loud as people are on a telephone
)

// voice is a source of pulses and three resonators beside each other.
type voice struct {
	pitch float64 // Hz
	phase float64
	state [3][2]float64
}

// syllable appends 160 ms: a consonant, and a vowel that swells and fades.
func (v *voice) syllable(pcm []float64, r *rand.Rand, formants [3]float64, hiss bool) []float64 {
	v.pitch = max(v.pitch*(0.97+0.02*r.Float64()), 90)
	glide := 0.3 * (r.Float64() - 0.5)
	for i := range syllable {
		t := float64(i) / float64(syllable)
		if hiss && t < 0.25 {
			pcm = append(pcm, 0.3*r.NormFloat64())
			continue
		}
		v.phase += v.pitch * (1 + glide*(t-0.5) + 0.01*r.NormFloat64()) / float64(rate)
		x := 0.02 * r.NormFloat64()
		if v.phase >= 1 {
			v.phase--
			x++
		}
		var sum float64
		for k := range v.state {
			s, width := &v.state[k], 60+40*float64(k)
			radius := math.Exp(-math.Pi * width / float64(rate))
			y := x + 2*radius*math.Cos(2*math.Pi*formants[k]/float64(rate))*s[0] - radius*radius*s[1]
			s[1], s[0] = s[0], y
			sum += y / float64(1+2*k)
		}
		pcm = append(pcm, sum*(0.1+math.Sin(math.Pi*t)))
	}
	return pcm
}
