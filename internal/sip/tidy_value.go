package sip

import (
	"bytes"
	"strings"
)

// The values of headers, as tidy writes them. A header that goes on in further lines still has their ends in it: they
// count as blanks.

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func trim(s []byte) []byte { return bytes.Trim(s, " \t\r\n") }

// cutBlank splits a text at its first blanks.
func cutBlank(s []byte) (first, rest []byte) {
	i := bytes.IndexAny(s, " \t\r\n")
	if i < 0 {
		return s, nil
	}
	return s[:i], trim(s[i:])
}

func lower(dst, s []byte) []byte {
	for _, c := range s {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func upper(dst, s []byte) []byte {
	for _, c := range s {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// unfold writes a text with a blank for each end of a line and the blanks around it.
func unfold(dst, s []byte) []byte {
	for len(s) > 0 {
		i := bytes.IndexAny(s, "\r\n")
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, bytes.TrimRight(s[:i], " \t")...)
		if s = bytes.TrimLeft(s[i:], " \t\r\n"); len(s) > 0 {
			dst = append(dst, ' ')
		}
	}
	return dst
}

// without writes a text without its blanks.
func without(dst, s []byte) []byte {
	for _, c := range s {
		if !blank(c) {
			dst = append(dst, c)
		}
	}
	return dst
}

// find is the place of the first of some bytes that is not in quotes, nor, if angled, in angle brackets; -1: there is
// none. A quote that is never closed hides nothing.
func find(s []byte, angled bool, of string) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '"' {
			if end := quoteEnd(s[i:]); end > 0 {
				i += end
				continue
			}
			j := bytes.IndexAny(s[i+1:], of)
			if j < 0 {
				return -1
			}
			return i + 1 + j
		}
		if strings.IndexByte(of, c) >= 0 {
			return i
		}
		if angled && c == '<' {
			end := bytes.IndexByte(s[i:], '>')
			if angled = end > 0; angled {
				i += end
			}
		}
	}
	return -1
}

// quoteEnd is where the quoted text that s begins with ends; 0 if it doesn't.
func quoteEnd(s []byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return 0
}

// cutList splits a list after its first element; rest is nil after the last.
func cutList(s []byte) (first, rest []byte) {
	i := find(s, true, ",")
	if i < 0 {
		return trim(s), nil
	}
	return trim(s[:i]), s[i+1:]
}

// parametersAt is where the parameters of a value begin.
func parametersAt(s []byte) int {
	if i := find(s, true, ";"); i >= 0 {
		return i
	}
	return len(s)
}

// parameters writes those that s begins with: ;name=value;name. What comes before the first one stays. A via's lose
// their quotes, which the parser takes amiss there; one that can't be without them is left out.
func parameters(dst, s []byte, via bool) []byte {
	i := find(s, false, ";")
	if i < 0 {
		return unfold(dst, trim(s))
	}
	dst, s = unfold(dst, trim(s[:i])), s[i:]
	for n := 0; len(s) > 0; n++ {
		if n == maxValues {
			return unfold(dst, s)
		}
		s = s[1:]
		one := s
		if i := find(s, false, ";"); i >= 0 {
			one, s = s[:i], s[i:]
		} else {
			s = nil
		}
		name, value, has := bytes.Cut(one, []byte("="))
		name, value = trim(name), trim(value)
		if len(name) == 0 {
			continue
		}
		if via && len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
			if value = value[1 : len(value)-1]; bytes.ContainsAny(value, "\"\\;=,\r\n") {
				continue
			}
		}
		dst = lower(append(dst, ';'), name)
		if has {
			dst = unfold(append(dst, '='), value)
		}
	}
	return dst
}

// via writes one Via.
func via(dst, s []byte) []byte {
	i := bytes.IndexByte(s, '/')
	j := i + 1 + bytes.IndexByte(s[i+1:], '/')
	if i < 0 || j == i {
		return unfold(dst, s)
	}
	transport, rest := cutBlank(trim(s[j+1:]))
	if len(rest) == 0 {
		return unfold(dst, s)
	}
	dst = append(upper(dst, trim(s[:i])), '/')
	dst = append(append(dst, trim(s[i+1:j])...), '/')
	dst = append(upper(dst, transport), ' ')
	at := parametersAt(rest)
	dst = bytes.TrimSuffix(without(dst, rest[:at]), []byte(":"))
	return parameters(dst, rest[at:], true)
}

// people writes a list of persons on one line.
func people(dst, s []byte) []byte {
	first := true
	for n := 0; s != nil && n < maxValues; n++ {
		var one []byte
		if one, s = cutList(s); len(one) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = person(dst, one, false)
	}
	return dst
}

// person writes an address with a name before it and parameters after it. nameless leaves out a name that the parser
// can't read where lists are allowed.
func person(dst, s []byte, nameless bool) []byte {
	from := find(s, false, "<")
	if from < 0 {
		return bare(dst, s)
	}
	end := bytes.IndexByte(s[from:], '>')
	if end < 0 {
		return unfold(dst, s)
	}
	if name := trim(s[:from]); len(name) > 0 && !(nameless && bytes.ContainsAny(name, `\,`)) {
		dst = append(unfold(dst, name), ' ')
	}
	dst = append(dst, '<')
	dst = address(dst, trim(s[from+1:from+end]))
	dst = append(dst, '>')
	return parameters(dst, s[from+end+1:], false)
}

// bare writes a person without angle brackets. After a name in quotes they are put where they are missing.
func bare(dst, s []byte) []byte {
	at := parametersAt(s)
	uri := trim(s[:at])
	if end := quoteEnd(s); s[0] == '"' && end > 0 && end < at {
		dst = append(unfold(dst, s[:end+1]), " <"...)
		dst = append(address(dst, trim(s[end+1:at])), '>')
	} else {
		dst = address(dst, uri)
	}
	return parameters(dst, s[at:], false)
}

// address writes a URI. One of a number or a user at a host gets the scheme that it lacks.
func address(dst, s []byte) []byte {
	at := bytes.IndexByte(s, '@')
	if at > 0 && !hasScheme(s) {
		dst = append(dst, "sip:"...)
	}
	end := len(s)
	if i := bytes.IndexByte(s[at+1:], '?'); i >= 0 {
		end = at + 1 + i
	}
	from := end
	if i := bytes.IndexByte(s[at+1:end], ';'); i >= 0 {
		from = at + 1 + i
	}
	host := trim(s[:from])
	if n := len(host); n > 1 && host[n-1] == ':' && bytes.IndexByte(host, ':') < n-1 { // an empty port
		host = host[:n-1]
	}
	dst = unfold(dst, host)
	dst = parameters(dst, s[from:end], true)
	return append(dst, s[end:]...)
}

// hasScheme reports whether a URI begins with a scheme.
func hasScheme(s []byte) bool {
	for i, c := range s {
		switch {
		case c == ':':
			return i > 0
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return false
}

// digests writes the credentials or challenges of a header, each on a line of its own.
func digests(dst, name, s []byte) []byte {
	scheme, rest := cutBlank(s)
	dst = append(append(dst, name...), ": "...)
	if !bytes.EqualFold(scheme, []byte("Digest")) {
		return append(unfold(dst, s), "\r\n"...)
	}
	dst = append(dst, "Digest"...)
	separator := " "
	for rest != nil {
		one := rest
		if i := find(rest, false, ","); i >= 0 {
			one, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		key, value, ok := bytes.Cut(one, []byte("="))
		key, value = trim(key), trim(value)
		if next, more := cutBlank(key); len(more) > 0 && bytes.EqualFold(next, []byte("Digest")) { // another one begins
			dst = append(append(append(dst, "\r\n"...), name...), ": Digest"...)
			key, separator = more, " "
		}
		if !ok || !isToken(key) {
			continue
		}
		dst = append(lower(append(dst, separator...), key), '=')
		separator = ", "
		if len(value) > 0 && value[0] == '"' || isToken(value) {
			dst = unfold(dst, value)
		} else {
			dst = append(unfold(append(dst, '"'), value), '"')
		}
	}
	return append(dst, "\r\n"...)
}

// isToken reports whether a text has only characters that the digest's parser takes outside quotes.
func isToken(s []byte) bool {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return len(s) > 0
}
