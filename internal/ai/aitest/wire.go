package aitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"parley/internal/ai"
)

// refusal is an error in OpenAI's shape.
type refusal struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"`
	status  int
}

func refuse(param, code, format string, a ...any) *refusal {
	return &refusal{Message: fmt.Sprintf(format, a...), Type: "invalid_request_error", Param: orNull(param),
		Code: orNull(code), status: http.StatusBadRequest}
}

// The request as it is on the wire.
type wireRequest struct {
	Model         string        `json:"model"`
	Messages      []wireMessage `json:"messages"`
	Stream        bool          `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temperature    *float64   `json:"temperature"`
	MaxTokens      int        `json:"max_tokens"`
	MaxCompletion  int        `json:"max_completion_tokens"`
	Effort         string     `json:"reasoning_effort"`
	ToolChoice     any        `json:"tool_choice"`
	Tools          []wireTool `json:"tools"`
	ResponseFormat *struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Name   string          `json:"name"`
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []wireCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type wireCall struct {
	Index    *int     `json:"index,omitempty"` // in deltas
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function wireFunc `json:"function"`
}

type wireFunc struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// read takes a request apart, and refuses what a real server does.
func (s *Server) read(body []byte) (Request, *refusal) {
	var out Request
	var in wireRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return out, refuse("", "", "We could not parse the JSON body of your request: %v", err)
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it is an object: see above
	out.Model, out.Stream = in.Model, in.Stream
	out.Temperature, out.MaxTokens = in.Temperature, max(in.MaxTokens, in.MaxCompletion)
	if in.MaxTokens != 0 && in.MaxCompletion != 0 {
		return out, refuse("max_tokens", "invalid_parameter",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	for _, name := range s.Refuses {
		if name == "strict" && bytes.Contains(fields["tools"], []byte(`"strict":true`)) {
			return out, refuse("tools[0].function.strict", "unknown_parameter", "Unknown parameter: 'tools[0].function.strict'.")
		}
		if _, ok := fields[name]; ok {
			return out, refuse(name, "unsupported_parameter",
				"Unsupported parameter: '%s' is not supported with this model.", name)
		}
	}
	if in.StreamOptions != nil && !in.Stream {
		return out, refuse("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if !slices.Contains(s.Models, in.Model) {
		r := refuse("", "model_not_found", "The model `%s` does not exist or you do not have access to it.", in.Model)
		r.status = http.StatusNotFound
		return out, r
	}
	if bad := reasons(&in); bad != nil {
		return out, bad
	}
	if in.Temperature != nil && (*in.Temperature < 0 || *in.Temperature > 2) {
		return out, refuse("temperature", "decimal_above_max_value",
			"Invalid 'temperature': expected a value between 0 and 2.")
	}
	for i, t := range in.Tools {
		if t.Type != "function" || !namePattern.MatchString(t.Function.Name) {
			return out, refuse(fmt.Sprintf("tools[%d].function.name", i), "invalid_value",
				"Invalid 'tools[%d].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", i)
		}
		if slices.ContainsFunc(out.Tools, func(o ai.Tool) bool { return o.Name == t.Function.Name }) {
			return out, refuse("tools", "", "Tool names must be unique.")
		}
		out.Tools = append(out.Tools, ai.Tool{Name: t.Function.Name, Description: t.Function.Description,
			Schema: t.Function.Parameters})
	}
	if in.ToolChoice != nil && len(in.Tools) == 0 {
		return out, refuse("tool_choice", "", "'tool_choice' is only allowed when 'tools' are specified.")
	}
	out.NoCalls = in.ToolChoice == "none"
	if f := in.ResponseFormat; f != nil && f.Type == "json_schema" {
		if bad := strict(f.JSONSchema.Name, f.JSONSchema.Strict, f.JSONSchema.Schema); bad != nil {
			return out, bad
		}
		out.Schema = &ai.Schema{Name: f.JSONSchema.Name, JSON: f.JSONSchema.Schema}
	}
	return out, messages(in.Messages, &out.Request)
}

// The models of a Server that reason as OpenAI's do, if their names are among its Models.
const (
	// ReasoningModel reasons unless it is told not to.
	ReasoningModel = "gpt-6-luna"
	// AlwaysReasoningModel can't be told not to.
	AlwaysReasoningModel = "gpt-6-astra"
	// UnreasoningModel is of the time before.
	UnreasoningModel = "gpt-4.1-mini"
)

// reasons refuses what OpenAI's models refuse while they reason, and from models that don't the field that says how much.
func reasons(in *wireRequest) *refusal {
	efforts := map[string][]string{ReasoningModel: {"none", "low", "medium", "high", "xhigh", "max"},
		AlwaysReasoningModel: {"low", "medium", "high", "xhigh"}}[in.Model]
	switch {
	case efforts == nil && in.Effort != "" && in.Model == UnreasoningModel:
		return refuse("reasoning_effort", "", "Unrecognized request argument supplied: reasoning_effort")
	case efforts == nil:
		return nil
	case in.MaxTokens != 0:
		return refuse("max_tokens", "unsupported_parameter",
			"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case in.Effort != "" && !slices.Contains(efforts, in.Effort):
		return refuse("reasoning_effort", "unsupported_value",
			"Unsupported value: 'reasoning_effort' does not support '%s' with this model. Supported values are: %q.", in.Effort, efforts)
	case in.Effort == "none":
		return nil
	case len(in.Tools) > 0:
		return refuse("reasoning_effort", "",
			"Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. "+
				"To use function tools, use /v1/responses or set reasoning_effort to 'none'.", in.Model)
	case in.Temperature != nil && *in.Temperature != 1:
		return refuse("temperature", "unsupported_value",
			"Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", *in.Temperature)
	}
	return nil
}

// messages checks the order that OpenAI asks for: each call is answered at once.
func messages(in []wireMessage, out *ai.Request) *refusal {
	if len(in) == 0 {
		return refuse("messages", "empty_array", "Invalid 'messages': empty array.")
	}
	open := map[string]bool{}
	for i, m := range in {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		if m.Role != "tool" && len(open) > 0 {
			return refuse("messages", "",
				"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
		}
		switch m.Role {
		case "system", "developer":
			out.System += text
			continue
		case "user":
		case "assistant":
			for _, c := range m.ToolCalls {
				if !namePattern.MatchString(c.Function.Name) {
					return refuse("messages", "invalid_value", "Invalid 'messages[%d].tool_calls.function.name'.", i)
				}
				open[c.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] {
				return refuse("messages", "", "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
		default:
			return refuse("messages", "invalid_value", "Invalid 'messages[%d].role'.", i)
		}
		if m.Content == nil && len(m.ToolCalls) == 0 {
			return refuse("messages", "", "Invalid value for 'content': expected a string, got null.")
		}
		msg := ai.Message{Role: ai.Role(m.Role), Text: text, CallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			msg.Calls = append(msg.Calls, ai.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		out.Messages = append(out.Messages, msg)
	}
	if len(open) > 0 {
		return refuse("messages", "",
			"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

// strict checks what OpenAI asks of a strict schema.
func strict(name string, on bool, schema json.RawMessage) *refusal {
	var o struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional *bool                      `json:"additionalProperties"`
	}
	if !namePattern.MatchString(name) {
		return refuse("response_format.json_schema.name", "", "Invalid 'response_format.json_schema.name'.")
	}
	if err := json.Unmarshal(schema, &o); err != nil || o.Type != "object" {
		return refuse("response_format", "", "Invalid schema for response_format '%s': schema must be of type object.", name)
	}
	if on && (o.Additional == nil || *o.Additional || len(o.Required) != len(o.Properties)) {
		return refuse("response_format", "",
			"Invalid schema for response_format '%s': 'additionalProperties' must be false and every property required.", name)
	}
	return nil
}
