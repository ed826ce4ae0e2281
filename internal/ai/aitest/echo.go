package aitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/internal/ai"
)

// Echo is how the Fake and the Server answer when nothing is scripted:
//
//   - a message that says `call NAME with {json}` calls that tool, if it is offered; several in one message are called at once, and what
//     follows " then " in the next step;
//   - the results of tools are answered with "The tool answered: RESULT", several joined by "; ";
//   - a JSON Schema is answered with an object: true, 1 and the last customer line (or message) for booleans, numbers and strings;
//   - anything else with "You said: MESSAGE (prompt: SYSTEM PROMPT)", at most 500 runes of the prompt.
func Echo(req ai.Request) ai.Reply {
	last, steps := -1, 0 // the customer's last message, and how often tools were called since
	for i, m := range req.Messages {
		switch {
		case m.Role == ai.User:
			last, steps = i, 0
		case len(m.Calls) > 0:
			steps++
		}
	}
	said := ""
	if last >= 0 {
		said = req.Messages[last].Text
	}
	if req.Schema != nil {
		return ai.Reply{Text: fill(req.Schema.JSON, said), Finish: ai.Stop}
	}
	if parts := strings.Split(said, " then "); !req.NoCalls && steps < len(parts) {
		if calls := asked(parts[steps], req.Tools); len(calls) > 0 {
			for i := range calls {
				calls[i].ID = fmt.Sprintf("call_%d_%d_%d", last, steps, i)
			}
			return ai.Reply{Calls: calls, Finish: ai.ToolCalls}
		}
	}
	if results := trailing(req.Messages); len(results) > 0 {
		return ai.Reply{Text: "The tool answered: " + strings.Join(results, "; "), Finish: ai.Stop}
	}
	prompt := []rune(req.System)
	return ai.Reply{Text: "You said: " + said + " (prompt: " + string(prompt[:min(len(prompt), 500)]) + ")",
		Finish: ai.Stop}
}

var callPattern = regexp.MustCompile(`(?i)\bcall ([\w.-]+) with \{`)

// asked finds the calls that a message asks for.
func asked(text string, tools []ai.Tool) []ai.ToolCall {
	var calls []ai.ToolCall
	for _, at := range callPattern.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		var args json.RawMessage
		if json.NewDecoder(strings.NewReader(text[at[1]-1:])).Decode(&args) != nil {
			continue
		}
		if slices.ContainsFunc(tools, func(t ai.Tool) bool { return t.Name == name }) {
			calls = append(calls, ai.ToolCall{Name: name, Arguments: string(args)})
		}
	}
	return calls
}

// trailing are the results that the conversation ends with.
func trailing(messages []ai.Message) []string {
	var out []string
	for _, m := range slices.Backward(messages) {
		if m.Role != ai.ToolRole {
			break
		}
		out = append(out, m.Text)
	}
	slices.Reverse(out)
	return out
}

// fill makes an object of a schema.
func fill(schema json.RawMessage, said string) string {
	var o struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &o); err != nil {
		return "{}"
	}
	for line := range strings.Lines(said) {
		if s, ok := strings.CutPrefix(line, "Customer: "); ok {
			said = strings.TrimSpace(s)
		}
	}
	out := map[string]any{}
	for name, p := range o.Properties {
		switch t := fmt.Sprint(p.Type); {
		case strings.Contains(t, "boolean"):
			out[name] = true
		case strings.Contains(t, "number"), strings.Contains(t, "integer"):
			out[name] = 1
		case strings.Contains(t, "string"):
			out[name] = said
		default:
			out[name] = nil
		}
	}
	text, _ := json.Marshal(out) // maps of plain values can't fail
	return string(text)
}
