package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/internal/ai"
)

// Why a Guard ends a request.
var (
	ErrStalled = errors.New("the server sent nothing")
	ErrEndless = errors.New("the answer is endless")
	ErrSlow    = errors.New("the answer is too slow to be waited for")
	errDrained = errors.New("the reply is whole, its connection is not") // no failure
)

const (
	maxEvent  = 1 << 20  // bytes of one event, or of an answer that is no stream
	maxStream = 16 << 20 // bytes of a whole stream
	maxDrain  = 4 << 10
	maxWait   = 4 * time.Minute // for a whole answer, pauses of its reader aside
	minSpan   = 16 << 10        // bytes of sound that come at least in each span of stall
	// DrainTime is how long we read on behind the last event, to keep the connection.
	DrainTime = 100 * time.Millisecond
)

// Guard watches one answer: how long it is silent and how large it is. It ends the request by cancelling it with a
// cause.
type Guard struct {
	// Sound says that the answer is no text: it has no events, but so many bytes at most.
	Sound int

	stall  time.Duration
	waited time.Duration
	pace   ai.Pace // of sound
	cancel context.CancelCauseFunc
	timer  *time.Timer // runs only while we wait for the server, not while a slow reader holds us up

	body    io.ReadCloser
	total   int
	event   int  // bytes since the last empty line
	newline bool // the last byte that is no CR was an LF
	ended   bool
}

// NewGuard starts watching. Stop it.
func NewGuard(stall time.Duration, cancel context.CancelCauseFunc) *Guard {
	return &Guard{stall: stall, pace: ai.Pace{Least: minSpan, What: "bytes of sound", Window: stall}, cancel: cancel,
		timer: time.AfterFunc(stall, func() { cancel(ErrStalled) })}
}

// Stop ends the watching.
func (g *Guard) Stop() { g.timer.Stop() }

// Middleware makes the request and stands between the answer's body and its reader.
func (g *Guard) Middleware(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(r)
	g.timer.Stop()
	if res != nil && res.Body != nil {
		g.body = res.Body
		res.Body = g
	}
	return res, err
}

// Read implements io.Reader.
func (g *Guard) Read(p []byte) (int, error) {
	g.timer.Reset(g.stall)
	began := time.Now()
	g.pace.Wait()
	n, err := g.body.Read(p)
	g.timer.Stop()
	g.waited += time.Since(began)
	g.ended = g.ended || err != nil
	cause := error(nil)
	switch {
	case !g.count(p[:n]):
		cause = ErrEndless
	case err == nil && (g.waited > maxWait || g.Sound > 0 && g.pace.Came(n) != nil):
		cause = ErrSlow
	default:
		return n, err
	}
	g.ended = true
	g.cancel(cause)
	return 0, cause
}

// count says whether the answer is still of a sane size.
func (g *Guard) count(p []byte) bool {
	g.total += len(p)
	if g.Sound > 0 {
		return g.total <= g.Sound
	}
	for _, c := range p {
		switch {
		case c == '\n' && g.newline:
			g.event = 0
		case c != '\r':
			g.event++
			g.newline = c == '\n'
		}
		if g.event > maxEvent {
			return false
		}
	}
	return g.total <= maxStream
}

// Close implements io.Closer. What follows the last event, a chunk of no bytes, is read so that the connection can be
// used again.
func (g *Guard) Close() error {
	if !g.ended {
		t := time.AfterFunc(DrainTime, func() { g.cancel(errDrained) })
		_, _ = io.CopyN(io.Discard, g.body, maxDrain) // whatever it says, the reply is whole
		t.Stop()
	}
	return g.body.Close()
}

// Unwanted notes that nothing more of the answer will be read.
func (g *Guard) Unwanted() { g.ended = true }

// Ended is what ended the request from our side: a failure that the guard found, as an *ai.Error, or the cause of a
// context that is over; nil if neither did. ctx is the one that the guard cancels.
func (g *Guard) Ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrStalled):
		return &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("%w for %v", cause, g.stall)}
	case errors.Is(cause, ErrSlow):
		return &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("%w: %d bytes in %v", cause, g.total, g.waited.Round(time.Second))}
	case errors.Is(cause, ErrEndless):
		return &ai.Error{Kind: ai.Malformed, Err: cause}
	case ctx.Err() != nil && !errors.Is(cause, errDrained):
		return cause
	}
	return nil
}
