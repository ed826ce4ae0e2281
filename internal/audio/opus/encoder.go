// Package opus is Opus (RFC 6716) for calls. The Encoder writes wideband frames of 20 ms by the format's transform (CELT),
// as the reference decoder reads them bit by bit. The Decoder takes all that the format has.
package opus

import (
	"math"
	"math/cmplx"
)

// FrameSize is the number of samples that a packet of ours holds: 20 ms at 16 kHz, mono.
const FrameSize = 320

const (
	toc     = 23 << 3 // of each packet: the transform alone, wideband, 20 ms, one channel, one frame
	minSize = 10      // octets in a packet with sound
	maxSize = 200

	// One zero and one pole, which at 16 kHz do what 1-0.85/z does at 48 kHz.
	emphasisGain, emphasisZero, emphasisPole = 0.4418, 0.5650, -0.2275
)

// Encoder makes packets of a stream of frames. It allocates nothing once it is made.
type Encoder struct {
	size      int
	emphasis  [2]float32                   // the last sample before and after
	sound     [overlap + FrameSize]float32 // what is transformed, beginning with what the last frame had too
	level     float32                      // of the sound, for what is sudden
	long      *mdct
	short     *mdct
	bins      [FrameSize]float32
	even      [FrameSize]float32 // what makes the emphasis exact
	energies  energies
	begun     bool
	coder     coder
	share     allocation
	shapes    shapes
	width     uint32 // that of the coder, at the end of the last frame
	transient bool   // the last frame was
}

// NewEncoder begins a stream with so many bits a second: 4 to 80 kbit/s are possible, 32 and more sound good.
func NewEncoder(rate int) *Encoder {
	e := &Encoder{size: min(max(rate/50/8, minSize), maxSize), long: newMDCT(FrameSize, 10),
		short: newMDCT(FrameSize/shorts, 4)}
	for i := range e.even {
		z := cmplx.Exp(complex(0, -math.Pi*(float64(i)+0.5)/FrameSize)) // 1/z at 16 kHz
		want := 1 - 0.85*cmplx.Exp(complex(0, -math.Pi/3*(float64(i)+0.5)/FrameSize))
		have := emphasisGain * (1 - emphasisZero*z) / (1 - emphasisPole*z)
		e.even[i] = float32(cmplx.Abs(want) / cmplx.Abs(have))
	}
	return e
}

// Encode appends the packet of a frame of FrameSize samples to dst. Silence takes three octets.
func (e *Encoder) Encode(dst []byte, pcm []int16) []byte {
	silent := e.take(pcm)
	from := len(dst)
	dst = append(dst, toc)
	size := e.size - 1
	if silent {
		size = 2
	}
	for range size {
		dst = append(dst, 0)
	}
	c := &e.coder
	c.begin(dst[from+1:])
	c.bit(silent, 15)
	if silent {
		for i := range e.energies.known {
			e.energies.known[i] = none
		}
		e.transient = false
	} else {
		e.frame(c)
	}
	e.width = c.end()
	e.begun = true
	return dst
}

// take adds a frame to the sound, with its high sounds raised as the format wants it, and says whether there is none.
// At 48 kHz that would be a filter of 1-0.85/z; this is the same at 16 kHz within 0.4 dB, which frame makes good.
func (e *Encoder) take(pcm []int16) (silent bool) {
	copy(e.sound[:overlap], e.sound[FrameSize:])
	silent = true
	for _, v := range e.sound[:overlap] {
		silent = silent && v == 0
	}
	in, out := e.emphasis[0], e.emphasis[1]
	for i, v := range pcm[:FrameSize] {
		x := float32(v)
		silent = silent && v == 0
		out = emphasisGain*(x-emphasisZero*in) + emphasisPole*out
		in = x
		if v == 0 && max(out, -out) < 0.01 { // it has died away
			out = 0
		}
		e.sound[overlap+i] = out
	}
	e.emphasis = [2]float32{in, out}
	return silent
}

// frame writes what is not silence.
func (e *Encoder) frame(c *coder) {
	e.transient = e.sudden()
	if e.transient {
		for i := range shorts {
			e.short.transform(e.sound[i*overlap:], e.bins[i:], shorts)
		}
	} else {
		e.long.transform(e.sound[:], e.bins[:], 1)
	}
	var want [bands]float32
	highest := 0
	for i := range bands {
		band := e.bins[edges[i]<<logShorts : edges[i+1]<<logShorts]
		l := float32(1e-13)
		for j := range band {
			band[j] *= e.even[edges[i]<<logShorts+j]
			l += band[j] * band[j]
		}
		l = float32(math.Sqrt(float64(l)))
		for j := range band {
			band[j] /= l
		}
		if l > 4 {
			highest = i
		}
		want[i] = float32(math.Log2(float64(l))) - means[i]
	}

	c.bit(false, 1) // no pitch filter
	c.bit(e.transient, 3)
	e.energies.coarse(c, &want, !e.begun)
	e.resolution(c)
	if c.left() >= 4 {
		c.choose(spread, spreads, 5)
	}
	total := len(c.data) * 8 << eighth
	for range bands { // no band gets more bits than usual
		if c.tellEighths()+6<<eighth < total {
			c.bit(false, 6)
		}
	}
	if c.tellEighths()+6<<eighth <= total {
		c.choose(tilt, trims, 7)
	}
	kept := 0 // of a transient frame, for what is said of bands that would fall silent
	bits := total - c.tellEighths() - 1
	if e.transient && bits >= (logShorts+2)<<eighth {
		kept = 1 << eighth
	}
	e.share.share(c, bits-kept, highest)
	e.energies.fine(c, &e.share.fine)
	e.shapes.write(c, e.bins[:], &e.share, e.transient, total-kept)
	if kept > 0 {
		c.bits(1, 1)
	}
	e.energies.last(c, &e.share.fine, &e.share.later)
}

// resolution writes that all bands have the time resolution of their transforms (section 4.3.1).
func (e *Encoder) resolution(c *coder) {
	first, next, choice := 4, 5, 0
	if e.transient {
		first, next, choice = 2, 4, 1
	}
	said, likely := false, first
	for range bands {
		if c.left()-choice >= likely {
			c.bit(e.transient != said, likely) // the first band says it for all
			said = e.transient
		}
		likely = next
	}
	if choice > 0 {
		c.bit(false, 1)
	}
}

// sudden says whether the sound begins so suddenly within the frame that a long transform would be heard before it.
func (e *Encoder) sudden() (found bool) {
	before := e.level
	for i := range shorts + 1 {
		power := float32(1)
		for _, v := range e.sound[i*overlap : (i+1)*overlap] {
			power += v * v
		}
		if i > 0 && power > 40*before && power > 40*1e4 {
			found = true
		}
		before = max(power, before*0.7)
		if i == shorts-1 {
			e.level = before
		}
	}
	return found
}
