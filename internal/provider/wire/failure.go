package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"parley/internal/ai"
)

// unopened returns the reason why a handshake failed. It contains nothing of the address, which may hold a key.
func unopened(ctx context.Context, res *http.Response, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case res != nil && res.StatusCode != http.StatusSwitchingProtocols:
		return Refused(res)
	case res != nil:
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &ai.Error{Kind: ai.Unreachable, Err: err}
}

// Refused says what an HTTP error response means. It reads the body, and does not close it.
func Refused(res *http.Response) *ai.Error {
	e := &ai.Error{Kind: ai.Config, RetryAfter: retryAfter(res.Header)}
	switch code := res.StatusCode; {
	case code == http.StatusTooManyRequests:
		e.Kind = ai.RateLimited
	case code >= 500 || code == http.StatusRequestTimeout || code == http.StatusConflict || code == http.StatusTooEarly:
		e.Kind = ai.Overloaded
	}
	var body []byte
	if res.Body != nil {
		body, _ = io.ReadAll(io.LimitReader(res.Body, 1<<10)) // what there is of it
	}
	e.Err = &Status{res.StatusCode, fmt.Sprintf("%.300q", body)}
	return e
}

// Status is a handshake response that is not a WebSocket.
type Status struct {
	Code int
	Body string
}

func (s *Status) Error() string { return fmt.Sprintf("status %d: %s", s.Code, s.Body) }

// StatusOf returns the HTTP status with which a handshake was refused; 0 if it was not refused.
func StatusOf(err error) int {
	if s, ok := errors.AsType[*Status](err); ok {
		return s.Code
	}
	return 0
}

// CloseOf returns the code and the reason with which the far end closed a Conn; 0 if it didn't.
func CloseOf(err error) (code int, reason string) {
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		return int(e.Code), e.Reason
	}
	return 0, ""
}

// failure turns a socket's error into ours.
func (c *Conn) failure(err error) error {
	cause := context.Cause(c.ctx)
	if e, ok := errors.AsType[*ai.Error](cause); ok {
		return e
	}
	if cause != nil {
		return ErrClosed
	}
	kind := ai.Interrupted
	code, reason := CloseOf(err)
	reason = strings.ToLower(reason)
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		kind = ai.Malformed
	case code == int(websocket.StatusInternalError) &&
		(strings.Contains(reason, "quota") || strings.Contains(reason, "exhausted") || strings.Contains(reason, "rate limit")):
		kind = ai.RateLimited // as Google says it
	case c.begun.Load():
	case code == int(websocket.StatusPolicyViolation), code == int(websocket.StatusInvalidFramePayloadData):
		kind = ai.Config // a key, a field or a plan that it does not take
	case code == int(websocket.StatusInternalError), code == int(websocket.StatusServiceRestart),
		code == int(websocket.StatusTryAgainLater):
		kind = ai.Overloaded
	}
	return &ai.Error{Kind: kind, Err: err}
}

// retryAfter reads Retry-After (RFC 9110 section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
