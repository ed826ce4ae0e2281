package rtp

import (
	"math/rand/v2"
	"time"

	pion "github.com/pion/rtp"

	"parley/internal/audio"
)

// Sender makes the packets of outgoing audio, with keys in between. It has no clock: its owner says how time passes.
type Sender struct {
	Header pion.Header // of the packet that Next or More made

	codec     Codec
	rate      audio.Rate
	resampler *audio.Resampler // to the codec's rate; nil: it is the same
	resampled audio.Frame
	ticks     uint32 // in a frame
	encoder   *audio.Encoder
	ts        uint32 // of the frame that is due
	key       uint32 // of the key that is being sent
	silent    bool   // nothing was said in the last frame
	size      int    // octets of audio in a packet
	audio     [maxSent + audio.FrameBytes]byte
	waiting   int  // octets of audio that don't fill a packet yet
	spurt     bool // a talkspurt begins in them
	packet    [headerSize + maxSent]byte
	events    EventSender
	tones     *audio.Digits
}

// NewSender begins a stream, which sends nothing before Speak. Its sequence numbers begin in the lower half: a receiver
// that misses the first packets of an encrypted stream must not miscount how often they have wrapped (RFC 3711, section
// 3.3.1).
func NewSender(rate audio.Rate) *Sender {
	return &Sender{Header: pion.Header{Version: 2, SequenceNumber: uint16(rand.Uint32()) >> 1, SSRC: rand.Uint32()},
		rate: rate, ts: rand.Uint32(), ticks: frameTicks, silent: true, size: audio.FrameBytes,
		tones: audio.NewDigits(rate)}
}

// Speak sets what is sent from now on. Sound of another clock is another source (RFC 7160, section 4.1).
func (s *Sender) Speak(c Codec) {
	if s.encoder == nil || c.Format != s.codec.Format || c.Bitrate != s.codec.Bitrate {
		s.encoder, s.waiting = audio.NewEncoder(c.Format), 0
		if s.codec.Format == 0 || c.Format.Rate() != s.codec.Format.Rate() {
			s.resampler = between(s.rate, c.Format.Rate())
		}
		if c.Bitrate > 0 {
			s.encoder.Limit(c.Bitrate)
		}
	}
	ticks := uint32(c.Format.ClockRate() / 50)
	if s.codec.Format != 0 && ticks != s.ticks {
		s.Header.SSRC = rand.Uint32()
	}
	s.codec, s.ticks = c, ticks
}

// between changes sound from one rate to another; nil where they are the same.
func between(from, to audio.Rate) *audio.Resampler {
	if from == to {
		return nil
	}
	r, err := audio.NewResampler(int(from), int(to))
	if err != nil {
		panic(err) // both are rates of formats
	}
	return r
}

// Fill sets how long packets are, as the far end wants them: 10 to 60 ms, otherwise 20.
func (s *Sender) Fill(length time.Duration) {
	size := int(length/(10*time.Millisecond)) * audio.FrameBytes / 2
	if size <= 0 || size > maxSent {
		size = audio.FrameBytes
	}
	if size != s.size {
		s.size, s.waiting = size, 0
	}
}

// Pass lets the time of a frame pass, and of those missed before it: the listener hears a gap, not a burst.
func (s *Sender) Pass(missed int) {
	if missed > 0 {
		s.waiting = 0 // the next frame does not follow on it
	}
	s.ts += uint32(missed+1) * s.ticks
}

// Pause notes that nothing is sent for the frame that is due: audio after it starts a talkspurt.
func (s *Sender) Pause() { s.silent, s.waiting = true, 0 }

// Dial sends keys after those already being sent: by RFC 4733 if that was agreed on, otherwise as tones. Audio due
// meanwhile is not sent.
func (s *Sender) Dial(keys string) {
	if s.codec.Event {
		s.events.Dial(keys)
	} else {
		s.tones.Dial(keys)
	}
}

// Next takes the frame that is due and makes a packet, if one is full: Header describes it. f is the frame to send, which
// tones may replace; spoken is false if it is silence. The payload is valid until the next call, and nil if there is
// nothing to send. More makes the other packets, where they are shorter than a frame.
func (s *Sender) Next(f audio.Frame, spoken bool) (payload []byte) {
	if s.events.Active() {
		s.Pause()
		return s.event()
	}
	if s.tones.Fill(f) {
		spoken = true
	}
	s.spurt = spoken && s.silent || s.spurt && s.waiting > 0
	s.silent = !spoken
	if s.resampler != nil {
		s.resampled = s.resampler.Resample(s.resampled[:0], f)
		f = s.resampled
	}
	if s.codec.Format == audio.Opus { // whatever length the far end would like, it takes any (RFC 7587, section 6.1)
		return s.sound(copy(s.packet[headerSize:], s.encoder.Encode(s.audio[:0], f)), s.ts)
	}
	s.waiting = len(s.encoder.Encode(s.audio[:s.waiting], f))
	return s.More()
}

// More makes another packet of what Next has taken.
func (s *Sender) More() (payload []byte) {
	if s.waiting < s.size || s.codec.Format == audio.Opus {
		return nil
	}
	// Every other codec of ours has as many octets as ticks.
	payload = s.sound(copy(s.packet[headerSize:], s.audio[:s.size]), s.ts+frameTicks-uint32(s.waiting))
	s.waiting = copy(s.audio[:], s.audio[s.size:s.waiting])
	return payload
}

// sound makes a packet of the octets that are in its place.
func (s *Sender) sound(size int, ts uint32) (payload []byte) {
	h := &s.Header
	h.SequenceNumber++
	h.Marker, h.PayloadType, h.Timestamp = s.spurt, s.codec.Send, ts
	s.spurt = false
	return s.packet[headerSize : headerSize+size]
}

// event makes the packet of a key that is due.
func (s *Sender) event() (payload []byte) {
	h := &s.Header
	e, ok := s.events.Next()
	if !ok {
		return nil
	}
	e.In(s.codec.Format.ClockRate(), s.codec.EventClock)
	if e.Marker { // all packets of a key have the time of its beginning, also when frames were missed since
		s.key = s.ts - e.Offset
	}
	h.SequenceNumber++
	h.Marker, h.PayloadType, h.Timestamp = e.Marker, s.codec.SendEvent, s.key
	return s.packet[headerSize : headerSize+copy(s.packet[headerSize:], e.Payload[:])]
}

// Packet is the packet whose payload Next or More returned, as it goes over the wire.
func (s *Sender) Packet(payload []byte) []byte {
	if _, err := s.Header.MarshalTo(s.packet[:headerSize]); err != nil {
		return nil
	}
	return s.packet[:headerSize+len(payload)]
}
