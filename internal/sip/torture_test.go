package sip

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// escaped is a byte that the files write as \xNN.
var escaped = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// tortures are messages in the style of RFC 4475, by name: the expected answer, and their text.
func tortures(t testing.TB) (names []string, expect, text map[string]string) {
	t.Helper()
	files, err := filepath.Glob("testdata/torture/*.sip")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d messages, %v", len(files), err)
	}
	expect, text = map[string]string{}, map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".sip")
		first, rest, _ := strings.Cut(string(b), "\n")
		rest = strings.ReplaceAll(rest, "\n", "\r\n")
		names = append(names, name)
		expect[name] = strings.TrimPrefix(first, "# ")
		text[name] = escaped.ReplaceAllStringFunc(rest, func(s string) string {
			v, _ := strconv.ParseUint(s[2:], 16, 8)
			return string([]byte{byte(v)})
		})
	}
	return names, expect, text
}

// TestTorture sends them to the port: each is answered correctly over UDP, and afterwards an ordinary call works. Over
// TCP and from strangers nothing fails either.
func TestTorture(t *testing.T) {
	t.Parallel()
	names, expect, text := tortures(t)
	a := newAnswerer(1000)
	trunk := Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}
	s := start(t, Config{Softphone: true, Answer: a.answer, Trunks: fixed(trunk)})
	filled := func(name, wire, from string) string {
		return strings.NewReplacer("{server}", s.Addr().String(), "{wire}", wire, "{branch}", token(12), "{callid}",
			name+from).Replace(text[name])
	}
	for _, name := range names {
		w := newWire(t, "127.0.0.1")
		w.send(s.Addr(), filled(name, w.addr().String(), "udp"))
		got, within := "none", hang
		if expect[name] == "none" || strings.Contains(expect[name], "any") {
			within = 50 * time.Millisecond
		}
		for {
			m := w.receive(within)
			if m == "" {
				break
			}
			if f := strings.Fields(m); len(f) > 1 && f[0] == "SIP/2.0" && f[1] >= "200" {
				got = f[1]
				break
			}
		}
		if want := strings.Fields(expect[name]); !slices.Contains(want, got) && !slices.Contains(want, "any") {
			t.Errorf("%s was answered with %s, want %s", name, got, expect[name])
		}
	}
	for _, name := range names {
		byTCP(t, "127.0.0.1", s.Addr(), filled(name, "127.0.0.1:9", "tcp"), 5*time.Millisecond)
	}
	stranger := newWire(t, "127.0.0.2")
	for _, name := range names {
		stranger.send(s.Addr(), filled(name, stranger.addr().String(), "far"))
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
	_, _, text := tortures(f)
	for _, m := range text {
		f.Add([]byte(m), true)
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
			s.admit(data, netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, byte(rand.Uint32()),
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
