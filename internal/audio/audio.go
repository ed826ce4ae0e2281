// Package audio is the sound of a call: 20 ms frames of mono 16-bit PCM at 8 or 16 kHz, and their processing on the way
// between a network and a conversation. Codecs, resampling, the jitter buffer with concealment, voice detection, noise
// suppression, tones and digits, ambient sound, mixing, legs that are joined, WAV files.
//
// Everything here is a value with a state: nothing starts a goroutine, reads a clock or opens a file, and nothing
// that runs once per frame allocates. A value serves one stream and one goroutine at a time; a Pair and a Bridge,
// which join legs, serve these at once.
package audio

import (
	"context"
	"time"

	"parley/internal/audio/opus"
)

// Rate is a sampling rate in Hz.
type Rate int

// The rates of calls.
const (
	Narrow Rate = 8000  // G.711
	Wide   Rate = 16000 // G.722, Opus, recognisers
)

// FrameTime is how long every frame lasts.
const FrameTime = 20 * time.Millisecond

// MaxFrame is the number of samples in the longest frame of a call.
const MaxFrame = int(Wide) / 50

// FrameSize is the number of samples in a frame.
func (r Rate) FrameSize() int { return int(r) / 50 }

// Frame is FrameTime of mono PCM: 160 samples at 8 kHz, 320 at 16 kHz. A function that is called with a frame may use
// it until it returns.
type Frame []int16

// Leg is one end of a call's audio: a telephone, a browser. It owns the socket and the 20 ms clock. Its other abilities
// (to transfer the call, to hold it) are found by a type assertion.
type Leg interface {
	// Rate is that of all frames in both directions; it never changes.
	Rate() Rate
	// Run moves audio between the network and p until ctx ends, which hangs up, or the leg does. The error says why
	// it is over. It returns when p will not be called any more.
	Run(ctx context.Context, p Peer) error
	// Dial sends DTMF digits to the far end in the way that was negotiated, after those still being sent. It doesn't
	// wait.
	Dial(digits string) error
	// Hangup ends the call and gives back what it took, also where Run runs or never did. It doesn't wait, and one
	// that is over stays so.
	Hangup()
}

// Peer is who listens and speaks on a leg. The leg makes one call at a time, under no lock of its own, and none may
// block.
type Peer interface {
	// Hear takes a frame as soon as it arrives, ahead of the jitter buffer, for those who must be quick: voice
	// detection, recognition.
	Hear(f Frame)
	// Tick comes every 20 ms. in is what the far end said in these 20 ms, in order and concealed, for the recording.
	// out is to be filled with what the far end hears next: what was pulled is what was heard. It returns false when
	// out is silence.
	Tick(in, out Frame) bool
	// Digit is a key that the far end pressed: 0-9, *, #, A-D.
	Digit(key byte)
}

// Format is how frames travel in RTP.
type Format uint8

// The formats. All but Opus have 64 kbit/s: 160 octets a frame.
const (
	PCMU Format = iota + 1 // ITU-T G.711 µ-law, 8 kHz
	PCMA                   // ITU-T G.711 A-law, 8 kHz
	G722                   // ITU-T G.722, 16 kHz
	Opus                   // RFC 6716, at 16 kHz; at most as many octets, and a packet is a frame
)

// OpusRate is how many bits a second of Opus are sent, unless the far end wants fewer.
const OpusRate = 48000

// FrameBytes is how many octets a frame takes at most.
const FrameBytes = 160

// Rate is that of the frames.
func (f Format) Rate() Rate {
	if f == G722 || f == Opus {
		return Wide
	}
	return Narrow
}

// ClockRate is that of the RTP timestamps: 8000 for G.722 too, by the well-known mistake of RFC 3551, section 4.5.2, and
// 48000 for all Opus (RFC 7587, section 4.1).
func (f Format) ClockRate() int {
	if f == Opus {
		return 48000
	}
	return 8000
}

// PayloadType is the static one of RFC 3551, table 4; of Opus, which has none, the one that we offer.
func (f Format) PayloadType() uint8 {
	switch f {
	case PCMA:
		return 8
	case G722:
		return 9
	case Opus:
		return 96
	}
	return 0
}

// String is the encoding name of RFC 3551, as SDP has it.
func (f Format) String() string {
	switch f {
	case PCMU:
		return "PCMU"
	case PCMA:
		return "PCMA"
	case G722:
		return "G722"
	case Opus:
		return "opus"
	}
	return "unknown"
}

// Encoder turns a stream of frames into octets.
type Encoder struct {
	format Format
	g722   *g722Encoder
	opus   *opus.Encoder
}

// NewEncoder begins a stream.
func NewEncoder(f Format) *Encoder {
	e := &Encoder{format: f}
	switch f {
	case G722:
		e.g722 = newG722Encoder()
	case Opus:
		e.Limit(OpusRate)
	}
	return e
}

// Limit begins the stream anew with at most so many bits a second, where the format leaves a choice.
func (e *Encoder) Limit(rate int) {
	if e.format == Opus {
		e.opus = opus.NewEncoder(min(rate, OpusRate))
	}
}

// Encode appends pcm to dst. G.722 codes samples in pairs: an odd last one is dropped. Opus takes one whole frame.
func (e *Encoder) Encode(dst []byte, pcm []int16) []byte {
	switch e.format {
	case PCMU:
		return EncodeULaw(dst, pcm)
	case PCMA:
		return EncodeALaw(dst, pcm)
	case Opus:
		return e.opus.Encode(dst, pcm)
	}
	return e.g722.encode(dst, pcm)
}

// Decoder turns the octets of a stream into samples.
type Decoder struct {
	format Format
	g722   *g722Decoder
	opus   *opus.Decoder
}

// NewDecoder begins a stream.
func NewDecoder(f Format) *Decoder {
	d := &Decoder{format: f}
	switch f {
	case G722:
		d.g722 = newG722Decoder()
	case Opus:
		d.opus = opus.NewDecoder()
	}
	return d
}

// Duration is how long the sound of data is, without decoding it; 0 of Opus that can't be any.
func (d *Decoder) Duration(data []byte) time.Duration {
	if d.format == Opus {
		return opus.Duration(data)
	}
	return time.Duration(len(data)) * FrameTime / FrameBytes
}

// Decode appends the samples of data to dst. Opus takes the data of one packet, and packets in their order.
func (d *Decoder) Decode(dst []int16, data []byte) []int16 {
	switch d.format {
	case PCMU:
		return DecodeULaw(dst, data)
	case PCMA:
		return DecodeALaw(dst, data)
	case Opus:
		return d.opus.Decode(dst, data)
	}
	return d.g722.decode(dst, data)
}
