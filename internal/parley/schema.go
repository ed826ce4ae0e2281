package parley

import (
	"bytes"
	"encoding/json"
)

// JSONSchema is a JSON Schema as somebody wrote it; an empty one is none, and null in JSON.
type JSONSchema []byte

// MarshalJSON implements json.Marshaler.
func (s JSONSchema) MarshalJSON() ([]byte, error) {
	if len(s) == 0 {
		return []byte("null"), nil
	}
	return s, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *JSONSchema) UnmarshalJSON(raw []byte) error {
	if *s = bytes.Clone(raw); string(raw) == "null" {
		*s = nil
	}
	return nil
}

// BindJSON reads what a form has; must is what it must do, if it is none.
func (s *JSONSchema) BindJSON(raw any) (must string) {
	tree, ok := raw.(map[string]any)
	if !ok {
		return "must be an object: a JSON Schema."
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return "must be an object: a JSON Schema."
	}
	*s = text
	return ""
}

// Rendered is the schema with variables in its descriptions.
func (s JSONSchema) Rendered(vars map[string]string) JSONSchema {
	if !bytes.Contains(s, []byte("{{")) {
		return s
	}
	d := json.NewDecoder(bytes.NewReader(s))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return s
	}
	renderDescriptions(tree, vars)
	text, err := json.Marshal(tree)
	if err != nil {
		return s
	}
	return text
}

func renderDescriptions(v any, vars map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := v["description"].(string); ok {
			v["description"] = Render(text, vars)
		}
		for _, e := range v {
			renderDescriptions(e, vars)
		}
	case []any:
		for _, e := range v {
			renderDescriptions(e, vars)
		}
	}
}
