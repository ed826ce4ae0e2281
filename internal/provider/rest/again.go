package rest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"parley/internal/ai"
)

const (
	attempts = 3 // how often a request is made, when failing is safe
	// FirstPause is that before the second attempt; it is doubled for each further one.
	FirstPause    = 250 * time.Millisecond
	maxRetryAfter = 5 * time.Second // a server that asks for a longer pause is not asked again: a person waits
)

// Again makes attempts until one succeeds, or another is pointless; begun reports whether part of the answer has been
// passed on. what and model are for the log.
func Again(ctx context.Context, what, model string, begun func() bool, attempt func() error) error {
	for n := 1; ; n++ {
		err := attempt()
		if err == nil || ctx.Err() != nil {
			return err
		}
		failure, ok := errors.AsType[*ai.Error](err)
		if !ok || begun() || !failure.Retry() || n == attempts || ai.HasNext(ctx) {
			return err
		}
		pause := max(FirstPause<<(n-1), failure.RetryAfter)
		if pause > maxRetryAfter {
			return err
		}
		slog.WarnContext(ctx, what+" asked again", "model", model, "attempt", n+1, "pause", pause, "error", err)
		if !sleep(ctx, pause+rand.N(pause/2)) {
			return context.Cause(ctx)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// RetryAfter reads Retry-After (RFC 9110 section 10.2.3) and retry-after-ms, which OpenAI and Anthropic send too.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
