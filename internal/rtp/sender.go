package rtp

import (
	"math/rand/v2"

	pion "github.com/pion/rtp"

	"parley/internal/audio"
)

// Sender makes the packets of outgoing audio: one for each frame, with keys in between. It has no clock: its owner says
// how time passes.
type Sender struct {
	Header pion.Header // of the packet that Next made

	codec   Codec
	encoder *audio.Encoder
	ts      uint32 // of the frame that is due
	key     uint32 // of the key that is being sent
	silent  bool   // nothing was said in the last packet
	packet  [headerSize + audio.FrameBytes]byte
	events  EventSender
	tones   *audio.Digits
}

// NewSender begins a stream, which sends nothing before Speak. Its sequence numbers begin in the lower half: a receiver
// that misses the first packets of an encrypted stream must not miscount how often they have wrapped (RFC 3711, section
// 3.3.1).
func NewSender(rate audio.Rate) *Sender {
	return &Sender{Header: pion.Header{Version: 2, SequenceNumber: uint16(rand.Uint32()) >> 1, SSRC: rand.Uint32()},
		ts: rand.Uint32(), silent: true,
		tones: audio.NewDigits(rate)}
}

// Speak sets what is sent from now on.
func (s *Sender) Speak(c Codec) {
	if s.encoder == nil || c.Format != s.codec.Format {
		s.encoder = audio.NewEncoder(c.Format)
	}
	s.codec = c
}

// Pass lets the time of a frame pass, and of those missed before it: the listener hears a gap, not a burst.
func (s *Sender) Pass(missed int) { s.ts += uint32(missed+1) * frameTicks }

// Pause notes that nothing is sent for the frame that is due: audio after it starts a talkspurt.
func (s *Sender) Pause() { s.silent = true }

// Dial sends keys after those already being sent: by RFC 4733 if that was agreed on, otherwise as tones. Audio due
// meanwhile is not sent.
func (s *Sender) Dial(keys string) {
	if s.codec.Event {
		s.events.Dial(keys)
	} else {
		s.tones.Dial(keys)
	}
}

// Next makes the packet that is due: Header describes it. f is the frame to send, which tones may replace; spoken is
// false if it is silence. The payload is valid until the next call, and nil if there is nothing to send.
func (s *Sender) Next(f audio.Frame, spoken bool) (payload []byte) {
	h := &s.Header
	if s.events.Active() {
		s.silent = true
		e, ok := s.events.Next()
		if !ok {
			return nil
		}
		if e.Marker { // all packets of a key have the time of its beginning, also when frames were missed since
			s.key = s.ts - e.Offset
		}
		h.SequenceNumber++
		h.Marker, h.PayloadType, h.Timestamp = e.Marker, s.codec.SendEvent, s.key
		return s.packet[headerSize : headerSize+copy(s.packet[headerSize:], e.Payload[:])]
	}
	if s.tones.Fill(f) {
		spoken = true
	}
	h.SequenceNumber++
	h.Marker, h.PayloadType, h.Timestamp = spoken && s.silent, s.codec.Send, s.ts
	s.silent = !spoken
	return s.encoder.Encode(s.packet[headerSize:headerSize], f)
}

// Packet is the packet whose payload Next returned, as it goes over the wire.
func (s *Sender) Packet(payload []byte) []byte {
	if _, err := s.Header.MarshalTo(s.packet[:headerSize]); err != nil {
		return nil
	}
	return s.packet[:headerSize+len(payload)]
}
