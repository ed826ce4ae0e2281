// Package form reads a decoded JSON object, a query string or an HTML form into a struct by the rules in its tags,
// and reports every field that fails in the contract's words. The tags are those of the API reference (huma's):
// required, minLength, maxLength, minimum, maximum, enum, pattern (with must: what to say), format (http-url, server-url, origin,
// country, date, email, phone, timezone; assistant on an id, variables on a map), maxItems, uniqueItems, maxProperties,
// default, readOnly, writeOnly (in no answer's schema), inline (on a list: its items may hold their fields in an object of that
// name); so that one line
// says, enforces and documents a rule. A wrong JSON type is that field's error,
// but for what clients of this API are used to: the digits of an integer in a string, 0 and 1 (also as strings) for a
// boolean, and any scalar as the value of a variable. Strings are trimmed, unless they are tagged trim:"off".
package form

import (
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/parley"
)

// Bind reads tree into dst, a pointer to a struct, and returns the failing fields. Fields that tree does not name stay
// as they are in dst; with create, required fields must be there. null clears: a pointer becomes nil, another field
// takes its default. Lists and maps are replaced, nested objects merged. Unknown and read-only keys are ignored.
func Bind(tree map[string]any, dst any, create bool) parley.Fields {
	var f parley.Fields
	bindStruct("", tree, reflect.ValueOf(dst).Elem(), create, &f)
	return f
}

// Defaults sets every field of dst, a pointer to a struct, that has a default tag, and makes its lists and maps empty
// rather than nil (but for those with omitempty, which are not shown empty).
func Defaults(dst any) { setDefaults(reflect.ValueOf(dst).Elem()) }

// Query reads URL query parameters into the fields of dst that have a query tag.
func Query(q url.Values, dst any) parley.Fields {
	var f parley.Fields
	v := reflect.ValueOf(dst).Elem()
	for _, fd := range fieldsOf(v.Type(), "query") {
		text := strings.TrimSpace(q.Get(fd.name))
		if text == "" {
			continue
		}
		var raw any = text
		switch deref(fd.typ).Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64:
			// no 1e1, no Inf, no 0x1p4, which the number's reader would take
			if strings.Trim(text, "0123456789.-") == "" {
				raw = json.Number(text)
			}
		case reflect.Bool:
			switch text {
			case "1", "true":
				raw = true
			case "0", "false":
				raw = false
			}
		}
		bindValue(fd.name, raw, v.FieldByIndex(fd.index), &fd.rules, &f)
	}
	return f
}

func bindStruct(at string, tree map[string]any, v reflect.Value, create bool, f *parley.Fields) {
	for _, fd := range fieldsOf(v.Type(), "json") {
		name, target := at+fd.name, v.FieldByIndex(fd.index)
		raw, there := tree[fd.name]
		switch {
		case !there:
			if fd.required && create {
				f.Add(name, "is required.")
			}
		case raw == nil && fd.required:
			f.Add(name, "is required.")
		case raw == nil:
			fd.reset(target)
		default:
			bindValue(name, raw, target, &fd.rules, f)
		}
	}
}

var (
	decimalType = reflect.TypeFor[parley.Decimal]()
	flagType    = reflect.TypeFor[parley.Flag]()
	moneyType   = reflect.TypeFor[parley.Money]()
)

// bindValue reads one value that is not null.
func bindValue(name string, raw any, v reflect.Value, r *rules, f *parley.Fields) {
	if v.Kind() == reflect.Pointer {
		if s, ok := raw.(string); ok && strings.TrimSpace(s) == "" && v.Type().Elem().Kind() == reflect.String {
			v.SetZero() // an emptied text box clears
			return
		}
		p := reflect.New(v.Type().Elem())
		n := len(*f)
		bindValue(name, raw, p.Elem(), r, f)
		if len(*f) == n {
			v.Set(p)
		}
		return
	}
	if own, ok := v.Addr().Interface().(interface{ BindJSON(raw any) (must string) }); ok {
		if must := own.BindJSON(raw); must != "" {
			f.Add(name, "%s", must)
		}
		return
	}
	switch v.Type() {
	case decimalType:
		bindDecimal(name, raw, v, r, f)
		return
	case moneyType:
		n, _ := raw.(json.Number)
		m, err := parley.ParseMoney(string(n))
		if err != nil {
			f.Add(name, "must be a number.")
		} else if r.inRange(name, float64(m)/float64(parley.USD), f) {
			v.SetInt(int64(m))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		bindString(name, raw, v, r, f)
	case reflect.Bool:
		if b, ok := boolean(raw); ok {
			v.SetBool(b)
		} else {
			f.Add(name, "must be true or false.")
		}
	case reflect.Int, reflect.Int64:
		n, ok := integer(raw)
		if !ok && r.format == "assistant" {
			f.Add(name, "must be an integer or a UUID.")
		} else if !ok {
			f.Add(name, "must be an integer.")
		} else if r.inRange(name, float64(n), f) {
			v.SetInt(n)
		}
	case reflect.Float64:
		n, ok := raw.(json.Number)
		x, err := n.Float64()
		if !ok || err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			f.Add(name, "must be a number.")
		} else if r.inRange(name, x, f) {
			v.SetFloat(x)
		}
	case reflect.Slice:
		bindSlice(name, raw, v, r, f)
	case reflect.Map:
		bindMap(name, raw, v, r, f)
	case reflect.Interface:
		v.Set(reflect.ValueOf(raw)) // the handler judges it
	case reflect.Struct:
		if obj, ok := raw.(map[string]any); ok {
			bindStruct(name+".", obj, v, false, f)
		} else {
			f.Add(name, "must be an object.")
		}
	default:
		panic(fmt.Sprintf("form: field %s has type %s, which no rule reads", name, v.Type()))
	}
}

func bindDecimal(name string, raw any, v reflect.Value, r *rules, f *parley.Fields) {
	var text string
	switch n := raw.(type) {
	case json.Number:
		text = string(n)
	case string:
		text = strings.TrimSpace(n)
	}
	d, err := parley.ParseDecimal(text)
	if err != nil {
		f.Add(name, "must be a number.")
		return
	}
	// The bounds are judged on what was sent: 1.004 would round into 0 to 1.
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		f.Add(name, "must be a number.")
	} else if r.inRange(name, x, f) {
		v.SetInt(int64(d))
	}
}

func bindString(name string, raw any, v reflect.Value, r *rules, f *parley.Fields) {
	s, ok := raw.(string)
	if !ok {
		f.Add(name, "must be a string.")
		return
	}
	if !r.raw {
		s = strings.TrimSpace(s)
	}
	n := utf8.RuneCountInString(s)
	switch {
	case s == "" && r.required:
		f.Add(name, "is required.")
	case strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s):
		f.Add(name, "must not contain null characters or broken encoding.")
	case r.maxLength > 0 && n > r.maxLength:
		f.Add(name, "must not be greater than %d characters.", r.maxLength)
	case s == "" && !r.required && len(r.enum) == 0:
		v.SetString("")
	case n < r.minLength:
		f.Add(name, "must be at least %d characters.", r.minLength)
	case len(r.enum) > 0 && !contains(r.enum, s):
		f.Add(name, "must be one of: %s.", strings.Join(r.enum, ", "))
	case r.pattern != nil && !r.pattern.MatchString(s):
		f.Add(name, "must %s.", r.must)
	case r.format != "" && !formats[r.format].ok(s):
		f.Add(name, "must be a valid %s.", formats[r.format].name)
	default:
		v.SetString(s)
	}
}

// formats are the kinds of text that have a grammar.
var formats = map[string]struct {
	name string
	ok   func(string) bool
}{
	"http-url": {"URL", httpURL},
	"server-url": {"URL", func(s string) bool { // also of a WebSocket
		if rest, ok := strings.CutPrefix(s, "ws"); ok {
			s = "http" + rest
		}
		return httpURL(s)
	}},
	"origin": {"origin such as https://example.com", origin},
	"email": {"email address", func(s string) bool {
		a, err := mail.ParseAddress(s)
		return err == nil && a.Address == s && len(s) <= 255 &&
			strings.Contains(s[strings.LastIndexByte(s, '@')+1:], ".")
	}},
	"timezone": {"IANA time zone such as Europe/Berlin", parley.ValidTimezone},
	"country":  {"country code such as DE (ISO 3166-1 alpha-2)", func(s string) bool { return parley.CountryName(s) != "" }},
	"date": {"date such as 2026-01-31", func(s string) bool {
		_,
			err := time.Parse(time.DateOnly, s)
		return err == nil
	}},
	"phone": {"phone number in international format",
		func(s string) bool { _, ok := parley.NormalizePhone(s); return ok }},
	"uuid": {"UUID", func(s string) bool { return len(s) == 36 && strings.Count(s, "-") == 4 }},
}

func httpURL(s string) bool {
	// {param} and {{variable}} stand for text that comes later.
	u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(s))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return false
	}
	authority := strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(s), "https://"), "http://")
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		authority = authority[:i]
	}
	if strings.ContainsAny(authority, "{}") || strings.ContainsAny(s, " \t\r\n\"<>\\^`|") {
		return false
	}
	port := u.Port()
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n > 0 && n < 65536
}

func origin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && httpURL(s) && u.Path == "" && u.RawQuery == "" && u.Fragment == ""
}

func bindSlice(name string, raw any, v reflect.Value, r *rules, f *parley.Fields) {
	list, ok := raw.([]any)
	if !ok {
		f.Add(name, "must be an array.")
		return
	}
	if r.maxItems > 0 && len(list) > r.maxItems {
		f.Add(name, "must not have more than %d items.", r.maxItems)
		return
	}
	each := rules{maxLength: r.maxLength, format: r.format, enum: r.enum, required: true}
	out, failed := reflect.MakeSlice(v.Type(), 0, len(list)), len(*f)
	seen := map[any]bool{}
	for i, item := range list {
		at, elem := name+"."+strconv.Itoa(i), reflect.New(v.Type().Elem()).Elem()
		if obj, ok := item.(map[string]any); ok && elem.Kind() == reflect.Struct {
			if r.inline != "" && !unfold(obj, r.inline) {
				f.Add(at+"."+r.inline, "must be an object.")
			}
			setDefaults(elem)
			bindStruct(at+".", obj, elem, true, f)
		} else if item == nil {
			f.Add(at, "is required.")
		} else {
			bindValue(at, item, elem, &each, f)
		}
		if r.unique && elem.Comparable() {
			if seen[elem.Interface()] && !f.Has(at) {
				f.Add(at, "has a duplicate value.")
			}
			seen[elem.Interface()] = true
		}
		out = reflect.Append(out, elem)
	}
	if len(*f) == failed {
		v.Set(out)
	}
}

// unfold moves the fields of an object that obj holds under a name into obj, which keeps those it has itself. It is
// false where what obj holds there is no object.
func unfold(obj map[string]any, name string) bool {
	inner, ok := obj[name].(map[string]any)
	for k, v := range inner {
		if _, has := obj[k]; !has {
			obj[k] = v
		}
	}
	if ok {
		delete(obj, name)
	}
	return obj[name] == nil
}

func bindMap(name string, raw any, v reflect.Value, r *rules, f *parley.Fields) {
	obj, ok := raw.(map[string]any)
	// what PHP makes of an empty object
	if list, empty := raw.([]any); empty && len(list) == 0 && r.format == "variables" {
		ok = true
	}
	if !ok {
		f.Add(name, "must be an object.")
		return
	}
	if r.maxProperties > 0 && len(obj) > r.maxProperties {
		f.Add(name, "must not have more than %d entries.", r.maxProperties)
		return
	}
	if v.Type().Elem().Kind() == reflect.Interface {
		v.Set(reflect.ValueOf(obj))
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(obj))
	each := rules{raw: true, maxLength: 10_000}
	for _, k := range sortedKeys(obj) {
		elem, raw := reflect.New(v.Type().Elem()).Elem(), obj[k]
		if r.format == "variables" {
			raw = scalarText(raw)
		}
		switch at := name + "." + k; {
		case strings.TrimSpace(k) == "" || utf8.RuneCountInString(k) > 255 || strings.IndexByte(k, 0) >= 0:
			f.Add(name, "must have names of 1 to 255 characters.")
			continue
		case raw == nil:
			f.Add(at, "must be a string.")
		default:
			bindValue(at, raw, elem, &each, f)
		}
		out.SetMapIndex(reflect.ValueOf(strings.TrimSpace(k)), elem)
	}
	if vars, ok := out.Interface().(map[string]string); ok && r.format == "variables" {
		var wrong parley.Fields
		if parley.CheckVariables(vars, &wrong); len(wrong) > 0 {
			f.Add(name, "must not hold more than %d bytes altogether.", parley.MaxVariableBytes)
			return
		}
	}
	v.Set(out)
}

// scalarText is the text of a variable: a number as it was written, true, false, or nothing for null. Other values
// stay what they are.
func scalarText(raw any) any {
	switch v := raw.(type) {
	case nil:
		return ""
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return raw
}

// boolean reads true, false, 1 and 0, and the latter two in a string.
func boolean(raw any) (b, ok bool) {
	switch v := raw.(type) {
	case bool:
		return v, true
	case json.Number:
		return v == "1", v == "0" || v == "1"
	case string:
		v = strings.TrimSpace(v)
		return v == "1", v == "0" || v == "1"
	}
	return false, false
}

// integer reads a JSON number that is whole (5.0 is 5), or the digits of one in a string.
func integer(raw any) (int64, bool) {
	if text, ok := raw.(string); ok {
		text = strings.TrimSpace(text)
		i, err := strconv.ParseInt(text, 10, 64)
		return i, err == nil && text[0] != '+'
	}
	n, ok := raw.(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, true
	}
	x, err := strconv.ParseFloat(string(n), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) >= 1<<53 {
		return 0, false
	}
	return int64(x), true
}
