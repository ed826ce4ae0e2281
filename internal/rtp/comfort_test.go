package rtp

import (
	"math"
	"testing"
	"time"

	"parley/internal/audio"
)

// listener keeps what it is given to play.
type listener struct {
	still
	in []int16
}

func (l *listener) Tick(in, out audio.Frame) bool { l.in = append(l.in, in...); return false }

// TestComfortNoise: a far end that announces silence is silent at once, and the packets that it does not send don't
// count as lost.
func TestComfortNoise(t *testing.T) {
	for _, format := range []audio.Format{audio.PCMU, audio.G722} {
		p := &listener{}
		m, w := desk(t, format, true, p)
		enc, n := audio.NewEncoder(format), format.Rate().FrameSize()
		tone := make(audio.Frame, n)
		for i := range tone {
			tone[i] = int16(9000 * math.Sin(2*math.Pi*400*float64(i)/float64(format.Rate())))
		}
		const before, pause, after = 20, 11, 20 // frames; the first of the pause is a comfort noise packet
		seq, sent := uint16(100), 0
		for i := range before + pause + after + 10 {
			at := time.Duration(i) * frameTime
			ts := uint32(i) * frameTicks
			switch {
			case i == before:
				m.packet(packet(noise, false, seq, ts, 9, []byte{70}), w.addr(), at)
				seq++
			case i < before, i >= before+pause && i < before+pause+after:
				m.packet(packet(format.PayloadType(), i == before+pause, seq, ts, 9, enc.Encode(nil, tone)), w.addr(), at)
				seq++
				sent++
			}
			m.tick(at+frameTime/2, 0)
		}
		if s := m.Stats(); s.Lost != 0 || s.Received != sent+1 {
			t.Errorf("%s: %+v of %d packets", format, s, sent+1)
		}
		if p.heard != sent+1 {
			t.Errorf("%s: %d frames are heard at once of %d: what was not sent is taken for lost", format, p.heard, sent+1)
		}
		quiet, longest, noisy := 0, 0, 0
		for _, v := range p.in[n*before/2 : len(p.in)-n*15] {
			if v > -600 && v < 600 {
				quiet++
				if v != 0 {
					noisy++
				}
			} else {
				longest, quiet = max(longest, quiet), 0
			}
		}
		if longest < n*(pause-3) || noisy < n/2 {
			t.Errorf("%s: quiet for %d samples of %d, %d of them noise", format, longest, n*pause, noisy)
		}
	}
	m, w := desk(t, audio.PCMU, true, &still{})
	seq := uint16(0)
	data := packet(noise, false, 0, 0, 9, []byte{60})
	if allocs := testing.AllocsPerRun(100, func() {
		seq++
		data[2], data[3], data[5] = byte(seq>>8), byte(seq), byte(seq)
		m.packet(data, w.addr(), time.Duration(seq)*frameTime)
	}); allocs != 0 {
		t.Errorf("%v allocations per packet of comfort noise", allocs)
	}
}
