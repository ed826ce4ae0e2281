package rtp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A server is behind once more than one frame in a hundred was late in three seconds in a row, and until five seconds have
// been good.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		seconds []int // of 200 frames, how many are late
		frames  int   // in place of 200
		behind  []bool
	}{
		"in time":           {seconds: []int{0, 2, 2, 2, 0}, behind: []bool{false, false, false, false, false}},
		"three bad seconds": {seconds: []int{3, 3, 3, 0}, behind: []bool{false, false, true, true}},
		"two bad seconds":   {seconds: []int{9, 9, 0, 9, 9, 0}, behind: make([]bool, 6)},
		"too few to say":    {seconds: []int{40, 40, 40, 40}, frames: 49, behind: make([]bool, 4)},
		"until five were good": {seconds: []int{9, 9, 9, 0, 0, 0, 0, 0, 0},
			behind: []bool{false, false, true, true, true, true, true, false, false}},
		"four good, and one bad": {seconds: []int{9, 9, 9, 0, 0, 0, 0, 9, 0},
			behind: []bool{false, false, true, true, true, true, true, true, true}},
		"no call is a good one": {seconds: []int{9, 9, 9, 0, 0, 0, 0, 0}, frames: 0,
			behind: []bool{false, false, true, true, true, true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPace(30 * time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				go p.Run(ctx)
				time.Sleep(time.Millisecond) // the seconds are counted before they are judged
				for i, late := range c.seconds {
					frames := c.frames
					if frames == 0 {
						frames = 200
					}
					for n := range frames {
						after := 30 * time.Millisecond
						if n < late {
							after++
						}
						p.took(after)
					}
					time.Sleep(paceEvery)
					if got := p.Behind(); got != c.behind[i] {
						t.Errorf("after second %d: behind %t", i+1, got)
					}
				}
				cancel()
				synctest.Wait()
			})
		})
	}
	var none *Pace
	if none.took(time.Hour); none.Behind() || NewPace(0) != nil {
		t.Error("without a limit nothing is behind")
	}
}

// A clock reports how late each of its frames is taken.
func TestClockTellsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPace(30 * time.Millisecond)
		c := NewClock(time.Now())
		c.Pace = p
		done := make(chan struct{})
		n := 0
		go c.Run(done, func(time.Duration, int) {
			if n++; n == 3 {
				time.Sleep(60 * time.Millisecond) // the fourth is taken 40 ms late, the fifth 20
			}
			if n == 6 {
				close(done)
			}
		})
		<-done
		synctest.Wait()
		if frames, late := p.Counts(); frames != 6 || late != 1 {
			t.Errorf("%d frames, %d late", frames, late)
		}
		if n := testing.AllocsPerRun(100, func() { p.took(time.Second) }); n != 0 {
			t.Errorf("%v allocations per frame", n)
		}
	})
}
