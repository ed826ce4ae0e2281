package document

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	htmlcharset "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"parley/internal/charset"
)

// plain reads a text file in whatever character set it is written.
func plain(b []byte) (*Text, error) {
	s, warning, err := decodeText(b, "")
	if err != nil {
		return nil, err
	}
	var o outline
	for block := range strings.SplitSeq(blankLines(Clean(s)), "\n\n") {
		o.paragraph(block)
	}
	o.flush()
	if len(o.sections) == 0 {
		return nil, Fail("The file is empty: upload one that holds text.")
	}
	t := &Text{Sections: o.sections}
	if warning != "" {
		t.Warnings = append(t.Warnings, warning)
	}
	return t, nil
}

// blankLines trims lines' ends and makes every gap of empty lines one.
func blankLines(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	empty := 0
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n"[:1+min(empty, 1)])
		}
		empty = 0
		b.WriteString(line)
	}
	return b.String()
}

// magic are the beginnings of files that people take for text.
var magic = []struct{ prefix, what string }{
	{"%PDF-", "a PDF"}, {"PK\x03\x04", "a Word document or another packed file"},
	{"\xd0\xcf\x11\xe0", "an older Word or Office file"}, {"{\\rtf", "an RTF file"},
	{"\x89PNG", "a picture"}, {"\xff\xd8\xff", "a picture"}, {"GIF8", "a picture"}, {"\x1f\x8b", "a packed file"},
	{"\x7fELF", "a program"}, {"MZ", "a program"}, {"SQLite format 3", "a database"},
}

// decodeText turns bytes into UTF-8, with a warning if some of them could not be read, or only by guessing. label is the
// character set that a header named, or "".
func decodeText(b []byte, label string) (text, warning string, err error) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		b = b[3:]
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		return decodeWith(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), b)
	}
	if e := wideZeros(b); e != nil {
		return decodeWith(e, b)
	}
	for _, m := range magic {
		if bytes.HasPrefix(b, []byte(m.prefix)) && (m.prefix != "MZ" || bytes.IndexByte(b, 0) >= 0) {
			return "", "", Fail("The file is not a text file but %s: upload it as what it is, or save it as plain text.", m.what)
		}
	}
	if binary(b) {
		return "", "", Fail("The file is not a text file: save it as plain text (UTF-8) and upload it again.")
	}
	if utf8.Valid(b) {
		if bytes.Contains(b, []byte("\x1b$")) { // ISO-2022-JP is ASCII to the eye
			return decodeWith(japanese.ISO2022JP, b)
		}
		return string(b), "", nil
	}
	switch e, name := htmlcharset.Lookup(label); {
	case e == nil || name == "utf-8":
	case name == "windows-1252": // servers call everything Latin-1
		if g := charset.Detect(b); g.Sure {
			e = g.Encoding
		}
		return decodeWith(e, b)
	default:
		return decodeWith(e, b)
	}
	// UTF-8 with a flaw
	if damaged := bytes.ToValidUTF8(b, nil); len(b)-len(damaged) <= len(b)/200 && multibyte(damaged) {
		return decodeWith(encoding.Nop, b)
	}
	return decodeGuessed(b)
}

// decodeGuessed reads a text in the set that it is likeliest in. Where that is not sure, a few signs in a long text of ASCII are
// read as the commonest set has them, with a warning; else the text is refused, since it would be read as what it isn't.
func decodeGuessed(b []byte) (text, warning string, err error) {
	g := charset.Detect(b)
	switch other := beyond(b); {
	case g.Sure:
		return decodeWith(g.Encoding, b)
	case other <= 20 && other <= len(b)/50:
		text, _, err := decodeWith(charmap.Windows1252, b)
		return text, fmt.Sprintf("It can't be told for sure which characters %d of the file's bytes stand for. "+
			"If some look wrong, save the file as plain text in UTF-8 and upload it again.", other), err
	case g.Or == "":
		return "", "", Fail("The file's character set can't be told: save it as plain text in UTF-8 and upload it again.")
	}
	return "", "", Fail("The file's character set can't be told for sure (%s or %s): save it as plain text in UTF-8 and upload it again.",
		g.Name, g.Or)
}

// beyond is how many bytes are not ASCII.
func beyond(b []byte) (n int) {
	for _, c := range b {
		if c >= 0x80 {
			n++
		}
	}
	return n
}

// maxDamaged is the share of characters that can't be read, of which a text is still one.
const maxDamaged = 0.02

// decodeWith reads bytes in a character set. Characters that it doesn't have become U+FFFD, with a warning.
func decodeWith(e encoding.Encoding, b []byte) (text, warning string, err error) {
	out, err := e.NewDecoder().Bytes(b)
	if err != nil {
		return "", "", Fail("The file's characters could not be read: save it as plain text in UTF-8 and upload it again.")
	}
	text = strings.ToValidUTF8(string(out), "\uFFFD")
	n := strings.Count(text, "\uFFFD")
	switch {
	case n == 0:
		return text, "", nil
	case float64(n) > maxDamaged*float64(utf8.RuneCountInString(text)):
		return "", "", Fail("Many of the file's characters are damaged: save it as plain text in UTF-8 and upload it again.")
	}
	return text, fmt.Sprintf("%d characters of the file are damaged and were replaced by \uFFFD: "+
		"save it as plain text in UTF-8 and upload it again.", n), nil
}

func multibyte(b []byte) bool {
	n := 0
	for _, c := range b {
		if c >= 0xc0 {
			n++
		}
	}
	return n > 2
}

// wideZeros recognises UTF-16 without a byte order mark by the zeros of its Latin letters, spaces and ends of lines.
func wideZeros(b []byte) encoding.Encoding {
	head := b[:min(len(b), 4096)&^1]
	var zeros [2]int
	for i, c := range head {
		if c == 0 {
			zeros[i&1]++
		}
	}
	half := len(head) / 2
	switch {
	case half == 0:
	case zeros[1] >= max(1, half/20) && zeros[0] == 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case zeros[0] >= max(1, half/20) && zeros[1] == 0:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// binary says whether bytes are no text: a zero, or more control characters than a text has.
func binary(b []byte) bool {
	control := 0
	for _, c := range b {
		if c == 0 {
			return true
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b {
			control++
		}
	}
	return control > len(b)/200+2
}
