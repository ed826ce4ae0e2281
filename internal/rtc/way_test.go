package rtc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/turn/v5"
	"github.com/pion/webrtc/v4"

	"parley/internal/parley"
)

// talks has a browser call and speak until sound has come both ways, and returns the leg and what the call ends with.
func talks(t *testing.T, s *Server, b *browser, connect func(leg *Leg)) (*Leg, *listener, chan error) {
	t.Helper()
	p, ended := newListener(), make(chan error, 1)
	leg := b.dial(s, func(l *Leg, err error) {
		if err == nil {
			err = l.Run(context.Background(), p)
		}
		ended <- err
	})
	if connect != nil {
		connect(leg)
	}
	is(t, b.states, webrtc.PeerConnectionStateConnected)
	ctx, quiet := context.WithCancel(context.Background())
	var speaking sync.WaitGroup
	speaking.Go(func() { b.speak(ctx, speech(t)) })
	t.Cleanup(func() { quiet(); speaking.Wait() })
	hears(t, b, p)
	return leg, p, ended
}

// hears waits until both ends hear each other from now on.
func hears(t *testing.T, b *browser, p *listener) {
	t.Helper()
	var frames int
	p.until(t, func() bool { frames = p.frames; return true })
	p.until(t, func() bool { return p.frames > frames+20 })
	for len(b.heard) > 0 {
		<-b.heard
	}
	<-b.heard
}

// path is how a browser is connected: the kind of its candidate, and the protocol to ours.
func (b *browser) path() (kind, protocol string) {
	pair, err := b.SCTP().Transport().ICETransport().GetSelectedCandidatePair()
	if err != nil || pair == nil {
		b.t.Fatalf("no pair: %v", err)
	}
	return pair.Local.Typ.String(), pair.Remote.Protocol.String()
}

// A network that lets no UDP through: the browser comes by TCP, on the same port.
func TestCallByTCP(t *testing.T) {
	var bound int
	s := listening(t, Config{Bound: func(l net.Listener) net.Listener { bound++; return l }})
	b := call(t, func(e *webrtc.SettingEngine) { e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeTCP4}) })
	_, _, ended := talks(t, s, b, nil)
	if kind, protocol := b.path(); kind != "host" || protocol != "tcp" {
		t.Errorf("it is connected by %s, %s", kind, protocol)
	}
	if bound != 1 {
		t.Errorf("the connections of an address are limited by %d", bound)
	}
	if err := b.GracefulClose(); err != nil {
		t.Fatal(err)
	}
	is(t, ended, error(parley.CustomerHangup))
}

// reconnect connects a browser anew, with other servers to help it.
func (b *browser) reconnect(leg *Leg, servers ...webrtc.ICEServer) error {
	b.t.Helper()
	<-webrtc.GatheringCompletePromise(b.PeerConnection) // Pion sets the servers without regard to whoever gathers with them
	if err := b.SetConfiguration(webrtc.Configuration{ICEServers: servers}); err != nil {
		b.t.Fatal(err)
	}
	offer, err := b.CreateOffer(&webrtc.OfferOptions{ICERestart: true})
	if err != nil {
		b.t.Fatal(err)
	}
	gathered := webrtc.GatheringCompletePromise(b.PeerConnection)
	if err := b.SetLocalDescription(offer); err != nil {
		b.t.Fatal(err)
	}
	<-gathered
	theirs, err := ReadFragment(offer.SDP)
	if err != nil {
		b.t.Fatal(err)
	}
	ours, err := leg.Restart(b.t.Context(), theirs)
	if err != nil {
		return err
	}
	sent, err := ReadFragment(ours.String())
	if err != nil || sent.Name != ours.Name || sent.Password != ours.Password || len(sent.Candidates) == 0 {
		b.t.Fatalf("%q is read as %+v: %v", ours, sent, err)
	}
	if err := b.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: b.answerWith(sent)}); err != nil {
		b.t.Fatal(err)
	}
	return nil
}

// answerWith is the answer that the browser has, with another connection.
func (b *browser) answerWith(f Fragment) string {
	var out strings.Builder
	for line := range strings.Lines(b.CurrentRemoteDescription().SDP) {
		switch {
		case strings.HasPrefix(line, "a=candidate:"), strings.HasPrefix(line, "a=end-of-candidates"):
			continue
		case strings.HasPrefix(line, "a=ice-ufrag:"):
			line = "a=ice-ufrag:" + f.Name + "\r\n"
		case strings.HasPrefix(line, "a=ice-pwd:"):
			line = "a=ice-pwd:" + f.Password + "\r\n"
			for _, c := range f.Candidates {
				line += "a=" + c + "\r\n"
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

// A browser whose network changes connects anew, and the call goes on: the same leg, the same keys.
func TestRestart(t *testing.T) {
	s := listening(t, Config{})
	b := call(t)
	b.gaps = true // until the new way is found
	leg, p, ended := talks(t, s, b, nil)
	was := leg.Connection()
	theirs, err := ReadFragment(b.LocalDescription().SDP)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := leg.Restart(t.Context(), theirs); err != nil || same.Tag() != was.Tag() {
		t.Errorf("who tells where it is reached gets %v, %v", same, err)
	}
	for n := range 2 {
		if err := b.reconnect(leg); err != nil {
			t.Fatal(err)
		}
		hears(t, b, p)
		now := leg.Connection()
		if now.Tag() == was.Tag() {
			t.Errorf("it is still connection %s", was.Tag())
		}
		theirs, err := ReadFragment(b.LocalDescription().SDP)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := leg.Restart(t.Context(), theirs); err != nil || same.Tag() != now.Tag() || leg.restarts != n+1 {
			t.Errorf("who tells where it is reached now gets %v, %v, after %d restarts", same, err, leg.restarts)
		}
	}
	if _, _, err := leg.Reconnect(t.Context(), was.Tag(), theirs.String()); !isKind(err, parley.Stale) {
		t.Errorf("a connection that was replaced since: %v", err)
	}
	if _, changed, err := leg.Reconnect(t.Context(), leg.Connection().Tag(), b.LocalDescription().SDP); err != nil || changed {
		t.Errorf("the present connection: %v, %v", changed, err)
	}
	leg.restarts = maxRestarts
	if err := b.reconnect(leg); err == nil {
		t.Error("it may connect anew for ever")
	}
	if !s.Hangup(leg.ID) {
		t.Error("the call is gone")
	}
	is(t, ended, error(parley.CustomerHangup))
	if _, err := leg.Restart(t.Context(), Fragment{Name: "other", Password: theirs.Password}); err == nil {
		t.Error("a call that is over was connected anew")
	}
}

func isKind(err error, kind parley.Kind) bool {
	var e *parley.Error
	return errors.As(err, &e) && e.Kind == kind
}

func TestFragment(t *testing.T) {
	password := strings.Repeat("a", 22)
	for text, ok := range map[string]bool{
		"a=ice-ufrag:abcd\r\na=ice-pwd:" + password + "\r\n":                    true,
		"a=ice-ufrag:abcd\na=ice-pwd:" + password:                               true,
		"a=ice-ufrag:abc\r\na=ice-pwd:" + password:                              false,
		"a=ice-ufrag:abcd\r\na=ice-pwd:" + password[1:]:                         false,
		"a=ice-ufrag:ab d\r\na=ice-pwd:" + password:                             false,
		"a=ice-ufrag:abcd\r\n":                                                  false,
		"a=ice-ufrag:" + strings.Repeat("a", 257) + "\r\na=ice-pwd:" + password: false,
		"": false,
	} {
		if _, err := ReadFragment(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// turnOver serves TURN on a port of its own, as the HTTPS server does once the handshake is done.
func turnOver(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.Relay(c)
		}
	})
	t.Cleanup(func() { l.Close(); work.Wait() })
	return l.Addr().String()
}

// A network that lets nothing but HTTPS through, and a server whose port has another address outside: the browser doesn't
// reach it, connects anew by the relay, and does.
func TestCallByRelay(t *testing.T) {
	s := listening(t, Config{Relays: true, External: netip.MustParseAddr("192.0.2.1")})
	at := turnOver(t, s)
	b := call(t)
	leg, p, ended := talks(t, s, b, func(leg *Leg) {
		list := leg.Helpers("talk.example.com:443")
		if len(list) != 1 || list[0].URLs[0] != "turns:talk.example.com:443?transport=tcp" || leg.Helpers("") != nil {
			t.Fatalf("the browser is helped by %+v", list)
		}
		if err := b.reconnect(leg, webrtc.ICEServer{URLs: []string{"turn:" + at + "?transport=tcp"}, Username: list[0].Username,
			Credential: list[0].Password}); err != nil {
			t.Fatal(err)
		}
	})
	if kind, protocol := b.path(); kind != "relay" || protocol != "udp" {
		t.Errorf("it is connected by %s, %s", kind, protocol)
	}
	hears(t, b, p)
	if err := b.GracefulClose(); err != nil {
		t.Fatal(err)
	}
	is(t, ended, error(parley.CustomerHangup))
	<-leg.Done()
}

// The relay lets in the calls that are there and reaches nothing but the media port.
func TestRelayRefuses(t *testing.T) {
	s := listening(t, Config{Relays: true})
	at := turnOver(t, s)
	b := call(t)
	leg, _, _ := talks(t, s, b, nil)
	own := leg.Helpers("h")[0]
	allocate := func(name, password string) (net.PacketConn, error) {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		k, err := turn.NewClient(&turn.ClientConfig{TURNServerAddr: at, Conn: turn.NewSTUNConn(c), Username: name, Password: password,
			Realm: realm, LoggerFactory: &logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled}})
		if err == nil {
			err = k.Listen()
		}
		if err != nil {
			t.Fatal(err)
		}
		relayed, err := k.Allocate()
		t.Cleanup(func() {
			if err == nil {
				relayed.Close()
			}
			k.Close()
			c.Close()
		})
		return relayed, err
	}
	for _, who := range [][2]string{{own.Username, "wrong"}, {"nobody", own.Password}, {"", ""}} {
		if _, err := allocate(who[0], who[1]); err == nil {
			t.Errorf("%q was let in", who)
		}
	}
	relayed, err := allocate(own.Username, own.Password)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, to := range []string{"127.0.0.2:" + fmt.Sprint(s.Addr().(*net.UDPAddr).Port), "192.0.2.1:53", "[::1]:53"} {
		addr, _ := net.ResolveUDPAddr("udp", to)
		if _, err := relayed.WriteTo([]byte("hello"), addr); err == nil {
			t.Errorf("%s may be reached", to)
		}
	}
	// The address of the media port may be reached, other ports of it get nothing: what comes next is for the right one.
	w := &way{relay: s.relay, names: map[netip.AddrPort]net.Addr{}}
	if w.UDPConn, err = net.ListenUDP("udp", nil); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteTo([]byte("x"), other.LocalAddr()); err != nil || len(w.names) != 0 {
		t.Errorf("another port was written to: %v, %v", w.names, err)
	}
	if _, err := w.WriteTo([]byte("x"), s.Addr()); err != nil || len(w.names) != 1 {
		t.Errorf("the media port was not written to: %v, %v", w.names, err)
	}
	for n := 1; ; n++ {
		if _, err := allocate(own.Username, own.Password); err != nil {
			if n != maxRelays {
				t.Errorf("%d relays were had", n)
			}
			break
		}
		if n > maxRelays {
			t.Fatal("a call may have any number of relays")
		}
	}
	s.Hangup(leg.ID)
	if err := b.GracefulClose(); err != nil {
		t.Fatal(err)
	}
	<-leg.Done()
	for s.Leg(leg.ID) != nil { // until it is released
		runtime.Gosched()
	}
	if _, _, ok := s.relay.key(&turn.RequestAttributes{Username: own.Username, Realm: realm}); ok {
		t.Error("a call that is over is let in")
	}
}

// A message of a length that none has ends its connection. (The library would read it for ever.)
func TestRelayFrames(t *testing.T) {
	s := listening(t, Config{Relays: true})
	at := turnOver(t, s)
	cookie := "\x21\x12\xa4\x42" + strings.Repeat("x", 12)
	for _, sent := range []string{
		"\x00\x01\xff\xec" + cookie, // 65,516 and 20 are 0 in 16 bits
		"\x00\x01\x00\x00" + cookie + "\x40\x00\xff\xfcxxxxxxxx",
		"\x00\x01\x00\x03" + cookie, "\x00\x03\x08\x00" + cookie, "GET / HTTP/1.1\r\n\r\n", "\x80\x00\x00\x00",
	} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(relayStart / 2)) // before it is closed for saying nothing
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v", sent, err)
		}
		c.Close()
	}
}

// Messages come whole, in whichever pieces the network brings them.
func TestFramed(t *testing.T) {
	r := &relay{kept: map[*framed]bool{}, done: make(chan struct{})}
	near, far := net.Pipe()
	f := &framed{Conn: near, relay: r, wait: time.Minute}
	if !r.keep(f) {
		t.Fatal("it is not kept")
	}
	want := []string{"\x00\x03\x00\x04" + strings.Repeat("a", 20), "\x40\x00\x00\x05bbbbb\x00\x00\x00",
		"\x00\x01\x00\x00" + strings.Repeat("c", 16)}
	var sending sync.WaitGroup
	sending.Go(func() {
		for all := []byte(strings.Join(want, "")); len(all) > 0; {
			n := min(len(all), 7)
			far.Write(all[:n])
			all = all[n:]
		}
		far.Close()
	})
	for _, message := range want {
		got := make([]byte, len(message))
		if n, err := f.Read(got[:3]); n != 3 || err != nil { // the rest of a message is not lost
			t.Fatal(n, err)
		}
		if n, err := f.Read(got[3:]); n != len(message)-3 || err != nil || string(got) != message {
			t.Errorf("%q came as %q: %v", message, got, err)
		}
	}
	if _, err := f.Read(make([]byte, 10)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	sending.Wait()
	f.Close()
	f.Close()
	r.work.Wait()
}

// The operator's own servers are told with a name that expires, or with a fixed one.
func TestOwnTURN(t *testing.T) {
	url := []string{"turn:turn.example.com"}
	s := listening(t, Config{TURN: TURN{URLs: url, Secret: "s"}})
	l := &Leg{server: s}
	l.help()
	got := l.Helpers("h")
	if len(got) != 1 || !strings.Contains(got[0].Username, ":") || len(got[0].Password) != 28 {
		t.Errorf("the browser is told %+v", got)
	}
	s.TURN = TURN{URLs: url, User: "u", Password: "p"}
	l.help()
	if got := l.Helpers(""); len(got) != 1 || got[0].Username != "u" || got[0].Password != "p" {
		t.Errorf("the browser is told %+v", got)
	}
}
