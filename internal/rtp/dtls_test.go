package rtp

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"

	"parley/internal/audio"
)

// talker says a tone of 440 Hz and reports when it hears a second of it.
type talker struct {
	n     int
	loud  int
	heard chan struct{}
	once  sync.Once
}

func (p *talker) Hear(audio.Frame) {}
func (p *talker) Digit(byte)       {}

func (p *talker) Tick(in, out audio.Frame) bool {
	if share(in, 500, audio.Narrow) > 0.9 {
		if p.loud++; p.loud > 25 {
			p.once.Do(func() { close(p.heard) })
		}
	}
	for i := range out {
		out[i] = [16]int16{0, 3061, 5657, 7391, 8000, 7391, 5657, 3061, 0, -3061, -5657, -7391, -8000, -7391, -5657, -3061}[p.n%16]
		p.n++
	}
	return true
}

// TestHandshake: two ends that know each other's fingerprints find keys, and hear each other; with a wrong one, neither
// hears anything, nothing is said in the clear, and both soon know that it failed. Where RTCP has a port of its own, it
// has a handshake of its own (RFC 5764).
func TestHandshake(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"right", "wrong", "two ports"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong, mux := name == "wrong", name != "two ports"
			var sessions [2]*Session
			var peers [2]*talker
			var own [2]*Identity
			var sockets [2]*Socket
			for i := range sessions {
				sock, err := NewPorts(30000, 39999).Open(netip.MustParseAddr("127.0.0.1"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(sock.Close)
				if own[i], err = NewIdentity(); err != nil {
					t.Fatal(err)
				}
				peers[i] = &talker{heard: make(chan struct{})}
				sockets[i], sessions[i] = sock, NewSession(sock, audio.Narrow, false, peers[i])
			}
			var done [2]chan struct{}
			var over [2]sync.WaitGroup
			for i, s := range sessions {
				print := own[1-i].Print
				if wrong && i == 0 {
					print = strings.Repeat("00:", 31) + "00"
				}
				to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(sockets[1-i].Port))
				s.Agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: to, Signal: to.Addr(), Mux: mux,
					DTLS: &DTLS{Active: i == 0, Hash: "sha-256", Print: print, Own: own[i]}})
				done[i] = make(chan struct{})
				over[i].Go(func() { s.Run(done[i], func() {}) })
			}
			for _, p := range peers {
				select {
				case <-p.heard:
					if wrong {
						t.Error("it is heard by somebody who can't know it")
					}
				case <-time.After(map[bool]time.Duration{false: hang, true: 700 * time.Millisecond}[wrong]):
					if !wrong {
						t.Error("nothing is heard")
					}
				}
			}
			until := func(what string, ok func() bool) {
				t.Helper()
				for deadline := time.Now().Add(hang); !ok(); time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal(what)
					}
				}
			}
			for _, s := range sessions {
				until("RTCP has no keys", func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return wrong || mux || s.reports.cover.suite() != ""
				})
				until("nobody says that it failed", func() bool { return !wrong || s.Failed() != nil })
			}
			close(done[0]) // with a last report
			over[0].Wait()
			until("no report", func() bool { return wrong || sessions[1].Stats().Reports > 0 })
			close(done[1])
			over[1].Wait()
			for _, s := range sessions {
				if (s.Failed() != nil) != wrong {
					t.Error(s.Failed())
				}
				switch stats := s.Stats(); {
				case wrong && (stats.Suite != "" || stats.Received+stats.Unreadable > 0):
					t.Errorf("%+v", stats)
				case !wrong && (stats.Suite.Size() == 0 || stats.Received == 0 || stats.Unreadable > 2):
					t.Errorf("%+v", stats)
				}
			}
		})
	}
}

// TestHandshakeAuthorities: whoever asks for a certificate of certain authorities, as linphone does, is shown ours, which
// has signed itself: they know its fingerprint.
func TestHandshakeAuthorities(t *testing.T) {
	t.Parallel()
	far, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	sock, err := NewPorts(30000, 39999).Open(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sock.Close)
	var ids [2]*Identity
	for i := range ids {
		if ids[i], err = NewIdentity(); err != nil {
			t.Fatal(err)
		}
	}
	authority, err := selfsign.GenerateSelfSignedWithDNS("somebody else")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(authority.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	at := func(port int) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	}
	conn, err := dtls.ServerWithOptions(far, net.UDPAddrFromAddrPort(at(sock.Port)), dtls.WithCertificates(ids[1].certificate),
		dtls.WithInsecureSkipVerify(true),
		dtls.WithClientAuth(dtls.RequestClientCert), dtls.WithClientCAs(pool), dtls.WithSRTPProtectionProfiles(dtls.SRTP_AES128_CM_HMAC_SHA1_80))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := NewSession(sock, audio.Narrow, false, &talker{heard: make(chan struct{})})
	to := at(far.LocalAddr().(*net.UDPAddr).Port)
	s.Agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: to, Signal: to.Addr(), Mux: true,
		DTLS: &DTLS{Active: true, Hash: "sha-256", Print: ids[1].Print, Own: ids[0]}})
	done := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() { s.Run(done, func() {}) })
	defer over.Wait()
	defer close(done)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		t.Fatal(err)
	}
	state, _ := conn.ConnectionState()
	if shown := state.PeerCertificates; len(shown) != 1 || !bytes.Equal(shown[0], ids[0].certificate.Certificate[0]) {
		t.Errorf("%d certificates are shown", len(shown))
	}
}
