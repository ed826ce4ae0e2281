package rtp

import (
	"math"
	"testing"
	"time"
)

// TestMOS: the values of G.107's own formulas, worked out by hand.
func TestMOS(t *testing.T) {
	for _, c := range []struct {
		lost  float64
		delay time.Duration
		want  float64
	}{{0, 0, 4.41}, {0, 100 * time.Millisecond, 4.36}, {0, 300 * time.Millisecond, 3.71}, {0.01, 0, 4.33},
		{0.05, 0, 3.92}, {0.2, 100 * time.Millisecond, 2.51}, {1, 0, 1.18}, {1, 2 * time.Second, 1}, {-1, 0, 4.41}} {
		if got := MOS(c.lost, c.delay); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%g lost, %s: %.2f, want %.2f", c.lost, c.delay, got, c.want)
		}
	}
	last := 5.0
	for lost := 0.0; lost <= 1; lost += 0.01 {
		if got := MOS(lost, 50*time.Millisecond); got > last || got < 1 {
			t.Errorf("%g lost is %.2f after %.2f", lost, got, last)
		} else {
			last = got
		}
	}
	s := Stats{Sent: 100, Received: 90, Lost: 10, FarLost: 20, RoundTrip: 100 * time.Millisecond}
	if lost, mos := s.Heard(); lost != 0.1 || math.Abs(mos-MOS(0.1, 70*time.Millisecond)) > 1e-9 {
		t.Errorf("heard: %g, %g", lost, mos)
	}
	if _, _, told := s.Said(); told {
		t.Error("nothing was told")
	}
	s.Reports = 1
	if lost, _, told := s.Said(); lost != 0.2 || !told {
		t.Errorf("said: %g, %v", lost, told)
	}
	if lost, _ := (&Stats{Received: 10, Lost: -3}).Heard(); lost != 0 {
		t.Error("what came twice is a loss")
	}
}
