package rtc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"parley/internal/audio"
	"parley/internal/crash"
	"parley/internal/parley"
)

// Strangers who send arbitrary data to the port disturb nobody.
func TestGarbage(t *testing.T) {
	s := listening(t, Config{})
	p := newListener()
	call(t).talk(s, p)
	before := runtime.NumGoroutine()
	stun := []byte{0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	name := append([]byte{0, 1, 0, 16, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 6, 0, 9},
		"some:body\x00\x00\x00"...)
	lying := append([]byte{}, stun...)
	lying[3] = 200 // it claims to be longer than it is
	long := make([]byte, 9000)
	long[0] = 22
	var strangers []net.Conn
	for range 20 {
		c, err := net.Dial("udp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		strangers = append(strangers, c)
	}
	for i := range 500 {
		for k, c := range strangers {
			packet := [][]byte{{}, {0}, stun, name, lying, long, {0x80, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 5},
				{22, 254, 253, 0, 0}}[(i+k)%8]
			if _, err := c.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.goesOn(t)
	gone(t, before)
}

// A gate lets through, from each address, as much as a call needs.
func TestGate(t *testing.T) {
	g := &gate{seen: map[netip.AddrPort]int{}}
	one, other, at := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.1:2"), time.Now()
	passed := 0
	for range 3 * maxPackets {
		if g.pass(one, at) {
			passed++
		}
	}
	if passed != maxPackets || !g.pass(other, at) || g.pass(one, at.Add(time.Second-1)) ||
		!g.pass(one, at.Add(time.Second)) || len(g.seen) != 1 {
		t.Errorf("%d of %d passed, %d are known", passed, 3*maxPackets, len(g.seen))
	}
}

// brittle panics when it hears something.
type brittle struct{ *listener }

func (brittle) Hear(audio.Frame) { panic("a test's") }

// A packet that crashes its decoder or its listener ends only one call.
func TestPanic(t *testing.T) {
	s := listening(t, Config{})
	p := newListener()
	call(t).talk(s, p)
	b, ended := call(t), make(chan error, 1)
	b.dial(s, func(l *Leg, err error) {
		if err == nil {
			err = l.Run(context.Background(), brittle{newListener()})
		}
		ended <- err
	})
	is(t, b.states, webrtc.PeerConnectionStateConnected)
	ctx, quiet := context.WithCancel(t.Context())
	var speaking sync.WaitGroup
	speaking.Go(func() { b.speak(ctx, speech(t)) })
	select {
	case err := <-ended:
		if !errors.Is(err, parley.ProviderFailure) || !crash.Is(err) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the call goes on")
	}
	quiet()
	speaking.Wait()
	p.goesOn(t)
}

// Callers who do with their connection what no browser does lose at most their own call; another call goes on.
func TestHostileCallers(t *testing.T) {
	s := listening(t, Config{})
	p := newListener()
	call(t).talk(s, p)
	for _, c := range []struct {
		name string
		do   func(t *testing.T, b *browser)
		ends bool
	}{
		{"many channels", func(t *testing.T, b *browser) {
			for range 40 {
				if _, err := b.CreateDataChannel("x", nil); err != nil {
					return // the server has ended the call already
				}
			}
		}, true},
		{"large messages", func(t *testing.T, b *browser) {
			large := []byte(`{"type":"digit","key":"1","x":"` + strings.Repeat("x", 60_000) + `"}`)
			for range 50 {
				if err := b.channel.Send(large); err != nil {
					t.Fatal(err)
				}
			}
		}, false},
		{"keys without end", func(t *testing.T, b *browser) {
			for range 20_000 {
				if err := b.channel.SendText(`{"type":"digit","key":"1"}`); err != nil {
					t.Fatal(err)
				}
			}
		}, false},
		{"many sources", func(t *testing.T, b *browser) {
			for i := range 60 {
				if _, err := b.raw.writer.WriteRTP(&rtp.Header{Version: 2, PayloadType: 111,
					SSRC: uint32(1000 + i)}, []byte{0x48, 0, 0}); err != nil {
					return // likewise
				}
			}
		}, true},
		{"more packets than a call has", func(t *testing.T, b *browser) {
			for i := range 3 * maxPackets {
				if _, err := b.raw.writer.WriteRTP(&rtp.Header{Version: 2, PayloadType: 111, SSRC: 99,
					SequenceNumber: uint16(i)}, []byte{0x48, 0, 0}); err != nil {
					t.Fatal(err)
				}
			}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, theirs := call(t), newListener()
			b.raw = &voice{}
			if _, err := b.AddTrack(b.raw); err != nil {
				t.Fatal(err)
			}
			_, ended := b.talk(s, theirs)
			is(t, b.open, true)
			began := time.Now()
			c.do(t, b)
			if c.ends {
				is(t, ended, error(parley.CustomerHangup))
			} else {
				theirs.goesOn(t)
			}
			p.goesOn(t)
			theirs.mu.Lock()
			defer theirs.mu.Unlock()
			// as many as come at once, and then as many as fingers press: a busy machine takes longer to send them
			if n, most := len(theirs.digits), maxKeys+int(time.Since(began)/keyTime)+1; n > most {
				t.Errorf("%d keys were heard, and %d may be pressed in that time", n, most)
			}
		})
	}
}

// We send nothing to an offer's candidates: it is the browser that connects.
func TestCandidatesAreNotCalled(t *testing.T) {
	s := listening(t, Config{Connect: 300 * time.Millisecond})
	victim, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	port := victim.LocalAddr().(*net.UDPAddr).Port
	for _, text := range []string{
		sdp + fmt.Sprintf("a=candidate:1 1 udp 2130706431 127.0.0.1 %d typ host\r\n"+
			"a=candidate:2 1 tcp 2130706430 127.0.0.1 %d typ host tcptype passive\r\na=candidate:3 1 udp 5 localhost %d typ host\r\n"+
			"a=end-of-candidates\r\n", port, port, port),
		strings.Replace(sdp, "t=0 0\r\n", "t=0 0\r\na=ice-lite\r\n",
			1) + fmt.Sprintf("a=candidate:1 1 udp 2130706431 127.0.0.1 %d typ host\r\n", port),
	} {
		o, err := ReadOffer(text)
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error, 1)
		if _, _, err := s.Answer(t.Context(), o, func(_ *Leg, err error) { told <- err }); err != nil {
			t.Fatal(err)
		}
		is(t, told, error(parley.Unreachable))
	}
	if err := victim.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := victim.ReadFrom(make([]byte, 1500)); err == nil {
		t.Errorf("%d bytes were sent to a candidate", n)
	}
}
