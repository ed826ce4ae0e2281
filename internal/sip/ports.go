package sip

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
)

// ports hands out pairs of UDP ports: an even one for RTP and the odd one after it, which is RTCP's (RFC 3550, section 11).
type ports struct {
	mu    sync.Mutex
	first int    // even
	taken []bool // by pair
}

func newPorts(first, last int) *ports {
	first += first & 1
	return &ports{first: first, taken: make([]bool, max(0, (last-first+1)/2))}
}

// socket is a pair that is open.
type socket struct {
	rtp, rtcp *net.UDPConn
	port      int // of rtp

	ports *ports
	pair  int
}

var errNoPort = errors.New("no free RTP port: widen PARLEY_RTP_PORTS")

// open takes a pair that nobody has, in this process or another, from a random place on, so that a new call doesn't get the late packets
// of the last one.
func (p *ports) open(ip netip.Addr) (*socket, error) {
	n := len(p.taken)
	if n == 0 {
		return nil, errNoPort
	}
	start := rand.IntN(n)
	for i := range n {
		pair := (start + i) % n
		if !p.take(pair) {
			continue
		}
		s, err := bind(ip, p.first+2*pair)
		if err == nil {
			s.ports, s.pair = p, pair
			return s, nil
		}
		p.free(pair)
	}
	return nil, errNoPort
}

func bind(ip netip.Addr, port int) (*socket, error) {
	rtp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port))))
	if err != nil {
		return nil, fmt.Errorf("open an RTP port: %w", err)
	}
	// Nobody reads RTCP. It is open so that the far end's reports aren't answered with ICMP, which some take for the end of the call.
	rtcp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port+1))))
	if err != nil {
		rtp.Close()
		return nil, fmt.Errorf("open an RTCP port: %w", err)
	}
	_ = rtcp.SetReadBuffer(1) // the kernel's least
	return &socket{rtp: rtp, rtcp: rtcp, port: port}, nil
}

func (s *socket) close() {
	s.rtp.Close()
	s.rtcp.Close()
	s.ports.free(s.pair)
}

func (p *ports) take(pair int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[pair] {
		return false
	}
	p.taken[pair] = true
	return true
}

func (p *ports) free(pair int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[pair] = false
}

// used is the number of pairs that are taken.
func (p *ports) used() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.taken {
		if t {
			n++
		}
	}
	return n
}
