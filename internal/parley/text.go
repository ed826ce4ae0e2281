package parley

import "strings"

// CleanText makes a text one that every database takes: without NUL characters, which PostgreSQL refuses, and with
// U+FFFD for what is no UTF-8. Texts of models, tools and recognizers pass it where they come in; most are clean, and
// cost nothing then.
func CleanText(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
}
