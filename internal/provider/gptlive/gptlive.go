// Package gptlive is OpenAI's GPT-Live: models that listen while they speak and decide by themselves when to, over
// /live/sessions (https://developers.openai.com/api/reference/resources/live/methods/connect). Thinking and tools are
// delegated to a text model at OpenAI (https://developers.openai.com/api/docs/guides/live-delegation).
package gptlive

import (
	"context"
	"errors"
	"net/http"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/live"
	"parley/internal/provider/realtime"
	"parley/internal/provider/rest"
	"parley/internal/provider/wire"
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

// Connect implements ai.RealtimeModel.
func (m Model) Connect(ctx context.Context, setup ai.RealtimeSetup) (ai.RealtimeSession, error) {
	switch {
	case setup.Reads && m.Reader != nil:
		return m.Reader.Connect(ctx, setup)
	case setup.Reads, setup.Writes:
		return nil, ai.TheModel.Of(&ai.Error{Kind: ai.Config, Err: errors.New("a GPT-Live model neither reads out nor writes only")})
	}
	s := m.session(ctx, setup)
	conn, err := live.Dial(ctx, m.Base, "/live/sessions", nil, m.Sign, m.terms(setup, s.names),
		func(_ *wire.Conn, raw []byte) (bool, error) {
			err := s.Take(raw)
			return s.started, err
		})
	if err != nil {
		return nil, ai.TheModel.Of(err)
	}
	s.Serve(ctx, conn)
	return s, nil
}

func (m Model) session(ctx context.Context, setup ai.RealtimeSetup) *session {
	s := &session{model: m, rate: setup.Rate, names: rest.NewNames(setup.Tools)}
	s.Decided = live.NewDecided(ctx, s, setup.Rate, map[string]any{"type": "session.close"})
	s.Box.Head, s.Box.Tail, s.Box.Piece = `{"type":"session.input_audio.append","audio":"`, `"}`, int(s.rate)/20*2
	if s.rate == audio.Narrow {
		s.Box.Piece, s.Box.Encode = int(s.rate)/20, audio.EncodeULaw
	}
	return s
}

// terms is the configuration of a session, of which nothing but the delegation can be changed later. The server refuses
// fields that it doesn't know.
func (m Model) terms(setup ai.RealtimeSetup, names rest.Names) map[string]any {
	format := map[string]any{"type": "audio/pcm", "rate": int(setup.Rate)}
	if setup.Rate == audio.Narrow {
		format["type"] = "audio/pcmu"
	}
	return map[string]any{"type": "session.start", "event_id": "start", "session": map[string]any{
		"model": m.Code, "instructions": setup.System + conduct, "store": false,
		"audio": map[string]any{"format": format, "output": map[string]any{"voice": setup.Voice}},
		"delegation": map[string]any{"type": "responses", "responses": map[string]any{"model": m.Thinker,
			"instructions": setup.System, "tools": realtime.Tools(setup, names)}}}}
}

// conduct is what a model is told beside the assistant's prompt.
const conduct = "\n\nThis is a telephone call. Words in brackets are notes about the call, which are not to be said aloud. What a note " +
	"says was said in your voice has been heard: don't repeat it, and don't greet again. Whatever needs a tool, or facts that you " +
	"don't have, delegate."

// fatal are the errors after which a session can't go on: of others it is told, and goes on.
var fatal = []string{"invalid_api_key", "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached",
	"account_deactivated"}
