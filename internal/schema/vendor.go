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

// strictTakes are the keywords that OpenAI holds its models to in every strict schema. It takes some more of these, but which differs
// between its models, and a request with another one is refused.
var strictTakes = []string{"$defs", "$ref", "type", "title", "description", "enum", "const", "items", "anyOf", "properties",
	"additionalProperties", "required"}

// strictDepth is how deep a strict schema may be.
const strictDepth = 10

// Strict reports whether OpenAI holds its models to a schema to the letter (strict), and why it doesn't.
func Strict(raw []byte) (ok bool, why string) {
	root, err := decode(raw)
	if err != nil || root["type"] != "object" {
		return false, "it is no schema of an object"
	}
	delete(root, "$schema") // it is not sent
	eachAt(root, "", func(s map[string]any, at string) {
		if why != "" {
			return
		}
		if why = notStrict(s); why == "" && strings.Count(at, ".") > strictDepth {
			why = "it is too deep"
		}
		if why != "" {
			why += place(at)
		}
	})
	return why == "", why
}

// notStrict says why OpenAI doesn't hold its models to a schema, without those inside it; "" where it does.
func notStrict(s map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(strictTakes, key) {
			return "it has " + key
		}
	}
	_, ref := s["$ref"]
	_, either := s["anyOf"]
	switch {
	case ref && len(s) > 1:
		return "something stands beside $ref"
	case !ref && !either && s["type"] == nil:
		return "it has no type"
	case isA(s, "array") && object(s["items"]) == nil:
		return "it doesn't say what is in a list"
	case !isA(s, "object"):
		return ""
	}
	required, _ := s["required"].([]any)
	properties := object(s["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, any(name)) {
			return fmt.Sprintf("%q is not required", name)
		}
		if object(properties[name]) == nil {
			return fmt.Sprintf("%q has no type", name)
		}
	}
	if s["additionalProperties"] != false {
		return "additionalProperties is not false"
	}
	return ""
}

// isA reports whether a type is one of a schema's.
func isA(s map[string]any, typ string) bool {
	list, _ := s["type"].([]any)
	return s["type"] == typ || slices.Contains(list, any(typ))
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
	if text := strings.Join(words, ", "); text != "" && len(text) <= maxRule {
		description, _ := s["description"].(string)
		s["description"] = strings.TrimSpace(description + " (JSON Schema: " + text + ")")
	}
	return changed
}

// maxRule is how much of what Gemini has no word for is told in a description, in bytes.
const maxRule = 1000

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
		all := object(s[key])
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if inner := object(all[name]); inner != nil {
				eachAt(inner, strings.TrimSuffix(at, ".properties")+"."+strings.TrimPrefix(key+".", "properties.")+name, f)
			}
		}
	}
}

// maxNotes is how many remarks are made of one schema.
const maxNotes = 20

// Notes are what vendors can't do with a schema, a sentence each. Arguments are checked against it whoever the vendor is.
func Notes(raw []byte) []string {
	list := []string{}
	root, err := decode(raw)
	if err != nil {
		return list
	}
	if _, why := Strict(raw); why != "" {
		list = append(list, "OpenAI's models are told this schema but not held to it (strict): "+why+".")
	}
	forGemini(root, "", func(key, at string) {
		list = append(list, fmt.Sprintf("Gemini has no %s%s: its models are told in the description.", key, place(at)))
	})
	slices.Sort(list)
	return list[:min(len(list), maxNotes)]
}
