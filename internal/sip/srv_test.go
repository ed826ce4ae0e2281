package sip

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	sipgo "github.com/emiago/sipgo/sip"
	"golang.org/x/net/dns/dnsmessage"

	"parley/internal/parley"
)

// zone is a resolver that knows _sip._udp.trunk.test and _sip._tcp.trunk.test, with a place for each address; the
// first one is the best. All hosts are 127.0.0.1.
func zone(t *testing.T, places ...netip.AddrPort) *net.Resolver {
	t.Helper()
	w := newWire(t, "127.0.0.1")
	var wg sync.WaitGroup
	t.Cleanup(func() { w.Close(); wg.Wait() })
	wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := w.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			q := m.Questions[0]
			h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
			switch name := q.Name.String(); {
			case q.Type == dnsmessage.TypeSRV && (name == "_sip._udp.trunk.test." || name == "_sip._tcp.trunk.test."):
				for i := range places { // the worst one first
					i = len(places) - 1 - i
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h,
						Body: &dnsmessage.SRVResource{Priority: uint16(10 * i), Port: places[i].Port(),
							Target: dnsmessage.MustNewName("host.test.")}})
				}
			case q.Type == dnsmessage.TypeA && name == "host.test.":
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: h,
					Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}})
			case name != "host.test.":
				m.RCode = dnsmessage.RCodeNameError
			}
			out, err := m.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = w.WriteToUDPAddrPort(out, from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", w.addr().String())
	}}
}

// If the first place of a trunk's domain accepts no call, the next one does (RFC 3263, section 4.3), and the places
// after it aren't asked.
func TestNextPlace(t *testing.T) {
	t.Parallel()
	refused := netip.MustParseAddrPort("127.0.0.1:1")
	for name, c := range map[string]struct {
		status, transport string // of the first place's answer, "" for none
		first             netip.AddrPort
		code              string // how the call ends if no other place is asked
	}{
		"it takes none now":  {status: "503 Service Unavailable"},
		"it is silent":       {},
		"nobody listens":     {transport: "tcp", first: refused},
		"it is busy":         {status: "486 Busy Here", code: "486"},
		"it has other woes":  {status: "500 Server Internal Error", code: "500"},
		"it doesn't know us": {status: "403 Forbidden", code: "403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second, third := newFar(t), newFar(t), newFar(t)
			var at netip.AddrPort
			if c.transport == "tcp" {
				at = answerTCP(t)
			} else {
				c.first, at = first.addr(), second.addr()
			}
			s := prepare(t, Config{})
			s.passing, s.resolver = time.Second, zone(t, c.first, at, third.addr())
			launch(t, s)
			trunk := Trunk{Address: "trunk.test", Transport: c.transport}
			rang := make(chan bool, 9)
			call := func() <-chan dialled {
				out := make(chan dialled, 1)
				go func() {
					l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222",
						Ringing: func() { rang <- true }})
					if err != nil {
						out <- dialled{err: err}
						return
					}
					out <- dialled{leg: run(l, newPhone(0))}
				}()
				return out
			}
			out := call()
			if c.transport == "tcp" {
				if d := get(t, out); codeOf(d.err) != "480" {
					t.Errorf("the second place was not asked: %v", d.err)
				}
				return
			}
			m := first.take("INVITE")
			switch {
			case c.status == "":
			case c.code == "":
				first.reply(m, "180 Ringing", "")
				fallthrough
			default:
				first.reply(m, c.status, "")
				first.take("ACK")
			}
			if c.code != "" {
				if d := get(t, out); codeOf(d.err) != c.code {
					t.Error(d.err)
				}
				if m := second.receive(10 * time.Millisecond); m != "" {
					t.Errorf("the second place was asked:\n%s", m)
				}
				return
			}
			again := second.take("INVITE")
			if field(again, "Call-ID") != field(m, "Call-ID") || field(again, "From") != field(m, "From") ||
				field(again, "CSeq") != field(m, "CSeq") ||
				field(again, "Via") == field(m, "Via") {
				t.Errorf("it is another call:\n%s\nand\n%s", m, again)
			}
			second.reply(again, "180 Ringing", "")
			get(t, rang)
			second.reply(again, "200 OK", sdp(second.rtp.addr()))
			second.take("ACK")
			if c.status == "" { // it recovers: the call is canceled there
				first.reply(m, "100 Trying", "")
				cancel := first.take("CANCEL")
				first.reply(cancel, "200 OK", "")
				first.reply(first.invite, "200 OK", sdp(first.rtp.addr())) // too late
				first.take("ACK")
				first.reply(first.take("BYE"), "200 OK", "")
			}
			d := get(t, out)
			if d.err != nil {
				t.Fatal(d.err)
			}
			d.leg.stop(errDone)
			second.reply(second.take("BYE"), "200 OK", "")
			d.leg.ends(t, errDone)
			if len(rang) != 0 {
				t.Error("it rang again")
			}
			// The next call doesn't wait for the place that failed.
			out = call()
			second.reply(second.take("INVITE"), "486 Busy Here", "")
			second.take("ACK")
			if d := get(t, out); codeOf(d.err) != "486" {
				t.Error(d.err)
			}
			if m := third.receive(time.Millisecond); m != "" {
				t.Errorf("the third place was asked:\n%s", m)
			}
		})
	}
}

// If no place answers, that takes no longer than with a single place.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	first, second := newFar(t), newFar(t)
	s := prepare(t, Config{})
	s.passing, s.resolver = 4*time.Second, zone(t, first.addr(), second.addr())
	launch(t, s)
	began := time.Now()
	_, err := s.Dial(soon(t), Dialling{Trunk: Trunk{Address: "trunk.test"}, To: "+15550001111", From: "+15550002222"})
	if took := time.Since(began); !errors.Is(err, parley.Unreachable) || !errors.Is(err, errSilence) ||
		took < 64*sipgo.T1 || took > 64*sipgo.T1+s.passing-time.Second/2 {
		t.Errorf("after %v: %v", took, err)
	}
	second.take("INVITE")
}

// answerTCP is a place that refuses calls over TCP with 480.
func answerTCP(t *testing.T) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 8192)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			m := string(buf[:n])
			if !strings.HasPrefix(m, "INVITE ") {
				continue
			}
			lines := []string{"SIP/2.0 480 Temporarily Unavailable"}
			for _, name := range []string{"Via", "From", "Call-ID", "CSeq"} {
				lines = append(lines, name+": "+field(m, name))
			}
			lines = append(lines, "To: "+field(m, "To")+";tag=far", "Content-Length: 0", "", "")
			if _, err := c.Write([]byte(strings.Join(lines, "\r\n"))); err != nil {
				return
			}
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

// Registrations go to the next place in the same way.
func TestRegisterNextPlace(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]string{"silent": "", "takes none now": "503 Service Unavailable"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := newFar(t), newFar(t)
			s := prepare(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Address: "trunk.test",
				Username: "alice", Password: "secret", Register: true})})
			s.passing, s.resolver = time.Second, zone(t, first.addr(), second.addr())
			launch(t, s)
			if m := first.take("REGISTER"); status != "" {
				first.reply(m, status, "")
			}
			second.reply(second.take("REGISTER"), "401 Unauthorized", "",
				`WWW-Authenticate: Digest realm="r", nonce="n"`)
			m := second.take("REGISTER")
			if field(m, "Authorization") == "" {
				t.Errorf("it proves nothing:\n%s", m)
			}
			second.reply(m, "200 OK", "", "Expires: 3600")
			for give := time.Now().Add(hang); !s.Registered(1); time.Sleep(time.Millisecond) {
				if time.Now().After(give) {
					t.Fatal("not registered")
				}
			}
		})
	}
}
