package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	slackPercent = 300      // garbage that is let lie, of what is kept
	slack        = 16 << 20 // and at most so much of it while there are calls, where they keep less
	leastSlack   = 75       // percent of what is kept, however much it is
)

// slacken has the garbage collector run seldom. The heap is small (tens of MB) and requests allocate much of what
// they send: that buys a third more requests for some tens of MB. Each live call keeps some 100 KB, so that many of
// them are not let grow to four times that.
func slacken(live func() int) {
	kept := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"}}
	now := 0
	var adjust func(int)
	adjust = func(int) {
		percent := slackPercent
		if live() > 0 {
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
		runtime.AddCleanup(new([64]byte), adjust, 0) // is called after the next collection
	}
	adjust(0)
	runtime.GC() // what was needed to start is garbage by now, and would count as kept until the next one
}

// slackOf is the percentage of garbage while there are calls.
func slackOf(kept uint64) int { return int(max(leastSlack, min(slackPercent, slack*100/max(kept, 1)))) }
