package console

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"time"

	"parley/internal/parley"
)

// beginning is the form that begins a test chat with an assistant as it is saved: with its draft.
type beginning struct {
	assistant *parley.Assistant
	variables []chatVariable
	voice     bool // this server takes calls from browsers
	cost      string
	model     string // that answers; "" if it is no longer there
	builtIn   bool   // no language model answers
}

// chatVariable is a {{name}} that a test chat may give a value of its own.
type chatVariable struct{ name, value string } // value is the assistant's

// clockwork are the built-in variables that no conversation can change.
var clockwork = []string{"assistant_id", "assistant_name", "current_date", "current_time", "current_weekday"}

func (c *Console) begin(a *parley.Assistant) *beginning {
	b := &beginning{assistant: a, model: c.Assistants.ModelName(a), builtIn: c.Assistants.BuiltIn(a),
		cost: chatCost(c.Prices.Messages[string(parley.TestConversation)])}
	if b.voice = c.Answer != nil; b.voice {
		b.cost += " Speaking costs " + rate(c.Prices.Calls.Assistant) + " a minute, as any call does, and is listed under Calls."
	}
	for _, name := range parley.VariableNames(a.InitialMessage, a.SystemPrompt) {
		if !slices.Contains(clockwork, name) {
			b.variables = append(b.variables, chatVariable{name, a.Variables[name]})
		}
	}
	return b
}

// chatCost says what a test chat costs.
func chatCost(message parley.Money) string {
	if message == 0 {
		return "Writing is free."
	}
	return "Writing costs " + rate(message) + " a message."
}

func (b *beginning) path() string {
	return assistantPath(b.assistant.ID, "/talk")
}

// callPath is where a call from the browser begins.
func (b *beginning) callPath() string {
	return assistantPath(b.assistant.ID, "/web-call")
}

// records is the list that calls with the assistant from this browser are in, the last one first.
func (b *beginning) records() string {
	return "/calls?assistant_id=" + strconv.FormatInt(b.assistant.ID, 10) + "&type=web"
}

// placeholder says what a variable stands for when nothing else is written.
func (v chatVariable) placeholder() string {
	if v.value == "" {
		return "no value yet"
	}
	return v.value
}

// talkPage is the test chat by itself: where there is no script, and where the script finds the form anew.
func (c *Console) talkPage(r *request) (*answer, error) {
	a, err := c.Assistants.Drafted(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	return show("Test "+a.Name, talkPage(c.begin(a))), nil
}

// talkStart begins a test chat with the draft where there is one: free, and also with an assistant that is inactive.
func (c *Console) talkStart(r *request) (*answer, error) {
	a, err := c.Assistants.Drafted(r.Context(), r.UserID(), r.id("id"))
	if err != nil {
		return nil, err
	}
	if _, err := c.Create.Take(c.Front.Client(r.Request), time.Now()); err != nil {
		return nil, err
	}
	tree := decode(r.PostForm, reflect.TypeFor[struct {
		Variables map[string]string `json:"variables"`
	}]())
	vars := map[string]string{}
	rows, _ := tree["variables"].(map[string]any)
	for name, value := range rows {
		if text, _ := value.(string); name != "" && text != "" { // left empty: the assistant's own
			vars[name] = text
		}
	}
	conv, _, err := c.Chat.StartDraft(r.Context(), a, 0, vars)
	if err != nil {
		return nil, err
	}
	return see("/conversations/" + conv.ID), nil
}

// indented is JSON with line breaks; another text is left as it is.
func indented(raw string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(raw), "", "  ") != nil {
		return raw
	}
	return b.String()
}
