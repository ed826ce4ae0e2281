// Package gemini thinks with Google's Gemini models through the Gemini API's generateContent, streamed. Those of its
// Live API, which hear and speak, are internal/provider/geminilive.
package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
	"parley/internal/provider/geminilive"
	"parley/internal/provider/rest"
)

// DefaultBaseURL is Google's own.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// Config says which server to ask.
type Config struct {
	BaseURL string        // with or without /v1beta; "" is DefaultBaseURL
	APIKey  string        // "" for servers that ask for none
	Stall   time.Duration // 0 is rest.DefaultStall
}

// Client is a client of one server. It is safe for concurrent use.
type Client struct {
	rest *rest.Client

	mu     sync.Mutex
	models map[string]*model
	speaks sync.Map // models of the Live API that were found to refuse to write, by their codes
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
		return nil, fmt.Errorf("open gemini: %w", err)
	}
	return &Client{models: map[string]*model{}, rest: &rest.Client{
		Base: strings.TrimSuffix(base, "/v1beta"), Stall: cmp.Or(c.Stall, rest.DefaultStall),
		HTTP: &http.Client{Transport: transport, CheckRedirect: ai.Redirect}, Refused: refused,
		Sign: func(h http.Header) {
			if c.APIKey != "" {
				h.Set("x-goog-api-key", c.APIKey)
			}
		}}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.rest.HTTP.CloseIdleConnections() }

// Model is one of the server's models, with or without models/ before its name; whether it exists shows when it is
// used.
func (c *Client) Model(code string) ai.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.models[code] == nil {
		c.models[code] = &model{client: c, code: strings.TrimPrefix(code, "models/")}
	}
	return c.models[code]
}

// LiveModel is one of the models of the Live API, which hears and speaks.
func (c *Client) LiveModel(code string) ai.RealtimeModel {
	return geminilive.Model{Base: c.rest.Base, Sign: c.rest.Sign, Vendor: Code, Code: strings.TrimPrefix(code, "models/"), Speaks: &c.speaks}
}

type model struct {
	client  *Client
	code    string
	refused rest.Refused
}

// Generate implements ai.Model.
func (m *model) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	var (
		sent    *rest.Sent
		how     manner
		clumsy  bool // it has made a call that is none
		path    = "/v1beta/models/" + url.PathEscape(m.code) + ":streamGenerateContent?alt=sse"
		attempt = func(r *rest.Reading) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			names := rest.NewNames(req.Tools)
			sent = m.refused.Begin()
			in := &reading{Reading: r}
			if err := m.client.rest.Post(ctx, path, m.params(req, names, how, sent), in.take, r.Seen); err != nil {
				return err
			}
			return r.End(names)
		}
	)
	return rest.Generate(ctx, m.code, yield, attempt, func(err error) bool {
		if errors.Is(err, errNoCall) {
			again := !clumsy
			clumsy = true
			return again
		}
		bad, ok := errors.AsType[*badRequest](err)
		switch {
		case !ok:
			return false
		case bad.names("signature") && !bad.names("missing") && !how.unsealed:
			how.unsealed = true // of another model, or another account
			return true
		case bad.names("schema") && req.Schema != nil && !how.words:
			how.words = true // this schema is too much for it; the next one may not be
			return true
		}
		return sent.Learn(func(field string) bool { return bad.names(complaints[field]) })
	})
}

// reading is a reply as far as it was read.
type reading struct{ *rest.Reading }

// chunk is an event of the stream: a further piece of the one candidate.
type chunk struct {
	Candidates []struct {
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		Finish  string `json:"finishReason"`
		Message string `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage struct {
		In       int `json:"promptTokenCount"`
		Out      int `json:"candidatesTokenCount"`
		Thoughts int `json:"thoughtsTokenCount"`
		Tools    int `json:"toolUsePromptTokenCount"`
		Cached   int `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

// errNoCall is a call that the model meant to make and wrote wrong, which happens now and then; once more is mostly well.
var errNoCall = errors.New("the model made a call that is none")

func (r *reading) take(_ string, data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if len(c.Error) > 0 {
		return r.broken(data)
	}
	if u := c.Usage; u.In > 0 || u.Out > 0 { // of the whole reply so far
		r.Usage = ai.Usage{In: u.In + u.Tools, Out: u.Out + u.Thoughts, Cached: u.Cached}
	}
	if c.Feedback.Block != "" && len(c.Candidates) == 0 {
		return &ai.Error{Kind: ai.Refused, Err: fmt.Errorf("the prompt was blocked: %s", c.Feedback.Block)}
	}
	if len(c.Candidates) == 0 {
		return nil
	}
	for _, p := range c.Candidates[0].Content.Parts {
		if err := r.part(p); err != nil {
			return err
		}
	}
	if why := c.Candidates[0].Finish; why != "" && why != "FINISH_REASON_UNSPECIFIED" {
		return r.finish(why, c.Candidates[0].Message)
	}
	return nil
}

// part takes a piece of text, or a call, which is always whole. What the model thinks is passed over.
func (r *reading) part(p part) error {
	if p.Call == nil {
		if p.Thought {
			return nil
		}
		return r.Say(p.Text)
	}
	c, err := r.Begin()
	if err != nil {
		return err
	}
	c.ID, c.Name, c.Seal = p.Call.ID, p.Call.Name, sealed(p)
	if len(p.Call.Args) > 0 && string(p.Call.Args) != "null" {
		return r.Write(c, string(p.Call.Args))
	}
	return nil
}

func (r *reading) finish(why, message string) error {
	switch why {
	case "STOP":
		r.Finish = ai.Stop
	case "MAX_TOKENS":
		r.Finish = ai.Length
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("%w: %s %.300s", errNoCall, why, message)}
	default: // SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, LANGUAGE, OTHER, and those to come
		r.Finish = ai.Filtered
	}
	return nil
}

// broken is the error of an event, which may come after 200 and after text.
func (r *reading) broken(data []byte) error {
	s := parse(data)
	kind := s.kind(s.Code)
	if r.Seen() && (kind == ai.Overloaded || kind == ai.RateLimited) {
		kind = ai.Interrupted
	}
	return &ai.Error{Kind: kind, Err: fmt.Errorf("in mid-stream: %s: %s", s.Status, s.Message)}
}
