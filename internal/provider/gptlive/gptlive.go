// Package gptlive is OpenAI's GPT-Live: models that listen while they speak and decide by themselves when to, over
// /live/sessions (https://developers.openai.com/api/reference/resources/live/methods/connect). Thinking and tools are
// delegated to a text model at OpenAI (https://developers.openai.com/api/docs/guides/live-delegation).
package gptlive

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/rest"
	"parley/internal/provider/wire"
	"parley/internal/schema"
)

// Model is a GPT-Live model.
type Model struct {
	Base    string // of the API, without a slash at the end
	Sign    func(http.Header)
	Vendor  string // its code
	Code    string // the model's
	Thinker string // the text model to which it delegates
	// Reader reads out texts word for word, which a GPT-Live model can't: it puts what it is told to say into words of its
	// own. nil: nobody does.
	Reader ai.RealtimeModel
}

// Decides says that the model decides by itself when it speaks: see ai.Decides.
func (Model) Decides() bool { return true }

const (
	connectTime  = 10 * time.Second
	pingTime     = 20 * time.Second
	closeTime    = time.Second     // for session.closed, which has the last usage
	expiryNotice = 5 * time.Minute // so long before its end a session says that it is going to end
)

// Connect implements ai.RealtimeModel.
func (m Model) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	switch {
	case setup.Reads && m.Reader != nil:
		return m.Reader.Connect(ctx, setup)
	case setup.Reads, setup.Writes:
		return nil, ai.TheModel.Of(&ai.Error{Kind: ai.Config, Err: errors.New("a GPT-Live model neither reads out nor writes only")})
	}
	address, err := wire.Address(m.Base, "/live/sessions", nil)
	if err != nil {
		return nil, ai.TheModel.Of(&ai.Error{Kind: ai.Config, Err: err})
	}
	header := http.Header{}
	m.Sign(header)
	conn, err := wire.Dial(ctx, address, wire.Options{Header: header, Ping: pingTime})
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	s := &session{conn: conn, model: m, rate: setup.Rate, names: rest.NewNames(setup.Tools), tally: ai.TallyOf(ctx),
		out: make(chan ai.RealtimeEvent), done: make(chan struct{}), closed: make(chan struct{}), bell: make(chan struct{}, 1),
		open: map[string]*speech{}, pending: map[string][]ai.ToolCall{}, wrote: time.Now()}
	if err := conn.Within(ctx, connectTime, func() error { return s.accepted(m.terms(setup, s.names)) }); err != nil {
		conn.Leave()
		return nil, ai.TheModel.Of(err)
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	go s.run()
	return s, nil
}

// terms is the configuration of a session, of which nothing but the delegation can be changed later. The server refuses
// fields that it doesn't know.
func (m Model) terms(setup ai.RealtimeSetup, names rest.Names) map[string]any {
	tools := []any{}
	for _, t := range setup.Tools {
		tools = append(tools, map[string]any{"type": "function", "name": names.Wire(t.Name),
			"description": t.Description, "parameters": schema.ForOpenAI(t.Schema)})
	}
	format := map[string]any{"type": "audio/pcm", "rate": int(setup.Rate)}
	if setup.Rate == audio.Narrow {
		format["type"] = "audio/pcmu"
	}
	return map[string]any{"type": "session.start", "event_id": "start", "session": map[string]any{
		"model": m.Code, "instructions": setup.System + conduct, "store": false,
		"audio": map[string]any{"format": format, "output": map[string]any{"voice": setup.Voice}},
		"delegation": map[string]any{"type": "responses", "responses": map[string]any{"model": m.Thinker,
			"instructions": setup.System, "tools": tools}}}}
}

// conduct is what a model is told beside the assistant's prompt.
const conduct = "\n\nThis is a telephone call. Words in brackets are notes about the call, which are not to be said aloud. What a note " +
	"says was said in your voice has been heard: don't repeat it, and don't greet again. Whatever needs a tool, or facts that you " +
	"don't have, delegate."

// failure is what an error of the server's means.
func (e *fault) failure() *ai.Error {
	kind := ai.Overloaded
	switch e.Code {
	case "rate_limit_exceeded":
		kind = ai.RateLimited
	case "content_filter":
		kind = ai.Refused
	case "invalid_api_key", "model_not_found", "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached",
		"account_deactivated":
		kind = ai.Config
	default:
		if e.Type == "invalid_request_error" || e.Type == "authentication_error" || e.Type == "permission_error" {
			kind = ai.Config
		}
	}
	return &ai.Error{Kind: kind, Err: fmt.Errorf("%s %s: %s", e.Type, e.Code, e.Message)}
}

// fatal reports whether a session can't go on after an error: of others it is told, and goes on.
func (e *fault) fatal() bool {
	switch e.Code {
	case "invalid_api_key", "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "account_deactivated":
		return true
	}
	return false
}
