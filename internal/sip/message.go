package sip

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
)

const (
	agent   = "Parley"
	allowed = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, NOTIFY, UPDATE, PRACK, REFER"
)

func init() {
	// We send 100 Trying ourselves, after the To tag is set: the library's timer would read the request while it is
	// being written.
	sipgo.Timer_1xx = time.Hour
	// The library would refuse what is longer than a packet may be. Far ends without TCP get it in fragments (long.go).
	sipgo.UDPMTUSize = 16384
	sipgo.SetDefaultLogger(quiet)
}

// phrases are the reason phrases of RFC 3261, section 21.
var phrases = map[int]string{
	100: "Trying", 180: "Ringing", 200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
	404: "Not Found",
	405: "Method Not Allowed", 408: "Request Timeout", 410: "Gone", 415: "Unsupported Media Type",
	416: "Unsupported URI Scheme",
	420: "Bad Extension", 422: "Session Interval Too Small", 428: "Use Identity Header",
	436: "Bad Identity Info", 437: "Unsupported Credential", 438: "Invalid Identity Header", 480: "Temporarily Unavailable",
	481: "Call/Transaction Does Not Exist", 482: "Loop Detected", 484: "Address Incomplete",
	486: "Busy Here", 487: "Request Terminated", 488: "Not Acceptable Here", 489: "Bad Event",
	491: "Request Pending", 500: "Server Internal Error",
	501: "Not Implemented", 503: "Service Unavailable", 504: "Server Time-out", 505: "Version Not Supported", 600: "Busy Everywhere",
	603: "Decline",
	604: "Does Not Exist Anywhere", 606: "Not Acceptable",
}

func phrase(code int) string {
	if p := phrases[code]; p != "" {
		return p
	}
	return "Refused"
}

// respond makes an answer to a request; headers are pairs of name and value.
func respond(req *sipgo.Request, code int, headers ...string) *sipgo.Response {
	res := sipgo.NewResponseFromRequest(req, code, phrase(code), nil)
	res.SipVersion = "SIP/2.0" // whatever the request's
	res.AppendHeader(sipgo.NewHeader("Server", agent))
	addHeaders(res, headers)
	return res
}

// addHeaders adds pairs of name and value to a message.
func addHeaders(m sipgo.Message, headers []string) {
	for i := 0; i+1 < len(headers); i += 2 {
		m.AppendHeader(sipgo.NewHeader(headers[i], headers[i+1]))
	}
}

// withSDP adds a session description to a message.
func withSDP(m sipgo.Message, sdp []byte) {
	m.AppendHeader(sipgo.NewHeader("Content-Type", "application/sdp"))
	m.SetBody(sdp)
}

// token is a random text of n characters that are valid in a SIP token.
func token(n int) string { return rand.Text()[:n] }

// name is a From or To header: an address and its tag.
type name struct {
	uri sipgo.Uri
	tag string
}

func (n name) from() *sipgo.FromHeader {
	h := &sipgo.FromHeader{Address: *n.uri.Clone()}
	h.Params.Add("tag", n.tag)
	return h
}

func (n name) to() *sipgo.ToHeader {
	h := &sipgo.ToHeader{Address: *n.uri.Clone()}
	if n.tag != "" {
		h.Params.Add("tag", n.tag)
	}
	return h
}

// tag is that of a From or To header.
func tagOf(p sipgo.HeaderParams) string {
	t, _ := p.Get("tag")
	return t
}

// userOf is the user part of an address, unescaped and without parameters.
func userOf(u *sipgo.Uri) string {
	user := u.User
	if user == "" && u.Raw() != "" {
		user = u.Raw() // tel:
	}
	user, _, _ = strings.Cut(user, ";")
	return unescape(user)
}

func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(v))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// escape makes a text into the user part of an address (RFC 3261, section 25.1).
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-_.!~*'()&=+$,", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// hostPort splits host[:port]; the port is 0 if there is none.
func hostPort(s string) (host string, port int, err error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.String(), 0, nil
	}
	if !strings.Contains(s, ":") {
		return s, 0, nil
	}
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, int(n), err
}

// addrPort reads a message's source.
func addrPort(s string) netip.AddrPort {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// sdpOf is the session description in a message, and whether its body is of a kind that we read. Some put it into a
// multipart body with other parts.
func sdpOf(m sipgo.Message) (sdp []byte, ok bool) {
	body := m.Body()
	if len(body) == 0 {
		return nil, true
	}
	var kind string
	if h := m.GetHeaders("Content-Type"); len(h) > 0 {
		kind = h[0].Value()
	} else if h := m.GetHeaders("c"); len(h) > 0 {
		kind = h[0].Value()
	}
	return partOf(kind, body)
}
