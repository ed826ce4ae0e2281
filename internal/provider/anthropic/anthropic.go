// Package anthropic thinks with Anthropic's models through the Messages API. It makes requests without the SDK, so that
// the reply's stream is watched, bounded and retried as with every vendor, and nothing is read from the environment.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// DefaultBaseURL is Anthropic's own.
const DefaultBaseURL = "https://api.anthropic.com"

// version is that of the API; it is sent with each request.
const version = "2023-06-01"

// Config says which server to ask.
type Config struct {
	BaseURL string        // with or without /v1; "" is DefaultBaseURL
	APIKey  string        // "" for servers that ask for none
	Stall   time.Duration // 0 is rest.DefaultStall
}

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	rest *rest.Client

	mu     sync.Mutex
	models map[string]*model
}

// At opens a server of somebody's own that speaks this protocol.
func At(s ai.Server) (*ai.Opened, error) {
	c, err := open(Config{BaseURL: s.URL, APIKey: s.Key}, s.Transport)
	if err != nil {
		return nil, err
	}
	return &ai.Opened{Model: c.Model, Close: c.Close}, nil
}

// Open prepares a client without contacting the server.
func Open(c Config) (*Client, error) { return open(c, rest.Transport()) }

func open(c Config, transport http.RoundTripper) (*Client, error) {
	base, err := rest.Base(cmp.Or(c.BaseURL, DefaultBaseURL), DefaultBaseURL)
	if err != nil {
		return nil, fmt.Errorf("open anthropic: %w", err)
	}
	return &Client{models: map[string]*model{}, rest: &rest.Client{
		Base: strings.TrimSuffix(base, "/v1"), Stall: cmp.Or(c.Stall, rest.DefaultStall),
		HTTP: &http.Client{Transport: transport, CheckRedirect: ai.Redirect}, Refused: refused,
		Sign: func(h http.Header) {
			h.Set("anthropic-version", version)
			if c.APIKey != "" {
				h.Set("x-api-key", c.APIKey)
			}
		}}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.rest.HTTP.CloseIdleConnections() }

// Model is one of the server's models. Whether the model exists shows when it is used.
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
}

// Generate implements ai.Model.
func (m *model) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	var how manner
	var sent *rest.Sent
	return rest.Generate(ctx, m.code, yield, func(r *rest.Reading) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		names := rest.NewNames(req.Tools)
		in := &reading{Reading: r, open: map[int]*rest.Call{}}
		sent = m.refused.Begin()
		p := m.params(req, names, how, sent)
		if err := m.client.rest.Post(ctx, "/v1/messages", p, in.take, r.Seen); err != nil {
			return err
		}
		return r.End(names)
	}, func(err error) bool {
		bad, ok := errors.AsType[*badRequest](err)
		if !ok {
			return false
		}
		switch {
		case req.Schema != nil && !how.words && bad.names("output_config.format", "output_format", "schema"):
			how.words = true // this schema is too much for it; the next one may not be
			return true
		case !how.unsealed && bad.names("thinking", "signature") && !bad.names("thinking.type") && seals(req.Messages):
			how.unsealed = true // of another account, or of a conversation that has been cut since
			return true
		}
		return sent.Learn(func(field string) bool { return bad.names(field) })
	})
}

// reading is the part of a reply that was read.
type reading struct {
	*rest.Reading
	open map[int]*rest.Call // by the index of the content block

	thoughts []thought // before the first call
	size     int       // of them
}

// event is any event of the stream.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`

		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Data      string `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		JSON       string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage counts the tokens that were read anew, read from the cache, and stored in it.
type usage struct {
	In     int `json:"input_tokens"`
	Stored int `json:"cache_creation_input_tokens"`
	Cached int `json:"cache_read_input_tokens"`
	Out    int `json:"output_tokens"`
}

// take handles an event. Unknown kinds are ignored, as Anthropic asks of its clients; so are pings.
func (r *reading) take(name string, data []byte) error {
	if name == "ping" {
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "error":
		return r.broken(data)
	case "message_start":
		r.count(e.Message.Usage)
	case "content_block_start":
		return r.begin(e)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return r.Say(e.Delta.Text)
		case "input_json_delta":
			c := r.open[e.Index]
			if c == nil {
				return rest.Malformed("arguments of a call that has not begun")
			}
			return r.Write(c, e.Delta.JSON)
		case "thinking_delta", "signature_delta":
			r.think(e)
		}
	case "content_block_stop":
		delete(r.open, e.Index)
	case "message_delta":
		r.count(e.Usage)
		if e.Delta.StopReason != "" {
			r.Finish = finish(e.Delta.StopReason)
		}
	case "message_stop":
		return rest.ErrEnough
	}
	return nil
}

func (r *reading) begin(e event) error {
	switch e.Block.Type {
	case "text":
		return r.Say(e.Block.Text)
	case "thinking", "redacted_thinking":
		r.think(e)
	case "tool_use":
		c, err := r.Begin()
		if err != nil {
			return err
		}
		c.ID, c.Name, c.Seal = e.Block.ID, e.Block.Name, sealed(r.thoughts)
		r.thoughts = nil
		r.open[e.Index] = c
		if in := string(e.Block.Input); in != "" && in != "{}" && in != "null" {
			return r.Write(c, in) // a server that doesn't send it in pieces
		}
	}
	return nil
}

// count records the usage in an event. The figures are totals for the reply so far. Some events have only some of them.
func (r *reading) count(u usage) {
	if in := u.In + u.Stored + u.Cached; in > 0 {
		r.Usage.In, r.Usage.Stored, r.Usage.Cached = in, u.Stored, u.Cached
	}
	r.Usage.Out = max(r.Usage.Out, u.Out)
}

// broken is the error of an error event, which may come after a 200 and after text.
func (r *reading) broken(data []byte) error {
	s := parse(data)
	kind := s.kind(0)
	if r.Seen() && (kind == ai.Overloaded || kind == ai.RateLimited) {
		kind = ai.Interrupted
	}
	return &ai.Error{Kind: kind, Err: fmt.Errorf("in mid-stream: %s: %s", s.Type, s.Message)}
}

func finish(reason string) ai.Finish {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return ai.Length
	case "tool_use":
		return ai.ToolCalls
	case "refusal":
		return ai.Filtered
	}
	return ai.Stop
}
