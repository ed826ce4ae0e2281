package sip

import (
	"net/netip"
	"time"
)

// latch decides whose packets are the call's. The description says where the far end listens, and with a NAT in between it is wrong: so
// packets go back to where good ones come from (symmetric RTP, RFC 4961). A stranger who guesses the port must not take the call over or
// be heard: who comes from neither the described nor the signalling address has to prove patience.
type latch struct {
	told   netip.AddrPort // by the description; invalid where it named no usable address
	signal netip.Addr     // where the signalling comes from
	since  time.Duration  // when it was told
	moved  bool           // it was told another before: packets from there are still on their way

	from netip.AddrPort // whom we hear; invalid at first
	last time.Duration  // when

	// Who would like to be heard.
	other netip.AddrPort
	ssrc  uint32
	seq   uint16
	run   int // packets in order
}

const (
	lapsed     = 200 * time.Millisecond // without a packet another port of the same host may take over
	longLapsed = 3 * time.Second        // anybody
	nearRun    = 3
	farRun     = 5
	grace      = time.Second // in which only the right address is taken, at the beginning
)

// tell sets what a description says.
func (l *latch) tell(told netip.AddrPort, signal netip.Addr, at time.Duration) {
	a := told.Addr()
	if !told.IsValid() || told.Port() == 0 || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() && !signal.IsLoopback() {
		told = netip.AddrPortFrom(signal, told.Port())
	}
	if told == l.told && signal == l.signal {
		return
	}
	*l = latch{told: told, signal: signal, since: at, moved: l.told.IsValid()}
}

// near says whether an address is one of those that the signalling names.
func (l *latch) near(a netip.Addr) bool { return a == l.told.Addr() || a == l.signal }

// accept says whether a packet is the call's. at counts from the call's beginning.
func (l *latch) accept(from netip.AddrPort, at time.Duration, seq uint16, ssrc uint32) bool {
	if from == l.from {
		l.last = at
		return true
	}
	near := l.near(from.Addr())
	if from != l.other || ssrc != l.ssrc || seq-l.seq == 0 || seq-l.seq > 3 {
		l.other, l.ssrc, l.run = from, ssrc, 0
	}
	l.seq = seq
	l.run++
	silent := at - l.last
	switch {
	case !l.from.IsValid() && near && (from == l.told || !l.moved || at-l.since > grace):
	case !l.from.IsValid() && at-l.since > grace && l.run >= farRun:
	case l.from.IsValid() && near && !l.near(l.from.Addr()): // the right one, after a stranger
	case l.from.IsValid() && near && silent > lapsed && l.run >= nearRun:
	case l.from.IsValid() && silent > longLapsed && l.run >= farRun:
	default:
		return false
	}
	l.from, l.last, l.run = from, at, 0
	return true
}

// to is where packets go.
func (l *latch) to() netip.AddrPort {
	if l.from.IsValid() {
		return l.from
	}
	return l.told
}
