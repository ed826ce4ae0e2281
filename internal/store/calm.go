package store

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Calm is a log handler that passes at most one line a second that says that the database does not answer, or can't be written, with how
// many it left out: when it is away every loop and every request says so.
func Calm(h slog.Handler) slog.Handler { return calm{h, new(silence)} }

type calm struct {
	slog.Handler
	*silence
}

type silence struct {
	mu   sync.Mutex
	last time.Time
	left int
}

func (c calm) WithAttrs(a []slog.Attr) slog.Handler { return calm{c.Handler.WithAttrs(a), c.silence} }

func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name), c.silence} }

func (c calm) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo || !tellsAway(r) {
		return c.Handler.Handle(ctx, r)
	}
	c.mu.Lock()
	if !c.last.IsZero() && r.Time.Sub(c.last) < time.Second {
		c.left++
		c.mu.Unlock()
		return nil
	}
	c.last = r.Time
	if c.left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("more_like_this", c.left))
	}
	c.left = 0
	c.mu.Unlock()
	return c.Handler.Handle(ctx, r)
}

// tellsAway says whether one of a line's values is an error of a database that is away, or can't be written. The queue writes its errors
// as texts.
func tellsAway(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case error:
			found = away(v) || stuck(v)
		case string:
			found = strings.HasPrefix(a.Key, "err") &&
				(strings.Contains(v, notReached) || strings.Contains(v, "SQLSTATE 57P0"))
		}
		return !found
	})
	return found
}
