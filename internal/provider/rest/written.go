package rest

import (
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"

	"parley/internal/ai"
)

// A writtenCall is a call that a model wrote as text.
type writtenCall struct{ name, arguments string }

// How models write a call that is no JSON by itself: the name, and the arguments as JSON or as a list of tags.
var (
	fenceMark  = regexp.MustCompile("(?s)^```[\\w-]*\\s*(.*?)\\s*(?:```)?\\s*$")
	tagged     = regexp.MustCompile(`(?s)<(?:function=|invoke name=)"?([\w.-]+)"?\s*>(.*?)(?:</(?:function|invoke)>|$)`)
	tag        = regexp.MustCompile(`(?s)<(?:parameter=|parameter name=)"?([\w.-]+)"?[^>]*>\s*(.*?)\s*</parameter>`)
	keyed      = regexp.MustCompile(`(?s)<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>\s*(.*?)\s*</arg_value>`)
	keyedCall  = regexp.MustCompile(`(?s)^\s*([\w.-]+)\s*(?:<arg_key>.*)?$`)
	separated  = regexp.MustCompile(`(?s)<(?:\|tool_call_begin\||｜tool▁call▁begin｜)>(?:function<｜tool▁sep｜>)?\s*([\w.:-]+)\s*(?:<｜tool▁sep｜>|<\|tool_call_argument_begin\|>)?(.*?)<(?:\|tool_call_end\||｜tool▁call▁end｜)>`)
	namedFirst = regexp.MustCompile(`(?s)^\s*([A-Za-z_][\w.-]*)(?::\d+)?\s*(?:\[ARGS\]|<\|[^|]*\|>\w*)?\s*\(?\s*(\{.*\})?\s*\)?\s*;?\s*$`)
	fencedArgs = regexp.MustCompile("(?s)```\\w*\\s*(.*?)```")
	counted    = regexp.MustCompile(`:\d+$`)
)

// written reads the calls of a text, in any of the forms in which models write them.
func (p *Prose) written(text string) (calls []writtenCall) {
	text = strings.TrimSpace(text)
	if m := fenceMark.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	if all := tagged.FindAllStringSubmatch(text, -1); all != nil {
		for _, m := range all {
			calls = append(calls, p.taggedCall(m[1], m[2], tag))
		}
		return calls
	}
	if all := separated.FindAllStringSubmatch(text, -1); all != nil {
		for _, m := range all {
			args := m[2]
			if f := fencedArgs.FindStringSubmatch(args); f != nil {
				args = f[1]
			}
			calls = append(calls, writtenCall{p.plainName(m[1]), strings.TrimSpace(args)})
		}
		return calls
	}
	if m := keyedCall.FindStringSubmatch(text); m != nil && (strings.Contains(text, "<arg_key>") || p.tool(m[1]) != nil) {
		return []writtenCall{p.taggedCall(m[1], text, keyed)}
	}
	if m := namedFirst.FindStringSubmatch(text); m != nil && (m[2] != "" || strings.HasPrefix(m[1], "functions.")) {
		args := m[2]
		if args == "" {
			args = "{}"
		}
		return []writtenCall{{p.plainName(m[1]), args}}
	}
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			if err != io.EOF && len(calls) > 0 { //nolint:errorlint // the decoder's own
				if rest := strings.TrimLeft(text[d.InputOffset():], " \n\r\t,;"); strings.HasPrefix(rest, "{") {
					text, d = rest, json.NewDecoder(strings.NewReader(rest))
					continue
				}
			}
			return calls
		}
		calls = append(calls, p.jsonCalls(v)...)
	}
}

// jsonCalls reads an object that is a call, or holds calls, or a list of them.
func (p *Prose) jsonCalls(raw json.RawMessage) (calls []writtenCall) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, v := range list {
			calls = append(calls, p.jsonCalls(v)...)
		}
		return calls
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	for _, key := range []string{"tool_calls", "tool_uses", "function_call", "tool_call", "function"} {
		if inner := o[key]; len(inner) > 0 && inner[0] != '"' {
			return p.jsonCalls(inner)
		}
	}
	c := writtenCall{arguments: "{}"}
	for _, key := range []string{"name", "tool", "tool_name", "function", "function_name", "recipient_name"} {
		if json.Unmarshal(o[key], &c.name) == nil && c.name != "" {
			break
		}
	}
	if c.name == "" {
		return nil
	}
	for _, key := range []string{"arguments", "parameters", "args", "input", "params", "tool_input"} {
		if v, ok := o[key]; ok {
			if json.Unmarshal(v, &c.arguments) != nil { // else it is JSON in a text
				c.arguments = string(v)
			}
			break
		}
	}
	c.name = p.plainName(c.name)
	return []writtenCall{c}
}

// taggedCall is a call whose arguments are tags, in the types of the tool's schema; or JSON between its own tags.
func (p *Prose) taggedCall(name, body string, of *regexp.Regexp) writtenCall {
	name = p.plainName(name)
	if body := strings.TrimSpace(body); strings.HasPrefix(body, "{") {
		return writtenCall{name, body}
	}
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if t := p.tool(name); t != nil {
		_ = json.Unmarshal(t.Schema, &schema) // without one, everything is as it looks
	}
	args := map[string]json.RawMessage{}
	for _, m := range of.FindAllStringSubmatch(body, -1) {
		value := json.RawMessage(m[2])
		if kind, _ := schema.Properties[m[1]].Type.(string); kind == "string" || !json.Valid(value) {
			value, _ = json.Marshal(m[2]) // a text can't fail
		}
		args[m[1]] = value
	}
	raw, _ := json.Marshal(args) // valid parts
	return writtenCall{name, string(raw)}
}

// plainName is a tool's name without what models put around it.
func (p *Prose) plainName(name string) string {
	for _, prefix := range []string{"functions.", "function.", "tools.", "default_api."} {
		if rest := strings.TrimPrefix(name, prefix); rest != name && p.tool(name) == nil {
			name = rest
		}
	}
	if short := counted.ReplaceAllString(name, ""); p.tool(name) == nil && p.tool(short) != nil {
		name = short
	}
	return name
}

// tool is the tool of a name, as it is or as it was sent; nil when there is none.
func (p *Prose) tool(name string) *ai.Tool {
	own := p.names.Own(name)
	i := slices.IndexFunc(p.tools, func(t ai.Tool) bool { return t.Name == own })
	if i < 0 {
		return nil
	}
	return &p.tools[i]
}
