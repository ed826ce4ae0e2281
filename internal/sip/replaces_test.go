package sip

import (
	"strings"
	"testing"

	"parley/internal/parley"
)

func TestReplacesHeader(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]replaces{
		"98732@sip.example.com;from-tag=r33th4x0r;to-tag=ff87ff":   {"98732@sip.example.com", "ff87ff", "r33th4x0r", false},
		" a@b ; To-Tag = x ; from-tag=y;early-only;something=else": {"a@b", "x", "y", true},
		"a;to-tag=x":            {},
		";to-tag=x;from-tag=y":  {},
		"":                      {},
		"a;from-tag=x;to-tag=;": {},
	} {
		if got, ok := replacesOf(text); ok != (want != replaces{}) || ok && got != want {
			t.Errorf("%q: %+v, %t", text, got, ok)
		}
	}
}

// TestReplaces: a caller speaks with the assistant, and then another telephone takes the call over: the conversation
// goes on.
func TestReplaces(t *testing.T) {
	t.Parallel()
	a := newAnswerer(1000)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback},
		Trunk{ID: 2, Number: "+15550001112", ByIP: true, Allowed: loopback})})
	first := newWire(t, "127.0.0.1").call(s, "")
	in := a.next(t)
	hush := first.rtp.talk(first.media(), 440, 1)
	in.phone.hears(t, 440)
	hush()
	tagged := func(header string) string { return header[strings.Index(header, "tag=")+4:] }
	ours, theirs := tagged(first.to), "wire"

	other := &caller{wire: newWire(t, "127.0.0.1"), server: s, rtp: newWire(t, "127.0.0.1")}
	invite := func(uri, header string) string {
		other.callID, other.to, other.seq = token(20), "", 1
		m := other.message("INVITE", uri, "<"+uri+">", other.callID, 1, sdp(other.rtp.addr()), "Require: replaces", header)
		other.send(s.Addr(), strings.Replace(m, ";tag=wire", ";tag=other", 1))
		res := other.finalOf(other.callID, 1)
		other.to, other.sdp = field(res, "To"), bodyOf(res)
		ack := other.message("ACK", other.number(), other.to, other.callID, 1, "")
		other.send(s.Addr(), strings.Replace(ack, ";tag=wire", ";tag=other", 1))
		return res
	}
	right := "Replaces: " + first.callID + ";to-tag=" + ours + ";from-tag=" + theirs
	for name, c := range map[string]struct{ uri, header, want string }{
		"another tag":   {first.number(), right + "x", "481"},
		"another call":  {first.number(), "Replaces: x" + right[10:], "481"},
		"early only":    {first.number(), right + ";early-only", "486"},
		"another trunk": {"sip:+15550001112@" + s.Addr().String(), right, "481"},
		"malformed":     {first.number(), "Replaces: " + first.callID, "400"},
	} {
		if res := invite(c.uri, c.header); !strings.HasPrefix(res, "SIP/2.0 "+c.want) {
			t.Errorf("%s: want %s, got %s", name, c.want, res)
		}
	}
	res := invite(first.number(), right)
	if !strings.HasPrefix(res, "SIP/2.0 200") || other.media() != first.media() {
		t.Fatalf("taking over: %s", res)
	}
	bye := first.request("BYE")
	if field(bye, "Call-ID") != first.callID {
		t.Errorf("BYE:\n%s", bye)
	}
	first.answer(bye, "200 OK", "")
	hush = other.rtp.talk(other.media(), 700, 9)
	in.phone.hears(t, 700)
	for p, _ := other.rtp.listen(hang); ; p, _ = other.rtp.listen(hang) {
		if p == nil {
			t.Fatal("nothing is heard")
		} else if len(p.Payload) == 160 {
			break
		}
	}
	hush()
	if res := first.ask("BYE", ""); !strings.HasPrefix(res, "SIP/2.0 481") {
		t.Errorf("the former call goes on: %s", res)
	}
	if len(a.calls) > 0 {
		t.Error("it is a call of its own, too")
	}
	// The new telephone has the call: its messages are kept with it, and it hangs up.
	found := 0
	for _, m := range in.leg.(*leg).Ladder() {
		if strings.HasPrefix(m.Text, "INVITE ") {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d INVITEs are kept with the call", found)
	}
	m := other.message("BYE", other.number(), other.to, other.callID, 2, "")
	other.send(s.Addr(), strings.Replace(m, ";tag=wire", ";tag=other", 1))
	in.ends(t, parley.CustomerHangup)
}
