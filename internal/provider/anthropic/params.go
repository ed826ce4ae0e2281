package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/provider/rest"
	"parley/internal/schema"
)

const (
	// maxTokens is the length of a reply when the request has no limit: the API requires one.
	maxTokens = 4096
	// thinking is added to the limit if the model thinks, because thoughts count towards it.
	thinking = 2048
)

// request is the body of POST /v1/messages.
type request struct {
	Model       string        `json:"model"`
	MaxTokens   int           `json:"max_tokens"`
	Stream      bool          `json:"stream"`
	System      []block       `json:"system,omitempty"`
	Messages    []message     `json:"messages"`
	Tools       []tool        `json:"tools,omitempty"`
	ToolChoice  *kind         `json:"tool_choice,omitempty"`
	Temperature *float64      `json:"temperature,omitempty"`
	Thinking    *kind         `json:"thinking,omitempty"`
	Output      *outputConfig `json:"output_config,omitempty"`
}

type kind struct {
	Type string `json:"type"`
}

type outputConfig struct {
	Effort string  `json:"effort,omitempty"`
	Format *format `json:"format,omitempty"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a piece of a message: text, thinking, tool_use or tool_result.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	Cache     *kind           `json:"cache_control,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *kind           `json:"cache_control,omitempty"`
}

// manner is how a request differs from what the model usually gets.
type manner struct {
	words    bool // the schema goes into the prompt
	unsealed bool // thoughts are not sent
}

// params builds the request, without what the model refuses: newer models accept no temperature, and some can't be told
// not to think. Only these can be told to think little.
func (m *model) params(req ai.Request, names rest.Names, how manner, sent *rest.Sent) request {
	p := request{Model: m.code, MaxTokens: req.MaxTokens, Stream: true}
	if p.MaxTokens <= 0 {
		p.MaxTokens = maxTokens
	}
	if sent.Send("temperature", req.Temperature != nil) {
		t := min(*req.Temperature, 1) // theirs ends there
		p.Temperature = &t
	}
	var out outputConfig
	if sent.Send("thinking", true) {
		p.Thinking = &kind{"disabled"}
	} else {
		p.MaxTokens += thinking
		if sent.Send("effort", true) {
			out.Effort = "low"
		}
	}
	p.Messages = messages(req.Messages, names, p.Thinking == nil && !how.unsealed)
	system := req.System
	if req.Schema != nil && !how.words {
		out.Format = &format{"json_schema", req.Schema.JSON}
	} else if req.Schema != nil {
		system += "\n\nAnswer with one JSON object and nothing else: no words around it, no code fence. It follows this JSON Schema:\n" +
			string(req.Schema.JSON)
	}
	if out != (outputConfig{}) {
		p.Output = &out
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, tool{Name: names.Wire(t.Name), Description: t.Description, Schema: schema.ForAnthropic(t.Schema)})
	}
	if sent.Send("tool_choice", req.NoCalls && len(req.Tools) > 0) {
		p.ToolChoice = &kind{"none"}
	}
	if strings.TrimSpace(system) != "" {
		p.System = []block{{Type: "text", Text: system}}
	}
	if sent.Send("cache_control", req.Schema == nil) {
		p.cache() // what is read out of a conversation is asked once
	}
	return p
}

// cache marks how far the prompt will be the same in the next request: the tools, which come first, followed by the
// system prompt; and the conversation so far. The next request finds what lies before its own marks.
func (p *request) cache() {
	mark := &kind{"ephemeral"}
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].Cache = mark
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].Cache = mark
	}
	last := p.Messages[len(p.Messages)-1].Content
	last[len(last)-1].Cache = mark
}

const (
	// opening stands for the customer if the assistant speaks first, and closing if it spoke last: a conversation must
	// begin and end with the user.
	opening = "(The conversation begins.)"
	closing = "(Go on.)"
)

// messages converts a conversation to Anthropic's rules: consecutive entries of one side are one message, the results
// of calls come first in the message after the calls, and nothing is empty. A model that thinks gets its thoughts back
// with the calls.
func messages(list []ai.Message, names rest.Names, thoughts bool) (out []message) {
	add := func(role string, blocks ...block) {
		if len(out) == 0 && role == "assistant" && len(blocks) > 0 {
			out = append(out, message{"user", []block{{Type: "text", Text: opening}}})
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
		} else if len(blocks) > 0 {
			out = append(out, message{role, blocks})
		}
	}
	for _, m := range list {
		var blocks []block
		if m.Role == ai.ToolRole {
			add("user", block{Type: "tool_result", ToolUseID: m.CallID, Content: m.Text})
			continue
		}
		if thoughts && len(m.Calls) > 0 {
			blocks = unseal(m.Calls[0])
		}
		if strings.TrimSpace(m.Text) != "" {
			blocks = append(blocks, block{Type: "text", Text: m.Text})
		}
		for _, c := range m.Calls {
			in := json.RawMessage(c.Arguments)
			if !object(in) {
				in = json.RawMessage("{}") // nothing else is taken; the result tells what was wrong
			}
			blocks = append(blocks, block{Type: "tool_use", ID: c.ID, Name: names.Wire(c.Name), Input: in})
		}
		add(string(m.Role), blocks...)
	}
	if n := len(out); n == 0 {
		add("user", block{Type: "text", Text: opening})
	} else if out[n-1].Role == "assistant" {
		add("user", block{Type: "text", Text: closing}) // newer models refuse to continue a message of theirs
	}
	return out
}

func object(raw json.RawMessage) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(raw, &o) == nil && o != nil
}

// seals reports whether a conversation has thoughts from Anthropic in it.
func seals(list []ai.Message) bool {
	return slices.ContainsFunc(list, func(m ai.Message) bool { return len(m.Calls) > 0 && unseal(m.Calls[0]) != nil })
}
