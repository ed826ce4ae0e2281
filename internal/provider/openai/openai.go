// Package openai thinks, speaks and listens with OpenAI, or any server that speaks its protocol (Ollama, vLLM, LocalAI,
// ...).
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config says which server to ask.
type Config struct {
	BaseURL string        // with /v1; "" is DefaultBaseURL
	APIKey  string        // "" for servers that ask for none
	Stall   time.Duration // 0 is rest.DefaultStall
}

// At opens a server of somebody's own that speaks this protocol.
func At(s ai.Server) (*ai.Opened, error) {
	base, err := rest.Base(s.URL, DefaultBaseURL)
	if err != nil {
		return nil, err
	}
	c := open(Config{BaseURL: base, APIKey: s.Key}, s.Transport)
	return &ai.Opened{
		Model:       c.Model,
		Synthesizer: func(string) (ai.Synthesizer, error) { return c.Synthesizer(s.Model), nil },
		Recognizer:  func(string) (ai.Recognizer, error) { return c.Recognizer(s.Model), nil },
		Close:       c.Close,
	}, nil
}

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	rest *rest.Client

	mu      sync.Mutex
	models  map[string]*model
	hearers map[string]*recognizer
}

// Open prepares a client without contacting the server.
func Open(c Config) (*Client, error) {
	if _, err := rest.Base(cmp.Or(c.BaseURL, DefaultBaseURL), DefaultBaseURL); err != nil {
		return nil, fmt.Errorf("open openai: %w", err)
	}
	return open(c, rest.Transport()), nil
}

func open(c Config, transport http.RoundTripper) *Client {
	return &Client{models: map[string]*model{}, hearers: map[string]*recognizer{}, rest: &rest.Client{
		Base:  strings.TrimRight(cmp.Or(c.BaseURL, DefaultBaseURL), "/"),
		Stall: cmp.Or(c.Stall, rest.DefaultStall), Refused: refused, Events: events,
		HTTP: &http.Client{Transport: transport, CheckRedirect: ai.Redirect},
		Sign: func(h http.Header) {
			if c.APIKey != "" {
				h.Set("Authorization", "Bearer "+c.APIKey)
			}
		}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.rest.HTTP.CloseIdleConnections() }

// Model is one of the server's chat models. Whether the model exists shows when it is used.
func (c *Client) Model(code string) ai.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.models[code] == nil {
		c.models[code] = &model{client: c, code: code}
	}
	return c.models[code]
}

type model struct {
	client *Client
	code   string

	refused rest.Refused
	lone    atomic.Bool // its template begins a thought that it only ends: see rest.Prose
}

// Generate implements ai.Model. A failed request is tried again until part of the reply has been passed on.
func (m *model) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	var sent *rest.Sent
	return rest.Generate(ctx, m.code, yield, func(r *rest.Reading) error {
		sent = m.refused.Begin()
		return m.attempt(ctx, req, r, sent)
	}, func(err error) bool {
		bad, ok := errors.AsType[*badRequest](err)
		return ok && sent.Learn(bad.about)
	})
}

// attempt makes the request once and reads the reply. Its error is an *ai.Error, or the reason why we ended it.
func (m *model) attempt(ctx context.Context, req ai.Request, r *rest.Reading, sent *rest.Sent) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	names := rest.NewNames(req.Tools)
	in := newReading(r, req.Tools, names)
	in.prose.Lone = m.lone.Load()
	if err := m.client.rest.Post(ctx, "/chat/completions", m.params(req, names, sent), in.take, r.Seen); err != nil {
		return err
	}
	err := in.end(names)
	if in.prose.Lone != m.lone.Load() { // as this reply began, the next one will
		m.lone.Store(in.prose.Lone)
	}
	return err
}
