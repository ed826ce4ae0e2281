package sip

import (
	"strings"
	"testing"

	"parley/internal/audio"
)

// TestDialByInfo presses keys in a call without telephone-event: as tones, until the far end sends a key by INFO; then
// by INFO, until the far end refuses that.
func TestDialByInfo(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 0)
	c := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	c.ask("INVITE", strings.ReplaceAll(sdp(c.rtp.addr()), " 101\r\n", "\r\n"))
	c.ack("")
	in := a.next(t)
	tone := func(key byte) {
		t.Helper()
		decoder, detector := audio.NewDecoder(audio.PCMU), audio.NewDigitDetector(audio.Narrow)
		for {
			p, _ := c.rtp.listen(hang)
			if p == nil {
				t.Fatalf("the tone %c isn't heard", key)
			}
			if len(p.Payload) == 160 && detector.Detect(decoder.Decode(nil, p.Payload)) == key {
				return
			}
		}
	}
	in.phone.await(t, "it runs", func() bool { return in.phone.ticks > 0 })
	dial := func(keys string) {
		t.Helper()
		if err := in.leg.Dial(keys); err != nil {
			t.Fatal(err)
		}
	}
	dial("4")
	tone('4')
	info := c.message("INFO", c.number(), c.to, c.callID, 2, "Signal=5\r\n")
	c.seq = 2
	c.send(s.Addr(), strings.Replace(info, "application/sdp", "application/dtmf-relay", 1))
	c.finalOf(c.callID, 2)
	dial("7*")
	dial("2")
	seen := ""
	for _, want := range []string{"7", "*", "2"} {
		m := c.request("INFO")
		for field(m, "CSeq") == seen { // it was sent again, on a slow machine
			m = c.request("INFO")
		}
		seen = field(m, "CSeq")
		if field(m, "Content-Type") != "application/dtmf-relay" || !strings.HasPrefix(bodyOf(m), "Signal="+want+"\r\n") {
			t.Errorf("want %s:\n%s", want, m)
		}
		if want == "2" {
			c.answer(m, "415 Unsupported Media Type", "")
		} else {
			c.answer(m, "200 OK", "")
		}
	}
	tone('2')
	in.hangUp(t)
}

// The keys that the far end has taken are sent once, and whoever has sent the last is done, also where more are dialled then.
func TestKeysSent(t *testing.T) {
	l := &leg{}
	l.state.telling = "57"
	for _, want := range []string{"7", ""} {
		if left := l.sent(true); left != want || l.state.telling != want {
			t.Errorf("%q is left, and %q is to be sent, not %q", left, l.state.telling, want)
		}
	}
	l.state.telling = "6" // has a sender of its own
	l.state.ended = true
	if left := l.sent(true); left != "" || l.state.telling != "" {
		t.Errorf("%q is sent after the end", left)
	}
}
