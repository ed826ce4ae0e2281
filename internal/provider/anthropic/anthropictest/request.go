package anthropictest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/internal/ai"
)

// request is the body as it is on the wire; a field that isn't here is refused.
type request struct {
	Model       string    `json:"model"`
	MaxTokens   int       `json:"max_tokens"`
	Stream      bool      `json:"stream"`
	System      []block   `json:"system"`
	Messages    []message `json:"messages"`
	Tools       []tool    `json:"tools"`
	ToolChoice  *typed    `json:"tool_choice"`
	Temperature *float64  `json:"temperature"`
	Thinking    *typed    `json:"thinking"`
	Output      *struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

type typed struct {
	Type string `json:"type"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   string          `json:"content"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Cache     *typed          `json:"cache_control"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *typed          `json:"cache_control"`
}

var (
	toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	toolID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// read takes a request apart. What is wrong is said as the API says it.
func (in *request) read() (out Request, wrong string) {
	out = Request{Model: in.Model}
	out.MaxTokens, out.Temperature = in.MaxTokens, in.Temperature
	if in.Thinking != nil {
		out.Thinking = in.Thinking.Type
	}
	for _, check := range []func(*Request) string{in.limits, in.knobs, in.tools, in.format, in.conversation} {
		if wrong := check(&out); wrong != "" {
			return out, wrong
		}
	}
	return out, ""
}

func (in *request) limits(*Request) string {
	switch {
	case in.MaxTokens < 1:
		return "max_tokens: Field required"
	case in.MaxTokens > 64000:
		return fmt.Sprintf("max_tokens: %d > 64000, which is the maximum allowed number of output tokens for %s",
			in.MaxTokens, in.Model)
	case !in.Stream:
		return "this server streams alone"
	}
	return ""
}

// knobs checks what models differ in.
func (in *request) knobs(out *Request) string {
	if t := in.Temperature; t != nil {
		if in.Model != Quick {
			return "`temperature` is deprecated for this model."
		}
		if *t < 0 || *t > 1 {
			return "temperature: range: 0..1"
		}
	}
	if t := in.Thinking; t != nil && (t.Type != "disabled" || in.Model == Deep) {
		return fmt.Sprintf("thinking.type: %q is not supported on this model", t.Type)
	}
	if in.Output != nil && in.Output.Effort != "" {
		if in.Model == Quick {
			return "This model does not support the effort parameter."
		}
		out.Effort = in.Output.Effort
	}
	return ""
}

func (in *request) tools(out *Request) string {
	seen := map[string]bool{}
	for i, t := range in.Tools {
		var o struct {
			Type string `json:"type"`
		}
		switch {
		case !toolName.MatchString(t.Name):
			return fmt.Sprintf("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
		case seen[t.Name]:
			return "tools: Tool names must be unique."
		case json.Unmarshal(t.Schema, &o) != nil || o.Type != "object":
			return fmt.Sprintf("tools.%d.custom.input_schema.type: Field required", i)
		}
		seen[t.Name] = true
		out.Marks += marks(t.Cache)
		out.Tools = append(out.Tools, ai.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	if c := in.ToolChoice; c != nil {
		if len(in.Tools) == 0 {
			return "tool_choice may only be specified while providing tools"
		}
		out.NoCalls = c.Type == "none"
	}
	return ""
}

// maxUnions is how many properties of a schema may have several types.
const maxUnions = 16

func (in *request) format(out *Request) string {
	if in.Output == nil || in.Output.Format == nil {
		return ""
	}
	var o struct {
		Type       string `json:"type"`
		Additional *bool  `json:"additionalProperties"`
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	f := in.Output.Format
	if f.Type != "json_schema" || json.Unmarshal(f.Schema, &o) != nil || o.Type != "object" {
		return "output_config.format.schema: Input should be a JSON schema of type object"
	}
	if o.Additional == nil || *o.Additional {
		return "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
	}
	unions := 0
	for _, p := range o.Properties {
		if _, several := p.Type.([]any); several {
			unions++
		}
	}
	if unions > maxUnions {
		return fmt.Sprintf("Schemas contains too many parameters with union types (%d parameters with type arrays or anyOf). "+
			"This causes exponential compilation cost.", unions)
	}
	out.Schema = &ai.Schema{Name: "format", JSON: f.Schema}
	return ""
}

func marks(c *typed) int {
	if c == nil {
		return 0
	}
	return 1
}

// conversation checks the order that the API asks for: the user begins and ends, sides alternate, and each call has
// its result at the beginning of the very next message.
func (in *request) conversation(out *Request) string {
	for _, b := range in.System {
		if b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return "system: text content blocks must be non-empty"
		}
		out.System += b.Text
		out.Marks += marks(b.Cache)
	}
	if len(in.Messages) == 0 {
		return "messages: at least one message is required"
	}
	var open []string
	for i, m := range in.Messages {
		if want := [2]string{"user", "assistant"}[i%2]; m.Role != want {
			return `messages: roles must alternate between "user" and "assistant"`
		}
		if len(m.Content) == 0 {
			return fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		calls := ai.Message{Role: ai.Role(m.Role)}
		results, text := map[string]bool{}, ""
		for j, b := range m.Content {
			out.Marks += marks(b.Cache)
			switch {
			case b.Type == "text":
				if strings.TrimSpace(b.Text) == "" {
					return fmt.Sprintf("messages.%d: text content blocks must contain non-whitespace text", i)
				}
				text += b.Text
				calls.Text += b.Text
			case b.Type == "thinking" && m.Role == "assistant":
				switch {
				case b.Thinking == nil || *b.Thinking != "" || b.Signature != signature:
					return fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
				case in.Thinking != nil || j > 0:
					return fmt.Sprintf("messages.%d.content.%d: a `thinking` block stands where none may", i, j)
				}
				out.Thoughts++
			case b.Type == "tool_use" && m.Role == "assistant":
				var o map[string]any
				if !toolID.MatchString(b.ID) || !toolName.MatchString(b.Name) {
					return fmt.Sprintf("messages.%d.content.%d.tool_use.id: String should match pattern", i, j)
				}
				if json.Unmarshal(b.Input, &o) != nil {
					return fmt.Sprintf("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, j)
				}
				calls.Calls = append(calls.Calls, ai.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case b.Type == "tool_result" && m.Role == "user":
				if text != "" {
					return fmt.Sprintf("messages.%d: tool_result blocks must come first", i)
				}
				results[b.ToolUseID] = true
				out.Messages = append(out.Messages, ai.Message{Role: ai.ToolRole, CallID: b.ToolUseID, Text: b.Content})
			default:
				return fmt.Sprintf("messages.%d.content.%d: Input tag %q found using 'type' does not match any of the expected tags", i, j, b.Type)
			}
		}
		for _, id := range open {
			if !results[id] {
				return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
					"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, id)
			}
			delete(results, id)
		}
		for id := range results {
			return fmt.Sprintf("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s", i, id)
		}
		if open = nil; text != "" || len(calls.Calls) > 0 {
			out.Messages = append(out.Messages, calls)
		}
		for _, c := range calls.Calls {
			open = append(open, c.ID)
		}
	}
	switch {
	case in.Messages[len(in.Messages)-1].Role == "assistant":
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	case out.Marks > 4:
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", out.Marks)
	}
	return ""
}

// prefix is the prompt up to the end of a block.
type prefix struct {
	text   string
	marked bool
}

// prefixes are those of the prompt, the shortest first.
func (in *request) prefixes() (list []prefix) {
	var so strings.Builder
	add := func(mark *typed, v any) {
		raw, _ := json.Marshal(v) // plain values can't fail
		so.Write(raw)
		so.WriteByte(' ')
		list = append(list, prefix{so.String(), mark != nil})
	}
	for _, t := range in.Tools {
		mark := t.Cache
		t.Cache = nil
		add(mark, t)
	}
	for _, b := range in.System {
		mark := b.Cache
		b.Cache = nil
		add(mark, b)
	}
	for _, m := range in.Messages {
		for _, b := range m.Content {
			mark := b.Cache
			b.Cache = nil
			add(mark, map[string]any{"role": m.Role, "block": b})
		}
	}
	return list
}
