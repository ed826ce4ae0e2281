package sip

import (
	"bytes"
	"strings"
	"testing"

	sipgo "github.com/emiago/sipgo/sip"
)

// TestTidyLeaves: a message in the usual form stays as it is, byte for byte.
func TestTidyLeaves(t *testing.T) {
	t.Parallel()
	w := newWire(t, "127.0.0.1")
	offer := sdp(w.addr())
	for _, text := range []string{
		w.message("INVITE", "sip:+15550001111@192.0.2.1:5060;user=phone", "<sip:+15550001111@192.0.2.1>", "a@b", 1, offer),
		w.message("BYE", "sip:x@192.0.2.1", "<sip:x@192.0.2.1>;tag=t", "a@b", 2, "",
			`Reason: Q.850;cause=16;text="Normal call clearing"`, "Route: <sip:192.0.2.9;lr>"),
		w.message("INVITE", "sip:x@192.0.2.1", "<sip:x@192.0.2.1>", "a@b", 3, offer,
			`Authorization: Digest username="u", realm="r", nonce="n/+=", uri="sip:x@192.0.2.1", response="00", algorithm=MD5`,
			`P-Asserted-Identity: "Ann" <sip:+15550001111@192.0.2.1;user=phone>, <tel:+15550001111>`,
			"Session-Expires: 1800;refresher=uac", "Supported: 100rel, timer", "Privacy: id", "X-Order: a;b , c"),
		respond(requestOf(t, w.message("OPTIONS", "sip:x@192.0.2.1", "<sip:x@192.0.2.1>", "a@b", 4, "")), 200, "Allow", allowed).String(),
	} {
		if got := string(tidy(nil, []byte(text))); got != text {
			t.Errorf("%s\nbecame\n%s", text, got)
		}
	}
}

// TestTidyBounds: what has no end of its headers, too many of them, or lists without end is nothing.
func TestTidyBounds(t *testing.T) {
	t.Parallel()
	message := func(more string) []byte {
		return []byte("OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP b;branch=x\r\n" + more + "\r\n")
	}
	for name, c := range map[string]struct {
		text []byte
		ok   bool
	}{
		"usual":             {message(""), true},
		"nothing":           {nil, false},
		"no line":           {[]byte("OPTIONS sip:a@b SIP/2.0"), false},
		"cut off":           {[]byte("OPTIONS sip:a@b SIP/2.0\r\nVia: SIP"), false},
		"as many headers":   {message(strings.Repeat("a: b\r\n", maxHeaders-1)), true},
		"too many headers":  {message(strings.Repeat("a: b\r\n", maxHeaders+1)), false},
		"as many in a list": {message("Contact: " + strings.Repeat("<sip:a@b>,", maxValues-1) + "<sip:a@b>\r\n"), true},
		"too many in a list": {message("Contact: " + strings.Repeat("<sip:a@b>,", maxValues) + "<sip:a@b>\r\n"),
			false},
	} {
		if got := tidy(nil, c.text) != nil; got != c.ok {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTidyAllocates: nothing, once it has a place to write to.
func TestTidyAllocates(t *testing.T) {
	w := newWire(t, "127.0.0.1")
	text := []byte(w.message("INVITE", "sip:+15550001111@192.0.2.1", "<sip:+15550001111@192.0.2.1>", "a@b", 1, sdp(w.addr())))
	place := make([]byte, 0, maxMessage)
	if n := testing.AllocsPerRun(100, func() { tidy(place, text) }); n > 0 {
		t.Errorf("%g allocations for a message", n)
	}
}

// FuzzTidy: a tidied message is read, or refused, without a panic, and stays the same when it is tidied again. A message
// that the parser reads as it came is still read.
func FuzzTidy(f *testing.F) {
	for _, m := range tortures(f) {
		f.Add([]byte(m.text))
	}
	for _, form := range sipForms(f) {
		f.Add([]byte(form.text(nil)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out := tidy(nil, data)
		if len(out) > 3*len(data)+64 {
			t.Fatalf("%d bytes became %d", len(data), len(out))
		}
		m, text, _ := read(out)
		if m == nil {
			return
		}
		again := tidy(nil, text)
		if n, _, _ := read(again); n == nil {
			t.Fatalf("it can't be read again:\n%q\n%q", text, again)
		}
		if !bytes.Equal(m.Body(), mustRead(t, again).Body()) {
			t.Fatalf("another body:\n%q\n%q", text, again)
		}
	})
}

func mustRead(t *testing.T, text []byte) sipgo.Message {
	t.Helper()
	m, _, bad := read(text)
	if m == nil {
		t.Fatal(bad)
	}
	return m
}
