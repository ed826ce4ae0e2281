package audio

import "math"

// Signal is something that machines say on a line.
type Signal uint8

// The signals.
const (
	NoSignal Signal = iota
	Beep            // one tone of 400 to 2100 Hz that lasted 0.1 to 2 s: an answering machine records from here on
	// busy or congestion: the same burst twice with a pause as long as it, 0.2 to 0.7 s (ITU-T E.180)
	Busy
	Ringback    // it rings: a burst of 0.8 to 2.5 s and a pause of 1.5 to 6 s
	Fax         // 2100 Hz for two seconds (ITU-T T.30): a fax machine, or a modem; it is told while the tone goes on
	Information // the special information tones 950, 1400, 1800 Hz: the number can't be reached
	Music       // music, or a tone that goes on, has sounded for 2 s; it is told every half a second while it goes on
)

// SignalDetector finds signals in the sound of the far end. It looks at 32 ms, every 20 ms.
//
// A burst of one tone can't be told from a beep when it ends: a busy tone of a single frequency gives Beep for its
// first burst.
type SignalDetector struct {
	fft      *fft
	window   []float32
	history  []float32
	x        []float32
	spectrum []complex64
	rate     float64

	single bool    // the tone that sounds now has one frequency
	low    float64 // its lowest frequency, Hz
	wander int     // frames in which it seemed another
	on     int     // frames that it lasts
	off    int     // frames since the last one ended
	last   burst
	sit    int // special information tones in a row
	melody melody
}

type burst struct {
	hz      float64
	single  bool
	on, off int // frames, and those of silence before it
}

// NewSignalDetector begins a stream.
func NewSignalDetector(rate Rate) *SignalDetector {
	n := int(rate) / 8000 * 256
	d := &SignalDetector{fft: newFFT(n), window: make([]float32, n), history: make([]float32, n),
		x: make([]float32, n), spectrum: make([]complex64, n/2+1), rate: float64(rate)}
	for i := range d.window {
		d.window[i] = float32(0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/float64(n)))
	}
	return d
}

// Detect takes a frame and returns the signal that it completes.
func (d *SignalDetector) Detect(f Frame) Signal {
	copy(d.history, d.history[len(f):])
	for i, s := range f {
		d.history[len(d.history)-len(f)+i] = float32(s)
	}
	signal := d.burst(d.tone())
	if music := d.melody.hear(d.spectrum, Level(f)); signal != NoSignal || !music {
		return signal
	}
	if d.on > 0 && (d.on <= faxFrames || d.single && math.Abs(d.low-2100) < 25) {
		return NoSignal // one tone: it may still end as another signal, or is that of a fax machine
	}
	return Music
}

// burst takes the tone of a frame, and returns the signal that it completes.
func (d *SignalDetector) burst(hz float64, single, ok bool) Signal {
	if near := math.Abs(hz - d.low); ok && d.on >= 3 && near < 60 && d.low > 380 && d.low < 520 &&
		(near > 12 || single != d.single) {
		// 440 and 480 Hz together are too close to be told apart: they wander around their middle.
		if d.wander++; d.wander > 5 {
			d.single = false
		}
		single, hz = d.single, d.low
	}
	if ok && d.on > 0 && (math.Abs(hz-d.low) > 12 || single != d.single) {
		// Another tone at once: the old one is over. The edges of two tones that sound together may look like one.
		if d.on < 3 {
			d.single, d.low = single, hz
		} else {
			signal := d.ended()
			d.begin(hz, single)
			return signal
		}
	}
	switch {
	case ok && d.on == 0:
		d.begin(hz, single)
	case ok:
		if d.on++; d.on <= 3 {
			d.low = hz // the first frames may hold less than all of it
		}
		if d.on == faxFrames && d.single && math.Abs(d.low-2100) < 25 {
			return Fax
		}
	case d.on > 0:
		signal := d.ended()
		d.on, d.off = 0, 1
		return signal
	default:
		d.off = min(d.off+1, 1<<20)
	}
	return NoSignal
}

// faxFrames are longer than a beep: two seconds.
const faxFrames = 103

func (d *SignalDetector) begin(hz float64, single bool) {
	d.low, d.single, d.on, d.wander = hz, single, 1, 0
}

// ended judges the burst that is over.
func (d *SignalDetector) ended() (signal Signal) {
	now := burst{hz: d.low, single: d.single, on: d.on, off: d.off}
	last := d.last
	same := math.Abs(now.hz-last.hz) < 12 && now.single == last.single && absInt(now.on-last.on) <= 3
	d.off = 0
	switch step := [3]float64{950, 1400, 1800}; {
	case now.single && d.sit < 3 && math.Abs(now.hz-step[d.sit]) < 60 && now.on >= 8 && now.on <= 24 &&
		(d.sit == 0 || now.off <= 4):
		if d.sit++; d.sit == 3 {
			signal = Information
		}
	default:
		d.sit = 0
	}
	switch {
	case signal != NoSignal || d.sit > 1:
	case same && now.on >= 9 && now.on <= 38 && now.hz > 340 && now.hz < 640 && absInt(now.on-now.off) <= 5:
		signal = Busy
	case same && now.on >= 36 && now.on <= 130 && now.off >= 70 && now.off <= 310,
		!now.single && now.on >= 36 && now.on <= 130 && now.hz > 340 && now.hz < 500:
		signal = Ringback
	case now.single && now.on >= 5 && now.on <= 102 && now.hz >= 395 && now.hz <= 2110:
		signal = Beep
	}
	if now.on >= 5 {
		d.last = now
	}
	return signal
}

func absInt(v int) int { return max(v, -v) }

// tone says whether the last 32 ms hold one or two steady tones and little else, and the frequency of the lower one.
func (d *SignalDetector) tone() (hz float64, single, ok bool) {
	for i, v := range d.history {
		d.x[i] = v * d.window[i]
	}
	d.fft.forward(d.spectrum, d.x)
	var total float64
	first := 0
	for k := 2; k < len(d.spectrum)-2; k++ {
		p := float64(power(d.spectrum[k]))
		total += p
		if p > float64(power(d.spectrum[max(first, 1)])) || first == 0 {
			first = k
		}
	}
	n := float64(d.fft.n)
	if total < n*n*30*30/16 { // below about -60 dBFS
		return 0, false, false
	}
	// A Hann window spreads a tone over three or four values.
	one := d.around(first)
	second := 0
	for k := 2; k < len(d.spectrum)-2; k++ {
		if absInt(k-first) > 2 && (second == 0 || power(d.spectrum[k]) > power(d.spectrum[second])) {
			second = k
		}
	}
	if one > 0.93*total {
		return d.frequency(first), true, true
	}
	two := d.around(second)
	if absInt(first-second) == 3 || absInt(first-second) == 4 {
		two = min(two, total-one)
	}
	if one+two > 0.93*total && two > 0.1*one {
		return d.frequency(min(first, second)), false, true
	}
	return 0, false, false
}

func (d *SignalDetector) around(k int) (sum float64) {
	for i := max(k-2, 2); i <= min(k+2, len(d.spectrum)-3); i++ {
		sum += float64(power(d.spectrum[i]))
	}
	return sum
}

// frequency interpolates between the values beside k.
func (d *SignalDetector) frequency(k int) float64 {
	a, b, c := math.Sqrt(float64(power(d.spectrum[k-1]))), math.Sqrt(float64(power(d.spectrum[k]))),
		math.Sqrt(float64(power(d.spectrum[k+1])))
	// With a Hann window the ratio of neighbours gives the place between them exactly.
	shift := 0.0
	if c > a {
		shift = (2*c - b) / (b + c)
	} else {
		shift = -(2*a - b) / (a + b)
	}
	return (float64(k) + shift) * d.rate / float64(d.fft.n)
}

// exp is e^x to five digits, many times as fast as math.Exp: a power of two, and the rest by its series. What is below -87 is
// taken for that, and what is above 88 for 88.
func exp(x float32) float32 {
	switch { // min and max of floats look for NaN
	case x < -87:
		x = -87
	case x > 88:
		x = 88
	}
	n := int32(x*math.Log2E+128.5) - 128
	r := x - float32(n)*math.Ln2
	return math.Float32frombits(uint32(n+127)<<23) * (1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r/720))))))
}
