package tool

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"parley/internal/charset"
)

// text is an answer's body as valid UTF-8 of at most MaxAnswer bytes, what is to be said of its characters, and whether there is
// more of it. If the body is no text, it says just that.
func text(raw []byte, more bool, h http.Header) (body, note string, longer bool) {
	if more {
		raw = raw[:whole(raw)]
	}
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	s, note := decode(raw, h.Get("Content-Type"))
	encoding := h.Get("Content-Encoding") // one that was not asked for: what was is decoded already
	if encoding != "" && !strings.EqualFold(encoding, "identity") || !looksLikeText(s) {
		if len(raw) == 0 {
			return "", "", false
		}
		return binary(raw, more, media), "", false
	}
	short := cut(s, MaxAnswer)
	return short, note, more || len(short) < len(s)
}

// looksLikeText goes by the content: what an answer calls itself is often wrong.
func looksLikeText(s string) bool {
	return strings.HasPrefix(http.DetectContentType([]byte(s)), "text/") && !strings.ContainsRune(s, 0)
}

// binary says what it is that can't be shown.
func binary(raw []byte, more bool, media string) string {
	if media == "" || len(media) > 100 || strings.HasPrefix(media, "text/") {
		media = http.DetectContentType(raw)
	}
	if strings.HasPrefix(media, "text/") {
		media = "application/octet-stream"
	}
	size := fmt.Sprintf("%d bytes", len(raw))
	if more {
		size = "more than " + size
	}
	return fmt.Sprintf("[The answer is binary data (%s, %s) and can't be shown as text.]", media, size)
}

// Where a document says itself how it is encoded.
var declares = regexp.MustCompile(`(?i)^\s*<\?xml[^>]{0,100}encoding=["']([\w.:-]+)["']|<meta[^>]{0,200}charset=["']?([\w.:-]+)`)

// What the model is told of characters that may not be what was written.
const (
	damagedNote = "Some characters of the tool's answer can't be read; each is shown as \uFFFD."
	unsureNote  = "The tool's answer does not say its character set: its letters beyond ASCII may be wrong."
)

// decode is a text as valid UTF-8, and what is to be said of it: by its byte order mark, by the character set that its type or the
// text itself declares, and otherwise, if it can't be UTF-8, by what it would say in each set; Windows-1252, which holds Latin-1,
// where that tells nothing.
func decode(raw []byte, contentType string) (text, note string) {
	_, params, _ := mime.ParseMediaType(contentType)
	declared := params["charset"]
	if declared == "" {
		if m := declares.FindSubmatch(raw[:min(len(raw), 1024)]); m != nil {
			declared = string(m[1]) + string(m[2])
		}
	}
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		declared = "utf-16le"
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		declared = "utf-16be"
	}
	enc, err := htmlindex.Get(declared)
	name := "utf-8"
	if err == nil {
		name, _ = htmlindex.Name(enc)
	}
	switch { // the names of these two are often given without a look at the text
	case (name == "utf-8" || name == "windows-1252") && utf8.Valid(raw):
		enc = nil
	case name == "utf-8":
		broken, runes := foreign(raw)
		switch g := charset.Detect(raw); {
		case broken <= runes: // UTF-8 with a flaw
		case g.Sure:
			enc = g.Encoding
		case runes == 0:
			enc, note = charmap.Windows1252, unsureNote
		}
	}
	if enc != nil {
		if b, err := enc.NewDecoder().Bytes(raw); err == nil {
			raw = b
		}
	}
	text = strings.ToValidUTF8(strings.TrimPrefix(string(raw), "\ufeff"), "\uFFFD")
	if strings.ContainsRune(text, utf8.RuneError) {
		note = damagedNote
	}
	return text, note
}

// foreign counts the bytes of a text that can't be UTF-8, and the runes of more than one byte that are. In other sets some bytes
// look like a rune by chance.
func foreign(raw []byte) (broken, runes int) {
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		switch {
		case n > 1:
			runes++
		case r == utf8.RuneError:
			broken++
		}
		raw = raw[n:]
	}
	return broken, runes
}

// whole is the length of b without a rune that was cut off at its end.
func whole(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// cut shortens valid UTF-8 to at most n bytes, between runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
