package document

import (
	"errors"
	"fmt"
	"strconv"
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
	errFonts    = Fail("The text of this PDF can't be read: its fonts don't say which letters they show. " +
		"Print it to a new PDF or run text recognition (OCR) over it, and upload the result.")
	errPages = Fail("The PDF has more than %d pages: split it and upload the parts.", maxPages)
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
	return pagesText(doc.Title, doc.Pages, doc.Lost)
}

// pagesText makes sections of pages, each as its lines were found. lost says for each page how many of its characters have no text;
// nil where that isn't known. Pages that can't be read are left out; if most of the text is on such pages, so is the document.
func pagesText(title string, pages []string, lost []int) (*Text, error) {
	t := &Text{Title: squeeze(title)}
	empty, good, bad := 0, 0, 0
	var left []string
	for i, s := range pages {
		n := 0
		if lost != nil {
			n = lost[i]
		}
		switch p := judge(s, n); {
		case p.garbled:
			left = append(left, strconv.Itoa(i+1))
			bad += len(s) + n
		case p.text == "":
			empty++
		default:
			t.Sections = append(t.Sections, Section{Page: i + 1, Text: p.text})
			good += len(s)
		}
	}
	if bad > good || bad == 0 && good < 10_000 && garbled(strings.Join(pages, "\n"), 0, minPage) { // of short pages
		return nil, errFonts
	}
	if len(t.Sections) == 0 {
		return nil, errScanned
	}
	if empty > 0 && 4*empty > len(pages) {
		t.Warnings = append(t.Warnings,
			fmt.Sprintf("%d of %d pages hold no text. If they are scans, run text recognition (OCR) over the PDF and upload the result.",
				empty, len(pages)))
	}
	if len(left) > 0 {
		t.Warnings = append(t.Warnings,
			fmt.Sprintf("%d of %d pages can't be read, since their fonts don't say which letters they show, and were left out: %s. "+
				"Print the PDF to a new one or run text recognition (OCR) over it.", len(left), len(pages), first20(left)))
	}
	return t, nil
}

// first20 are some numbers of pages, the first of many.
func first20(pages []string) string {
	if most := 20; len(pages) > most {
		return strings.Join(pages[:most], ", ") + "…"
	}
	return strings.Join(pages, ", ")
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
