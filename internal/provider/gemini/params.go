package gemini

import (
	"encoding/json"
	"strings"

	"parley/internal/ai"
	"parley/internal/provider/rest"
	"parley/internal/schema"
)

// thinking is added to a bound where the model thinks, which counts.
const thinking = 2048

// request is the body of generateContent.
type request struct {
	System   *content        `json:"systemInstruction,omitempty"`
	Contents []content       `json:"contents"`
	Tools    []declarations  `json:"tools,omitempty"`
	Calling  *calling        `json:"toolConfig,omitempty"`
	Config   *generationConf `json:"generationConfig,omitempty"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is a piece of a content: text, a call, or its result.
type part struct {
	Text      string    `json:"text,omitempty"`
	Thought   bool      `json:"thought,omitempty"`
	Signature string    `json:"thoughtSignature,omitempty"`
	Call      *call     `json:"functionCall,omitempty"`
	Response  *response `json:"functionResponse,omitempty"`
}

type call struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type response struct {
	ID       string `json:"id,omitempty"`
	Name     string `json:"name"`
	Response struct {
		Output any `json:"output"`
	} `json:"response"`
}

type declarations struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type calling struct {
	Config struct {
		Mode string `json:"mode"`
	} `json:"functionCallingConfig"`
}

type generationConf struct {
	Temperature *float64        `json:"temperature,omitempty"`
	MaxTokens   int             `json:"maxOutputTokens,omitempty"`
	Type        string          `json:"responseMimeType,omitempty"`
	Schema      json.RawMessage `json:"responseJsonSchema,omitempty"`
	Thinking    *thinkingConf   `json:"thinkingConfig,omitempty"`
}

type thinkingConf struct {
	Level  string `json:"thinkingLevel,omitempty"`
	Budget *int   `json:"thinkingBudget,omitempty"`
}

// manner is how one request differs from what the model usually gets.
type manner struct {
	words    bool // the schema goes into the prompt
	unsealed bool // seals are not sent
}

// The fields that a request can do without. A person waits, so a model is to think as little as it can: newer ones
// take one of two levels, older ones a budget.
const (
	temperature = "temperature"
	minimal     = "the level minimal"
	low         = "the level low"
	budget      = "a budget"
	unsigned    = "calls without a signature" // what is refused is their lack
)

// complaints are what an error that is about a field holds.
var complaints = map[string]string{temperature: "temperature", minimal: "thinking", low: "thinking",
	budget: "thinking", unsigned: "signature"}

// params is the request in Gemini's words, without what the model refuses.
func (m *model) params(req ai.Request, names rest.Names, how manner, sent *rest.Sent) request {
	c := generationConf{MaxTokens: max(0, req.MaxTokens)}
	if sent.Send(temperature, req.Temperature != nil) {
		c.Temperature = req.Temperature
	}
	none := 0
	switch {
	case sent.Send(minimal, true):
		c.Thinking = &thinkingConf{Level: "minimal"}
	case sent.Send(low, true):
		c.Thinking = &thinkingConf{Level: "low"}
	case sent.Send(budget, true):
		c.Thinking = &thinkingConf{Budget: &none}
	}
	if c.MaxTokens > 0 && (c.Thinking == nil || c.Thinking.Budget == nil) {
		c.MaxTokens += thinking
	}
	system := req.System
	switch {
	case req.Schema == nil:
	case how.words:
		c.Type = "application/json"
		system += "\n\nAnswer with one JSON object and nothing else: no words around it, no code fence. It follows this JSON Schema:\n" +
			string(req.Schema.JSON)
	default:
		c.Type, c.Schema = "application/json", schema.ForGemini(req.Schema.JSON)
	}
	p := request{Contents: contents(req.Messages, names, how.unsealed, !sent.Send(unsigned, true)), Config: &c}
	if strings.TrimSpace(system) != "" {
		p.System = &content{Parts: []part{{Text: system}}}
	}
	if len(req.Tools) > 0 {
		var d declarations
		for _, t := range req.Tools {
			d.Functions = append(d.Functions, function{names.Wire(t.Name), t.Description, schema.ForGemini(t.Schema)})
		}
		p.Tools = []declarations{d}
		if req.NoCalls {
			p.Calling = &calling{}
			p.Calling.Config.Mode = "NONE"
		}
	}
	return p
}

func object(raw json.RawMessage) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(raw, &o) == nil && o != nil
}
