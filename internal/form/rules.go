package form

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/internal/parley"
)

// rules are a field's tags, read once.
type rules struct {
	required, raw, unique   bool
	minLength, maxLength    int
	maxItems, maxProperties int
	minimum, maximum        *float64
	enum                    []string
	pattern                 *regexp.Regexp
	must, format            string
	reads                   string // phone or transfer: telephone numbers as people write them (Phones)
	inline                  string // of a list: items may hold their fields in an object of this name
}

type field struct {
	rules
	name  string
	index []int
	typ   reflect.Type
	def   string
	omit  bool // omitempty: an empty list is as good as none
}

var (
	contains = slices.Contains[[]string]
	cache    sync.Map // {type, tag} -> []field
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// fieldsOf lists the fields of struct type t that carry tag and may be written.
func fieldsOf(t reflect.Type, tag string) []field {
	type key struct {
		t   reflect.Type
		tag string
	}
	if l, ok := cache.Load(key{t, tag}); ok {
		return l.([]field)
	}
	var list []field
	for _, sf := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(sf.Tag.Get(tag), ",")
		if name == "" || name == "-" || sf.Tag.Get("readOnly") == "true" {
			continue
		}
		list = append(list, field{read(sf.Tag), name, sf.Index, sf.Type, sf.Tag.Get("default"),
			strings.Contains(opts, "omitempty")})
	}
	cache.Store(key{t, tag}, list)
	return list
}

func read(tag reflect.StructTag) rules {
	count := func(name string) int {
		s := tag.Get(name)
		n, err := strconv.Atoi(s)
		if s != "" && err != nil {
			panic(fmt.Sprintf("form: tag %s:%q is no number", name, s))
		}
		return n
	}
	bound := func(name string) *float64 {
		s := tag.Get(name)
		if s == "" {
			return nil
		}
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			panic(fmt.Sprintf("form: tag %s:%q is no number", name, s))
		}
		return &x
	}
	r := rules{
		required: tag.Get("required") == "true", raw: tag.Get("trim") == "off",
		unique:    tag.Get("uniqueItems") == "true",
		minLength: count("minLength"), maxLength: count("maxLength"), maxItems: count("maxItems"),
		maxProperties: count("maxProperties"),
		minimum:       bound("minimum"), maximum: bound("maximum"), format: tag.Get("format"), must: tag.Get("must"),
		reads: tag.Get("reads"), inline: tag.Get("inline"),
	}
	if r.format == "phone" {
		r.reads = "phone"
	}
	if s := tag.Get("enum"); s != "" {
		r.enum = strings.Split(s, ",")
	}
	if s := tag.Get("pattern"); s != "" {
		r.pattern = regexp.MustCompile(s)
	}
	return r
}

// inRange judges a number by its bounds.
func (r *rules) inRange(name string, x float64, f *parley.Fields) bool {
	text := func(b float64) string { return strconv.FormatFloat(b, 'f', -1, 64) }
	switch {
	case r.minimum != nil && x < *r.minimum:
		f.Add(name, "must be at least %s.", text(*r.minimum))
	case r.maximum != nil && x > *r.maximum:
		f.Add(name, "must not be greater than %s.", text(*r.maximum))
	default:
		return true
	}
	return false
}

// reset gives a field its default.
func (fd *field) reset(v reflect.Value) {
	v.SetZero()
	switch {
	case fd.def != "":
		text := fd.def
		if v.Kind() == reflect.String {
			v.SetString(text)
		} else if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil {
			panic(fmt.Sprintf("form: default %q of field %s: %v", text, fd.name, err))
		}
	case fd.omit, v.Type() == reflect.TypeFor[parley.JSONSchema]():
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case v.Kind() == reflect.Struct:
		setDefaults(v)
	}
}

func setDefaults(v reflect.Value) {
	for _, fd := range fieldsOf(v.Type(), "json") {
		fd.reset(v.FieldByIndex(fd.index))
	}
}
