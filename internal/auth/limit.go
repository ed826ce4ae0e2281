package auth

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/internal/parley"
)

// Rate is how often something may be done, such as "200/s" or "10/min"; the zero Rate is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Times is n times as often.
func (r Rate) Times(n int) Rate { return Rate{r.PerSecond * float64(n), r.Burst * n} }

// ParseRate reads N/s (burst 2N), N/min (burst N) or "off".
func ParseRate(s string) (Rate, error) {
	if s == "off" {
		return Rate{}, nil
	}
	count, per, ok := strings.Cut(s, "/")
	n, err := strconv.Atoi(count)
	switch {
	case ok && err == nil && n > 0 && n < 1_000_000_000 && per == "s":
		return Rate{float64(n), 2 * n}, nil
	case ok && err == nil && n > 0 && n < 1_000_000_000 && per == "min":
		return Rate{float64(n) / 60, n}, nil
	}
	return Rate{}, fmt.Errorf("%q is not a rate: write it as 200/s, 60/min or off", s)
}

// UnmarshalText lets a Rate be a setting.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// Limiter keeps a token bucket per name (a key, an address, a conversation). A bucket that has filled up again is
// forgotten.
type Limiter struct {
	rate    Rate
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	swept   time.Time
}

// NewLimiter makes a limiter; it holds nothing but memory.
func NewLimiter(r Rate) *Limiter { return &Limiter{rate: r, buckets: map[string]*rate.Limiter{}} }

// Limit is the burst: what X-RateLimit-Limit says. 0: no limit.
func (l *Limiter) Limit() int { return l.rate.Burst }

// Take uses one of name's tokens. It returns how many are left, or an error that says how long to wait.
func (l *Limiter) Take(name string, now time.Time) (left int, err error) {
	left, _, err = l.borrow(name, now)
	return left, err
}

// borrow is Take of a token that may be given back, as if nothing had been done.
func (l *Limiter) borrow(name string, now time.Time) (left int, back func(), err error) {
	if l.rate.Burst == 0 {
		return math.MaxInt32, func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	b := l.buckets[name]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(l.rate.PerSecond), l.rate.Burst)
		l.buckets[name] = b
	}
	if tokens := b.TokensAt(now); tokens < 1-1e-6 {
		wait := (1 - tokens) / l.rate.PerSecond
		return 0, nil, &LimitError{RetryAfter: max(1, int(math.Ceil(wait-1e-6)))} // the noise of floats is no second
	}
	r := b.ReserveN(now, 1)
	return int(b.TokensAt(now)), func() { r.CancelAt(now) }, nil
}

// sweep forgets full buckets once a minute, so that the addresses of the whole internet are not kept.
func (l *Limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for name, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.rate.Burst) {
			delete(l.buckets, name)
		}
	}
}

// LimitError is the refusal of somebody who asks too often.
type LimitError = parley.LimitError
