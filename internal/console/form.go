package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/a-h/templ"

	"parley/internal/parley"
)

// decode turns a submitted HTML form into the tree that the API's JSON body would have been, by the json tags of
// struct type t, so that the same rules judge both. Only what the form names is in the tree. Conventions of the field
// names:
//
//   - a.b is field b of the object a; a.0.b is field b of the first item of a list (gaps close: indexes only give the order)
//   - a checkbox comes after a hidden field of the same name with the value 0
//   - a list of texts is a textarea with one item a line; a list of ids is one field per id
//   - a map has rows: a.0.key and a.0.value
//
// An emptied box clears its field. An item of a list whose boxes are all empty is not there; one with a checkbox
// a.0.on is there when that is set.
func decode(v url.Values, t reflect.Type) map[string]any {
	tree, _ := object(v, "", t)
	return tree
}

// object reads the fields of a struct; text says whether anything was written into its boxes.
func object(v url.Values, at string, t reflect.Type) (tree map[string]any, text bool) {
	tree = map[string]any{}
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "" || name == "-" || sf.Tag.Get("readOnly") == "true" {
			continue
		}
		if value, there, written := value(v, at+name, sf); there {
			tree[name] = value
			text = text || written
		}
	}
	return tree, text
}

var (
	flagType   = reflect.TypeFor[parley.Flag]()
	schemaType = reflect.TypeFor[parley.JSONSchema]()
)

func value(v url.Values, name string, sf reflect.StructField) (out any, there, written bool) {
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Struct:
		tree, written := object(v, name+".", t)
		return tree, len(tree) > 0, written
	case t.Kind() == reflect.Map:
		rows, there := pairs(v, name)
		return rows, there, len(rows) > 0
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		list := []any{}
		for _, i := range indexes(v, name) {
			at := name + "." + strconv.Itoa(i) + "."
			item, there := object(v, at, t.Elem())
			if on := v[at+"on"]; len(on) > 0 {
				there = slices.Contains(on, "1")
			}
			if there {
				list = append(list, item)
			}
		}
		return list, v.Has(name), len(list) > 0 // a hidden field of the list's name says that the form has it
	}
	texts, there := v[name]
	if !there {
		return nil, false, false
	}
	if t == schemaType {
		tree := typedJSON(texts[len(texts)-1])
		return tree, true, tree != nil
	}
	if t.Kind() == reflect.Slice {
		list := items(texts, t.Elem().Kind())
		return list, true, len(list) > 0
	}
	last := strings.ReplaceAll(texts[len(texts)-1], "\r\n", "\n") // HTML sends CRLF, whatever was written
	switch {
	case t.Kind() == reflect.Bool && sf.Type.Kind() == reflect.Pointer && last != "1":
		return nil, true, false
	case t.Kind() == reflect.Bool || t == flagType:
		return last == "1", true, false
	case strings.TrimSpace(last) == "":
		if t.Kind() == reflect.String && sf.Type.Kind() != reflect.Pointer {
			return "", true, false
		}
		return nil, true, false
	case t.Kind() == reflect.String:
		return last, true, sf.Tag.Get("enum") == ""
	}
	return numeral(last), true, true
}

// typedJSON is the object that was typed as JSON, nil where nothing was, and else the text, which the rules then refuse.
func typedJSON(text string) any {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	var tree map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&tree) != nil || tree == nil || d.More() {
		return text
	}
	return tree
}

// writtenJSON is what typedJSON reads.
func writtenJSON(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, _ := json.MarshalIndent(v, "", "  ") // it was JSON
	return string(raw)
}

// numeral is a JSON number where text is one, else the text, which the rules then refuse.
func numeral(text string) any {
	text = strings.TrimSpace(text)
	if c := text[0]; (c == '-' || '0' <= c && c <= '9') && json.Valid([]byte(text)) {
		return json.Number(text)
	}
	return text
}

// items are the lines of a textarea, or the ids of checkboxes.
func items(texts []string, kind reflect.Kind) []any {
	list := []any{}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if kind == reflect.String {
				list = append(list, line)
			} else {
				list = append(list, numeral(line))
			}
		}
	}
	return list
}

// pairs are the rows of a map. If two rows have the same name, the last one counts, as in JSON.
func pairs(v url.Values, name string) (map[string]any, bool) {
	rows := map[string]any{}
	for _, i := range indexes(v, name) {
		at := name + "." + strconv.Itoa(i)
		key, value := strings.TrimSpace(v.Get(at+".key")), strings.ReplaceAll(v.Get(at+".value"), "\r\n", "\n")
		if key != "" || value != "" {
			rows[key] = value
		}
	}
	return rows, v.Has(name)
}

// indexes are the numbers N of the fields name.N.…, in order.
func indexes(v url.Values, name string) []int {
	var list []int
	for field := range v {
		rest, ok := strings.CutPrefix(field, name+".")
		if !ok {
			continue
		}
		digits, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 && strconv.Itoa(n) == digits {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// treeOf is a value as the tree of its JSON.
func treeOf(v any) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("console: %T can't be written as JSON: %v", v, err)) // our own types
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		panic(fmt.Sprintf("console: %T is not a JSON object: %v", v, err))
	}
	return tree
}

// fields is a form to be shown: the values of its boxes, right or wrong, what is wrong with them, and the rules of
// their type.
type fields struct {
	tree   map[string]any
	errors parley.Fields
	rules  map[string]rule
	labels map[string]string // of the boxes shown so far
	limits map[string]string // what boxes can't do as the form stands
	kept   bool              // what is wrong is saved all the same, in a draft
}

// fieldsOf is a form for struct type T.
func fieldsOf[T any](tree map[string]any, errors parley.Fields) *fields {
	return &fields{tree, errors, rulesOf(reflect.TypeFor[T]()), map[string]string{}, nil, false}
}

// get finds the value at a dotted name.
func (f *fields) get(name string) any {
	var v any = f.tree
	for part := range strings.SplitSeq(name, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// text is what the box of a field holds.
func (f *fields) text(name string) string { return textOf(f.get(name)) }

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "1"
		}
		return "0"
	}
	return ""
}

// on says whether the checkbox of a field is set.
func (f *fields) on(name string) bool { return f.text(name) == "1" }

// lines is what the textarea of a list of texts holds.
func (f *fields) lines(name string) string {
	list, _ := f.get(name).([]any)
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = textOf(list[i])
	}
	return strings.Join(texts, "\n")
}

// place is where an id stands in a list of ids, past its end when it does not.
func (f *fields) place(name string, id int64) int {
	list, _ := f.get(name).([]any)
	i := slices.IndexFunc(list, func(v any) bool { return textOf(v) == strconv.FormatInt(id, 10) })
	if i < 0 {
		return len(list)
	}
	return i
}

// has says whether a list of ids holds one.
func (f *fields) has(name string, id int64) bool {
	list, _ := f.get(name).([]any)
	return f.place(name, id) < len(list)
}

// rows are the names of a list's items: name.0, name.1, …
func (f *fields) rows(name string) (rows []string) {
	list, _ := f.get(name).([]any)
	for i := range list {
		rows = append(rows, name+"."+strconv.Itoa(i))
	}
	return rows
}

// pair is a row of a map.
type pair struct{ key, value string }

// pairs are the rows of a map, by name.
func (f *fields) pairs(name string) (list []pair) {
	m, _ := f.get(name).(map[string]any)
	for k, v := range m {
		list = append(list, pair{k, textOf(v)})
	}
	slices.SortFunc(list, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return list
}

// wrong is what is wrong with a field, "" when nothing is. The sentence names the field as the API does; here its
// label stands beside it.
func (f *fields) wrong(name string) string {
	for _, e := range f.errors {
		if e.Name == name {
			text := strings.Join(e.Messages, " ")
			text = strings.ReplaceAll(text, "The "+name+" field ", "This field ")
			return strings.ReplaceAll(text, "The selected "+name+" is invalid.",
				"This choice is not available any more. Choose another.")
		}
	}
	return ""
}

// label notes what a box is called, for the list of mistakes.
func (f *fields) label(name, label string) string {
	f.labels[name] = label
	return label
}

// form is a form with the list of what is wrong with it on top. Its inside is rendered first: only then the labels
// are known.
func (f *fields) form(action string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var inside strings.Builder
		if err := templ.GetChildren(ctx).Render(templ.ClearChildren(ctx), &inside); err != nil {
			return err
		}
		return f.formAround(action, inside.String()).Render(templ.ClearChildren(ctx), w)
	})
}

// mistake is an entry of the list of what is wrong, with a link to its field.
type mistake struct{ name, label, text string }

// mistakes are all that is wrong with the form: also what no box shows.
func (f *fields) mistakes() (list []mistake) {
	for _, e := range f.errors {
		label := f.labels[e.Name]
		if label == "" {
			label = strings.ReplaceAll(e.Name, "_", " ")
		}
		for at := e.Name; strings.Contains(at, "."); { // the list that it is in
			at = at[:strings.LastIndexByte(at, '.')]
			if f.labels[at] != "" {
				label = f.labels[at] + " › " + label
			}
		}
		list = append(list, mistake{e.Name, label, f.wrong(e.Name)})
	}
	return list
}

// decimals is a number as its slider shows it: with two decimals.
func (f *fields) decimals(name string) string {
	d, err := parley.ParseDecimal(f.text(name))
	if err != nil {
		return f.text(name)
	}
	return d.String()
}

// rule is what a box should know of its field's rules: the tags of package form, as they are written.
type rule struct {
	required                 bool
	maxLength, min, max, def string
}

// rule finds the rule of a field; the indexes in its name don't matter.
func (f *fields) rule(name string) rule {
	parts := slices.DeleteFunc(strings.Split(name, "."),
		func(s string) bool { _, err := strconv.Atoi(s); return err == nil })
	return f.rules[strings.Join(parts, ".")]
}

var ruleCache sync.Map // reflect.Type -> map[string]rule

// rulesOf reads the rules of a struct, of the structs in it and in its lists.
func rulesOf(t reflect.Type) map[string]rule {
	if r, ok := ruleCache.Load(t); ok {
		return r.(map[string]rule)
	}
	rules := map[string]rule{}
	gather(t, "", rules)
	ruleCache.Store(t, rules)
	return rules
}

func gather(t reflect.Type, at string, rules map[string]rule) {
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "" || name == "-" || sf.Tag.Get("readOnly") == "true" {
			continue
		}
		r := rule{sf.Tag.Get("required") == "true", sf.Tag.Get("maxLength"), sf.Tag.Get("minimum"),
			sf.Tag.Get("maximum"), sf.Tag.Get("default")}
		inner := sf.Type
		if inner.Kind() == reflect.Slice {
			r.maxLength = "" // of an item, not of the box that holds them all
		}
		rules[at+name] = r
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			gather(inner, at+name+".", rules)
		}
	}
}

// fieldErrors are the failing fields that err names; false when it is another error.
func fieldErrors(err error) (parley.Fields, bool) {
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != parley.Invalid {
		return nil, false
	}
	return e.Fields, true
}
