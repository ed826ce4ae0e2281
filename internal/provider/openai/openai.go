// Package openai thinks, speaks and listens with OpenAI, or any server that speaks its protocol (Ollama, vLLM,
// LocalAI, ...): chat and vectors through the official SDK, sound by hand, which the SDK would hold back or hold
// whole.
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"parley/internal/ai"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// DefaultStall is how long a server may send nothing before it counts as gone.
const DefaultStall = 30 * time.Second

const (
	attempts      = 3                      // how often a request is made, when failing is safe
	firstPause    = 250 * time.Millisecond // before the second attempt; doubled for each further one
	maxRetryAfter = 5 * time.Second        // a server that asks for a longer pause is not asked again: a person waits
	idleConns     = 1024                   // kept for the next turns of as many conversations
)

// Config says which server to ask.
type Config struct {
	BaseURL string        // with /v1; "" is DefaultBaseURL
	APIKey  string        // "" for servers that ask for none
	Stall   time.Duration // 0 is DefaultStall
}

// Client is one server. It is safe for concurrent use.
type Client struct {
	base  string // without a slash at the end
	key   string
	stall time.Duration
	chat  sdk.ChatCompletionService
	embed sdk.EmbeddingService
	http  *http.Client

	mu      sync.Mutex
	models  map[string]*model
	hearers map[string]*recognizer
}

// Open prepares a client; it doesn't ask the server anything.
func Open(c Config) (*Client, error) {
	base := cmp.Or(c.BaseURL, DefaultBaseURL)
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("open openai: %q is no base URL such as %s", base, DefaultBaseURL)
	}
	return open(c, &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // a compressed stream would be held back until a block is full
	}), nil
}

func open(c Config, transport http.RoundTripper) *Client {
	hc := &http.Client{Transport: transport}
	// The service is made without sdk.NewClient, which would read addresses and headers from the environment.
	options := []option.RequestOption{
		option.WithBaseURL(cmp.Or(c.BaseURL, DefaultBaseURL)),
		option.WithAPIKey(c.APIKey),
		option.WithHTTPClient(hc),
		option.WithMaxRetries(0), // ours know what has been said already
	}
	base := strings.TrimRight(cmp.Or(c.BaseURL, DefaultBaseURL), "/")
	return &Client{base: base, key: c.APIKey, stall: cmp.Or(c.Stall, DefaultStall), http: hc,
		models: map[string]*model{}, hearers: map[string]*recognizer{},
		chat: sdk.NewChatCompletionService(options...), embed: sdk.NewEmbeddingService(options...)}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Model is one of the server's models; whether there is such a one shows when it is asked.
func (c *Client) Model(code string) ai.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.models[code] == nil {
		c.models[code] = &model{client: c, code: code, refused: map[string]bool{}}
	}
	return c.models[code]
}

type model struct {
	client *Client
	code   string

	mu      sync.Mutex
	refused map[string]bool // request fields that this model or its server doesn't take, as it said
}

// Generate implements ai.Model. A failed request is made again as long as nothing of the reply has been seen.
func (m *model) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	for attempt := 1; ; {
		r := &reading{yield: yield}
		err := m.attempt(ctx, req, r)
		if err == nil {
			return r.reply(), nil
		}
		if ctx.Err() != nil {
			return r.reply(), context.Cause(ctx)
		}
		if r.refusal != nil {
			return r.reply(), r.refusal
		}
		failure, ok := errors.AsType[*ai.Error](err)
		if !ok || r.seen {
			return r.reply(), err
		}
		if m.learn(err, req) {
			continue
		}
		pause := max(firstPause<<(attempt-1), failure.RetryAfter)
		if !failure.Retry() || attempt == attempts || pause > maxRetryAfter {
			return r.reply(), err
		}
		attempt++
		slog.WarnContext(ctx, "model asked again", "model", m.code, "attempt", attempt, "pause", pause, "error", err)
		if !sleep(ctx, pause+rand.N(pause/2)) {
			return r.reply(), context.Cause(ctx)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt makes the request once and reads the reply. Its error is an *ai.Error, or what ended it from our side.
func (m *model) attempt(ctx context.Context, req ai.Request, r *reading) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	names := newNames(req.Tools)
	guard := newGuard(m.client.stall, cancel)
	defer guard.timer.Stop()

	var res *http.Response
	stream := m.client.chat.NewStreaming(ctx, m.params(req, names), option.WithResponseInto(&res),
		option.WithMiddleware(guard.middleware))
	defer stream.Close()
	defer cancel(nil) // before Close, which otherwise reads to the end to keep the connection
	for stream.Next() {
		if err := r.take(stream.Current()); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break // what has arrived already is not wanted any more
		}
	}
	err := stream.Err()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStalled), errors.Is(cause, errEndless):
		return guard.failure(cause)
	case ctx.Err() != nil && !errors.Is(cause, errDrained):
		return cause
	case err == nil:
		return r.end(names)
	}
	return failure(err, res, r.seen)
}
