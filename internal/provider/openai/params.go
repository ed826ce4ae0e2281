package openai

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"parley/internal/ai"
	"parley/internal/provider/rest"
	"parley/internal/schema"
)

// request is the body of POST /chat/completions.
type request struct {
	Model         string         `json:"model"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
	Messages      []chatMessage  `json:"messages"`
	Tools         []function     `json:"tools,omitempty"`
	ToolChoice    string         `json:"tool_choice,omitempty"`
	Temperature   *float64       `json:"temperature,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	MaxCompletion int            `json:"max_completion_tokens,omitempty"`
	Format        *format        `json:"response_format,omitempty"`
	Effort        string         `json:"reasoning_effort,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type format struct {
	Type   string `json:"type"`
	Schema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// chatMessage is one message of a conversation. Only one that has calls may have no content.
type chatMessage struct {
	Role    string  `json:"role"`
	Content *string `json:"content,omitempty"`
	CallID  string  `json:"tool_call_id,omitempty"`
	Calls   []call  `json:"tool_calls,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type function struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict,omitempty"` // the model is held to them
	} `json:"function"`
}

// params builds the request, without the fields that the model refuses.
func (m *model) params(req ai.Request, names rest.Names, sent *rest.Sent) request {
	p := request{Model: m.code, Stream: true}
	if sent.Send("temperature", req.Temperature != nil) {
		p.Temperature = req.Temperature
	}
	if sent.Send("max_tokens", req.MaxTokens > 0 && !newer(m.code)) {
		p.MaxTokens = req.MaxTokens
	} else if sent.Send("max_completion_tokens", req.MaxTokens > 0) { // OpenAI's newer models take this one only
		p.MaxCompletion = req.MaxTokens
	}
	if sent.Send("stream_options", true) {
		p.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	system := req.System
	if sent.Send("response_format", req.Schema != nil) {
		p.Format = &format{Type: "json_schema"}
		strict, _ := schema.Strict(req.Schema.JSON)
		p.Format.Schema.Name, p.Format.Schema.Strict, p.Format.Schema.Schema = req.Schema.Name, strict, schema.ForOpenAI(req.Schema.JSON)
	} else if req.Schema != nil {
		system += "\n\nAnswer with one JSON object and nothing else: no words around it, no code fence. It follows this JSON Schema:\n" +
			string(req.Schema.JSON)
	}
	if sent.Send("reasoning_effort", newer(m.code)) {
		p.Effort = "none"
	}
	tools, messages := req.Tools, req.Messages
	if len(tools) > 0 && !sent.Send(toolsPart, true) {
		if !req.NoCalls {
			system += told(wired(tools, names))
		}
		tools, messages = nil, withoutCalls(wiredCalls(messages, names))
	}
	for _, t := range tools {
		f := function{Type: "function"}
		f.Function.Name, f.Function.Description, f.Function.Parameters = names.Wire(t.Name), t.Description, schema.ForOpenAI(t.Schema)
		strict, _ := schema.Strict(t.Schema)
		f.Function.Strict = sent.Send(strictPart, strict)
		p.Tools = append(p.Tools, f)
	}
	if sent.Send("tool_choice", req.NoCalls && len(tools) > 0) {
		p.ToolChoice = "none"
	}
	if system != "" && sent.Send(systemPart, true) {
		p.Messages = append(p.Messages, chatMessage{Role: "system", Content: &system})
	} else if system != "" {
		messages = withSystem(system, messages)
	}
	if !sent.Send(orderPart, true) {
		messages = inTurn(messages)
	}
	for _, msg := range messages {
		p.Messages = append(p.Messages, message(msg, names))
	}
	return p
}

// wired are tools by their names on the wire.
func wired(tools []ai.Tool, names rest.Names) []ai.Tool {
	out := slices.Clone(tools)
	for i := range out {
		out[i].Name = names.Wire(out[i].Name)
	}
	return out
}

// wiredCalls are messages whose calls have names on the wire.
func wiredCalls(messages []ai.Message, names rest.Names) []ai.Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i].Calls = slices.Clone(out[i].Calls)
		for j := range out[i].Calls {
			out[i].Calls[j].Name = names.Wire(out[i].Calls[j].Name)
		}
	}
	return out
}

// version is that of a model of OpenAI's GPT, wherever a proxy puts it: openai/gpt-6-luna.
var version = regexp.MustCompile(`(?:^|/)gpt-(\d+)(?:\.(\d+))?(?:-|$)`)

// newer reports whether a model is GPT-5.1 or later. These are asked not to reason before they answer, because people are
// waiting; from GPT-5.6 on they would otherwise take neither tools nor a temperature here. A model that always reasons
// refuses the field, which is then left out.
func newer(code string) bool {
	v := version.FindStringSubmatch(code)
	if v == nil {
		return false
	}
	major, _ := strconv.Atoi(v[1])
	minor, _ := strconv.Atoi(v[2]) // "" is 0
	return major > 5 || major == 5 && minor > 0
}

func message(m ai.Message, names rest.Names) chatMessage {
	out := chatMessage{Role: string(m.Role), Content: &m.Text}
	switch {
	case m.Role == ai.ToolRole:
		out.CallID = m.CallID
		return out
	case m.Role == ai.User:
		return out
	case len(m.Calls) > 0 && m.Text == "":
		out.Content = nil
	}
	for _, c := range m.Calls {
		args := c.Arguments
		if !json.Valid([]byte(args)) {
			args = "{}" // servers that parse it would refuse the whole conversation; the result tells what was wrong
		}
		made := call{ID: c.ID, Type: "function"}
		made.Function.Name, made.Function.Arguments = names.Wire(c.Name), args
		out.Calls = append(out.Calls, made)
	}
	return out
}
