package document

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// plain reads a text file in whatever character set it is written.
func plain(b []byte) (*Text, error) {
	s, err := decodeText(b, "")
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
	return &Text{Sections: o.sections}, nil
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

// decodeText turns bytes into UTF-8. label is the character set that a header named, or "".
func decodeText(b []byte, label string) (string, error) {
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
			return "", Fail("The file is not a text file but %s: upload it as what it is, or save it as plain text.", m.what)
		}
	}
	if binary(b) {
		return "", Fail("The file is not a text file: save it as plain text (UTF-8) and upload it again.")
	}
	if utf8.Valid(b) {
		if bytes.Contains(b, []byte("\x1b$")) { // ISO-2022-JP is ASCII to the eye
			return decodeWith(japanese.ISO2022JP, b)
		}
		return string(b), nil
	}
	if e, name := charset.Lookup(label); e != nil && name != "utf-8" {
		return decodeWith(e, b)
	}
	// UTF-8 with a flaw
	if damaged := bytes.ToValidUTF8(b, nil); len(b)-len(damaged) <= len(b)/200 && multibyte(damaged) {
		return strings.ToValidUTF8(string(b), "\uFFFD"), nil
	}
	return decodeWith(guess(b), b)
}

func decodeWith(e encoding.Encoding, b []byte) (string, error) {
	out, err := e.NewDecoder().Bytes(b)
	if err != nil {
		return "", Fail("The file's characters could not be read: save it as plain text in UTF-8 and upload it again.")
	}
	return string(out), nil
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

// Guess is the likeliest of the older character sets for bytes that are no UTF-8.
func Guess(b []byte) encoding.Encoding { return guess(b) }

// guess picks the likeliest of the older character sets by what the bytes would say in each of them.
func guess(b []byte) encoding.Encoding {
	head := b[:min(len(b), 64<<10)]
	var best encoding.Encoding = charmap.Windows1252
	score := -1 << 30
	for _, e := range []encoding.Encoding{charmap.Windows1252, charmap.Windows1250, charmap.Windows1251,
		charmap.KOI8R, charmap.Windows1253, charmap.Windows1255, charmap.CodePage850,
		charmap.CodePage866, charmap.Macintosh, japanese.ShiftJIS, japanese.EUCJP, simplifiedchinese.GB18030,
		korean.EUCKR} {
		out, err := e.NewDecoder().Bytes(head)
		if err != nil || e == korean.EUCKR && !syllables(head) || e == japanese.EUCJP && !strings.ContainsFunc(string(out), kana) ||
			e == simplifiedchinese.GB18030 && !hanzi(head) || mixed(string(out)) {
			continue
		}
		if s := plausible(string(out)); s > score {
			best, score = e, s
		}
	}
	return best
}
