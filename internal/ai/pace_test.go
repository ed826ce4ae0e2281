package ai

import (
	"testing"
	"testing/synctest"
	"time"
)

// A vendor that drips is told from one that is slow to begin, one that is slow but steady, and one whose reader is slow.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		first, every, reads time.Duration
		n                   int
		after               time.Duration // of the error; 0: there is none
	}{
		"drips":            {time.Second, time.Second, 0, 1, 30 * time.Second},
		"slow to begin":    {time.Hour, 100 * time.Millisecond, 0, 4, 0},
		"slow and steady":  {time.Second, time.Second, 0, 3, 0},
		"a slow reader":    {time.Second, 100 * time.Millisecond, time.Minute, 1, 0},
		"much, and seldom": {time.Second, 25 * time.Second, 0, 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := Pace{Least: 60, What: "letters", Window: 30 * time.Second}
				waited, wait := -c.first, c.first
				for range 500 {
					p.Wait()
					time.Sleep(wait)
					waited += wait
					wait = c.every
					err := p.Came(c.n)
					if err != nil {
						if KindOf(err) != Stalled || waited != c.after {
							t.Errorf("after %v: %v", waited, err)
						}
						return
					}
					time.Sleep(c.reads)
				}
				if c.after != 0 {
					t.Error("it went on")
				}
			})
		})
	}
}
