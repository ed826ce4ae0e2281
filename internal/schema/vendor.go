package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// none is the schema of a tool without parameters.
const none = `{"type":"object","properties":{}}`

// ForOpenAI is a tool's schema as OpenAI and the servers that speak its API take it: everything, but a list must say what is in it.
func ForOpenAI(raw json.RawMessage) json.RawMessage {
	root, err := decode(raw)
	if err != nil {
		return json.RawMessage(none)
	}
	changed := root["$schema"] != nil
	delete(root, "$schema")
	each(root, func(s map[string]any) {
		if s["type"] == "array" && s["items"] == nil && s["prefixItems"] == nil {
			s["items"], changed = map[string]any{}, true
		}
	})
	if !changed {
		return raw // in the order in which it was written
	}
	return encode(root)
}

// ForAnthropic is a tool's schema as Anthropic takes it: everything of draft 2020-12, by the name of no other.
func ForAnthropic(raw json.RawMessage) json.RawMessage {
	root, err := decode(raw)
	if err != nil {
		return json.RawMessage(none)
	}
	if root["$schema"] == nil {
		return raw
	}
	delete(root, "$schema")
	return encode(root)
}

// What Gemini reads of a schema (generateContent's parametersJsonSchema and responseJsonSchema).
var geminiTakes = []string{"$defs", "$ref", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems",
	"maxItems", "minimum", "maximum", "anyOf", "properties", "additionalProperties", "required"}

// ForGemini is a tool's schema as Gemini takes it. Rules that it has no word for are told in the description.
func ForGemini(raw json.RawMessage) json.RawMessage {
	root, err := decode(raw)
	if err != nil {
		return nil
	}
	if !forGemini(root, "", nil) {
		return raw
	}
	return encode(root)
}

// forGemini rewrites a schema, and reports whether there was anything to change. told is called with each keyword that it has
// no word for.
func forGemini(root map[string]any, at string, told func(key, at string)) (changed bool) {
	if defs, ok := root["definitions"]; ok && at == "" {
		if root["$defs"] == nil {
			root["$defs"] = defs
		} else {
			maps.Copy(object(root["$defs"]), object(defs))
		}
	}
	eachAt(root, at, func(s map[string]any, at string) {
		changed = geminiWords(s, at, told) || changed
	})
	return changed
}

// geminiWords rewrites one schema without those inside it.
func geminiWords(s map[string]any, at string, told func(key, at string)) (changed bool) {
	if ref, ok := s["$ref"].(string); ok { // nothing may stand beside it
		target := strings.Replace(ref, "#/definitions/", "#/$defs/", 1)
		if len(s) == 1 && target == ref {
			return false
		}
		clear(s)
		s["$ref"] = target
		return true
	}
	if c, ok := s["const"]; ok {
		s["enum"], changed = []any{c}, true
		delete(s, "const")
	}
	if list, ok := s["oneOf"].([]any); ok && s["anyOf"] == nil {
		s["anyOf"], changed = list, true
		delete(s, "oneOf")
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if slices.Contains(geminiTakes, key) && !(key == "enum" && !geminiEnum(s[key])) {
			continue
		}
		if rules[key] {
			words = append(words, fmt.Sprintf("%q: %s", key, encode(s[key])))
			if told != nil {
				told(key, at)
			}
		}
		delete(s, key)
		changed = true
	}
	if text := strings.Join(words, ", "); text != "" && len(text) <= longestRule {
		description, _ := s["description"].(string)
		s["description"] = strings.TrimSpace(description + " (JSON Schema: " + text + ")")
	}
	return changed
}

// longestRule is how much of what Gemini has no word for is told in a description, in bytes.
const longestRule = 1000

// rules are the keywords that say something of a value and that Gemini has no word for. Others say nothing to a model.
var rules = map[string]bool{"default": true, "enum": true, "pattern": true, "minLength": true, "maxLength": true, "multipleOf": true,
	"exclusiveMinimum": true, "exclusiveMaximum": true, "uniqueItems": true, "contains": true, "minContains": true, "maxContains": true,
	"minProperties": true, "maxProperties": true, "patternProperties": true, "propertyNames": true, "dependentRequired": true,
	"dependentSchemas": true, "unevaluatedItems": true, "unevaluatedProperties": true, "allOf": true, "oneOf": true, "not": true,
	"if": true, "then": true, "else": true, "contentEncoding": true, "contentMediaType": true, "examples": true}

// geminiEnum reports whether Gemini takes the values of an enum: texts and numbers.
func geminiEnum(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(e any) bool {
		switch e.(type) {
		case string, json.Number:
			return false
		}
		return true
	})
}

func each(s map[string]any, f func(s map[string]any)) {
	eachAt(s, "", func(s map[string]any, _ string) { f(s) })
}

// eachAt calls f for a schema and then for those in it, with their places.
func eachAt(s map[string]any, at string, f func(s map[string]any, at string)) {
	f(s, at)
	for _, key := range oneSchema {
		if inner := object(s[key]); inner != nil {
			eachAt(inner, at+"."+key, f)
		}
	}
	for _, key := range listOfSchemas {
		list, _ := s[key].([]any)
		for i, v := range list {
			if inner := object(v); inner != nil {
				eachAt(inner, fmt.Sprintf("%s.%s.%d", at, key, i), f)
			}
		}
	}
	for _, key := range mapOfSchemas {
		for name, v := range object(s[key]) {
			if inner := object(v); inner != nil {
				eachAt(inner, strings.TrimSuffix(at, ".properties")+"."+strings.TrimPrefix(key+".", "properties.")+name, f)
			}
		}
	}
}

// mostNotes is how many remarks are made of one schema.
const mostNotes = 20

// Notes are what vendors can't do with a schema, a sentence each. Arguments are checked against it whoever the vendor is.
func Notes(raw []byte) []string {
	list := []string{}
	root, err := decode(raw)
	if err != nil {
		return list
	}
	forGemini(root, "", func(key, at string) {
		list = append(list, fmt.Sprintf("Gemini has no %s%s: its models are told in the description.", key, place(at)))
	})
	slices.Sort(list)
	return list[:min(len(list), mostNotes)]
}
