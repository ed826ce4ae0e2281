package audio

import (
	"fmt"
	"math"
)

// Ambient is a place's sound, made here from noise and tones, as a loop of 16 seconds that has no seam. It never
// changes once it is made, so one serves any number of calls; at 16 kHz it takes 512 KB.
type Ambient struct{ loop []int16 }

// AmbientLevel is the rms of every Ambient, in dBFS: at a gain of 1 it is about 20 dB below speech.
const AmbientLevel = -40

const ambientSeconds = 16

// ambients make places, by the names that assistants have for them.
var ambients = map[string]func(*scene){
	"office": func(s *scene) {
		s.noise(0.5, 60, 400) // air conditioning
		s.noise(0.08, 800, 3000)
		s.voices(3, 0.25)
		s.each(7, func(at float64) { // typing, in spells
			for range 4 + s.rand.next()%12 {
				s.tick(at, 0.5, 2600+1400*s.rand.uniform(), 0.004)
				at += 0.09 + 0.12*s.rand.uniform()
			}
		})
		s.each(1, func(at float64) { // a telephone far away
			for i := range 2 {
				s.chirp(at+2*float64(i), 0.10, 0.8, 1100, 1100, 22)
			}
		})
	},
	"city": func(s *scene) {
		s.noise(1, 40, 250)
		s.noise(0.25, 300, 1500)
		// cars pass
		s.each(6, func(at float64) { s.swell(at, 0.8+s.rand.uniform(), 0.7+0.8*s.rand.uniform(), 90, 900) })
		s.each(2, func(at float64) { s.chirp(at, 0.10, 0.3, 420, 415, 0) }) // a horn
		s.voices(2, 0.15)
	},
	"forest": func(s *scene) {
		s.noise(0.25, 200, 1200)
		s.each(5, func(at float64) { s.swell(at, 0.4, 1.5, 300, 2500) }) // wind in the leaves
		s.birds(14)
	},
	"crowded_room": func(s *scene) {
		s.noise(0.2, 100, 600)
		s.voices(14, 0.5)
		s.each(5, func(at float64) { s.tick(at, 0.4, 2200+1200*s.rand.uniform(), 0.03) })
	},
	"cafe": func(s *scene) {
		s.noise(0.25, 80, 500)
		s.voices(7, 0.45)
		s.each(14, func(at float64) { // cups and spoons
			hz := 2300 + 1300*s.rand.uniform()
			s.tick(at, 0.6, hz, 0.05)
			s.tick(at+0.01, 0.3, hz*1.31, 0.03)
		})
		s.each(1, func(at float64) { s.swell(at+1, 0.7, 0.9, 1500, 3800) }) // the coffee machine
	},
	"nature": func(s *scene) {
		s.noise(0.5, 500, 3500) // a brook
		s.each(60, func(at float64) { s.chirp(at, 0.12, 0.05, 500+700*s.rand.uniform(), 900+900*s.rand.uniform(), 0) })
		s.each(3, func(at float64) { s.swell(at, 0.5, 2, 200, 1500) })
		s.birds(6)
		s.each(10, func(at float64) { s.chirp(at, 0.06, 0.35, 3300, 3300, 35) }) // crickets
	},
}

// NewAmbient makes the sound of a place: office, city, forest, crowded_room, cafe or nature. Equal seeds make equal
// sounds. It takes some tens of milliseconds.
func NewAmbient(place string, rate Rate, seed uint64) (*Ambient, error) {
	build, ok := ambients[place]
	if !ok {
		return nil, fmt.Errorf("there is no ambient sound %q", place)
	}
	s := &scene{rate: float64(rate), sound: make([]float64, ambientSeconds*int(rate)), rand: random(seed*2 + 1)}
	for range 8 {
		s.rand.next()
	}
	build(s)
	return s.loop(AmbientLevel), nil
}

// loop is the scene's sound at a level.
func (s *scene) loop(dBFS float64) *Ambient {
	var sum float64
	for _, v := range s.sound {
		sum += v * v
	}
	k := Gain(dBFS) * (1 << 15) / math.Sqrt(sum/float64(len(s.sound)))
	a := &Ambient{loop: make([]int16, len(s.sound))}
	for i, v := range s.sound {
		a.loop[i] = clip(k * v)
	}
	return a
}

// Mix adds the sound to f at a gain, from a position in samples since the beginning, and returns the next one. Calls
// that begin at different positions don't sound alike.
func (a *Ambient) Mix(f Frame, position int, gain float64) int {
	for len(f) > 0 {
		position %= len(a.loop)
		n := min(len(f), len(a.loop)-position)
		Mix(f[:n], a.loop[position:position+n], gain)
		f, position = f[n:], position+n
	}
	return position
}

// scene is a loop in the making: what goes on behind its end is heard at its beginning.
type scene struct {
	rate  float64
	sound []float64
	rand  random
}

func (s *scene) add(i int, v float64) { s.sound[i%len(s.sound)] += v }

// each calls f for so many moments, spread by chance.
func (s *scene) each(times int, f func(at float64)) {
	for i := range times {
		f((float64(i) + s.rand.uniform()) * ambientSeconds / float64(times))
	}
}

// band filters a loop of noise to a band. It goes around twice, so that the filter's beginning knows its end.
func (s *scene) band(low, high float64) []float64 {
	in, out := make([]float64, len(s.sound)), make([]float64, len(s.sound))
	for i := range in {
		in[i] = s.rand.noise()
	}
	kl, kh := 1-math.Exp(-2*math.Pi*low/s.rate), 1-math.Exp(-2*math.Pi*high/s.rate)
	var a, b, c, sum float64
	for range 2 {
		sum = 0
		for i, x := range in {
			a += kh * (x - a)
			b += kh * (a - b)
			c += kl * (b - c)
			out[i] = b - c
			sum += out[i] * out[i]
		}
	}
	k := 1 / math.Sqrt(sum/float64(len(out)))
	for i := range out {
		out[i] *= k
	}
	return out
}

// noise is a steady one in a band, Hz.
func (s *scene) noise(gain, low, high float64) {
	for i, v := range s.band(low, high) {
		s.sound[i] += gain * v
	}
}

// swell is a noise that comes and goes within some seconds.
func (s *scene) swell(at, gain, width, low, high float64) {
	n, middle := s.band(low, high), int(at*s.rate)
	reach := int(3 * width * s.rate)
	for i := -reach; i < reach; i++ {
		x := float64(i) / (width * s.rate)
		k := middle + i + len(s.sound)
		s.add(k, gain*(math.Exp(-x*x/2)-math.Exp(-4.5))*n[k%len(n)])
	}
}

// tick is something hard that is struck: it rings at a frequency and fades by a factor of e in some seconds.
func (s *scene) tick(at, gain, hz, fade float64) {
	begin := int(at * s.rate)
	for i := range int(7 * fade * s.rate) {
		t := float64(i) / s.rate
		s.add(begin+i, gain*math.Exp(-t/fade)*math.Sin(2*math.Pi*hz*t))
	}
}

// chirp is a tone that glides between two frequencies, with a tremolo of so many Hz.
func (s *scene) chirp(at, gain, seconds, from, to, tremolo float64) {
	begin, n, phase := int(at*s.rate), int(seconds*s.rate), 0.0
	for i := range n {
		x := float64(i) / float64(n)
		phase += 2 * math.Pi * (from + (to-from)*x) / s.rate
		shape := math.Sin(math.Pi * x)
		if tremolo > 0 {
			shape *= 0.5 - 0.5*math.Cos(2*math.Pi*tremolo*seconds*x)
		}
		s.add(begin+i, gain*shape*math.Sin(phase))
	}
}

// birds sing short phrases.
func (s *scene) birds(phrases int) {
	s.each(phrases, func(at float64) {
		from, to := 1900+1500*s.rand.uniform(), 1900+1700*s.rand.uniform()
		gain := 0.1 + 0.3*s.rand.uniform()
		for range 2 + s.rand.next()%5 {
			s.chirp(at, gain, 0.08+0.05*s.rand.uniform(), from, to, 0)
			at += 0.13 + 0.1*s.rand.uniform()
		}
	})
}

// voices murmur: pulses of a pitch through two resonances that move from syllable to syllable. No words can be made
// out, and none are there.
func (s *scene) voices(many int, gain float64) {
	for range many {
		pitch := 90 + 130*s.rand.uniform()
		loud := gain * (0.4 + 0.8*s.rand.uniform())
		for at := s.rand.uniform(); at < ambientSeconds; at += 0.02 {
			length := 0.09 + 0.16*s.rand.uniform()
			s.syllable(at, loud*(0.5+s.rand.uniform()), length, pitch*(0.9+0.25*s.rand.uniform()),
				300+500*s.rand.uniform(), 900+1300*s.rand.uniform())
			if at += length; s.rand.next()%7 == 0 {
				at += 0.3 + 0.9*s.rand.uniform() // takes breath, listens
			}
		}
	}
}

// syllable is a vowel: harmonics of a pitch, the stronger the nearer they are to one of two formants.
func (s *scene) syllable(at, gain, seconds, pitch, formant1, formant2 float64) {
	begin, n := int(at*s.rate), int(seconds*s.rate)
	for h := 1.0; h*pitch < 3000; h++ {
		hz := h * pitch
		a := gain / (1 + sqr((hz-formant1)/90)) * 0.8
		a += gain / (1 + sqr((hz-formant2)/140)) * 0.35
		if a < 0.01*gain {
			continue
		}
		// A tone by recursion: the sine is costly here.
		turn := 2 * math.Pi * hz / s.rate
		coeff, y1, y2 := 2*math.Cos(turn), math.Sin(-turn), math.Sin(-2*turn)
		for i := range n {
			y := coeff*y1 - y2
			y1, y2 = y, y1
			x := float64(i) / float64(n)
			s.add(begin+i, a*y*4*x*(1-x))
		}
	}
}

func sqr(x float64) float64 { return x * x }
