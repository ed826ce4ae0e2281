package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

// way is a transport for messages.
type way string

const (
	overUDP way = "UDP"
	overTCP way = "TCP"
	overTLS way = "TLS"
)

// wayOf parses a transport as addresses and trunks name it; it is false for one that we don't support.
func wayOf(s string) (way, bool) {
	switch strings.ToLower(s) {
	case "", "udp":
		return overUDP, true
	case "tcp":
		return overTCP, true
	case "tls":
		return overTLS, true
	}
	return "", false
}

// stream reports whether messages go over connections.
func (w way) stream() bool { return w == overTCP || w == overTLS }

// port is the transport's default port.
func (w way) port() int {
	if w == overTLS {
		return sipgo.DefaultTlsPort
	}
	return sipgo.DefaultUdpPort
}

// hop is the next destination of messages.
type hop struct {
	addr netip.AddrPort
	way  way
	// Over TLS: the name that the far end must prove, "" on an existing connection; and the trusted authorities as PEM,
	// "" for the system's.
	name, ca string
}

func (h hop) transport() string { return string(h.way) }

// try does something at the possible places of a trunk, or of the proxy before it, one after the other, until one has
// answered (RFC 3263, section 4.3). The next one is tried when a place can't be reached, says 503 or, if there is
// patience, says nothing for that long. Together they have the time that a single one has, whose patience is 0.
func (s *Server) try(ctx context.Context, t *Trunk, do func(h hop, patience time.Duration) error) error {
	began := time.Now()
	hops, err := s.hops(ctx, t)
	if len(hops) > 1 && !t.Silent {
		s.uses(t)
	}
	for i, h := range hops {
		patience := s.passing
		switch {
		case len(hops) == 1:
			patience = 0
		case i == len(hops)-1:
			patience = max(patience, 64*sipgo.T1-time.Since(began))
		}
		if err = do(h, patience); err == nil || ctx.Err() != nil || !passes(err) {
			return s.unanswered(t, err)
		}
		if len(hops) > 1 {
			s.shun(h.addr)
		}
	}
	return orCause(ctx, s.unanswered(t, err))
}

// passes reports whether a failure is specific to one place, so that the next one may do better.
func passes(err error) bool {
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.Code == 503
	}
	_, ok := errors.AsType[absent](err)
	return ok
}

// absent is the error of a request that nobody answered.
type absent struct{ error }

func (a absent) Unwrap() error { return a.error }

// shun moves a place to the end of the list for a while, so that not every call waits for it.
func (s *Server) shun(a netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.shunned, func(_ netip.AddrPort, at time.Time) bool { return time.Since(at) > shunTime })
	s.shunned[a] = time.Now()
}

const (
	resolveTime = 5 * time.Second
	spareTime   = 500 * time.Millisecond // to look up the others when one place is known
	shunTime    = time.Minute
	maxHops     = 8
)

// hops lists where a trunk, or the proxy before it, may be, in the order to try. There is at least one, or an error.
func (s *Server) hops(ctx context.Context, t *Trunk) ([]hop, error) {
	w, ok := wayOf(t.Transport)
	if !ok {
		return nil, because(fmt.Errorf("%w: transport %s is not available", parley.Unreachable, t.Transport),
			"This server does not speak %s to trunks: set the trunk's transport to udp, tcp or tls.",
			strings.ToUpper(t.Transport))
	}
	found, err := s.resolve(ctx, t.place(), w)
	if err != nil {
		return nil, err
	}
	if t.Number != "" {
		s.findCarrier(ctx)
	}
	var addrs []netip.AddrPort
	for _, a := range found {
		if bad := s.allowed(t, a); bad != nil {
			err = bad
		} else {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		if host, _, _ := hostPort(t.place()); err == errPrivate && !isAddr(host) { //nolint:errorlint // it is our own
			// what an internal name resolves to is not revealed
			err = absent{fmt.Errorf("%w: %s is at no public address", parley.Unreachable, host)}
		}
		return nil, err
	}
	var hops, last []hop
	host, _, _ := hostPort(t.place())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range addrs {
		h := hop{a, w, host, t.CA}
		if at, ok := s.shunned[a]; ok && time.Since(at) < shunTime {
			last = append(last, h)
		} else {
			hops = append(hops, h)
		}
	}
	hops = append(hops, last...)
	return hops[:min(len(hops), maxHops)], nil
}

// resolve finds the addresses of host[:port], the best one first (RFC 3263): a name without a port may have SRV
// records, which give both.
func (s *Server) resolve(ctx context.Context, to string, w way) (all []netip.AddrPort, err error) {
	host, port, err := hostPort(to)
	if err != nil || host == "" {
		return nil, absent{fmt.Errorf("%w: %q is not a host[:port]", parley.Unreachable, to)}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		to, err := s.reachable(netip.AddrPortFrom(a.Unmap(), uint16(cmp.Or(port, w.port()))))
		return []netip.AddrPort{to}, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	records := []*net.SRV{{Target: host, Port: uint16(port)}}
	if port == 0 && strings.Contains(strings.TrimSuffix(host, "."), ".") {
		service, proto := "sip", "udp"
		switch w {
		case overTCP:
			proto = "tcp"
		case overTLS:
			service, proto = "sips", "tcp"
		}
		// By priority, then drawn at random by weight.
		if _, found, err := s.resolver.LookupSRV(ctx, service, proto, host); err == nil && len(found) > 0 &&
			found[0].Target != "." {
			records = found
		}
	}
	var last error
	hurried := false
	for _, r := range records {
		if len(all) > 0 && !hurried {
			hurried = true
			ctx, cancel = context.WithTimeout(ctx, spareTime)
			defer cancel()
		}
		found, err := s.addresses(ctx, strings.TrimSuffix(r.Target, "."), cmp.Or(int(r.Port), w.port()))
		if err != nil {
			last = err
		}
		for _, a := range found {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 {
		return nil, last
	}
	return all, nil
}

// addresses lists a host's addresses that we can reach. IPv4 comes first: telephony over IPv6 is rare, and rarely
// tested.
func (s *Server) addresses(ctx context.Context, host string, port int) (all []netip.AddrPort, err error) {
	found, err := s.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, absent{fmt.Errorf("%w: the name %s was not found: %w", parley.Unreachable, host, err)}
	}
	var last error = absent{fmt.Errorf("%w: the name %s has no address", parley.Unreachable, host)}
	for _, v4 := range []bool{true, false} {
		for _, a := range found {
			if a = a.Unmap(); a.Is4() != v4 {
				continue
			}
			if to, err := s.reachable(netip.AddrPortFrom(a, uint16(port))); err != nil {
				last = err
			} else {
				all = append(all, to)
			}
		}
	}
	if len(all) == 0 {
		return nil, last
	}
	return all, nil
}

func isAddr(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// reachable says what is wrong if our socket can't reach an address.
func (s *Server) reachable(to netip.AddrPort) (netip.AddrPort, error) {
	own := s.addr.Addr()
	switch {
	case own.IsLoopback() && !to.Addr().IsLoopback():
		const text = "the telephone listens on %s, whence only this machine is reached: set PARLEY_SIP_LISTEN to 0.0.0.0:%d"
		return to, because(fmt.Errorf("%w: "+text, parley.Unreachable, own, s.addr.Port()),
			"This server can't reach trunks elsewhere: "+text+".", own, s.addr.Port())
	case own.Is4() && to.Addr().Is6():
		const text = "it is an IPv6 address, and PARLEY_SIP_LISTEN has only IPv4: set it to [::]:%d"
		return to, because(fmt.Errorf("%w: %s: "+text, parley.Unreachable, to.Addr(), s.addr.Port()),
			"This server can't reach the trunk: "+text+".", s.addr.Port())
	}
	return to, nil
}

// near is our own address on the route to a peer.
func (s *Server) near(peer netip.Addr) netip.Addr {
	if own := s.addr.Addr(); !own.IsUnspecified() {
		return own
	}
	// Connecting a UDP socket sends nothing, and picks the address that packets would leave from.
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, 9)))
	if err != nil {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// shown is the address that a peer is told: behind a NAT the outer one, but not for peers inside it with us.
func (s *Server) shown(peer netip.Addr) netip.Addr {
	if e := s.config.External; e.IsValid() && !inside(peer) {
		return e.Unmap()
	}
	return s.near(peer)
}

var shared = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

// inside reports whether an address is not routed on the internet.
func inside(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || shared.Contains(a)
}

// contact is the address at which others reach us, as told to a peer.
func (s *Server) contact(user string, h hop) sipgo.Uri {
	u := sipgo.Uri{Scheme: "sip", User: user, Host: s.shown(h.addr.Addr()).String(), Port: s.port(h.way)}
	if h.way.stream() {
		u.UriParams.Add("transport", strings.ToLower(h.transport()))
	}
	return u
}

// port is where we listen. A peer that speaks TLS to us although we don't listen for it uses the existing connection.
func (s *Server) port(w way) int {
	if w == overTLS && s.secure != nil {
		return s.secure.Addr().(*net.TCPAddr).Port
	}
	return int(s.addr.Port())
}

// address sets a request's destination and transport, and gives it a new top Via (RFC 3261, section 18.1.1; RFC 3581).
func (s *Server) address(req *sipgo.Request, h hop) {
	via := &sipgo.ViaHeader{ProtocolName: "SIP", ProtocolVersion: "2.0", Transport: h.transport(),
		Host: s.shown(h.addr.Addr()).String(), Port: s.port(h.way)}
	via.Params.Add("branch", sipgo.RFC3261BranchMagicCookie+s.mark+token(16))
	via.Params.Add("rport", "")
	req.RemoveHeader("Via")
	req.PrependHeader(via)
	req.SetTransport(h.transport())
	req.SetDestination(h.addr.String())
	if !h.way.stream() { // from the socket that we listen on, so that answers pass a NAT
		req.CompactHeaders = len(req.String()) > longDatagram
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
	if h.way.stream() {
		if err := s.connect(ctx, h); errors.As(err, new(*why)) {
			return nil, err
		} else if err != nil {
			return nil, absent{fmt.Errorf("%w: %w", parley.Unreachable, err)}
		}
	}
	tx, err := s.txs.Request(ctx, req)
	if err != nil {
		return nil, absent{fmt.Errorf("%w: send to %s over %s: %w", parley.Unreachable, h.addr, h.transport(), err)}
	}
	return tx, nil
}

var errSilence = errors.New("no answer")

// lost explains why a transaction ended without an answer.
func lost(err error, h hop) error {
	if errors.Is(err, sipgo.ErrTransactionTimeout) {
		return silence(h)
	}
	return absent{fmt.Errorf("%w: send to %s over %s: %w", parley.Unreachable, h.addr, h.transport(), err)}
}

func silence(h hop) error {
	return absent{fmt.Errorf("%w: %w from %s over %s", parley.Unreachable, errSilence, h.addr, h.transport())}
}

// ask sends a request other than INVITE and returns the final answer, after proving the password if asked to. Each
// attempt has the next sequence number; afterwards req has the last one's.
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
		l.renumber(req)
	}
}

func final(ctx context.Context, tx *sipgo.ClientTx, h hop) (*sipgo.Response, error) {
	defer tx.Terminate()
	return outcome(ctx, tx, h)
}

// outcome is the final answer to a request.
func outcome(ctx context.Context, tx *sipgo.ClientTx, h hop) (*sipgo.Response, error) {
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

// connected reports whether there is a connection to an address.
func (s *Server) connected(to netip.AddrPort, w way) bool {
	c, err := s.transport.GetConnection(string(w), to.String())
	if err != nil {
		return false
	}
	_, _ = c.TryClose() // gives back what asking took
	return true
}
