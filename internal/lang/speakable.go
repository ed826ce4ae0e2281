package lang

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	links     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)\s]*\)`)
	urls      = regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s<>"')\]]+`)
	emails    = regexp.MustCompile(`\b[\w.+-]+@[\w-]+\.[\w.-]*\w`)
	markup    = regexp.MustCompile("(?m)^\\s{0,3}(?:#{1,6}\\s+|>\\s?|[-*+•]\\s+|\\|)|```\\w*|`|\\*{1,3}|~~|\\|")
	underline = regexp.MustCompile(`(^|[\s(])_{1,2}([^_]+)_{1,2}`)
	rules     = regexp.MustCompile(`(?m)^\s*[-=_:| ]{3,}\s*$`)
	tags      = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
)

// Speakable turns what a model wrote into what can be said: without markup and emoji, with addresses read out. It is
// "" when nothing is left to be said.
func Speakable(text, language string, pronounced *Pronouncer) string {
	names := Of(language).Signs
	text = links.ReplaceAllString(text, "$1")
	text = tags.ReplaceAllString(text, " ")
	text = urls.ReplaceAllStringFunc(text, func(u string) string { return readAddress(u, names) })
	text = emails.ReplaceAllStringFunc(text, func(e string) string { return readAddress(e, names) })
	text = rules.ReplaceAllString(text, "")
	text = markup.ReplaceAllString(text, "")
	text = underline.ReplaceAllString(text, "$1$2")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f' || r >= 0x1f1e6 && r <= 0x1faff || r == '\u20e3':
			return -1 // emoji, and what joins them
		case unicode.Is(unicode.So, r) && r != '°' && r != '№' && r != '℃':
			return -1
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c':
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	text = pronounced.replace(text)
	if !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r) || r == '%' || r == '&'
	}) {
		return ""
	}
	return text
}

func readAddress(a string, names Signs) string {
	rest := strings.TrimRight(a, ".,;:!?")
	end := a[len(rest):]
	for _, p := range []string{"https://", "http://", "www.", "HTTPS://", "HTTP://"} {
		rest = strings.TrimPrefix(rest, p)
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest = strings.TrimSuffix(rest, "/")
	rest = strings.NewReplacer(".", " "+names.Dot+" ", "@", " "+names.At+" ", "/", " "+names.Slash+" ", "-", " ",
		"_", " ").Replace(rest)
	return rest + end
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
