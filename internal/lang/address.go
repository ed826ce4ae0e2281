package lang

import (
	"regexp"
	"strings"
)

var (
	urls    = regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s<>"')\]]+`)
	emails  = regexp.MustCompile(`\b[\w.+-]+@[\w-]+\.[\w.-]*\w`)
	domains = regexp.MustCompile(`(?i)\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|info|io|app|dev|ai|eu|de|at|ch|fr|es|it|` +
		`pt|br|nl|be|pl|uk|us|edu|gov|shop|online)\b(?:/[\w./~-]*[\w/])?`)
)

// addresses returns a text whose e-mail and web addresses can be written down from hearing.
func addresses(text string, names *Signs) string {
	if !strings.ContainsAny(text, ".@") {
		return text
	}
	say := func(a string) string { return readAddress(a, names) }
	if strings.Contains(text, "://") || strings.Contains(text, "www.") || strings.Contains(text, "WWW.") {
		text = urls.ReplaceAllStringFunc(text, say)
	}
	if strings.Contains(text, "@") {
		text = emails.ReplaceAllStringFunc(text, say)
	}
	if dotted(text) {
		text = domains.ReplaceAllStringFunc(text, say)
	}
	return text
}

// dotted reports whether a text has a dot between a letter or a figure and a letter, as names of sites have.
func dotted(text string) bool {
	for i := 1; i+1 < len(text); i++ {
		if c := text[i+1] | 0x20; text[i] == '.' && c >= 'a' && c <= 'z' && wordy(rune(text[i-1])) {
			return true
		}
	}
	return false
}

// readAddress says each sign of an address. What is asked of a page ("?…") is not said: nobody would write it down.
func readAddress(a string, names *Signs) string {
	rest := strings.TrimRight(a, ".,;:!?")
	end := a[len(rest):]
	if i := strings.Index(rest, "://"); i >= 0 {
		rest = rest[i+3:]
	}
	if len(rest) > 4 && strings.EqualFold(rest[:4], "www.") {
		rest = rest[4:]
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	rest = strings.TrimSuffix(rest, "/")
	var b strings.Builder
	for _, r := range rest {
		word := ""
		switch r {
		case '.':
			word = names.Dot
		case '@':
			word = names.At
		case '/':
			word = names.Slash
		case '-':
			word = names.Dash
		case '_':
			word = names.Underscore
		case '+':
			word = names.Plus
		default:
			b.WriteRune(r)
			continue
		}
		b.WriteString(" " + word + " ")
	}
	return strings.Join(strings.Fields(b.String()), " ") + end
}
