package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	maxArguments = 64 << 10 // bytes that are checked
	// maxWork is how many parts of a schema meet how many values at most. An error of each takes memory.
	maxWork       = 200_000
	maxWrong      = 8    // faults that are told
	maxWrongBytes = 1000 // bytes of them
)

// nowhere is where other schemas would be read from.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not in this schema", url) }

// compile makes a schema ready to check values, as draft 2020-12.
func compile(root map[string]any) (*jsonschema.Schema, error) { return compileAt(root, "") }

// compileAt is compile of the schema at a place of another, such as #/properties/name.
func compileAt(root map[string]any, place string) (*jsonschema.Schema, error) {
	own := make(map[string]any, len(root))
	for key, v := range root {
		if key != "$schema" {
			own[key] = v
		}
	}
	const name = "schema:tool"
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(name, own); err != nil {
		return nil, fmt.Errorf("is not a valid JSON Schema: %.300s", err)
	}
	s, err := c.Compile(name + place)
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](bad.Err); ok {
			return nil, fmt.Errorf("is not a valid JSON Schema: %s", faults(v, ""))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("is not a valid JSON Schema: %.300s", err)
	}
	return s, nil
}

// Fit says what of a tool's arguments doesn't fit its schema, in words for the model; nil where everything does. Numbers are
// json.Number or float64.
func Fit(raw []byte, args map[string]any) error {
	return fit(raw, args, "", "the argument ")
}

// FitProperty is Fit of the value of one property.
func FitProperty(raw []byte, name string, v any) error {
	return fit(raw, map[string]any{name: v}, name, "")
}

// fit checks arguments, or one of them alone; what stands before the place of a fault.
func fit(raw []byte, args map[string]any, one, what string) error {
	root, err := decode(raw)
	if err != nil {
		return errors.New("the schema can't be read")
	}
	text, err := json.Marshal(args)
	if err != nil || len(text) > maxArguments {
		return fmt.Errorf("the arguments are more than %d KB", maxArguments>>10)
	}
	values, err := decode(text)
	if err != nil {
		return errors.New("the arguments are not a JSON object")
	}
	if at := longNumber(values, ""); at != "" {
		return fmt.Errorf("the argument %s has too many digits", strings.Trim(at, "."))
	}
	parts, err := measure(root)
	if err != nil {
		return fmt.Errorf("the schema %w", err)
	}
	if parts*count(values) > maxWork {
		return errors.New("the arguments are too many to be checked: send fewer at once")
	}
	place, v := "", any(values)
	if one != "" {
		place, v = "#/properties/"+one, values[one]
	}
	s, err := compileAt(root, place)
	if err != nil {
		return fmt.Errorf("the schema %w", err)
	}
	err = s.Validate(v)
	if v, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New(faults(v, what))
	}
	return err
}

// count is how many values there are in one.
func count(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += count(e)
		}
	case []any:
		for _, e := range v {
			n += count(e)
		}
	}
	return n
}

var english = message.NewPrinter(language.English)

// faults are the first of what is wrong with a value, each with its place.
func faults(v *jsonschema.ValidationError, what string) string {
	var list []string
	var add func(v *jsonschema.ValidationError)
	add = func(v *jsonschema.ValidationError) {
		if len(list) == maxWrong {
			return
		}
		if len(v.Causes) > 0 {
			for _, c := range v.Causes {
				add(c)
			}
			return
		}
		text := v.ErrorKind.LocalizedString(english)
		if at := strings.Join(v.InstanceLocation, "."); at != "" {
			text = what + at + ": " + text
		}
		list = append(list, text)
	}
	add(v)
	text := strings.ToValidUTF8(strings.Join(list, "; "), "\uFFFD")
	if len(text) > maxWrongBytes {
		return strings.ToValidUTF8(text[:maxWrongBytes], "") + "…"
	}
	return text
}

// Fill puts the defaults of a schema's properties in place of arguments that are not there, in objects that are there.
func Fill(raw []byte, args map[string]any) {
	if root, err := decode(raw); err == nil {
		fill(root, args)
	}
}

func fill(s map[string]any, args map[string]any) {
	for name, v := range object(s["properties"]) {
		p := object(v)
		value, there := args[name]
		if def, ok := p["default"]; ok && !there {
			args[name] = def
		} else if inner := object(value); inner != nil {
			fill(p, inner)
		}
	}
}
