package channel

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/parley"
)

// A Style is how a channel shows what models write as Markdown.
type Style struct {
	Bold, Italic, Struck string // what stands around such words; "" for nothing
	Code                 bool   // it knows code between back quotes
	Quote                string // before a line that is quoted
}

// The styles of our channels.
var (
	WhatsAppText = Style{Bold: "*", Italic: "_", Struck: "~", Code: true, Quote: "> "}
	PlainText    = Style{}
)

// Said is what a channel sends of a reply. What a person has written goes out as it is.
func Said(reply *parley.Message, s Style) string {
	if reply.Author == parley.AuthorHuman {
		return reply.Content
	}
	return s.Text(reply.Content)
}

var (
	heading = regexp.MustCompile(`^\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	bullet  = regexp.MustCompile(`^(\s*)[*+•-]\s+(?:\[[ xX]\]\s+)?(.*)$`)
	rule    = regexp.MustCompile(`^\s{0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$`)
	ruled   = regexp.MustCompile(`^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$`) // below the head of a table
	row     = regexp.MustCompile(`^\s*\|(.+)\|\s*$`)
	quote   = regexp.MustCompile(`^\s{0,3}>\s?(.*)$`)
	fence   = regexp.MustCompile("^\\s*(?:```|~~~)")
	lineEnd = regexp.MustCompile(`(?i)<br\s*/?>`)
)

// Text is a text of Markdown in the style.
func (s Style) Text(markdown string) string {
	var out []string
	fenced := false
	for line := range strings.SplitSeq(strings.ReplaceAll(lineEnd.ReplaceAllString(markdown, "\n"), "\r\n", "\n"), "\n") {
		if fence.MatchString(line) {
			if fenced = !fenced; s.Code {
				out = append(out, "```")
			}
			continue
		}
		if fenced {
			out = append(out, line)
			continue
		}
		if text, ok := s.line(strings.TrimRight(line, " \t")); ok && (text != "" || len(out) == 0 || out[len(out)-1] != "") {
			out = append(out, text)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// line is one line; not ok where nothing of it is shown.
func (s Style) line(text string) (string, bool) {
	if ruled.MatchString(text) && strings.Contains(text, "|") {
		return "", false
	}
	if rule.MatchString(text) {
		return "", true
	}
	if m := heading.FindStringSubmatch(text); m != nil {
		head := s.inline(m[1])
		if s.Bold != "" && !strings.Contains(head, s.Bold) && head != "" {
			head = s.Bold + head + s.Bold
		}
		return head, true
	}
	if m := quote.FindStringSubmatch(text); m != nil {
		inner, ok := s.line(m[1])
		return s.Quote + inner, ok
	}
	if m := bullet.FindStringSubmatch(text); m != nil {
		return m[1] + "- " + s.inline(m[2]), true
	}
	if m := row.FindStringSubmatch(text); m != nil {
		cells := strings.Split(m[1], "|")
		for i := range cells {
			cells[i] = s.inline(strings.TrimSpace(cells[i]))
		}
		return strings.Join(cells, " | "), true
	}
	return s.inline(text), true
}

// inline is a part of a line.
func (s Style) inline(text string) string {
	var b strings.Builder
	before := ' ' // the character before the rest
	for text != "" {
		said, n := s.piece(text, before)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
			said = text[:n]
		}
		b.WriteString(said)
		before, _ = utf8.DecodeLastRuneInString(text[:n])
		text = text[n:]
	}
	return b.String()
}

// around are the marks of emphasis, longer ones first. Those that are parts of words are also letters of names and
// numbers: they count at the borders of words alone.
var around = []struct {
	mark   string
	within bool // also within a word
	how    func(s Style, text string) string
}{
	{"***", true, func(s Style, t string) string { return s.Bold + s.Italic + t + s.Italic + s.Bold }},
	{"**", true, func(s Style, t string) string { return s.Bold + t + s.Bold }},
	{"__", false, func(s Style, t string) string { return s.Bold + t + s.Bold }},
	{"~~", true, func(s Style, t string) string { return s.Struck + t + s.Struck }},
	{"*", false, func(s Style, t string) string { return s.Italic + t + s.Italic }},
	{"_", false, func(s Style, t string) string { return s.Italic + t + s.Italic }},
}

// piece reads what has a form of its own at the beginning of a text, and how long it is; 0 where nothing has.
func (s Style) piece(text string, before rune) (said string, n int) {
	switch {
	case len(text) > 1 && text[0] == '\\' && strings.IndexByte("\\`*_{}[]()#+-.!|>~", text[1]) >= 0:
		return text[1:2], 2
	case text[0] == '&':
		if end := strings.IndexByte(text, ';'); end > 1 && end < 10 {
			if c := html.UnescapeString(text[:end+1]); c != text[:end+1] {
				return c, end + 1
			}
		}
	case text[0] == '`':
		return s.code(text)
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "https://"):
		n := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("<>\"*)]|", r) })
		if n < 0 {
			n = len(text)
		}
		return text[:n], n
	case strings.HasPrefix(text, "!["):
		said, n = s.link(text[1:])
		if n > 0 {
			n++
		}
		return said, n
	case text[0] == '[':
		return s.link(text)
	case text[0] == '<':
		if end := strings.IndexByte(text, '>'); end > 0 && (strings.HasPrefix(text, "<http") || strings.Contains(text[:end], "@")) &&
			!strings.ContainsAny(text[:end], " \t") {
			return text[1:end], end + 1
		}
	}
	for _, e := range around {
		if inner, ok := enclosed(text, e.mark, e.within, before); ok {
			return e.how(s, s.inline(inner)), len(inner) + 2*len(e.mark)
		}
	}
	return "", 0
}

// enclosed is what stands between two of the same marks, the first of them at the beginning of a text.
func enclosed(text, mark string, within bool, before rune) (inner string, ok bool) {
	if !strings.HasPrefix(text, mark) || !within && word(before) {
		return "", false
	}
	for from := len(mark); ; {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return "", false
		}
		end := from + i
		inner, rest := text[len(mark):end], text[end+len(mark):]
		first, _ := utf8.DecodeRuneInString(inner)
		last, _ := utf8.DecodeLastRuneInString(inner)
		next, _ := utf8.DecodeRuneInString(rest)
		longer := strings.HasPrefix(rest, mark[:1]) // it is part of longer marks
		if inner != "" && !unicode.IsSpace(first) && !unicode.IsSpace(last) && last != '\\' && !longer &&
			first != rune(mark[0]) && (within || !word(next)) {
			return inner, true
		}
		from = end + len(mark)
		for strings.HasPrefix(text[from:], mark[:1]) {
			from++
		}
	}
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// code is a part between back quotes.
func (s Style) code(text string) (string, int) {
	marks := len(text) - len(strings.TrimLeft(text, "`"))
	i := strings.Index(text[marks:], text[:marks])
	if i < 0 {
		return text[:marks], marks
	}
	inner := strings.TrimSpace(text[marks : marks+i])
	if s.Code {
		inner = "`" + inner + "`"
	}
	return inner, 2*marks + i
}

// link is a link as its text and its address.
func (s Style) link(text string) (string, int) {
	end, deep := 0, 0
	for i, r := range text {
		switch r {
		case '[':
			deep++
		case ']':
			deep--
		}
		if deep == 0 {
			end = i
			break
		}
	}
	if end == 0 || !strings.HasPrefix(text[end+1:], "(") {
		return "", 0
	}
	start := end + 2
	stop, deep := -1, 1
	for i, r := range text[start:] {
		switch r {
		case '(':
			deep++
		case ')':
			deep--
		}
		if deep == 0 {
			stop = start + i
			break
		}
	}
	if stop < 0 {
		return "", 0
	}
	address, _, _ := strings.Cut(strings.TrimSpace(text[start:stop]), " ") // a title follows
	address = strings.Trim(address, "<>")
	said := s.inline(text[1:end])
	shown := strings.TrimPrefix(strings.TrimPrefix(address, "mailto:"), "tel:")
	switch {
	case said == "" || said == shown || said == address:
		said = shown
	case shown != "":
		said += " (" + shown + ")"
	}
	return said, stop + 1
}
