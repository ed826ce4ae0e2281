package sip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	sipgo "github.com/emiago/sipgo/sip"

	"parley/internal/parley"
)

// TestPlace: a user's trunk may not be at the operator's carrier, nor at this server, nor, if the operator forbids it,
// at an internal address.
func TestPlace(t *testing.T) {
	t.Parallel()
	carrier := newFar(t)
	near := netip.MustParseAddr("127.0.0.1")
	reach := func(a netip.Addr) error {
		if a != near {
			return errors.New("not public")
		}
		return nil
	}
	s := prepare(t, Config{Reach: reach, Trunks: fixed(Trunk{Address: "localhost:" +
		fmt.Sprint(carrier.addr().Port()), ByIP: true,
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("203.0.113.0/24")}})})
	s.asking = 300 * time.Millisecond
	launch(t, s)
	for name, c := range map[string]struct {
		trunk Trunk
		says  string
	}{
		"the carrier": {Trunk{Address: carrier.addr().String()}, "own carrier"},
		"the carrier, by name": {Trunk{Address: "localhost:" + fmt.Sprint(carrier.addr().Port()),
			Transport: "tcp"}, "own carrier"},
		"the carrier, as a proxy":     {Trunk{Address: "127.0.0.1:9", Proxy: carrier.addr().String()}, "own carrier"},
		"this server":                 {Trunk{Address: s.Addr().String()}, "own telephone"},
		"an address inside":           {Trunk{Address: "127.0.0.2:5060"}, "is not public"},
		"all":                         {Trunk{Address: "224.0.0.1"}, ""}, // this server can't reach it anyway
		"another port of the machine": {Trunk{Address: "127.0.0.1:9"}, ""},
		"a name that is not there":    {Trunk{Address: "nobody.invalid"}, ""},
	} {
		c.trunk.ID, c.trunk.Number = 7, "+15550003333"
		err := s.Place(soon(t), c.trunk)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if c.says == "" {
			continue
		}
		var told interface{ Explain() string }
		if _, err := s.Dial(soon(t), Dialling{Trunk: c.trunk, To: "+15550001111",
			From: "+15550003333"}); !errors.Is(err, parley.Unreachable) || !errors.As(err, &told) ||
			!strings.Contains(told.Explain(), c.says) {
			t.Errorf("%s: a call ends with %v", name, err)
		}
		if _, err := s.Check(soon(t), c.trunk); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: checked with %v", name, err)
		}
	}
	if m := carrier.receive(100 * time.Millisecond); m != "" {
		t.Errorf("the carrier got\n%s", m)
	}
	// Addresses that the carrier calls from belong to it too, whatever name it is called by; addresses of the machine
	// itself are told apart by their ports.
	if !s.isCarrier(netip.MustParseAddrPort("203.0.113.9:5070")) ||
		s.isCarrier(netip.MustParseAddrPort("127.0.0.1:9")) {
		t.Error("whose address is the carrier's")
	}
	// The address of an internal name is not revealed.
	near = netip.MustParseAddr("192.0.2.1")
	hidden := Trunk{ID: 7, Number: "+15550003333", Address: "localhost:9"}
	if err := s.Place(soon(t), hidden); err != nil {
		t.Errorf("a name inside is told: %v", err)
	}
	_, there := s.Check(soon(t), hidden)
	hidden.Address = "nobody.invalid:9"
	_, missing := s.Check(soon(t), hidden)
	if strings.Replace(fmt.Sprint(there), "localhost", "nobody.invalid", 1) != fmt.Sprint(missing) {
		t.Errorf("a name inside is told from one that is not there: %v, %v", there, missing)
	}
}

// TestContactElsewhere: the far end of a user's trunk can't make us send messages to an address where the trunk may
// not be.
func TestContactElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Listen: "0.0.0.0:0", Trunks: fixed(Trunk{Address: "198.51.100.9", ByIP: true,
		Allowed: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})})
	s.findCarrier(soon(t))
	source := netip.MustParseAddrPort("192.0.2.5:7777")
	for contact, want := range map[string]string{"sip:x@198.51.100.1:5070": "198.51.100.1:5070",
		"sip:x@198.51.100.9:5070": "192.0.2.5:7777", "sip:x@203.0.113.9": "192.0.2.5:7777"} {
		for _, routed := range []bool{false, true} {
			d := dialog{server: s, hop: hop{addr: source}, trunk: &Trunk{ID: 7, Number: "+15550003333"}}
			if err := sipgo.ParseUri(contact, &d.target); err != nil {
				t.Fatal(err)
			}
			if routed {
				d.route = []sipgo.Uri{d.target}
			}
			if got := d.next(soon(t)).addr.String(); got != want {
				t.Errorf("contact %s, routed %v: %s, want %s", contact, routed, got, want)
			}
			d.trunk = &Trunk{}
			if got := d.next(soon(t)).addr.String(); got == "192.0.2.5:7777" {
				t.Errorf("the carrier's own contact %s: %s", contact, got)
			}
		}
	}
}

// One address may have so many connections and no more, however long they stay open.
func TestConnectionsOfAPlace(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Answer: newAnswerer(0).answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback})})
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(soon(t), "tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(hang))
		return c
	}
	first := dial()
	for range maxFrom - 1 {
		dial()
	}
	_, err := dial().Read(make([]byte, 1))
	if !errors.Is(err, io.EOF) && (err == nil || !strings.Contains(err.Error(), "reset")) {
		t.Errorf("one place gets any number of connections: %v", err)
	}
	_ = first.SetDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one that was there before: %v", err)
	}
}

// TestConnections: one address may have so many TCP connections; an idle one is closed, unless its call is live.
func TestConnections(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	answer := func(ctx context.Context, in *Invite) {
		if in.To == "+15550001112" {
			_ = in.Refuse(486)
			return
		}
		a.answer(ctx, in)
	}
	s := prepare(t, Config{Answer: answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback},
		Trunk{ID: 2, Number: "+15550001112", ByIP: true,
			Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})})
	s.idling = 300 * time.Millisecond
	launch(t, s)
	caller := start(t, Config{})
	l, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: s.Addr().String(), Transport: "tcp"},
		To: "+15550001111", From: "+15550002222"})
	if err != nil {
		t.Fatal(err)
	}
	r := run(l, newPhone(0))
	in := a.next(t)
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(soon(t), "tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(hang))
		return c
	}
	// A connection from another address is accepted, and closed when nothing has come for a while after its last
	// message.
	other := dial("127.0.0.2")
	w := newWire(t, "127.0.0.2")
	uri := "sip:+15550001112@" + s.Addr().String()
	if _, err := io.WriteString(other, strings.Replace(w.message("INVITE", uri, "<"+uri+">", "idle", 1, ""),
		"SIP/2.0/UDP", "SIP/2.0/TCP", 1)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(other)
	if err != nil || !strings.Contains(string(all), "SIP/2.0 486") {
		t.Errorf("the idle connection brought %q, %v", all, err)
	}
	// The connection with the call is still open.
	in.phone.await(t, "the call has gone on for long", func() bool { return in.phone.ticks > 50 })
	in.stop(errDone)
	r.ends(t, parley.CustomerHangup)
	counted := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.from[netip.MustParseAddr("127.0.0.2")]
	}
	for give := time.Now().Add(hang); counted() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("%d connections are still counted", counted())
		}
	}
}

// TestPlaceOfSound: where a user's trunk may not be its sound is not sent either, whatever its description says, nor are reports or
// a handshake: they go where its signalling is. The operator's own trunk may be anywhere.
func TestPlaceOfSound(t *testing.T) {
	t.Parallel()
	within := netip.MustParseAddr("127.0.0.2")
	s := start(t, Config{Reach: func(a netip.Addr) error {
		if a == within {
			return errors.New("not public")
		}
		return nil
	}})
	for name, c := range map[string]struct {
		change    func(*Trunk)
		attribute string
		private   bool // sound goes to the address inside
	}{
		"a user's":               {func(*Trunk) {}, "", false},
		"with reports elsewhere": {func(*Trunk) {}, "a=rtcp:%d IN IP4 127.0.0.2", false},
		"with a handshake": {func(t *Trunk) { t.SRTP = "dtls" },
			"a=setup:passive\r\na=fingerprint:sha-256 " + strings.Repeat("AB:", 31) + "AB", false},
		"the operator's": {func(t *Trunk) { t.Number = "" }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			at := f.rtp.addr()
			listen := func(port uint16) *net.UDPConn {
				conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(within, port)))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return conn
			}
			inside := []*net.UDPConn{listen(at.Port()), listen(at.Port() + 1)}
			trunk := f.trunk()
			c.change(&trunk)
			out := make(chan dialled, 1)
			go func() {
				l, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
				if err != nil {
					out <- dialled{err: err}
					return
				}
				out <- dialled{leg: run(l, newPhone(1000))}
			}()
			m := f.take("INVITE")
			if strings.Contains(c.attribute, "%d") {
				c.attribute = fmt.Sprintf(c.attribute, at.Port()+1)
			}
			body := sdp(netip.AddrPortFrom(within, at.Port()), c.attribute)
			if trunk.SRTP == "dtls" {
				body = strings.Replace(body, "RTP/AVP", "UDP/TLS/RTP/SAVP", 1)
			}
			f.reply(m, "200 OK", body)
			f.take("ACK")
			l := get(t, out)
			if l.err != nil {
				t.Fatal(l.err)
			}
			right, wrong := []*net.UDPConn{f.rtp.UDPConn, f.rtp.control}, inside
			if c.private {
				right, wrong = wrong, right
			}
			comes := func(conn *net.UDPConn, until time.Time) bool {
				_ = conn.SetReadDeadline(until)
				_, _, err := conn.ReadFromUDPAddrPort(make([]byte, 2048))
				return err == nil
			}
			for range 3 {
				if !comes(right[0], time.Now().Add(hang)) {
					t.Error("nothing comes where it should")
				}
			}
			l.leg.stop(errDone)
			f.reply(f.take("BYE"), "200 OK", "")
			l.leg.ends(t, errDone)
			if trunk.SRTP == "" && !comes(right[1], time.Now().Add(hang)) {
				t.Error("no report comes where it should")
			}
			for _, conn := range wrong {
				if comes(conn, time.Now().Add(time.Millisecond)) {
					t.Errorf("something comes to %s", conn.LocalAddr())
				}
			}
		})
	}
}
