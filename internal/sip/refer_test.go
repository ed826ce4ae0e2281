package sip

import (
	"errors"
	"strings"
	"testing"

	"parley/internal/parley"
)

// referring is an incoming call, and another telephone that its caller may connect to the assistant.
type referring struct {
	s     *Server
	first *caller
	in    *taken
	other *far
}

func newReferring(t *testing.T) *referring {
	a := newAnswerer(1000)
	r := &referring{other: newFar(t)}
	r.s = start(t, Config{Answer: a.answer, Trunks: fixed(
		Trunk{ID: 1, Number: "+15550001111", Address: "127.0.0.1:9", Username: "alice", Password: "secret", ByIP: true, Allowed: loopback})})
	r.first = newWire(t, "127.0.0.1").call(r.s, "")
	r.in = a.next(t)
	r.in.leg.(*leg).MayRefer(func(to string) error {
		if !strings.HasPrefix(to, "sip:102@") {
			return errors.New("it may not be called")
		}
		return nil
	})
	return r
}

const instead = "?Replaces=abc%40x%3Bto-tag%3Done%3Bfrom-tag%3Dtwo"

// to returns the address of a user at the other telephone.
func (r *referring) to(user, headers string) string {
	return "Refer-To: <sip:" + user + "@" + r.other.addr().String() + headers + ">"
}

// notified waits for a NOTIFY about a status, and answers it.
func (r *referring) notified(t *testing.T, status string) {
	t.Helper()
	m := r.first.request("NOTIFY")
	if !strings.HasPrefix(bodyOf(m), "SIP/2.0 "+status) || !strings.HasPrefix(field(m, "Event"), "refer") ||
		field(m, "Call-ID") != r.first.callID || strings.HasPrefix(field(m, "Subscription-State"), "active") != (status == "100") {
		t.Errorf("want %s:\n%s", status, m)
	}
	r.first.answer(m, "200 OK", "")
}

// TestRefer: the caller connects the assistant to another telephone, and the conversation goes on with the same sound.
func TestRefer(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} { // whether the caller leaves before anybody has answered
		r := newReferring(t)
		hush := r.first.rtp.talk(r.first.media(), 440, 1)
		r.in.phone.hears(t, 440)
		hush()
		if res := r.first.ask("REFER", "", r.to("102", instead), `Referred-By: "A" <sip:101@pbx>;cid=x`); !strings.HasPrefix(res, "SIP/2.0 202") {
			t.Fatal(res)
		}
		m := r.other.take("INVITE")
		if field(m, "Replaces") != "abc@x;to-tag=one;from-tag=two" || field(m, "Require") != "replaces" ||
			field(m, "Referred-By") != "<sip:101@pbx>" || !strings.HasPrefix(field(m, "To"), "<sip:102@") {
			t.Errorf("the INVITE:\n%s", m)
		}
		offer, err := parseSDP([]byte(bodyOf(m)))
		if err != nil || offer.streams[0].port != int(r.first.media().Port()) || !strings.Contains(m, " RTP/AVP 0 9 8 101\r\n") {
			t.Errorf("the sound does not stay where it is: %v\n%s", err, m)
		}
		r.other.reply(m, "401 Unauthorized", "", `WWW-Authenticate: Digest realm="r", nonce="n"`)
		if ack := r.other.take("ACK"); strings.Contains(ack, "Authorization") {
			t.Error("it proves that it knows the trunk's password to somebody else")
		}
		r.notified(t, "100")
		r.notified(t, "401")

		if res := r.first.ask("REFER", "", r.to("102", instead)); !strings.HasPrefix(res, "SIP/2.0 202") {
			t.Fatal(res)
		}
		m = r.other.take("INVITE")
		r.notified(t, "100")
		if res := r.first.ask("REFER", "", r.to("102", instead)); !strings.HasPrefix(res, "SIP/2.0 491") {
			t.Errorf("another one under way: %s", res)
		}
		if leaves {
			if res := r.first.ask("BYE", ""); !strings.HasPrefix(res, "SIP/2.0 200") {
				t.Error(res)
			}
		}
		r.other.reply(m, "200 OK", sdp(r.other.rtp.addr()))
		r.other.take("ACK")
		if !leaves {
			r.notified(t, "200")
			r.first.answer(r.first.request("BYE"), "200 OK", "")
		}
		hush = r.other.rtp.talk(r.first.media(), 700, 9)
		r.in.phone.hears(t, 700)
		hush()
		if p, _ := r.other.rtp.listen(hang); p == nil {
			t.Error("the other one hears nothing")
		}
		if res := r.first.ask("BYE", ""); !strings.HasPrefix(res, "SIP/2.0 481") {
			t.Errorf("the former call goes on: %s", res)
		}
		r.other.reply(m, "200 OK", sdp(r.other.rtp.addr())) // the ACK was lost
		r.other.take("ACK")
		r.in.stop(errDone)
		bye := r.other.take("BYE")
		if field(bye, "Call-ID") != field(m, "Call-ID") {
			t.Errorf("BYE:\n%s", bye)
		}
		r.other.reply(bye, "200 OK", "")
		r.in.ends(t, errDone)
		if n := strings.Count(ladderText(r.in.leg.(*leg)), "INVITE sip:102@"); n < 2 {
			t.Errorf("%d of the other INVITEs are kept with the call", n)
		}
	}
}

func ladderText(l *leg) string {
	var b strings.Builder
	for _, m := range l.Ladder() {
		b.WriteString(m.Text)
	}
	return b.String()
}

// TestReferRefused: requests that don't transfer a call, and a transfer that nobody answers.
func TestReferRefused(t *testing.T) {
	t.Parallel()
	r := newReferring(t)
	for name, c := range map[string]struct{ to, want string }{
		"without Replaces":     {r.to("102", ""), "403"},
		"whom it may not call": {r.to("+19005550000", instead), "403"},
		"half a Replaces":      {r.to("102", "?Replaces=abc%3Bto-tag%3Done"), "400"},
		"a header of its own":  {r.to("102", "?Replaces=abc%0D%0AX:y%3Bto-tag%3Done%3Bfrom-tag%3Dtwo"), "400"},
		"another method":       {"Refer-To: <sip:102@" + r.other.addr().String() + ";method=BYE" + instead + ">", "603"},
		"nowhere":              {"X-Nothing: 1", "400"},
		"no telephone":         {"Refer-To: <http://pbx/102" + instead + ">", "403"},
		"this server":          {"Refer-To: <sip:102@" + r.s.Addr().String() + instead + ">", "403"},
	} {
		res := r.first.ask("REFER", "", c.to)
		if !strings.HasPrefix(res, "SIP/2.0 "+c.want) {
			t.Errorf("%s: want %s, got %s", name, c.want, res)
		}
	}
	stranger := &caller{wire: newWire(t, "127.0.0.2"), server: r.s, callID: r.first.callID, to: r.first.to, seq: r.first.seq}
	if res := stranger.ask("REFER", "", r.to("102", instead)); !strings.HasPrefix(res, "SIP/2.0 403") {
		t.Errorf("somebody else: %s", res)
	}
	r.first.seq = stranger.seq
	if m := r.other.receive(1); m != "" {
		t.Errorf("it was called:\n%s", m)
	}

	// A caller over the trunk need not know the password for outgoing calls: a new target doesn't get it.
	if res := r.first.ask("REFER", "", "Refer-To: <sip:102@"+r.first.addr().String()+instead+">"); !strings.HasPrefix(res, "SIP/2.0 202") {
		t.Fatal(res)
	}
	r.first.answer(r.first.request("INVITE"), "401 Unauthorized", "", `WWW-Authenticate: Digest realm="r", nonce="n"`)
	for {
		m := r.first.request("NOTIFY")
		r.first.answer(m, "200 OK", "")
		if strings.HasPrefix(bodyOf(m), "SIP/2.0 401") {
			break
		}
	}

	// The caller leaves, and then nobody is left in the call.
	if res := r.first.ask("REFER", "", r.to("102", instead), "Refer-Sub: false"); !strings.HasPrefix(res, "SIP/2.0 202") ||
		field(res, "Refer-Sub") != "false" {
		t.Fatal(res)
	}
	m := r.other.take("INVITE")
	if res := r.first.ask("BYE", ""); !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Error(res)
	}
	r.other.reply(m, "481 Call/Transaction Does Not Exist", "")
	r.other.take("ACK")
	r.in.ends(t, parley.CustomerHangup)
}

// TestReferNobody: until the rules for transfers are set, and over the carrier, no call is transferred.
func TestReferNobody(t *testing.T) {
	t.Parallel()
	a, other := newAnswerer(0), newFar(t)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{Address: "127.0.0.1:9", ByIP: true, Allowed: loopback})})
	c := newWire(t, "127.0.0.1").call(s, "")
	in := a.next(t)
	refer := func() string {
		return c.ask("REFER", "", "Refer-To: <sip:102@"+other.addr().String()+instead+">")
	}
	if res := refer(); !strings.HasPrefix(res, "SIP/2.0 403") {
		t.Error(res)
	}
	in.leg.(*leg).MayRefer(func(string) error { return nil })
	if res := refer(); !strings.HasPrefix(res, "SIP/2.0 403") {
		t.Errorf("over the carrier: %s", res)
	}
	in.stop(errDone)
	c.answer(c.request("BYE"), "200 OK", "")
	in.ends(t, errDone)
}
