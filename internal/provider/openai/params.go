package openai

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// params builds the request, without the fields that the model refuses.
func (m *model) params(req ai.Request, names rest.Names, sent *rest.Sent) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{Model: m.code}
	if sent.Send("temperature", req.Temperature != nil) {
		p.Temperature = sdk.Float(*req.Temperature)
	}
	if sent.Send("max_tokens", req.MaxTokens > 0 && !newer(m.code)) {
		p.MaxTokens = sdk.Int(int64(req.MaxTokens))
	} else if sent.Send("max_completion_tokens", req.MaxTokens > 0) { // OpenAI's newer models take this one only
		p.MaxCompletionTokens = sdk.Int(int64(req.MaxTokens))
	}
	if sent.Send("stream_options", true) {
		p.StreamOptions.IncludeUsage = sdk.Bool(true)
	}
	system := req.System
	if sent.Send("response_format", req.Schema != nil) {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: req.Schema.Name, Strict: sdk.Bool(true), Schema: req.Schema.JSON,
			}}
	} else if req.Schema != nil {
		system += "\n\nAnswer with one JSON object and nothing else: no words around it, no code fence. It follows this JSON Schema:\n" + string(req.Schema.JSON)
	}
	if sent.Send("reasoning_effort", newer(m.code)) {
		p.ReasoningEffort = shared.ReasoningEffortNone
	}
	tools, messages := req.Tools, req.Messages
	if len(tools) > 0 && !sent.Send(toolsPart, true) {
		if !req.NoCalls {
			system += told(wired(tools, names))
		}
		tools, messages = nil, withoutCalls(wiredCalls(messages, names))
	}
	for _, t := range tools {
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: names.Wire(t.Name), Description: sdk.String(t.Description), Parameters: parameters(t.Schema),
		}))
	}
	if sent.Send("tool_choice", req.NoCalls && len(tools) > 0) {
		p.ToolChoice.OfAuto = sdk.String("none")
	}
	if system != "" && sent.Send(systemPart, true) {
		p.Messages = append(p.Messages, sdk.SystemMessage(system))
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

func message(m ai.Message, names rest.Names) sdk.ChatCompletionMessageParamUnion {
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
				ID: c.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: names.Wire(c.Name),
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
