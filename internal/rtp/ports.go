package rtp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// Ports hands out pairs of UDP ports: an even one for RTP and the odd one after it, which is RTCP's (RFC 3550,
// section 11).
type Ports struct {
	mu    sync.Mutex
	first int    // even
	taken []bool // by pair
}

// NewPorts hands out those from first to last.
func NewPorts(first, last int) *Ports {
	first += first & 1
	return &Ports{first: first, taken: make([]bool, max(0, (last-first+1)/2))}
}

// Socket is a pair of ports that is open.
type Socket struct {
	Port int // RTP's

	rtp, rtcp *net.UDPConn
	ports     *Ports
	pair      int
	kept      []kept // of what was drained
}

// kept is a packet that came too early, and counts all the same: the first words of a handshake, which would be
// repeated a second later.
type kept struct {
	data []byte
	from netip.AddrPort
}

const maxKept = 8

var errNoPort = errors.New("no free RTP port: widen PARLEY_RTP_PORTS")

// Open takes a pair that is unused in this process and others. It starts at a random place, so that a new call doesn't
// get the late packets of the last one.
func (p *Ports) Open(ip netip.Addr) (*Socket, error) {
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

func bind(ip netip.Addr, port int) (*Socket, error) {
	rtp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port))))
	if err != nil {
		return nil, fmt.Errorf("open an RTP port: %w", err)
	}
	// It is open before anybody reads from it, so that the far end's reports aren't answered with ICMP, which some take
	// for the end of the call.
	rtcp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port+1))))
	if err != nil {
		rtp.Close()
		return nil, fmt.Errorf("open an RTCP port: %w", err)
	}
	_ = rtcp.SetReadBuffer(8 << 10) // of what comes before a call is answered a few reports are enough
	return &Socket{rtp: rtp, rtcp: rtcp, Port: port}, nil
}

// Close gives the pair back.
func (s *Socket) Close() {
	s.rtp.Close()
	s.rtcp.Close()
	s.ports.free(s.pair)
}

// Drain throws away the sound that arrives until stop is called, which may be called twice: otherwise what came before a call was
// answered would be heard all at once afterwards. It also keeps the buffer free for the first word.
func (s *Socket) Drain() (stop func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		var buf [maxPacket]byte
		for {
			n, from, err := s.rtp.ReadFromUDPAddrPort(buf[:])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
			if err == nil && isHandshake(buf[:n]) && len(s.kept) < maxKept {
				s.kept = append(s.kept, kept{slices.Clone(buf[:n]), netip.AddrPortFrom(from.Addr().Unmap(), from.Port())})
			}
		}
	}()
	return func() {
		select {
		case <-over:
			return
		default:
		}
		_ = s.rtp.SetReadDeadline(past)
		<-over
		_ = s.rtp.SetReadDeadline(time.Time{})
	}
}

// past is a deadline that ends a pending read at once.
var past = time.Unix(1, 0)

// Len is how many pairs there are.
func (p *Ports) Len() int { return len(p.taken) }

// Used is the number of pairs that are taken.
func (p *Ports) Used() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.taken {
		if t {
			n++
		}
	}
	return n
}

func (p *Ports) take(pair int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[pair] {
		return false
	}
	p.taken[pair] = true
	return true
}

func (p *Ports) free(pair int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[pair] = false
}
