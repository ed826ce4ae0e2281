// Package schema is JSON Schema as tools and questions use it: which schemas are taken, what fits one, its short form (a
// list of names and types), and what each vendor is told of it.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// The most that a schema may be. Its parts are counted as often as references repeat them: that is what a check costs.
const (
	MaxBytes    = 32 << 10
	maxDepth    = 16
	maxParts    = 2000
	maxPattern  = 500  // characters of a regular expression
	maxPatterns = 4000 // instructions of all of them
	maxNumber   = 40   // characters of a number
)

// Check says in a sentence why a schema is not taken; nil if it is. Vendors want the arguments of a tool to be an object
// whose alternatives, if any, are inside it.
func Check(raw []byte) error {
	if len(raw) > MaxBytes {
		return fmt.Errorf("must not be larger than %d KB", MaxBytes>>10)
	}
	root, err := decode(raw)
	if err != nil {
		return errors.New("must be an object: a JSON Schema")
	}
	if root["type"] != "object" {
		return errors.New(`must have "type": "object": a tool gets its arguments by their names`)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "if"} {
		if _, there := root[key]; there {
			return fmt.Errorf("must not have %s at its top level, which language models don't take: put it into a property", key)
		}
	}
	for name := range object(root["properties"]) {
		if !propertyName.MatchString(name) {
			return fmt.Errorf("has the property %.80q: its name must have letters, digits, _, . and -, 64 of them at most", name)
		}
	}
	if _, err := measure(root); err != nil {
		return err
	}
	_, err = compile(root)
	return err
}

var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// decode reads a JSON object with its numbers as they are written.
func decode(raw []byte) (root map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	if _, err := d.Token(); root == nil || !errors.Is(err, io.EOF) {
		return nil, errors.New("it is no object")
	}
	return root, nil
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// Keywords that hold schemas: one, a list of them, or some by their names.
var (
	oneSchema = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	listOfSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mapOfSchemas  = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
	// Keywords by which a schema is named, or found elsewhere.
	refused = []string{"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"}
)

// walk counts the parts of a schema, as far as it may.
type walk struct {
	root     map[string]any
	parts    int
	patterns int
	within   []string // the references that are being followed
}

// measure is how many parts a schema has, or why it is not taken.
func measure(root map[string]any) (parts int, err error) {
	if at := longNumber(root, ""); at != "" {
		return 0, fmt.Errorf("has a number of more than %d digits%s", maxNumber, place(at))
	}
	if s, ok := root["$schema"]; ok {
		if text, ok := s.(string); !ok || !strings.Contains(text, "json-schema.org/") {
			return 0, errors.New("must have a $schema of json-schema.org, or none; it is read as draft 2020-12")
		}
	}
	w := walk{root: root}
	return w.parts, w.schema(root, "", 0, &w.parts)
}

func place(at string) string {
	if at == "" {
		return ""
	}
	if len(at) > 100 {
		at = at[:100] + "…"
	}
	return " (at " + strings.TrimPrefix(at, ".") + ")"
}

// longNumber is where a number is longer than it needs to be: one of a million digits takes seconds to be compared.
func longNumber(v any, at string) string {
	switch v := v.(type) {
	case json.Number:
		digits, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		if len(digits) > maxNumber || len(exponent) > 4 {
			return at + "."
		}
	case map[string]any:
		for key, e := range v {
			if found := longNumber(e, at+"."+key); found != "" {
				return found
			}
		}
	case []any:
		for i, e := range v {
			if found := longNumber(e, fmt.Sprintf("%s.%d", at, i)); found != "" {
				return found
			}
		}
	}
	return ""
}

func (w *walk) schema(v any, at string, depth int, parts *int) error {
	if *parts++; *parts > maxParts {
		return fmt.Errorf("has more than %d parts, with what its references repeat", maxParts)
	}
	if depth > maxDepth {
		return fmt.Errorf("is nested more than %d levels deep%s", maxDepth, place(at))
	}
	s, ok := v.(map[string]any)
	if !ok {
		if _, ok := v.(bool); ok {
			return nil
		}
		return fmt.Errorf("has something that is no schema%s", place(at))
	}
	for _, key := range refused {
		if _, there := s[key]; there {
			return fmt.Errorf("must not have %s%s: refer to #/$defs/NAME", key, place(at))
		}
	}
	if depth > 0 && s["$schema"] != nil {
		return fmt.Errorf("must have $schema at its top level alone%s", place(at))
	}
	if err := w.pattern(s["pattern"], at); err != nil {
		return err
	}
	for name := range object(s["patternProperties"]) {
		if err := w.pattern(name, at); err != nil {
			return err
		}
	}
	if err := w.reference(s, at, depth, parts); err != nil {
		return err
	}
	return w.inner(s, at, depth, parts)
}

// inner walks the schemas that one holds.
func (w *walk) inner(s map[string]any, at string, depth int, parts *int) error {
	for _, key := range oneSchema {
		if v, there := s[key]; there {
			if _, list := v.([]any); list && key == "items" {
				return fmt.Errorf("has a list as items%s: write prefixItems", place(at))
			}
			if err := w.schema(v, at+"."+key, depth+1, parts); err != nil {
				return err
			}
		}
	}
	for _, key := range listOfSchemas {
		list, _ := s[key].([]any)
		for i, v := range list {
			if err := w.schema(v, fmt.Sprintf("%s.%s.%d", at, key, i), depth+1, parts); err != nil {
				return err
			}
		}
	}
	for _, key := range mapOfSchemas {
		for name, v := range object(s[key]) {
			if err := w.schema(v, at+"."+key+"."+name, depth+1, parts); err != nil {
				return err
			}
		}
	}
	return nil
}

// reference follows a $ref, which stays within the schema and doesn't lead back to where it stands.
func (w *walk) reference(s map[string]any, at string, depth int, parts *int) error {
	ref, there := s["$ref"]
	if !there {
		return nil
	}
	target, text := w.target(ref)
	switch {
	case target == nil:
		return fmt.Errorf("has a $ref that leads nowhere%s: it must be #/$defs/NAME, of this schema", place(at))
	case slices.Contains(w.within, text):
		return fmt.Errorf("refers to itself%s, which not all language models take", place(at))
	}
	w.within = append(w.within, text)
	err := w.schema(target, at, depth+1, parts)
	w.within = w.within[:len(w.within)-1]
	return err
}

// target is the schema that a $ref names.
func (w *walk) target(ref any) (v any, text string) {
	text, _ = ref.(string)
	for _, key := range []string{"$defs", "definitions"} {
		if name, ok := strings.CutPrefix(text, "#/"+key+"/"); ok && !strings.ContainsAny(name, "/~%") {
			return object(w.root[key])[name], text
		}
	}
	return nil, text
}

// pattern counts what a regular expression costs.
func (w *walk) pattern(v any, at string) error {
	text, ok := v.(string)
	if !ok {
		return nil // the compiler says it of another type
	}
	if len(text) > maxPattern {
		return fmt.Errorf("has a pattern of more than %d characters%s", maxPattern, place(at))
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("has a pattern that can't be read%s: %w (it is read as RE2: no lookaheads, no back references)", place(at), err)
	}
	program, err := syntax.Compile(re.Simplify())
	if err == nil {
		w.patterns += len(program.Inst)
	}
	if err != nil || w.patterns > maxPatterns {
		return fmt.Errorf("has patterns that take too long%s: write shorter ones, with smaller repetitions", place(at))
	}
	return nil
}

// Same says whether two schemas say the same, in whatever order.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := decode(a)
	y, err2 := decode(b)
	return err == nil && err2 == nil && reflect.DeepEqual(x, y)
}
