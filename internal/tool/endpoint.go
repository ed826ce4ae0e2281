package tool

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"parley/internal/parley"
)

// endpoint is the URL of a call, and which arguments it took. Only the path and the query of the template are filled
// in: scheme and host are the template's own, whatever the values hold. A fragment is never sent.
func endpoint(t *parley.Tool, values map[string]any, vars map[string]string) (*url.URL, map[string]bool, error) {
	template, _, _ := strings.Cut(strings.TrimSpace(t.Endpoint), "#")
	scheme, rest, ok := strings.Cut(template, "://")
	if !ok {
		return nil, nil, errors.New("its endpoint is not an http or https URL")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if strings.ContainsAny(rest[:end], "{}") {
		return nil, nil, errors.New("its endpoint has a placeholder in the host; only path and query may have one")
	}
	u, err := url.Parse(scheme + "://" + rest[:end])
	if err != nil || u.Host == "" {
		return nil, nil, errors.New("its endpoint is not an http or https URL")
	}
	path, query, _ := strings.Cut(rest[end:], "?")
	f := filling{names: names(t, values), values: values, vars: vars, used: map[string]bool{}}
	if u.RawPath, err = f.path(path); err != nil {
		return nil, nil, err
	}
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil || u.EscapedPath() != u.RawPath {
		return nil, nil, errors.New("its endpoint is not valid")
	}
	u.RawQuery = f.fill(query, url.QueryEscape)
	return u, f.used, nil
}

// filling fills a template in.
type filling struct {
	names  []string // of the parameters
	values map[string]any
	vars   map[string]string
	used   map[string]bool // the arguments that the template took
}

// path fills in a path, segment by segment, so that each value stays within the segment in which its placeholder
// stands.
func (f *filling) path(template string) (string, error) {
	segments := strings.Split(template, "/")
	for i, s := range segments {
		for _, tk := range f.tokens(s) {
			// would name another resource: DELETE /users/ for /users/{id}
			if tk.kind == argument && plain(f.values[tk.text]) == "" {
				return "", fmt.Errorf("the argument %s must not be empty", tk.text)
			}
		}
		filled := f.fill(s, url.PathEscape)
		if filled != s && leaves(filled) {
			return "", errors.New("an argument or variable must not lead to another path (. or ..)")
		}
		segments[i] = filled
	}
	return strings.Join(segments, "/"), nil
}

// leaves says whether a filled-in segment, or a part of it where a server takes an escaped slash for a slash, is a
// dot segment (RFC 3986 section 3.3).
func leaves(segment string) bool {
	s, err := url.PathUnescape(segment)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(s, func(c rune) bool { return c == '/' || c == '\\' }),
		func(part string) bool {
			part, _, _ = strings.Cut(part, ";") // some servers drop what follows a semicolon before they look for dots
			return part == "." || part == ".."
		})
}

// fill replaces the placeholders of a part of the endpoint by escaped values. A variable without a value is empty.
func (f *filling) fill(template string, escape func(string) string) string {
	var b strings.Builder
	for _, tk := range f.tokens(template) {
		switch tk.kind {
		case literal:
			b.WriteString(tidy(tk.text))
		case variable:
			b.WriteString(escape(parley.Render(tk.text, f.vars)))
		case argument:
			f.used[tk.text] = true
			b.WriteString(escape(plain(f.values[tk.text])))
		}
	}
	return b.String()
}

type kind int

const (
	literal  kind = iota
	variable      // {{name}}, with its braces
	argument      // the name of a parameter
)

type token struct {
	kind kind
	text string
}

// tokens cuts a template up, in one pass, so that no value is ever looked at for placeholders. Everything but a
// placeholder is literal: a {name} that the schema does not have, and {{…}} without a name in it, as in parley.Render.
func (f *filling) tokens(template string) []token {
	var list []token
	add := func(k kind, n int, text string) {
		if n > 0 {
			list = append(list, token{k, text})
			template = template[n:]
		}
	}
	for template != "" {
		i := strings.IndexByte(template, '{')
		if i < 0 {
			add(literal, len(template), template)
			break
		}
		add(literal, i, template[:i])
		if strings.HasPrefix(template, "{{") {
			n := 2 // as much as Render would pass over
			if j := strings.Index(template, "}}"); j > 0 && parley.Render(template[:j+2], nil) == "" {
				n = j + 2
				add(variable, n, template[:n])
			} else {
				add(literal, n, template[:n])
			}
			continue
		}
		j := strings.IndexByte(template, '}')
		if j > 0 && slices.Contains(f.names, template[1:j]) {
			add(argument, j+1, template[1:j])
		} else {
			add(literal, 1, template[:1])
		}
	}
	return list
}

// tidy escapes what may not stand in a URL, so that the rest of it is sent exactly as it was put together.
func tidy(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("-._~!$&'()*+,;=:@/?[]", c) >= 0,
			c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
