package sip

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// named returns the far end as another place where the call rings.
func (f *far) named(tag string) *far {
	other := *f
	other.tag = tag
	return &other
}

// within writes a request of the far end within the call that it was invited to.
func (f *far) within(method string, seq int, body string, headers ...string) string {
	m := f.message(method, "sip:parley@"+f.from.String(), field(f.invite, "From"), field(f.invite, "Call-ID"), seq, body, headers...)
	return strings.Replace(m, "From: <sip:+15550009999@"+f.addr().String()+">;tag=wire", "From: "+field(f.invite, "To")+
		";tag="+f.tag, 1)
}

// none asserts that no request of a method comes for a while.
func (f *far) none(method string) {
	f.t.Helper()
	for give := time.Now().Add(200 * time.Millisecond); time.Now().Before(give); {
		if m := f.receive(time.Until(give)); strings.HasPrefix(m, method+" ") {
			f.t.Errorf("unexpected:\n%s", m)
		}
	}
}

// TestPrackOut acknowledges the reliable provisional answers of the far end, each once and in order.
func TestPrackOut(t *testing.T) {
	t.Parallel()
	f, s := newFar(t).named("one"), start(t, Config{})
	p := newPhone(1000)
	out := f.dial(soon(t), s, p)
	m := f.take("INVITE")
	if got := field(m, "Supported"); !strings.Contains(got, "100rel") {
		t.Errorf("Supported: %s", got)
	}
	reliable := func(rseq string) {
		f.reply(m, "183 Session Progress", sdp(f.rtp.addr()), "Require: 100rel", "RSeq: "+rseq)
	}
	reliable("7")
	prack := f.take("PRACK")
	if field(prack, "RAck") != "7 1 INVITE" || !strings.HasSuffix(field(prack, "To"), ";tag=one") ||
		field(prack, "CSeq") != "2 PRACK" || !strings.HasPrefix(prack, "PRACK sip:far@"+f.addr().String()+" ") {
		t.Errorf("PRACK:\n%s", prack)
	}
	f.reply(prack, "200 OK", "")
	reliable("7") // again, and an answer that comes too early
	reliable("9")
	f.none("PRACK")
	reliable("8")
	if prack = f.take("PRACK"); field(prack, "RAck") != "8 1 INVITE" {
		t.Errorf("PRACK:\n%s", prack)
	}
	f.reply(prack, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="far", nonce="n", qop="auth"`)
	if prack = f.take("PRACK"); field(prack, "CSeq") != "4 PRACK" || field(prack, "Authorization") == "" {
		t.Errorf("PRACK with a password:\n%s", prack)
	}
	f.reply(prack, "200 OK", "")

	// The session is changed before the answer.
	elsewhere := newWire(t, "127.0.0.1")
	f.send(f.from, f.within("UPDATE", 1, sdp(elsewhere.addr())))
	if res := f.final(); !strings.HasPrefix(res, "SIP/2.0 200") || !strings.Contains(res, "RTP/AVP 0 101\r\n") {
		t.Errorf("UPDATE: %s", res)
	}
	f.reply(m, "200 OK", "")
	f.take("ACK")
	d := get(t, out)
	if d.err != nil {
		t.Fatal(d.err)
	}
	if packet, _ := elsewhere.listen(hang); packet == nil || packet.PayloadType != 0 {
		t.Errorf("packet %v", packet)
	}
	d.leg.stop(errDone)
	bye := f.take("BYE")
	if field(bye, "CSeq") != "5 BYE" {
		t.Errorf("BYE:\n%s", bye)
	}
	f.reply(bye, "200 OK", "")
	d.leg.ends(t, errDone)
}

// TestForks rings at several places: the first one to answer gets the call, the others are confirmed and hung up.
func TestForks(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	one, two, three := f.named("one"), f.named("two"), f.named("three")
	p := newPhone(0)
	out := f.dial(soon(t), s, p)
	m := f.take("INVITE")
	for _, place := range []*far{one, two, three} {
		place.from, place.invite = f.from, m
	}
	other := newWire(t, "127.0.0.1")
	one.reply(m, "183 Session Progress", sdp(other.addr()), "Require: 100rel", "RSeq: 1")
	prack := one.take("PRACK")
	one.reply(prack, "200 OK", "")
	two.reply(m, "183 Session Progress", sdp(f.rtp.addr()), "Require: 100rel", "RSeq: 1") // each place has its own RSeq numbers
	if prack = two.take("PRACK"); !strings.HasSuffix(field(prack, "To"), ";tag=two") {
		t.Errorf("PRACK:\n%s", prack)
	}
	two.reply(prack, "200 OK", "")
	// The second place answers with its earlier description, and the third one at the same time.
	two.reply(m, "200 OK", "")
	if ack := f.take("ACK"); !strings.HasSuffix(field(ack, "To"), ";tag=two") {
		t.Errorf("ACK:\n%s", ack)
	}
	d := get(t, out)
	if d.err != nil {
		t.Fatal(d.err)
	}
	three.reply(m, "200 OK", sdp(other.addr()))
	if ack := three.take("ACK"); !strings.HasSuffix(field(ack, "To"), ";tag=three") || field(ack, "CSeq") != "1 ACK" {
		t.Errorf("ACK:\n%s", ack)
	}
	bye := three.take("BYE")
	if !strings.HasSuffix(field(bye, "To"), ";tag=three") {
		t.Errorf("BYE:\n%s", bye)
	}
	three.reply(bye, "200 OK", "")
	three.reply(m, "200 OK", sdp(other.addr())) // the ACK was lost
	if ack := three.take("ACK"); !strings.HasSuffix(field(ack, "To"), ";tag=three") {
		t.Errorf("ACK again:\n%s", ack)
	}
	three.none("BYE")
	to, err := parseSDP([]byte(bodyOf(m)))
	if err != nil {
		t.Fatal(err)
	}
	f.rtp.talk(netip.AddrPortFrom(to.streams[0].addr, uint16(to.streams[0].port)), 440, 1)
	p.hears(t, 440)
	d.leg.stop(errDone)
	bye = two.take("BYE")
	if !strings.HasSuffix(field(bye, "To"), ";tag=two") {
		t.Errorf("BYE:\n%s", bye)
	}
	f.reply(bye, "200 OK", "")
	d.leg.ends(t, errDone)
}

// ringing returns a caller, and a server that rings until it is told to answer.
func ringing(t *testing.T) (*caller, *answerer) {
	t.Helper()
	a := newAnswerer(1000)
	a.ring = make(chan struct{})
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback})})
	w := newWire(t, "127.0.0.1")
	return &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}, a
}

// rings sends the INVITE and returns it with the ringing.
func (c *caller) rings(body string, headers ...string) (invite, ring string) {
	c.t.Helper()
	invite = c.message("INVITE", c.number(), "<"+c.number()+">", c.callID, c.seq, body, headers...)
	c.send(c.server.Addr(), invite)
	for {
		m := c.receive(hang)
		if m == "" {
			c.t.Fatal("it doesn't ring")
		}
		if strings.HasPrefix(m, "SIP/2.0 180") {
			c.to = field(m, "To")
			return invite, m
		}
	}
}

func TestPrackIn(t *testing.T) {
	t.Parallel()
	c, a := ringing(t)
	_, ring := c.rings(sdp(c.rtp.addr()), "Require: 100rel")
	rseq := field(ring, "RSeq")
	if rseq == "" || field(ring, "Require") != "100rel" || bodyOf(ring) != "" {
		t.Fatalf("ringing:\n%s", ring)
	}
	// it is repeated until it is acknowledged
	if again := c.receive(hang); again != ring {
		t.Fatalf("another answer:\n%s", again)
	}
	for wrong, want := range map[string]string{rseq + " 2 INVITE": "481", "1 1 INVITE": "481", rseq + " 1 UPDATE": "481", "": "481"} {
		if res := c.ask("PRACK", "", "RAck: "+wrong); !strings.HasPrefix(res, "SIP/2.0 "+want) {
			t.Errorf("RAck %q: %s", wrong, res)
		}
	}
	if res := c.ask("PRACK", sdp(c.rtp.addr()), "RAck: "+rseq+" 1 INVITE"); !strings.HasPrefix(res, "SIP/2.0 500") {
		t.Errorf("an offer before the answer to the first: %s", res)
	}
	if res := c.ask("UPDATE", sdp(c.rtp.addr())); !strings.HasPrefix(res, "SIP/2.0 500") || field(res, "Retry-After") == "" {
		t.Errorf("an UPDATE likewise: %s", res)
	}
	if res := c.ask("PRACK", "", "RAck: "+rseq+"  1 INVITE"); !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Errorf("PRACK: %s", res)
	}
	m := c.receive(300 * time.Millisecond)
	if m == ring { // that was on its way
		m = c.receive(300 * time.Millisecond)
	}
	if m != "" {
		t.Errorf("after PRACK came\n%s", m)
	}
	close(a.ring)
	res := c.finalOf(c.callID, 1)
	c.sdp = bodyOf(res)
	seq := c.seq
	c.seq = 1
	c.ack("")
	c.seq = seq
	in := a.next(t)
	c.rtp.talk(c.media(), 440, 1)
	in.phone.hears(t, 440)
	c.ask("BYE", "")
	in.ends(t, parley.CustomerHangup)
}

// TestPrackLateOffer leaves the offer to us and requires reliable ringing: the ringing has the offer, and PRACK the
// answer.
func TestPrackLateOffer(t *testing.T) {
	t.Parallel()
	c, a := ringing(t)
	_, ring := c.rings("", "Require: 100rel")
	if !strings.Contains(ring, "RTP/AVP 0 8 101\r\n") {
		t.Fatalf("no offer of G.711:\n%s", ring)
	}
	c.sdp = bodyOf(ring)
	close(a.ring) // too early: PRACK must come before the answer
	for m := c.receive(200 * time.Millisecond); m != ""; m = c.receive(200 * time.Millisecond) {
		if strings.HasPrefix(m, "SIP/2.0 200") {
			t.Fatal("it was answered before PRACK")
		}
	}
	c.seq = 2
	c.send(c.server.Addr(), c.message("PRACK", c.number(), c.to, c.callID, 2, strings.Replace(sdp(c.rtp.addr()), "RTP/AVP 0 101",
		"RTP/AVP 8 101", 1), "RAck: "+field(ring, "RSeq")+" 1 INVITE"))
	answers := map[string]string{}
	for len(answers) < 2 {
		m := c.final()
		answers[field(m, "CSeq")] = m
	}
	if m := answers["2 PRACK"]; !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Errorf("PRACK: %s", m)
	}
	if m := answers["1 INVITE"]; !strings.HasPrefix(m, "SIP/2.0 200") || bodyOf(m) != "" {
		t.Errorf("INVITE: %s", m)
	}
	c.seq = 1
	c.ack("")
	c.seq = 2
	in := a.next(t)
	if p, _ := c.rtp.listen(hang); p == nil || p.PayloadType != 8 {
		t.Errorf("packet %v, want A-law", p)
	}
	c.rtp.talk(c.media(), 440, 1)
	in.phone.hears(t, 440)
	c.ask("BYE", "")
	in.ends(t, parley.CustomerHangup)
}

// TestNoPrack never acknowledges the ringing: the call is refused.
func TestNoPrack(t *testing.T) {
	t.Parallel()
	c, _ := ringing(t)
	c.rings(sdp(c.rtp.addr()), "Require: 100rel")
	times := 0
	for m := c.receive(hang); !strings.HasPrefix(m, "SIP/2.0 504"); m = c.receive(hang) {
		if m == "" {
			t.Fatal("it is not refused")
		}
		times++
	}
	if times < 4 {
		t.Errorf("the ringing came only %d times more", times)
	}
}

// TestEarlyBye gives up by BYE before the answer.
func TestEarlyBye(t *testing.T) {
	t.Parallel()
	c, _ := ringing(t)
	_, ring := c.rings(sdp(c.rtp.addr()), "Require: 100rel")
	c.ask("PRACK", "", "RAck: "+field(ring, "RSeq")+" 1 INVITE")
	c.seq++
	c.send(c.server.Addr(), c.message("BYE", c.number(), c.to, c.callID, c.seq, ""))
	answers := map[string]string{}
	for len(answers) < 2 {
		m := c.final()
		answers[field(m, "CSeq")] = m
	}
	if m := answers["3 BYE"]; !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Errorf("BYE: %s", m)
	}
	if m := answers["1 INVITE"]; !strings.HasPrefix(m, "SIP/2.0 487") {
		t.Errorf("INVITE: %s", m)
	}
}
