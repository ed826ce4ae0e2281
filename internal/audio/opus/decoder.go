package opus

import (
	"time"

	"github.com/pion/opus"
)

// longest is how long a packet can be (section 3.2.5), in samples at 16 kHz.
const longest = 120 * 16

// Decoder decodes a stream at 16 kHz, mono: any of the format's modes, bandwidths and packets. It takes packets in the
// order in which they were made.
type Decoder struct {
	pion opus.Decoder
	pcm  [longest]int16
	one  [1 + maxFrame]byte // a frame, as a packet
}

// NewDecoder begins a stream.
func NewDecoder() *Decoder {
	d := &Decoder{}
	var err error
	if d.pion, err = opus.NewDecoderWithOutput(16000, 1); err != nil {
		panic("opus: " + err.Error()) // of constants
	}
	return d
}

// Decode appends the samples of a packet to dst: none of one that can't be decoded, which is as good as lost. Its frames
// are decoded as packets of one frame each, for which pion allocates nothing.
func (d *Decoder) Decode(dst []int16, packet []byte) []int16 {
	frames, n := framesOf(packet)
	all := dst
	for _, f := range frames[:n] {
		d.one[0] = packet[0] &^ 3
		n, err := d.pion.DecodeToInt16(d.one[:1+copy(d.one[1:], f)], d.pcm[:])
		if err != nil {
			return dst
		}
		all = append(all, d.pcm[:n]...)
	}
	return all
}

// maxFrames are in a packet of the shortest: 2.5 ms each.
const maxFrames = 48

// framesOf finds the frames of a packet (RFC 6716, section 3.2), n of them; none of one that is malformed.
func framesOf(packet []byte) (frames [maxFrames][]byte, n int) {
	var none [maxFrames][]byte
	if Duration(packet) == 0 {
		return none, 0
	}
	rest, each := packet[1:], 0
	sized := false // each but the last frame has its size before it, or before all of them
	switch packet[0] & 3 {
	case 0:
		n = 1
	case 1:
		n = 2
	case 2:
		n, sized = 2, true
	case 3:
		n, sized = int(rest[0]&63), rest[0]&128 != 0
		padded := rest[0]&64 != 0
		if rest = rest[1:]; padded {
			var ok bool
			if rest, ok = unpad(rest); !ok {
				return none, 0
			}
		}
	}
	var sizes [maxFrames]int
	if sized {
		for i := range n - 1 {
			size, head := sizeOf(rest)
			if head == 0 {
				return none, 0
			}
			sizes[i], rest = size, rest[head:]
			each += size
		}
		sizes[n-1] = len(rest) - each
	} else {
		for i := range n {
			sizes[i] = len(rest) / n
		}
		if len(rest)%n != 0 {
			return none, 0
		}
	}
	for i, size := range sizes[:n] {
		if size < 0 || size > maxFrame || size > len(rest) {
			return none, 0
		}
		frames[i], rest = rest[:size], rest[size:]
	}
	return frames, n
}

// sizeOf is the size of a frame as it is written, and how many octets that takes; 0 if it is cut off.
func sizeOf(b []byte) (size, head int) {
	switch {
	case len(b) > 0 && b[0] < 252:
		return int(b[0]), 1
	case len(b) > 1:
		return int(b[0]) + 4*int(b[1]), 2
	}
	return 0, 0
}

// unpad removes the padding that a packet has at its end, and what says how long it is.
func unpad(b []byte) (rest []byte, ok bool) {
	for all := 0; len(b) > 0; {
		size := int(b[0])
		b = b[1:]
		if all += size; size == 255 {
			all--
			continue
		}
		if all > len(b) {
			return nil, false
		}
		return b[:len(b)-all], true
	}
	return nil, false
}

const (
	maxFrame = 1275 // octets of a frame (RFC 6716, section 3.4)
	maxTime  = 120 * time.Millisecond
)

// Duration is how long the sound of a packet is, by its first octets (RFC 6716, sections 3.1 and 3.2); 0 of what can't be
// one: it would be longer than a packet may be, or has more octets than its frames can have. Nothing is decoded for it.
func Duration(packet []byte) time.Duration {
	if len(packet) == 0 {
		return 0
	}
	var frame time.Duration
	switch config := packet[0] >> 3; {
	case config < 12:
		frame = [...]time.Duration{10, 20, 40, 60}[config%4] * time.Millisecond
	case config < 16:
		frame = 10 * time.Millisecond << (config % 2)
	default:
		frame = 2500 * time.Microsecond << (config % 4)
	}
	frames, head := 1, 1
	switch packet[0] & 3 {
	case 1:
		frames = 2
	case 2:
		frames, head = 2, 3
	case 3:
		if len(packet) < 2 {
			return 0
		}
		frames = int(packet[1] & 63)
		head = 2 + 2*frames
		if padded := packet[1]&64 != 0; padded {
			head = len(packet)
		}
	}
	if d := time.Duration(frames) * frame; d <= maxTime && len(packet) <= head+frames*maxFrame {
		return d
	}
	return 0
}
