// Package rtp is the media plane: it carries the audio of a call between a leg and a network. Its parts can be used
// alone: Ports and their sockets, the Receiver (packets to frames: duplicates, losses, the jitter buffer), the Sender
// (frames to packets: their numbers, talkspurts, keys), the Clock of 20 ms, and the Teller, which calls the leg's peer.
// A Session combines them all for a call over RTP or SRTP, with a latch that knows whose packets count, and with RTCP,
// by which each end reports to the other how the audio arrived. Signalling is elsewhere: its Agreement says what a
// session speaks, and with whom.
//
// A packet goes through two calls in each direction: socket, Session, the peer's Hear; Clock, Session, the peer's Tick,
// socket. Nothing allocates on the way, and no lock is held but the session's own.
package rtp

import (
	"net/netip"
	"time"

	"parley/internal/audio"
)

// Codec is the codec agreed on. The payload types of the two directions are usually, but not necessarily, the same.
type Codec struct {
	Format        audio.Format
	Send, Receive uint8
	Bitrate       int // the most bits a second that the far end wants, where the format leaves a choice; 0: as we like

	Event                   bool // telephone-event (RFC 4733) was agreed on
	SendEvent, ReceiveEvent uint8
	EventClock              int // of its durations, Hz; 0: 8000
}

// Direction says which ends send, seen from one of them.
type Direction struct{ Send, Receive bool }

// Agreement is what both ends of a session have agreed on.
type Agreement struct {
	Codec     Codec
	Direction Direction     // ours
	Packet    time.Duration // how long packets are that the far end wants; 0: as we like
	// where the far end says that it listens; an unusable address stands for where its signalling is
	Told    netip.AddrPort
	Signal  netip.Addr     // where that is
	Control netip.AddrPort // where it says that it listens for RTCP; of an invalid one, at the port after Told's
	Mux     bool           // where Told is, for both (RFC 5761)
	// what the far end encrypts with, and what we do. Where only one is known nothing is taken, or sent, in the other
	// direction.
	In, Out Key
	DTLS    *DTLS // both ends find keys by themselves; nil: no
}

// control is where RTCP goes, which may be unusable too.
func (a *Agreement) control() netip.AddrPort {
	switch {
	case a.Control.Port() == 0 && (a.Told.Port() == 0 || a.Told.Port() == 1<<16-1):
		return netip.AddrPort{}
	case a.Control.Port() == 0:
		return netip.AddrPortFrom(a.Told.Addr(), a.Told.Port()+1)
	case !a.Control.Addr().IsValid():
		return netip.AddrPortFrom(a.Told.Addr(), a.Control.Port())
	}
	return a.Control
}
