package agent

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// unsaid is the reason of a value that a model has not found.
const unsaid = "The conversation doesn't say."

// valueOf is what a model answered for an item, as the type that the item asks for: a model writes "4" for 4, "yes" for true, and wraps a
// value in a list or an object. Where the value is nil, why says so in a sentence.
func valueOf(it *parley.ExtractedItem, v any) (value any, why string) {
	if v == nil {
		return nil, unsaid
	}
	v = unwrapped(it, v)
	day := dateOf(it)
	if s, ok := v.(string); ok && (absent[strings.ToLower(strings.Trim(s, " .-"))] || strings.TrimSpace(s) == "") &&
		(it.Type != "string" || day != "") {
		return nil, unsaid
	}
	wanted := ""
	switch jsonType(it.Type) {
	case "number":
		if n, ok := numberOf(v); ok {
			return n, ""
		}
		wanted = "no number"
	case "boolean":
		if b, ok := boolOf(v); ok {
			return b, ""
		}
		wanted = "neither yes nor no"
	default:
		if day == "" {
			return textOf(v), ""
		}
		if text, ok := dated(day, textOf(v)); ok {
			return text, ""
		}
		wanted = "no day that can be written as " + day
	}
	return nil, fmt.Sprintf("The model answered %.100s, which is %s.", compact(v), wanted)
}

// absent are words by which models say that there is no value.
var absent = map[string]bool{"null": true, "none": true, "n/a": true, "na": true, "unknown": true, "undefined": true, "not specified": true,
	"not mentioned": true, "not provided": true, "not stated": true}

// unwrapped is the value in a list of one, or in an object: under "value", or the item's name. Of an object with more in it a text is asked
// for as a whole.
func unwrapped(it *parley.ExtractedItem, v any) any {
	for range 4 {
		switch w := v.(type) {
		case []any:
			if len(w) != 1 {
				return v
			}
			v = w[0]
		case map[string]any:
			inner, ok := w["value"]
			if !ok {
				inner, ok = w[it.Name]
			}
			if !ok || it.Type == "string" && len(w) > 1 {
				return v
			}
			v = inner
		default:
			return v
		}
	}
	return v
}

var (
	// "$1,200", "1 200", "4 people", "19 %"
	around = regexp.MustCompile(`^[\p{Sc}\s]*([-+−]?(?:\d{1,3}(?:['_\p{Zs}]\d{3})+(?:[.,]\d+)?|[\d.,]*\d))` +
		`\s*(?:[\p{Sc}%]|[\p{L}°/.²³]{1,12})?$`)
	spaces  = regexp.MustCompile(`['_\p{Zs}]`)
	grouped = regexp.MustCompile(`^[-+]?\d{1,3}(?:,\d{3})+$`)
)

// numberOf reads a number that may be written as text, with a currency, a unit, or separators. A single comma before other than three
// digits is a decimal one.
func numberOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsInf(v, 0) && !math.IsNaN(v)
	case string:
		m := around.FindStringSubmatch(strings.TrimSpace(v))
		if m == nil {
			return 0, false
		}
		s := strings.Replace(spaces.ReplaceAllString(m[1], ""), "−", "-", 1)
		dot, comma := strings.LastIndexByte(s, '.'), strings.LastIndexByte(s, ',')
		switch {
		case dot >= 0 && comma > dot, comma >= 0 && dot < 0 && !grouped.MatchString(s): // 1.234,50; 4,5
			s = strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", ".")
		default: // 1,234.50; 1,234; 4.5
			s = strings.ReplaceAll(s, ",", "")
		}
		n, err := strconv.ParseFloat(s, 64)
		return n, err == nil && !math.IsInf(n, 0)
	}
	return 0, false
}

var yes = words(`true yes y yeah yep correct 1 ja jawohl oui si sí sì sim tak da ano áno igen kyllä evet ναι да так हाँ はい 是 예 네 有`)

var no = words(`false no n nope incorrect 0 nein non não nao nee nej nie ne nem ei hayır hayir όχι нет ні नहीं いいえ 否 不 아니요 無`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

func boolOf(v any) (value, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case float64:
		return v == 1, v == 1 || v == 0
	case string:
		w := strings.ToLower(strings.Trim(v, " .!\"'"))
		return yes[w], yes[w] || no[w]
	}
	return false, false
}

// textOf is a value as text: values of a list one after the other, an object as JSON.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = textOf(item)
		}
		return strings.Join(parts, ", ")
	}
	return compact(v)
}

func compact(v any) string {
	text, _ := json.Marshal(v) // it came from JSON
	return string(text)
}
