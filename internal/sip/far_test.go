package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
)

// far is a wire that is called: the test scripts what it does, step by step.
type far struct {
	*wire
	rtp    *wire
	from   netip.AddrPort
	invite string
	rang   chan struct{} // closed when it rings
	tag    string        // of its answers; "" is far
}

func newFar(t testing.TB) *far {
	return &far{wire: newWire(t, "127.0.0.1"), rtp: newWire(t, "127.0.0.1")}
}

func (f *far) trunk() Trunk {
	return Trunk{ID: 1, Number: "+15550002222", Address: f.addr().String(), Username: "alice", Password: "secret"}
}

// take returns the next request of a method; repeated others are skipped.
func (f *far) take(method string) string {
	f.t.Helper()
	buf := make([]byte, 65536)
	_ = f.SetReadDeadline(time.Now().Add(hang))
	for {
		n, from, err := f.ReadFromUDPAddrPort(buf)
		if err != nil {
			f.t.Fatalf("no %s came: %v", method, err)
		}
		if m := string(buf[:n]); strings.HasPrefix(m, method+" ") {
			f.from = from
			if method == "INVITE" {
				f.invite = m
			}
			return m
		}
	}
}

// reply answers a request.
func (f *far) reply(req, status, body string, headers ...string) {
	f.t.Helper()
	lines := []string{"SIP/2.0 " + status}
	for line := range strings.SplitSeq(req, "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		switch name {
		case "To":
			if !strings.Contains(line, "tag=") && !strings.HasPrefix(status, "100") {
				line += ";tag=" + cmp.Or(f.tag, "far")
			}
			fallthrough
		case "Via", "From", "Call-ID", "CSeq", "Record-Route":
			lines = append(lines, line)
		}
		if line == "" {
			break
		}
	}
	lines = append(lines, "Contact: <sip:far@"+f.addr().String()+">")
	lines = append(lines, headers...)
	if body != "" {
		lines = append(lines, "Content-Type: application/sdp")
	}
	lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)), "", body)
	f.send(f.from, strings.Join(lines, "\r\n"))
}

// dialled is what Dial returned.
type dialled struct {
	leg *running
	err error
}

// dial calls the far end, in a goroutine of its own.
func (f *far) dial(ctx context.Context, s *Server, p *phone) <-chan dialled {
	f.rang = make(chan struct{})
	out := make(chan dialled, 1)
	go func() {
		l, err := s.Dial(ctx, Dialling{Trunk: f.trunk(), To: "+15550001111", From: "+15550002222",
			Ringing: func() { close(f.rang) }})
		if err != nil {
			out <- dialled{err: err}
			return
		}
		out <- dialled{leg: run(l, p)}
	}()
	return out
}

func get[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(hang):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestInviteText(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	out := f.dial(soon(t), s, newPhone(0))
	m := f.take("INVITE")
	for name, want := range map[string]string{"From": "<sip:+15550002222@127.0.0.1>;tag=",
		"To":                  "<sip:+15550001111@127.0.0.1>",
		"P-Asserted-Identity": "<sip:+15550002222@127.0.0.1>", "Contact": "<sip:+15550002222@" + s.Addr().String() +
			">", "Via": "SIP/2.0/UDP " + s.Addr().String() + ";branch=z9hG4bK"} {
		if got := field(m, name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q…", name, got, want)
		}
	}
	for _, want := range []string{"INVITE sip:+15550001111@" + f.addr().String() + " SIP/2.0\r\n",
		"RTP/AVP 9 0 8 101\r\n", "a=rtpmap:9 G722/8000", "a=ptime:20", ";rport"} {
		if !strings.Contains(m, want) {
			t.Errorf("no %q in\n%s", want, m)
		}
	}
	f.reply(m, "486 Busy Here", "")
	if d := get(t, out); codeOf(d.err) != "486" {
		t.Error(d.err)
	}
	f.take("ACK")
}

func TestEarlyMedia(t *testing.T) {
	t.Parallel()
	f, s := newFar(t), start(t, Config{})
	p := newPhone(0)
	out := f.dial(soon(t), s, p)
	m := f.take("INVITE")
	f.reply(m, "100 Trying", "")
	for range 15 { // more than the library's own loop can handle
		f.reply(m, "180 Ringing", "")
	}
	f.reply(m, "183 Session Progress", sdp(f.rtp.addr()))
	d, err := parseSDP([]byte(bodyOf(m)))
	if err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(d.streams[0].addr, uint16(d.streams[0].port))
	f.rtp.say(to, 440, 1, 10, 1) // ringback
	f.reply(m, "200 OK", "")     // its description was in the 183
	ack := f.take("ACK")
	if !strings.HasPrefix(ack, "ACK sip:far@"+f.addr().String()+" ") || !strings.Contains(field(ack, "To"), "tag=far") {
		t.Errorf("ACK:\n%s", ack)
	}
	f.rtp.say(to, 1000, 11, 20, 1)
	l := get(t, out)
	if l.err != nil {
		t.Fatal(l.err)
	}
	p.hears(t, 1000)
	p.mu.Lock()
	if len(p.heard) > 21*160 {
		t.Errorf("%d packets were heard: those before the answer too", len(p.heard)/160)
	}
	if len(p.heard) < 19*160 {
		t.Errorf("only %d of 20 packets were heard", len(p.heard)/160)
	}
	p.mu.Unlock()
	// The ACK was lost: it is sent again.
	f.reply(m, "200 OK", "")
	f.take("ACK")
	l.leg.stop(errDone)
	bye := f.take("BYE")
	f.reply(bye, "200 OK", "")
	l.leg.ends(t, errDone)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	why := errors.New("nobody wants it any more")
	t.Run("ringing", func(t *testing.T) {
		t.Parallel()
		f, s := newFar(t), start(t, Config{})
		ctx, cancel := context.WithCancelCause(soon(t))
		out := f.dial(ctx, s, newPhone(0))
		m := f.take("INVITE")
		f.reply(m, "180 Ringing", "")
		get(t, f.rang)
		cancel(why)
		if d := get(t, out); !errors.Is(d.err, why) {
			t.Errorf("got %v", d.err)
		}
		c := f.take("CANCEL")
		if field(c, "Via") != field(m, "Via") || field(c, "CSeq") != "1 CANCEL" || field(c, "To") != field(m, "To") {
			t.Errorf("CANCEL doesn't match:\n%s\n%s", m, c)
		}
		f.reply(c, "200 OK", "")
		f.reply(m, "487 Request Terminated", "")
		f.take("ACK")
	})
	t.Run("before anything came", func(t *testing.T) {
		t.Parallel()
		f, s := newFar(t), start(t, Config{})
		ctx, cancel := context.WithCancelCause(soon(t))
		out := f.dial(ctx, s, newPhone(0))
		m := f.take("INVITE")
		cancel(why)
		if d := get(t, out); !errors.Is(d.err, why) {
			t.Errorf("got %v", d.err)
		}
		if got := f.receive(20 * time.Millisecond); strings.HasPrefix(got, "CANCEL") {
			t.Error("CANCEL before any answer")
		}
		f.reply(m, "100 Trying", "")
		c := f.take("CANCEL")
		f.reply(c, "200 OK", "")
		f.reply(m, "487 Request Terminated", "")
		f.take("ACK")
	})
	t.Run("crossed by the answer", func(t *testing.T) {
		t.Parallel()
		f, s := newFar(t), start(t, Config{})
		ctx, cancel := context.WithCancelCause(soon(t))
		out := f.dial(ctx, s, newPhone(0))
		m := f.take("INVITE")
		f.reply(m, "100 Trying", "")
		cancel(why)
		if d := get(t, out); !errors.Is(d.err, why) {
			t.Errorf("got %v", d.err)
		}
		c := f.take("CANCEL")
		f.reply(m, "200 OK", sdp(f.rtp.addr()))
		f.reply(c, "200 OK", "")
		f.take("ACK")
		f.reply(f.take("BYE"), "200 OK", "")
	})
	t.Run("by the caller", func(t *testing.T) {
		t.Parallel()
		ended := make(chan error, 1)
		s := start(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}),
			Answer: func(ctx context.Context, in *Invite) {
				_ = in.Ring()
				<-in.Done()
				ended <- context.Cause(ctx)
				if _, err := in.Answer(context.Background()); !errors.Is(err, parley.CustomerHangup) {
					t.Errorf("answered after all: %v", err)
				}
			}})
		c := start(t, Config{})
		ctx, cancel := context.WithCancelCause(soon(t))
		_, err := c.Dial(ctx, Dialling{Trunk: Trunk{Address: s.Addr().String()}, To: "+15550001111", From: "+1",
			Ringing: func() { cancel(why) }})
		if !errors.Is(err, why) {
			t.Error(err)
		}
		if err := get(t, ended); err != error(parley.CustomerHangup) {
			t.Errorf("the call ended with %v", err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	silent := newWire(t, "127.0.0.1")
	for name, trunk := range map[string]Trunk{
		"nobody answers":   {Address: silent.addr().String()},
		"TCP is refused":   {Address: "127.0.0.1:1", Transport: "tcp"},
		"no such name":     {Address: "does-not-exist.invalid:5060"},
		"beyond our reach": {Address: "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
			if !errors.Is(err, parley.Unreachable) {
				t.Errorf("got %v", err)
			}
			t.Log(err)
		})
	}
	if _, err := s.Dial(soon(t), Dialling{Trunk: Trunk{Address: silent.addr().String()}, To: "1\r\nX: y",
		From: "+1"}); !errors.Is(err, parley.Unreachable) {
		t.Errorf("a header in a number: %v", err)
	}
	if _, err := New(Config{Listen: "off"}).Dial(soon(t), Dialling{}); !errors.Is(err, parley.Unreachable) {
		t.Errorf("off: %v", err)
	}
}

func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for name, description := range map[string]string{"none": "", "malformed": "v=0\r\nnonsense\r\n",
		"no codec of ours": "v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio 4000 RTP/AVP 18\r\n",
		"turned down":      "v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio 0 RTP/AVP 0\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := newFar(t), start(t, Config{})
			out := f.dial(soon(t), s, newPhone(0))
			f.reply(f.take("INVITE"), "200 OK", description)
			f.take("ACK")
			f.reply(f.take("BYE"), "200 OK", "")
			if d := get(t, out); !errors.Is(d.err, parley.Unreachable) {
				t.Errorf("got %v", d.err)
			}
		})
	}
}

func TestNoACK(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 0)
	rtp := newWire(t, "127.0.0.1")
	w.send(s.Addr(), w.message("INVITE", "sip:+15550001111@"+s.Addr().String(), "<sip:+15550001111@"+
		s.Addr().String()+">", token(20), 1, sdp(rtp.addr())))
	in := a.next(t)
	answers := 0
	for {
		m := w.receive(hang)
		if strings.HasPrefix(m, "SIP/2.0 200") {
			answers++
		}
		if strings.HasPrefix(m, "BYE ") || m == "" {
			break
		}
	}
	if answers < 5 {
		t.Errorf("the answer came only %d times", answers)
	}
	in.ends(t, errNoACK)
}

func TestRoute(t *testing.T) {
	t.Parallel()
	// A proxy before the trunk, and one that stays in the route.
	f, s := newFar(t), start(t, Config{})
	proxy := newFar(t)
	trunk := f.trunk()
	trunk.Address, trunk.Proxy = "carrier.example", proxy.addr().String()
	out := make(chan dialled, 1)
	go func() {
		l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
		if err != nil {
			out <- dialled{err: err}
			return
		}
		out <- dialled{leg: run(l, newPhone(0))}
	}()
	m := proxy.take("INVITE")
	if !strings.HasPrefix(m, "INVITE sip:+15550001111@carrier.example SIP/2.0") || field(m, "Route") != "<sip:"+
		proxy.addr().String()+";lr>" {
		t.Errorf("by the proxy:\n%s", m)
	}
	proxy.reply(m, "200 OK", sdp(proxy.rtp.addr()), "Record-Route: <sip:"+f.addr().String()+";lr>")
	ack := f.take("ACK")
	if !strings.HasPrefix(ack, "ACK sip:far@"+proxy.addr().String()+" ") || field(ack, "Route") != "<sip:"+
		f.addr().String()+";lr>" {
		t.Errorf("ACK:\n%s", ack)
	}
	l := get(t, out)
	l.leg.stop(errDone)
	bye := f.take("BYE")
	if field(bye, "CSeq") != "2 BYE" || field(bye, "Call-ID") != field(m, "Call-ID") {
		t.Errorf("BYE:\n%s", bye)
	}
	f.reply(bye, "200 OK", "")
	l.leg.ends(t, errDone)
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (f *far, l *running, told chan error) {
		f, s := newFar(t), start(t, Config{})
		out := f.dial(soon(t), s, newPhone(0))
		f.reply(f.take("INVITE"), "200 OK", sdp(f.rtp.addr()))
		f.take("ACK")
		d := get(t, out)
		if d.err != nil {
			t.Fatal(d.err)
		}
		told = make(chan error, 1)
		go func() { told <- d.leg.leg.(*leg).Transfer(soon(t), "+15550003333") }()
		return f, d.leg, told
	}
	notify := func(f *far, seq int, state, frag string) {
		m := f.message("NOTIFY", "sip:parley@"+f.from.String(), field(f.invite, "From"), field(f.invite, "Call-ID"),
			seq, frag, "Event: refer", "Subscription-State: "+state)
		m = strings.Replace(m, "application/sdp", "message/sipfrag;version=2.0", 1)
		m = strings.Replace(m, "From: <sip:+15550009999@"+f.addr().String()+">;tag=wire", "From: "+
			field(f.invite, "To")+";tag=far", 1)
		f.send(f.from, m)
		if res := f.final(); !strings.HasPrefix(res, "SIP/2.0 200") {
			t.Errorf("NOTIFY: %s", res)
		}
	}
	t.Run("reached", func(t *testing.T) {
		t.Parallel()
		f, l, told := begin(t)
		refer := f.take("REFER")
		if field(refer, "Refer-To") != "<sip:+15550003333@"+f.addr().String()+">" || field(refer, "Referred-By") == "" {
			t.Errorf("REFER:\n%s", refer)
		}
		f.reply(refer, "202 Accepted", "")
		notify(f, 1, "active;expires=60", "SIP/2.0 100 Trying\r\n")
		notify(f, 2, "terminated;reason=noresource", "SIP/2.0 200 OK\r\n")
		if err := get(t, told); err != nil {
			t.Error(err)
		}
		m := f.message("BYE", "sip:parley@"+f.from.String(), field(f.invite, "From"), field(f.invite, "Call-ID"), 3, "")
		f.send(f.from, strings.Replace(m, "From: <sip:+15550009999@"+f.addr().String()+">;tag=wire", "From: "+
			field(f.invite, "To")+";tag=far", 1))
		l.ends(t, parley.Transferred)
	})
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		f, l, told := begin(t)
		f.reply(f.take("REFER"), "202 Accepted", "")
		notify(f, 1, "terminated", "SIP/2.0 486 Busy Here\r\n")
		if err := get(t, told); codeOf(err) != "486" {
			t.Error(err)
		}
		l.stop(errDone)
		f.reply(f.take("BYE"), "200 OK", "")
		l.ends(t, errDone)
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		f, l, told := begin(t)
		f.reply(f.take("REFER"), "405 Method Not Allowed", "")
		if err := get(t, told); codeOf(err) != "405" {
			t.Error(err)
		}
		for _, to := range []string{"", "bob", "sip:", "sip:a@b>\r\nX: y", "+49\r\n"} {
			if err := l.leg.(*leg).Transfer(soon(t), to); err == nil {
				t.Errorf("%q was taken", to)
			}
		}
		l.stop(errDone)
		f.reply(f.take("BYE"), "200 OK", "")
		l.ends(t, errDone)
	})
	t.Run("hung up without a word", func(t *testing.T) {
		t.Parallel()
		f, l, told := begin(t)
		f.reply(f.take("REFER"), "202 Accepted", "")
		notify(f, 1, "active", "SIP/2.0 100 Trying\r\n")
		m := f.message("BYE", "sip:parley@"+f.from.String(), field(f.invite, "From"), field(f.invite, "Call-ID"), 2, "")
		f.send(f.from, strings.Replace(m, "From: <sip:+15550009999@"+f.addr().String()+">;tag=wire", "From: "+
			field(f.invite, "To")+";tag=far", 1))
		if err := get(t, told); err != nil {
			t.Error(err)
		}
		l.ends(t, parley.Transferred)
	})
}

// A call that was opened and never run is ended with Hangup: the far end is told, and the ports and the room are free.
func TestHangupBeforeRun(t *testing.T) {
	t.Parallel()
	f, s, rtp := newFar(t), start(t, Config{MaxCalls: 1}), newWire(t, "127.0.0.1")
	legs := make(chan audio.Leg, 1)
	go func() {
		l, err := s.Dial(soon(t), Dialling{Trunk: f.trunk(), To: "+15550001111", From: "+15550002222"})
		if err != nil {
			t.Error(err)
		}
		legs <- l
	}()
	f.reply(f.take("INVITE"), "200 OK", sdp(rtp.addr()))
	f.take("ACK")
	l := get(t, legs)
	l.Hangup()
	f.reply(f.take("BYE"), "200 OK", "")
	l.Hangup()
	if err := l.Run(soon(t), newPhone(0)); !errors.Is(err, parley.AssistantHangup) {
		t.Errorf("it runs afterwards: %v", err)
	}
	if n := s.ports.Used(); n != 0 || !s.take() {
		t.Errorf("%d pairs of ports are in use, or the line is not free", n)
	}
	s.free()
}
