package rtp

import (
	"testing"
	"testing/synctest"
	"time"
)

// A clock keeps the pace that it started with, however late its frames are taken: up to two frames are made up for,
// more are a gap.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, done, frames := time.Now(), make(chan struct{}), 0
		var all int
		NewClock(began).Run(done, func(at time.Duration, missed int) {
			frames++
			if at != time.Since(began) {
				t.Errorf("frame %d is at %v, not %v", frames, at, time.Since(began))
			}
			all += missed + 1
			switch frames {
			case 10:
				time.Sleep(25 * time.Millisecond)
			case 20:
				time.Sleep(59 * time.Millisecond) // two frames are late
			case 30:
				time.Sleep(90 * time.Millisecond) // three of the four that pass are gone
			case 31:
				if missed != 3 {
					t.Errorf("%d frames were missed of three", missed)
				}
			case 100:
				if at != time.Duration(all-1)*frameTime {
					t.Errorf("%d frames are due, and it is %v", all, at)
				}
				close(done)
			default:
				if missed != 0 {
					t.Errorf("frame %d: %d were missed of none", frames, missed)
				}
			}
		})
		if frames != 100 {
			t.Errorf("%d frames: it went on when it was over", frames)
		}
	})
}

// Clocks that start at different times share one grid.
func TestClockAlign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		time.Sleep(7 * time.Millisecond)
		c := NewClock(time.Now())
		defer c.Stop()
		c.Align(from, 10*time.Millisecond)
		for i := range 3 {
			if !c.Wait(nil) {
				t.Fatal("it doesn't go")
			}
			if _, missed := c.Due(); missed != 0 || time.Since(from) != 10*time.Millisecond+time.Duration(i)*frameTime {
				t.Errorf("frame %d is due %v after the beginning of the grid", i, time.Since(from))
			}
		}
		over := make(chan struct{})
		close(over)
		if c.Wait(over) {
			t.Error("it goes on when it is over")
		}
	})
}
