package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/internal/form"
	"parley/internal/parley"
)

// field is one that a file may have.
type field struct {
	name     string
	typ      reflect.Type
	required bool
	readOnly bool
}

var fieldCache sync.Map // reflect.Type -> []field

// fieldsOf are the fields of a struct in their order, those of embedded structs among them.
func fieldsOf(t reflect.Type) []field {
	if list, ok := fieldCache.Load(t); ok {
		return list.([]field)
	}
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			if e := f.Type; e.Kind() == reflect.Struct {
				list = append(list, fieldsOf(e)...)
			}
		case name != "":
			list = append(list, field{name, f.Type, f.Tag.Get("required") == "true", f.Tag.Get("readOnly") == "true"})
		}
	}
	fieldCache.Store(t, list)
	return list
}

var (
	decimalType = reflect.TypeFor[parley.Decimal]()
	flagType    = reflect.TypeFor[parley.Flag]()
	routeType   = reflect.TypeFor[parley.NumberRoute]()
)

// defaults are the fields of a struct that nothing was set of, as a tree.
func defaults(t reflect.Type) map[string]any {
	v := reflect.New(t)
	if t == routeType {
		v = reflect.ValueOf(parley.NewRoute(""))
	} else {
		form.Defaults(v.Interface())
	}
	return treeOf(v.Interface(), t)
}

// treeOf is a struct as files have it: without what is read only, with decimals as numbers and flags as booleans.
func treeOf(v any, t reflect.Type) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("manifest: %v is not written as JSON: %v", t, err)) // our own type
	}
	tree, err := decode(raw)
	if err != nil {
		panic(err)
	}
	return plain(tree, t).(map[string]any)
}

// decode reads a JSON object with its numbers as they are written.
func decode(raw []byte) (tree map[string]any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return tree, dec.Decode(&tree)
}

// plain is a value of a type's JSON as files have it.
func plain(v any, t reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case v == nil:
		return nil
	case t == decimalType:
		text, _ := v.(string)
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return v
		}
		return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
	case t == flagType:
		return v == json.Number("1")
	case t.Kind() == reflect.Struct:
		tree, ok := v.(map[string]any)
		if !ok {
			return v
		}
		out := map[string]any{}
		for _, f := range fieldsOf(t) {
			if value, there := tree[f.name]; there && !f.readOnly {
				out[f.name] = plain(value, f.typ)
			}
		}
		return out
	case t.Kind() == reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			return v
		}
		out := make([]any, len(list))
		for i := range list {
			out[i] = plain(list[i], t.Elem())
		}
		return out
	}
	return v
}

// bound reads a tree by the rules of a type, and returns it whole: what it lacks has its default. With whole, what must be
// there must be.
func bound(tree map[string]any, t reflect.Type, whole bool) (map[string]any, parley.Fields) {
	v := reflect.New(t)
	form.Defaults(v.Interface())
	wrong := form.Bind(tree, v.Interface(), whole)
	return treeOf(v.Interface(), t), wrong
}

// same says whether two trees say the same.
func same(x, y any) bool { return reflect.DeepEqual(x, y) }

// copied is a tree that may be changed without the other.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for k, e := range out {
			out[k] = copied(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copied(v[i])
		}
		return out
	}
	return v
}

// places are where an object that holds a reference may be in a tree: the tree itself, an object in it, or those of a list.
func places(tree map[string]any, in string) (list []map[string]any) {
	if in == "" {
		return []map[string]any{tree}
	}
	switch v := tree[in].(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				list = append(list, m)
			}
		}
	}
	return list
}

// named are the fields of a file's object in their order, those of references under the names that files use.
func (k *Kind) named(t reflect.Type, in string) []field {
	list := make([]field, 0, 80)
	for _, f := range fieldsOf(t) {
		if f.readOnly || k.part && in == "" && t == k.typ && !slices.Contains(parley.SettingNames, f.name) {
			continue
		}
		for _, r := range k.refs {
			if r.in == in && r.id == f.name {
				f.name, f.required = r.name, r.needs
				f.typ = reflect.TypeFor[any]()
			}
		}
		list = append(list, f)
	}
	return list
}
