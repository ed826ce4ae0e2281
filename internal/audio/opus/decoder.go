package opus

import "github.com/pion/opus"

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
