package rtp

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtcp"
	pion "github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"parley/internal/audio"
)

var allSuites = []Suite{AES80, AES32, AESGCM, AES256x80, AES256x32}

// covered returns a session that encrypts, and the far end's contexts to encrypt and decrypt with.
func covered(t testing.TB, suite Suite, p audio.Peer) (m *Session, w *wire, seal, open *srtp.Context) {
	t.Helper()
	m, w = desk(t, audio.PCMU, true, p)
	in, out := NewKey(suite), NewKey(suite)
	m.agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: w.addr(), Signal: w.addr().Addr(),
		In: in, Out: out}, 0)
	return m, w, contextOf(t, in), contextOf(t, out)
}

func contextOf(t testing.TB, k Key) *srtp.Context {
	t.Helper()
	c, err := k.context()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sealed(t testing.TB, c *srtp.Context, plain []byte) []byte {
	t.Helper()
	out, err := c.EncryptRTP(nil, plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// voice makes a packet with some sound.
func voice(seq uint16) []byte {
	return packet(0, false, seq, uint32(seq)*frameTicks, 9, bytes.Repeat([]byte{0x55}, audio.FrameBytes))
}

func TestEncrypted(t *testing.T) {
	for _, suite := range allSuites {
		t.Run(string(suite), func(t *testing.T) {
			p := &still{}
			m, w, seal, open := covered(t, suite, p)
			at := time.Duration(0)
			for seq := range uint16(10) {
				at += frameTime
				m.packet(sealed(t, seal, voice(seq)), w.addr(), at)
			}
			if p.heard != 10 {
				t.Errorf("heard %d frames of 10", p.heard)
			}
			m.packet(voice(10), w.addr(), at) // unencrypted
			forged := sealed(t, seal, voice(11))
			forged[20] ^= 1
			m.packet(forged, w.addr(), at)
			m.packet(sealed(t, contextOf(t, NewKey(suite)), voice(12)), w.addr(), at) // encrypted with another key
			if p.heard != 10 {
				t.Error("what the far end did not encrypt was heard")
			}
			if s := m.Stats(); s.Received != 10 || s.Suite != suite || s.Unreadable != 3 {
				t.Errorf("counted %+v", s)
			}
			// A stranger can't take the call over with a packet that is not encrypted with its key.
			thief := newWire(t, "127.0.0.1")
			m.packet(voice(13), thief.addr(), at)
			m.tick(at, 0)
			buf := make([]byte, 2048)
			_ = w.SetReadDeadline(time.Now().Add(hang))
			n, _, err := w.ReadFromUDPAddrPort(buf)
			if err != nil {
				t.Fatal(err)
			}
			h := &pion.Header{}
			plain, err := open.DecryptRTP(nil, buf[:n], h)
			if err != nil || h.PayloadType != 0 || len(plain) != headerSize+audio.FrameBytes {
				t.Fatalf("what is sent: %d octets, %v, %v", len(plain), h, err)
			}
			if bytes.Contains(buf[:n], plain[headerSize:headerSize+32]) {
				t.Error("the sound goes in the clear")
			}
		})
	}
}

// TestEncryptedReports: RTCP is encrypted both ways, and unencrypted reports are ignored.
func TestEncryptedReports(t *testing.T) {
	for _, suite := range allSuites {
		m, w, seal, open := covered(t, suite, &still{})
		m.packet(sealed(t, seal, voice(1)), w.addr(), 0)
		m.tick(0, 0)
		m.mu.Lock()
		m.report(time.Second, false)
		m.mu.Unlock()
		buf := make([]byte, 2048)
		_ = w.control.SetReadDeadline(time.Now().Add(hang))
		n, _, err := w.control.ReadFromUDPAddrPort(buf)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(buf[:n], []byte(m.reports.name)) {
			t.Error("a report goes in the clear")
		}
		plain, err := open.DecryptRTCP(nil, buf[:n], nil)
		if err != nil || !bytes.Contains(plain, []byte(m.reports.name)) {
			t.Fatalf("%s: our report can't be read: %v", suite, err)
		}
		theirs := marshal(t, &rtcp.ReceiverReport{SSRC: 9, Reports: []rtcp.ReceptionReport{{SSRC: m.sender.Header.SSRC}}},
			rtcp.NewCNAMESourceDescription(9, "x"))
		m.control(theirs, w.control.LocalAddr().(*net.UDPAddr).AddrPort(), time.Second)
		if m.Stats().Reports != 0 {
			t.Error("a report in the clear was believed")
		}
		data, err := seal.EncryptRTCP(nil, theirs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a replay counts once
			m.control(data, w.control.LocalAddr().(*net.UDPAddr).AddrPort(), time.Second)
		}
		if n := m.Stats().Reports; n != 1 {
			t.Errorf("%s: %d reports were read, want 1", suite, n)
		}
	}
}

func TestEncryptedAllocations(t *testing.T) {
	for _, suite := range allSuites {
		m, w, seal, _ := covered(t, suite, &still{})
		at, next := time.Duration(0), 0
		var packets [][]byte
		for seq := range uint16(700) {
			packets = append(packets, sealed(t, seal, voice(seq)))
		}
		m.packet(packets[0], w.addr(), 0)
		if n := testing.AllocsPerRun(300, func() {
			next++
			at += frameTime
			m.packet(packets[next], w.addr(), at)
		}); n != 0 {
			t.Errorf("%s: %v allocations per packet received", suite, n)
		}
		if n := testing.AllocsPerRun(200, func() { at += frameTime; m.tick(at, 0) }); n != 0 {
			t.Errorf("%s: %v allocations per packet sent", suite, n)
		}
		if m.Stats().Unreadable != 0 {
			t.Error("a packet was not read")
		}
	}
}

// TestReplay sends packets again, late, out of order, and past the end of the sequence numbers.
func TestReplay(t *testing.T) {
	m, w, seal, _ := covered(t, AES80, &still{})
	n := 70_000 // the sequence numbers wrap once
	rng := rand.New(rand.NewPCG(1, 2))
	got := 0
	take := func(data []byte) bool {
		before := m.cover.unreadable
		m.packet(data, w.addr(), 0)
		return m.cover.unreadable == before
	}
	var recent, old [][]byte
	for i := range n {
		data := sealed(t, seal, voice(uint16(i+30_000)))
		if !take(data) {
			t.Fatalf("packet %d was not read", i)
		}
		got++
		if recent = append(recent, data); len(recent) > 60 {
			recent = recent[1:]
		}
		if i%1000 == 0 {
			old = append(old, data)
		}
		if i%97 == 0 && take(recent[rng.IntN(len(recent))]) {
			t.Fatalf("a packet was taken twice, after %d", i)
		}
	}
	for _, data := range old {
		if take(data) {
			t.Error("a packet of long ago was taken again")
		}
	}
	late := sealed(t, seal, voice(uint16(n+30_000)))
	for i := range 20 {
		take(sealed(t, seal, voice(uint16(n+30_001+i))))
	}
	if !take(late) || take(late) {
		t.Error("a late packet counts once")
	}
}

// TestRekey: after a new key, the far end's packets with the old key are heard until its first packet with the new
// one, and never after.
func TestRekey(t *testing.T) {
	p := &still{}
	m, w, seal, open := covered(t, AES80, p)
	agree := func(in, out Key) {
		m.agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: w.addr(), Signal: w.addr().Addr(),
			In: in, Out: out}, time.Second)
	}
	hears := func(data []byte, want bool) {
		t.Helper()
		before := p.heard
		m.packet(data, w.addr(), time.Second)
		if (p.heard > before) != want {
			t.Errorf("heard: %v", !want)
		}
	}
	hears(sealed(t, seal, voice(1)), true)
	// Negotiated again, with the same keys: both streams go on.
	agree(m.cover.in, m.cover.out)
	hears(sealed(t, seal, voice(2)), true)
	m.tick(time.Second, 0)
	buf := make([]byte, 2048)
	_ = w.SetReadDeadline(time.Now().Add(hang))
	n, _, _ := w.ReadFromUDPAddrPort(buf)
	if _, err := open.DecryptRTP(nil, buf[:n], nil); err != nil {
		t.Error(err)
	}
	in, out := NewKey(AESGCM), NewKey(AESGCM)
	agree(in, out)
	fresh := contextOf(t, in)
	hears(sealed(t, seal, voice(3)), true)
	hears(sealed(t, fresh, voice(4)), true)
	hears(sealed(t, seal, voice(5)), false)
	m.tick(time.Second, 0)
	n, _, _ = w.ReadFromUDPAddrPort(buf)
	if _, err := contextOf(t, out).DecryptRTP(nil, buf[:n], nil); err != nil {
		t.Error(err)
	}
	// Without encryption nothing of the old keys remains.
	agree(Key{}, Key{})
	hears(sealed(t, fresh, voice(6)), true) // as if it were plain
	hears(voice(7), true)
}

// TestHalfAgreed: while the far end's key is unknown, nothing is sent or heard unencrypted.
func TestHalfAgreed(t *testing.T) {
	p := &still{}
	m, w, _, open := covered(t, AES80, p)
	out := m.cover.out
	m.agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: w.addr(), Signal: w.addr().Addr(),
		Out: out}, 0)
	m.packet(voice(1), w.addr(), 0)
	if p.heard != 0 {
		t.Error("sound in the clear was heard")
	}
	m.tick(0, 0)
	buf := make([]byte, 2048)
	_ = w.SetReadDeadline(time.Now().Add(hang))
	n, _, _ := w.ReadFromUDPAddrPort(buf)
	if _, err := open.DecryptRTP(nil, buf[:n], nil); err != nil {
		t.Error(err)
	}
	m.agree(Agreement{Codec: codecOf(audio.PCMU, true), Direction: both, Told: w.addr(), Signal: w.addr().Addr(),
		Out: Key{Suite: AES80, Secret: "short"}}, 0)
	m.tick(0, 0)
	if p, _ := w.listen(50 * time.Millisecond); p != nil {
		t.Error("without a key that fits something was sent")
	}
}

func TestManySources(t *testing.T) {
	m, w, seal, _ := covered(t, AES80, &still{})
	for i := range uint32(200) {
		m.packet(sealed(t, seal, packet(0, false, 1, 0, i, make([]byte, audio.FrameBytes))), w.addr(), 0)
	}
	if n := len(m.cover.open.sources); n != maxSources {
		t.Errorf("%d sources are remembered", n)
	}
}

func TestKeyIsNotTold(t *testing.T) {
	k := NewKey(AES80)
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("call", "key", k, "agreement", Agreement{In: k})
	fmt.Fprintf(&b, "%v %+v %#v %s %q %x", k, Agreement{In: k}, Agreement{In: k}, k, k, k)
	_, err := Key{Suite: AES80, Secret: k.Secret[1:]}.context()
	fmt.Fprint(&b, err)
	for _, form := range []string{"%s", "%q", "%x", "%v"} {
		text := strings.Trim(fmt.Sprintf(form, k.Secret[4:]), `"`)
		list := strings.Trim(fmt.Sprint([]byte(k.Secret[4:])), "[]")
		if strings.Contains(b.String(), text) || strings.Contains(b.String(), list) {
			t.Fatalf("the key is told: %s", b.String())
		}
	}
}

// FuzzSRTP: no packet makes a session that encrypts fail, and none is heard.
func FuzzSRTP(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add(voice(1), uint8(0))
	f.Add(append(voice(1), make([]byte, 10)...), uint8(1))
	f.Add([]byte{0x90, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0xBE, 0xDE, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, uint8(2))
	f.Add([]byte{0x80, 200, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint8(1))
	p := &still{}
	type one struct {
		m *Session
		w *wire
	}
	var all []one
	for _, suite := range allSuites {
		m, w, _, _ := covered(f, suite, p)
		all = append(all, one{m, w})
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		o := all[int(which)%len(all)]
		o.m.packet(bytes.Clone(data), o.w.addr(), 0)
		o.m.control(bytes.Clone(data), o.w.addr(), 0)
		if p.heard != 0 || o.m.Stats().Reports != 0 {
			t.Error("a forged packet was taken")
		}
	})
}
