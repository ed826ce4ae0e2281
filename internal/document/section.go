package document

import (
	"fmt"
	"strings"
)

// Section is a stretch of a document's text and where it stands.
type Section struct {
	Heading []string // the headings above it, the outermost first
	Page    int      // from 1; 0 where there are no pages
	URL     string   // of the web page
	Text    string   // paragraphs, with an empty line between them
}

// Text is what was read out of a document.
type Text struct {
	Title    string // as the document names itself; may be empty
	Sections []Section
	Warnings []string // what was left out, and why
}

// Failure is why a document can't be read. Its words are for the person who gave it: they say what can be done, and
// hold no internals.
type Failure struct{ Reason string }

func (e *Failure) Error() string { return e.Reason }

// Is says whether another failure is the same: a child's answer has only the words.
func (e *Failure) Is(other error) bool {
	f, ok := other.(*Failure)
	return ok && f.Reason == e.Reason
}

// Fail is a [Failure] in these words.
func Fail(format string, a ...any) error { return &Failure{fmt.Sprintf(format, a...)} }

// Size is how long the text is, in bytes.
func (t *Text) Size() (n int) {
	for i := range t.Sections {
		n += len(t.Sections[i].Text)
	}
	return n
}

// outline collects paragraphs below headings into sections.
type outline struct {
	sections []Section
	path     []string // headings by level
	levels   []int
	text     strings.Builder
	size     int // of all that was written
}

// maxHeading bounds a heading's length in bytes: longer ones are paragraphs in disguise.
const maxHeading = 300

// heading begins a section. Level 1 is the outermost.
func (o *outline) heading(level int, title string) {
	title = strings.Join(strings.Fields(title), " ")
	if title == "" {
		return
	}
	if len(title) > maxHeading {
		o.paragraph(title)
		return
	}
	o.flush()
	for len(o.levels) > 0 && o.levels[len(o.levels)-1] >= level {
		o.levels, o.path = o.levels[:len(o.levels)-1], o.path[:len(o.path)-1]
	}
	o.levels, o.path = append(o.levels, level), append(o.path, title)
}

// paragraph adds a block of text.
func (o *outline) paragraph(s string) { o.block(s, "\n\n") }

// line adds a line to the block before it: an item of a list, a row of a table.
func (o *outline) line(s string) { o.block(s, "\n") }

func (o *outline) block(s, glue string) {
	if s = strings.TrimSpace(s); s == "" {
		return
	}
	if o.text.Len() > 0 {
		o.text.WriteString(glue)
	}
	o.text.WriteString(s)
	o.size += len(s)
}

// flush ends the section. A heading with no text of its own is kept only as part of the path of those below it, or,
// where there are none, as text.
func (o *outline) flush() {
	if o.text.Len() > 0 {
		o.sections = append(o.sections, Section{Heading: append([]string(nil), o.path...), Text: o.text.String()})
		o.text.Reset()
	}
}

// Clean makes text that everything downstream can hold: valid UTF-8 without control characters other than line feed
// and tab, without marks of direction, and with every kind of blank as one that parts words.
func Clean(s string) string {
	ok := true
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			ok = false
			break
		}
	}
	if ok {
		return s
	}
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			return '\n'
		case r == 0xa0 || r == 0x202f || r >= 0x2000 && r <= 0x200a || r == 0x205f || r == 0x1680:
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0, r == 0xad, r == 0x200b, r == 0xfeff, r >= 0xfff0 && r <= 0xfffb, bidi(r):
			return -1
		}
		return r
	}, s)
}

// bidi says whether a character only says which way its neighbours are written: in a text that is searched and spoken it would
// part a word from itself.
func bidi(r rune) bool {
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
