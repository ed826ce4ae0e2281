package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/internal/parley"
)

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

// plain is a value as it stands in a URL.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return "" // an optional argument that was not given
}
