package store

import (
	"bytes"
	"strconv"
	"unicode/utf16"

	"github.com/uptrace/bun/schema"

	"parley/internal/parley"
)

// literal writes texts and JSON into queries so that every engine takes them, whatever they hold: a reply that can't
// be stored would be thought again. Where text comes in it is cleaned (parley.CleanText); this is the net below.
type literal struct{ schema.Dialect }

// AppendString leaves out what no column of text holds.
func (d literal) AppendString(b []byte, s string) []byte {
	return d.Dialect.AppendString(b, parley.CleanText(s))
}

// AppendJSON writes JSON as a plain literal, without the escapes that PostgreSQL refuses in it: NUL, and halves of
// surrogate pairs.
func (d literal) AppendJSON(b, doc []byte) []byte {
	doc = storable(doc)
	b = append(b, '\'')
	for _, c := range doc {
		if c == '\'' {
			b = append(b, '\'')
		}
		b = append(b, c)
	}
	return append(b, '\'')
}

// storable is a JSON document without what PostgreSQL refuses: invalid UTF-8 and lone surrogates become U+FFFD, NUL
// goes.
func storable(doc []byte) []byte {
	doc = bytes.ToValidUTF8(bytes.ReplaceAll(doc, []byte{0}, nil), []byte("\uFFFD"))
	if !bytes.Contains(doc, []byte(`\u`)) {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for len(doc) > 0 {
		r, escaped := escape(doc)
		low, more := escape(doc[min(6, len(doc)):])
		n := 1
		switch {
		case !escaped && doc[0] == '\\' && len(doc) > 1: // what is escaped is no escape itself
			n = 2
			out = append(out, doc[:n]...)
		case !escaped:
			out = append(out, doc[0])
		case r == 0:
			n = 6
		case !utf16.IsSurrogate(r):
			n = 6
			out = append(out, doc[:n]...)
		case more && utf16.DecodeRune(r, low) != '\uFFFD':
			n = 12
			out = append(out, doc[:n]...)
		default:
			n = 6
			out = append(out, `\ufffd`...)
		}
		doc = doc[n:]
	}
	return out
}

// escape is the \uXXXX that a text begins with.
func escape(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
