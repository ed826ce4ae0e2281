package document

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"parley/internal/charset"
)

// Texts that say nothing. A PDF whose fonts don't say which letters they show, or say it wrongly, is text to every program, and
// garbage to every reader.
const (
	maxOdd     = 0.2 // the share of characters that no text has
	maxAccents = 0.6 // the share of letters with accents; Vietnamese has a third
	minPage    = 50  // letters that tell whether a page is language
	minText    = 200 // letters that tell it of a text of another kind: a list of codes is none
)

// garbled says whether a text can't be what somebody wrote, by its odd characters and by how its letters follow one another. lost is
// how many characters more could not be read at all.
func garbled(s string, lost, least int) bool {
	visible, odd := lost, lost
	letters, accents := 0, 0
	for _, r := range norm.NFC.String(s) {
		if unicode.IsSpace(r) || r == '\u00ad' {
			continue
		}
		visible++
		switch {
		case unicode.IsControl(r), r == unicode.ReplacementChar, unicode.Is(unicode.Co, r), unassigned(r):
			odd++
		case unicode.Is(unicode.Latin, r):
			if letters++; r >= 0x80 {
				accents++
			}
		}
	}
	if visible > 0 && float64(odd) >= maxOdd*float64(visible) {
		return true
	}
	if letters >= least && float64(accents) >= maxAccents*float64(letters) { // "Íàø îôèñ": Russian read as Latin
		return true
	}
	likeness, judged := charset.Language(s)
	return judged >= least && likeness < charset.Garbled
}

func unassigned(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C)
}

// stamps are what programs that scan write on each page.
var stamps = regexp.MustCompile(
	`(?i)\b(scanned|created|made|powered|gescannt) (with|by|using|mit) [\w .]{0,40}(scan|lens)\w*( pro| free)?\b`)

// stamped is what a page says beside its number and what the program that scanned it wrote there.
func stamped(s string) string {
	return strings.TrimFunc(stamps.ReplaceAllString(s, ""), func(r rune) bool { return !unicode.IsLetter(r) })
}

// pageText is what became of a page.
type pageText struct {
	text    string // tidied
	garbled bool
}

// judge tidies a page and says whether it can be read. lost is how many of its characters have no text.
func judge(s string, lost int) pageText {
	p := pageText{text: tidyPage(s)}
	if p.garbled = garbled(s, lost, minPage); p.garbled {
		return p
	}
	if stamped(p.text) == "" && stamps.MatchString(p.text) {
		p.text = ""
	}
	return p
}

var errGarbled = Fail("The text of this file doesn't read like any language: its characters are damaged, " +
	"or it holds data instead of text. Open it and look, save it anew, and upload that.")

// garbled says whether a text as a whole can't be what somebody wrote.
func (t *Text) garbled() bool {
	var b strings.Builder
	for i := range t.Sections {
		if b.Len() > 1<<20 {
			break
		}
		b.WriteString(t.Sections[i].Text + "\n")
	}
	return garbled(b.String(), 0, minText)
}
