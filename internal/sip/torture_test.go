package sip

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// escaped is a byte that the files write as \xNN.
var escaped = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// torture is a message of RFC 4475, and the answers that it must get over UDP and over TCP; "none" is no answer.
type torture struct{ name, text, udp, tcp string }

// tortures are the messages of RFC 4475, addressed to this server, and a few in their style.
func tortures(t testing.TB) (list []torture) {
	t.Helper()
	files, err := filepath.Glob("testdata/torture/*.sip")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d messages, %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(string(b), "\n")
		expect, _, _ := strings.Cut(strings.TrimPrefix(first, "# "), ":")
		udp, tcp, differs := strings.Cut(expect, " tcp=")
		if !differs {
			tcp = udp
		}
		list = append(list, torture{strings.TrimSuffix(filepath.Base(f), ".sip"), unescaped(strings.ReplaceAll(rest, "\n", "\r\n")),
			udp, tcp})
	}
	return list
}

// unescaped has the bytes that a text writes as \xNN.
func unescaped(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(s string) string {
		v, _ := strconv.ParseUint(s[2:], 16, 8)
		return string([]byte{byte(v)})
	})
}

// finalIn is the status of the first final answer in a text.
func finalIn(text string) string {
	for line := range strings.SplitSeq(text, "\r\n") {
		if code, ok := strings.CutPrefix(line, "SIP/2.0 "); ok && code >= "2" {
			return code[:min(3, len(code))]
		}
	}
	return "none"
}

// awaitFinal is the status of the first final answer over UDP. Where there must be none, it waits only briefly.
func (w *wire) awaitFinal(want string) string {
	within := hang
	if want == "none" {
		within = 50 * time.Millisecond
	}
	for {
		m := w.receive(within)
		if m == "" {
			return "none"
		}
		if got := finalIn(m); got != "none" {
			return got
		}
	}
}

// finalOver sends a text over a stream, and returns the status of the first final answer.
func finalOver(t testing.TB, c net.Conn, text, want string) string {
	t.Helper()
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	within := hang
	if want == "none" {
		within = 50 * time.Millisecond
	}
	_ = c.SetReadDeadline(time.Now().Add(within))
	var all []byte
	for buf := make([]byte, 4096); ; {
		n, err := c.Read(buf)
		all = append(all, buf[:n]...)
		if got := finalIn(string(all)); got != "none" || err != nil {
			return got
		}
	}
}

// TestTorture sends them to the port: each is answered correctly over UDP and TCP, and afterwards an ordinary call works.
// Strangers get no answer.
func TestTorture(t *testing.T) {
	t.Parallel()
	list := tortures(t)
	a := newAnswerer(1000)
	trunk := Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}
	s := start(t, Config{Softphone: true, Answer: a.answer, Trunks: fixed(trunk)})
	filled := func(m torture, wire, from string) string {
		return strings.NewReplacer("{server}", s.Addr().String(), "{wire}", wire, "{branch}", token(12), "{callid}",
			m.name+from).Replace(m.text)
	}
	for _, m := range list {
		w := newWire(t, "127.0.0.1")
		w.send(s.Addr(), filled(m, w.addr().String(), "udp"))
		if got := w.awaitFinal(m.udp); got != m.udp {
			t.Errorf("%s was answered with %s, want %s", m.name, got, m.udp)
		}
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if got := finalOver(t, c, filled(m, "127.0.0.1:9", "tcp"), m.tcp); got != m.tcp {
			t.Errorf("%s over TCP was answered with %s, want %s", m.name, got, m.tcp)
		}
	}
	stranger := newWire(t, "127.0.0.2")
	for _, m := range list {
		stranger.send(s.Addr(), filled(m, stranger.addr().String(), "far"))
	}
	if m := stranger.receive(100 * time.Millisecond); m != "" {
		t.Errorf("a stranger's was answered: %s", m)
	}
	for len(a.calls) > 0 {
		(<-a.calls).stop(errDone)
	}
	w := newWire(t, "127.0.0.1")
	c := w.call(s, "")
	in := a.next(t)
	c.rtp.talk(c.media(), 440, 1)
	in.phone.hears(t, 440)
	if m := c.ask("BYE", ""); !strings.HasPrefix(m, "SIP/2.0 200") {
		t.Error(m)
	}
}

// FuzzMessage: no message makes the server fail, not even one from a known address.
func FuzzMessage(f *testing.F) {
	for _, m := range tortures(f) {
		f.Add([]byte(m.text), true)
	}
	s := prepare(f, Config{Softphone: true, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback}, Trunk{ID: 2, Number: "+15550001112", Username: "bob", Password: "x"})})
	launch(f, s)
	w := newWire(f, "127.0.0.1")
	f.Fuzz(func(t *testing.T, data []byte, friend bool) {
		if n, err := messageSize(data); err == nil && n > len(data) {
			t.Fatalf("a message of %d bytes in %d", n, len(data))
		}
		if friend { // through the socket and the transactions
			_, _ = w.WriteToUDPAddrPort(data, s.Addr())
		} else { // no address twice: the firewall would not look
			s.admit(nil, data, netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, byte(rand.Uint32()),
				byte(rand.Uint32())}), 5060), nil)
		}
	})
}

func TestMessageSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"OPTIONS x SIP/2.0\r\nl: 3\r\n\r\nabcdef": 30, "A\r\nContent-Length : 0\r\n\r\n": 25,
		"A\r\nContent-Length: 5\r\n\r\nabc": 0, "A\r\nContent-Le": 0,
		"A\r\n\r\n": -1, "A\r\nContent-Length: x\r\n\r\n": -1, "A\r\nContent-Length: 1\r\nl: 2\r\n\r\nab": -1,
		"A\r\nl: 99999\r\n\r\n": -1, strings.Repeat("A", 70000): -1,
	} {
		got, err := messageSize([]byte(text))
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%.40q: %d, want %d (%v)", text, got, want, err)
		}
	}
}
