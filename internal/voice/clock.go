package voice

import (
	"sync"
	"time"
)

// clock is a conversation's time since the answer. It leaves out the time during which the leg stood still, as it does
// while the far end has the call on hold.
type clock struct {
	start time.Time

	mu     sync.Mutex
	ticked time.Duration // since start: when the leg last ticked
	stood  time.Duration // how long it stood still so far
}

// standing is how late a leg's tick may be before the leg counts as standing still: a busy machine is not a hold.
const standing = time.Second

func (c *clock) now() time.Duration {
	since := time.Since(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(since, c.ticked+standing) - c.stood
}

// tick advances the time.
func (c *clock) tick() {
	since := time.Since(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stood += max(since-c.ticked-standing, 0)
	c.ticked = since
}
