package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"parley/internal/auth"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/web"
)

// As is a way to this API in a user's name, for what the server itself does for them: no network, no credential and no
// limit of requests is between. Closing an answer's body ends the request.
func (a *API) As(userID int64) http.RoundTripper {
	return own{a, func(r *http.Request) (context.Context, error) {
		u, err := a.DB.User(r.Context(), userID)
		if err != nil {
			return nil, err
		}
		if u.DisabledAt != 0 {
			return nil, parley.Errorf(parley.Forbidden, "The account is disabled.")
		}
		return known(context.WithValue(r.Context(), insideKey{}, true), &auth.Who{User: u, Key: &parley.Key{}}, ""), nil
	}}
}

// For is a way to this API for a caller whom Caller has named: what they ask for is limited, and noted in the audit log, as if they
// had sent it from their address by themselves.
func (a *API) For(who *auth.Who, address string) http.RoundTripper {
	return own{a, func(r *http.Request) (context.Context, error) {
		if _, err := a.count(who); err != nil {
			return nil, err
		}
		return known(r.Context(), who, address), nil
	}}
}

// own is a way to the API within the process; enter says in a request's context who asks.
type own struct {
	*API
	enter func(r *http.Request) (context.Context, error)
}

type insideKey struct{}

// inside says whether a request is the server's own, in its user's name: it has no credential.
func inside(ctx context.Context) bool { return ctx.Value(insideKey{}) != nil }

// RoundTrip implements http.RoundTripper.
func (o own) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, err := o.enter(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	read, write := io.Pipe()
	w := &inner{header: http.Header{}, body: write, begun: make(chan struct{})}
	r = r.Clone(ctx)
	if r.Body == nil {
		r.Body = http.NoBody
	}
	done := make(chan struct{})
	go func() { // whoever closes the answer's body waits for it
		defer close(done)
		defer crash.Contain(func(err error) {
			slog.Error("a request within the server panicked", "path", web.LoggedPath(r.URL.Path), "error", err)
			w.WriteHeader(http.StatusInternalServerError)
			_ = write.CloseWithError(io.ErrUnexpectedEOF)
		})
		o.mux.ServeHTTP(w, r)
		r.Body.Close()
		w.WriteHeader(http.StatusOK)
		write.Close()
	}()
	<-w.begun
	return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Request: r, ContentLength: -1, Body: &innerBody{read, func() { cancel(); <-done }}}, nil
}

// inner is an answer on its way to whoever asked within the process.
type inner struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	once         sync.Once
	begun        chan struct{}
}

// Header implements http.ResponseWriter.
func (w *inner) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *inner) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

// Write implements http.ResponseWriter.
func (w *inner) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher: nothing waits here.
func (w *inner) Flush() { w.WriteHeader(http.StatusOK) }

type innerBody struct {
	*io.PipeReader
	end func()
}

// Close ends the request.
func (b *innerBody) Close() error {
	err := b.PipeReader.Close()
	b.end()
	return err
}
