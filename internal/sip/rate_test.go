package sip

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	pion "github.com/pion/rtp"

	"parley/internal/audio"
)

// talker is a far end that says a tone in a format that changes, and notes when it heard another one.
type talker struct {
	*wire
	mu     sync.Mutex
	format audio.Format
	sent   int           // packets so far: the clock of this test, which stands still where the machine does
	heard  int           // of sent, when there was the tone last
	gap    int           // the longest time without, in packets sent
	types  map[uint8]int // packets with the tone, by payload type
}

func (w *talker) says(f audio.Format) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.format, w.types = f, map[uint8]int{}
}

// speak talks and listens until the test ends.
func (w *talker) speak(to net.Addr, hz float64) (stop func()) {
	done := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var encoder *audio.Encoder
		was := audio.Format(0)
		for i := 0; ; i++ {
			w.mu.Lock()
			f := w.format
			w.sent++
			w.mu.Unlock()
			if f != was {
				encoder, was = audio.NewEncoder(f), f
			}
			pcm := make(audio.Frame, f.Rate().FrameSize())
			for k := range pcm {
				pcm[k] = int16(8000 * math.Sin(2*math.Pi*440*float64(i*len(pcm)+k)/float64(f.Rate())))
			}
			_, _ = w.WriteTo(packet(f.PayloadType(), i == 0, uint16(i), uint32(i)*160, 7, encoder.Encode(nil, pcm)), to)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	both.Go(func() {
		decoders := map[uint8]*audio.Decoder{0: audio.NewDecoder(audio.PCMU), 8: audio.NewDecoder(audio.PCMA), 9: audio.NewDecoder(audio.G722)}
		buf := make([]byte, 2048)
		for {
			_ = w.SetReadDeadline(time.Now().Add(hang))
			n, err := w.Read(buf)
			select {
			case <-done:
				return
			default:
			}
			var p pion.Packet
			if err != nil || p.Unmarshal(buf[:n]) != nil || decoders[p.PayloadType] == nil {
				continue
			}
			pcm := decoders[p.PayloadType].Decode(nil, p.Payload)
			if share(pcm, hz, audio.Rate(50*len(pcm))) < 0.5 {
				continue
			}
			w.mu.Lock()
			if w.heard > 0 {
				w.gap = max(w.gap, w.sent-w.heard)
			}
			w.heard = w.sent
			w.types[p.PayloadType]++
			w.mu.Unlock()
		}
	})
	return sync.OnceFunc(func() { close(done); _ = w.SetReadDeadline(time.Now()); both.Wait() })
}

// hears waits until the tone has come under a payload type for a while.
func (w *talker) hears(t testing.TB, pt uint8) {
	t.Helper()
	for end := time.Now().Add(hang); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		n := w.types[pt]
		w.mu.Unlock()
		if n >= 25 {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Fatalf("the tone does not come as %d: %v", pt, w.types)
}

// TestOtherRateInCall: wideband becomes narrowband and back in the middle of a call, by INVITE, by UPDATE and by an offer
// that is left to us, and both ends hear on, without a gap of more than 75 packets (a second and a half).
func TestOtherRateInCall(t *testing.T) {
	t.Parallel()
	offer := func(w *talker, formats string) string {
		return strings.Replace(sdp(w.addr()), "RTP/AVP 0 101", "RTP/AVP "+formats+" 101", 1)
	}
	for _, began := range []audio.Format{audio.G722, audio.PCMU} {
		s, a, w := taker(t, 1000)
		far := &talker{wire: newWire(t, "127.0.0.1")}
		far.says(began)
		c := w.call(s, "", offer(far, fmt.Sprint(began.PayloadType())))
		in := a.next(t)
		rate := in.leg.Rate()
		stop := far.speak(net.UDPAddrFromAddrPort(c.media()), 1000)
		defer stop()
		far.hears(t, began.PayloadType())
		in.phone.hears(t, 440)
		since, before := far.said(), len(in.phone.all())
		for _, change := range []struct {
			method, formats string
			to              audio.Format
		}{{"INVITE", "0", audio.PCMU}, {"INVITE", "9", audio.G722}, {"UPDATE", "8", audio.PCMA}, {"", "9", audio.G722}, {"", "0", audio.PCMU},
			{"UPDATE", "9 8", began}} {
			if change.formats == "9 8" && began == audio.PCMU {
				change.to = audio.PCMA // of what fits, what changes least
			}
			far.says(change.to)
			switch change.method {
			case "":
				res := c.ask("INVITE", "")
				for _, pt := range []string{"0", "8", "9"} {
					if !strings.Contains(strings.Split(strings.SplitN(res, " RTP/AVP ", 2)[1], "\r\n")[0]+" ", pt+" ") {
						t.Errorf("%s is not offered again:\n%s", pt, res)
					}
				}
				c.ack(offer(far, change.formats))
			default:
				if res := c.ask(change.method, offer(far, change.formats)); !strings.HasPrefix(res, "SIP/2.0 200") {
					t.Fatalf("%s to %s: %s", change.method, change.to, res)
				}
				if change.method == "INVITE" {
					c.ack("")
				}
			}
			far.hears(t, change.to.PayloadType())
			in.phone.hears(t, 440)
		}
		if said, heard := far.said()-since, (len(in.phone.all())-before)/rate.FrameSize(); said-heard > 75 {
			t.Errorf("of %d packets, %d are heard", said, heard)
		}
		if far.mu.Lock(); far.gap > 75 {
			t.Errorf("began as %s: the far end heard nothing for %d packets", began, far.gap)
		}
		far.mu.Unlock()
		if in.leg.Rate() != rate || in.phone.rate != rate {
			t.Errorf("the rate of the frames changed from %d to %d", rate, in.phone.rate)
		}
		stop()
		in.stop(errDone)
		in.ends(t, errDone)
	}
}

// said is how many packets were sent so far.
func (w *talker) said() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// all is what was heard so far.
func (p *phone) all() []int16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard
}

// TestSetup: whoever offers DTLS says who begins the handshake, with and without a bundle; what can't be used is refused with
// the reason.
func TestSetup(t *testing.T) {
	t.Parallel()
	a := newAnswerer(0)
	s := start(t,
		Config{Answer: a.answer, Trunks: fixed(Trunk{ID: 1, Number: "+15550001111", ByIP: true, Allowed: loopback, SRTP: "optional"})})
	const print = "a=fingerprint:sha-256 4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB:3E:5D:49:6B:19:E5:7C:AB:3E:5D:49:6B"
	for setup, want := range map[string]string{"passive": "active", "actpass": "active", "active": "passive", "holdconn": ""} {
		for _, group := range []string{"a=mid:0", "a=group:BUNDLE 0\r\na=mid:0"} {
			c := &caller{wire: newWire(t, "127.0.0.1"), server: s, rtp: newWire(t, "127.0.0.1"), callID: token(20), seq: 1}
			res := c.ask("INVITE", strings.Replace(sdp(c.rtp.addr(), print, "a=setup:"+setup, group),
				" RTP/AVP ", " UDP/TLS/RTP/SAVP ", 1))
			if want == "" {
				if !strings.HasPrefix(res, "SIP/2.0 488") || !strings.Contains(field(res, "Warning"), "a=setup") {
					t.Errorf("%s: %s", setup, res)
				}
				continue
			}
			if !strings.HasPrefix(res, "SIP/2.0 200") || !strings.Contains(res, "a=setup:"+want+"\r\n") || strings.Contains(res, "a=group") {
				t.Fatalf("%s: %s", setup, res)
			}
			c.ack("")
			buf := make([]byte, 2048)
			within := hang
			if want == "passive" {
				within = 300 * time.Millisecond
			}
			_ = c.rtp.SetReadDeadline(time.Now().Add(within))
			n, err := c.rtp.Read(buf)
			if began := err == nil && n > 0 && buf[0] == 22; began != (want == "active") {
				t.Errorf("%s: it began the handshake: %v (%v)", setup, began, errors.Is(err, net.ErrClosed))
			}
			in := a.next(t)
			in.stop(errDone)
			in.ends(t, errDone)
		}
	}
}
