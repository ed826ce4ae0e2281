package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/parley"
)

// Of is the JSON Schema of a short form, with its parameters in their order.
func Of(params []parley.ToolParam) json.RawMessage {
	type property struct {
		Type        string `json:"type"`
		Description string `json:"description"`
	}
	var b strings.Builder
	required := []string{}
	b.WriteString(`{"type":"object","properties":{`)
	for i, p := range params {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(p.Name))
		b.WriteByte(':')
		b.Write(encode(property{p.Type, p.Description}))
		if p.Required {
			required = append(required, p.Name)
		}
	}
	b.WriteString(`},"required":`)
	b.Write(encode(required))
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// encode is the JSON of texts and lists and maps of them, which can't fail.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("schema: " + err.Error())
	}
	return raw
}

// What the short form can say: see parley.ToolParam.
const (
	mostShort     = 50
	leastText     = 3
	mostText      = 255
	longestInList = 32
)

var shortName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]+$`)

// Short is as much of a schema as its short form can say: texts, numbers and booleans at its top level, by their names.
func Short(raw []byte) []parley.ToolParam {
	list := []parley.ToolParam{}
	root, err := decode(raw)
	if err != nil {
		return list
	}
	required, _ := root["required"].([]any)
	properties := object(root["properties"])
	for _, name := range order(raw, properties) {
		p := object(properties[name])
		typ := plainType(p["type"])
		if typ == "" || !shortName.MatchString(name) || len(name) > longestInList || len(list) == mostShort {
			continue
		}
		title, _ := p["title"].(string)
		description, _ := p["description"].(string)
		text := parley.CleanText(strings.TrimSpace(cmp.Or(strings.TrimSpace(description), title)))
		if utf8.RuneCountInString(text) < leastText {
			text = strings.TrimSpace("The parameter " + name + ". " + text)
		}
		if r := []rune(text); len(r) > mostText {
			text = string(r[:mostText-1]) + "…"
		}
		list = append(list, parley.ToolParam{Name: name, Type: typ, Description: text, Required: slices.Contains(required, any(name))})
	}
	return list
}

// plainType is a type as the short form has it; "" where it has none. One that may be null as well counts.
func plainType(v any) string {
	if list, ok := v.([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(t any) bool { return t == "null" })
		if len(list) == 1 {
			v = list[0]
		}
	}
	switch v {
	case "string", "number", "boolean":
		return v.(string)
	case "integer":
		return "number"
	}
	return ""
}

// order are the names of the properties as they are written.
func order(raw []byte, properties map[string]any) []string {
	var root struct {
		Properties json.RawMessage `json:"properties"`
	}
	names := []string{}
	if json.Unmarshal(raw, &root) == nil {
		d := json.NewDecoder(strings.NewReader(string(root.Properties)))
		if t, err := d.Token(); err == nil && t == json.Delim('{') {
			for d.More() {
				key, err := d.Token()
				name, _ := key.(string)
				if err != nil || d.Decode(new(json.RawMessage)) != nil {
					break
				}
				names = append(names, name)
			}
		}
	}
	if len(names) != len(properties) { // one of them is there twice
		return slices.Sorted(maps.Keys(properties))
	}
	return names
}

// Names are those of a schema's properties at its top level, as they are written.
func Names(raw []byte) []string {
	root, err := decode(raw)
	if err != nil {
		return nil
	}
	return order(raw, object(root["properties"]))
}
