package rtp

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
		loose bool
		steps [][]step
		to    string
	}{
		"nothing came":           {told: told, to: told},
		"as described":           {told: told, steps: [][]step{burst(told, 0, 5, true)}, to: told},
		"another port, by a NAT": {told: told, steps: [][]step{burst(port, 0, 5, true)}, to: port},
		"the signalling's address": {told: "10.0.0.1:4000", steps: [][]step{burst("192.0.2.2:7777", 0, 5, true)},
			to: "192.0.2.2:7777"},
		"a stranger first": {told: told, steps: [][]step{burst(stranger, 0, 20, false)}, to: told},
		"a stranger, patient": {told: told, steps: [][]step{burst(stranger, 2*time.Second, 1000, false)},
			to: told},
		"then the right one": {told: told,
			steps: [][]step{burst(stranger, 2*time.Second, 6, false), burst(told, 2200*time.Millisecond, 3, true)},
			to:    told},
		"a stranger in between": {told: told,
			steps: [][]step{burst(told, 0, 5, true), burst(stranger, 100*time.Millisecond, 100, false)[:5],
				burst(told, 200*time.Millisecond, 5, true)}, to: told},
		"a stranger after silence": {told: told,
			steps: [][]step{burst(told, 0, 5, true), burst(stranger, 4*time.Second, 1000, false)}, to: told},
		"a neighbour after silence": {told: told,
			steps: [][]step{burst(told, 0, 5, true), burst(port, 4*time.Second, 1000, false)}, to: told},
		"a neighbour, then the right": {told: told,
			steps: [][]step{burst(port, 0, 5, true), burst(told, time.Second, 5, true),
				burst(port, 2*time.Second, 5, false)}, to: told},
		"a second source": {told: "10.0.0.1:4000",
			steps: [][]step{burst("192.0.2.2:7777", 0, 5, true),
				burst("192.0.2.2:7778", 9*time.Second, 100, false)}, to: "192.0.2.2:7777"},

		"loose: a stranger first": {loose: true, told: told, steps: [][]step{burst(stranger, 0, 20, false)},
			to: told},
		"loose: a stranger, patient": {loose: true, told: told,
			steps: [][]step{burst(stranger, 2*time.Second, 6, false, false, false, false, true)}, to: stranger},
		"loose: then the right one": {loose: true, told: told,
			steps: [][]step{burst(stranger, 2*time.Second, 6, false, false, false, false, true),
				burst(told, 2200*time.Millisecond, 3, true)}, to: told},
		"loose: a stranger after silence": {loose: true, told: told,
			steps: [][]step{burst(told, 0, 5, true),
				burst(stranger, 4*time.Second, 6, false, false, false, false, true)}, to: stranger},
		"loose: its port moves": {loose: true, told: told,
			steps: [][]step{burst(told, 0, 5, true), burst(port, time.Second, 4, false, false, true)}, to: port},
		"loose: its port flaps": {loose: true, told: told,
			steps: [][]step{burst(told, 0, 5, true),
				{{port, 110 * time.Millisecond, 9, false}, {told, 120 * time.Millisecond, 6, true},
					{port, 130 * time.Millisecond, 10, false}}}, to: told},
		"loose: noise is no run": {loose: true, told: told,
			steps: [][]step{{{stranger, 2 * time.Second, 5, false}, {stranger, 2 * time.Second, 900, false},
				{stranger, 2 * time.Second, 7, false},
				{stranger, 2 * time.Second, 77, false}, {stranger, 2 * time.Second, 3, false},
				{stranger, 2 * time.Second, 1, false}}}, to: told},

		"loopback of another machine": {told: "127.0.0.1:4000", to: "192.0.2.2:4000"},
		"no address":                  {told: "0.0.0.0:4000", to: "192.0.2.2:4000"},
		"to all":                      {told: "224.0.0.1:4000", to: "192.0.2.2:4000"},
	} {
		t.Run(name, func(t *testing.T) {
			l := latch{loose: c.loose}
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
	// After a new description, packets from the old address don't count at once.
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

// TestLatchAgain repeats the same description, as a re-INVITE does: the sound may have moved, and until that is known
// it is sent where it was sent before.
func TestLatchAgain(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort
	inside, old, moved, stranger := at("10.0.0.1:4000"), at("192.0.2.2:7777"), at("192.0.2.2:8888"),
		at("203.0.113.9:4000")
	var l latch
	l.tell(inside, old.Addr(), 0)
	if !l.accept(old, 0, 1, 1) || l.accept(moved, 5*time.Second, 2, 1) {
		t.Fatal("the first source alone is the call's")
	}
	l.tell(inside, old.Addr(), 6*time.Second)
	if l.to() != old {
		t.Errorf("after a re-INVITE packets go to %s", l.to())
	}
	if l.accept(stranger, 6*time.Second, 3, 1) || !l.accept(moved, 6*time.Second, 3, 1) || l.to() != moved {
		t.Error("after a re-INVITE the sound may come from another port of the signalling's address, and from nowhere else")
	}
	if l.accept(old, 7*time.Second, 4, 1) {
		t.Error("it moved back by itself")
	}
}
