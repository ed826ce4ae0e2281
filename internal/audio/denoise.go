package audio

import "math"

// Denoiser takes steady noise out of speech: a short-time spectrum every 10 ms, the noise followed in each of its
// bands by the probability that there is speech (Gerkmann and Hendriks, "Unbiased MMSE-based noise power estimation",
// 2012) below a bound by its minima, and a Wiener gain from the a priori signal-to-noise ratio by the
// decision-directed method (Ephraim and Malah, 1984), which leaves no musical noise. No band is taken down by more
// than 14 dB for that, and all of them by 8 dB more in pauses, which a VAD finds. Sounds that change too fast to be
// followed by band, as voices, keys and music do, are left to the VAD's network, which says how much of the power in
// each of its bands is speech. Of no band less than a tenth is left, so that it still sounds like the place it comes from.
//
// Its latency is 10 ms.
type Denoiser struct {
	fft      *fft
	hop      int // 10 ms
	window   []float32
	input    []float32 // the last 20 ms
	x        []float32
	overlap  []float32
	spectrum []complex64

	noise  []float32    // power by band
	speech []float32    // mean probability of speech, by band
	prior  []float32    // the last a priori ratio after the gain, by band
	smooth []float32    // power, smoothed, by band
	least  [2][]float32 // its minimum in this stretch of 0.8 s and in the one before
	frames int

	vad  *VAD
	part [vadBands]float32 // of speech, by the VAD's bands
	keep []float32         // what these make of each band here
	rest int               // steps since the last voiced frame
	gate float32           // of pauses
}

const (
	denoiseFloor  = 0.2    // the least gain, -14 dB
	denoiseQuiet  = 0.0316 // a priori ratio when there is speech, inverse: 15 dB
	denoisePause  = 0.4    // the gain of pauses, besides that of their bands: -8 dB
	denoiseHang   = 12     // steps after a voiced frame that are no pause yet
	denoiseOther  = 0.25   // the least gain of what the network takes for other sounds: -12 dB
	denoiseAfter  = 6      // steps after a voiced frame in which no more than
	denoiseLittle = 0.5    // that is taken away: what the network does not know within a word is part of it
	denoiseMine   = 0.4    // the share of speech from which on a band is left alone
	minDenoise    = 0.1    // all of it together: -20 dB
)

// NewDenoiser begins a stream.
func NewDenoiser(rate Rate) *Denoiser {
	n, hop := int(rate)/8000*256, int(rate)/100
	bands := n/2 + 1
	d := &Denoiser{fft: newFFT(n), hop: hop, window: make([]float32, 2*hop), input: make([]float32, 2*hop),
		x: make([]float32, n), overlap: make([]float32, hop),
		spectrum: make([]complex64, bands), vad: NewVAD(rate), gate: 1, noise: make([]float32, bands),
		speech: make([]float32, bands), keep: make([]float32, bands), prior: make([]float32, bands), smooth: make([]float32, bands),
		least: [2][]float32{make([]float32, bands), make([]float32, bands)}}
	for i := range d.window { // its square overlaps to 1
		d.window[i] = float32(math.Sin(math.Pi * (float64(i) + 0.5) / float64(2*hop)))
	}
	return d
}

// Clean changes a frame in place: it holds what was 10 ms before.
func (d *Denoiser) Clean(f Frame) {
	_, voiced := d.vad.Detect(f)
	if voiced {
		d.rest = 0
	}
	d.vad.mind.shares(&d.part)
	least := float32(denoiseOther)
	if !voiced && d.rest <= denoiseAfter {
		least = denoiseLittle
	}
	d.spread(least)
	for ; len(f) >= d.hop; f = f[d.hop:] {
		if d.rest++; d.rest <= denoiseHang {
			d.gate += 0.5 * (1 - d.gate)
		} else {
			d.gate += 0.1 * (denoisePause - d.gate)
		}
		d.step(f[:d.hop])
	}
}

// spread makes of the shares of speech in the VAD's bands, each of which counts at its middle, gains of the bands here, none
// of which is less than least.
func (d *Denoiser) spread(least float32) {
	gain := func(b int) float32 { return min(max(d.part[b]/denoiseMine, least), 1) }
	k, before, was := 0, 0, gain(0)
	for b := range vadBands {
		middle, now := (d.vad.edges[b]+d.vad.edges[b+1])/2, gain(b)
		for ; k < middle; k++ {
			d.keep[k] = was + (now-was)*float32(k-before)/float32(max(middle-before, 1))
		}
		before, was = middle, now
	}
	for ; k < len(d.keep); k++ {
		d.keep[k] = was
	}
}

func (d *Denoiser) step(pcm []int16) {
	copy(d.input, d.input[d.hop:])
	for i, s := range pcm {
		d.input[d.hop+i] = float32(s)
	}
	clear(d.x)
	for i, w := range d.window {
		d.x[i] = d.input[i] * w
	}
	d.fft.forward(d.spectrum, d.x)
	if d.frames++; d.frames%100 == 0 {
		d.least[0], d.least[1] = d.least[1], d.least[0]
		copy(d.least[0], d.smooth)
	}
	for k, v := range d.spectrum {
		g := d.gain(k, power(v))
		if k < 2 { // below 47 Hz there is no voice
			g = denoiseFloor
		}
		d.spectrum[k] = v * complex(max(g*d.gate*d.keep[k], minDenoise), 0)
	}
	d.fft.inverse(d.x, d.spectrum)
	for i := range d.hop {
		pcm[i] = clip32(d.overlap[i] + d.x[i]*d.window[i])
		d.overlap[i] = d.x[d.hop+i] * d.window[d.hop+i]
	}
}

// gain follows the noise in a band and says what the band is to be multiplied by.
func (d *Denoiser) gain(k int, p float32) float32 {
	const least = 1e-2 * 256 // far below a sample's rounding
	d.smooth[k] += 0.2 * (p - d.smooth[k])
	if d.frames <= 8 { // the stream's beginning is taken for noise, until it proves to be none
		d.noise[k] += (min(p, 1e5*256) - d.noise[k]) / float32(d.frames)
		d.smooth[k], d.least[0][k], d.least[1][k] = d.noise[k], d.noise[k], d.noise[k]
	}
	d.least[0][k] = min(d.least[0][k], d.smooth[k])
	noise := max(d.noise[k], least)
	ratio := min(p/noise, 1e4)
	likely := 1 / (1 + (1+1/denoiseQuiet)*exp(-ratio/(1+denoiseQuiet)))
	d.speech[k] += 0.02 * (likely - d.speech[k])
	if d.speech[k] > 0.99 { // so that a noise that has grown is not speech for ever
		likely = min(likely, 0.99)
	}
	// Speech that lasts must not be learned: the noise is not far above what the band falls to between sounds.
	d.noise[k] = min(d.noise[k]+0.2*(1-likely)*(p-d.noise[k]), 10*min(d.least[0][k], d.least[1][k])+least)

	const smooth = 0.975
	xi := max(smooth*d.prior[k]+(1-smooth)*max(ratio-1, 0), 0.0025)
	g := max(xi/(1+xi), denoiseFloor)
	d.prior[k] = g * g * ratio
	return g
}
