package sip

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
)

// A request over UDP that is longer than a packet may be goes by TCP if the far end takes it (RFC 3261, section
// 18.1.1). Otherwise it is sent in fragments, which some firewalls drop.

const (
	// longDatagram is from how many octets on a request over UDP has its headers' short names (section 7.3.3), and if
	// these don't help, goes by TCP.
	longDatagram = 1300
	streamTime   = time.Second // to connect: a firewall may say nothing
	streamAgain  = time.Hour   // after which an address without TCP is tried again
	maxDeaf      = 4096
)

// deaf are addresses that take no TCP, or don't answer over it, and since when.
type deaf struct {
	mu sync.Mutex
	at map[netip.AddrPort]time.Time
}

func (d *deaf) add(a netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at == nil || len(d.at) >= maxDeaf {
		d.at = map[netip.AddrPort]time.Time{}
	}
	d.at[a] = time.Now()
}

func (d *deaf) has(a netip.AddrPort) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.at[a]
	return ok && time.Since(at) < streamAgain
}

// widened is the hop over TCP for a request that is too long for UDP, if the far end takes connections there. The
// connection is open then.
func (s *Server) widened(ctx context.Context, req *sipgo.Request, h hop) (hop, bool) {
	wide := hop{addr: h.addr, way: overTCP}
	if h.way != overUDP || s.deaf.has(h.addr) || !s.tooLong(req, h) {
		return h, false
	}
	limited, cancel := context.WithTimeout(ctx, streamTime)
	defer cancel()
	if s.connected(wide.addr, wide.way) {
		return wide, true
	}
	if err := s.connect(limited, wide); err != nil {
		if ctx.Err() == nil {
			s.deaf.add(h.addr)
		}
		return h, false
	}
	return wide, true
}

// tooLong reports whether a request over UDP would not fit into a packet, even with short names.
func (s *Server) tooLong(req *sipgo.Request, h hop) bool {
	try := req.Clone()
	s.address(try, h)
	return len(try.String()) > longDatagram
}

// send sends the INVITE and returns it with its final answer: by TCP if it is too long for UDP. A far end that takes
// the connection and says nothing over it is asked by UDP.
func (a *attempt) send(ctx context.Context, h hop) (*sipgo.Request, *sipgo.Response, error) {
	s := a.leg.server
	if a.sign != nil {
		if err := a.sign(a.invite); err != nil {
			return nil, nil, err
		}
	}
	wide, ok := s.widened(ctx, a.invite, h)
	if !ok {
		return a.once(ctx, h, a.patience)
	}
	try, res, err := a.once(ctx, wide, s.passing)
	if _, silent := errors.AsType[absent](err); !silent || ctx.Err() != nil {
		return try, res, err
	}
	s.deaf.add(h.addr)
	a.invite.CSeq().SeqNo = a.leg.number() // it may have got the other one, and must not take this for the same
	return a.once(ctx, h, a.patience)
}
