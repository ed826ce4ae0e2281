package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/catalog"
	"parley/internal/lang"
	"parley/internal/parley"
	"parley/internal/schema"
	"parley/internal/tool"
)

// Occasion is what an assistant is prepared for.
type Occasion struct {
	// given for this conversation by the assistant's owner; they take precedence over the assistant's own
	Variables map[string]string
	// given by whoever talks to the assistant; they take precedence over both, and go into no header of a tool
	Visitor        map[string]string
	CustomerPhone  string
	AssistantPhone string
	Now            time.Time
	// the token of a test, "" for a real occasion: no tool is really called in one, unless the test says so
	Test string
	// what it is of: a call or conversation, "" for none. It has sessions of its own with MCP servers.
	Of string
	// the program at the customer's end that runs tools of kind client; nil where there is none: then the model gets none of them
	Client *Client
}

// Staged is an occasion as a test sets it: with the time that it shows.
func (d *Studio) Staged(o Occasion) Occasion {
	o.Now = d.Stages.Find(o.Test).Clock(o.Now)
	return o
}

// Cast is an assistant as it is on an occasion: in a test it may have changes that are not saved.
func (d *Studio) Cast(a *parley.Assistant, o Occasion) *parley.Assistant {
	return d.Stages.Find(o.Test).Cast(a)
}

// Mind is the language model of an assistant, which may play others in its tests; nil where it has none.
func (d *Studio) Mind(a *parley.Assistant) (ai.Model, error) {
	m, builtIn, err := d.thinker(a)
	if builtIn || err != nil {
		return nil, err
	}
	return m, nil
}

// Variables are the values of {{name}} on an occasion: the assistant's own, those given, and the built-in ones, which
// always exist.
func Variables(a *parley.Assistant, o Occasion) map[string]string {
	vars := maps.Clone(a.Variables)
	if vars == nil {
		vars = map[string]string{}
	}
	maps.Copy(vars, o.Variables)
	maps.Copy(vars, o.Visitor)
	now := o.Now.In(zoneOf(a))
	vars["assistant_id"], vars["assistant_name"] = strconv.FormatInt(a.ID, 10), a.Name
	vars["current_date"], vars["current_time"], vars["current_weekday"] = now.Format(time.DateOnly),
		now.Format("15:04"), lang.Weekday(catalog.ISO(a.LanguageID), now.Weekday())
	for name, phone := range map[string]string{"customer_phone": o.CustomerPhone, "assistant_phone": o.AssistantPhone} {
		if phone != "" || vars[name] == "" { // a widget may have asked for it
			vars[name] = phone
		}
	}
	return vars
}

// Ready is an assistant that can think: the same for a call and for a chat.
type Ready struct {
	Assistant *parley.Assistant // with its texts rendered
	Variables map[string]string
	Initial   string // what it says first, "" when it waits
	system    string
	clock     *clock // nil where the model is told no time
	model     ai.Model
	reader    ai.Model // reads a finished conversation
	builtIn   bool     // the reader is the built-in one, which judges nothing
	warm      func()   // begins what the account's own endpoint keeps; nil: nothing
	tools     []agent.Tool
	served    []*served // MCP servers, whose tools are beside them
	studio    *Studio
	values    tool.Variables
	test, of  string    // of the occasion
	knowledge *searcher // nil without a knowledgebase
}

// Ready prepares one of its owner's assistants. The error is an *ai.Error if its model is no longer configured.
func (d *Studio) Ready(a *parley.Assistant, o Occasion) (*Ready, error) {
	a = d.Cast(a, o)
	o = d.Staged(o)
	r := &Ready{Variables: Variables(a, o), studio: d, test: o.Test, of: o.Of}
	var err error
	if r.reader, r.builtIn, err = d.thinker(a); err != nil {
		return nil, fmt.Errorf("ready assistant %d: %w", a.ID, err)
	}
	r.model = r.reader
	if err := r.ask(a, o); err != nil {
		return nil, fmt.Errorf("ready assistant %d: %w", a.ID, err)
	}
	if !r.builtIn || r.warm != nil {
		r.clock = newClock(a, o.Now)
	}
	own := o
	own.Visitor = nil
	r.values = tool.Variables{All: r.Variables, Owner: Variables(a, own)}
	a = a.Rendered(r.Variables)
	r.Assistant, r.Initial, r.system = a, a.InitialMessage, a.SystemPrompt
	for i := range a.MidCallTools {
		if m := &a.MidCallTools[i]; m.Kind == parley.ToolMCP {
			s := &served{tool: m}
			s.listing.Store(m.Listing)
			r.served = append(r.served, s)
			continue
		}
		t := d.midCall(&a.MidCallTools[i], r.values, o.Client)
		if a.MidCallTools[i].Kind == parley.ToolClient && o.Test == "" && !o.Client.has(t.Name) {
			continue
		}
		if o.Test != "" {
			staged(d.Stages.Find(o.Test), &t)
		}
		r.tools = append(r.tools, t)
	}
	if a.KnowledgebaseID != nil && d.Knowledge != nil {
		r.consult(d.Knowledge)
	}
	return r, nil
}

// own is the model that an assistant thinks with in text: its own, or the server's first if its own model hears and
// speaks.
func (d *Studio) own(a *parley.Assistant) (*parley.Model, error) {
	c := d.Catalog.For(a.UserID)
	if a.LLMModelID == nil {
		return &c.ModelsOf(parley.LLM)[0], nil // there is always the built-in one
	}
	if m := c.Model(*a.LLMModelID); m != nil {
		return m, nil
	}
	return nil, &ai.Error{Kind: ai.Config, Err: fmt.Errorf("there is no model %d", *a.LLMModelID),
		Mend: "The assistant's model is no longer there: choose another."}
}

// thinker is what an assistant thinks with: its own model, followed by those that take over when it fails. It also
// reports whether that is the built-in one, which is not a language model and never fails.
func (d *Studio) thinker(a *parley.Assistant) (thinker ai.Model, builtIn bool, err error) {
	m, err := d.own(a)
	if err != nil {
		return nil, false, err
	}
	own := d.endpoint(a, "llm_model_id")
	if own != nil && own.Endpoint.Kind == parley.EndpointAgent {
		own = nil // it answers turns, and does nothing else
	}
	if m.Provider == ai.BuiltIn && own == nil {
		thinker, err = d.Providers.For(a.UserID).Model(m.Provider, m.Code)
		return thinker, true, err
	}
	thinker, err = d.mind(a, m, own)
	return thinker, false, err
}

// midCall is a mid-call tool in the form that the agent runs.
func (d *Studio) midCall(t *parley.Tool, vars tool.Variables, client *Client) agent.Tool {
	out := agent.Tool{
		Tool:    ai.Tool{Name: t.Name, Description: t.Description, Schema: tool.Schema(t)},
		Fillers: [2]string{t.Filler, t.SecondFill},
	}
	out.AsyncTime = time.Duration(t.Timeout) * time.Second
	out.Run, out.Async = inMode(t, func(ctx context.Context, t *parley.Tool, args map[string]any) tool.Result {
		if t.Kind == parley.ToolClient {
			return tool.RunInClient(ctx, t, args, func(ctx context.Context, arguments json.RawMessage) (string, error) {
				return client.run(ctx, t.Name, arguments)
			})
		}
		return d.Tools.Run(ctx, t, args, vars)
	})
	return out
}

// inMode is what the agent runs of a tool: run while the conversation waits, and async, if that is its mode, while it goes on.
func inMode(t *parley.Tool, call func(context.Context, *parley.Tool, map[string]any) tool.Result) (
	run, async func(context.Context, json.RawMessage) (string, error)) {
	with := func(t *parley.Tool) func(context.Context, json.RawMessage) (string, error) {
		return func(ctx context.Context, arguments json.RawMessage) (string, error) {
			args, err := decoded(arguments)
			if err != nil {
				return "", err
			}
			return told(call(ctx, t, args))
		}
	}
	if t.Mode != parley.ToolAsync {
		return with(t), nil
	}
	return with(t.Waited()), with(t)
}

// Turn is a turn of thinking for this assistant; history ends with what is to be answered.
func (r *Ready) Turn(history []ai.Message, sink agent.Sink) *agent.Turn {
	temperature := r.Assistant.LLMTemperature.Float()
	day, now := r.clock.now()
	return &agent.Turn{Model: r.model, System: r.clock.after(r.system), Day: day, Now: now, History: history,
		Tools:       slices.Concat(r.tools, r.fromServers()),
		Temperature: &temperature, Sink: sink}
}

// Extract finds what the assistant's post_call_schema asks for in a transcript.
func (r *Ready) Extract(ctx context.Context, transcript string) (parley.Findings, error) {
	if own := schema.ItemForms.More(forms(r.Assistant)); own != nil {
		found, _, err := agent.ExtractSchema(ctx, r.reader, own, transcript)
		return found, err
	}
	found, _, err := agent.Extract(ctx, r.reader, r.Assistant.PostCallSchema, transcript)
	return found, err
}

// Summarize tells somebody who takes a conversation over what it is about, in a few spoken sentences; "" if there is no
// language model to do so.
func (r *Ready) Summarize(ctx context.Context, transcript, instructions, language string) (string, error) {
	if r.builtIn {
		return "", nil
	}
	return agent.Summarize(ctx, r.reader, transcript, instructions, language)
}

// Evaluate judges a finished call by the assistant's purpose; {} if there is no language model to judge it.
func (r *Ready) Evaluate(ctx context.Context, transcript string) (map[string]any, error) {
	if r.builtIn {
		return map[string]any{}, nil
	}
	e, _, err := agent.Evaluate(ctx, r.reader, r.system, transcript)
	return e.Map(), err
}
