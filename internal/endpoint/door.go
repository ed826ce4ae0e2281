package endpoint

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/internal/ai"
	"parley/internal/parley"
)

// The headers by which an endpoint knows whom it is asked for.
const (
	callHeader         = "X-Parley-Call"
	conversationHeader = "X-Parley-Conversation"
	assistantHeader    = "X-Parley-Assistant"
	customerHeader     = "X-Parley-Customer"
)

// door is the way out to one endpoint: it adds the account's headers, and whom the request is for.
type door struct {
	next    http.RoundTripper
	headers []parley.ToolHeader
}

func (b *Book) door(e *parley.Endpoint) *door {
	return &door{b.guard.Client(0).Transport, e.Headers}
}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	for _, h := range d.headers {
		out.Header.Set(h.Name, h.Value)
	}
	p := ai.PartyOf(req.Context())
	of := conversationHeader
	if _, call := strings.CutPrefix(p.Of, "call "); call {
		of = callHeader
	}
	for name, value := range map[string]string{of: strings.TrimPrefix(p.Of, "call "), customerHeader: printable(p.Customer)} {
		if value != "" {
			out.Header.Set(name, value)
		}
	}
	if p.Assistant != 0 {
		out.Header.Set(assistantHeader, strconv.FormatInt(p.Assistant, 10))
	}
	return d.next.RoundTrip(out)
}

// printable is a text as a header can hold it.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, text)
}

// sameHost says whether two addresses are of one server.
func sameHost(a, b string) bool {
	u, errA := url.Parse(a)
	v, errB := url.Parse(b)
	return errA == nil && errB == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Host, v.Host)
}
