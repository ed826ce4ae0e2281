package deepgram

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/wire"
)

// DefaultBaseURL is the vendor's own address; it has others for Europe, Australia and India.
const DefaultBaseURL = "https://api.deepgram.com"

// client talks to Deepgram with one key.
type client struct {
	base, key string
	transport http.RoundTripper // nil: the usual one
}

// At opens a server of somebody's own that speaks this protocol.
func At(s ai.Server) (*ai.Opened, error) {
	if _, err := wire.Address(s.URL, "", nil); err != nil {
		return nil, err
	}
	c := &client{s.URL, s.Key, s.Transport}
	lines := &pool{client: c}
	recognizer := &recognizer{client: c, model: s.Model, plain: map[string]bool{}}
	return &ai.Opened{
		Synthesizer: func(string) (ai.Synthesizer, error) { return synthesizer{lines}, nil },
		Recognizer:  func(string) (ai.Recognizer, error) { return recognizer, nil },
		Close:       lines.close,
	}, nil
}

func (s *Settings) client() (*client, error) {
	c := &client{base: cmp.Or(s.BaseURL, DefaultBaseURL), key: s.APIKey}
	if _, err := wire.Address(c.base, "", nil); err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	return c, nil
}

// dial opens a WebSocket, which is pinged regularly.
func (c *client) dial(ctx context.Context, path string, query url.Values, ping time.Duration) (*wire.Conn, error) {
	address, err := wire.Address(c.base, path, query)
	if err != nil {
		return nil, &ai.Error{Kind: ai.Config, Err: err}
	}
	return wire.Dial(ctx, address, wire.Options{Header: http.Header{"Authorization": {"Token " + c.key}}, Ping: ping, Transport: c.transport})
}

// ask makes a GET request and returns the status of the response.
func (c *client) ask(ctx context.Context, path string) (int, error) {
	address, err := wire.Address(c.base, path, nil)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Token "+c.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}
