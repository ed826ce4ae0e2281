package rtp

import (
	"encoding/binary"
	"strings"
)

// Telephone events of RFC 4733: keys as packets of their own. A key takes many packets, one every 20 ms, all with the
// timestamp of its beginning, each giving the duration so far; the last one is sent three times.

const (
	eventKeys  = "0123456789*#ABCD" // by event code, section 3.2
	eventLevel = 10                 // -dBm0
	eventStep  = 160                // 20 ms of the 8 kHz clock
	eventEnds  = 3                  // how often the end is sent, section 2.5.1.4
)

// EventPacket is a packet to be sent.
type EventPacket struct {
	Payload [4]byte
	// how far the key's beginning is behind the frame that would be sent now: RTP timestamp = that frame's less Offset
	Offset uint32
	Marker bool // the RTP header's marker bit: a key begins
}

// In puts the packet into the clock of a stream, and its duration into that of its events; both are 8 kHz before.
func (p *EventPacket) In(stream, events int) {
	p.Offset *= uint32(stream / rtpClock)
	if events > rtpClock {
		duration := binary.BigEndian.Uint16(p.Payload[2:])
		binary.BigEndian.PutUint16(p.Payload[2:], duration*uint16(events/rtpClock))
	}
}

// EventSender makes the packets of keys, for a clock of 8 kHz: 100 ms each, with 80 ms between them. Its zero value is
// ready.
type EventSender struct {
	queue string
	step  int // packets of the first key so far
}

const (
	eventOn   = 5                       // packets of a key that grow, the last of them with the end bit
	eventLast = eventOn + eventEnds - 1 // packets in all
	eventAll  = eventOn + 4             // steps in all
)

// Dial adds keys to those being sent. Other characters are ignored.
func (s *EventSender) Dial(keys string) {
	s.queue += strings.Map(func(r rune) rune {
		if strings.ContainsRune(eventKeys, r) {
			return r
		}
		return -1
	}, keys)
}

// Active reports whether there is something to send: no audio is sent meanwhile.
func (s *EventSender) Active() bool { return s.queue != "" }

// Next must be called every 20 ms while Active, instead of sending a frame; the sequence numbers of the stream go on,
// and so do its timestamps. It is false during the pause after a key, when there is nothing to send.
func (s *EventSender) Next() (p EventPacket, ok bool) {
	if s.queue == "" {
		return p, false
	}
	duration := min(s.step+1, eventOn) * eventStep
	p.Payload[0] = byte(strings.IndexByte(eventKeys, s.queue[0]))
	p.Payload[1] = eventLevel
	if s.step >= eventOn-1 {
		p.Payload[1] |= 0x80
	}
	binary.BigEndian.PutUint16(p.Payload[2:], uint16(duration))
	p.Marker, p.Offset, ok = s.step == 0, uint32(s.step*eventStep), s.step < eventLast
	if s.step++; s.step == eventAll {
		s.queue, s.step = s.queue[1:], 0
	}
	return p, ok
}

// EventReader finds the keys in received packets. Every key of which at least one packet arrives is reported once,
// whatever else is lost, duplicated or late. Its zero value is ready.
type EventReader struct {
	began bool
	ssrc  uint32
	seen  [8]seenEvent // the newest last
}

type seenEvent struct {
	used  bool
	code  byte
	ended bool
	ts    uint32
	until uint32 // ts and the longest duration heard of
}

// Read takes a packet's payload, timestamp, marker bit and source; it returns the key if this packet is the first to
// report it, otherwise 0. Events other than keys (flash, fax tones) are not reported.
func (r *EventReader) Read(payload []byte, ts uint32, marker bool, ssrc uint32) byte {
	if len(payload) < 4 || int(payload[0]) >= len(eventKeys) {
		return 0
	}
	if !r.began || ssrc != r.ssrc {
		*r = EventReader{began: true, ssrc: ssrc}
	}
	code, ended := payload[0], payload[1]&0x80 != 0
	until := ts + uint32(binary.BigEndian.Uint16(payload[2:]))
	known := false
	for i := len(r.seen) - 1; i >= 0; i-- {
		e := &r.seen[i]
		if !e.used || e.code != code {
			continue
		}
		if ts == e.ts {
			e.ended = e.ended || ended
			if int32(until-e.until) > 0 {
				e.until = until
			}
			return 0
		}
		// An event that begins within the duration reported so far of a key still down is the same key: one longer than
		// 65535 goes on with a new timestamp (section 2.5.1.3), and some senders move the timestamp with every packet.
		if !e.ended && !marker && (int32(ts-e.ts) > 0 && int32(e.until-ts) >= 0 || ts-e.ts == 0xFFFF) {
			known = true
		}
	}
	copy(r.seen[:], r.seen[1:])
	r.seen[len(r.seen)-1] = seenEvent{used: true, code: code, ended: ended, ts: ts, until: until}
	if known {
		return 0
	}
	return eventKeys[code]
}
