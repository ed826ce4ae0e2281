package sip

import (
	"bytes"
	"slices"
	"strconv"
)

// Far ends write messages in every way that the grammar allows (RFC 3261, section 25), and in some that it doesn't. The
// library's parser reads one. tidy turns the former into the latter, once, before anything else reads a message.

const (
	maxHeaders = 1000 // of a message
	maxValues  = 200  // in a list, and parameters of a value
)

// tidy appends to dst a message as the parser reads it: each header on one line, without the blanks that the grammar
// lets be left out, the names of parameters in lower case, every Via, Route and Contact on a line of its own, and the
// length of the body. What follows no grammar stays as it came. It returns nil for what has no headers, no end of them, or too many.
func tidy(dst, data []byte) []byte {
	data = bytes.TrimLeft(data, " \t\r\n\x00")
	head, body := headOf(data)
	if head == nil {
		return nil
	}
	lines := lineReader{rest: head, bare: bareLines(data)}
	first, _ := lines.physical()
	if part, _ := cutBlank(first); !isVersion(part) && !isVersion(lastWord(first)) { // it goes on in the next line
		lines.rest = head
		first, _ = lines.next()
	}
	dst = startLine(dst, first)
	measured := false
	for n := 0; ; n++ {
		line, more := lines.next()
		if !more {
			break
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		measured = measured || ok && isLength(trim(name)) && len(trim(value)) > 0
		if dst, ok = header(dst, line); !ok || n == maxHeaders {
			return nil
		}
	}
	if !measured {
		dst = append(strconv.AppendInt(append(dst, "Content-Length: "...), int64(len(body)), 10), "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return append(dst, body...)
}

// bareLines reports whether the lines of a message end with LF alone. The first line tells.
func bareLines(data []byte) bool {
	i := bytes.IndexByte(data, '\n')
	return i == 0 || i > 0 && data[i-1] != '\r'
}

// headOf splits a message at the empty line that ends its headers. Without one it has no body, provided that it ends
// with a whole line; otherwise head is nil.
func headOf(data []byte) (head, body []byte) {
	if end, after := headEnd(data); end >= 0 {
		return data[:end], data[after:]
	}
	if bytes.HasSuffix(data, []byte("\n")) {
		return bytes.TrimRight(data, "\r\n"), nil
	}
	return nil, nil
}

// headEnd is where a message's headers end, and where its body begins; -1 while there is no empty line.
func headEnd(data []byte) (end, body int) {
	if !bareLines(data) {
		end = bytes.Index(data, []byte("\r\n\r\n"))
		return end, end + 4
	}
	for at := 0; ; {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return -1, -1
		}
		switch at += i + 1; {
		case bytes.HasPrefix(data[at:], []byte("\n")):
			return at - 1, at + 1
		case bytes.HasPrefix(data[at:], []byte("\r\n")):
			return at - 1, at + 2
		}
	}
}

// lineReader reads the lines of a message's head.
type lineReader struct {
	rest []byte
	bare bool // they end with LF alone
}

// physical is the next line as it was sent.
func (l *lineReader) physical() (line []byte, more bool) {
	if len(l.rest) == 0 {
		return nil, false
	}
	if l.bare {
		line, l.rest, _ = bytes.Cut(l.rest, []byte("\n"))
		return bytes.TrimRight(line, "\r"), true
	}
	line, l.rest, _ = bytes.Cut(l.rest, []byte("\r\n"))
	return line, true
}

// next is the next header with the lines that continue it (section 7.3.1); their line ends are still in it.
func (l *lineReader) next() (line []byte, more bool) {
	from := l.rest
	if line, more = l.physical(); !more {
		return nil, false
	}
	end := len(line)
	for len(l.rest) > 0 && (l.rest[0] == ' ' || l.rest[0] == '\t') {
		at := len(from) - len(l.rest)
		goesOn, _ := l.physical()
		end = at + len(goesOn)
	}
	return from[:end], true
}

// startLine writes a message's first line with one blank between its parts, and a blank before a reason that is missing.
func startLine(dst, line []byte) []byte {
	line = trim(line)
	first, rest := cutBlank(line)
	if isVersion(first) {
		code, reason := cutBlank(rest)
		dst = append(upper(dst, first), ' ')
		dst = append(append(dst, code...), ' ')
		return append(unfold(dst, reason), "\r\n"...)
	}
	version := lastWord(rest)
	if !isVersion(version) {
		return append(unfold(dst, line), "\r\n"...)
	}
	uri := trim(rest[:len(rest)-len(version)])
	if n := len(uri); n > 2 && uri[0] == '<' && uri[n-1] == '>' {
		uri = trim(uri[1 : n-1])
	}
	dst = append(append(dst, first...), ' ')
	dst = append(address(dst, uri), ' ')
	return append(upper(dst, version), "\r\n"...)
}

// lastWord is what comes after the last blank.
func lastWord(s []byte) []byte {
	s = bytes.TrimRight(s, " \t\r\n")
	return s[bytes.LastIndexAny(s, " \t\r\n")+1:]
}

func isVersion(s []byte) bool {
	return len(s) > 4 && bytes.EqualFold(s[:4], []byte("SIP/"))
}

// form is how a header's value is written.
type form int

const (
	plainForm  form = iota
	viaForm         // one per line
	hopForm         // addresses, one per line
	personForm      // one address
	peopleForm      // several addresses
	cseqForm        // number and method
	proofForm       // of passwords, and what asks for them
	valueForm       // a value and parameters
	numberForm      // left out unless it is one
)

// forms are those of the headers that this server reads, by name in lower case.
var forms = map[string]form{
	"via": viaForm, "v": viaForm,
	"contact": hopForm, "m": hopForm, "route": hopForm, "record-route": hopForm,
	"from": personForm, "f": personForm, "to": personForm, "t": personForm,
	"refer-to": personForm, "r": personForm, "referred-by": personForm, "b": personForm,
	"p-asserted-identity": peopleForm, "p-preferred-identity": peopleForm, "remote-party-id": peopleForm,
	"p-called-party-id": peopleForm, "diversion": peopleForm, "history-info": peopleForm,
	"cseq":             cseqForm,
	"www-authenticate": proofForm, "proxy-authenticate": proofForm,
	"authorization": proofForm, "proxy-authorization": proofForm,
	"content-type": valueForm, "c": valueForm, "session-expires": valueForm, "x": valueForm, "min-se": valueForm,
	"event": valueForm, "o": valueForm, "subscription-state": valueForm, "replaces": valueForm,
	"max-forwards": numberForm,
}

// formOf is the form of a header.
func formOf(name []byte) form {
	var low [24]byte
	if len(name) > len(low) {
		return plainForm
	}
	return forms[string(lower(low[:0], name))]
}

// header writes one header. A line without a name, and a header that says nothing where it would have to, are left out.
// It is false for a list that is too long.
func header(dst, line []byte) (out []byte, ok bool) {
	name, value, named := bytes.Cut(line, []byte(":"))
	if name = trim(name); !named || len(name) == 0 {
		return dst, true
	}
	value = trim(value)
	kind := formOf(name)
	switch {
	case len(value) == 0 && (kind != plainForm || isLength(name)),
		kind == numberForm && (len(value) > 9 || len(bytes.Trim(value, "0123456789")) > 0):
		return dst, true
	case kind == viaForm, kind == hopForm:
		return list(dst, name, value, kind)
	case kind == proofForm:
		return digests(dst, name, value), true
	}
	dst = append(append(dst, name...), ": "...)
	switch kind {
	case personForm:
		dst = person(dst, value, false)
	case peopleForm:
		dst = people(dst, value)
	case cseqForm:
		dst = cseq(dst, value)
	case valueForm:
		at := parametersAt(value)
		dst = parameters(without(dst, value[:at]), value[at:], false)
	default:
		dst = unfold(dst, value)
	}
	return append(dst, "\r\n"...), true
}

// isLength reports whether a header has the length of the body.
func isLength(name []byte) bool {
	return bytes.EqualFold(name, []byte("Content-Length")) || bytes.EqualFold(name, []byte("l"))
}

// list writes the elements of a list, each as a header of its own.
func list(dst, name, value []byte, kind form) (out []byte, ok bool) {
	for n := 0; value != nil; n++ {
		if n == maxValues {
			return dst, false
		}
		var one []byte
		if one, value = cutList(value); len(one) == 0 {
			continue
		}
		dst = append(append(dst, name...), ": "...)
		if kind == viaForm {
			dst = via(dst, one)
		} else {
			dst = person(dst, one, true)
		}
		dst = append(dst, "\r\n"...)
	}
	return dst, true
}

// cseq writes a CSeq.
func cseq(dst, value []byte) []byte {
	i := slices.IndexFunc(value, func(c byte) bool { return c < '0' || c > '9' })
	if i <= 0 {
		return unfold(dst, value)
	}
	dst = append(append(dst, value[:i]...), ' ')
	return append(dst, trim(value[i:])...)
}
