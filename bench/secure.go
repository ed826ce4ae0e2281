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

func (*hummer) Hear(audio.Frame) {}
func (*hummer) Digit(byte)       {}

func (h *hummer) Tick(_, out audio.Frame) bool {
	for i := range out {
		out[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(h.n)/8000))
		h.n++
	}
	return true
}

// secure measures what encrypting the sound adds to a call: the same calls between two ends of ours over loopback, in
// the clear and by SRTP. The goal is at most 0.3 ms a call-second.
func secure() error {
	plain, err := humming("")
	if err != nil {
		return err
	}
	fmt.Printf("  the sound of a call alone, in this process: %v a call-second in the clear", plain.Round(10*time.Microsecond))
	for _, suite := range []rtp.Suite{rtp.AES80, rtp.AESGCM} {
		took, err := humming(suite)
		if err != nil {
			return err
		}
		fmt.Printf("; %s adds %v", suite, (took - plain).Round(10*time.Microsecond))
	}
	fmt.Println()
	return nil
}

// humming is what one end of a call costs a second, of fifty calls.
func humming(suite rtp.Suite) (time.Duration, error) {
	const calls, lasts = 50, 10 * time.Second
	ports, done := rtp.NewPorts(30000, 39999), make(chan struct{})
	at := netip.MustParseAddr("127.0.0.1")
	var sessions []*rtp.Session
	for range calls {
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
			s := rtp.NewSession(sock, audio.Narrow, false, &hummer{})
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
		if got := s.Stats(); got.Suite != suite || got.Received < 9*50 || got.Unreadable > 0 {
			return 0, fmt.Errorf("a call with %q heard %d packets, and spoke %q", suite, got.Received, got.Suite)
		}
	}
	return time.Duration(float64(used) / lasts.Seconds() / (2 * calls)), nil
}
