package sip

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	sipgo "github.com/emiago/sipgo/sip"
)

// dialog is the state that both sides of a call share (RFC 3261, section 12).
type dialog struct {
	server        *Server
	trunk         *Trunk // nil for a softphone
	callID        string
	local, remote name
	login         login // of the trunk
	contact       sipgo.Uri
	caller        bool // we called: the Call-ID is ours

	mu     sync.Mutex
	target sipgo.Uri   // where the far end wants its requests
	route  []sipgo.Uri // by way of
	hop    hop         // whence its messages come
	seq    uint32      // ours
	theirs arrivals
	allow  []string // the methods that the far end says it knows; nil: it hasn't said
}

func (d *dialog) key() string { return d.callID + " " + d.local.tag }

// message is a request or a response.
type message interface {
	sipgo.Message
	Contact() *sipgo.ContactHeader
}

// learn takes the far end's contact from a message, and which methods it knows.
func (d *dialog) learn(m message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := m.Contact(); c != nil && (c.Address.Scheme == "sip" || c.Address.Scheme == "sips") && c.Address.Host != "" {
		d.target = *c.Address.Clone()
	}
	if list := valuesOf(m, "Allow"); list != nil {
		d.allow = list
	}
}

// knows reports whether the far end says that it knows a method.
func (d *dialog) knows(m sipgo.RequestMethod) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.allow, string(m))
}

// lacks reports whether it says which methods it knows, and this is none of them.
func (d *dialog) lacks(m sipgo.RequestMethod) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.allow != nil && !slices.Contains(d.allow, string(m))
}

// credentials answer the challenges to one of the dialog's requests.
func (d *dialog) credentials() *login {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &login{username: d.login.username, password: d.login.password, number: d.number}
}

// ownContact is where the far end reaches us.
func (d *dialog) ownContact() *sipgo.ContactHeader {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &sipgo.ContactHeader{Address: *d.contact.Clone()}
}

// calls reports whether the dialog's Call-ID is ours.
func (d *dialog) calls() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.caller
}

// number is the next one of our requests.
func (d *dialog) number() uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	return d.seq
}

// recordRoute lists the proxies that want to stay on the path, from us to the far end.
func recordRoute(m sipgo.Message, caller bool) (route []sipgo.Uri) {
	for _, h := range m.GetHeaders("Record-Route") {
		if rr, ok := h.(*sipgo.RecordRouteHeader); ok && rr.Address.Host != "" {
			if caller {
				route = append([]sipgo.Uri{*rr.Address.Clone()}, route...)
			} else {
				route = append(route, *rr.Address.Clone())
			}
		}
	}
	return route
}

// request makes a request within the dialog.
func (d *dialog) request(method sipgo.RequestMethod) *sipgo.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	return d.build(method, d.seq)
}

func (d *dialog) build(method sipgo.RequestMethod, seq uint32) *sipgo.Request {
	to, route := d.target, d.route
	if len(route) > 0 && !route[0].UriParams.Has("lr") { // a strict router (RFC 3261, section 12.2.1.1)
		to, route = route[0], append(slices.Clone(route[1:]), d.target)
		to.Headers = nil
		to.UriParams = to.UriParams.Clone()
		to.UriParams.Remove("method")
	}
	req := sipgo.NewRequest(method, *to.Clone())
	for _, r := range route {
		req.AppendHeader(&sipgo.RouteHeader{Address: *r.Clone()})
	}
	forwards := sipgo.MaxForwardsHeader(70)
	id := sipgo.CallIDHeader(d.callID)
	for _, h := range []sipgo.Header{&forwards, d.local.from(), d.remote.to(), &id,
		&sipgo.CSeqHeader{SeqNo: seq, MethodName: method},
		&sipgo.ContactHeader{Address: *d.contact.Clone()}, sipgo.NewHeader("User-Agent", agent)} {
		req.AppendHeader(h)
	}
	req.SetBody(nil)
	return req
}

// next is where the dialog's requests go: the first proxy, or the contact. A contact with a private address, although
// the far end's messages come from outside, was written behind a NAT: then requests go to the source of its messages.
// The same applies if the contact names a place where the trunk may not be.
func (d *dialog) next(ctx context.Context) hop {
	d.mu.Lock()
	to, now, routed := d.target, d.hop, len(d.route) > 0
	if routed {
		to = d.route[0]
	}
	d.mu.Unlock()
	host := strings.Trim(to.Host, "[]")
	a, err := netip.ParseAddr(host)
	if now.way.stream() && d.server.connected(now.addr, now.way) || err == nil && !routed &&
		(inside(a) && !inside(now.addr.Addr()) || a.IsUnspecified()) {
		return now
	}
	h := hop{way: now.way, name: host}
	if d.trunk != nil {
		h.ca = d.trunk.CA
	}
	if v, ok := to.UriParams.Get("transport"); ok {
		if w, known := wayOf(v); known && now.way != overTLS { // what began encrypted stays so
			h.way = w
		}
	}
	if to.Scheme == "sips" {
		h.way = overTLS
	}
	if err == nil {
		h.addr, err = d.server.reachable(netip.AddrPortFrom(a.Unmap(), uint16(cmp.Or(to.Port, h.way.port()))))
		if err != nil || d.server.allowed(d.trunk, h.addr) != nil {
			return now
		}
		return h
	}
	if to.Port != 0 {
		host = net.JoinHostPort(host, strconv.Itoa(to.Port))
	}
	addrs, err := d.server.resolve(ctx, host, h.way)
	if err != nil || d.server.allowed(d.trunk, addrs[0]) != nil {
		return now
	}
	h.addr = addrs[0]
	return h
}

// ask sends a request within the dialog and returns its final answer.
func (d *dialog) ask(ctx context.Context, req *sipgo.Request) (*sipgo.Response, error) {
	h := d.next(ctx)
	return d.server.ask(ctx, req, h, d.credentials())
}

// moved notes where the far end's messages come from: a NAT may change it.
func (d *dialog) moved(from netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if from.Addr() == d.hop.addr.Addr() {
		d.hop.addr = from
	}
}

// arrives notes the sequence number of a request of the far end's, in the order in which these come from the network.
func (d *dialog) arrives(req *sipgo.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.theirs.add(req.CSeq().SeqNo)
}

// order reports whether a request of the far end's came in the order of its sequence numbers (RFC 3261, section
// 12.2.2). Each is handled in a goroutine of its own, so others may have been handled before it.
func (d *dialog) order(req *sipgo.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := req.CSeq().SeqNo
	d.theirs.add(n)
	return d.theirs.inOrder(n)
}

// arrivals are the sequence numbers of the far end's last requests that came in their order.
type arrivals struct {
	last [32]uint32
	n    int // how many there were
}

// add notes one, unless it is not higher than the last.
func (a *arrivals) add(n uint32) {
	if a.n == 0 || n > a.last[(a.n-1)%len(a.last)] {
		a.last[a.n%len(a.last)] = n
		a.n++
	}
}

// inOrder reports whether a number is among them.
func (a *arrivals) inOrder(n uint32) bool {
	return slices.Contains(a.last[:min(a.n, len(a.last))], n)
}
