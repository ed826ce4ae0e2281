package sip

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/audio"
	"parley/internal/parley"
)

// taker returns a server with one trunk, and a wire that may call over it.
func taker(t testing.TB, hz float64) (*Server, *answerer, *wire) {
	a := newAnswerer(hz)
	s := start(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback})})
	return s, a, newWire(t, "127.0.0.1")
}

func TestHold(t *testing.T) {
	t.Parallel()
	for name, held := range map[string][]string{"sendonly": {"a=sendonly"}, "inactive": {"a=inactive"}, "old": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, a, w := taker(t, 1000)
			c := w.call(s, "")
			in := a.next(t)
			hush := c.rtp.talk(c.media(), 440, 1)
			in.phone.hears(t, 440)
			hush()
			before, _ := c.rtp.listen(hang)
			if before == nil {
				t.Fatal("no sound")
			}
			offer := sdp(c.rtp.addr(), held...)
			if held == nil {
				offer = strings.Replace(offer, "c=IN IP4 127.0.0.1", "c=IN IP4 0.0.0.0", 1)
			}
			res := c.ask("INVITE", offer)
			c.ack("")
			want := "a=recvonly"
			if name == "inactive" {
				want = "a=inactive"
			}
			if !strings.HasPrefix(res, "SIP/2.0 200") || !strings.Contains(res, want) {
				t.Fatalf("want %s:\n%s", want, res)
			}
			// Packets that were on their way still come; after that nothing, and the conversation is paused.
			last := before
			for p, _ := c.rtp.listen(100 * time.Millisecond); p != nil; p, _ = c.rtp.listen(100 * time.Millisecond) {
				last = p
			}
			in.phone.mu.Lock()
			ticks := in.phone.ticks
			in.phone.mu.Unlock()
			if p, _ := c.rtp.listen(200 * time.Millisecond); p != nil {
				t.Error("sound during the hold")
			}
			in.phone.mu.Lock()
			if in.phone.ticks != ticks {
				t.Errorf("%d ticks during the hold", in.phone.ticks-ticks)
			}
			in.phone.mu.Unlock()
			c.ask("INVITE", sdp(c.rtp.addr(), "a=sendrecv"))
			c.ack("")
			after, _ := c.rtp.listen(hang)
			if after == nil || after.SequenceNumber != last.SequenceNumber+1 || !after.Marker ||
				after.Timestamp-last.Timestamp < 1600 {
				t.Errorf("after the hold %+v, before it %+v", after, last)
			}
			c.rtp.talk(c.media(), 600, 2)
			in.phone.hears(t, 600)
			c.ask("BYE", "")
			in.ends(t, parley.CustomerHangup)
		})
	}
}

func TestMediaTimeout(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := prepare(t, Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true,
		Allowed: loopback})})
	s.silent, s.longest = 300*time.Millisecond, 700*time.Millisecond
	launch(t, s)
	w := newWire(t, "127.0.0.1")
	began := time.Now()
	w.call(s, "")
	a.next(t).ends(t, parley.MediaTimeout)
	if d := time.Since(began); d < s.silent {
		t.Errorf("after %s", d)
	}
	m := w.receive(hang)
	for strings.HasPrefix(m, "SIP/2.0 200") { // repeated before our ACK came
		m = w.receive(hang)
	}
	if !strings.HasPrefix(m, "BYE ") {
		t.Errorf("no BYE: %q", m)
	}

	w = newWire(t, "127.0.0.1")
	began = time.Now()
	w.call(s, "", sdp(w.addr(), "a=sendonly"))
	a.next(t).ends(t, parley.MediaTimeout)
	if d := time.Since(began); d < s.longest {
		t.Errorf("a hold ended after %s", d)
	}
}

func TestReinvite(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 1000)
	c := w.call(s, "")
	in := a.next(t)
	hush := c.rtp.talk(c.media(), 440, 1)
	in.phone.hears(t, 440)
	hush()

	// Another address and another codec of the same rate.
	elsewhere := newWire(t, "127.0.0.1")
	res := c.ask("INVITE", strings.Replace(sdp(elsewhere.addr()), "RTP/AVP 0 101", "RTP/AVP 8", 1))
	c.ack("")
	if !strings.Contains(res, "m=audio") || !strings.Contains(res, "RTP/AVP 8\r\n") {
		t.Fatalf("the codec was not changed:\n%s", res)
	}
	for p, _ := elsewhere.listen(hang); ; p, _ = elsewhere.listen(hang) {
		if p == nil {
			t.Fatal("nothing comes to the new address")
		}
		if p.PayloadType == 8 {
			break
		}
	}
	// An offer with none of our codecs: the call goes on as it was.
	for _, formats := range []string{"3 4 18"} {
		res = c.ask("INVITE", strings.Replace(sdp(c.rtp.addr()), "RTP/AVP 0 101", "RTP/AVP "+formats, 1))
		c.ack("")
		if !strings.HasPrefix(res, "SIP/2.0 488") {
			t.Errorf("codecs %s: %s", formats, res)
		}
	}
	c.to = strings.TrimSpace(c.to)
	// An INVITE without a description: we offer, and the ACK answers.
	res = c.ask("INVITE", "")
	if !strings.Contains(res, "m=audio") {
		t.Fatalf("no offer:\n%s", res)
	}
	c.ack(sdp(c.rtp.addr()))
	for p, _ := c.rtp.listen(hang); ; p, _ = c.rtp.listen(hang) {
		if p == nil {
			t.Fatal("nothing comes to the old address again")
		}
		if p.PayloadType == 0 && p.Timestamp != 0 && len(p.Payload) == 160 {
			break
		}
	}
	// An INVITE after the last one's ACK was lost: it shows that the 200 arrived.
	c.ask("INVITE", sdp(c.rtp.addr()))
	if res := c.ask("INVITE", sdp(c.rtp.addr())); !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Errorf("crossing: %s", res)
	}
	c.ack("")
	// But not if the ACK has to bring the answer.
	c.ask("INVITE", "")
	if res := c.ask("INVITE", sdp(c.rtp.addr())); !strings.HasPrefix(res, "SIP/2.0 491") {
		t.Errorf("an INVITE instead of the answer: %s", res)
	}
	in.stop(errDone)
	in.ends(t, errDone)
}

func TestRequestsInCall(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 0)
	c := w.call(s, "")
	in := a.next(t)
	for _, m := range []struct{ method, want string }{{"OPTIONS", "200"}, {"UPDATE", "200"}, {"PRACK", "481"},
		{"MESSAGE", "405"}, {"REFER", "400"}, {"NOTIFY", "489"}, {"INFO", "200"}} {
		if res := c.ask(m.method, ""); !strings.HasPrefix(res, "SIP/2.0 "+m.want) {
			t.Errorf("%s: want %s, got %s", m.method, m.want, res)
		}
	}
	if res := c.ask("INVITE", sdp(c.rtp.addr()), "Require: 100rel, precondition, timer"); !strings.HasPrefix(res,
		"SIP/2.0 420") || field(res, "Unsupported") != "precondition" {
		t.Errorf("Require: %s", res)
	}
	c.ack("")
	right := c.to
	c.to += "x"
	if res := c.ask("BYE", ""); !strings.HasPrefix(res, "SIP/2.0 481") {
		t.Errorf("BYE of no call: %s", res)
	}
	c.to = right
	if res := c.ask("BYE", ""); !strings.HasPrefix(res, "SIP/2.0 200") {
		t.Errorf("BYE: %s", res)
	}
	in.ends(t, parley.CustomerHangup)
	if res := c.ask("BYE", ""); !strings.HasPrefix(res, "SIP/2.0 481") {
		t.Errorf("BYE again: %s", res)
	}
}

func TestDigits(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 0)
	c := w.call(s, "")
	in := a.next(t)
	info := func(kind, text string) {
		t.Helper()
		m := c.message("INFO", c.number(), c.to, c.callID, c.seq+1, text)
		c.seq++
		c.send(s.Addr(), strings.Replace(m, "application/sdp", kind, 1))
		if res := c.final(); !strings.HasPrefix(res, "SIP/2.0 200") {
			t.Errorf("INFO %q: %s", text, res)
		}
	}
	info("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n")
	info("application/dtmf-relay", "Signal= *\r\n")
	info("application/dtmf", "11")
	info("application/dtmf-relay", "Signal=16\r\n") // flash
	in.phone.await(t, "keys came by INFO", func() bool { return in.phone.keys == "5*#" })
	// The same key by RFC 4733 too: it counts once. From then on INFO is ignored.
	event := func(key byte, ts uint32, seq uint16) {
		for i := range uint16(3) {
			if _, err := c.rtp.WriteToUDPAddrPort(packet(101, i == 0, seq+i, ts, 7, []byte{key, 0x8A, 3, 0x20}),
				c.media()); err != nil {
				t.Error(err)
			}
		}
	}
	event(11, 1000, 1)
	event(1, 4000, 10)
	in.phone.await(t, "a key came by RFC 4733", func() bool { return in.phone.keys == "5*#1" })
	info("application/dtmf", "1")
	event(2, 8000, 20)
	in.phone.await(t, "keys came by RFC 4733", func() bool { return in.phone.keys == "5*#12" })
	in.stop(errDone)
	in.ends(t, errDone)

	// If RFC 4733 was not agreed on, keys are recognized and sent as tones.
	w = newWire(t, "127.0.0.1")
	c = w.call(s, "", strings.ReplaceAll(sdp(w.addr()), " 101\r\n", "\r\n"))
	in = a.next(t)
	for i, f := range tones("42") {
		if _, err := w.WriteToUDPAddrPort(packet(0, i == 0, uint16(i), uint32(i)*160, 3, f), c.media()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond) // slow enough for the socket's buffer
	}
	in.phone.await(t, "tones were heard", func() bool { return in.phone.keys == "42" })
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	codes := []int{480, 486, 603, 404, 500, 302}
	next := make(chan int, 1)
	callee := start(t, Config{Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback}),
		Answer: func(_ ctxType, in *Invite) {
			if code := <-next; code != codes[0] { // this one is refused by returning
				if err := in.Refuse(code); err != nil {
					t.Error(err)
				}
				if err := in.Refuse(code); !errors.Is(err, errFinal) {
					t.Errorf("refused twice: %v", err)
				}
			}
		}})
	caller := start(t, Config{})
	for n, code := range codes {
		next <- code
		_, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: callee.Addr().String()}, To: "+15550001111",
			From: "+15550002222"})
		var r *Refused
		if !errors.As(err, &r) || r.Code != codes[n] {
			t.Fatalf("%d: %v", codes[n], err)
		}
		if want := parley.ReasonOfSIP(codes[n]); r.Ended() != want || !errors.Is(err, want) {
			t.Errorf("%d: %v", codes[n], r.Ended())
		}
	}
	if _, err := caller.Dial(soon(t), Dialling{Trunk: Trunk{Address: callee.Addr().String()}, To: "+15550001112",
		From: "+15550002222"}); !slices.Contains([]string{"404"}, codeOf(err)) {
		t.Errorf("an unknown number: %v", err)
	}
}

// TestLateOffer calls without a description: the answer has our offer, and the caller's ACK has its choice.
func TestLateOffer(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 1000)
	c := &caller{wire: w, server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
	if res := c.ask("INVITE", ""); !strings.Contains(res, "RTP/AVP 0 8 101\r\n") {
		t.Fatalf("no offer of G.711:\n%s", res)
	}
	in := a.next(t)
	c.ack(strings.Replace(sdp(c.rtp.addr()), "RTP/AVP 0 101", "RTP/AVP 8 101", 1))
	p, _ := c.rtp.listen(hang)
	if p == nil || p.PayloadType != 8 {
		t.Errorf("packet %v, want A-law", p)
	}
	c.rtp.talk(c.media(), 440, 1) // in µ-law, as some do
	in.phone.hears(t, 440)
	c.ask("BYE", "")
	in.ends(t, parley.CustomerHangup)
	// A choice that was not offered ends the call.
	c = &caller{wire: newWire(t, "127.0.0.1"), server: s, rtp: c.rtp, callID: token(20), seq: 1}
	c.ask("INVITE", "")
	in = a.next(t)
	c.ack(strings.Replace(sdp(c.rtp.addr()), "RTP/AVP 0 101", "RTP/AVP 9", 1))
	in.ends(t, errNoCodec)
}

// TestListener calls and stays silent, and hears us speak.
func TestListener(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 1000)
	c := w.call(s, "", sdp(w.addr(), "a=recvonly"))
	if !strings.Contains(c.sdp, "a=sendonly") {
		t.Errorf("answered with\n%s", c.sdp)
	}
	in := a.next(t)
	in.phone.await(t, "it goes on", func() bool { return in.phone.ticks > 5 })
	for {
		if m := w.receive(hang); m == "" {
			t.Fatal("nothing is heard")
		} else if m[0]>>6 == 2 {
			break
		}
	}
	c.ask("BYE", "")
	in.ends(t, parley.CustomerHangup)
}

// TestStrangersSound sends sound into a call from elsewhere: nobody hears it, and the call's own sound stays where it
// was.
func TestStrangersSound(t *testing.T) {
	t.Parallel()
	s, a, w := taker(t, 1000)
	c := w.call(s, "")
	in := a.next(t)
	c.rtp.talk(c.media(), 440, 1)
	in.phone.hears(t, 440)
	stranger := newWire(t, "127.0.0.5")
	stranger.talk(c.media(), 900, 5)
	in.phone.mu.Lock()
	from := len(in.phone.heard)
	in.phone.mu.Unlock()
	in.phone.await(t, "a second of sound came", func() bool { return len(in.phone.heard) > from+8000 })
	in.phone.mu.Lock()
	if got := share(in.phone.heard[from:], 900, audio.Narrow); got > 0.01 {
		t.Errorf("the stranger is heard: %.2f", got)
	}
	in.phone.mu.Unlock()
	if p, _ := stranger.listen(10 * time.Millisecond); p != nil {
		t.Error("the stranger hears the call")
	}
	c.ask("BYE", "")
	in.ends(t, parley.CustomerHangup)
}
