package parley

import "strings"

// Render replaces every {{name}} in text by its variable, and by nothing where there is none. Spaces inside the braces are allowed.
// It is one pass: what a variable holds is never rendered again, so that a customer's words can't reach into a prompt. A pair of
// braces that holds no name (letters, digits, underscore, dot, hyphen) is left as it is.
func Render(text string, vars map[string]string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, "{{")
		if i < 0 {
			break
		}
		j := strings.Index(text[i+2:], "}}")
		if j < 0 {
			break
		}
		name := strings.TrimSpace(text[i+2 : i+2+j])
		if !variableName(name) {
			b.WriteString(text[:i+2])
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		b.WriteString(vars[name])
		text = text[i+2+j+2:]
	}
	b.WriteString(text)
	return b.String()
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
