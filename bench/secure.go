package main

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"sync"
	"time"

	"parley/internal/audio"
	"parley/internal/rtp"
)

// hummer is somebody on a call who hums all the time, so that every packet has sound.
type hummer struct{ n int }

// hummed is a second of it, made once: what the sound of somebody costs is no part of a call.
var hummed = func() (pcm [8000]int16) {
	for i := range pcm {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(i)/8000))
	}
	return pcm
}()

func (*hummer) Hear(audio.Frame) {}
func (*hummer) Digit(byte)       {}

func (h *hummer) Tick(_, out audio.Frame) bool {
	copy(out, hummed[h.n:])
	h.n = (h.n + len(out)) % len(hummed)
	return true
}

// secure measures what encrypting the sound adds to a call: the same calls between two ends of ours over loopback, in
// the clear and by SRTP. The goal is at most 0.3 ms a call-second. It also measures what a call costs whose two legs are
// joined by a bridge: the goal is at most 1.2 times what two calls cost. Each is measured several times by turns, and the
// least counts: a shared processor's speed changes by a half from minute to minute, which is more than what is measured.
func secure() error {
	ways := []struct {
		suite  rtp.Suite
		joined bool
		least  time.Duration
	}{{}, {suite: rtp.AES80}, {suite: rtp.AESGCM}, {joined: true}}
	for round := range 4 {
		for i := range ways {
			w := &ways[i]
			took, err := humming(w.suite, w.joined)
			if err != nil {
				return err
			}
			if round == 0 || took < w.least {
				w.least = took
			}
		}
	}
	plain, joined := ways[0].least, ways[3].least
	fmt.Printf("  the sound of a call alone, in this process: %v a call-second in the clear", plain.Round(10*time.Microsecond))
	for _, w := range ways[1:3] {
		fmt.Printf("; %s adds %v", w.suite, (w.least - plain).Round(10*time.Microsecond))
	}
	bridged := 2*joined - plain // of two ends one is a telephone that hums, as before
	fmt.Printf("\n  two legs joined by a bridge: %.2f times two calls (%v a leg-second)\n", float64(bridged)/float64(plain),
		bridged.Round(10*time.Microsecond))
	return nil
}

// humming is what one end of a call costs a second, of fifty calls. With joined, one end of each hums, and the other is
// joined with that of the next call.
func humming(suite rtp.Suite, joined bool) (time.Duration, error) {
	const calls, lasts = 50, 4 * time.Second
	ports, done := rtp.NewPorts(30000, 39999), make(chan struct{})
	at := netip.MustParseAddr("127.0.0.1")
	var sessions []*rtp.Session
	var bridge *audio.Bridge
	for call := range calls {
		if call%2 == 0 {
			bridge = audio.NewBridge()
		}
		var socks [2]*rtp.Socket
		var keys [2]rtp.Key
		for i := range socks {
			sock, err := ports.Open(at)
			if err != nil {
				return 0, err
			}
			defer sock.Close()
			socks[i] = sock
			if suite != "" {
				keys[i] = rtp.NewKey(suite)
			}
		}
		for i, sock := range socks {
			var peer audio.Peer = &hummer{}
			if joined && i == 1 {
				peer = bridge.Join(audio.Narrow)
			}
			s := rtp.NewSession(sock, audio.Narrow, false, peer)
			s.Agree(rtp.Agreement{Codec: rtp.Codec{Format: audio.PCMU}, Direction: rtp.Direction{Send: true, Receive: true},
				Told: netip.AddrPortFrom(at, uint16(socks[1-i].Port)), Signal: at, In: keys[1-i], Out: keys[i]})
			sessions = append(sessions, s)
		}
	}
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { s.Run(done, func() {}) })
	}
	time.Sleep(time.Second)
	began := cpuTime(os.Getpid())
	time.Sleep(lasts)
	used := cpuTime(os.Getpid()) - began
	close(done)
	wg.Wait()
	for _, s := range sessions {
		if got := s.Stats(); got.Suite != suite || got.Received < 3*50 || got.Unreadable > 0 {
			return 0, fmt.Errorf("a call with %q heard %d packets, and spoke %q", suite, got.Received, got.Suite)
		}
	}
	return time.Duration(float64(used) / lasts.Seconds() / (2 * calls)), nil
}
