package voice_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"parley/internal/audio"
)

// Noises on lines that are not words, made here at 16 kHz. Each draws its shape from r.

const wide = 16000

var clatter = map[string]func(r *rand.Rand) []float64{
	"cough": func(r *rand.Rand) (x []float64) {
		for range 1 + r.IntN(3) { // the blast, and what follows it
			x = append(x, burst(r, 0.08+0.1*r.Float64(), 0.01, 0.05, 500+900*r.Float64(), 1+2*r.Float64(), 1)...)
			x = append(x, burst(r, 0.1+0.2*r.Float64(), 0.02, 0.09, 350+400*r.Float64(), 2, 0.35)...)
			x = append(x, make([]float64, int(wide*0.12*r.Float64()))...)
		}
		return x
	},
	"throat": func(r *rand.Rand) []float64 {
		x, phase, hz := make([]float64, int(wide*(0.25+0.4*r.Float64()))), 0.0, 60+50*r.Float64()
		f := resonator(400+300*r.Float64(), 3)
		for i := range x {
			if phase += hz * (0.8 + 0.4*r.Float64()) / wide; phase >= 1 {
				phase--
				x[i] = 20
			}
			x[i] = f(x[i]+r.NormFloat64()) * swell(i, len(x))
		}
		return x
	},
	"sneeze": func(r *rand.Rand) []float64 {
		x := burst(r, 0.3+0.3*r.Float64(), 0.2, 0.3, 1500, 1, 0.15)
		return append(x, burst(r, 0.2+0.2*r.Float64(), 0.01, 0.1, 1800+1200*r.Float64(), 1, 1)...)
	},
	"breath": func(r *rand.Rand) []float64 {
		x := make([]float64, int(wide*(0.3+0.7*r.Float64())))
		f := resonator(700+900*r.Float64(), 0.8)
		for i := range x {
			x[i] = 0.4 * f(r.NormFloat64()) * swell(i, len(x))
		}
		return x
	},
	"door": func(r *rand.Rand) []float64 {
		x := burst(r, 0.2+0.3*r.Float64(), 0.002, 0.04+0.06*r.Float64(), 60+120*r.Float64(), 3, 1)
		if r.IntN(2) == 0 { // the latch before it
			x = append(append(burst(r, 0.03, 0.001, 0.01, 2500, 4, 0.5),
				make([]float64, int(wide*0.1*r.Float64()))...), x...)
		}
		return x
	},
	"keyboard": func(r *rand.Rand) (x []float64) {
		for range 3 + r.IntN(14) {
			x = append(x, burst(r, 0.02+0.02*r.Float64(), 0.001, 0.006, 1200+2500*r.Float64(), 2,
				0.4+0.6*r.Float64())...)
			x = append(x, make([]float64, int(wide*(0.05+0.2*r.Float64())))...)
		}
		return x
	},
	"dishes": func(r *rand.Rand) []float64 {
		x := make([]float64, int(wide*(0.4+0.6*r.Float64())))
		for range 1 + r.IntN(4) {
			at, hz := r.IntN(len(x)/2), 1500+2200*r.Float64()
			for i := at; i < len(x); i++ {
				t := float64(i-at) / wide
				x[i] += math.Exp(-t/0.06) * (math.Sin(2*math.Pi*hz*t) + 0.5*math.Sin(2*math.Pi*1.53*hz*t))
			}
		}
		return x
	},
	"bump": func(r *rand.Rand) []float64 { // of the telephone
		x, low := make([]float64, int(wide*(0.1+0.5*r.Float64()))), 0.0
		for i := range x {
			low = 0.97*low + 0.03*r.NormFloat64()
			x[i] = low * swell(i, len(x)) * (1 + math.Sin(float64(i)/300))
		}
		return x
	},
	"bark": func(r *rand.Rand) (x []float64) {
		for range 1 + r.IntN(2) {
			b, phase, hz := make([]float64, int(wide*(0.1+0.1*r.Float64()))), 0.0, 350+350*r.Float64()
			for i := range b {
				phase += hz * (1 + 0.4*math.Sin(math.Pi*float64(i)/float64(len(b)))) / wide
				b[i] = (2*math.Mod(phase, 1) - 1 + 0.5*r.NormFloat64()) * swell(i, len(b))
			}
			x = append(append(x, b...), make([]float64, int(wide*(0.15+0.2*r.Float64())))...)
		}
		return x
	},
	"squeak": func(r *rand.Rand) []float64 { // of a chair
		x, phase, hz := make([]float64, int(wide*(0.15+0.4*r.Float64()))), 0.0, 500+1200*r.Float64()
		slope := 0.5 + r.Float64()
		for i := range x {
			phase += hz * (1 + (slope-1)*float64(i)/float64(len(x))) / wide
			x[i] = (math.Sin(2*math.Pi*phase) + 0.4*math.Sin(6*math.Pi*phase) + 0.1*r.NormFloat64()) * swell(i, len(x))
		}
		return x
	},
	"paper": func(r *rand.Rand) []float64 {
		x, loud := make([]float64, int(wide*(0.3+r.Float64()))), 0.0
		for i := range x {
			if r.IntN(wide/40) == 0 {
				loud = r.Float64()
			}
			loud *= 0.9995
			x[i] = loud * r.NormFloat64()
		}
		return x
	},
	"laugh": func(r *rand.Rand) (x []float64) {
		hz := 120 + 150*r.Float64()
		f, g := resonator(700+200*r.Float64(), 4), resonator(1200+300*r.Float64(), 5)
		for range 2 + r.IntN(4) {
			b, phase := make([]float64, int(wide*(0.08+0.05*r.Float64()))), 0.0
			for i := range b {
				v := 0.4 * r.NormFloat64()
				if phase += hz / wide; phase >= 1 {
					phase--
					v += 12
				}
				b[i] = (f(v) + g(v)) * swell(i, len(b))
			}
			x = append(append(x, b...), make([]float64, int(wide*(0.06+0.05*r.Float64())))...)
			hz *= 0.95
		}
		return x
	},
}

// swell rises and falls once in n samples.
func swell(i, n int) float64 { return math.Sin(math.Pi * (float64(i) + 0.5) / float64(n)) }

// burst is noise around hz that rises and decays in that many seconds.
func burst(r *rand.Rand, length, rise, decay, hz, q, loud float64) []float64 {
	x := make([]float64, int(wide*length))
	f := resonator(hz, q)
	for i := range x {
		t := float64(i) / wide
		x[i] = loud * f(r.NormFloat64()) * min(t/rise, 1) * math.Exp(-max(t-rise, 0)/decay)
	}
	return x
}

// resonator is a band-pass filter with a gain of 1 at hz.
func resonator(hz, q float64) func(float64) float64 {
	w := 2 * math.Pi * hz / wide
	a := math.Sin(w) / (2 * q)
	var x1, x2, y1, y2 float64
	return func(x float64) float64 {
		y := (a*(x-x2) + 2*math.Cos(w)*y1 - (1-a)*y2) / (1 + a)
		x1, x2, y1, y2 = x, x1, y, y1
		return y
	}
}

// leveled scales a sound, at 16 kHz, so that its loudest 20 ms have some dBFS.
func leveled(x []float64, db float64) []int16 {
	n, most := wide/50, 1e-9
	for i := 0; i < len(x); i += n {
		sum := 0.0
		for _, v := range x[i:min(i+n, len(x))] {
			sum += v * v
		}
		most = max(most, sum/float64(n))
	}
	k := 32768 * math.Pow(10, db/20) / math.Sqrt(most)
	out := make([]int16, len(x))
	for i, v := range x {
		out[i] = int16(max(min(k*v, 32767), -32768))
	}
	return out
}

// spoken caches texts that a program has said, at 16 kHz; every text is said once.
var spoken = map[string][]float64{}

// say has flite (for its own voices) or espeak-ng (for all others) say a text. It must not be called in a bubble, as it
// runs programs.
func say(t testing.TB, voice, text string) []float64 {
	t.Helper()
	if x, ok := spoken[voice+"/"+text]; ok {
		return x
	}
	var cmd *exec.Cmd
	switch voice {
	case "rms", "slt", "awb", "kal16":
		cmd = exec.Command("flite", "-voice", voice, "-o", "/dev/stdout", "-t", text)
	default:
		cmd = exec.Command("espeak-ng", "-b", "1", "-v", voice, "-s", "165", "--stdout", text)
	}
	raw, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip("flite and espeak-ng speak for the customers (scripts/setup run installs them)")
	}
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	w, err := audio.NewWAVReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", cmd, err))
	}
	pcm := make([]int16, 60*w.Rate)
	n, err := w.Read(pcm)
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", cmd, err))
	}
	re, err := audio.NewResampler(w.Rate, wide)
	if err != nil {
		t.Fatal(err)
	}
	pcm = re.Resample(nil, pcm[:n])
	frame := wide / 50
	for len(pcm) > frame && audio.Level(pcm[:frame]) < -50 {
		pcm = pcm[frame:]
	}
	for len(pcm) > frame && audio.Level(pcm[len(pcm)-frame:]) < -50 {
		pcm = pcm[:len(pcm)-frame]
	}
	x := make([]float64, len(pcm))
	for i, s := range pcm {
		x[i] = float64(s)
	}
	spoken[voice+"/"+text] = x
	return x
}
