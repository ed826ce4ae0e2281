package audio

import "math"

// VAD says which frames hold speech. It compares the power in 14 bands with what each falls to (its minima over the
// last seconds) and with what it usually is, looks how these differences are spread lately, and has a small neural
// network infer: so it gets less sensitive in noise that is itself restless, as that of other people. The weights
// (vad_weights.go) are made by `go test -tags train -run VADTrain`, which says on what. Sound that the network takes
// for speech must soon show a pitch, which breath and rustling paper don't have.
type VAD struct {
	fft      *fft
	window   []float32
	history  []float32
	x        []float32
	spectrum []complex64
	edges    [vadBands + 1]int // of the bands, in values of the spectrum

	power  [vadBands]float64    // smoothed
	usual  [vadBands]float64    // dB, over seconds
	least  [2][vadBands]float64 // minima of power, of this stretch and of the one before
	loud   float64              // dB
	peak   float64              // dB of the loudest frame lately
	scores [72]float64          // how often each score was seen lately, in steps of 0.25 dB
	last   float64              // score
	frames int
	inputs [vadInputs]float32

	logit float32   // of the network, smoothed
	hang  int       // frames until the speech is over
	bare  int       // frames that the network took for speech since one had a pitch
	wave  []float32 // for the pitch, at 4 kHz
}

const (
	vadBands   = 14
	vadInputs  = 2*vadBands + 7
	vadHidden  = 24
	vadHang    = 12 // frames, 240 ms: bridges the pauses within words and between them
	vadStretch = 60 // frames

	vadBare    = 10 // frames, 200 ms: so long may speech be without a pitch
	vadWhisper = 60 // and what goes on for longer than that is a whisper, or on a line that hides the pitch
	vadPitch   = 0.5

	vadThreshold = 0.15 // logit
	vadQuiet     = 23   // dB: a frame at -60 dBFS; nothing below is taken for speech
)

// NewVAD begins a stream.
func NewVAD(rate Rate) *VAD {
	n := int(rate) / 8000 * 256
	v := &VAD{fft: newFFT(n), window: make([]float32, n), history: make([]float32, n), x: make([]float32, n),
		spectrum: make([]complex64, n/2+1), peak: -100, wave: make([]float32, 128)}
	for i := range v.window {
		v.window[i] = float32(0.5-0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/float64(n))) / float32(n)
	}
	for b := range v.edges { // from 120 to 3900 Hz, wider and wider as the ear's
		x := float64(b) / vadBands
		hz := 600 * math.Sinh(math.Asinh(120.0/600)*(1-x)+math.Asinh(3900.0/600)*x)
		v.edges[b] = int(math.Round(hz * 256 / 8000))
		if b > 0 {
			v.edges[b] = max(v.edges[b], v.edges[b-1]+1)
		}
	}
	return v
}

// Detect takes a frame. speech says whether somebody speaks: from up to 60 ms after the first sound until 240 ms
// after the last. voiced says of the frame alone whether it sounds like speech: the last one that does is where the
// speech ended.
func (v *VAD) Detect(f Frame) (speech, voiced bool) {
	v.listen(f)
	v.logit += 0.5 * (v.infer() - v.logit)
	voiced = v.loud > vadQuiet && v.logit > vadThreshold
	switch {
	case !voiced:
		v.bare = max(v.bare-1, 0)
	case v.pitched():
		v.bare = 0
	default:
		v.bare = min(v.bare+1, 2*vadWhisper)
		voiced = v.bare <= vadBare || v.bare > vadWhisper // between: rustling, breath
	}
	if voiced {
		v.hang = vadHang
	} else {
		v.hang = max(v.hang-1, 0)
	}
	return v.hang > 0, voiced
}

// pitched says whether the sound repeats itself as voices do, 65 to 400 times a second. Only sound below 2 kHz counts.
func (v *VAD) pitched() bool {
	const shortest, longest = 10, 61 // samples at 4 kHz
	step := len(v.history) / len(v.wave)
	last, total := float32(0), float32(1)
	for i := range v.wave {
		x := float32(0)
		for _, s := range v.history[i*step : (i+1)*step] {
			x += s
		}
		v.wave[i], last = x-0.8*last, x // without what rumbles
		total += v.wave[i] * v.wave[i]
	}
	early, late, dipped := total, total, false
	for lag := 1; lag <= longest; lag++ {
		n := len(v.wave) - lag
		late -= v.wave[lag-1] * v.wave[lag-1]
		early -= v.wave[n] * v.wave[n]
		if lag < shortest {
			continue
		}
		alike := dot(v.wave[lag:], v.wave[:n]) / float32(math.Sqrt(float64(early*late)))
		if dipped && alike > vadPitch {
			return true
		}
		dipped = dipped || alike < 0.3
	}
	return false
}

// listen sets the inputs of the network.
func (v *VAD) listen(f Frame) {
	copy(v.history, v.history[len(f):])
	for i, s := range f {
		v.history[len(v.history)-len(f)+i] = float32(s)
	}
	for i, s := range v.history {
		v.x[i] = s * v.window[i]
	}
	v.fft.forward(v.spectrum, v.x)
	v.frames++
	slow := 1 / float64(min(v.frames, 150))
	var score, total float64
	for b := range vadBands {
		p := 0.01
		for k := v.edges[b]; k < v.edges[b+1]; k++ {
			p += float64(power(v.spectrum[k]))
		}
		total += p
		if v.frames == 1 {
			v.power[b], v.least[0][b], v.least[1][b] = p, p, p
		}
		v.power[b] += 0.4 * (p - v.power[b])
		v.least[0][b] = min(v.least[0][b], v.power[b])
		db := 10 * math.Log10(v.power[b])
		v.usual[b] += slow * (db - v.usual[b])
		above := min(max(db-10*math.Log10(1.5*min(v.least[0][b], v.least[1][b])), 0), 24)
		score += min(above, 18) / vadBands
		v.inputs[b] = float32(above / 12)
		v.inputs[vadBands+b] = float32(min(max(db-v.usual[b], -12), 12) / 8)
	}
	if v.frames%vadStretch == 0 {
		v.least[1], v.least[0] = v.least[0], v.power
	}
	v.loud = 10 * math.Log10(total)
	v.peak = max(v.loud, v.peak-0.06) // 3 dB a second
	rest := v.inputs[2*vadBands:]
	rest[0], rest[1] = float32(score/6), float32((score-v.last)/6)
	rest[2], rest[3], rest[4] = v.quantiles(score)
	rest[5], rest[6] = float32(max(v.loud-v.peak, -40)/15), float32(slow*5)
	v.last = score
}

// quantiles are what 20, 50 and 80 % of the last five seconds' scores are below.
func (v *VAD) quantiles(score float64) (low, middle, high float32) {
	var all, sum float64
	for i := range v.scores {
		v.scores[i] *= 0.996
		if i == min(int(score*4), len(v.scores)-1) {
			v.scores[i]++
		}
		all += v.scores[i]
	}
	for i, n := range v.scores {
		at := float32(i) / 4 / 6
		if sum < 0.2*all {
			low = at
		}
		if sum < 0.5*all {
			middle = at
		}
		if sum < 0.8*all {
			high = at
		}
		sum += n
	}
	return low, middle, high
}

// infer is the network: how likely the inputs are speech, as a logit.
func (v *VAD) infer() float32 {
	out := vadOut[vadHidden]
	for h := range vadHidden {
		w := &vadIn[h]
		sum := w[vadInputs] + dot(v.inputs[:], w[:vadInputs])
		out += vadOut[h] * max(sum, 0.1*sum)
	}
	return out
}
