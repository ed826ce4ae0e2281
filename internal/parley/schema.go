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
