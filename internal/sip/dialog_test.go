package sip

import (
	"fmt"
	"strings"
	"testing"

	sipgo "github.com/emiago/sipgo/sip"
)

// TestOrder: a request with a lower number than one before it is refused with 500, whatever it asks for; its repetition
// gets the answer that it had.
func TestOrder(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 0)
	c := w.call(s, "")
	in := a.next(t)
	ask := func(seq int, method string) string {
		c.seq = seq - 1
		return strings.Fields(c.ask(method, ""))[1]
	}
	for _, step := range []struct {
		seq          int
		method, want string
	}{{5, "INFO", "200"}, {4, "INFO", "500"}, {3, "OPTIONS", "500"}, {5, "OPTIONS", "200"}, {9, "OPTIONS", "200"},
		{8, "BYE", "500"}, {9, "INFO", "200"}, {2147483647, "INFO", "200"}, {10, "UPDATE", "500"}} {
		if got := ask(step.seq, step.method); got != step.want {
			t.Errorf("%s %d: %s, want %s", step.method, step.seq, got, step.want)
		}
	}
	if got := ask(2147483647, "BYE"); got != "200" {
		t.Errorf("BYE: %s", got)
	}
	in.stop(errDone)
}

// TestArrivals: requests that were handled in another order than they came in are in order.
func TestArrivals(t *testing.T) {
	t.Parallel()
	var d dialog
	number := func(n uint32) *sipgo.Request {
		req := sipgo.NewRequest(sipgo.INFO, sipgo.Uri{})
		req.AppendHeader(&sipgo.CSeqHeader{SeqNo: n, MethodName: sipgo.INFO})
		return req
	}
	for n := uint32(1); n <= 40; n++ {
		d.arrives(number(2 * n))
	}
	d.arrives(number(33))
	for n, want := range map[uint32]bool{80: true, 78: true, 40: true, 33: false, 79: false, 2: false, 82: true} {
		if n != 82 && d.order(number(n)) != want {
			t.Errorf("%d: in order is %t", n, !want)
		}
	}
	if !d.order(number(82)) || d.order(number(81)) {
		t.Error("the next one is in order, and none before it")
	}
}

// TestNoTag: a caller without a tag, as in RFC 2543, is answered and hangs up.
func TestNoTag(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 440)
	rtp := newWire(t, "127.0.0.1")
	id := token(20)
	plain := func(m string) string { return strings.Replace(m, ";tag=wire", "", 1) }
	uri := "sip:+15550001111@" + s.Addr().String()
	w.send(s.Addr(), plain(w.message("INVITE", uri, "<"+uri+">", id, 1, sdp(rtp.addr()))))
	res := w.finalOf(id, 1)
	if !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Fatal(res)
	}
	w.send(s.Addr(), plain(w.message("ACK", uri, field(res, "To"), id, 1, "")))
	in := a.next(t)
	w.send(s.Addr(), plain(w.message("BYE", uri, field(res, "To"), id, 2, "")))
	if m := w.finalOf(id, 2); !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Error(m)
	}
	in.ends(t, nil)
}

// TestStrictRoute: by way of a strict router the Request-URI is the router's, and the far end is the last of the Routes
// (RFC 3261, section 12.2.1.1).
func TestStrictRoute(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	out := f.dial(soon(t), s, newPhone(0))
	strict := "sip:strict@" + f.addr().String() + ";method=INVITE"
	m := f.take("INVITE")
	f.reply(m, "200 OK", sdp(f.rtp.addr()), "Record-Route: <sip:192.0.2.7;lr>, <"+strict+">")
	ack := f.take("ACK")
	d := get(t, out)
	if d.err != nil {
		t.Fatal(d.err)
	}
	d.leg.stop(errDone)
	bye := f.take("BYE")
	for _, m := range []string{ack, bye} {
		method, rest, _ := strings.Cut(m, " ")
		uri, _, _ := strings.Cut(rest, " ")
		got := fmt.Sprint(uri, fields(m, "Route"))
		want := fmt.Sprint("sip:strict@"+f.addr().String(), []string{"<sip:192.0.2.7;lr>", "<sip:far@" + f.addr().String() + ">"})
		if got != want {
			t.Errorf("%s goes to %s, want %s", method, got, want)
		}
	}
	f.reply(bye, "200 OK", "")
}

// TestUnsupported: an extension that the far end refuses is left out, once; a refusal that names nothing of ours ends
// the call.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{Session: minInterval * 2})
	out := f.dial(soon(t), s, newPhone(0))
	m := f.take("INVITE")
	if field(m, "Session-Expires") == "" || !strings.Contains(field(m, "Supported"), "timer") {
		t.Fatalf("no timer is asked for:\n%s", m)
	}
	f.reply(m, "420 Bad Extension", "", "Unsupported: timer")
	f.take("ACK")
	m = f.take("INVITE")
	if field(m, "Session-Expires")+field(m, "Min-SE") != "" || strings.Contains(field(m, "Supported"), "timer") ||
		!strings.Contains(field(m, "Supported"), "100rel") {
		t.Errorf("the timer is still asked for, or more was left out:\n%s", m)
	}
	f.reply(m, "420 Bad Extension", "", "Unsupported: 100rel , Replaces")
	f.take("ACK")
	m = f.take("INVITE")
	if field(m, "Supported") != "" {
		t.Errorf("%s is still supported", field(m, "Supported"))
	}
	f.reply(m, "420 Bad Extension", "", "Unsupported: timer")
	f.take("ACK")
	if d := get(t, out); codeOf(d.err) != "420" {
		t.Error(d.err)
	}
}
