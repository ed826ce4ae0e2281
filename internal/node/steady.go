package node

import (
	"time"

	"parley/internal/parley"
)

// Steadiness tracks for how long a process has given signs of life without a gap, by the database's clock.
type Steadiness struct{ since, last parley.Time }

// Seen notes a sign of life. After a gap the count starts anew: whatever kept this process from the database may have
// kept others from it too, and they need time to be heard. The same goes for a clock that was set back.
func (s *Steadiness) Seen(now parley.Time, gap time.Duration) {
	if s.last == 0 || now < s.last || now.Sub(s.last) > gap {
		s.since = now
	}
	s.last = now
}

// Judges reports whether this process has been heard for as long as others may be silent.
func (s *Steadiness) Judges(silence time.Duration) bool { return s.last.Sub(s.since) >= silence }
