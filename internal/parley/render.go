package parley

import (
	"strings"
	"unicode/utf8"
)

// MaxRendered is how many bytes the variables of one rendering may bring, all together. The text's own words are never
// cut.
const MaxRendered = 100_000

// maxPlaceholder is how far the end of a {{name}} is looked for: a name has at most 255 bytes, and a few spaces
// around it.
const maxPlaceholder = 600

// Render replaces every {{name}} in text by its variable, and by nothing where there is none. Spaces inside the braces
// are allowed. It is one pass: what a variable holds is never rendered again, so that a customer's words can't reach
// into a prompt. A pair of braces that holds no name (letters, digits, underscore, dot, hyphen) is left as it is.
// Variables beyond MaxRendered are cut off.
func Render(text string, vars map[string]string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var b strings.Builder
	for room := MaxRendered; ; {
		i := strings.Index(text, "{{")
		if i < 0 {
			break
		}
		b.WriteString(text[:i])
		text = text[i+2:]
		j := strings.Index(text[:min(len(text), maxPlaceholder)], "}}")
		if j < 0 || !variableName(strings.TrimSpace(text[:j])) {
			b.WriteString("{{")
			continue
		}
		value := head(vars[strings.TrimSpace(text[:j])], room)
		room -= len(value)
		b.WriteString(value)
		text = text[j+2:]
	}
	b.WriteString(text)
	return b.String()
}

// head is the beginning of s, at most n bytes of it, cut between runes.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func variableName(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	for _, c := range s {
		switch {
		case c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		default:
			return false
		}
	}
	return true
}
