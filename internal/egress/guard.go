package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The bounds of one hop of an exchange. The whole exchange is bounded by the request's context.
const (
	connectTimeout = 10 * time.Second // name look-up and connecting, over all addresses of the name
	tlsTimeout     = 10 * time.Second
	headerTimeout  = 60 * time.Second // from the request's last byte to the answer's header
	idleTimeout    = 30 * time.Second // how long an unused connection is kept
	maxHeaderBytes = 64 << 10
)

// Setting is the name of the setting that allows addresses which are not public.
const Setting = "PARLEY_EGRESS_ALLOW"

// Guard lets connections out to public addresses, and to those that the operator allows. It is safe for concurrent use.
type Guard struct {
	allow     []netip.Prefix
	private   bool                       // private addresses count as public ones, but for this machine's own
	own       []netip.Addr               // by which others reach this machine
	addrs     func() ([]net.Addr, error) // of this machine's interfaces
	dialer    net.Dialer
	transport transport
}

// New makes a guard that allows these prefixes besides the public addresses. own are addresses of this server that no
// interface has: those of the router before it (NAT). Invalid ones are left out.
func New(own []netip.Addr, allow ...netip.Prefix) *Guard {
	g := &Guard{addrs: net.InterfaceAddrs}
	for _, a := range own {
		if a.IsValid() {
			g.own = append(g.own, a.Unmap())
		}
	}
	for _, p := range allow {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // judged as IPv4, as it will be dialled
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		g.allow = append(g.allow, p)
	}
	g.dialer = net.Dialer{Timeout: connectTimeout, Control: g.control}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	g.transport.Transport = &http.Transport{
		Proxy: nil, // a proxy would connect to where the guard can't see
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return g.dialer.DialContext(ctx, network, addr)
		},
		Protocols:              protocols,
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	return g
}

// Private makes a guard that lets connections out to private addresses too, but not to this server's own. Close it.
func (g *Guard) Private() *Guard {
	p := New(g.own, g.allow...)
	p.private = true
	return p
}

// Close gives up the connections that are kept for reuse. Exchanges under way go on.
func (g *Guard) Close() { g.transport.CloseIdleConnections() }

// Client is a guarded HTTP client that follows at most so many redirects. With 0 it follows none and the redirect
// itself is the answer. Its clients share the guard's connections. It keeps no cookies. A redirect to another origin
// is followed without the request's own headers, which may hold secrets; from https to http it is refused where there
// is such a header, or a body, to lose. A redirect that would make a GET without a body of another request (301, 302
// and 303 do) is refused: what was asked for would not be done, and look as if it had been.
func (g *Guard) Client(redirects int) *http.Client {
	return &http.Client{Transport: g.transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if redirects == 0 {
			return http.ErrUseLastResponse
		}
		if len(via) > redirects {
			return refuse("the server redirects too often")
		}
		if err := sameMethod(req, via); err != nil {
			return err
		}
		return redirect(req, via)
	}}
}

// Check judges an address: nil, or a *Refused that says why it may not be reached.
func (g *Guard) Check(a netip.Addr) error {
	a = a.Unmap()
	if slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return nil
	}
	const remedy = " (the operator of this server can allow it with " + Setting + ")"
	if kind := special(a); kind != "" && !(g.private && kind == private) {
		return &Refused{Addr: a, Reason: "the address is " + kind + ", and only public addresses may be reached" +
			remedy}
	}
	if g.isOwn(a) {
		return &Refused{Addr: a, Reason: "the address is this server's own" + remedy}
	}
	return nil
}

// isOwn says whether an address is this machine's, which firewalls trust and whose services may listen on all
// addresses. They are asked for each time: interfaces come and go.
func (g *Guard) isOwn(a netip.Addr) bool {
	if b := a.As16(); a.Is6() && nat64.Contains(a) {
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if slices.Contains(g.own, a) {
		return true
	}
	list, err := g.addrs()
	return err != nil || slices.ContainsFunc(list, func(i net.Addr) bool {
		n, ok := i.(*net.IPNet)
		return ok && n.IP.Equal(a.AsSlice())
	})
}

// control is called with every address that is about to be connected to.
func (g *Guard) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("the address is not an internet address")
	}
	return g.Check(ap.Addr())
}

// transport refuses what no request of a tenant's may be, on every hop, before anything is connected.
type transport struct{ *http.Transport }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkURL(req.URL); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return t.Transport.RoundTrip(req)
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("only http and https URLs may be reached")
	case u.User != nil: // a password in a URL ends up in logs; and http://example.com@evil/ deceives its reader
		return refuse("a URL must not hold a user name or password")
	case u.Hostname() == "":
		return refuse("the URL names no host")
	}
	return nil
}

// sameMethod refuses a hop that asks for something else than the request it comes from.
func sameMethod(req *http.Request, via []*http.Request) error {
	was := via[len(via)-1].Method
	if req.Method == was {
		return nil
	}
	code := 0
	if req.Response != nil {
		code = req.Response.StatusCode
	}
	return refuse(fmt.Sprintf("the server answers the %s with a redirect (%d) that would turn it into a %s without its "+
		"body, so it is not known whether it did anything; give the address that it redirects to, or have it redirect "+
		"with 307 or 308", was, code, req.Method))
}

// plain are the headers that tell nothing about who asks.
var plain = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}

// redirect prepares a hop: what http.Client forwards to another origin is too much, because a tenant's secret can be
// in any header, and net/http takes a subdomain, another port and another scheme for the same party.
func redirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer") // would carry the query of a tenant's URL to whoever it was redirected to
	first := via[0]
	secret := func(name string) bool { return !slices.Contains(plain, name) }
	same := origin(req.URL) == origin(first.URL)
	for _, r := range via { // once away, a chain is in another's hands also when it leads back
		same = same && origin(r.URL) == origin(first.URL)
	}
	if same {
		return nil
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http" {
		for name := range first.Header {
			if secret(name) {
				return refuse("the server redirects from https to http")
			}
		}
		if req.Body != nil && req.Body != http.NoBody {
			return refuse("the server redirects from https to http")
		}
	}
	for name := range req.Header {
		if secret(name) {
			req.Header.Del(name)
		}
	}
	return nil
}

// origin is scheme, host and port, as RFC 6454 compares them.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
