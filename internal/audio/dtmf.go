package audio

import (
	"math"
	"math/cmplx"
	"strings"
	"time"
)

// DTMF in the band: two tones at once, one of each group (ITU-T Q.23).
var (
	dtmfLow  = [4]float64{697, 770, 852, 941}
	dtmfHigh = [4]float64{1209, 1336, 1477, 1633}
)

// dtmfKeys are the keys by row and column.
const dtmfKeys = "123A456B789C*0#D"

// ValidKeys says whether every character is a key: 0-9, *, #, A-D.
func ValidKeys(digits string) bool {
	return strings.Trim(digits, dtmfKeys) == ""
}

// Digits plays keys as tones: 100 ms each, 80 ms of silence after it, each of the two tones at -10 dBFS (a peak of 45
// % of full scale), the upper one 2 dB stronger, as networks prefer.
type Digits struct {
	rate  float64
	queue string
	at    int // samples into the first key
}

const (
	digitOn  = 100 * time.Millisecond
	digitOff = 80 * time.Millisecond
)

// NewDigits has nothing to play.
func NewDigits(rate Rate) *Digits { return &Digits{rate: float64(rate)} }

// Dial adds keys to those being played. Characters that are no keys are left out.
func (d *Digits) Dial(keys string) {
	d.queue += strings.Map(func(r rune) rune {
		if strings.ContainsRune(dtmfKeys, r) {
			return r
		}
		return -1
	}, keys)
}

// Fill overwrites f while there is something to play, and says whether it did.
func (d *Digits) Fill(f Frame) bool {
	if d.queue == "" {
		return false
	}
	on, end := int(d.rate*digitOn.Seconds()), int(d.rate*(digitOn+digitOff).Seconds())
	for i := range f {
		f[i] = 0
		if d.queue == "" {
			continue
		}
		if d.at < on {
			key := strings.IndexByte(dtmfKeys, d.queue[0])
			phase := 2 * math.Pi * float64(d.at) / d.rate
			f[i] = clip(8230*math.Sin(phase*dtmfLow[key/4]) + 10360*math.Sin(phase*dtmfHigh[key%4]))
		}
		if d.at++; d.at == end {
			d.queue, d.at = d.queue[1:], 0
		}
	}
	return true
}

// DigitDetector finds keys in the sound (ITU-T Q.24): tones of 40 ms or more, down to -36 dBFS each, within 1.5 % + 2
// Hz of their frequencies, the upper one from 8 dB below the lower to 4 dB above it. Tones of 23 ms and less, or off
// by 3.5 % and more, are none; gaps of 10 ms don't split a key, those of 40 ms do.
//
// It looks at windows of 12.75 ms, one every 6.375 ms. Four in a row with the same pair of tones begin a key; how far
// the phase of a tone turns from one window to the next but one gives its frequency far more sharply than a window
// alone could.
type DigitDetector struct {
	hop    int // samples
	n      int // taken of this hop
	rate   float64
	tones  [8]goertzel
	half   dtmfWindow    // the last hop alone
	energy float64       // of this hop so far
	last   [2]dtmfWindow // the newest last
	hits   int           // windows in a row with the same key
	held   byte          // the key that is down
	power  float64       // of its tones
	misses int           // windows in a row without it
}

type goertzel struct{ coeff, s1, s2, turn float64 }

// take adds a sample.
func (g *goertzel) take(x float64) { g.s1, g.s2 = x+g.coeff*g.s1-g.s2, g.s1 }

// value is the sum over the block so far, and begins a new one. Its phase is that at the block's end.
func (g *goertzel) value() complex128 {
	sin, cos := math.Sincos(g.turn)
	v := complex(g.s1-g.s2*cos, g.s2*sin)
	g.s1, g.s2 = 0, 0
	return v
}

// dtmfWindow is what was seen in a window: the tones' sums, and the key of the strongest two, 0 when they are none.
type dtmfWindow struct {
	tones  [8]complex128
	energy float64
	key    byte
}

// NewDigitDetector begins a stream.
func NewDigitDetector(rate Rate) *DigitDetector {
	d := &DigitDetector{hop: 51 * int(rate) / 8000, rate: float64(rate)}
	for i := range d.tones {
		hz := dtmfLow[i%4]
		if i >= 4 {
			hz = dtmfHigh[i%4]
		}
		turn := 2 * math.Pi * hz / d.rate
		d.tones[i] = goertzel{coeff: 2 * math.Cos(turn), turn: turn}
	}
	return d
}

// Detect takes the next samples, a frame at most, and returns the key that began in them, once; 0 when none did.
func (d *DigitDetector) Detect(f Frame) (key byte) {
	for _, s := range f {
		x := float64(s)
		d.energy += x * x
		for i := range d.tones {
			d.tones[i].take(x)
		}
		if d.n++; d.n == d.hop {
			if k := d.window(); k != 0 {
				key = k
			}
			d.n, d.energy = 0, 0
		}
	}
	return key
}

// window looks at this hop and the one before it.
func (d *DigitDetector) window() byte {
	var now dtmfWindow
	hop := dtmfWindow{energy: d.energy}
	low, high := 0, 4
	for i := range d.tones {
		hop.tones[i] = d.tones[i].value()
		now.tones[i] = d.half.tones[i]*cmplx.Rect(1, d.tones[i].turn*float64(d.hop)) + hop.tones[i]
		if i < 4 && sq(now.tones[i]) > sq(now.tones[low]) {
			low = i
		}
		if i >= 4 && sq(now.tones[i]) > sq(now.tones[high]) {
			high = i
		}
	}
	now.energy = d.half.energy + hop.energy
	d.half = hop
	before, key := d.last[0], dtmfKeys[low*4+high-4]
	pair := sq(now.tones[low]) + sq(now.tones[high])
	// A sine of amplitude a has n·a/2 here and n·a²/2 in the energy.
	const weakest = 0.0224 * (1 << 15) // amplitude of a sine at -36 dBFS
	if n := float64(2 * d.hop); pair*2/n > 0.7*now.energy &&
		min(cmplx.Abs(now.tones[low]), cmplx.Abs(now.tones[high])) > 0.8*weakest*n/2 {
		now.key = key
	}
	if d.hits++; now.key == 0 || now.key != d.last[1].key {
		d.hits = 1
	}
	d.last[0], d.last[1] = d.last[1], now

	if d.held != 0 {
		if key == d.held && pair > 0.15*d.power {
			d.misses = 0
			return 0
		}
		if d.misses++; d.misses < 3 {
			return 0
		}
		d.held = 0
	}
	if now.key == 0 || d.hits < 4 || !d.pure(&before, &now, low, high) {
		return 0
	}
	d.held, d.power, d.misses = key, pair, 0
	return key
}

// pure says whether two windows that follow each other hold the same steady pair, with its frequencies and their
// balance in bounds.
func (d *DigitDetector) pure(before, now *dtmfWindow, low, high int) bool {
	lowOff := d.offset(before.tones[low], now.tones[low], d.tones[low].turn)
	highOff := d.offset(before.tones[high], now.tones[high], d.tones[high].turn)
	if math.Abs(lowOff) > 0.025*d.tones[low].turn || math.Abs(highOff) > 0.0222*d.tones[high].turn {
		return false
	}
	steady := now.energy/before.energy < 1.4 && before.energy/now.energy < 1.4
	// What a tone is off by takes from its sum as sinc does.
	ratio := cmplx.Abs(now.tones[high]) / sinc(highOff*float64(d.hop)) * sinc(lowOff*float64(d.hop)) / cmplx.Abs(
		now.tones[low])
	twist := 20 * math.Log10(ratio)
	return steady && twist > -9 && twist < 5
}

// offset is by how many radians a sample a tone turns faster than its filter, from the sums of a window and of the
// one after it.
func (d *DigitDetector) offset(before, after complex128, turn float64) float64 {
	size := float64(2 * d.hop)
	return math.Remainder(cmplx.Phase(after)-cmplx.Phase(before)-turn*size, 2*math.Pi) / size
}

func sq(c complex128) float64 { return real(c)*real(c) + imag(c)*imag(c) }

func sinc(x float64) float64 {
	if math.Abs(x) < 1e-9 {
		return 1
	}
	return math.Sin(x) / x
}
