package rtp

import (
	"math"
	"testing"
	"time"

	"parley/internal/audio"
)

// TestStillTimestamps: sound whose timestamps stand still is heard and recorded in time, at most twice as fast as time
// passes, and counted; so is what follows when they go on.
func TestStillTimestamps(t *testing.T) {
	for _, format := range []audio.Format{audio.PCMU, audio.G722, audio.Opus} {
		e := &sink{}
		m, w := desk(t, format, true, e)
		encoder := audio.NewEncoder(format)
		pt := format.PayloadType()
		seq, at := uint16(0), time.Duration(0)
		put := func(ts uint32) {
			seq++
			m.packet(packet(pt, false, seq, ts, 9, encoder.Encode(nil, toneAt(format.Rate(), 500, int(seq)))), w.addr(), at)
		}
		each := uint32(format.ClockRate() / 50)
		for i := range 150 { // 3 s, of which the middle one stands still
			ts := uint32(min(i, 50)) * each
			if i > 100 {
				ts += uint32(i-100) * each
			}
			if i != 80 { // which is lost
				put(ts)
			} else {
				seq++
			}
			m.tick(at, 0)
			at += frameTime
		}
		frames := func(pcm []int16) int { return len(pcm) / format.Rate().FrameSize() }
		if got := frames(e.heard); got < 143 || got > 151 {
			t.Errorf("%s: %d of 150 frames are heard", format, got)
		}
		loud := 0
		for i := 0; i+160 <= len(e.played); i += 160 {
			if share(e.played[i:i+160], 500, format.Rate()) > 0.5 {
				loud++
			}
		}
		if total := len(e.played) / 160; loud < total*9/10 {
			t.Errorf("%s: %d of %d pieces of the recording are sound", format, loud, total)
		}
		s := m.Stats()
		if s.Still < 40 || s.Still > 52 || s.Jitter > 5*time.Millisecond {
			t.Errorf("%s: %d packets stood still, jitter %v", format, s.Still, s.Jitter)
		}
		before := len(e.heard)
		for range 3000 { // a minute's sound at once
			put(1 << 20)
		}
		if got := frames(e.heard[before:]); got > 600 || m.Stats().Refused < 2000 {
			t.Errorf("%s: %d frames at once are heard, %d refused", format, got, m.Stats().Refused)
		}
	}
}

// TestOtherRate: the codec changes to another rate and back in the middle of a call, and both ends hear on.
func TestOtherRate(t *testing.T) {
	for _, first := range []audio.Format{audio.G722, audio.PCMU} {
		e := &tonePeer{hz: 700}
		m, w := desk(t, first, true, e)
		at, seq := time.Duration(0), uint16(0)
		for round, format := range []audio.Format{first, audio.PCMA, audio.G722, audio.Opus, first} {
			c := codecOf(format, true)
			m.agree(Agreement{Codec: c, Direction: both, Told: w.addr(), Signal: w.addr().Addr()}, at)
			encoder, decoder := audio.NewEncoder(format), audio.NewDecoder(format)
			ssrc := uint32(9)
			if format == audio.Opus {
				ssrc = 10
			}
			var far []int16
			e.heard, e.played = nil, nil
			for i := range 50 {
				seq++
				m.packet(packet(c.Send, false, seq, ticks(at, format.ClockRate()), ssrc, encoder.Encode(nil, toneAt(format.Rate(), 500, i))), w.addr(),
					at)
				m.tick(at, 0)
				at += frameTime
				p, _ := w.listen(hang)
				if p == nil || p.PayloadType != c.Send {
					t.Fatalf("%s in round %d: it sends %v", format, round, p)
				}
				far = decoder.Decode(far, p.Payload)
			}
			for name, s := range map[string]struct {
				pcm  []int16
				rate audio.Rate
				hz   float64
			}{"heard": {e.heard, first.Rate(), 500}, "recorded": {e.played, first.Rate(), 500}, "said": {far, format.Rate(), 700}} {
				n := int(s.rate) / 2
				if len(s.pcm) < 45*s.rate.FrameSize() || share(s.pcm[len(s.pcm)-n:], s.hz, s.rate) < 0.9 {
					t.Errorf("%s in a call of %s, round %d: %s %d samples, %.2f of them the tone", format, first, round, name, len(s.pcm),
						share(s.pcm[max(0, len(s.pcm)-n):], s.hz, s.rate))
				}
			}
		}
	}
}

// tonePeer is a sink that says a tone.
type tonePeer struct {
	sink
	hz float64
	n  int
}

func (p *tonePeer) Tick(in, out audio.Frame) bool {
	p.sink.Tick(in, out)
	copy(out, toneAt(audio.Rate(50*len(out)), p.hz, p.n))
	p.n++
	return true
}

// toneAt is the n-th frame of a tone.
func toneAt(rate audio.Rate, hz float64, n int) audio.Frame {
	f := make(audio.Frame, rate.FrameSize())
	for i := range f {
		f[i] = int16(8000 * math.Sin(2*math.Pi*hz*float64(n*len(f)+i)/float64(rate)))
	}
	return f
}
