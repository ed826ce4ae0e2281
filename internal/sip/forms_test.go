package sip

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
	"github.com/icholy/digest"
	"golang.org/x/time/rate"
)

// form1 is a way to write a message, of testdata/forms.txt. A line "== NAME" begins one. The lines after it change the
// usual message, an INVITE or, after !answer, the answer to one: "NAME: value" takes the place of that header, under
// whatever name it has there. \t, \r, \n and \xNN stand for those bytes. {server}, {wire} (where the far end is: {host}
// and {port}), {number} ({digits} without the plus), {id}, {way} ({lowerway}) and {length} (of the body) are filled in; in
// answers {via} ({sentby}, {branch}), {from}, {to}, {callid} and {seq} of what they answer too.
//
//	!first TEXT     is the first line
//	!before TEXT    comes before it
//	!without NAME   leaves out a header
//	!add TEXT       adds a line
//	!end lf         ends the lines with LF alone
//	!empty, !noend  without a body; without the empty line either
//	!udp            is for UDP alone
//	> what=value | what=value     must be read
//	!refused CODE TEXT            must be refused, with that text in Warning
//	!silent                       gets no answer
type form1 struct {
	name                     string
	answer, lf, empty, noEnd bool
	udp, silent              bool
	first, before            string
	lines                    []string // "NAME: value"
	without, added           []string
	refused, warning         string
	reads                    []string
}

// sipForms reads testdata/forms.txt.
func sipForms(t testing.TB) (list []*form1) {
	t.Helper()
	b, err := os.ReadFile("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	var f *form1
	for n, line := range strings.Split(string(b), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "== "); ok {
			f = &form1{name: strconv.Itoa(n+1) + " " + name}
			list = append(list, f)
			continue
		}
		f.take(t, strings.NewReplacer(`\t`, "\t", `\r`, "\r", `\n`, "\n").Replace(unescaped(line)))
	}
	if len(list) < 400 {
		t.Fatalf("%d forms", len(list))
	}
	return list
}

func (f *form1) take(t testing.TB, line string) {
	t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "!answer":
		f.answer = true
	case "!first":
		f.first = rest
	case "!before":
		f.before = rest
	case "!without":
		f.without = append(f.without, rest)
	case "!add":
		f.added = append(f.added, rest)
	case "!end":
		f.lf = true
	case "!empty":
		f.empty = true
	case "!noend":
		f.empty, f.noEnd = true, true
	case "!udp":
		f.udp = true
	case "!silent":
		f.silent = true
	case "!refused":
		f.refused, f.warning, _ = strings.Cut(rest, " ")
	case ">":
		f.reads = strings.Split(rest, " | ")
	default:
		if strings.HasPrefix(word, "!") {
			t.Fatalf("%s: %s is not known", f.name, word)
		}
		f.lines = append(f.lines, line)
	}
}

// long is the name of a header in full and in lower case.
func long(line string) string {
	name, _, _ := strings.Cut(line, ":")
	name = strings.ToLower(strings.TrimSpace(name))
	short := map[string]string{"v": "via", "f": "from", "t": "to", "i": "call-id", "m": "contact", "c": "content-type",
		"l": "content-length", "k": "supported", "x": "session-expires"}
	if full := short[name]; full != "" {
		return full
	}
	return name
}

// text is the message, with the given values filled in.
func (f *form1) text(fill map[string]string) string {
	body := "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 49170 RTP/AVP 0\r\n"
	first := "INVITE sip:{number}@{server} SIP/2.0"
	headers := []string{"Via: SIP/2.0/{way} {wire};branch=z9hG4bK{id};rport", "Max-Forwards: 70",
		"From: <sip:+15550009999@example.com>;tag=f1", "To: <sip:{number}@{server}>", "Call-ID: {id}@example.com",
		"CSeq: 1 INVITE", "Contact: <sip:far@{wire}>", "Content-Type: application/sdp", "Content-Length: {length}"}
	if f.answer {
		first = "SIP/2.0 200 OK"
		headers = []string{"Via: {via}", "From: {from}", "To: {to};tag=t1", "Call-ID: {callid}", "CSeq: {seq} INVITE",
			"Contact: <sip:far@{wire}>", "Content-Type: application/sdp", "Content-Length: {length}"}
	}
	if f.empty {
		body = ""
	}
	if f.first != "" {
		first = f.first
	}
	for _, line := range f.lines {
		if i := slices.IndexFunc(headers, func(h string) bool { return long(h) == long(line) }); i >= 0 {
			headers[i] = line
		} else {
			headers = append(headers, line)
		}
	}
	headers = slices.DeleteFunc(headers, func(h string) bool {
		return slices.ContainsFunc(f.without, func(name string) bool { return long(h) == strings.ToLower(name) })
	})
	lines := slices.Concat([]string{first}, headers, f.added)
	end := "\r\n"
	if f.lf {
		end = "\n"
	}
	text := f.before + strings.Join(lines, end) + end
	if !f.noEnd {
		text += end
	}
	return filledIn(text, fill, len(body)) + body
}

func filledIn(text string, fill map[string]string, length int) string {
	pairs := []string{"{length}", strconv.Itoa(length)}
	for k, v := range fill {
		pairs = append(pairs, "{"+k+"}", v)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// fillFor are the values for a message from a place.
func fillFor(id, number string, server, wire netip.AddrPort, way string) map[string]string {
	return map[string]string{"id": id, "number": number, "digits": number[1:], "server": server.String(),
		"wire": wire.String(), "host": wire.Addr().String(), "port": strconv.Itoa(int(wire.Port())), "way": way,
		"lowerway": strings.ToLower(way)}
}

// fillOf are those for the answer to an INVITE of the server's.
func fillOf(invite string, server, wire netip.AddrPort) map[string]string {
	fill := fillFor("x", "+15550001111", server, wire, "UDP")
	via := field(invite, "Via")
	_, sentBy, _ := strings.Cut(via, " ")
	sentBy, params, _ := strings.Cut(sentBy, ";")
	for p := range strings.SplitSeq(params, ";") {
		if v, ok := strings.CutPrefix(p, "branch="); ok {
			fill["branch"] = v
		}
	}
	seq, _, _ := strings.Cut(field(invite, "CSeq"), " ")
	fill["via"], fill["sentby"], fill["seq"] = via, sentBy, seq
	fill["from"], fill["to"], fill["callid"] = field(invite, "From"), field(invite, "To"), field(invite, "Call-ID")
	return fill
}

// TestForms: what is read of each form.
func TestForms(t *testing.T) {
	t.Parallel()
	server, wire := netip.MustParseAddrPort("192.0.2.1:5060"), netip.MustParseAddrPort("127.0.0.1:5070")
	for i, f := range sipForms(t) {
		fill := fillFor(fmt.Sprint("id", i), "+15550001111", server, wire, "UDP")
		if f.answer {
			fill = fillOf("INVITE x SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKours;rport\r\nFrom: <sip:a@b>;tag=o1\r\n"+
				"To: <sip:c@d>\r\nCall-ID: ours\r\nCSeq: 7 INVITE\r\n\r\n", server, wire)
		}
		text := f.text(fill)
		out := tidy(nil, []byte(text))
		m, read, bad := read(out)
		if f.refused == "400" || f.silent {
			if m != nil {
				bad = flaw(m.(*sipgo.Request))
			}
			if bad == "" || !strings.Contains(bad, f.warning) {
				t.Errorf("%s: refused with %q, want %q", f.name, bad, f.warning)
			}
			continue
		}
		if m == nil || bad != "" {
			t.Errorf("%s: can't be read: %s\n%s", f.name, bad, out)
			continue
		}
		if again := tidy(nil, read); string(again) != string(read) {
			t.Errorf("%s: it changes when it is tidied again:\n%s\n%s", f.name, read, again)
		}
		for _, want := range f.reads {
			what, value, _ := strings.Cut(filledIn(want, fill, len(m.Body())), "=")
			if f.reads[0] == want && what == "body" && len(m.Body()) == 0 && value != "0" {
				t.Errorf("%s: there is no body", f.name)
			}
			if got := reading(m, what); got != value {
				t.Errorf("%s: %s is %q, want %q\n%s", f.name, what, got, value, out)
			}
		}
	}
}

// reading is one thing of a message.
func reading(m sipgo.Message, what string) string {
	switch req, ok := m.(*sipgo.Request); {
	case ok && what == "method":
		return string(req.Method)
	case ok && what == "uri":
		return req.Recipient.String()
	case ok && what == "version":
		return req.SipVersion
	}
	switch res, ok := m.(*sipgo.Response); {
	case ok && what == "status":
		return strconv.Itoa(res.StatusCode)
	case ok && what == "reason":
		return res.Reason
	}
	if kind, name, ok := strings.Cut(what, "."); ok && (kind == "supports" || kind == "header") {
		if kind == "header" {
			return m.GetHeaders(name)[0].Value()
		}
		return map[bool]string{true: "yes", false: "no"}[supports(m, name)]
	}
	for _, of := range []func(sipgo.Message, string) (string, bool){readParty, readWay, readRest, readChallenge} {
		if v, known := of(m, what); known {
			return v
		}
	}
	return "nothing is known of " + what
}

// parsed is what both kinds of messages have.
type parsed interface {
	message
	From() *sipgo.FromHeader
	To() *sipgo.ToHeader
	Via() *sipgo.ViaHeader
	CSeq() *sipgo.CSeqHeader
	CallID() *sipgo.CallIDHeader
	MaxForwards() *sipgo.MaxForwardsHeader
	ContentType() *sipgo.ContentTypeHeader
}

func readParty(m sipgo.Message, what string) (string, bool) {
	p := m.(parsed)
	switch what {
	case "from":
		return userOf(&p.From().Address), true
	case "from.name":
		return p.From().DisplayName, true
	case "from.host":
		return p.From().Address.Host, true
	case "from.tag":
		return tagOf(p.From().Params), true
	case "to":
		return userOf(&p.To().Address), true
	case "to.tag":
		return tagOf(p.To().Params), true
	}
	names := map[string]string{"pai": "P-Asserted-Identity", "rpid": "Remote-Party-ID", "diversion": "Diversion",
		"history": "History-Info", "called": "P-Called-Party-ID"}
	kind, sub, _ := strings.Cut(what, ".")
	req, ok := m.(*sipgo.Request)
	if names[kind] == "" || !ok {
		return "", false
	}
	list := parties(req, names[kind])
	if len(list) == 0 {
		return "", true
	}
	switch sub {
	case "":
		return userOf(&list[0].uri), true
	case "name":
		return strings.Trim(list[0].name, `"`), true
	}
	v, _ := list[0].params.Get(sub)
	return v, true
}

func readWay(m sipgo.Message, what string) (string, bool) {
	via := m.(parsed).Via()
	switch what {
	case "vias":
		return strconv.Itoa(len(m.GetHeaders("Via"))), true
	case "via.host":
		return via.Host, true
	case "via.port":
		return strconv.Itoa(via.Port), true
	case "via.transport":
		return via.Transport, true
	case "via.branch":
		v, _ := via.Params.Get("branch")
		return v, true
	case "via.rport":
		return map[bool]string{true: "yes", false: "no"}[via.Params.Has("rport")], true
	case "contacts":
		return strconv.Itoa(len(m.GetHeaders("Contact"))), true
	case "contact":
		return m.(parsed).Contact().Address.String(), true
	case "rr":
		var list []string
		for _, u := range recordRoute(m, false) {
			list = append(list, u.String())
		}
		return strings.Join(list, " "), true
	}
	return "", false
}

func readRest(m sipgo.Message, what string) (string, bool) {
	p := m.(parsed)
	switch t := timerOf(m); what {
	case "cseq":
		return p.CSeq().Value(), true
	case "callid":
		return p.CallID().Value(), true
	case "forwards":
		return p.MaxForwards().Value(), true
	case "type":
		return p.ContentType().Value(), true
	case "body":
		return strconv.Itoa(len(m.Body())), true
	case "expires":
		return seconds(t.every), true
	case "refresher":
		return t.refresher, true
	case "minse":
		return seconds(t.least), true
	case "subject":
		return m.GetHeaders("Subject")[0].Value(), true
	case "allow":
		return strings.Join(valuesOf(m, "Allow"), " "), true
	}
	return "", false
}

func readChallenge(m sipgo.Message, what string) (string, bool) {
	var list []*digest.Challenge
	for _, h := range append(m.GetHeaders("WWW-Authenticate"), m.GetHeaders("Proxy-Authenticate")...) {
		if c, err := digest.ParseChallenge(h.Value()); err == nil {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return "", false
	}
	c := list[0]
	switch what {
	case "challenges":
		return strconv.Itoa(len(list)), true
	case "realm":
		return c.Realm, true
	case "nonce":
		return c.Nonce, true
	case "opaque":
		return c.Opaque, true
	case "algorithm":
		return c.Algorithm, true
	case "stale":
		return strconv.FormatBool(c.Stale), true
	case "qop":
		for i := range c.QOP {
			c.QOP[i] = strings.TrimSpace(c.QOP[i])
		}
		return strings.Join(c.QOP, " "), true
	}
	return "", false
}

// TestFormsOnTheWire sends every request to the port, over UDP, TCP and TLS: the call comes in, and is refused as busy.
func TestFormsOnTheWire(t *testing.T) { // by itself: it is much at once
	ca := newAuthority(t)
	var mu sync.Mutex
	came := map[string]string{} // who called, by Call-ID
	busy := func(_ context.Context, in *Invite) {
		mu.Lock()
		came[in.req.CallID().Value()] = in.To
		mu.Unlock()
		_ = in.Refuse(486)
	}
	s := start(t, Config{Answer: busy, Secure: "127.0.0.1:0", TLS: ca.config(t, time.Now().Add(24*time.Hour), "127.0.0.1"),
		Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback})})
	unlimited := rate.NewLimiter(rate.Inf, 0)
	s.firewall.mu.Lock()
	s.firewall.calls, s.firewall.gates[1] = unlimited, &gate{unlimited, unlimited}
	s.firewall.mu.Unlock()
	for i, f := range sipForms(t) {
		if f.answer {
			continue
		}
		want := "486"
		switch {
		case f.refused != "":
			want = f.refused
		case f.silent:
			want = "none"
		}
		for _, way := range []string{"UDP", "TCP", "TLS"} {
			if f.udp && way != "UDP" || f.silent && way != "UDP" || f.noEnd && way != "UDP" {
				continue
			}
			id := fmt.Sprint("wire", i, way)
			got := f.sent(t, s, ca, id, way, want)
			if got != want {
				t.Errorf("%s: answered with %s over %s, want %s", f.name, got, way, want)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for id, to := range came {
		if to != "+15550001111" {
			t.Errorf("%s reached %q", id, to)
		}
	}
	if len(came) < 700 {
		t.Errorf("%d calls came in", len(came))
	}
}

// sent sends a form to a server, and returns the status of its final answer.
func (f *form1) sent(t *testing.T, s *Server, ca *authority, id, way, want string) string {
	t.Helper()
	if way == "UDP" {
		w := newWire(t, "127.0.0.1")
		defer w.Close()
		defer w.control.Close()
		w.send(s.Addr(), f.text(fillFor(id, "+15550001111", s.Addr(), w.addr(), way)))
		return w.awaitFinal(want)
	}
	var c net.Conn
	var err error
	if way == "TCP" {
		c, err = net.Dial("tcp", s.Addr().String())
	} else {
		c, err = tls.Dial("tcp", s.over(), &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return finalOver(t, c, f.text(fillFor(id, "+15550001111", s.Addr(), addrPort(c.LocalAddr().String()), way)), want)
}

// TestFormsOfAnswers answers calls of the server's with each form.
func TestFormsOfAnswers(t *testing.T) { // by itself: it is much at once
	s := start(t, Config{})
	for _, f := range sipForms(t) {
		if f.answer {
			f.answers(t, s)
		}
	}
}

func (f *form1) answers(t *testing.T, s *Server) {
	t.Helper()
	far := newFar(t)
	defer far.Close()
	trunk := far.trunk()
	trunk.Username, trunk.Password = "user", "secret"
	out := make(chan dialled, 1)
	go func() {
		l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
		if err != nil {
			out <- dialled{err: err}
			return
		}
		out <- dialled{leg: run(l, newPhone(0))}
	}()
	m := far.take("INVITE")
	text := f.text(fillOf(m, s.Addr(), far.addr()))
	far.send(far.from, text)
	status := strings.Fields(text)[1]
	if status == "401" || status == "407" {
		again := far.take("INVITE")
		for field(again, "CSeq") == field(m, "CSeq") { // it was repeated before our answer came
			again = far.take("INVITE")
		}
		proof := field(again, "Authorization") + field(again, "Proxy-Authorization")
		if c, err := digest.ParseCredentials(proof); err != nil || !right(c, again, "secret") {
			t.Errorf("%s: answered with %q (%v)", f.name, proof, err)
		}
		far.reply(again, "603 Decline", "")
		status = "603"
	}
	d := get(t, out)
	switch {
	case status == "200" && d.err != nil:
		t.Errorf("%s: %v", f.name, d.err)
	case status == "200":
		far.take("ACK")
		d.leg.stop(errDone)
		far.take("BYE")
		d.leg.stop(errDone)
	case codeOf(d.err) != status:
		t.Errorf("%s: %v", f.name, d.err)
	}
}

// right reports whether credentials are right for an INVITE, by the formulas of RFC 7616 as the test knows them.
func right(c *digest.Credentials, invite, password string) bool {
	h := hashOf(c.Algorithm)
	a1 := h(c.Username + ":" + c.Realm + ":" + password)
	if strings.HasSuffix(strings.ToUpper(c.Algorithm), "-SESS") {
		a1 = h(a1 + ":" + c.Nonce + ":" + c.Cnonce)
	}
	a2 := "INVITE:" + c.URI
	if c.QOP == "auth-int" {
		a2 += ":" + h(bodyOf(invite))
	}
	middle := c.Nonce
	if c.QOP != "" {
		middle += fmt.Sprintf(":%08x:%s:%s", c.Nc, c.Cnonce, c.QOP)
	}
	return c.Response == h(a1+":"+middle+":"+h(a2))
}
