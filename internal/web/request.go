package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"parley/internal/parley"
)

type requestKey struct{}

// Name gives a request its id, which the answer's X-Request-Id tells and the log knows it by.
func Name(w http.ResponseWriter, r *http.Request) *http.Request {
	var raw [8]byte
	rand.Read(raw[:])
	id := hex.EncodeToString(raw[:])
	w.Header().Set("X-Request-Id", id)
	return r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
}

// RequestID is the id of a request that was named.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// LoggedPath is a path without a link's signature or token: whoever has that needs no key.
func LoggedPath(path string) string {
	switch {
	case strings.HasPrefix(path, "/api/recordings/"):
		return path[:strings.LastIndexByte(path, '/')+1] + "-"
	case strings.HasPrefix(path, "/join/"):
		return "/join/-"
	case strings.HasPrefix(path, "/reset/"):
		return "/reset/-"
	case strings.HasPrefix(path, "/confirm/"):
		return "/confirm/-"
	case strings.HasPrefix(path, "/share/"):
		return "/share/-"
	}
	return path
}

// Known is an error as its causer may read it. One that is ours to mend is logged, here and nowhere else, and told by
// otherwise, unless it has words of its own.
func Known(r *http.Request, err error, otherwise string) *parley.Error {
	e := &parley.Error{Kind: parley.Internal, Message: otherwise}
	var ours interface {
		error
		Ours()
	}
	if errors.As(err, &e) && !errors.As(err, &ours) {
		return e
	}
	if r.Context().Err() == nil || !errors.Is(err, context.Canceled) { // else nobody is there to read it
		slog.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", LoggedPath(r.URL.Path),
			"request_id", RequestID(r.Context()), "error", err)
	}
	return e
}

// Survive, deferred, has a request whose handler panicked answered as any other that failed unexpectedly.
func Survive(answer func(err error)) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		answer(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// Status is the HTTP status of an error of a kind.
func Status(k parley.Kind) int { return statusOf[k] }

var statusOf = map[parley.Kind]int{
	parley.Internal: 500, parley.Refused: 400, parley.Unauthenticated: 401, parley.Payment: 402, parley.Forbidden: 403,
	parley.NotFound: 404, parley.Conflict: 409, parley.Stale: 412, parley.TooLarge: 413, parley.Unsupported: 415, parley.Invalid: 422,
	parley.TooMany:  429,
	parley.Upstream: 502, parley.Unavailable: 503,
}

// NotTaken answers a vendor's webhook whose news could not be stored: the vendor sends it again. It is 503 where err says when to ask again
// (store.Told), otherwise 500.
func NotTaken(w http.ResponseWriter, r *http.Request, err error) {
	slog.ErrorContext(r.Context(), "webhook not taken", "path", LoggedPath(r.URL.Path), "request_id", RequestID(r.Context()), "error", err)
	status := http.StatusInternalServerError
	if RetryAfter(w, err) > 0 {
		status = http.StatusServiceUnavailable
	}
	http.Error(w, "not taken", status)
}

// RetryAfter says in an answer's header, and by what it returns, after how many seconds a request that a limit
// refused may be made again; 0 for other errors.
func RetryAfter(w http.ResponseWriter, err error) int {
	var later interface { // auth.LimitError, and one that another node told
		error
		Wait() int
	}
	if !errors.As(err, &later) {
		return 0
	}
	w.Header().Set("Retry-After", strconv.Itoa(later.Wait()))
	return later.Wait()
}
