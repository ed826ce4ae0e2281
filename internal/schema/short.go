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
	list := make([]parameter, len(params))
	for i, p := range params {
		list[i] = parameter{p.Name, p.Type, p.Description, p.Required}
	}
	return of(list)
}

// OfItems is the JSON Schema of what is found out from a conversation, in its order. What it doesn't tell is null.
func OfItems(items []parley.ExtractedItem) []byte {
	list := make([]parameter, len(items))
	for i, it := range items {
		list[i] = parameter{it.Name, strings.Replace(it.Type, "bool", "boolean", 1), it.Description, true}
	}
	return of(list)
}

// parameter is a property of plain type.
type parameter struct {
	name, typ, description string
	required               bool
}

func of(params []parameter) json.RawMessage {
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
		b.Write(encode(p.name))
		b.WriteByte(':')
		b.Write(encode(property{p.typ, p.description}))
		if p.required {
			required = append(required, p.name)
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

// What the short form can say: see parley.ToolParam and parley.ExtractedItem.
const (
	maxShort = 50
	minText  = 3
	maxText  = 255
)

var (
	paramName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{1,31}$`)
	itemName  = regexp.MustCompile(`^[a-z0-9_]{3,16}$`)
)

// Short is as much of a schema as its short form can say: texts, numbers and booleans at its top level, by their names.
func Short(raw []byte) []parley.ToolParam {
	list := []parley.ToolParam{}
	for _, p := range short(raw, paramName, "The parameter ") {
		list = append(list, parley.ToolParam{Name: p.name, Type: p.typ, Description: p.description, Required: p.required})
	}
	return list
}

// ShortItems is Short of what is found out from a conversation.
func ShortItems(raw []byte) []parley.ExtractedItem {
	list := []parley.ExtractedItem{}
	for _, p := range short(raw, itemName, "The value ") {
		list = append(list, parley.ExtractedItem{Name: p.name, Type: strings.TrimSuffix(p.typ, "ean"), Description: p.description})
	}
	return list
}

func short(raw []byte, named *regexp.Regexp, called string) (list []parameter) {
	root, err := decode(raw)
	if err != nil {
		return nil
	}
	required, _ := root["required"].([]any)
	properties := object(root["properties"])
	for _, name := range order(raw, properties) {
		p := object(properties[name])
		typ := plainType(p["type"])
		if typ == "" || !named.MatchString(name) || len(list) == maxShort {
			continue
		}
		title, _ := p["title"].(string)
		description, _ := p["description"].(string)
		text := parley.CleanText(strings.TrimSpace(cmp.Or(strings.TrimSpace(description), title)))
		if utf8.RuneCountInString(text) < minText {
			text = strings.TrimSpace(called + name + ". " + text)
		}
		if r := []rune(text); len(r) > maxText {
			text = string(r[:maxText-1]) + "…"
		}
		list = append(list, parameter{name, typ, text, slices.Contains(required, any(name))})
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

// Plain is a property as a short form has it; nil where it is more than a text, a number or a boolean.
func Plain(raw []byte, name string) *parley.ExtractedItem {
	root, _ := decode(raw)
	p := object(object(root["properties"])[name])
	typ := plainType(p["type"])
	if typ == "" {
		return nil
	}
	description, _ := p["description"].(string)
	return &parley.ExtractedItem{Name: name, Type: strings.Replace(typ, "boolean", "bool", 1), Description: description}
}

// Asked is a schema as a model is asked for values of it: each property is there, and null where it has none.
func Asked(raw []byte) json.RawMessage {
	root, err := decode(raw)
	if err != nil {
		return json.RawMessage(none)
	}
	delete(root, "$schema")
	properties := object(root["properties"])
	for name, v := range properties {
		properties[name] = orNull(v)
	}
	root["required"], root["additionalProperties"] = slices.Sorted(maps.Keys(properties)), false
	return encode(root)
}

// orNull is a schema that takes null as well.
func orNull(v any) any {
	p := object(v)
	if typ, ok := p["type"].(string); ok && p["enum"] == nil && p["const"] == nil && p["$ref"] == nil {
		p["type"] = []any{typ, "null"}
		return p
	}
	either := map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
	if text, ok := p["description"].(string); ok {
		either["description"] = text
	}
	return either
}
