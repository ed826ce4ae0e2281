package audio

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Noises of the kinds that calls have, made here and independently of those that Ambient makes. Their rms is 1.

var noises = map[string]func(t testing.TB, seed uint64, rate Rate, n int) []float64{
	"white": func(_ testing.TB, seed uint64, _ Rate, n int) []float64 {
		return colour(seed, n, func(x float64) float64 { return x })
	},
	"pink":   func(_ testing.TB, seed uint64, _ Rate, n int) []float64 { return pink(seed, n) },
	"babble": babble,
	"car":    car,
	"street": street,
}

func unit(x []float64) []float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	k := 1 / math.Sqrt(sum/float64(len(x))+1e-9)
	for i := range x {
		x[i] *= k
	}
	return x
}

func colour(seed uint64, n int, filter func(float64) float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 77))
	x := make([]float64, n)
	for i := range x {
		x[i] = filter(r.NormFloat64())
	}
	return unit(x)
}

// pink is pink noise: Kellet's sum of three one-pole filters.
func pink(seed uint64, n int) []float64 {
	var a, b, c float64
	return colour(seed, n, func(w float64) float64 {
		a, b, c = 0.99765*a+w*0.0990460, 0.96300*b+w*0.2965164, 0.57000*c+w*1.0526913
		return a + b + c + w*0.1848
	})
}

// babble is eight voices at once, each from another position in the speech, none more than 5 dB louder than another.
func babble(t testing.TB, seed uint64, rate Rate, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 78))
	x := make([]float64, n)
	for _, v := range voices {
		pcm := speech(t, v, rate)
		at, gain := r.IntN(len(pcm)), (0.7+0.6*r.Float64())/activeLevel(pcm, rate)
		for i := range x {
			x[i] += gain * float64(pcm[(at+i)%len(pcm)])
		}
	}
	return unit(x)
}

// car is a rumble, the hum of the engine, and tyres.
func car(_ testing.TB, seed uint64, rate Rate, n int) []float64 {
	var a, b, phase float64
	r := rand.New(rand.NewPCG(seed, 79))
	rpm := 25 + 15*r.Float64()
	k := math.Exp(-2 * math.Pi * 120 / float64(rate))
	return colour(seed, n, func(w float64) float64 {
		a, b = k*a+(1-k)*w, 0.8*b+0.2*w
		rpm += 0.0005 * w
		phase += 2 * math.Pi * rpm / float64(rate)
		return 4*a + 0.08*b + 0.05*math.Sin(phase*2) + 0.03*math.Sin(phase*4)
	})
}

// street is a rumble, and passing cars, one every few seconds.
func street(_ testing.TB, seed uint64, rate Rate, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 80))
	base, pass := pink(seed, n), make([]float64, n)
	for at := 0.0; at < float64(n); at += float64(rate) * (1 + 3*r.Float64()) {
		loud, width := 0.5+r.Float64(), float64(rate)*(0.5+r.Float64())
		for i := max(0, int(at-3*width)); i < min(n, int(at+3*width)); i++ {
			x := (float64(i) - at) / width
			pass[i] += loud * math.Exp(-x*x/2)
		}
	}
	var low float64
	for i := range base {
		low = 0.9*low + 0.1*r.NormFloat64()*3
		base[i] = 0.5*base[i] + pass[i]*low
	}
	return unit(base)
}

// activeLevel is the rms of the frames that are within 20 dB of the loudest, as a factor of full scale: the level by
// which speech is compared.
func activeLevel(pcm []int16, rate Rate) float64 {
	n := rate.FrameSize()
	loudest := -100.0
	for i := 0; i+n <= len(pcm); i += n {
		loudest = max(loudest, level(pcm[i:i+n]))
	}
	var sum, count float64
	for i := 0; i+n <= len(pcm); i += n {
		if l := level(pcm[i : i+n]); l > loudest-20 {
			sum, count = sum+math.Pow(10, l/10), count+1
		}
	}
	return math.Sqrt(sum / count)
}

// noisy adds noise that is snr dB below the active speech.
func noisy(clean []int16, noise []float64, rate Rate, snr float64) []int16 {
	k := activeLevel(clean, rate) * 32768 * Gain(-snr)
	out := make([]int16, len(clean))
	for i, s := range clean {
		out[i] = clip(float64(s) + k*noise[i])
	}
	return out
}
