package rtp

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"parley/internal/audio"
)

// live puts packets of one frame, each with a value of its own, into a receiver, and keeps those that are heard at once.
type live struct {
	*Receiver
	heard []int // by value, without concealment
}

func newLive() *live {
	l := &live{}
	l.Receiver = NewReceiver(audio.Narrow, 8000, func(f audio.Frame) {
		if n := int(f[80]); n%10 == 0 && f[80] == f[100] {
			l.heard = append(l.heard, n/10)
		}
	})
	return l
}

func (l *live) put(ms int, n int) {
	pcm := make([]int16, 160)
	for i := range pcm {
		pcm[i] = int16(10 * n)
	}
	l.Put(time.Duration(ms)*time.Millisecond, uint16(n+65_500), uint32(160*n), 1, pcm)
}

// TestLiveOrder: who hears packets at once hears them as they come, until one has come late. From then on those behind a
// missing one wait for it, and no longer than that.
func TestLiveOrder(t *testing.T) {
	l := newLive()
	want := func(after string, list ...int) {
		t.Helper()
		if !slices.Equal(l.heard, list) {
			t.Fatalf("%s: heard %v, want %v", after, l.heard, list)
		}
	}
	for n := 1; n <= 50; n++ { // across the end of the sequence numbers
		l.put(20*n, n)
	}
	l.heard = nil
	l.put(1040, 52)
	want("51 is lost", 52)
	l.put(1060, 53)
	l.put(1100, 55)
	want("54 is late", 52, 53, 55)
	l.put(1130, 54)
	want("it is 30 ms late", 52, 53, 55)
	l.put(1140, 57)
	l.put(1150, 58)
	l.put(1150, 58)
	want("those behind 56 wait", 52, 53, 55)
	l.put(1170, 56)
	want("it comes", 52, 53, 55, 56, 57, 58)
	l.put(1200, 60)
	l.put(1220, 61)
	want("those behind 59 wait", 52, 53, 55, 56, 57, 58)
	l.put(1245, 62)
	want("it does not come within 40 ms", 52, 53, 55, 56, 57, 58, 60, 61, 62)
	for n := 63; n < 63+calmAfter+2; n++ {
		l.put(20*n, n)
	}
	l.heard = nil
	l.put(20*(63+calmAfter+3), 63+calmAfter+3)
	want("nothing was late for ten seconds", 63+calmAfter+3)
}

// TestLiveNetwork: over a network that makes each packet up to 100 ms late, nearly all are heard at once, in order, and
// within the time that is waited; nothing is allocated for it.
func TestLiveNetwork(t *testing.T) {
	l, r := newLive(), rand.New(rand.NewPCG(1, 2))
	type packet struct{ at, n int }
	var list []packet
	for n := range 3000 {
		list = append(list, packet{20*n + r.IntN(100), n})
	}
	slices.SortFunc(list, func(a, b packet) int { return a.at - b.at })
	for _, p := range list {
		l.put(p.at, p.n)
	}
	if !slices.IsSorted(l.heard) || len(l.heard) < 2850 {
		t.Errorf("%d of 3000 are heard, in order: %v", len(l.heard), slices.IsSorted(l.heard))
	}
	pcm, n, at := make([]int16, 160), 3100, time.Duration(62_000)*time.Millisecond
	if got := testing.AllocsPerRun(100, func() {
		for _, k := range []int{1, 0, 3, 2} {
			at += audio.FrameTime
			l.Put(at, uint16(n+k+65_500), uint32(160*(n+k)), 1, pcm)
		}
		n += 4
	}); got > 0 {
		t.Errorf("%.1f allocations", got)
	}
}
