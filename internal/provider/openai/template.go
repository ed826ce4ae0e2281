package openai

import (
	"encoding/json"
	"strings"

	"parley/internal/ai"
)

// Parts of requests that the templates of some models don't know. They are sent until a server refuses them, and then in
// another form.
const (
	toolsPart  = "tools"  // else the tools, calls and results are told as text
	systemPart = "system" // else the first message of the customer's begins with it
	orderPart  = "order"  // else the customer begins, and nobody speaks twice
	strictPart = "strict" // else the model is not held to the schemas of tools
)

// complaints are the words in which servers refuse such a part.
var complaints = map[string][]string{
	toolsPart: {"does not support tool", "not support tools", "tools is not supported", "tools are not supported",
		"tool use is not supported", "support tool use", "function calling is not supported", "not support function calling",
		"tool choice requires", "tools param requires", "tool calling is not supported", "unrecognized request argument supplied: tools",
		"does not support function", "tool calls are not supported", "only user, system and assistant roles are supported"},
	systemPart: {"system role not supported", "system role is not supported", "does not support system", "not support 'system'",
		"system message is not supported", "system messages are not supported", "unexpected role 'system'", "unsupported role: system",
		"developer instruction is not enabled", "does not support the system"},
	strictPart: {".strict", "'strict'", `"strict"`, "`strict`", "strict mode", "strict is not", "invalid schema for function"},
	orderPart: {"must alternate", "roles should alternate", "first message must be", "first message should be", "must start with a user",
		"must begin with a user", "consecutive", "should start with", "expected last role", "last message must"},
}

// about reports whether the server complains about a part of the request.
func (b *badRequest) about(field string) bool {
	if b.param == field {
		return true
	}
	text := strings.ToLower(b.message)
	if words, ok := complaints[field]; ok {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	return b.param == "" && strings.Contains(b.message, field)
}

// told is the tools in words, for a server that takes none: the calls that the model then writes are made.
func told(tools []ai.Tool) string {
	var b strings.Builder
	b.WriteString("\n\nYou can use the tools below. To use one, answer with nothing but\n<tool_call>{\"name\": \"the tool's name\", " +
		"\"arguments\": {}}</tool_call>\nand wait: the result comes as <tool_response>. Otherwise answer in words.\n")
	for _, t := range tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage("{}")
		}
		line, _ := json.Marshal(map[string]any{"name": t.Name, "description": t.Description, "parameters": schema}) // valid parts
		b.Write(line)
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

// withoutCalls tells calls and their results as text.
func withoutCalls(messages []ai.Message) []ai.Message {
	out := make([]ai.Message, 0, len(messages))
	for _, m := range messages {
		switch {
		case m.Role == ai.ToolRole:
			m = ai.Message{Role: ai.User, Text: "<tool_response>" + m.Text + "</tool_response>"}
		case len(m.Calls) > 0:
			lines := []string{}
			if m.Text != "" {
				lines = append(lines, m.Text)
			}
			for _, c := range m.Calls {
				args := json.RawMessage(c.Arguments)
				if !json.Valid(args) {
					args = json.RawMessage("{}")
				}
				raw, _ := json.Marshal(map[string]any{"name": c.Name, "arguments": args}) // valid parts
				lines = append(lines, "<tool_call>"+string(raw)+"</tool_call>")
			}
			m = ai.Message{Role: m.Role, Text: strings.Join(lines, "\n")}
		}
		out = append(out, m)
	}
	return out
}

// begun stands where the customer has not spoken yet.
const begun = "(The conversation begins.)"

// inTurn has the customer begin, and joins what one side says twice. Calls stay with their results.
func inTurn(messages []ai.Message) []ai.Message {
	out := make([]ai.Message, 0, len(messages)+1)
	if len(messages) > 0 && messages[0].Role == ai.Assistant {
		out = append(out, ai.Message{Role: ai.User, Text: begun})
	}
	for _, m := range messages {
		if n := len(out) - 1; n >= 0 && out[n].Role == m.Role && m.Role != ai.ToolRole && len(out[n].Calls) == 0 {
			out[n].Text = strings.TrimPrefix(out[n].Text+"\n\n"+m.Text, "\n\n")
			out[n].Calls = m.Calls
			continue
		}
		out = append(out, m)
	}
	return out
}

// withSystem puts the system's text before what the customer says first.
func withSystem(system string, messages []ai.Message) []ai.Message {
	out := append([]ai.Message(nil), messages...)
	for i, m := range out {
		if m.Role == ai.User {
			out[i].Text = system + "\n\n" + m.Text
			return out
		}
		if m.Role == ai.Assistant {
			break
		}
	}
	return append([]ai.Message{{Role: ai.User, Text: system}}, out...)
}
