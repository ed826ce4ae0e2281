package exam

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"parley/internal/assistant"
	"parley/internal/parley"
	"parley/internal/stage"
	"parley/internal/store"
)

// source is a stored conversation that a script is made of.
type source struct {
	what      string // for people: call 12
	channel   string
	dialog    dialog
	variables map[string]string
	lasted    time.Duration
	hungUp    bool   // by the assistant
	customer  string // who they are, by number or the channel's name for them; "": nobody who is known
}

// Source names a stored conversation: one of the two.
type Source struct {
	CallID         int64
	ConversationID string
}

// CreateFrom makes a test of one of the user's calls or conversations, for its assistant: the customer's turns become
// the script, and what tools answered their mocks.
func (d *Desk) CreateFrom(ctx context.Context, userID int64, from Source) (*parley.Test, error) {
	s, assistantID, err := d.source(ctx, userID, from)
	if err != nil {
		return nil, err
	}
	a, err := d.DB.Assistant(ctx, userID, assistantID)
	if err != nil {
		return nil, err
	}
	script, err := s.script("As in "+s.what, a, true)
	if err != nil {
		return nil, err
	}
	return d.create(ctx, userID, &parley.Test{AssistantID: assistantID, Customer: s.customer}, script)
}

// source reads a stored conversation, and whose it is.
func (d *Desk) source(ctx context.Context, userID int64, from Source) (s *source, assistantID int64, err error) {
	if from.CallID != 0 {
		c, err := d.DB.Call(ctx, userID, from.CallID)
		if err != nil {
			return nil, 0, err
		}
		if c.EndedAt == 0 {
			return nil, 0, parley.Errorf(parley.Conflict, "This call is not over yet.")
		}
		return &source{fmt.Sprintf("call %d", c.ID), "call", ofCall(c.Turns, c.FunctionCalls), c.InputVariables,
			time.Duration(c.Duration) * time.Second, c.EndedReason == "assistant_hangup",
			or(c.CustomerPhone)}, c.AssistantID, nil
	}
	c, err := d.DB.Conversation(ctx, userID, from.ConversationID)
	if err != nil {
		return nil, 0, err
	}
	list, err := d.DB.Messages(ctx, c.ID)
	if err != nil {
		return nil, 0, err
	}
	u, err := d.DB.User(ctx, userID)
	if err != nil {
		return nil, 0, err
	}
	return &source{"the chat of " + parley.Time(c.CreatedAt).Time().In(u.Zone()).Format("2 January 2006 15:04"), "chat", ofMessages(list),
		c.Variables, 0, false, or(c.CustomerPhone, c.ExternalIdentifier)}, c.AssistantID, nil
}

// or is the first text that is there.
func or(texts ...*string) string {
	for _, text := range texts {
		if text != nil && *text != "" {
			return *text
		}
	}
	return ""
}

// replay is the script by which a stored conversation is performed again, with any of the user's assistants.
func (d *Desk) replay(ctx context.Context, userID int64, run *parley.TestRun, o Order) (string, error) {
	s, _, err := d.source(ctx, userID, Source{o.CallID, o.ConversationID})
	if err != nil {
		return "", err
	}
	a, err := d.DB.Assistant(ctx, userID, run.AssistantID)
	if err != nil {
		return "", err
	}
	run.Customer = s.customer
	if o.CallID != 0 {
		run.CallID = &o.CallID
	} else {
		run.ConversationID = &o.ConversationID
	}
	if a, err = a.Amended(run.Changes); err != nil {
		return "", err
	}
	return s.script("Replay of "+s.what, a.With(o.Draft), false)
}

// replayed are the turns of a replay beside those of what was replayed; none where that is gone.
func (d *Desk) replayed(ctx context.Context, userID int64, r *Report) ([]Turn, error) {
	from := Source{}
	if r.CallID != nil {
		from.CallID = *r.CallID
	} else {
		from.ConversationID = *r.ConversationID
	}
	s, _, err := d.source(ctx, userID, from)
	if store.IsNotFound(err) || len(r.Results) == 0 || !r.Results[0].State.Over() {
		return []Turn{}, nil
	}
	if err != nil {
		return nil, err
	}
	return sideBySide(s.dialog, ofCall(r.Results[0].Turns, r.Results[0].FunctionCalls)), nil
}

const (
	maxTurns  = 40
	maxAnswer = 8 << 10 // bytes of a tool's answer
	maxWords  = 1500    // characters of what is said in one go
)

type (
	step   map[string]any
	mocked struct {
		Reply string `yaml:"reply"`
	}
	script struct {
		Name      string            `yaml:"name"`
		Channel   string            `yaml:"channel,omitempty"`
		Limit     string            `yaml:"limit,omitempty"`
		Variables map[string]string `yaml:"variables,omitempty"`
		Mock      map[string]mocked `yaml:"mock,omitempty"`
		Steps     []step            `yaml:"steps"`
		End       map[string]string `yaml:"end,omitempty"`
	}
)

// script is what a simulated customer does to say the same again. With expectations the same tools must be called with
// the same values; without, only what tools answer is the same. Numbers and addresses of people are replaced, and
// variables that the assistant's texts don't use are left out.
func (s *source) script(name string, a *parley.Assistant, expect bool) (string, error) {
	out := script{Name: name, Mock: map[string]mocked{}, Variables: map[string]string{}}
	own := map[string]bool{}
	for _, name := range assistant.ToolNames(a) {
		own[name] = true
	}
	if s.channel == "chat" {
		out.Channel = "chat"
	}
	for _, name := range parley.VariableNames(a.InitialMessage, a.SystemPrompt) {
		if v, ok := s.variables[name]; ok && name != stage.Variable {
			out.Variables[name] = impersonal(v)
		}
	}
	said := 0
	for i, e := range s.dialog {
		if e.customer != "" && said == maxTurns {
			break
		}
		if e.customer == "" && i == 0 && e.assistant != "" && out.Channel == "" {
			out.Steps = append(out.Steps, step{"hear": "greeting"})
		}
		if words := speakable(e.customer); words != "" {
			said++
			out.Steps = append(out.Steps, step{"say": words})
		}
		var wanted []string
		for _, f := range e.tools {
			if !own[f.Name] {
				continue
			}
			if _, ok := out.Mock[f.Name]; !ok && f.Result != "" {
				out.Mock[f.Name] = mocked{impersonal(f.Result[:min(len(f.Result), maxAnswer)])}
			}
			wanted = append(wanted, pattern(f))
		}
		if expect && len(wanted) > 0 && len(out.Steps) > 0 {
			out.Steps = append(out.Steps, step{"expect": map[string]any{"tool": wanted}})
		}
	}
	if said == 0 {
		return "", parley.Errorf(parley.Invalid, "The customer said nothing in %s, so there is nothing to perform.", s.what)
	}
	if s.hungUp && expect {
		out.End = map[string]string{"reason": "assistant_hangup"}
	}
	if twice := 2 * s.lasted; twice > 90*time.Second {
		out.Limit = fmt.Sprintf("%ds", int(min(twice, maxLimit).Seconds()))
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(out); err != nil {
		return "", err
	}
	return b.String(), e.Close()
}

// speakable is what a customer said as a script may have it.
func speakable(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>"`, r) {
			return ' '
		}
		return r
	}, impersonal(s))), " ")
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "")
	}
	s = strings.ReplaceAll(s, " at reply", " at  reply") // it would be a moment
	return strings.Trim(s, "' ")
}

// pattern is a call of a tool as an expectation has it, without the values that may be a person's.
func pattern(f parley.FunctionCall) string {
	args := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(f.Arguments))
	dec.UseNumber()
	if dec.Decode(&args) != nil || len(args) == 0 {
		return f.Name
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		raw, err := json.Marshal(args[name])
		if text := string(raw); err == nil && text == impersonal(text) && !longNumber.MatchString(text) {
			list = append(list, name+": "+text)
		}
	}
	if len(list) == 0 {
		return f.Name
	}
	return f.Name + "{" + strings.Join(list, ", ") + "}"
}

var (
	mailAddress = regexp.MustCompile(`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}.-]+\.\p{L}{2,}`)
	// seven digits or more, with what people write between them
	longNumber = regexp.MustCompile(`\+?\d(?:[ \-./()]{0,2}\d){6,}`)
)

const madeUpDigits = "5550100"

// impersonal replaces addresses and long numbers, as of telephones, cards and accounts, by made-up ones: the same by the
// same each time. Names can't be told from other words.
func impersonal(s string) string {
	s = mailAddress.ReplaceAllString(s, "somebody@example.com")
	return longNumber.ReplaceAllStringFunc(s, func(number string) string {
		i := 0
		return strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return r
			}
			i++
			return rune(madeUpDigits[(i-1)%len(madeUpDigits)])
		}, number)
	})
}
