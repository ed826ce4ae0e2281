package pdf

import (
	"bytes"
	"strconv"
)

// The objects of a PDF file (ISO 32000-1, 7.3) are these, and int, float64, bool, string (bytes) and nil.
type (
	name    string
	keyword string // what is none of the others: an operator, or a delimiter
	dict    map[name]any
	array   []any
	ref     struct{ num, gen int }
	stream  struct {
		dict
		raw []byte // as in the file, decrypted
		ref ref
	}
)

// end is the token after the last one.
const end keyword = ""

// maxDepth bounds how deep arrays and dictionaries are nested.
const maxDepth = 64

// lexer cuts bytes into tokens and objects. It accepts everything: what makes no sense comes out as a keyword.
type lexer struct {
	b    []byte
	i    int
	flat bool // a page's content, which holds no references
}

// class says for each byte whether it is white space (1) or a delimiter (2).
var class = func() (c [256]byte) {
	for _, b := range []byte("\x00\t\n\f\r ") {
		c[b] = 1
	}
	for _, b := range []byte("()<>[]{}/%") {
		c[b] = 2
	}
	return c
}()

func (l *lexer) space() {
	for l.i < len(l.b) {
		switch c := l.b[l.i]; {
		case class[c] == 1:
			l.i++
		case c == '%':
			for l.i < len(l.b) && l.b[l.i] != '\n' && l.b[l.i] != '\r' {
				l.i++
			}
		default:
			return
		}
	}
}

// token reads a number, name, string or keyword.
func (l *lexer) token() any {
	l.space()
	if l.i >= len(l.b) {
		return end
	}
	switch c := l.b[l.i]; c {
	case '/':
		l.i++
		return l.name()
	case '(':
		l.i++
		return l.literal()
	case '<', '>':
		l.i++
		if l.i < len(l.b) && l.b[l.i] == c {
			l.i++
			return keyword([]byte{c, c})
		}
		if c == '<' {
			return l.hex()
		}
		return keyword(">")
	case ')', '[', ']', '{', '}':
		l.i++
		return keyword([]byte{c})
	}
	start := l.i
	for l.i < len(l.b) && class[l.b[l.i]] == 0 {
		l.i++
	}
	return number(l.b[start:l.i])
}

// number reads what looks like a number, and leaves the rest a keyword.
func number(b []byte) any {
	switch c := b[0]; {
	case c != '+' && c != '-' && c != '.' && (c < '0' || c > '9'):
		return keyword(b)
	case len(b) < 10:
		if n, ok := integer(b); ok {
			return n
		}
	}
	for len(b) > 1 && b[0] == '-' && b[1] == '-' { // some writers' negative of a negative
		b = b[1:]
	}
	if n, err := strconv.Atoi(string(b)); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(string(b), 64); err == nil {
		return x
	}
	return keyword(b)
}

func integer(b []byte) (n int, ok bool) {
	sign := 1
	if b[0] == '-' || b[0] == '+' {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return sign * n, len(b) > 0
}

func (l *lexer) name() name {
	start, escaped := l.i, false
	for l.i < len(l.b) && class[l.b[l.i]] == 0 {
		escaped = escaped || l.b[l.i] == '#'
		l.i++
	}
	raw := l.b[start:l.i]
	if !escaped {
		return name(raw)
	}
	var out []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] == '#' && i+2 < len(raw) && unhex(raw[i+1]) >= 0 && unhex(raw[i+2]) >= 0 {
			out = append(out, byte(unhex(raw[i+1])<<4|unhex(raw[i+2])))
			i += 2
		} else {
			out = append(out, raw[i])
		}
	}
	return name(out)
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func (l *lexer) hex() string {
	var out []byte
	half := -1
	for l.i < len(l.b) {
		c := l.b[l.i]
		l.i++
		if c == '>' {
			break
		}
		v := unhex(c)
		switch {
		case v < 0:
		case half < 0:
			half = v
		default:
			out, half = append(out, byte(half<<4|v)), -1
		}
	}
	if half >= 0 {
		out = append(out, byte(half<<4))
	}
	return string(out)
}

func (l *lexer) literal() string {
	var out []byte
	for depth := 1; l.i < len(l.b); {
		c := l.b[l.i]
		l.i++
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return string(out)
			}
		case '\r': // an end of line is \n however it is written
			if l.i < len(l.b) && l.b[l.i] == '\n' {
				l.i++
			}
			c = '\n'
		case '\\':
			out = l.escape(out)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

func (l *lexer) escape(out []byte) []byte {
	if l.i >= len(l.b) {
		return out
	}
	c := l.b[l.i]
	l.i++
	switch c {
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case '\r':
		if l.i < len(l.b) && l.b[l.i] == '\n' {
			l.i++
		}
		return out
	case '\n':
		return out
	}
	if c < '0' || c > '7' {
		return append(out, c)
	}
	v := int(c - '0')
	for n := 0; n < 2 && l.i < len(l.b) && l.b[l.i] >= '0' && l.b[l.i] <= '7'; n++ {
		v = v<<3 | int(l.b[l.i]-'0')
		l.i++
	}
	return append(out, byte(v))
}

// object reads an object, or the keyword that stands in its place. A stream's data is left to whoever knows where it
// ends.
func (l *lexer) object(depth int) any {
	tok := l.token()
	switch t := tok.(type) {
	case keyword:
		switch t {
		case "[":
			return l.array(depth + 1)
		case "<<":
			return l.dict(depth + 1)
		case "true":
			return true
		case "false":
			return false
		case "null":
			return nil
		}
	case int:
		if t < 0 || l.flat {
			return t
		}
		start := l.i // is it the beginning of "12 0 R"?
		if gen, ok := l.token().(int); ok && gen >= 0 {
			if l.token() == keyword("R") {
				return ref{t, gen}
			}
		}
		l.i = start
	}
	return tok
}

func (l *lexer) array(depth int) array {
	a := array{}
	for {
		v := l.object(depth)
		switch v {
		case keyword("]"), end:
			return a
		}
		if depth < maxDepth {
			a = append(a, v)
		}
	}
}

func (l *lexer) dict(depth int) dict {
	d := dict{}
	for {
		k := l.token()
		switch k {
		case keyword(">>"), end:
			return d
		}
		key, ok := k.(name)
		if !ok {
			if k == keyword("endobj") || k == keyword("stream") { // never closed
				l.i -= len(k.(keyword))
				return d
			}
			continue
		}
		v := l.object(depth)
		if v == keyword(">>") || v == end {
			return d
		}
		if depth < maxDepth {
			d[key] = v
		}
	}
}

// body is what follows "stream": n bytes, or as many as there are before "endstream" where n can't be right.
func (l *lexer) body(n int) []byte {
	if l.i < len(l.b) && l.b[l.i] == '\r' {
		l.i++
	}
	if l.i < len(l.b) && l.b[l.i] == '\n' {
		l.i++
	}
	rest := l.b[l.i:]
	if n >= 0 && n <= len(rest) && bytes.HasPrefix(bytes.TrimLeft(rest[n:min(n+32, len(rest))], "\x00\t\n\f\r "),
		[]byte("endstream")) {
		l.i += n
		return rest[:n]
	}
	if k := bytes.Index(rest, []byte("endstream")); k >= 0 {
		rest = rest[:k]
		if t, ok := bytes.CutSuffix(rest, []byte("\r\n")); ok {
			rest = t
		} else if t, ok := bytes.CutSuffix(rest, []byte("\n")); ok {
			rest = t
		}
	}
	l.i += len(rest)
	return rest
}
