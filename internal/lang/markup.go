package lang

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	entities    = regexp.MustCompile(`&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});`)
	variables   = regexp.MustCompile(`[ \t]*\{\{[^{}]*\}\}`)
	citations   = regexp.MustCompile(`[ \t]*(?:【[^【】]*】|\[\^[^\[\]\s]{1,20}\]:?|\[[0-9]{1,3}(?:\s?[,–-]\s?[0-9]{1,3})*\])`)
	links       = regexp.MustCompile(`!?\[([^\[\]]*)\]\([^)\s]*(?:\s+"[^"]*")?\)`)
	autolinks   = regexp.MustCompile(`<(?:mailto:)?((?:https?://|www\.)[^<>\s]+|[\w.+-]+@[\w.-]+)>`)
	tags        = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
	struck      = regexp.MustCompile(`[ \t]*~~[^~\n]+~~`)
	asides      = regexp.MustCompile(`[ \t]*(?:\*([^*\n]{2,40})\*|_([^_\n]{2,40})_|\(([^()\n]{2,40})\)|\[([^\[\]\n]{2,40})\])`)
	underline   = regexp.MustCompile(`(^|[\s(])_{1,2}([^_]+)_{1,2}`)
	rules       = regexp.MustCompile(`^\s*[-=_:*| ]{3,}\s*$`)
	listed      = regexp.MustCompile(`^\s*(?:#{1,6}\s+|[-*+•◦▪]\s+(?:\[[ xX]?\]\s*)?|\[[ xX]?\]\s+)`)
	numbered    = regexp.MustCompile(`^\s*([0-9]{1,2})[.)]\s+(?:\[[ xX]?\]\s*)?`)
	quoted      = regexp.MustCompile(`^\s{0,3}(?:>\s?)+`)
	escaped     = regexp.MustCompile("\\\\([*_$#\\[\\]()~`+.!|>{}-])")
	fences      = regexp.MustCompile("```\\w*|`|~~")
	unspeakable = "…。！？؟।"
)

// plain returns a text without its markup, and without what is not meant to be said: citations, stage directions,
// variables that nobody filled in, what is crossed out. Cells and items end with a pause.
func plain(text string, l *Language) string {
	if strings.Contains(text, "&") {
		text = entities.ReplaceAllStringFunc(text, html.UnescapeString)
	}
	if strings.Contains(text, "{{") {
		text = variables.ReplaceAllString(text, "")
	}
	if strings.ContainsAny(text, "[【") {
		text = links.ReplaceAllString(text, "$1")
		text = citations.ReplaceAllString(text, "")
	}
	if strings.Contains(text, "<") {
		text = tags.ReplaceAllString(autolinks.ReplaceAllString(text, "$1"), " ")
	}
	if strings.Contains(text, "~~") {
		text = struck.ReplaceAllString(text, "")
	}
	if strings.ContainsAny(text, "*_([") {
		text = withoutAsides(text, l)
	}
	text = lines(text)
	if strings.Contains(text, `\`) {
		text = escaped.ReplaceAllString(text, "$1")
	}
	if strings.ContainsAny(text, "`~") {
		text = fences.ReplaceAllString(text, "")
	}
	if strings.Contains(text, "_") {
		text = underline.ReplaceAllString(text, "$1$2")
	}
	return withoutStars(text)
}

// withoutAsides leaves out stage directions: a few words in stars or brackets that begin with one of the language's.
func withoutAsides(text string, l *Language) string {
	stage, english := l.Say.Stage, Of("en").Say.Stage
	return asides.ReplaceAllStringFunc(text, func(all string) string {
		inside := strings.ToLower(strings.Trim(all, " \t*_()[]."))
		words := strings.Fields(inside)
		if len(words) == 0 || len(words) > 4 {
			return all
		}
		if stage[words[0]] || english[words[0]] || stage[inside] {
			return ""
		}
		return all
	})
}

// lines joins the lines of a text. An item, a heading and a row end with a full stop where they end with nothing.
func lines(text string) string {
	if !strings.ContainsAny(text, "\n|") && !strings.ContainsRune("#>-*+•◦▪[_=:0123456789", firstRune(strings.TrimLeft(text, " \t"))) {
		return text // one line without a sign at its start
	}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || rules.MatchString(line) {
			continue
		}
		line = quoted.ReplaceAllString(line, "")
		bare := listed.ReplaceAllString(line, "")
		apart := bare != line
		if m := numbered.FindStringSubmatch(bare); m != nil && len(m[0]) < len(bare) {
			bare, apart = m[1]+", "+bare[len(m[0]):], true
		}
		if strings.HasPrefix(bare, "|") || strings.Count(bare, "|") > 1 {
			bare, apart = cells(bare), true
		}
		bare = strings.ReplaceAll(bare, "|", ", ")
		if bare = strings.TrimSpace(bare); bare == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(bare)
		if apart && !paused(bare) {
			b.WriteByte('.')
		}
	}
	return b.String()
}

// cells returns a row of a table with commas between its cells.
func cells(row string) string {
	var out []string
	for c := range strings.SplitSeq(row, "|") {
		if c = strings.TrimSpace(c); c != "" {
			out = append(out, c)
		}
	}
	return strings.Join(out, ", ")
}

// paused reports whether a text ends with a sign that is heard as a pause.
func paused(text string) bool {
	r := lastRune(strings.TrimRight(text, "*_`~\"'”’»)]"))
	return strings.ContainsRune(".,:;!?", r) || strings.ContainsRune(unspeakable, r)
}

// withoutStars takes away stars, except those that multiply.
func withoutStars(text string) string {
	at := strings.IndexByte(text, '*')
	if at < 0 {
		return text
	}
	var b strings.Builder
	for at >= 0 {
		end := at
		for end < len(text) && text[end] == '*' {
			end++
		}
		b.WriteString(text[:at])
		if end-at <= 2 && multiplies(text[:at], text[end:]) {
			b.WriteString(text[at:end])
		}
		text = text[end:]
		at = strings.IndexByte(text, '*')
	}
	b.WriteString(text)
	return b.String()
}

// multiplies reports whether a star between these texts stands between factors, with the same space on both sides.
func multiplies(before, after string) bool {
	left, right := strings.TrimRight(before, " "), strings.TrimLeft(after, " ")
	if left == "" || right == "" || (left == before) != (right == after) {
		return false
	}
	a := lastRune(left)
	b, _ := utf8.DecodeRuneInString(right)
	return (unicode.IsDigit(a) || a == ')' || a == '%') && (unicode.IsDigit(b) || b == '(' || b == '$')
}

// audible returns a text without emoji and characters that only control.
func audible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf && r >= ' ' && r != 0x7f:
			return r
		case r == '\u200d' || r >= '\ufe00' && r <= '\ufe0f' || r >= 0x1f1e6 && r <= 0x1faff || r == '\u20e3':
			return -1 // emoji, and what joins them
		case r == utf8.RuneError:
			return ' '
		case unicode.Is(unicode.So, r) && r != '°' && r != '№' && r != '℃' && r != '℉':
			return -1
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c':
			return ' '
		}
		return r
	}, text)
}
