package rtp

import (
	"net/netip"
	"time"
)

// latch decides whose packets belong to the call. The description says where the far end listens, but behind a NAT that
// is wrong, so packets go back to where good ones come from (symmetric RTP, RFC 4961). A stranger who guesses the port
// must not be able to take the call over or be heard. So the address in the description is accepted, and so is the
// first source at an address that the signalling names: another one is accepted only after a new description. Others
// are accepted only if loose is set, for NATs that send audio from an address that nothing has named; then a source
// that is patient enough is believed.
type latch struct {
	loose bool

	told   netip.AddrPort // by the description; invalid where it named no usable address
	signal netip.Addr     // where the signalling comes from
	since  time.Duration  // when it was told
	moved  bool           // it was told another before: packets from there are still on their way

	from netip.AddrPort // whom we hear; invalid at first
	was  netip.AddrPort // whom we heard before the same was told again
	last time.Duration  // when

	strangers int            // packets of others, who would have liked to be heard
	stranger  netip.AddrPort // the last one of them
	strangeAt time.Duration  // when that was

	// The source that is asking to be heard, if loose.
	other netip.AddrPort
	ssrc  uint32
	seq   uint16
	run   int // packets in order
}

const (
	lapsed     = 200 * time.Millisecond // where loose: without a packet another port of the same host may take over
	longLapsed = 3 * time.Second        // anybody
	nearRun    = 3
	farRun     = 5
	grace      = time.Second // in which only the right address is taken, at the beginning
)

// tell sets what a description says.
func (l *latch) tell(told netip.AddrPort, signal netip.Addr, at time.Duration) {
	a := told.Addr()
	if !told.IsValid() || told.Port() == 0 || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() &&
		!signal.IsLoopback() {
		told = netip.AddrPortFrom(signal, told.Port())
	}
	anew := latch{loose: l.loose, told: told, signal: signal, since: at, strangers: l.strangers,
		stranger: l.stranger, strangeAt: l.strangeAt}
	if told == l.told && signal == l.signal {
		anew.was = l.to() // until the next packet tells whether it has moved
	} else {
		anew.moved = l.told.IsValid()
	}
	*l = anew
}

// near reports whether an address is one that the signalling names.
func (l *latch) near(a netip.Addr) bool { return a == l.told.Addr() || a == l.signal }

// accept reports whether a packet belongs to the call. at counts from the call's beginning.
func (l *latch) accept(from netip.AddrPort, at time.Duration, seq uint16, ssrc uint32) bool {
	switch first := !l.from.IsValid(); {
	case from == l.from:
	case from == l.told:
	case first && l.near(from.Addr()) && (!l.moved || at-l.since > grace):
	case l.loose && l.patient(from, at, seq, ssrc):
	default:
		l.strangers++
		l.stranger, l.strangeAt = from, at
		return false
	}
	if from != l.from {
		l.from, l.run = from, 0
	}
	l.last = at
	return true
}

// patient reports whether an unnamed source has sent enough, and nobody else has sent for long enough.
func (l *latch) patient(from netip.AddrPort, at time.Duration, seq uint16, ssrc uint32) bool {
	if from != l.other || ssrc != l.ssrc || seq-l.seq == 0 || seq-l.seq > 3 {
		l.other, l.ssrc, l.run = from, ssrc, 0
	}
	l.seq = seq
	l.run++
	near, silent := l.near(from.Addr()), at-l.last
	switch {
	case !l.from.IsValid():
		return at-l.since > grace && l.run >= farRun
	case near && !l.near(l.from.Addr()): // the right one, after a stranger
		return true
	case near:
		return silent > lapsed && l.run >= nearRun
	}
	return silent > longLapsed && l.run >= farRun
}

// to is where packets go.
func (l *latch) to() netip.AddrPort {
	switch {
	case l.from.IsValid():
		return l.from
	case l.was.IsValid():
		return l.was
	}
	return l.told
}
