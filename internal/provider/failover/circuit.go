package failover

import (
	"errors"
	"sync"
	"time"

	"parley/internal/ai"
)

// When a circuit opens, and for how long.
const (
	maxFailures = 3                // within window
	window      = 30 * time.Second // in which failures count
	firstPause  = 15 * time.Second // of an open circuit; it doubles with each probe that fails
	maxPause    = 2 * time.Minute
	configPause = 5 * time.Minute // an operator must mend it: nothing is lost by asking seldom
	maxRetry    = 5 * time.Minute // of what a vendor asks to wait
)

// Circuit decides whether a vendor's part is asked at all. It is closed as long as requests go well, opens after some
// failures, and then lets a request through now and then as a test. It is safe for concurrent use.
type Circuit struct {
	mu       sync.Mutex
	failures []time.Time // of the last while it was closed, oldest first
	until    time.Time   // it is open until then; zero: it is closed
	pause    time.Duration
	why      ai.Kind // of the failure that opened it
	probing  bool
}

// pass is a request that a circuit let through. One goroutine calls exactly one of well, failed and void; later calls
// change nothing.
type pass struct {
	c     *Circuit
	probe bool
	done  bool
}

// enter asks for a pass; nil with the reason if the circuit is open.
func (c *Circuit) enter() (*pass, ai.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until.IsZero():
		return &pass{c: c}, ""
	case c.probing || time.Now().Before(c.until):
		return nil, c.why
	}
	c.probing = true
	return &pass{c: c, probe: true}, ""
}

// force is a pass through a circuit however it stands: where all are open, somebody has to be asked.
func (c *Circuit) force() *pass { return &pass{c: c} }

// Open reports whether the circuit lets nobody through now.
func (c *Circuit) Open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.until.IsZero() && (c.probing || time.Now().Before(c.until))
}

// Steady reports whether the circuit is closed, and nothing has failed for a while.
func (c *Circuit) Steady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.failures)
	return c.until.IsZero() && (n == 0 || time.Since(c.failures[n-1]) > window)
}

// well reports that the vendor did what it was asked to do.
func (p *pass) well() {
	p.settle(func(c *Circuit) {
		if !c.until.IsZero() { // a probe, or one that was forced: it is there again
			c.until, c.pause, c.failures = time.Time{}, 0, nil
		}
	})
}

// void reports that nothing was learned: the answer was no longer wanted.
func (p *pass) void() { p.settle(func(*Circuit) {}) }

// failed reports that the vendor failed. A fault in the request alone says nothing about the vendor.
func (p *pass) failed(err error) {
	kind := ai.KindOf(err)
	if kind == ai.TooLong || kind == ai.Refused {
		p.well()
		return
	}
	p.settle(func(c *Circuit) {
		now := time.Now()
		c.failures = append(c.failures, now)
		for now.Sub(c.failures[0]) > window {
			c.failures = c.failures[1:]
		}
		pause := retryAfter(err)
		switch {
		case kind == ai.Config:
			pause = configPause
		case pause > 0: // as the vendor asks
		case p.probe || !c.until.IsZero():
			c.pause = min(2*c.pause, maxPause)
			pause = c.pause
		case len(c.failures) < maxFailures:
			return
		default:
			c.pause = firstPause
			pause = c.pause
		}
		c.pause = max(c.pause, firstPause)
		c.why, c.failures = kind, nil
		if until := now.Add(pause); until.After(c.until) {
			c.until = until
		}
	})
}

func (p *pass) settle(fn func(*Circuit)) {
	if p.done {
		return
	}
	p.done = true
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.probe {
		p.c.probing = false
	}
	fn(p.c)
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*ai.Error](err); ok && e.Kind == ai.RateLimited {
		return min(e.RetryAfter, maxRetry)
	}
	return 0
}

// Circuits holds a process's circuits, by part and name. The zero value is ready, and safe for concurrent use.
type Circuits struct {
	mu  sync.Mutex
	all map[circuitKey]*Circuit
}

type circuitKey struct {
	part ai.Part
	name string
}

// maxCircuits are kept; beyond that those that are closed are forgotten.
const maxCircuits = 4096

// Of is the circuit of a part, by the name of its vendor.
func (s *Circuits) Of(part ai.Part, name string) *Circuit {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := circuitKey{part, name}
	if c := s.all[key]; c != nil {
		return c
	}
	if s.all == nil {
		s.all = map[circuitKey]*Circuit{}
	}
	if len(s.all) >= maxCircuits {
		for k, c := range s.all {
			if !c.Open() {
				delete(s.all, k)
			}
		}
	}
	s.all[key] = new(Circuit)
	return s.all[key]
}
