package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

const (
	maxText = 20 << 10 // bytes of a result, as far as cutting its texts and lists allows
	readOn  = 16000    // characters of a field that are read at a time
)

// compact is JSON on one line, without the escapes that are for HTML.
func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // it was JSON
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func sorted(o object) []string { return slices.Sorted(maps.Keys(o)) }

// shape is an answer of the API as a model reads it: a list as its items with what says how to go on, one thing without what is not
// set; of each only some fields, where they are named. Long texts and lists are cut until the whole fits.
func shape(v any, short []string) string {
	v = unwrapped(v)
	if list, ok := v.([]any); ok {
		v = object{"items": list, "total": len(list)}
	}
	if page, ok := v.(object); ok && page["current_page"] != nil {
		v = object{"items": page["data"], "total": page["total"], "page": page["current_page"], "pages": page["last_page"]}
		if n, last := number(page["current_page"], 0), number(page["last_page"], 0); n < last {
			v.(object)["next_page"] = n + 1
		}
	}
	if page, ok := v.(object); ok && page["items"] != nil {
		list, _ := page["items"].([]any)
		out := make([]any, len(list))
		for i, one := range list {
			out[i] = set(only(one, short))
		}
		page["items"] = out
	} else {
		v = set(only(v, short))
	}
	for texts, items := 6000, 100; ; texts, items = texts/2, items/2 {
		out := compact(cut(v, texts, items))
		if len(out) <= maxText || items <= 1 {
			return out
		}
	}
}

// unwrapped is what an answer is about, without what is around it in the API.
func unwrapped(v any) any {
	o, ok := v.(object)
	if !ok || o["current_page"] != nil {
		return v
	}
	data, ok := o["data"]
	if !ok || len(o) > 2 || len(o) == 2 && o["message"] == nil {
		return v
	}
	if one, ok := data.(object); ok && o["message"] != nil {
		one = maps.Clone(one)
		one["message"] = o["message"]
		return one
	}
	return data
}

// only is a thing with some of its fields, and what the API said about it.
func only(v any, short []string) any {
	o, ok := v.(object)
	if !ok || len(short) == 0 {
		return v
	}
	out := object{}
	for _, name := range append(slices.Clone(short), "message") {
		if value, ok := o[name]; ok {
			out[name] = value
		}
	}
	return out
}

// set is a value without what is not set: null, empty texts, lists and objects.
func set(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for k, e := range v {
			switch e := set(e).(type) {
			case nil:
			case string:
				if e != "" {
					out[k] = e
				}
			case []any:
				if len(e) > 0 {
					out[k] = e
				}
			case object:
				if len(e) > 0 {
					out[k] = e
				}
			default:
				out[k] = e
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = set(e)
		}
		return out
	}
	return v
}

// cut is a value whose texts have at most so many characters, and whose lists so many items.
func cut(v any, texts, items int) any {
	switch v := v.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		if n <= texts {
			return v
		}
		return fmt.Sprintf("%s… [cut: %d of %d characters; ask for this field and an offset to read on]", string([]rune(v)[:texts]), texts, n)
	case object:
		out := object{}
		for k, e := range v {
			out[k] = cut(e, texts, items)
		}
		return out
	case []any:
		out := make([]any, 0, min(len(v), items)+1)
		for i, e := range v {
			if i == items {
				out = append(out, fmt.Sprintf("[cut: %d of %d items; ask for fewer or for this field to read on]", items, len(v)))
				break
			}
			out = append(out, cut(e, texts, items))
		}
		return out
	}
	return v
}

// part is a stretch of one field of an answer, from a character on.
func part(v any, field string, offset int) (text, wrong string) {
	o, _ := unwrapped(v).(object)
	value, ok := o[field]
	if !ok {
		return "", fmt.Sprintf("There is no field %q. The fields are %v.", field, sorted(o))
	}
	whole, ok := value.(string)
	if !ok {
		whole = compact(value)
	}
	runes := []rune(whole)
	from := min(offset, len(runes))
	to := min(from+readOn, len(runes))
	out := object{"field": field, "text": string(runes[from:to]), "offset": from, "characters": len(runes)}
	if to < len(runes) {
		out["next_offset"] = to
	}
	return compact(out), ""
}
