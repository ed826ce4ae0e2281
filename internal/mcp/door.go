package mcp

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"

	"parley/internal/egress"
	"parley/internal/telemetry"
)

const userAgent = "Parley/1"

// door is the way out to one server: it adds headers and the token, and bounds what comes back.
type door struct {
	next   http.RoundTripper
	server Server
	home   string // where the server is
	grant  *grant // nil: without OAuth
}

// door is an HTTP client for a server.
func (c *Client) door(s Server) *http.Client {
	d := &door{next: c.http.Transport, server: s}
	if u, err := url.Parse(s.URL); err == nil {
		d.home = origin(u)
	}
	if s.OAuth.ClientID != "" {
		d.grant = c.grantOf(s)
	}
	redirect := c.http.CheckRedirect
	return &http.Client{Transport: d, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		err := redirect(req, via)
		if err != nil {
			see(req.Context(), 0, err)
		}
		return err
	}}
}

func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.pass(req)
	if err != nil {
		see(req.Context(), 0, err)
		return nil, err
	}
	see(req.Context(), resp.StatusCode, nil)
	resp.Body = &bounded{resp.Body, req, maxAnswer, maxLines, strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")}
	if resp.StatusCode == http.StatusBadRequest { // it may be that the session is not known any more
		told, _, err := egress.Read(resp.Body, maxText)
		if err != nil {
			return nil, err
		}
		hear(req.Context(), string(told))
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(told), resp.Body), resp.Body}
	}
	return resp, nil
}

func (d *door) pass(req *http.Request) (*http.Response, error) {
	if !d.atHome(req) {
		return d.next.RoundTrip(req)
	}
	if d.grant == nil {
		return d.send(req, "")
	}
	token, err := d.grant.token(req.Context())
	if err != nil {
		return nil, err
	}
	resp, err := d.send(req, token)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	resp.Body.Close()
	if token, err = d.grant.renew(req.Context(), token, resp.Header.Values("WWW-Authenticate")); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return d.send(again, token)
}

// atHome reports whether a request goes to the server, and was never redirected to anybody else: others get no secrets.
func (d *door) atHome(req *http.Request) bool {
	for {
		if origin(req.URL) != d.home {
			return false
		}
		if req.Response == nil || req.Response.Request == nil {
			return true
		}
		req = req.Response.Request
	}
}

func (d *door) send(req *http.Request, token string) (*http.Response, error) {
	out := req.Clone(req.Context())
	for name, values := range d.server.Headers {
		if _, ours := out.Header[name]; !ours { // those of the protocol stay
			out.Header[name] = values
		}
	}
	if token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	out.Header.Set("User-Agent", userAgent)
	telemetry.Inject(req.Context(), out.Header)
	return d.next.RoundTrip(out)
}

// bounded is an answer's body of at most so many bytes, and lines where it is events.
type bounded struct {
	io.ReadCloser
	of          *http.Request
	left, lines int
	events      bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if full := b.full(); full != nil {
		see(b.of.Context(), 0, full)
		return 0, full
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	if b.events {
		b.lines -= bytes.Count(p[:n], []byte("\n"))
	}
	if err != nil && err != io.EOF {
		see(b.of.Context(), 0, err)
	}
	return n, err
}

// full is why no more is read; nil where more may be.
func (b *bounded) full() error {
	switch {
	case b.left <= 0:
		return errLarge
	case b.lines <= 0:
		return errMany
	}
	return nil
}
