package form

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"parley/internal/parley"
)

// Schemas writes JSON Schemas (2020-12, as OpenAPI 3.1 takes them) of the types that the API sends and takes, by the
// tags that Bind enforces. Structs become components, to be found under Components by their name.
type Schemas struct {
	Components map[string]any
	// Names are what types are called in place of their own names: of a generic type, what stands behind its
	// argument's name ("Page" makes AssistantPage of Paginated[Assistant]; with "[]" behind its name, where the
	// argument is a list).
	Names map[string]string
	types map[string]reflect.Type // of the components
}

// Output is the schema of a value that is sent: every field without omitempty is there.
func (s *Schemas) Output(t reflect.Type) map[string]any { return s.schema(t, outgoing) }

// Input is the schema of a value that is taken: read-only fields are left out, and only what is tagged so is
// required; with partial nothing is.
func (s *Schemas) Input(t reflect.Type, partial bool) map[string]any {
	if partial {
		return s.schema(t, patch)
	}
	return s.schema(t, incoming)
}

type role string

const (
	outgoing role = ""
	incoming role = "Input"
	patch    role = "Patch"
)

type object = map[string]any

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	timeType     = reflect.TypeFor[parley.Time]()
	dateTimeType = reflect.TypeFor[parley.DateTime]()
)

// always are the times that everything has which is shown.
var always = []string{"created_at", "updated_at"}

func (s *Schemas) schema(t reflect.Type, r role) object {
	switch t {
	case decimalType:
		if r == outgoing {
			return object{"type": "string", "pattern": `^-?\d+\.\d\d$`}
		}
		return anyOf("number", "string")
	case flagType:
		if r == outgoing {
			return object{"type": "integer", "enum": []int{0, 1}}
		}
		return anyOf("integer", "boolean")
	case moneyType:
		return object{"type": "number", "format": "double"}
	case timeType:
		return object{"type": []string{"string", "null"}, "format": "date-time"}
	case dateTimeType:
		return object{"type": []string{"string", "null"}, "pattern": `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`,
			"examples": []string{"2026-01-31 09:30:00"}}
	case reflect.TypeFor[parley.Fields]():
		return object{"type": "object", "additionalProperties": object{"type": "array",
			"items": object{"type": "string"}}}
	case rawType:
		return object{}
	case reflect.TypeFor[parley.JSONSchema]():
		return object{"type": []string{"object", "null"}, "additionalProperties": true}
	case reflect.TypeFor[parley.ToolNames]():
		return nullable(s.schema(reflect.TypeFor[[]string](), r))
	}
	if union, ok := reflect.Zero(t).Interface().(interface{ AnyOf() []reflect.Type }); ok && t.Kind() != reflect.Pointer {
		list := []any{}
		for _, t := range union.AnyOf() {
			list = append(list, s.schema(t, r))
		}
		if len(list) == 1 {
			return list[0].(object)
		}
		return object{"anyOf": list}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(s.schema(t.Elem(), r))
	case reflect.String:
		if set, ok := reflect.Zero(t).Interface().(interface{ Values() []string }); ok {
			return object{"type": "string", "enum": set.Values()}
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.Slice:
		return object{"type": "array", "items": s.schema(t.Elem(), nested(r))}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.schema(t.Elem(), nested(r))}
	case reflect.Struct:
		return s.component(t, r)
	}
	return object{} // any
}

// nested is the role of what lies inside lists and maps: each item of a patch is whole.
func nested(r role) role {
	if r == patch {
		return incoming
	}
	return r
}

// anyOf is a union as code generators understand it; many stumble over a list of types.
func anyOf(types ...string) object {
	list := make([]any, len(types))
	for i, t := range types {
		list[i] = object{"type": t}
	}
	return object{"anyOf": list}
}

func nullable(sc object) object {
	null := object{"type": "null"}
	if _, ok := sc["$ref"]; ok {
		return object{"anyOf": []any{sc, null}}
	}
	if list, ok := sc["anyOf"].([]any); ok {
		if !slices.ContainsFunc(list, func(o any) bool { return o.(object)["type"] == "null" }) {
			sc["anyOf"] = append(list, null)
		}
		return sc
	}
	switch t := sc["type"].(type) {
	case string:
		sc["type"] = []string{t, "null"}
	case []string:
		if !contains(t, "null") {
			sc["type"] = append(slices.Clone(t), "null")
		}
	}
	if list, ok := sc["enum"].([]string); ok {
		sc["enum"] = append(toAny(list), nil)
	}
	return sc
}

// component writes a named struct under Components once and refers to it; a struct without a name stands where it is.
func (s *Schemas) component(t reflect.Type, r role) object {
	name := s.name(t)
	if name == "" {
		return s.object(t, r)
	}
	name += string(r)
	for s.types[name] != nil && s.types[name] != t { // two packages use one name
		name += "_"
	}
	if _, done := s.Components[name]; !done {
		if s.types == nil {
			s.types = map[string]reflect.Type{}
		}
		s.types[name] = t
		s.Components[name] = object{} // a type may hold itself
		s.Components[name] = s.object(t, r)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// name is what a type is called, "" when it has no name.
func (s *Schemas) name(t reflect.Type) string {
	base, arg, generic := strings.Cut(t.Name(), "[")
	if base == "" {
		return ""
	}
	name := strings.ToUpper(base[:1]) + base[1:]
	if generic {
		arg = strings.TrimSuffix(arg, "]")
		if strings.HasPrefix(arg, "[]") {
			base += "[]"
		}
		arg = strings.TrimLeft(arg[strings.LastIndexByte(arg, '.')+1:], "[]*")
		arg = strings.ToUpper(arg[:1]) + arg[1:]
		name = cmp.Or(s.Names[arg], arg) + cmp.Or(s.Names[base], name)
	}
	return cmp.Or(s.Names[name], name)
}

func (s *Schemas) object(t reflect.Type, r role) object {
	props, required := object{}, []string{}
	for _, sf := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
		readOnly := sf.Tag.Get("readOnly") == "true"
		if name == "" || name == "-" || readOnly && r != outgoing || r == outgoing && sf.Tag.Get("writeOnly") == "true" {
			continue
		}
		fd := field{rules: read(sf.Tag), typ: sf.Type, def: sf.Tag.Get("default")}
		p := s.schema(sf.Type, r)
		switch {
		case r == outgoing && fd.required && sf.Type.Kind() == reflect.Pointer: // it is always there
			p = s.schema(sf.Type.Elem(), r)
		case r != outgoing && !fd.required: // null clears
			p = nullable(p)
		case r == outgoing && (sf.Type == timeType || sf.Type == dateTimeType) && contains(always, name):
			p["type"] = "string"
		}
		fd.describe(p, r)
		doc := sf.Tag.Get("doc")
		if fd.format == "variables" && r != outgoing {
			doc = strings.TrimSpace(doc + " Numbers and booleans are taken too and kept as their text, null as an empty one.")
		}
		// In words, for generators take a field with a default for one that is always there: a client would have to
		// send them all.
		if def, ok := p["default"]; ok {
			delete(p, "default")
			text, _ := json.Marshal(def)
			doc = strings.TrimSpace(doc + " Default: " + string(text) + ".")
		}
		if doc != "" {
			p["description"] = doc
		}
		if readOnly {
			p["readOnly"] = true
		}
		props[name] = p
		if r == outgoing && !strings.Contains(opts, "omitempty") || r == incoming && fd.required {
			required = append(required, name)
		}
	}
	sc := object{"type": "object", "properties": props}
	if len(required) > 0 {
		sc["required"] = required
	}
	return sc
}

// describe puts a field's rules into its schema, on the items where it is a list. Answers only say what they are:
// what is in the database may be older than a rule.
func (fd *field) describe(p object, r role) {
	if r == outgoing {
		fd.close(p)
		return
	}
	set := func(to object, key string, v any, there bool) {
		if there {
			to[key] = v
		}
	}
	target, list := p, false
	if items, ok := p["items"].(object); ok && deref(fd.typ).Kind() == reflect.Slice {
		set(p, "maxItems", fd.maxItems, fd.maxItems > 0)
		set(p, "uniqueItems", true, fd.unique)
		target, list = items, true
	}
	set(target, "minLength", fd.minLength, fd.minLength > 0)
	set(target, "maxLength", fd.maxLength, fd.maxLength > 0)
	set(p, "maxProperties", fd.maxProperties, fd.maxProperties > 0)
	if fd.minimum != nil {
		p["minimum"] = *fd.minimum
	}
	if fd.maximum != nil {
		p["maximum"] = *fd.maximum
	}
	set(target, "enum", fd.enum, len(fd.enum) > 0)
	if fd.pattern != nil {
		target["pattern"] = fd.pattern.String()
	}
	if fd.format == "http-url" || fd.format == "server-url" || fd.format == "origin" {
		target["format"] = "uri"
	} else if fd.format == "assistant" {
		optional := contains(typesOf(target), "null")
		delete(target, "type")
		if target["anyOf"] = anyOf("integer", "string")["anyOf"]; optional {
			nullable(target)
		}
	} else {
		set(target, "format", fd.format, fd.format != "" && fd.format != "variables")
	}
	var def any
	if fd.def != "" && json.Unmarshal([]byte(fd.def), &def) == nil && deref(fd.typ).Kind() != reflect.String {
		p["default"] = def
	} else {
		set(p, "default", fd.def, fd.def != "")
	}
	if types, ok := p["type"].([]string); ok && !list && len(fd.enum) > 0 && contains(types, "null") {
		p["enum"] = append(toAny(fd.enum), nil)
	}
}

// close names the values of a closed set in an answer.
func (fd *field) close(p object) {
	if len(fd.enum) == 0 {
		return
	}
	if items, ok := p["items"].(object); ok {
		p = items
	}
	p["enum"] = fd.enum
	if types, ok := p["type"].([]string); ok && contains(types, "null") {
		p["enum"] = append(toAny(fd.enum), nil)
	}
}

// typesOf are the types that a schema names.
func typesOf(sc object) []string {
	switch t := sc["type"].(type) {
	case string:
		return []string{t}
	case []string:
		return t
	}
	return nil
}

func toAny(list []string) (out []any) {
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// QueryParameters are the OpenAPI parameters of a struct's query tags.
func (s *Schemas) QueryParameters(t reflect.Type) (list []any) {
	for _, fd := range fieldsOf(t, "query") {
		sf := t.FieldByIndex(fd.index)
		p := s.schema(deref(sf.Type), incoming)
		fd.describe(p, incoming)
		list = append(list, object{"name": fd.name, "in": "query", "schema": p, "description": sf.Tag.Get("doc")})
	}
	return list
}
