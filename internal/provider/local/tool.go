package local

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"parley/internal/ai"
)

// schema is the part of a tool's JSON Schema that is understood.
type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

type property struct {
	Type        any    `json:"type"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
}

func (p property) is(t string) bool { return strings.Contains(fmt.Sprint(p.Type), t) }

func readSchema(raw json.RawMessage) schema {
	var s schema
	if len(raw) > 0 && json.Unmarshal(raw, &s) != nil {
		return schema{} // a schema that can't be read asks for nothing
	}
	return s
}

func toolNamed(tools []ai.Tool, name string) ai.Tool {
	for _, t := range tools {
		if t.Name == name {
			return t
		}
	}
	return ai.Tool{}
}

var queries = []string{"query", "question", "search", "search_query", "q"}

// searches says whether a tool looks something up in words: all that it requires is a query.
func searches(t ai.Tool) bool {
	s := readSchema(t.Schema)
	return len(s.Required) == 1 && slices.Contains(queries, s.Required[0]) && s.Properties[s.Required[0]].is("string")
}

// search asks the first tool that searches for what the customer said.
func (t *talk) search(tools []ai.Tool) *ai.ToolCall {
	for _, tool := range tools {
		if searches(tool) && len(stems(t.said)) > 0 {
			return newCall(tool.Name, map[string]any{readSchema(tool.Schema).Required[0]: t.said})
		}
	}
	return nil
}

func newCall(name string, args map[string]any) *ai.ToolCall {
	text, _ := json.Marshal(args) // strings, numbers and booleans can't fail
	return &ai.ToolCall{ID: "call_1", Name: name, Arguments: string(text)}
}

// choose finds the tool that the message is about: one that it names, or that shares at least two words with it, one
// of them of the name, or all of a name that is one word. Without all its required arguments there is no call; lacks
// then names what is missing of a tool that is clearly meant.
func (t *talk) choose(tools []ai.Tool) (call *ai.ToolCall, lacks string) {
	said, also := t.said, t.earlier
	if t.asked && len(t.earlier) > 0 {
		said = t.earlier[0] + ". " + t.said // the answer to what we asked for
	}
	have := stemSet(said)
	var best ai.Tool
	most, clear := 0, false
	for _, tool := range tools {
		if searches(tool) && !mentions(said, tool.Name) {
			continue
		}
		n, sure := matches(tool, said, have)
		if n > most {
			best, most, clear = tool, n, sure
		}
	}
	if most == 0 {
		return nil, ""
	}
	s := readSchema(best.Schema)
	f := &finder{talk: t, said: said, used: map[string]bool{}}
	args := map[string]any{}
	var missing []string
	for _, name := range order(s) {
		required := slices.Contains(s.Required, name)
		v, ok := f.argument(name, s.Properties[name], required, also)
		switch {
		case ok:
			args[name] = v
		case required:
			missing = append(missing, "the "+spoken(name))
		}
	}
	if len(missing) == 0 {
		return newCall(best.Name, args), ""
	}
	if clear {
		lacks = strings.Join(missing, " and ")
	}
	return nil, lacks
}

// mentions says whether a text has a tool's name as it is written.
func mentions(text, name string) bool {
	return name != "" && strings.Contains(strings.ToLower(text), strings.ToLower(name)) && len(name) > 3
}

// matches counts the words that a message shares with a tool; 0 when they are too few. sure tells that the tool is
// clearly meant.
func matches(tool ai.Tool, said string, have map[string]bool) (n int, sure bool) {
	if mentions(said, tool.Name) {
		return 1000, true
	}
	name, all := 0, true
	inName := map[string]bool{}
	for _, w := range stems(spoken(tool.Name)) {
		inName[w] = true
		if have[w] {
			name++
		} else {
			all = false
		}
	}
	rest := 0
	for _, w := range stems(tool.Description) {
		if have[w] && !inName[w] {
			rest++
		}
	}
	switch {
	case name == 0 && rest > 1 && occasion(tool, have) > 1:
		return rest, false
	case name == 0 || name+rest < 2 && !all:
		return 0, false
	case all && name+rest >= 2:
		return 100 + 2*name + rest, true
	}
	return 2*name + rest, name+rest >= 3
}

// occasion counts the words that a message shares with what the assistant's owner wrote of when to use a built-in tool.
func occasion(tool ai.Tool, have map[string]bool) (n int) {
	_, when, _ := strings.Cut(tool.Description, "Use it when: ")
	for _, w := range stems(when) {
		if have[w] {
			n++
		}
	}
	return n
}

// order lists the required parameters as the schema does, then the others by name.
func order(s schema) []string {
	names := slices.Clone(s.Required)
	var others []string
	for name := range s.Properties {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// spoken is a name as one says it: order_number and orderNumber are "order number".
func spoken(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case r == '_' || r == '-' || r == '.' || r == '/':
			r, lower = ' ', false
		case unicode.IsUpper(r) && lower:
			b.WriteByte(' ')
			lower = false
		default:
			lower = unicode.IsLower(r)
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.TrimSpace(b.String())
}

var jsonObject = regexp.MustCompile(`\{[^{}]*\}`)

// given finds a value in a JSON object that the message holds.
func given(said, name string) (any, bool) {
	for _, o := range jsonObject.FindAllString(said, -1) {
		var m map[string]any
		if json.Unmarshal([]byte(o), &m) == nil {
			if v, ok := m[name]; ok && v != nil {
				return v, true
			}
		}
	}
	return nil, false
}
