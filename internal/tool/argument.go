package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/parley"
	"parley/internal/schema"
)

// given are the arguments of a call as they are sent.
func given(t *parley.Tool, args map[string]any) (map[string]any, error) {
	if len(t.JSONSchema) == 0 {
		return arguments(t.Schema, args)
	}
	values := maps.Clone(args)
	if values == nil {
		values = map[string]any{}
	}
	schema.Fill(t.JSONSchema, values)
	if err := schema.Fit(t.JSONSchema, values); err != nil {
		return nil, err
	}
	for name, v := range values {
		values[name] = clean(v)
	}
	return values, nil
}

// names are those of a tool's parameters in their order, and of arguments beside them that its schema takes.
func names(t *parley.Tool, values map[string]any) (list []string) {
	if len(t.JSONSchema) == 0 {
		for _, p := range t.Schema {
			list = append(list, p.Name)
		}
		return list
	}
	list = schema.Names(t.JSONSchema)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// clean is a value without what no text may hold, and with its numbers as they are written.
func clean(v any) any {
	switch v := v.(type) {
	case string:
		return parley.CleanText(v)
	case float64:
		return json.Number(strconv.FormatFloat(v, 'f', -1, 64))
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[parley.CleanText(name)] = clean(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clean(v[i])
		}
		return out
	}
	return v
}

// arguments are the arguments that the schema names, each a string, json.Number or bool. Harmless slips are mended (a
// number in quotes); what the schema does not name is dropped. The error says all that is wrong.
func arguments(schema []parley.ToolParam, args map[string]any) (map[string]any, error) {
	values := map[string]any{}
	var wrong []string
	for _, p := range schema {
		given, ok := args[p.Name]
		if !ok || given == nil {
			if p.Required {
				wrong = append(wrong, fmt.Sprintf("the argument %s is missing", p.Name))
			}
			continue
		}
		if v := as(p.Type, given); v != nil {
			values[p.Name] = v
		} else {
			wrong = append(wrong, fmt.Sprintf("the argument %s must be a %s", p.Name, p.Type))
		}
	}
	if len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, ", "))
	}
	return values, nil
}

// as is the value as a type of a parameter, nil if it is none.
func as(typ string, v any) any {
	switch n := v.(type) {
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return nil
		}
		v = json.Number(strconv.FormatFloat(n, 'f', -1, 64)) // 4915112345678 and not 4.915112345678e+12
	case int:
		v = json.Number(strconv.Itoa(n))
	}
	switch v := v.(type) {
	case string:
		s := strings.TrimSpace(v)
		switch {
		case typ == "string":
			return parley.CleanText(v)
		case typ == "number" && isNumber(s):
			return json.Number(s)
		case typ == "boolean" && (strings.EqualFold(s, "true") || strings.EqualFold(s, "false")):
			return strings.EqualFold(s, "true")
		}
	case json.Number:
		switch {
		case typ == "number" && isNumber(string(v)):
			return v
		case typ == "string":
			return string(v)
		}
	case bool:
		switch typ {
		case "boolean":
			return v
		case "string":
			return strconv.FormatBool(v)
		}
	}
	return nil
}

// isNumber says whether s is a number as JSON writes them.
func isNumber(s string) bool {
	var n float64
	return json.Unmarshal([]byte(s), &n) == nil && s != "null"
}

// texts are a value as it stands in a query under its name: each of a list of plain values on its own.
func texts(v any) (out []string) {
	list, ok := v.([]any)
	for _, e := range list {
		switch e.(type) {
		case map[string]any, []any, nil:
			ok = false
		}
		out = append(out, plain(e))
	}
	switch {
	case v == nil:
		return nil
	case !ok:
		return []string{plain(v)}
	}
	return out
}

// plain is a value as it stands in a URL: a list or an object as its JSON.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case map[string]any, []any:
		return encode(v)
	}
	return "" // an optional argument that was not given
}
