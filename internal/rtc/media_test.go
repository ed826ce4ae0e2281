package rtc

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"parley/internal/audio"
)

// wire collects what would be sent.
type wire struct{ packets, octets int }

func (w *wire) WriteRTP(_ *rtp.Header, payload []byte) (int, error) {
	w.packets++
	w.octets += len(payload)
	return len(payload), nil
}

func (w *wire) Write(b []byte) (int, error) { return len(b), nil }

// rig is media without a network.
func rig() (*media, *listener, *wire) {
	w, p := new(wire), newListener()
	return newMedia(&voice{writer: w, ssrc: 7, g722: 9, opus: 111}, p), p, w
}

// packets returns the packets of the speech, 20 ms each.
func packets(t testing.TB, change func(i int, h *rtp.Header)) (list [][]byte) {
	t.Helper()
	for i, payload := range speech(t) {
		p := rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: 111, SequenceNumber: uint16(65500 + i),
			Timestamp: uint32(i * 960), SSRC: 42}, Payload: payload}
		if change != nil {
			change(i, &p.Header)
		}
		raw, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, raw)
	}
	return list
}

func TestNoAllocationPerFrame(t *testing.T) {
	m, p, w := rig()
	list := packets(t, nil)
	at, i := time.Duration(0), 0
	step := func() {
		k := i
		if i > 1 {
			k ^= 1 // each pair in the wrong order
		}
		m.packet(list[k], at)
		m.tick(at, 0)
		at += audio.FrameTime
		i++
	}
	for range 20 {
		step()
	}
	if n := testing.AllocsPerRun(101, step); n != 0 {
		t.Errorf("%v allocations per packet and frame", n)
	}
	if p.frames != i || w.packets != i || w.octets != i*audio.FrameBytes || p.energy == 0 || p.wanted == 0 {
		t.Errorf("%d steps: %d frames heard, %d packets of %d octets sent", i, p.frames, w.packets, w.octets)
	}
}

// Whatever the network does to packets, a live listener hears as many frames as were spoken.
func TestNetwork(t *testing.T) {
	list := packets(t, nil)
	const n = 120
	play := func(order func(i int) []int) (*media, *listener) {
		m, p, _ := rig()
		for i := range n {
			at := time.Duration(i) * audio.FrameTime
			for _, k := range order(i) {
				m.packet(list[k], at)
			}
			m.tick(at, 0)
		}
		return m, p
	}
	_, clean := play(func(i int) []int { return []int{i} })
	for _, c := range []struct {
		name  string
		order func(i int) []int
		least int     // frames heard
		part  float64 // share of the energy, at least
	}{
		{"every tenth lost", func(i int) []int {
			if i%10 == 5 {
				return nil
			}
			return []int{i}
		}, n - 1, 0.7},
		{"twice each", func(i int) []int { return []int{i, i} }, n, 0.9},
		{"swapped in pairs", func(i int) []int {
			if i%2 == 0 {
				return nil
			}
			return []int{i, i - 1}
		}, n - 1, 0.9},
		{"overtaken by three", func(i int) []int {
			if i%4 != 3 {
				return nil
			}
			return []int{i - 2, i - 1, i, i - 3}
		}, n - 1, 0.9},
		{"overtaken, twice each", func(i int) []int {
			if i%2 == 0 {
				return nil
			}
			return []int{i, i, i - 1, i - 1}
		}, n - 1, 0.9},
		{"a frame's time late", func(i int) []int {
			switch {
			case i%10 == 5:
				return nil
			case i%10 == 6:
				return []int{i, i - 1}
			}
			return []int{i}
		}, n - 1, 0.9},
		{"too late", func(i int) []int {
			switch {
			case i%10 == 5:
				return nil
			case i%10 == 9:
				return []int{i - 4, i}
			}
			return []int{i}
		}, n - 1, 0.7},
		{"in bursts of three", func(i int) []int {
			if i%3 != 2 {
				return nil
			}
			return []int{i - 2, i - 1, i}
		}, n, 0.7},
	} {
		_, p := play(c.order)
		if p.frames < c.least || p.frames > n || p.ticks != n {
			t.Errorf("%s: %d frames of %d heard, %d ticks", c.name, p.frames, n, p.ticks)
		}
		if p.energy < clean.energy*c.part || p.energy > clean.energy*1.2 || p.wanted < clean.wanted*c.part ||
			p.wanted > clean.wanted*1.2 {
			t.Errorf("%s: energy %.3g heard, %.3g in order; %.3g and %.3g without it", c.name, p.energy, p.wanted,
				clean.energy, clean.wanted)
		}
	}
}

// Packets that were reordered are used as if they had come in order, and a packet that waits for a lost one does not
// wait long.
func TestOvertaken(t *testing.T) {
	list := packets(t, nil)
	hear := func(order ...int) (*media, *listener) {
		m, p, _ := rig()
		for _, i := range order {
			m.packet(list[i], 0)
		}
		return m, p
	}
	_, want := hear(10, 11, 12, 13, 14, 15, 16)
	for _, order := range [][]int{{10, 12, 11, 13, 14, 15, 16}, {10, 14, 13, 12, 11, 16, 15},
		{10, 11, 13, 15, 14, 12, 16}, {10, 13, 13, 12, 12, 11, 11, 14, 14, 15, 16}} {
		if _, p := hear(order...); p.frames != want.frames || p.energy != want.energy {
			t.Errorf("%v: %d frames of energy %g; in order %d of %g", order, p.frames, p.energy, want.frames,
				want.energy)
		}
	}
	m, p := hear(10, 12, 13)
	if p.frames != 1 {
		t.Errorf("%d frames while one is missing", p.frames)
	}
	m.tick(audio.FrameTime/2-1, 0)
	if p.frames != 1 {
		t.Errorf("%d frames while one is missing", p.frames)
	}
	m.tick(audio.FrameTime/2, 0)
	if p.frames != 4 {
		t.Errorf("%d frames heard of 4, one of them lost", p.frames)
	}
	m.packet(list[11], audio.FrameTime)
	m.packet(list[14], audio.FrameTime)
	if p.frames != 5 {
		t.Errorf("%d frames heard of 5, one of them lost", p.frames)
	}
	m.packet(list[16], audio.FrameTime)
	m.packet(list[30], audio.FrameTime) // far ahead: nothing waits any more
	if p.frames < 8 || m.queue.Waiting() != 0 {
		t.Errorf("%d frames heard, %d wait", p.frames, m.queue.Waiting())
	}
}

// People can't speak, or press keys, faster than in real time: any excess is ignored.
func TestFloodOfSound(t *testing.T) {
	list := packets(t, nil)
	m, p, _ := rig()
	send := func(from, n int, at time.Duration) {
		for i := from; i < from+n; i++ {
			raw := append([]byte{}, list[i%len(list)]...)
			raw[2], raw[3] = byte(i>>8), byte(i)
			m.packet(raw, at)
		}
	}
	most := int(maxAhead/audio.FrameTime) + 1
	send(0, 2000, 0)
	if p.frames != most {
		t.Errorf("%d frames heard at once, not %d", p.frames, most)
	}
	send(2000, 2000, time.Second)
	if p.frames < most+50 || p.frames > most+55 { // plus the frames that conceal what was ignored
		t.Errorf("%d frames heard after a second, not %d", p.frames, most+50)
	}
	for range 1000 {
		m.digit('1', 0)
	}
	if len(p.digits) != maxKeys {
		t.Errorf("%d keys at once", len(p.digits))
	}
	for range 1000 {
		m.digit('2', time.Second)
	}
	if len(p.digits) != maxKeys+20 {
		t.Errorf("%d keys a second later", len(p.digits)-maxKeys)
	}
}

// A packet that is not sound only shows that the browser is still there.
func TestOtherPackets(t *testing.T) {
	m, p, _ := rig()
	list := packets(t, func(i int, h *rtp.Header) {
		if i == 1 {
			h.PayloadType = 13
		}
	})
	empty, err := (&rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: 111, SequenceNumber: 1}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for i, raw := range [][]byte{nil, {0x80}, list[0][:11], list[1], empty} {
		m.packet(raw, time.Duration(i)*time.Second)
	}
	if p.frames != 0 || m.silence(5*time.Second) != time.Second {
		t.Errorf("%d frames heard, silent for %v", p.frames, m.silence(5*time.Second))
	}
	m.packet(list[2], 6*time.Second)
	m.peer.Stop()
	m.packet(list[3], 6*time.Second)
	m.digit('1', 6*time.Second)
	if p.frames != 1 || p.digits != "" {
		t.Errorf("after the end: %d frames, digits %q", p.frames, p.digits)
	}
}

func FuzzPacket(f *testing.F) {
	list := packets(f, nil)
	for _, i := range []int{0, 20, 60} {
		f.Add(list[i])
	}
	f.Add([]byte{0xa0, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 5, 200})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, p, _ := rig()
		m.packet(raw, 0)
		m.packet(list[0], audio.FrameTime)
		m.tick(audio.FrameTime, 3)
		if p.ticks != 1 {
			t.Error("no tick")
		}
	})
}

// BenchmarkFrame is what 20 ms of a call cost without a network: a packet decoded and heard, a frame encoded.
func BenchmarkFrame(b *testing.B) {
	list := packets(b, nil)
	m, _, _ := rig()
	at := time.Duration(0)
	for i := 0; b.Loop(); i++ {
		raw := list[i%len(list)]
		raw[2], raw[3] = byte(i>>8), byte(i)
		m.packet(raw, at)
		m.tick(at, 0)
		at += audio.FrameTime
	}
}
