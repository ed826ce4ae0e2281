package api

import (
	"context"
	"encoding/json"
	"time"

	"parley/internal/parley"
	"parley/internal/stage"
)

func (a *API) rehearsalRoutes() {
	const tag, missing = "Tests", "Test not found"
	handle(a, op{Method: "POST", Path: "/user/rehearsals", Name: "beginRehearsal", Tag: tag, Status: 201,
		Summary: "Prepare a test of an assistant: the tools' answers, the time, variables"}, a.beginRehearsal)
	handle(a, op{Method: "GET", Path: "/user/rehearsals/{id}", Name: "getRehearsal", Tag: tag, NotFound: missing,
		Summary: "Read the call that runs a test"}, a.getRehearsal)
	handle(a, op{Method: "POST", Path: "/user/rehearsals/{id}/words", Name: "tellRehearsal", Tag: tag,
		NotFound: missing, Summary: "Send what the caller is about to say, in a test whose words are told"}, a.tellRehearsal)
	handle(a, op{Method: "DELETE", Path: "/user/rehearsals/{id}", Name: "endRehearsal", Tag: tag, NotFound: missing,
		Summary: "Forget a test"}, a.endRehearsal)
}

type rehearsedTool struct {
	Tool    string `json:"tool" required:"true" maxLength:"255"`
	Real    bool   `json:"real" default:"false" doc:"Ask the tool's endpoint."`
	Reply   string `json:"reply" maxLength:"65536" doc:"What the tool answers; {\"ok\":true} when absent."`
	Fails   string `json:"fails" maxLength:"1000" doc:"The tool fails, and this is why."`
	AfterMS int64  `json:"after_ms" minimum:"0" maximum:"60000" doc:"How long it takes."`
}

type newRehearsal struct {
	Body struct {
		AssistantID int64             `json:"assistant_id" required:"true" format:"assistant" doc:"One of your assistants, which may be inactive."`
		Now         string            `json:"now" maxLength:"40" doc:"The current time for the assistant (RFC 3339); by default the real one."`
		Variables   map[string]string `json:"variables" maxProperties:"200" format:"variables" doc:"Values of {{name}} in the prompt and the initial message."`
		Tools       []rehearsedTool   `json:"tools" maxItems:"100" doc:"Answers of tools. No tool is really called in a test, unless this says so."`
		Draft       *parley.Draft     `json:"draft" doc:"What of the assistant is changed for the test."`
		TestRunID   int64             `json:"test_run_id" doc:"A run of the assistant's tests against its draft: that draft plays, as it was when the run began."`
		Words       string            `json:"words" default:"heard" enum:"heard,told" doc:"told: what the caller says is told and not recognized."`
	}
}

type begunRehearsal struct {
	Message string `json:"message"`
	Data    struct {
		Token string `json:"token" doc:"The test runs when a softphone on the server's machine calls sip:ASSISTANT_ID with this as its user name, or in a conversation of type test with the variable parley_test."`
	} `json:"data"`
}

func (a *API) beginRehearsal(ctx context.Context, r *request, in *newRehearsal) (*begunRehearsal, error) {
	b := in.Body
	s, err := a.DB.Assistant(ctx, r.UserID(), b.AssistantID)
	if err != nil {
		return nil, err
	}
	set := stage.Set{Variables: b.Variables, Mocks: map[string]stage.Mock{}, Told: b.Words == "told", Draft: b.Draft}
	if err := a.Assistants.CheckDraft(s, set.Draft); err != nil {
		return nil, err
	}
	if b.TestRunID != 0 {
		set.Run = b.TestRunID
		if set.As, err = a.Assistants.OfRun(ctx, s, set.Run); err != nil {
			return nil, err
		}
	}
	if b.Now != "" {
		if set.Now, err = time.Parse(time.RFC3339, b.Now); err != nil {
			var wrong parley.Fields
			wrong.Add("now", "must be a time such as 2026-06-12T09:00:00+02:00.")
			return nil, wrong.Err()
		}
	}
	for _, m := range b.Tools {
		set.Mocks[m.Tool] = stage.Mock{Real: m.Real, Reply: m.Reply, Fails: m.Fails,
			After: time.Duration(m.AfterMS) * time.Millisecond}
	}
	plays := s
	if set.As != nil {
		plays = set.As
	}
	if err := a.Assistants.CheckStage(s, plays.With(set.Draft), &set); err != nil {
		return nil, err
	}
	out := &begunRehearsal{Message: "Test prepared successfully"}
	out.Data.Token, err = a.Assistants.Stages.Begin(r.UserID(), s.ID, set, time.Now())
	return out, err
}

type rehearsal struct {
	CallID   int64              `json:"call_id" doc:"0 until the call has begun."`
	Webhooks *[]json.RawMessage `json:"webhooks,omitempty" doc:"The events that a real call would send at its end, as call.completed and call.inbound.completed under webhooks; absent until the call is over and evaluated. They are not sent."`
}

func (a *API) getRehearsal(ctx context.Context, r *request, in *byText) (*rehearsal, error) {
	s, err := a.Assistants.Stages.Own(r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	out := &rehearsal{CallID: s.Call()}
	if out.CallID == 0 {
		return out, nil
	}
	list, over, err := a.Calls.TestEvents(ctx, r.UserID(), out.CallID)
	if over {
		out.Webhooks = &[]json.RawMessage{}
		for _, d := range list {
			*out.Webhooks = append(*out.Webhooks, json.RawMessage(d.Payload))
		}
	}
	return out, err
}

type toldWords struct {
	byText
	Body struct {
		Words string `json:"words" required:"true" maxLength:"2000"`
	}
}

func (a *API) tellRehearsal(ctx context.Context, r *request, in *toldWords) (*notice, error) {
	s, err := a.Assistants.Stages.Own(r.UserID(), in.ID)
	if err != nil {
		return nil, err
	}
	s.Tell(in.Body.Words)
	return &notice{"Told successfully"}, nil
}

func (a *API) endRehearsal(ctx context.Context, r *request, in *byText) (*notice, error) {
	return &notice{"Test ended successfully"}, a.Assistants.Stages.End(r.UserID(), in.ID)
}
