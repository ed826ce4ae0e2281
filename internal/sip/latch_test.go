package sip

import (
	"net/netip"
	"testing"
	"time"
)

func TestLatch(t *testing.T) {
	t.Parallel()
	type step struct {
		from string
		at   time.Duration
		seq  uint16
		want bool
	}
	const told, port, stranger, signal = "192.0.2.1:4000", "192.0.2.1:5000", "203.0.113.9:4000", "192.0.2.2:5060"
	burst := func(from string, at time.Duration, n int, want ...bool) (s []step) {
		for i := range n {
			s = append(s, step{from, at + time.Duration(i)*20*time.Millisecond, uint16(i), want[min(i, len(want)-1)]})
		}
		return s
	}
	for name, c := range map[string]struct {
		told  string
		steps [][]step
		to    string
	}{
		"nothing came":                {told: told, to: told},
		"as described":                {told: told, steps: [][]step{burst(told, 0, 5, true)}, to: told},
		"another port, by a NAT":      {told: told, steps: [][]step{burst(port, 0, 5, true)}, to: port},
		"the signalling's address":    {told: "10.0.0.1:4000", steps: [][]step{burst("192.0.2.2:7777", 0, 5, true)}, to: "192.0.2.2:7777"},
		"a stranger first":            {told: told, steps: [][]step{burst(stranger, 0, 20, false)}, to: told},
		"a stranger, patient":         {told: told, steps: [][]step{burst(stranger, 2*time.Second, 6, false, false, false, false, true)}, to: stranger},
		"then the right one":          {told: told, steps: [][]step{burst(stranger, 2*time.Second, 6, false, false, false, false, true), burst(told, 2200*time.Millisecond, 3, true)}, to: told},
		"a stranger in between":       {told: told, steps: [][]step{burst(told, 0, 5, true), burst(stranger, 100*time.Millisecond, 100, false)[:5], burst(told, 200*time.Millisecond, 5, true)}, to: told},
		"a stranger after silence":    {told: told, steps: [][]step{burst(told, 0, 5, true), burst(stranger, 4*time.Second, 6, false, false, false, false, true)}, to: stranger},
		"its port moves":              {told: told, steps: [][]step{burst(told, 0, 5, true), burst(port, time.Second, 4, false, false, true)}, to: port},
		"its port flaps":              {told: told, steps: [][]step{burst(told, 0, 5, true), {{port, 110 * time.Millisecond, 9, false}, {told, 120 * time.Millisecond, 6, true}, {port, 130 * time.Millisecond, 10, false}}}, to: told},
		"noise is no run":             {told: told, steps: [][]step{{{stranger, 2 * time.Second, 5, false}, {stranger, 2 * time.Second, 900, false}, {stranger, 2 * time.Second, 7, false}, {stranger, 2 * time.Second, 77, false}, {stranger, 2 * time.Second, 3, false}, {stranger, 2 * time.Second, 1, false}}}, to: told},
		"loopback of another machine": {told: "127.0.0.1:4000", to: "192.0.2.2:4000"},
		"no address":                  {told: "0.0.0.0:4000", to: "192.0.2.2:4000"},
		"to all":                      {told: "224.0.0.1:4000", to: "192.0.2.2:4000"},
	} {
		t.Run(name, func(t *testing.T) {
			var l latch
			l.tell(netip.MustParseAddrPort(c.told), netip.MustParseAddrPort(signal).Addr(), 0)
			for i, steps := range c.steps {
				for k, s := range steps {
					if got := l.accept(netip.MustParseAddrPort(s.from), s.at, s.seq, 1); got != s.want {
						t.Fatalf("burst %d, packet %d from %s: %v", i, k, s.from, got)
					}
				}
			}
			if l.to().String() != c.to {
				t.Errorf("packets go to %s, want %s", l.to(), c.to)
			}
		})
	}
	// A new description: packets from where it was before don't count at once.
	var l latch
	at := netip.MustParseAddrPort
	l.tell(at(told), at(signal).Addr(), 0)
	l.accept(at(told), 0, 1, 1)
	l.tell(at(port), at(signal).Addr(), time.Second)
	if l.accept(at(told), 1010*time.Millisecond, 2, 1) || l.to() != at(port) {
		t.Error("the old port took the call back")
	}
	if !l.accept(at(port), 1020*time.Millisecond, 3, 1) {
		t.Error("the new port isn't heard")
	}
}
