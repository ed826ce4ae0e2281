package phone

import (
	"bytes"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// message is a SIP request or response, as text: what a test sends must not be what a library would have made of it.
type message struct {
	start  string
	header []field
	body   string
	at     time.Time // when it arrived
}

type field struct{ name, value string }

// compact are the short names of RFC 3261, section 7.3.3.
var compact = map[string]string{"v": "via", "f": "from", "t": "to", "i": "call-id", "m": "contact",
	"c": "content-type", "l": "content-length", "r": "refer-to"}

// parse reads a datagram.
func parse(raw []byte) (*message, error) {
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		return nil, fmt.Errorf("no end of the header in %.80q", raw)
	}
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(string(head), "\r\n ", " "), "\r\n\t", " "), "\r\n")
	m := &message{start: lines[0], body: string(body)}
	if strings.Count(m.start, " ") < 2 || !strings.Contains(m.start, "SIP/2.0") {
		return nil, fmt.Errorf("no start line in %.80q", raw)
	}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("no header line: %.80q", line)
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if long := compact[name]; long != "" {
			name = long
		}
		m.header = append(m.header, field{name, strings.TrimSpace(value)})
	}
	if n, err := strconv.Atoi(m.get("content-length")); err == nil && n != len(m.body) {
		return nil, fmt.Errorf("the body has %d bytes, not the %d announced", len(m.body), n)
	}
	return m, nil
}

// status is that of a response, 0 of a request.
func (m *message) status() int {
	if rest, ok := strings.CutPrefix(m.start, "SIP/2.0 "); ok {
		n, _ := strconv.Atoi(rest[:min(len(rest), 3)])
		return n
	}
	return 0
}

// method is what is asked, or what was.
func (m *message) method() string {
	if m.status() != 0 {
		_, method, _ := strings.Cut(m.get("cseq"), " ")
		return method
	}
	method, _, _ := strings.Cut(m.start, " ")
	return method
}

// uri is that of a request.
func (m *message) uri() string { return strings.Fields(m.start)[1] }

func (m *message) get(name string) string {
	for _, f := range m.header {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// all are the values of a header, from above; several on one line are several.
func (m *message) all(name string) (values []string) {
	for _, f := range m.header {
		if f.name == name {
			for value := range strings.SplitSeq(f.value, ",") {
				values = append(values, strings.TrimSpace(value))
			}
		}
	}
	return values
}

func (m *message) add(name, value string) *message {
	m.header = append(m.header, field{name, value})
	return m
}

// bytes is the message as it is sent.
func (m *message) bytes() []byte {
	var b strings.Builder
	b.WriteString(m.start + "\r\n")
	for _, f := range m.header {
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
	fmt.Fprintf(&b, "content-length: %d\r\n\r\n%s", len(m.body), m.body)
	return []byte(b.String())
}

// respond makes the answer to a request. tag is ours, for the To header; "" for none.
func (m *message) respond(code int, tag string) *message {
	r := &message{start: fmt.Sprintf("SIP/2.0 %d %s", code, reasons[code])}
	for _, f := range m.header {
		switch f.name {
		case "via", "from", "call-id", "cseq", "record-route":
			r.header = append(r.header, f)
		case "to":
			if tag != "" && !strings.Contains(f.value, ";tag=") {
				f.value += ";tag=" + tag
			}
			r.header = append(r.header, f)
		}
	}
	return r
}

var reasons = map[int]string{100: "Trying", 180: "Ringing", 183: "Session Progress", 200: "OK", 202: "Accepted",
	404: "Not Found", 480: "Temporarily Unavailable",
	481: "Call/Transaction Does Not Exist", 486: "Busy Here", 487: "Request Terminated", 488: "Not Acceptable Here",
	503: "Service Unavailable", 603: "Decline"}

// inBrackets is the URI of a Contact, From or To.
func inBrackets(s string) string {
	if _, rest, ok := strings.Cut(s, "<"); ok {
		uri, _, _ := strings.Cut(rest, ">")
		return uri
	}
	uri, _, _ := strings.Cut(s, ";")
	return uri
}

// user is the part of a URI before the @.
func user(uri string) string {
	s := inBrackets(uri)
	s = s[strings.IndexByte(s, ':')+1:]
	name, _, _ := strings.Cut(s, "@")
	return name
}

func token() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// authorize answers a digest challenge (RFC 2617) by MD5.
func authorize(challenge, method, uri, name, password string) string {
	part := func(key string) string {
		_, rest, ok := strings.Cut(challenge, key+"=")
		if !ok {
			return ""
		}
		if strings.HasPrefix(rest, `"`) {
			value, _, _ := strings.Cut(rest[1:], `"`)
			return value
		}
		value, _, _ := strings.Cut(rest, ",")
		return strings.TrimSpace(value)
	}
	sum := func(s string) string { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) }
	realm, nonce, cnonce := part("realm"), part("nonce"), token()
	one, two := sum(name+":"+realm+":"+password), sum(method+":"+uri)
	out := fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", algorithm=MD5`, name, realm, nonce, uri)
	if o := part("opaque"); o != "" {
		out += `, opaque="` + o + `"`
	}
	if part("qop") == "" {
		return out + `, response="` + sum(one+":"+nonce+":"+two) + `"`
	}
	return out + fmt.Sprintf(`, qop=auth, nc=00000001, cnonce="%s", response="%s"`, cnonce,
		sum(one+":"+nonce+":00000001:"+cnonce+":auth:"+two))
}

// offer is a session description: where we hear, by which codecs, and which way sound goes.
func offer(at netip.AddrPort, types []int, events int, direction string) string {
	names := map[int]string{0: "PCMU/8000", 8: "PCMA/8000", 9: "G722/8000", opusType: "opus/48000/2"}
	list, maps := "", ""
	for _, t := range types {
		list += " " + strconv.Itoa(t)
		maps += fmt.Sprintf("a=rtpmap:%d %s\r\n", t, names[t])
	}
	if events > 0 {
		list += " " + strconv.Itoa(events)
		clock := 8000
		if slices.Contains(types, opusType) {
			clock = 48000
		}
		maps += fmt.Sprintf("a=rtpmap:%d telephone-event/%d\r\na=fmtp:%d 0-15\r\n", events, clock, events)
	}
	return fmt.Sprintf("v=0\r\no=phone 1 1 IN IP4 %s\r\ns=-\r\nc=IN IP4 %s\r\nt=0 0\r\nm=audio %d RTP/AVP%s\r\n%sa=ptime:20\r\na=%s\r\n",
		at.Addr(), at.Addr(), at.Port(), list, maps, direction)
}

// description is what a test needs of a session description.
type description struct {
	at        netip.AddrPort
	types     []int
	events    int // payload type of telephone-event, 0 for none
	wide      int // the same for the clock of Opus
	direction string
}

func describe(sdp string) (d description, err error) {
	var host string
	d.direction = "sendrecv"
	for line := range strings.Lines(sdp) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "c=IN IP4 "):
			host = line[9:]
		case strings.HasPrefix(line, "m=audio "):
			f := strings.Fields(line[8:])
			if len(f) < 3 {
				return d, fmt.Errorf("a media line %q", line)
			}
			for _, t := range f[2:] {
				n, err := strconv.Atoi(t)
				if err != nil {
					return d, fmt.Errorf("a media line %q", line)
				}
				d.types = append(d.types, n)
			}
			host += ":" + f[0]
			if !strings.Contains(host, ".") {
				return d, fmt.Errorf("no address before %q", line)
			}
		case strings.HasPrefix(line, "a=rtpmap:") && strings.Contains(line, "telephone-event"):
			t, _, _ := strings.Cut(line[9:], " ")
			n, _ := strconv.Atoi(t)
			if strings.HasSuffix(line, "/48000") {
				d.wide = n
			} else {
				d.events = n
			}
		case line == "a=sendonly" || line == "a=recvonly" || line == "a=inactive" || line == "a=sendrecv":
			d.direction = line[2:]
		}
	}
	if d.at, err = netip.ParseAddrPort(host); err != nil {
		return d, fmt.Errorf("no address in the session description %q", sdp)
	}
	return d, nil
}
