package rtp

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// TestReception counts as RFC 3550's appendix A.3 does.
func TestReception(t *testing.T) {
	t.Parallel()
	span := func(from, n int) (s []uint16) {
		for i := range n {
			s = append(s, uint16(from+i))
		}
		return s
	}
	gaps := func(n, every int) (s []uint16) {
		for i := range n {
			if i%every != every/2 {
				s = append(s, uint16(i))
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		seqs           []uint16
		received, lost int
		fraction       uint8
		total, newest  uint32 // as they are reported
	}{
		"all":                   {seqs: span(5, 100), received: 100, newest: 104},
		"across the wrap":       {seqs: span(65530, 16), received: 16, newest: 1<<16 + 9},
		"a quarter":             {seqs: gaps(100, 4), received: 75, lost: 25, fraction: 64, total: 25, newest: 99},
		"a tenth":               {seqs: gaps(100, 10), received: 90, lost: 10, fraction: 25, total: 10, newest: 99},
		"one of two":            {seqs: []uint16{7, 9}, received: 2, lost: 1, fraction: 85, total: 1, newest: 9},
		"twice each":            {seqs: append(span(0, 50), span(0, 50)...), received: 50, total: 1<<24 - 50, newest: 49},
		"twice in a row":        {seqs: []uint16{1, 1, 2, 2, 2, 3}, received: 3, total: 1<<24 - 3, newest: 3},
		"twice, and late":       {seqs: []uint16{1, 3, 2, 2, 1, 70}, received: 4, lost: 66, total: 64, fraction: 234, newest: 70},
		"as many twice as lost": {seqs: []uint16{1, 1, 3, 3, 5, 5}, received: 3, lost: 2, total: 1<<24 - 1, newest: 5},
		"out of order":          {seqs: []uint16{1, 3, 2, 5, 4}, received: 5, newest: 5},
		"order at a wrap":       {seqs: []uint16{65534, 0, 65535, 1}, received: 4, newest: 1<<16 + 1},
		"one from nowhere":      {seqs: []uint16{10, 40000, 11}, received: 2, newest: 11},
		"begun anew":            {seqs: []uint16{10, 12, 40000, 40001, 40002}, received: 4, lost: 1, newest: 40002},
	} {
		t.Run(name, func(t *testing.T) {
			var r reception
			for i, seq := range c.seqs {
				r.packet(seq, uint32(i)*frameTicks, 9, time.Duration(i)*frameTime, true)
			}
			p := r.report(time.Second)
			if p.SSRC != 9 || p.FractionLost != c.fraction || p.TotalLost != c.total ||
				p.LastSequenceNumber != c.newest || p.Jitter != 0 {
				t.Errorf("reports %+v", p)
			}
			if p := r.report(time.Second); p.FractionLost != 0 {
				t.Errorf("of no packets %d/256 were lost", p.FractionLost)
			}
			r.leave()
			if r.before.received != c.received || r.before.lost != c.lost {
				t.Errorf("%d came and %d were lost", r.before.received, r.before.lost)
			}
		})
	}
	// Another source has its own counts, and adds to those of the first.
	var r reception
	for i := range 10 {
		r.packet(uint16(2*i), 0, 1, 0, false)
	}
	for i := range 10 {
		r.packet(uint16(i), 0, 2, 0, false)
	}
	if p := r.report(0); p.SSRC != 2 || p.TotalLost != 0 || p.LastSequenceNumber != 9 {
		t.Errorf("of the second source: %+v", p)
	}
	if r.leave(); r.before.received != 20 || r.before.lost != 9 {
		t.Errorf("of both %d came and %d were lost", r.before.received, r.before.lost)
	}
}

// TestJitter checks the estimate against that of section 6.4.1, in floating point.
func TestJitter(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(i int) float64{ // ms
		"none":   func(int) float64 { return 40 },
		"swings": func(i int) float64 { return float64(i%2) * 10 },
		"random": func() func(int) float64 {
			r := rand.New(rand.NewPCG(1, 2))
			return func(int) float64 { return 30 * r.Float64() }
		}(),
	} {
		var r reception
		var want, last float64
		for i := range 1000 {
			at := time.Duration(float64(i*20)*1e6 + late(i)*1e6)
			r.packet(uint16(i), math.MaxUint32-5000+uint32(i)*frameTicks, 9, at, true)
			way := at.Seconds()*rtpClock - float64(i*frameTicks)
			if i > 0 {
				want += (math.Abs(way-last) - want) / 16
			}
			last = way
		}
		if got := float64(r.report(0).Jitter); math.Abs(got-want) > 1.5 {
			t.Errorf("%s: %g ticks, not %g", name, got, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	if got := ntp(time.Unix(0, 0)); got != 2_208_988_800<<32 {
		t.Errorf("1970 is %x", got)
	}
	// The example of RFC 3550, figure 2.
	if got, ok := roundTrip(0xb710_8000_0000<<0, rtcp.ReceptionReport{LastSenderReport: 0xb705_2000,
		Delay: 0x0005_4000}); !ok || got != 6125*time.Millisecond {
		t.Errorf("the RFC's example: %v, %v", got, ok)
	}
	for _, c := range []struct {
		kept, whole time.Duration
		ok          bool
	}{{0, 0, true}, {time.Second, 1250 * time.Millisecond, true},
		{time.Minute, time.Minute + 3*time.Millisecond, true}, {2 * time.Second, time.Second, false}} {
		got, ok := roundTrip(ntp(sent.Add(c.whole)),
			rtcp.ReceptionReport{LastSenderReport: middle(ntp(sent)), Delay: fraction(c.kept)})
		if off := got - (c.whole - c.kept); ok != c.ok || ok &&
			(off > time.Millisecond/10 || off < -time.Millisecond/10) {
			t.Errorf("kept for %v of %v: %v, %v", c.kept, c.whole, got, ok)
		}
	}
	if _, ok := roundTrip(ntp(sent), rtcp.ReceptionReport{}); ok {
		t.Error("who had no report of ours tells of the way")
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first  bool
		random float64
		want   time.Duration
	}{{false, 0, 2052 * time.Millisecond}, {false, 1, 6156 * time.Millisecond}, {true, 0, 1026 * time.Millisecond},
		{true, 1, 3078 * time.Millisecond}} {
		if got := interval(c.first, c.random).Round(time.Millisecond); got != c.want {
			t.Errorf("first %v, random %g: %v", c.first, c.random, got)
		}
	}
}
