package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	slackPercent = 300      // garbage that is let lie, of what is kept
	slack        = 16 << 20 // and at most so much of it while there are calls, where they keep less
	minSlack     = 50       // percent of what is kept, however much it is
)

// slacken has the garbage collector run seldom. The heap is small (tens of MB) and requests allocate much of what
// they send: that buys a third more requests for some tens of MB. Each live call keeps some 100 KB, so that many of
// them are not let grow to four times that. It looks after each collection, and each second whether calls have begun:
// else the first hundred would fill what was meant for requests, and the system gets such memory back late.
func slacken(live func() int) (stop func()) {
	kept := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"}}
	var mu sync.Mutex
	now, busy, stopped := 0, false, false
	adjust := func() {
		percent := slackPercent
		if busy = live() > 0; busy {
			metrics.Read(kept)
			sum := uint64(0)
			for _, s := range kept {
				sum += s.Value.Uint64()
			}
			percent = slackOf(sum)
		}
		if percent < now*9/10 || percent > now*11/10 { // setting it stops the world for a moment
			now = percent
			debug.SetGCPercent(percent)
		}
	}
	var collected func(int)
	collected = func(int) {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			adjust()
			runtime.AddCleanup(new([64]byte), collected, 0) // is called after the next collection
		}
	}
	collected(0)
	runtime.GC() // what was needed to start is garbage by now, and would count as kept until the next one
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(time.Second, func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		if !busy && live() > 0 {
			adjust()
		}
		timer.Reset(time.Second)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// slackOf is the percentage of garbage while there are calls.
func slackOf(kept uint64) int { return int(max(minSlack, min(slackPercent, slack*100/max(kept, 1)))) }
