package sip

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// told returns the first lines of messages, each with an arrow for its direction.
func told(list []parley.SIPMessage) (all []string) {
	for _, m := range list {
		line, _, _ := strings.Cut(m.Text, "\r\n")
		if !strings.HasPrefix(line, "SIP/2.0 ") {
			line, _, _ = strings.Cut(line, " ")
		}
		if line != "SIP/2.0 100 Trying" {
			all = append(all, map[string]string{"in": "<", "out": ">"}[m.Direction]+strings.TrimPrefix(line, "SIP/2.0 "))
		}
	}
	return all
}

// TestLadder: both ends keep the SIP messages, in order and to the end, without passwords or keys.
func TestLadder(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"udp", "tcp"} {
		a := newAnswerer(0)
		callee := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", Username: "alice",
			Password: "pass word", SRTP: "required"})})
		caller := start(t, Config{})
		trunk := Trunk{ID: 7, Number: "+15550002222", Address: callee.Addr().String(), Transport: transport,
			Username: "alice", Password: "pass word", SRTP: "required"}
		l, err := caller.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
		if err != nil {
			t.Fatal(err)
		}
		out, in := run(l, newPhone(0)), a.next(t)
		out.phone.await(t, "the call goes on", func() bool { return out.phone.ticks > 20 })
		if m := l.(*leg).Media(); m == nil || m.Codec != "G722" || m.Encryption == "" || m.Heard.Packets == 0 || m.Heard.MOS < 4 {
			t.Errorf("the sound was %+v", m)
		}
		out.hangUp(t)
		in.ends(t, parley.CustomerHangup)
		got := l.(*leg).Ladder()
		const want = ">INVITE <401 Unauthorized >ACK >INVITE <200 OK >ACK >BYE <200 OK"
		if s := strings.Join(told(got), " "); s != want {
			t.Errorf("the caller keeps %s", s)
		}
		theirs := in.leg.(*leg).Ladder()
		if s := strings.Join(told(theirs), " "); s != "<INVITE >200 OK <ACK <BYE >200 OK" {
			t.Errorf("who was called keeps %s", s)
		}
		for _, m := range append(got, theirs...) {
			for _, secret := range []string{"pass word", "response=", "cnonce"} {
				if strings.Contains(m.Text, secret) {
					t.Errorf("%s is kept:\n%s", secret, m.Text)
				}
			}
			if i := strings.Index(m.Text, "inline:"); i >= 0 && !strings.HasPrefix(m.Text[i:], "inline:[hidden]") {
				t.Errorf("a key is kept:\n%s", m.Text)
			}
			if m.Transport != transport || m.Peer == "" || m.At == 0 {
				t.Errorf("%+v", m)
			}
		}
		if len(theirs) == 0 || !strings.Contains(theirs[0].Text, "a=crypto:") {
			t.Error("the description is not there")
		}
	}
}

// TestLadderOfFailure: the error of an unanswered call has its SIP messages; over the carrier's trunk it has none.
func TestLadderOfFailure(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	s := start(t, Config{})
	dial := func(trunk Trunk) <-chan error {
		over := make(chan error, 1)
		go func() {
			_, err := s.Dial(soon(t), Dialling{Trunk: trunk, To: "+15550001111", From: "+15550002222"})
			over <- err
		}()
		return over
	}
	over := dial(f.trunk())
	f.reply(f.take("INVITE"), "486 Busy Here", "")
	f.take("ACK")
	var known interface{ Ladder() []parley.SIPMessage }
	err := get(t, over)
	if !errors.As(err, &known) || codeOf(err) != "486" {
		t.Fatal(err)
	}
	if got := strings.Join(told(known.Ladder()), " "); got != ">INVITE <486 Busy Here >ACK" {
		t.Errorf("it tells %s", got)
	}
	carrier := f.trunk()
	carrier.Number = ""
	over = dial(carrier)
	f.reply(f.take("INVITE"), "486 Busy Here", "")
	if known = nil; errors.As(get(t, over), &known) && len(known.Ladder()) > 0 {
		t.Error("what the carrier says is told")
	}
	s.ladders.mu.Lock()
	for _, l := range s.ladders.all {
		l.last = time.Now().Add(-time.Hour)
	}
	s.ladders.mu.Unlock()
	s.sweepLadders()
	if n := len(s.ladders.all); n != 0 {
		t.Errorf("%d are kept for ever", n)
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"REGISTER sip:x SIP/2.0\r\nauthorization :Digest username=\"a\",\r\n" +
			" response=\"s3cret\"\r\nVia: x\r\n\r\n": "REGISTER sip:x SIP/2.0\r\nauthorization: [hidden]\r\nVia: x\r\n\r\n",
		"INVITE sip:bob:s3cret@x SIP/2.0\r\n" +
			"To: <sips:bob:s3cret@x;a=b>;tag=1\r\n\r\n": "INVITE sip:bob:[hidden]@x SIP/2.0\r\nTo: <sips:bob:[hidden]@x;a=b>;tag=1\r\n\r\n",
		"INVITE sip:bob@x:5060 SIP/2.0\r\n" +
			"To: <sip:x:5061>, <sip:a@b>\r\n\r\n": "INVITE sip:bob@x:5060 SIP/2.0\r\nTo: <sip:x:5061>, <sip:a@b>\r\n\r\n",
		"\r\n\r\nREGISTER sip:x SIP/2.0\n" +
			"Authorization: Digest\n response=\"s3cret\"\n\n": "REGISTER sip:x SIP/2.0\r\nAuthorization: [hidden]\r\n\r\n",
		"SIP/2.0 200 OK\nVia: x\n\nv=0\na=crypto:1 A inline:s3cret\n": "SIP/2.0 200 OK\r\nVia: x\r\n\r\nv=0\r\na=crypto:1 A inline:[hidden]\r\n",
		"info\tsip:x SIP/2.0\r\nVia: x\r\n\r\nSignal=4":               "info\tsip:x SIP/2.0\r\nVia: x\r\n\r\n[hidden]",
		"INFO sip:x SIP/2.0\r\nVia: x\r\n\r\nSignal=4":                "INFO sip:x SIP/2.0\r\nVia: x\r\n\r\n[hidden]",
		"SIP/2.0 200 OK\r\n\r\nv=0\r\na=crypto:1 A INLINE:s3cret|2^31\r\n" +
			"a=x\r\n": "SIP/2.0 200 OK\r\n\r\nv=0\r\na=crypto:1 A INLINE:[hidden]\r\na=x\r\n",
	} {
		if got := redacted([]byte(text)); got != want {
			t.Errorf("%q\n is %q\n not %q", text, got, want)
		}
	}
}

// FuzzRedacted: any message is kept as text of limited length, without its keys.
func FuzzRedacted(f *testing.F) {
	f.Add([]byte("INVITE sip:x SIP/2.0\r\nCall-ID: 1\r\nAuthorization: Digest\r\n x\r\n\r\na=crypto:1 x inline:abc\r\n"))
	f.Add([]byte("i : \xff\r\n\r\ninline:\r\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = callIDOf(data)
		text := redacted(data)
		if len(text) > maxText+8 || strings.ContainsRune(text, 0) || strings.ToValidUTF8(text, "") != text {
			t.Errorf("%q", text)
		}
		if again := redacted([]byte(text)); len(text) < maxText && !strings.HasPrefix(strings.ToUpper(text), "INFO") && again != text {
			t.Errorf("%q is redacted once more to %q", text, again)
		}
	})
}
