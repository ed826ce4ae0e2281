package voice

import (
	"sync"
	"time"
)

// clock is a conversation's time: since the answer, without what the leg stood still for, as it does while the far
// end holds the call.
type clock struct {
	start time.Time

	mu     sync.Mutex
	ticked time.Duration // since start: when the leg last ticked
	stood  time.Duration // how long it stood still so far
}

// standing is how late a leg's tick may be before the leg stands still: a busy machine is no hold.
const standing = time.Second

func (c *clock) now() time.Duration {
	since := time.Since(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(since, c.ticked+standing) - c.stood
}

// tick moves the time on.
func (c *clock) tick() {
	since := time.Since(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stood += max(since-c.ticked-standing, 0)
	c.ticked = since
}
