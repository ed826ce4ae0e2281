package document

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/document/pdf"
)

// maxPages bounds a PDF; the largest manuals have some thousand.
const maxPages = 10_000

var (
	errPassword = Fail("The PDF is protected by a password: remove it and upload the file again.")
	errScanned  = Fail("The PDF contains scanned pages without text: run text recognition (OCR) over it, and upload the result.")
	errNotPDF   = Fail("The file is not a PDF: save or export it as PDF and upload that.")
	errBroken   = Fail("The PDF is damaged or incomplete: open it, save or print it as a new PDF, and upload that.")
	errPages    = Fail("The PDF has more than %d pages: split it and upload the parts.", maxPages)
)

// readPDF reads a PDF in pure Go.
func readPDF(b []byte) (*Text, error) {
	doc, err := pdf.Read(b, maxPages)
	switch {
	case errors.Is(err, pdf.ErrPassword):
		return nil, errPassword
	case errors.Is(err, pdf.ErrNotPDF):
		return nil, errNotPDF
	case errors.Is(err, pdf.ErrPages):
		return nil, errPages
	case err != nil:
		return nil, errBroken
	}
	return pagesText(doc.Title, doc.Pages)
}

// pagesText makes sections of pages, each as its lines were found.
func pagesText(title string, pages []string) (*Text, error) {
	t := &Text{Title: squeeze(title)}
	empty := 0
	for i, p := range pages {
		text := tidyPage(p)
		if text == "" {
			empty++
			continue
		}
		t.Sections = append(t.Sections, Section{Page: i + 1, Text: text})
	}
	if len(t.Sections) == 0 {
		return nil, errScanned
	}
	if empty > 0 && 4*empty > len(pages) {
		t.Warnings = append(t.Warnings, Fail("%d of %d pages hold no text. If they are scans, run text recognition (OCR) over the PDF and upload the result.", empty, len(pages)).Error())
	}
	return t, nil
}

// tidyPage takes ligatures apart, joins words that were hyphenated at a line's end, and leaves lines and paragraphs
// as they are.
func tidyPage(s string) string {
	s = blankLines(ligatures(Clean(s)))
	var b strings.Builder
	b.Grow(len(s))
	for len(s) > 0 {
		i := strings.IndexByte(s, '\n')
		if i < 0 {
			break
		}
		line, rest := s[:i], s[i+1:]
		if j := hyphen(line, rest); j >= 0 {
			b.WriteString(line[:j])
			// The rest of the word moves up to this line, so lines stay lines.
			end := strings.IndexAny(rest, " \n")
			if end < 0 {
				end = len(rest)
			}
			b.WriteString(rest[:end])
			rest = strings.TrimPrefix(rest[end:], " ")
			if !strings.HasPrefix(rest, "\n") && rest != "" {
				b.WriteByte('\n')
			}
		} else {
			b.WriteString(line)
			b.WriteByte('\n')
		}
		s = rest
	}
	b.WriteString(s)
	return strings.TrimSpace(b.String())
}

// hyphen says where a line ends without the hyphen that parts a word, if the next line goes on with it; -1 if not.
// "non-" before a capital keeps its hyphen and is joined all the same.
func hyphen(line, next string) int {
	var cut int
	switch {
	case strings.HasSuffix(line, "-"):
		cut = len(line) - 1
	case strings.HasSuffix(line, "\u2010"):
		cut = len(line) - len("\u2010")
	default:
		return -1
	}
	before, _ := utf8.DecodeLastRuneInString(line[:cut])
	after, _ := utf8.DecodeRuneInString(next)
	if !unicode.IsLetter(before) || !unicode.IsLetter(after) {
		return -1
	}
	if unicode.IsLower(after) && unicode.IsLower(before) {
		return cut
	}
	return len(line)
}

var ligature = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st",
	"Ĳ", "IJ", "ĳ", "ij", "ŉ", "'n", "Ǆ", "DŽ", "ǆ", "dž", "Ǉ", "LJ", "ǉ", "lj", "Ǌ", "NJ", "ǌ", "nj")

// ligatures are taken apart as NFKC does it, and nothing else is changed: NFKC would make "x²" "x2".
func ligatures(s string) string {
	if !strings.ContainsAny(s, "ﬀﬁﬂﬃﬄﬅﬆĲĳŉǄǆǇǉǊǌ") {
		return s
	}
	return ligature.Replace(s)
}
