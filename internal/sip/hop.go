package sip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley"
)

// hop is where messages go next.
type hop struct {
	addr netip.AddrPort
	tcp  bool
}

func (h hop) transport() string {
	if h.tcp {
		return "TCP"
	}
	return "UDP"
}

// hopTo finds the address of a trunk, or of the proxy before it.
func (s *Server) hopTo(ctx context.Context, t *Trunk) (hop, error) {
	to := t.Address
	if t.Proxy != "" {
		to = t.Proxy
	}
	tcp := strings.EqualFold(t.Transport, "tcp")
	if !tcp && t.Transport != "" && !strings.EqualFold(t.Transport, "udp") {
		return hop{}, fmt.Errorf("%w: transport %s is not there yet: set the trunk's to udp or tcp", parley.Unreachable, t.Transport)
	}
	addr, err := s.resolve(ctx, to, tcp)
	return hop{addr, tcp}, err
}

const resolveTime = 5 * time.Second

// resolve finds the address of host[:port] (RFC 3263): a name without a port may have SRV records, which name both.
func (s *Server) resolve(ctx context.Context, to string, tcp bool) (netip.AddrPort, error) {
	host, port, err := hostPort(to)
	if err != nil || host == "" {
		return netip.AddrPort{}, fmt.Errorf("%w: %q is no host[:port]", parley.Unreachable, to)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	if a, err := netip.ParseAddr(host); err == nil {
		return s.reachable(netip.AddrPortFrom(a.Unmap(), uint16(orDefault(port))))
	}
	if port == 0 && strings.Contains(strings.TrimSuffix(host, "."), ".") {
		proto := "udp"
		if tcp {
			proto = "tcp"
		}
		if _, records, err := net.DefaultResolver.LookupSRV(ctx, "sip", proto, host); err == nil && len(records) > 0 && records[0].Target != "." {
			host, port = strings.TrimSuffix(records[0].Target, "."), int(records[0].Port)
		}
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: the name %s was not found: %w", parley.Unreachable, host, err)
	}
	var last error
	for _, v4 := range []bool{true, false} { // IPv4 first: telephony over IPv6 is rare, and rarely tried
		for _, a := range addrs {
			if a = a.Unmap(); a.Is4() != v4 {
				continue
			}
			to, err := s.reachable(netip.AddrPortFrom(a, uint16(orDefault(port))))
			if err == nil {
				return to, nil
			}
			last = err
		}
	}
	if last == nil {
		last = fmt.Errorf("%w: the name %s has no address", parley.Unreachable, host)
	}
	return netip.AddrPort{}, last
}

func orDefault(port int) int {
	if port == 0 {
		return sipgo.DefaultUdpPort
	}
	return port
}

// reachable says what is wrong where our socket can't reach an address.
func (s *Server) reachable(to netip.AddrPort) (netip.AddrPort, error) {
	own := s.addr.Addr()
	switch {
	case own.IsLoopback() && !to.Addr().IsLoopback():
		return to, fmt.Errorf("%w: the telephone listens on %s, whence only this machine is reached: set PARLEY_SIP_LISTEN to 0.0.0.0:%d", parley.Unreachable, own, s.addr.Port())
	case own.Is4() && to.Addr().Is6():
		return to, fmt.Errorf("%w: %s is an IPv6 address, and PARLEY_SIP_LISTEN has only IPv4: set it to [::]:%d", parley.Unreachable, to.Addr(), s.addr.Port())
	}
	return to, nil
}

// near is our address on the way to a peer.
func (s *Server) near(peer netip.Addr) netip.Addr {
	if own := s.addr.Addr(); !own.IsUnspecified() {
		return own
	}
	// Connecting a UDP socket sends nothing, and chooses the address that packets would leave from.
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, 9)))
	if err != nil {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// shown is the address that a peer is told: where there is a NAT before us, the outer one, but not to those who are inside with us.
func (s *Server) shown(peer netip.Addr) netip.Addr {
	if e := s.config.External; e.IsValid() && !inside(peer) {
		return e.Unmap()
	}
	return s.near(peer)
}

var shared = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

// inside says whether an address is one that the internet doesn't route.
func inside(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || shared.Contains(a)
}

// contact is where others reach us, as told to a peer.
func (s *Server) contact(user string, h hop) sipgo.Uri {
	u := sipgo.Uri{Scheme: "sip", User: user, Host: s.shown(h.addr.Addr()).String(), Port: int(s.addr.Port())}
	if h.tcp {
		u.UriParams.Add("transport", "tcp")
	}
	return u
}

// address sets where a request goes and which way, and gives it a new top Via (RFC 3261, section 18.1.1; RFC 3581).
func (s *Server) address(req *sipgo.Request, h hop) {
	via := &sipgo.ViaHeader{ProtocolName: "SIP", ProtocolVersion: "2.0", Transport: h.transport(), Host: s.shown(h.addr.Addr()).String(), Port: int(s.addr.Port())}
	via.Params.Add("branch", sipgo.RFC3261BranchMagicCookie+s.mark+token(16))
	via.Params.Add("rport", "")
	req.RemoveHeader("Via")
	req.PrependHeader(via)
	req.SetTransport(h.transport())
	req.SetDestination(h.addr.String())
	if !h.tcp { // from the socket that we listen on, so that answers pass a NAT
		req.Laddr = sipgo.Addr{IP: s.udp.LocalAddr().(*net.UDPAddr).IP, Port: int(s.addr.Port())}
	}
}

// transact sends a request in a transaction.
func (s *Server) transact(ctx context.Context, req *sipgo.Request, h hop) (*sipgo.ClientTx, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if h.tcp {
		if err := s.connect(ctx, h.addr); err != nil {
			return nil, fmt.Errorf("%w: %w", parley.Unreachable, err)
		}
	}
	tx, err := s.txs.Request(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("%w: send to %s over %s: %w", parley.Unreachable, h.addr, h.transport(), err)
	}
	return tx, nil
}

var errSilence = errors.New("no answer")

// lost says in words why a transaction ended without an answer.
func lost(err error, h hop) error {
	if errors.Is(err, sipgo.ErrTransactionTimeout) {
		return fmt.Errorf("%w: %w from %s over %s", parley.Unreachable, errSilence, h.addr, h.transport())
	}
	return fmt.Errorf("%w: send to %s over %s: %w", parley.Unreachable, h.addr, h.transport(), err)
}

// ask sends a request that is no INVITE and returns the final answer, after proving the password where that is asked for. Each try has the
// next number: that of req is the last one's afterwards.
func (s *Server) ask(ctx context.Context, req *sipgo.Request, h hop, l *login) (*sipgo.Response, error) {
	for {
		try := req.Clone()
		s.address(try, h)
		tx, err := s.transact(ctx, try, h)
		if err != nil {
			return nil, err
		}
		res, err := final(ctx, tx, h)
		if err != nil || res.StatusCode != 401 && res.StatusCode != 407 {
			return res, err
		}
		if err := l.answer(req, res); err != nil {
			return res, err
		}
		req.CSeq().SeqNo++
	}
}

func final(ctx context.Context, tx *sipgo.ClientTx, h hop) (*sipgo.Response, error) {
	defer tx.Terminate()
	for {
		select {
		case res := <-tx.Responses():
			if !res.IsProvisional() {
				return res, nil
			}
		case <-tx.Done():
			return nil, lost(tx.Err(), h)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connected says whether there is a TCP connection to an address.
func (s *Server) connected(to netip.AddrPort) bool {
	c, err := s.transport.GetConnection("tcp", to.String())
	if err != nil {
		return false
	}
	_, _ = c.TryClose() // gives back what asking took
	return true
}
