package lang

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is how a text is made ready for a synthesizer.
type Style uint8

// The styles.
const (
	InWords   Style = iota // what a synthesizer would say wrongly is written in words
	AsWritten              // the synthesizer reads numbers, dates and amounts itself
)

// Speakable turns what a model wrote into what can be said: without markup and emoji, with addresses read out, and with
// numbers in the language's words as the style says. It is "" when nothing is left to be said.
func Speakable(text, language string, style Style, pronounced *Pronouncer) string {
	l := Of(language)
	if strings.ContainsFunc(text, marked) {
		text = audible(plain(text, l))
		text = addresses(text, &l.Signs)
		text = numbers(text, l, style)
	}
	text = strings.Join(strings.Fields(text), " ")
	text = pronounced.replace(text)
	if !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r) || r == '%' || r == '&'
	}) {
		return ""
	}
	return text
}

// marked reports whether a rune may be more than a letter or a pause: a text without any is said as it is.
func marked(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return false
	case r < utf8.RuneSelf:
		return !strings.ContainsRune(" ,!?'\";", r)
	}
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune("’‘“”„«»¿¡。、，！？।؟،", r)
}

// Pronouncer replaces words by how they are to be said. A nil one replaces nothing.
type Pronouncer struct {
	pattern *regexp.Regexp
	by      map[string]string
}

// NewPronouncer takes words with their respellings.
func NewPronouncer(words map[string]string) *Pronouncer {
	p := &Pronouncer{by: map[string]string{}}
	for w, s := range words {
		if w = strings.TrimSpace(w); w != "" {
			p.by[strings.ToLower(w)] = s
		}
	}
	if len(p.by) == 0 {
		return nil
	}
	// Longer ones first, so that "New York" goes before "New".
	list := slices.SortedFunc(maps.Keys(p.by), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	for i, w := range list {
		list[i] = regexp.QuoteMeta(w)
	}
	p.pattern = regexp.MustCompile(`(?i)` + strings.Join(list, "|"))
	return p
}

func (p *Pronouncer) replace(text string) string {
	if p == nil {
		return text
	}
	var b strings.Builder
	at := 0
	for at < len(text) {
		m := p.pattern.FindStringIndex(text[at:])
		if m == nil {
			break
		}
		from, to := at+m[0], at+m[1]
		if wordAt(text, from, to) {
			b.WriteString(text[at:from])
			b.WriteString(p.by[strings.ToLower(text[from:to])])
			at = to
			continue
		}
		// Within another word: go on behind its first rune.
		_, n := utf8.DecodeRuneInString(text[from:])
		b.WriteString(text[at : from+n])
		at = from + n
	}
	b.WriteString(text[at:])
	return b.String()
}

// wordAt says whether text[from:to] stands by itself. In scripts without spaces everything does.
func wordAt(text string, from, to int) bool {
	first, _ := utf8.DecodeRuneInString(text[from:])
	before, after := lastRune(text[:from]), rune(0)
	if to < len(text) {
		after, _ = utf8.DecodeRuneInString(text[to:])
	}
	if spaceless(first) {
		return true
	}
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return !(from > 0 && letter(before) && letter(first)) &&
		!(to < len(text) && letter(after) && letter(lastRune(text[:to])))
}
