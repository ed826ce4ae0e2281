package gptlive

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"parley/internal/ai"
	"parley/internal/audio"
	"parley/internal/provider/live"
	"parley/internal/provider/realtime"
	"parley/internal/provider/rest"
)

// session is the protocol of a conversation.
type session struct {
	*live.Decided
	model   Model
	rate    audio.Rate
	names   rest.Names
	started bool
	billed  time.Duration
}

const (
	expiryNotice = 5 * time.Minute // so long before its end a session says that it is going to end
	piece        = 400             // characters of an append: the server takes 500 tokens
)

// event is any event of the server's, with the fields that are used here.
type event struct {
	Type    string `json:"type"`
	Delta   string `json:"delta"`
	StartMS int    `json:"start_ms"` // on the session's timeline
	EndMS   int    `json:"end_ms"`
	Reason  string `json:"reason"`
	Task    string `json:"delegation_id"`
	Session struct {
		ExpiresAt int64 `json:"expires_at"`
	} `json:"session"`
	Usage struct {
		Seconds float64 `json:"seconds"`
	} `json:"usage"` // of the session so far
	Event struct { // of the thinker, as the Responses API has it
		Type string `json:"type"`
		Item struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"item"`
		Response struct {
			Usage struct {
				In      int `json:"input_tokens"`
				Out     int `json:"output_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"input_tokens_details"`
			} `json:"usage"`
		} `json:"response"`
	} `json:"event"`
	Error realtime.Fault `json:"error"`
}

// Take implements live.Decider.
func (s *session) Take(raw []byte) error {
	var e event
	if err := live.Read(raw, &e); err != nil {
		return err
	}
	switch e.Type {
	case "session.started":
		if s.started = true; e.Session.ExpiresAt > 0 {
			s.Ends(time.Unix(e.Session.ExpiresAt, 0), expiryNotice)
		}
	case "session.output_audio.delta":
		pcm, err := live.PCM(e.Delta, s.rate)
		if err != nil {
			return err
		}
		s.Sound(e.StartMS, pcm)
	case "session.output_transcript.delta":
		s.Words(e.Delta, e.StartMS, e.EndMS)
	case "session.input_transcript.delta":
		s.Heard(e.Delta, e.StartMS)
	case "response.event":
		s.thinks(&e)
	case "session.usage.updated":
		s.spend(&e)
	case "session.closed":
		s.spend(&e)
		kind := ai.Interrupted
		if e.Reason == "content" {
			kind = ai.Refused
		}
		return &ai.Error{Kind: kind, Err: fmt.Errorf("the session was closed: %s", e.Reason)}
	case "error":
		if !s.started || slices.Contains(fatal, e.Error.Code) {
			return e.Error.Failure()
		}
		slog.Warn("GPT-Live had an error", "error", e.Error.Failure().Err)
	}
	return nil
}

// Note implements live.Decider.
func (s *session) Note(text string) { s.append("thinking", "["+text+"]") }

// Prompt implements live.Decider.
func (s *session) Prompt(text string) { s.append("commentary", text) }

func (s *session) append(kind, text string) {
	for r := []rune(text); len(r) > 0; {
		n := min(piece, len(r))
		for at := n; n < len(r) && at > piece/2; at-- { // between words
			if r[at-1] == ' ' {
				n = at
				break
			}
		}
		s.Box.Send(map[string]any{"type": "session." + kind + ".append", "delegation_id": nil, "content": string(r[:n])})
		r = r[n:]
	}
}

// Answer implements live.Decider.
func (s *session) Answer(callID, result string) {
	s.Box.Send(map[string]any{"type": "response.item.create", "item": map[string]any{"type": "function_call_output",
		"call_id": callID, "output": result}})
}

// GoOn implements live.Decider.
func (s *session) GoOn() { s.Box.Send(map[string]any{"type": "response.create"}) }

// thinks takes what the thinker does.
func (s *session) thinks(e *event) {
	t := &e.Event
	s.Thinks(t.Type == "response.created")
	switch t.Type {
	case "response.output_item.done":
		if c := &t.Item; c.Type == "function_call" && c.CallID != "" {
			s.Calls(e.Task, ai.ToolCall{ID: c.CallID, Name: s.names.Own(c.Name), Arguments: c.Arguments})
		}
	case "response.completed", "response.failed", "response.incomplete":
		u := ai.Usage{In: t.Response.Usage.In, Out: t.Response.Usage.Out, Cached: t.Response.Usage.Details.Cached}
		if u != (ai.Usage{}) {
			s.Tally.Spend(ai.Use{Part: ai.TheModel, Vendor: s.model.Vendor, Model: s.model.Thinker, Usage: u})
			s.Tell(ai.RealtimeEvent{Kind: ai.RealtimeUsed, Usage: u})
		}
		s.Thought(e.Task, t.Type == "response.completed")
	}
}

// spend records the seconds that the server has counted.
func (s *session) spend(e *event) {
	sum := time.Duration(math.Round(e.Usage.Seconds*1000)) * time.Millisecond
	if more := sum - s.billed; more > 0 {
		s.billed = sum
		s.Tally.Spend(ai.Use{Part: ai.TheModel, Vendor: s.model.Vendor, Model: s.model.Code, Heard: more})
	}
}
