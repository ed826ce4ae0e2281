package form

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// Assistants puts the ids of assistants in the place of UUIDs that tree has in fields of struct type t with the
// format assistant; id finds them (0: there is none, which is no assistant's id either). An error of id ends it.
func Assistants(tree map[string]any, t reflect.Type, id func(uuid string) (int64, error)) error {
	for _, fd := range fieldsOf(t, "json") {
		var err error
		switch v := tree[fd.name].(type) {
		case string:
			if text := strings.TrimSpace(v); fd.format == "assistant" && formats["uuid"].ok(text) {
				var n int64
				n, err = id(text)
				tree[fd.name] = json.Number(strconv.FormatInt(n, 10))
			}
		case map[string]any:
			if deref(fd.typ).Kind() == reflect.Struct {
				err = Assistants(v, deref(fd.typ), id)
			}
		case []any:
			if fd.typ.Kind() != reflect.Slice || fd.typ.Elem().Kind() != reflect.Struct {
				break
			}
			for _, item := range v {
				if obj, ok := item.(map[string]any); ok && err == nil {
					if fd.inline != "" {
						unfold(obj, fd.inline)
					}
					err = Assistants(obj, fd.typ.Elem(), id)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// QueryAssistants is Assistants for the query parameters of t.
func QueryAssistants(q url.Values, t reflect.Type, id func(uuid string) (int64, error)) error {
	for _, fd := range fieldsOf(t, "query") {
		if text := strings.TrimSpace(q.Get(fd.name)); fd.format == "assistant" && formats["uuid"].ok(text) {
			n, err := id(text)
			if err != nil {
				return err
			}
			q.Set(fd.name, strconv.FormatInt(n, 10))
		}
	}
	return nil
}
