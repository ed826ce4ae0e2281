// Package rest is what vendors' protocols have in common: an HTTP request that is watched while it is answered, stream
// events, retries where they are safe, assembling a reply, and tool names that every vendor accepts.
package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/internal/ai"
)

// DefaultStall is how long a server may send nothing before it counts as gone.
const DefaultStall = 30 * time.Second

const idleConns = 1024 // kept for the next turns of as many conversations

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	Base  string // without a slash at the end
	Stall time.Duration
	HTTP  *http.Client
	// Sign adds the credentials.
	Sign func(h http.Header)
	// Refused says what an error response means: an *ai.Error.
	Refused func(status int, h http.Header, body []byte) error
	// Events reads an answer as a stream of events, whatever type its server gives it; nil where only a stream is taken.
	Events func(body io.Reader) io.Reader
}

// Base is the base URL without a trailing slash, or an error that gives a valid example.
func Base(text, example string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is no base URL such as %s", text, example)
	}
	return strings.TrimRight(text, "/"), nil
}

// Transport is how servers are reached.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // a compressed stream would be held back until a block is full
	}
}

// Refusal is a yield's error, which ends a request.
type Refusal struct{ error }

// Refuse marks err as a yield's; nil stays nil.
func Refuse(err error) error {
	if err == nil {
		return nil
	}
	return Refusal{err}
}

// Ask makes a request and passes its answer to take. sound is how many bytes of audio or numbers may come, 0 if the answer
// is text; begun reports whether take has already passed on any of it. The error is an *ai.Error, or what ended the
// request from our side.
func (c *Client) Ask(ctx context.Context, req *http.Request, sound int, take func(res *http.Response) error,
	begun func() bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g := NewGuard(c.Stall, cancel)
	g.Sound = sound
	defer g.Stop()
	c.Sign(req.Header)
	res, err := g.Middleware(req.WithContext(ctx), c.HTTP.Do)
	if err == nil {
		defer g.Close() //nolint:errcheck // it has been read
		if res.StatusCode >= 400 {
			body, _ := io.ReadAll(io.LimitReader(res.Body, maxEvent))
			err = c.Refused(res.StatusCode, res.Header, body)
		} else {
			err = take(res)
		}
	}
	if stop, ok := errors.AsType[Refusal](err); ok {
		g.Unwanted()
		return stop.error
	}
	if ended := g.Ended(ctx); ended != nil {
		return ended
	}
	return Failure(err, begun())
}

// Failure is err as an *ai.Error: what failed on the way, or in what was sent. begun means that part of the answer has
// been passed on.
func Failure(err error, begun bool) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*ai.Error](err); ok {
		return err
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case syntax || shape:
		return &ai.Error{Kind: ai.Malformed, Err: err}
	case begun:
		return &ai.Error{Kind: ai.Interrupted, Err: err}
	}
	return &ai.Error{Kind: ai.Unreachable, Err: err}
}

// Post sends a JSON body, and passes each event of the resulting stream to take.
func (c *Client) Post(ctx context.Context, path string, body any, take func(name string, data []byte) error,
	begun func() bool) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return &ai.Error{Kind: ai.Malformed, Err: err}
	}
	req, err := http.NewRequest(http.MethodPost, c.Base+path, bytes.NewReader(raw))
	if err != nil {
		return &ai.Error{Kind: ai.Config, Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	return c.Ask(ctx, req, 0, func(res *http.Response) error {
		if c.Events != nil {
			return events(ctx, c.Events(res.Body), take)
		}
		if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
			return Malformed("the server sent %q in place of a stream of events", kind)
		}
		return events(ctx, res.Body, take)
	}, begun)
}

// ErrEnough is what take returns when it wants no more events.
var ErrEnough = errors.New("the last event has come")

// events reads server-sent events. One that is cut off at the end is none.
func events(ctx context.Context, body io.Reader, take func(name string, data []byte) error) error {
	lines := bufio.NewReader(body)
	var name string
	var data, long []byte
	for {
		whole, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) { // the guard bounds it
			for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); whole, err = lines.ReadSlice('\n') {
				long = append(long, whole...)
			}
			long = append(long, whole...)
			whole = long
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		whole = bytes.TrimRight(whole, "\r\n")
		field, value, _ := bytes.Cut(whole, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(whole) == 0:
			if len(data) > 0 {
				if err := take(name, data); err != nil {
					if errors.Is(err, ErrEnough) {
						return nil
					}
					return err
				}
				if ctx.Err() != nil {
					return context.Cause(ctx) // what has arrived already is not wanted any more
				}
			}
			name, data = "", data[:0]
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
}

// Malformed is the error of an answer that violates the protocol.
func Malformed(format string, a ...any) error {
	return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf(format, a...)}
}
