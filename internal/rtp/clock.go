package rtp

import "time"

// maxBehind is how many missed frames are made up for; a longer stall is a gap.
const maxBehind = 2

// Clock reports every 20 ms that a frame is due. Times count from its beginning, so that nothing drifts.
type Clock struct {
	Pace *Pace // is told how late each frame is taken; nil: nobody is

	began time.Time
	next  time.Duration
	timer *time.Timer
}

// NewClock counts from a moment. The first frame is due at once.
func NewClock(began time.Time) *Clock {
	return &Clock{began: began, next: time.Since(began), timer: time.NewTimer(0)}
}

// Align moves the next frame to a moment shared by many clocks, a multiple of grid after another moment: frames that
// are due together wake the process once.
func (c *Clock) Align(from time.Time, grid time.Duration) { c.next += grid - time.Since(from)%grid }

// Run calls tick for each frame until done is closed, with the time since the beginning, and the number of frames
// missed before it because the process stood still. Missed frames are gone: nothing is sent in a burst.
func (c *Clock) Run(done <-chan struct{}, tick func(at time.Duration, missed int)) {
	defer c.Stop()
	for c.Wait(done) {
		tick(c.Due())
	}
}

// Wait returns when a frame is due, which must then be taken by Due, or returns false when done is closed.
func (c *Clock) Wait(done <-chan struct{}) bool {
	c.timer.Reset(c.next - time.Since(c.began))
	select {
	case <-done:
		return false
	case <-c.timer.C:
	}
	select {
	case <-done: // both at once
		return false
	default:
		return true
	}
}

// Due takes the frame that is due.
func (c *Clock) Due() (at time.Duration, missed int) {
	at = time.Since(c.began)
	c.Pace.took(at - c.next)
	c.next, missed = following(c.next, at)
	return at, missed
}

// Stop releases what Wait took. Run does so itself.
func (c *Clock) Stop() { c.timer.Stop() }

// following says, when a due frame is taken now, when the next one is due and how many were missed before it.
func following(due, now time.Duration) (next time.Duration, missed int) {
	missed = int((now - due) / frameTime)
	if missed <= maxBehind {
		missed = 0
	}
	return due + time.Duration(missed+1)*frameTime, missed
}
