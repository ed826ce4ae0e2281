// Package openai thinks, speaks and listens with OpenAI, or any server that speaks its protocol (Ollama, vLLM, LocalAI,
// ...). Chat and vectors go through the official SDK; audio doesn't, as the SDK would delay it or hold all of it in
// memory.
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

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	rest  *rest.Client
	chat  sdk.ChatCompletionService
	embed sdk.EmbeddingService

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
	hc := &http.Client{Transport: transport, CheckRedirect: ai.Redirect}
	// The service is made without sdk.NewClient, which would read addresses and headers from the environment.
	options := []option.RequestOption{
		option.WithBaseURL(cmp.Or(c.BaseURL, DefaultBaseURL)),
		option.WithAPIKey(c.APIKey),
		option.WithHTTPClient(hc),
		option.WithMaxRetries(0), // ours know what has been said already
	}
	w := &rest.Client{Base: strings.TrimRight(cmp.Or(c.BaseURL, DefaultBaseURL), "/"),
		Stall: cmp.Or(c.Stall, rest.DefaultStall), HTTP: hc, Refused: refused,
		Sign: func(h http.Header) {
			if c.APIKey != "" {
				h.Set("Authorization", "Bearer "+c.APIKey)
			}
		}}
	return &Client{rest: w, models: map[string]*model{}, hearers: map[string]*recognizer{},
		chat: sdk.NewChatCompletionService(options...), embed: sdk.NewEmbeddingService(options...)}
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	names := rest.NewNames(req.Tools)
	guard := rest.NewGuard(m.client.rest.Stall, cancel)
	defer guard.Stop()

	var res *http.Response
	stream := m.client.chat.NewStreaming(ctx, m.params(req, names, sent), option.WithResponseInto(&res),
		option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			res, err := guard.Middleware(req, next)
			if err == nil && res.StatusCode < 300 {
				res.Body = events(res.Body)
			}
			return res, err
		}))
	defer stream.Close()
	defer cancel(nil) // before Close, which otherwise reads to the end to keep the connection
	in := newReading(r, req.Tools, names)
	in.prose.Lone = m.lone.Load()
	for stream.Next() {
		if err := in.take(stream.Current()); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break // what has arrived already is not wanted any more
		}
	}
	err := stream.Err()
	if ended := guard.Ended(ctx); ended != nil {
		return ended
	}
	if err == nil {
		err = in.end(names)
		if in.prose.Lone != m.lone.Load() { // as this reply began, the next one will
			m.lone.Store(in.prose.Lone)
		}
		return err
	}
	return failure(err, res, r.Seen())
}
