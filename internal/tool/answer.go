package tool

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// text is an answer's body as valid UTF-8 of at most MaxAnswer bytes, and whether there is more of it. If the body is
// no text, it says just that.
func text(raw []byte, more bool, h http.Header) (string, bool) {
	if more {
		raw = raw[:whole(raw)]
	}
	media, params, _ := mime.ParseMediaType(h.Get("Content-Type"))
	s := decode(raw, params["charset"])
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

// decode is a text in its declared character set, or by its byte order mark, as valid UTF-8.
func decode(raw []byte, charset string) string {
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		charset = "utf-16le"
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		charset = "utf-16be"
	}
	if enc, err := htmlindex.Get(charset); err == nil {
		if b, err := enc.NewDecoder().Bytes(raw); err == nil {
			raw = b
		}
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(raw), "\ufeff"), "\uFFFD")
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
