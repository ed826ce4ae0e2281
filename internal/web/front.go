// Package web is the HTTP that the API, the console and the widget share: the client's address and the server's own,
// how long a request may take to arrive and an answer to be read, the status of an error, requests that are done once,
// and how streams, files and assets are sent.
package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"parley/internal/auth"
)

// Front is how the server is seen from outside.
type Front struct {
	PublicURL string         // what links start with, without a last slash; "" is the address that the client used
	Proxies   []netip.Prefix // whose forwarding headers are believed
}

// Trusts says whether an address is a proxy's whose word counts.
func (f Front) Trusts(ip netip.Addr) bool {
	return slices.ContainsFunc(f.Proxies, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}

// forwarded says whether the peer is such a proxy.
func (f Front) forwarded(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && f.Trusts(peer.Addr())
}

// Address is the client's: the peer's, or behind trusted proxies the last address that none of them is.
func (f Front) Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if !f.forwarded(r) {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		ip, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		host = ip.String()
		if !f.Trusts(ip) {
			break
		}
	}
	return host
}

// Client is what limits per address count a request against: its network.
func (f Front) Client(r *http.Request) string { return auth.Network(f.Address(r)) }

// Secure says whether the client speaks HTTPS: to us, to a proxy that we trust, or to the public address.
func (f Front) Secure(r *http.Request) bool {
	return r.TLS != nil || f.forwarded(r) && r.Header.Get("X-Forwarded-Proto") == "https" ||
		Origin(f.PublicURL) == Origin("https://"+r.Host)
}

// Base is what links to this server start with.
func (f Front) Base(r *http.Request) string {
	if f.PublicURL != "" {
		return f.PublicURL
	}
	if f.Secure(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Own says whether a request comes from a page of this server: by the Origin header that browsers send, scheme, host
// and port.
func (f Front) Own(r *http.Request) bool {
	from := Origin(r.Header.Get("Origin"))
	if from == "" {
		return false
	}
	used := "http://"
	if f.Secure(r) {
		used = "https://"
	}
	return from == Origin(used+r.Host) || from == Origin(f.PublicURL)
}

// Origin is the origin of an address as origins are compared (RFC 6454): scheme and host in small letters, the port
// where it is not the scheme's own. It is "" where text has none: "null", other schemes, a name without a scheme.
// Origins are always compared in this form, whole.
func Origin(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return ""
	}
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	switch {
	case scheme != "http" && scheme != "https":
		return ""
	case scheme == "http" && port == "80" || scheme == "https" && port == "443":
		port = ""
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		host += ":" + port
	}
	return scheme + "://" + host
}
