package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/option"

	"parley/internal/ai"
)

var (
	errStalled = errors.New("the server sent nothing")
	errEndless = errors.New("the answer is endless")
	errDrained = errors.New("the reply is whole, its connection is not") // no failure
)

const (
	maxEvent  = 1 << 20  // bytes of one event, or of an answer that is no stream
	maxStream = 16 << 20 // bytes of a whole stream
	maxDrain  = 4 << 10
	drainTime = 100 * time.Millisecond
)

// guard watches one answer: how long it is silent and how much it is. It ends the request by cancelling it with a
// cause.
type guard struct {
	stall  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer // runs only while we wait for the server, not while a slow reader holds us up

	body    io.ReadCloser
	sound   int // the answer is no text: it has no events, but so many bytes at most
	total   int
	event   int  // bytes since the last empty line
	newline bool // the last byte that is no CR was an LF
	ended   bool
}

func newGuard(stall time.Duration, cancel context.CancelCauseFunc) *guard {
	return &guard{stall: stall, cancel: cancel, timer: time.AfterFunc(stall, func() { cancel(errStalled) })}
}

func (g *guard) middleware(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(r)
	g.timer.Stop()
	if res != nil && res.Body != nil {
		g.body = res.Body
		res.Body = g
	}
	return res, err
}

// Read implements io.Reader.
func (g *guard) Read(p []byte) (int, error) {
	g.timer.Reset(g.stall)
	n, err := g.body.Read(p)
	g.timer.Stop()
	g.ended = g.ended || err != nil
	if g.count(p[:n]) {
		return n, err
	}
	g.ended = true
	g.cancel(errEndless)
	return 0, errEndless
}

// count says whether the answer is still of a sane size. The SDK collects an event without a limit.
func (g *guard) count(p []byte) bool {
	g.total += len(p)
	if g.sound > 0 {
		return g.total <= g.sound
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
func (g *guard) Close() error {
	if !g.ended {
		t := time.AfterFunc(drainTime, func() { g.cancel(errDrained) })
		_, _ = io.CopyN(io.Discard, g.body, maxDrain) // whatever it says, the reply is whole
		t.Stop()
	}
	return g.body.Close()
}

func (g *guard) failure(cause error) error {
	if cause == errStalled { //nolint:errorlint // it is our own cause
		return &ai.Error{Kind: ai.Stalled, Err: fmt.Errorf("%w for %v", cause, g.stall)}
	}
	return &ai.Error{Kind: ai.Malformed, Err: cause}
}
