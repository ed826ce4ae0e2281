package openai

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"

	"parley/internal/ai"
)

// ask makes a request by hand, where the SDK has nothing to add, and passes its answer to take. sound is how many
// bytes of sound may come, 0 when the answer is text; begun says whether take has given anything of it away already.
// The error is an *ai.Error, or what ended it from our side.
func (c *Client) ask(ctx context.Context, req *http.Request, sound int, take func(res *http.Response) error,
	begun func() bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g := newGuard(c.stall, cancel)
	g.sound = sound
	defer g.timer.Stop()
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := g.middleware(req.WithContext(ctx), c.http.Do)
	if err == nil {
		defer g.Close() //nolint:errcheck // it has been read
		if res.StatusCode >= 400 {
			body, _ := io.ReadAll(io.LimitReader(res.Body, maxEvent))
			res.Body = io.NopCloser(strings.NewReader(string(body)))
			err = refused(res)
		} else {
			err = take(res)
		}
	}
	if stop, ok := errors.AsType[refusal](err); ok {
		g.ended = true // nothing more of it is wanted
		return stop.error
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStalled), errors.Is(cause, errEndless):
		return g.failure(cause)
	case ctx.Err() != nil && !errors.Is(cause, errDrained):
		return cause
	case err == nil:
		return nil
	}
	if _, ok := errors.AsType[*ai.Error](err); ok {
		return err
	}
	return failure(err, nil, begun())
}

// refusal is the error of a yield, which ends a request.
type refusal struct{ error }

// again makes attempts until one succeeds, or another can't go better; begun says whether a part of the answer has
// been given away.
func again(ctx context.Context, what, model string, begun func() bool, attempt func() error) error {
	for n := 1; ; n++ {
		err := attempt()
		if err == nil || ctx.Err() != nil {
			return err
		}
		failure, ok := errors.AsType[*ai.Error](err)
		if !ok || begun() || !failure.Retry() || n == attempts {
			return err
		}
		pause := max(firstPause<<(n-1), failure.RetryAfter)
		if pause > maxRetryAfter {
			return err
		}
		slog.WarnContext(ctx, what+" asked again", "model", model, "attempt", n+1, "pause", pause, "error", err)
		if !sleep(ctx, pause+rand.N(pause/2)) {
			return context.Cause(ctx)
		}
	}
}
