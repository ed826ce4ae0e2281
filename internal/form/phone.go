package form

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"parley/internal/parley"
)

// Phones puts E.164 in the place of the telephone numbers that people wrote into tree, in fields of struct type t: with
// the format phone, or the tag reads (phone; transfer, where extensions and sip: addresses stand too). National numbers
// are read as in country (parley.ReadPhone). What can't be read stays as it is, for the field's own rules to judge;
// the reasons are returned, by the fields' names.
func Phones(tree map[string]any, t reflect.Type, country string) parley.Fields {
	var why parley.Fields
	phones(tree, t, country, "", &why)
	return why
}

func phones(tree map[string]any, t reflect.Type, country, at string, why *parley.Fields) {
	for _, fd := range fieldsOf(t, "json") {
		name := at + fd.name
		switch v := tree[fd.name].(type) {
		case string:
			tree[fd.name] = fd.phone(v, country, name, why)
		case map[string]any:
			if deref(fd.typ).Kind() == reflect.Struct {
				phones(v, deref(fd.typ), country, name+".", why)
			}
		case []any:
			if fd.typ.Kind() != reflect.Slice {
				break
			}
			for i, item := range v {
				at := name + "." + strconv.Itoa(i)
				switch item := item.(type) {
				case string:
					v[i] = fd.phone(item, country, at, why)
				case map[string]any:
					if fd.typ.Elem().Kind() == reflect.Struct {
						phones(item, fd.typ.Elem(), country, at+".", why)
					}
				}
			}
		}
	}
}

// phone reads what a field holds.
func (r *rules) phone(text, country, name string, why *parley.Fields) string {
	if strings.TrimSpace(text) == "" || r.reads == "" {
		return text
	}
	if r.reads == "transfer" {
		if to, _, ok := parley.ReadTransferTarget(text, country); ok {
			return to
		}
	}
	e164, err := parley.ReadPhone(text, country)
	if err == nil {
		return e164
	}
	if help := parley.PhoneHelp(err); help != "" {
		why.AddText(name, help)
	}
	return text
}

// QueryPhones is Phones for the query parameters of t. A plus that was not escaped arrives as a space: digits alone are
// a whole number before they are a national one.
func QueryPhones(q url.Values, t reflect.Type, country string) {
	for _, fd := range fieldsOf(t, "query") {
		if fd.reads == "" || q.Get(fd.name) == "" {
			continue
		}
		text := q.Get(fd.name)
		for _, try := range []string{text, "+" + strings.TrimSpace(text)} {
			if e164, ok := parley.NormalizePhone(try); ok {
				text = e164
			}
		}
		if e164, err := parley.ReadPhone(text, country); err == nil {
			text = e164
		}
		q.Set(fd.name, text)
	}
}
