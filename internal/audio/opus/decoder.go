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

// Decode appends the samples of a packet to dst: none of one that can't be decoded, which is as good as lost.
func (d *Decoder) Decode(dst []int16, packet []byte) []int16 {
	n, err := d.pion.DecodeToInt16(packet, d.pcm[:])
	if err != nil {
		return dst
	}
	return append(dst, d.pcm[:n]...)
}

const (
	mostFrame = 1275 // octets of a frame (RFC 6716, section 3.4)
	mostTime  = 120 * time.Millisecond
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
	if d := time.Duration(frames) * frame; d <= mostTime && len(packet) <= head+frames*mostFrame {
		return d
	}
	return 0
}
