package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"parley/internal/ai"
)

// params is the request in the SDK's words, without the fields that the model refuses.
func (m *model) params(req ai.Request, names names) sdk.ChatCompletionNewParams {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := sdk.ChatCompletionNewParams{Model: m.code}
	if m.sends("temperature", req) {
		p.Temperature = sdk.Float(*req.Temperature)
	}
	if m.sends("max_tokens", req) {
		p.MaxTokens = sdk.Int(int64(req.MaxTokens))
	} else if m.sends("max_completion_tokens", req) {
		p.MaxCompletionTokens = sdk.Int(int64(req.MaxTokens))
	}
	if m.sends("stream_options", req) {
		p.StreamOptions.IncludeUsage = sdk.Bool(true)
	}
	system := req.System
	if m.sends("response_format", req) {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: req.Schema.Name, Strict: sdk.Bool(true), Schema: req.Schema.JSON,
			}}
	} else if req.Schema != nil {
		system += "\n\nAnswer with one JSON object and nothing else: no words around it, no code fence. It follows this JSON Schema:\n" + string(req.Schema.JSON)
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: names.wire(t.Name), Description: sdk.String(t.Description), Parameters: parameters(t.Schema),
		}))
	}
	if m.sends("tool_choice", req) {
		p.ToolChoice.OfAuto = sdk.String("none")
	}
	if system != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(system))
	}
	for _, msg := range req.Messages {
		p.Messages = append(p.Messages, message(msg, names))
	}
	return p
}

func message(m ai.Message, names names) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case ai.User:
		return sdk.UserMessage(m.Text)
	case ai.ToolRole:
		return sdk.ToolMessage(m.Text, m.CallID)
	}
	if len(m.Calls) == 0 {
		return sdk.AssistantMessage(m.Text)
	}
	var out sdk.ChatCompletionAssistantMessageParam
	if m.Text != "" {
		out.Content.OfString = sdk.String(m.Text)
	}
	for _, c := range m.Calls {
		args := c.Arguments
		if !json.Valid([]byte(args)) {
			args = "{}" // servers that parse it would refuse the whole conversation; the result tells what was wrong
		}
		out.ToolCalls = append(out.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: names.wire(c.Name),
					Arguments: args},
			}})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &out}
}

func parameters(schema json.RawMessage) shared.FunctionParameters {
	var p shared.FunctionParameters
	if json.Unmarshal(schema, &p) != nil || p == nil {
		p = shared.FunctionParameters{"type": "object", "properties": map[string]any{}}
	}
	return p
}

// optional are the fields that a request can do without.
var optional = []string{"response_format", "temperature", "stream_options", "tool_choice", "max_completion_tokens",
	"max_tokens"}

// sends says whether a request has an optional field. The lock is held.
func (m *model) sends(field string, req ai.Request) bool {
	if m.refused[field] {
		return false
	}
	switch field {
	case "response_format":
		return req.Schema != nil
	case "temperature":
		return req.Temperature != nil
	case "tool_choice":
		return req.NoCalls && len(req.Tools) > 0
	case "max_tokens":
		return req.MaxTokens > 0
	case "max_completion_tokens": // OpenAI's newer models take this one only, many other servers max_tokens only
		return req.MaxTokens > 0 && m.refused["max_tokens"]
	}
	return true
}

// learn notes which field of the request the server refused, and says whether to ask again without it.
func (m *model) learn(err error, req ai.Request) bool {
	bad, ok := errors.AsType[*badRequest](err)
	if !ok {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, field := range optional {
		if m.sends(field, req) && (bad.param == field || bad.param == "" && strings.Contains(bad.message, field)) {
			m.refused[field] = true
			return true
		}
	}
	return false
}

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// names translates tool names to what OpenAI takes, and back.
type names map[string]string // by wire name

func newNames(tools []ai.Tool) names {
	n := make(names, len(tools))
	for _, t := range tools {
		n[n.wire(t.Name)] = t.Name
	}
	return n
}

// wire is the name itself, or a recognisable part of it with a hash where it is too long or odd.
func (names) wire(name string) string {
	if wireName.MatchString(name) {
		return name
	}
	part := strings.Map(func(r rune) rune {
		if r < 0x80 && wireName.MatchString(string(r)) {
			return r
		}
		return '_'
	}, name)
	sum := sha256.Sum256([]byte(name))
	return part[:min(len(part), 47)] + "_" + hex.EncodeToString(sum[:8])
}

func (n names) own(wire string) string {
	if name, ok := n[wire]; ok {
		return name
	}
	return wire
}
