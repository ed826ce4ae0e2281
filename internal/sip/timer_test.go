package sip

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

func TestTimerGrant(t *testing.T) {
	t.Parallel()
	const own, least = 1800 * time.Second, 90 * time.Second
	for name, c := range map[string]struct {
		asks    string
		own     time.Duration
		every   time.Duration
		ours    bool
		short   bool
		headers string
	}{
		"not asked, not known":     {"", own, 0, false, false, ""},
		"known, not asked":         {"Supported: timer", own, own, true, false, "1800;refresher=uas"},
		"known, its least is more": {"Supported: 100rel, timer|Min-SE: 3600", own, 2 * own, true, false, "3600;refresher=uas"},
		"we want none":             {"k: timer", 0, 0, false, false, ""},
		"asked": {"Supported: timer|Session-Expires: 600", own, 600 * time.Second, false, false,
			"600;refresher=uac Require: timer"},
		"by its short name": {"k: timer|x: 600;refresher=uac", 0, 600 * time.Second, false, false, "600;refresher=uac Require: timer"},
		"required": {"Require: timer|Session-Expires: 600", own, 600 * time.Second, false, false,
			"600;refresher=uac Require: timer"},
		"we shall refresh": {"Supported: timer|Session-Expires: 600 ; Refresher=UAS", own, 600 * time.Second, true, false,
			"600;refresher=uas"},
		"by a proxy":                {"Session-Expires: 600", own, 600 * time.Second, true, false, "600;refresher=uas"},
		"too short":                 {"Supported: timer|Session-Expires: 89", own, 0, false, true, ""},
		"too short, but not its":    {"Session-Expires: 89", own, 0, false, false, ""},
		"longer than ours":          {"Supported: timer|Session-Expires: 7200;refresher=uas", own, 4 * own, true, false, "7200;refresher=uas"},
		"nonsense is nothing asked": {"Supported: timer|Session-Expires: soon", 0, 0, false, false, ""},
	} {
		req := sipgo.NewRequest(sipgo.INVITE, sipgo.Uri{Host: "x"})
		for h := range strings.SplitSeq(c.asks, "|") {
			if k, v, ok := strings.Cut(h, ": "); ok {
				req.AppendHeader(sipgo.NewHeader(k, v))
			}
		}
		g := timerOf(req).grant(c.own, least)
		headers := strings.Replace(strings.Join(g.headers, " "), "Session-Expires ", "", 1)
		if g.every != c.every || g.ours != c.ours || g.tooShort != c.short || strings.ReplaceAll(headers, "Require ", "Require: ") != c.headers {
			t.Errorf("%s: %+v, want %+v", name, g, c)
		}
	}
}

func TestSessionDue(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	at := func(s *session, after time.Duration) duty { return s.due(now.Add(after)) }
	ours, theirs := newSession(1800*time.Second, 0, true, now), newSession(90*time.Second, 0, false, now)
	for _, c := range []struct {
		s     *session
		after time.Duration
		want  duty
	}{{ours, 899 * time.Second, nothing}, {ours, 900 * time.Second, refresh}, {ours, 1767 * time.Second, refresh},
		{ours, 1768 * time.Second, expire}, {theirs, 59 * time.Second, nothing}, {theirs, 60 * time.Second, expire}} {
		if got := at(c.s, c.after); got != c.want {
			t.Errorf("%+v after %s: %d, want %d", c.s, c.after, got, c.want)
		}
	}
	if newSession(0, 0, true, now) != nil {
		t.Error("no interval is no session")
	}
	busy := *ours
	busy.next = time.Time{}
	if got := at(&busy, 1000*time.Second); got != nothing {
		t.Errorf("a refresh under way: %d", got)
	}
}

func TestGlareTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		caller bool
		at     float64
		want   time.Duration
	}{{true, 0, 2100 * time.Millisecond}, {true, 1, 4 * time.Second}, {false, 0, 0}, {false, 1, 2 * time.Second},
		{false, 0.5037, 1000 * time.Millisecond}} {
		if got := glare(500*time.Millisecond, c.caller, c.at); got != c.want {
			t.Errorf("%t, %g: %s, want %s", c.caller, c.at, got, c.want)
		}
	}
}

// timing is a server that wants session timers.
func timing(t *testing.T, own time.Duration) (*Server, *answerer, *wire) {
	t.Helper()
	a := newAnswerer(1000)
	s := start(t, Config{Answer: a.answer, Session: own, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback})})
	return s, a, newWire(t, "127.0.0.1")
}

// passed makes a call's session older.
func (r *running) passed(d time.Duration) {
	l := r.leg.(*leg)
	s := *l.session.Load()
	s.since = s.since.Add(-d)
	if s.ours {
		s.next = s.since.Add(s.every / 2)
	}
	l.session.Store(&s)
}

// request returns the server's next request of a method; others are skipped.
func (c *caller) request(method string) string {
	c.t.Helper()
	for give := time.Now().Add(hang); time.Now().Before(give); {
		if m := c.receive(hang); strings.HasPrefix(m, method+" ") {
			return m
		}
	}
	c.t.Fatalf("no %s came", method)
	return ""
}

// answer answers a request of the server's.
func (c *caller) answer(req, status, body string, headers ...string) {
	c.t.Helper()
	f := far{wire: c.wire, from: c.server.Addr()}
	f.reply(req, status, body, headers...)
}

func TestSessionTimerAsked(t *testing.T) {
	t.Parallel()
	s, a, w := timing(t, 0)
	// Too short: the 422 says how long it must be.
	c := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	res := c.ask("INVITE", sdp(c.rtp.addr()), "Supported: timer", "Session-Expires: 60")
	if !strings.HasPrefix(res, "SIP/2.0 422 ") || field(res, "Min-SE") != "90" {
		t.Fatalf("a short interval: %s", res)
	}
	c.ack("")
	c.callID, c.to, c.seq = token(20), "", 1
	res = c.ask("INVITE", sdp(c.rtp.addr()), "Supported: timer", "Session-Expires: 120")
	if field(res, "Session-Expires") != "120;refresher=uac" || field(res, "Require") != "timer" {
		t.Fatalf("120 s: %s", res)
	}
	c.ack("")
	in := a.next(t)
	// A refresh is an INVITE or an UPDATE; the same rules hold.
	for _, method := range []string{"INVITE", "UPDATE"} {
		body := ""
		if method == "INVITE" {
			body = sdp(c.rtp.addr())
		}
		if res := c.ask(method, body, "Supported: timer", "Session-Expires: 30"); !strings.HasPrefix(res, "SIP/2.0 422 ") ||
			field(res, "Min-SE") != "90" {
			t.Errorf("a short %s: %s", method, res)
		}
		if method == "INVITE" {
			c.ack("")
		}
		before := in.leg.(*leg).session.Load()
		if res := c.ask(method, body, "Supported: timer", "Session-Expires: 150"); field(res, "Session-Expires") !=
			"150;refresher=uac" {
			t.Errorf("%s: %s", method, res)
		}
		if method == "INVITE" {
			c.ack("")
		}
		if now := in.leg.(*leg).session.Load(); now == before || now.every != 150*time.Second || now.ours {
			t.Errorf("%s: %+v", method, now)
		}
	}
	in.hangUp(t)
}

// TestSessionExpires lets the far end not refresh: the call ends with BYE.
func TestSessionExpires(t *testing.T) {
	t.Parallel()
	s, a, w := timing(t, 0)
	c := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	c.ask("INVITE", sdp(c.rtp.addr()), "Supported: timer", "Session-Expires: 180;refresher=uac")
	c.ack("")
	in := a.next(t)
	c.rtp.talk(c.media(), 440, 1)
	in.phone.hears(t, 440)
	in.passed(140 * time.Second)
	if res := c.ask("UPDATE", "", "Supported: timer", "Session-Expires: 90;refresher=uac"); !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Errorf("UPDATE: %s", res)
	}
	in.passed(50 * time.Second)
	in.phone.hears(t, 440)
	in.passed(10 * time.Second)
	c.answer(c.request("BYE"), "200 OK", "")
	in.ends(t, parley.MediaTimeout)
}

// TestSessionRefreshed refreshes by UPDATE if the far end allows that, and otherwise by INVITE, in spite of a
// password, a 422, and an INVITE from the far end at the same time. The sound is not disturbed.
func TestSessionRefreshed(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"UPDATE", "INVITE"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s, a, w := timing(t, 1800*time.Second)
			c := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
			allow := "INVITE, ACK, BYE"
			if method == "UPDATE" {
				allow += ", UPDATE"
			}
			res := c.ask("INVITE", sdp(c.rtp.addr()), "Supported: timer", "Allow: "+allow)
			if field(res, "Session-Expires") != "1800;refresher=uas" {
				t.Fatal(res)
			}
			c.ack("")
			in := a.next(t)
			c.rtp.talk(c.media(), 440, 1)
			in.phone.hears(t, 440)

			in.passed(900 * time.Second)
			m := c.request(method)
			if field(m, "Session-Expires") != "1800;refresher=uac" || !strings.Contains(field(m, "Supported"), "timer") {
				t.Errorf("the refresh:\n%s", m)
			}
			if method == "UPDATE" && bodyOf(m) != "" || method == "INVITE" && bodyOf(m) != c.sdp {
				t.Errorf("it changes something:\n%s\nwas:\n%s", m, c.sdp)
			}
			seq := field(m, "CSeq")
			if method == "INVITE" { // and it collides with the far end's own
				if res := c.ask("INVITE", sdp(c.rtp.addr())); !strings.HasPrefix(res, "SIP/2.0 491") {
					t.Errorf("glare: %s", res)
				}
				c.ack("")
				c.answer(m, "491 Request Pending", "")
				if m = c.request(method); field(m, "CSeq") == seq {
					m = c.request(method)
				}
			}
			c.answer(m, "422 Session Interval Too Small", "", "Min-SE: 2000")
			for m = c.request(method); field(m, "Min-SE") != "2000"; m = c.request(method) {
			}
			if field(m, "Session-Expires") != "2000;refresher=uac" {
				t.Errorf("after a 422:\n%s", m)
			}
			body := ""
			if method == "INVITE" {
				body = sdp(c.rtp.addr())
			}
			c.answer(m, "200 OK", body, "Session-Expires: 2000;refresher=uac", "Require: timer")
			if method == "INVITE" {
				c.request("ACK")
			}
			renewed := func() bool {
				now := in.leg.(*leg).session.Load()
				return now.every == 2000*time.Second && now.ours && !now.next.IsZero()
			}
			in.phone.await(t, "the refresh is done", renewed)
			in.phone.hears(t, 440)
			// If the far end does not know the call any more, it is ended.
			in.passed(1000 * time.Second)
			for next := c.request(method); ; next = c.request(method) {
				if field(next, "CSeq") != field(m, "CSeq") {
					c.answer(next, "481 Call/Transaction Does Not Exist", "")
					break
				}
			}
			in.ends(t, parley.MediaTimeout)
			c.answer(c.request("BYE"), "481 Call/Transaction Does Not Exist", "")
		})
	}
}

// TestSessionTimerOut calls with a timer, which the far end makes longer, and refreshes itself.
func TestSessionTimerOut(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{Session: 90 * time.Second})
	out := f.dial(soon(t), s, newPhone(0))
	m := f.take("INVITE")
	if field(m, "Session-Expires") != "90" || !strings.Contains(field(m, "Supported"), "timer") {
		t.Errorf("INVITE:\n%s", m)
	}
	f.reply(m, "422 Session Interval Too Small", "", "Min-SE: 300")
	f.take("ACK")
	m = f.take("INVITE")
	if field(m, "Session-Expires") != "300" || field(m, "Min-SE") != "300" || field(m, "CSeq") != "2 INVITE" {
		t.Errorf("after 422:\n%s", m)
	}
	f.reply(m, "200 OK", sdp(f.rtp.addr()), "Session-Expires: 300;refresher=uas", "Require: timer")
	f.take("ACK")
	d := get(t, out)
	if d.err != nil {
		t.Fatal(d.err)
	}
	if now := d.leg.leg.(*leg).session.Load(); now == nil || now.every != 300*time.Second || now.ours {
		t.Errorf("%+v", now)
	}
	d.leg.stop(errDone)
	bye := f.take("BYE")
	if field(bye, "CSeq") != "3 BYE" {
		t.Errorf("BYE:\n%s", bye)
	}
	f.reply(bye, "200 OK", "")
	d.leg.ends(t, errDone)

	// The far end can't raise the interval for ever.
	out = f.dial(soon(t), s, newPhone(0))
	for _, least := range []int{100, 200, 1 << 20} {
		f.reply(f.take("INVITE"), "422 Session Interval Too Small", "", fmt.Sprint("Min-SE: ", least))
	}
	if d := get(t, out); codeOf(d.err) != "422" {
		t.Error(d.err)
	}
}

// TestUpdate changes the session by UPDATE: hold, another address. What is impossible, such as a fax, is refused and
// changes nothing.
func TestUpdate(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 1000)
	c := w.call(s, "")
	in := a.next(t)
	c.rtp.talk(c.media(), 440, 1)
	in.phone.hears(t, 440)
	if res := c.ask("UPDATE", sdp(c.rtp.addr(), "a=sendonly")); !strings.HasPrefix(res, "SIP/2.0 200") ||
		!strings.Contains(res, "a=recvonly") {
		t.Errorf("hold: %s", res)
	}
	elsewhere := newWire(t, "127.0.0.1")
	if res := c.ask("UPDATE", sdp(elsewhere.addr())); !strings.HasPrefix(res, "SIP/2.0 200") ||
		!strings.Contains(res, "a=sendrecv") {
		t.Errorf("resume: %s", res)
	}
	if p, _ := elsewhere.listen(hang); p == nil {
		t.Error("nothing comes to the new address")
	}
	fax := "v=0\r\no=- 1 3 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=image 4000 udptl t38\r\na=T38FaxVersion:0\r\n"
	for _, method := range []string{"UPDATE", "INVITE"} {
		res := c.ask(method, fax)
		if method == "INVITE" {
			c.ack("")
		}
		if !strings.HasPrefix(res, "SIP/2.0 488") || !strings.Contains(field(res, "Warning"), "304 Parley \"fax (T.38)") {
			t.Errorf("%s of a fax: %s", method, res)
		}
	}
	if res := c.ask("UPDATE", strings.Replace(sdp(elsewhere.addr()), "RTP/AVP 0 101", "RTP/AVP 3", 1)); !strings.HasPrefix(res,
		"SIP/2.0 488") || !strings.Contains(field(res, "Warning"), "305 ") {
		t.Errorf("GSM: %s", res)
	}
	// Our offer in a 200 waits for its answer.
	c.ask("INVITE", "")
	if res := c.ask("UPDATE", sdp(elsewhere.addr())); !strings.HasPrefix(res, "SIP/2.0 491") {
		t.Errorf("an UPDATE instead of the answer: %s", res)
	}
	c.seq--
	c.ack(sdp(elsewhere.addr()))
	elsewhere.talk(c.media(), 700, 9)
	in.phone.hears(t, 700)
	in.hangUp(t)
}
