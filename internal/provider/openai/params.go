package openai

import (
	"encoding/json"

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
	if sent.Send("max_tokens", req.MaxTokens > 0) {
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
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: names.Wire(t.Name), Description: sdk.String(t.Description), Parameters: parameters(t.Schema),
		}))
	}
	if sent.Send("tool_choice", req.NoCalls && len(req.Tools) > 0) {
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
