package rtp

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"parley/internal/audio"
)

// TestRecordingInStep carries two minutes of sound over a network with everything wrong at once: a fifth of the packets
// lost, each up to 100 ms late and so out of order, a clock 1,000 ppm fast, and in the middle another source (SSRC) at
// another port, which a re-INVITE has named. A beep is said every two seconds. In the recording, which is made by our clock,
// the last beeps are as late as the first ones: what the far end says stays in step with what it was told. From a port that
// nobody has named nothing is heard.
func TestRecordingInStep(t *testing.T) {
	t.Parallel()
	const frames, beep = 6000, 10 // of 20 ms; a beep is 200 ms long
	old, moved, stranger := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("192.0.2.1:5000"),
		netip.MustParseAddrPort("192.0.2.1:6000")
	type arrival struct {
		said, at time.Duration
		from     netip.AddrPort
		seq      uint16
		ts, ssrc uint32
		pcm      []int16
	}
	r := rand.New(rand.NewPCG(20, 15))
	var list []arrival
	var said []time.Duration // when each beep began
	for i := range frames {
		a := arrival{from: old, seq: uint16(i) + 65_000, ts: uint32(160 * i), ssrc: 1, pcm: make([]int16, 160)}
		a.said = time.Duration(float64(i) * float64(audio.FrameTime) / 1.001)
		if i%100 < beep {
			for k := range a.pcm {
				a.pcm[k] = int16(8000 * math.Sin(2*math.Pi*1000*float64(160*i+k)/8000))
			}
			if i%100 == 0 {
				said = append(said, a.said)
			}
		}
		if i >= frames/2 {
			a.from, a.seq, a.ts, a.ssrc = moved, a.seq+9999, a.ts+1e6, 2
		}
		a.at = a.said + time.Duration(r.Float64()*float64(100*time.Millisecond))
		if r.Float64() >= 0.2 {
			list = append(list, a)
		}
		noise := a
		if noise.from, noise.pcm = stranger, slices.Repeat([]int16{9000, -9000}, 80); i%7 == 0 {
			list = append(list, noise)
		}
	}
	slices.SortStableFunc(list, func(a, b arrival) int { return int(a.at - b.at) })

	var l latch
	l.tell(old, old.Addr(), 0)
	receiver := NewReceiver(audio.Narrow, 8000, func(audio.Frame) {})
	frame, turned, refused := make(audio.Frame, audio.Narrow.FrameSize()), false, 0
	var heard []time.Duration // when each beep begins in the recording
	quiet := time.Duration(0)
	for at := time.Duration(0); at < frames*audio.FrameTime; at += audio.FrameTime {
		if !turned && at >= list[len(list)-1].at/2 {
			l.tell(moved, old.Addr(), at) // the re-INVITE
			turned = true
		}
		for len(list) > 0 && list[0].at <= at {
			a := list[0]
			list = list[1:]
			if ok := l.accept(a.from, a.at, a.seq, a.ssrc); ok && a.from == stranger {
				t.Fatal("somebody is heard whom nobody has named")
			} else if ok {
				receiver.Put(a.at, a.seq, a.ts, a.ssrc, a.pcm)
			} else if a.from != stranger {
				refused++
			}
		}
		receiver.Pull(at, frame)
		switch {
		case audio.Level(frame) < -35:
			quiet += audio.FrameTime
		default:
			if quiet > time.Second {
				heard = append(heard, at)
			}
			quiet = 0
		}
	}
	if len(heard) < len(said)-2 || len(heard) > len(said) {
		t.Fatalf("of %d beeps %d are in the recording", len(said), len(heard))
	}
	late := func(beeps []time.Duration) (middle time.Duration) {
		var list []time.Duration
		for _, at := range beeps {
			i, found := slices.BinarySearch(said, at)
			if !found {
				i--
			}
			if i >= 0 {
				list = append(list, at-said[i])
			}
		}
		slices.Sort(list)
		if most := list[len(list)-1]; most > 400*time.Millisecond {
			t.Errorf("a beep is %s late", most)
		}
		return list[len(list)/2]
	}
	first, last := late(heard[:10]), late(heard[len(heard)-10:])
	t.Logf("beeps are %s late at first and %s at the end; %d packets were refused while the port changed", first, last, refused)
	if d := last - first; d.Abs() > 40*time.Millisecond {
		t.Errorf("in two minutes the recording has gone out of step by %s", d)
	}
	if refused > 10 {
		t.Errorf("%d packets of the far end's were refused", refused)
	}
}
