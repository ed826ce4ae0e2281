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
)

// text is an answer's body as valid UTF-8 of at most MaxAnswer bytes, and whether there is more of it. If the body is
// no text, it says just that.
func text(raw []byte, more bool, h http.Header) (string, bool) {
	if more {
		raw = raw[:whole(raw)]
	}
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	s := decode(raw, h.Get("Content-Type"))
	encoding := h.Get("Content-Encoding") // one that was not asked for: what was is decoded already
	if encoding != "" && !strings.EqualFold(encoding, "identity") || !looksLikeText(s) {
		if len(raw) == 0 {
			return "", false
		}
		return binary(raw, more, media), false
	}
	short := cut(s, MaxAnswer)
	return short, more || len(short) < len(s)
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

// decode is a text as valid UTF-8: by its byte order mark, by the character set that its type or the text itself
// declares, and otherwise, if it can't be UTF-8, as Windows-1252, which holds Latin-1.
func decode(raw []byte, contentType string) string {
	_, params, _ := mime.ParseMediaType(contentType)
	charset := params["charset"]
	if charset == "" {
		if m := declares.FindSubmatch(raw[:min(len(raw), 1024)]); m != nil {
			charset = string(m[1]) + string(m[2])
		}
	}
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		charset = "utf-16le"
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		charset = "utf-16be"
	}
	enc, err := htmlindex.Get(charset)
	name := "utf-8"
	if err == nil {
		name, _ = htmlindex.Name(enc)
	}
	switch { // the names of these two are often given without a look at the text
	case (name == "utf-8" || name == "windows-1252") && utf8.Valid(raw):
		enc = nil
	case name == "utf-8" && foreign(raw):
		enc = charmap.Windows1252
	}
	if enc != nil {
		if b, err := enc.NewDecoder().Bytes(raw); err == nil {
			raw = b
		}
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(raw), "\ufeff"), "\uFFFD")
}

// foreign reports whether a text that is not valid UTF-8 was never meant to be: no rune of it has more than one byte.
func foreign(raw []byte) bool {
	for len(raw) > 0 {
		_, n := utf8.DecodeRune(raw)
		if n > 1 {
			return false
		}
		raw = raw[n:]
	}
	return true
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
