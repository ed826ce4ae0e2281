// Package pdf reads the text of PDF files in pure Go: objects, even in damaged files, fonts and their encodings, the
// operators of a page's content, and the positions of characters, from which it makes words and lines. It ignores
// pictures.
//
// The reader is made for hostile files: nothing in it recurses or loops without a bound. Its memory and time are
// bounded only loosely, by the size of what is inflated and by the number of operators, so that whoever reads
// strangers' files does so in a process of its own.
package pdf

import (
	"errors"
	"unicode/utf16"
)

// Faults of a file.
var (
	ErrNotPDF   = errors.New("not a PDF file")
	ErrBroken   = errors.New("the PDF file is damaged")
	ErrPassword = errors.New("the PDF file asks for a password")
	ErrPages    = errors.New("the PDF file has too many pages")
)

// Document is the text of a file.
type Document struct {
	Title  string   // as the file's own properties have it
	Pages  []string // lines end with \n, paragraphs with an empty line
	Lost   []int    // for each page: characters whose fonts don't say what they are
	Images int      // pictures shown on the pages
}

// Read reads at most so many pages; a file with more is ErrPages.
func Read(b []byte, pages int) (*Document, error) {
	f, err := open(b)
	if err != nil {
		return nil, err
	}
	if f.crypt != nil && f.crypt.err != nil {
		return nil, f.crypt.err
	}
	doc := &Document{Title: textString(f.text(f.dict(f.trailer["Info"])["Title"]))}
	leaves, err := f.pages(pages)
	if err != nil {
		return nil, err
	}
	if len(leaves) == 0 {
		return nil, ErrBroken
	}
	fonts := map[ref]*font{}
	for _, leaf := range leaves {
		p := &painter{f: f, fonts: fonts}
		p.ctm, p.stretch, p.text, p.line = identity, 1, identity, identity
		p.content(f.contents(leaf.dict), leaf.resources, 0)
		if f.inflated > maxInflated {
			return nil, errTooMuch
		}
		doc.Pages, doc.Lost = append(doc.Pages, layout(p.out)), append(doc.Lost, p.lost)
		doc.Images += p.images
	}
	return doc, nil
}

// leaf is a page with what it inherits.
type leaf struct{ dict, resources dict }

// pages walks the tree of pages (7.7.3).
func (f *file) pages(most int) ([]leaf, error) {
	type node struct {
		v         any
		resources dict
	}
	var out []leaf
	seen := map[ref]bool{}
	stack := []node{{f.dict(f.trailer["Root"])["Pages"], nil}}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if r, ok := n.v.(ref); ok {
			if seen[r] {
				continue
			}
			seen[r] = true
		}
		d := f.dict(n.v)
		if d == nil {
			continue
		}
		if own := f.dict(d["Resources"]); own != nil {
			n.resources = own
		}
		kids, ok := f.get(d["Kids"]).(array)
		if !ok {
			if len(out) == most {
				return nil, ErrPages
			}
			out = append(out, leaf{d, n.resources})
			continue
		}
		for i := len(kids) - 1; i >= 0; i-- {
			if _, ok := kids[i].(ref); ok && len(stack) < maxObjects {
				stack = append(stack, node{kids[i], n.resources})
			}
		}
	}
	return out, nil
}

// contents is a page's content, of one stream or several.
func (f *file) contents(d dict) []byte {
	var out []byte
	for _, v := range f.list(d["Contents"]) {
		if s, ok := f.get(v).(stream); ok && len(out) < maxStream {
			if data, err := f.decode(s); err == nil {
				out = append(append(out, data...), '\n')
			}
		}
	}
	return out
}

// textString reads a text string (7.9.2.2).
func textString(s string) string {
	switch {
	case len(s) >= 2 && s[:2] == "\xfe\xff":
		return string(utf16.Decode(longUnits(s[2:])))
	case len(s) >= 3 && s[:3] == "\xef\xbb\xbf":
		return s[3:]
	}
	out := make([]rune, 0, len(s))
	for i := range len(s) {
		r := rune(s[i])
		if s[i] >= 0x18 && s[i] <= 0x1f || s[i] >= 0x80 && s[i] <= 0xa0 {
			r = docEncoding[s[i]]
		}
		out = append(out, r)
	}
	return string(out)
}

func longUnits(s string) []uint16 {
	u := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		u = append(u, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return u
}

// docEncoding is where PDFDocEncoding differs from Latin-1.
var docEncoding = func() map[byte]rune {
	m := map[byte]rune{}
	for i, r := range []rune("˘ˇˆ˙˝˛˚˜") {
		m[0x18+byte(i)] = r
	}
	for i, r := range []rune("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\uFFFD€") {
		m[0x80+byte(i)] = r
	}
	return m
}()
