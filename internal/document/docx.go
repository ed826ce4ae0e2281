package document

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Bounds of a Word file. Its pictures are never unpacked, so that they don't count.
const (
	maxEntries = 10_000
	maxPart    = 128 << 20 // bytes of a part, unpacked
	maxParts   = 192 << 20 // of all parts that are read
	maxRatio   = 200       // unpacked to packed, where that is more than freeRatio bytes
	freeRatio  = 16 << 20
	maxXML     = 256 // elements within elements
)

var (
	errBomb    = Fail("The file unpacks to far more than a document needs: open it in Word or LibreOffice, save it anew, and upload that.")
	errNotDocx = Fail("The file is not a Word document (.docx): open it in Word or LibreOffice, save it as .docx, and upload that.")
	errDocx    = Fail("The Word document is damaged: open it in Word or LibreOffice, save it anew, and upload that.")
	errDoc     = Fail("The file is an older Word document (.doc), or one with a password: open it in Word or LibreOffice, " +
		"save it as .docx without a password, and upload that.")
)

// docx is a Word file (ECMA-376, WordprocessingML) that is being read.
type docx struct {
	zip   map[string]*zip.File
	spent int64
}

func readDocx(b []byte) (*Text, error) {
	// a compound file: .doc, and .docx with a password
	if bytes.HasPrefix(b, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
		return nil, errDoc
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		if bytes.HasPrefix(b, []byte("PK\x03\x04")) {
			return nil, errDocx
		}
		return nil, errNotDocx
	}
	if len(z.File) > maxEntries {
		return nil, errBomb
	}
	d := &docx{zip: map[string]*zip.File{}}
	for _, f := range z.File {
		d.zip[strings.TrimPrefix(strings.ReplaceAll(f.Name, `\`, "/"), "/")] = f
	}
	main, err := d.main()
	if err != nil {
		return nil, err
	}
	return d.document(main)
}

// main is the name of the part that the document begins with.
func (d *docx) main() (string, error) {
	rels, err := d.relations("")
	if err != nil {
		return "", err
	}
	for _, r := range rels {
		if r.kind == "officeDocument" && strings.HasSuffix(r.target, ".xml") {
			if !strings.HasPrefix(r.target, "word/") &&
				(strings.HasPrefix(r.target, "xl/") || strings.HasPrefix(r.target, "ppt/")) {
				return "", errNotDocx
			}
			return r.target, nil
		}
	}
	if d.zip["word/document.xml"] != nil {
		return "word/document.xml", nil
	}
	return "", errNotDocx
}

type relation struct{ id, kind, target string }

// relations are the parts that a part refers to ("" for the file itself).
func (d *docx) relations(part string) ([]relation, error) {
	dir, file := path.Split(part)
	var out []relation
	err := d.parse(dir+"_rels/"+file+".rels", func(dec *xml.Decoder, t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "Relationship" && value(e, "TargetMode") != "External" {
			target := value(e, "Target")
			if strings.HasPrefix(target, "/") {
				target = target[1:]
			} else {
				target = path.Join(dir, target)
			}
			out = append(out, relation{value(e, "Id"), path.Base(value(e, "Type")), target})
		}
		return nil
	})
	return out, err
}

// value is an attribute's value, whatever its name space: strict and transitional files differ in that.
func value(e xml.StartElement, key string) string {
	for _, a := range e.Attr {
		if a.Name.Local == key {
			return a.Value
		}
	}
	return ""
}

// parse calls each with the tokens of a part; a part that is not there has none. Entities other than XML's own are
// errors, so that nothing is ever expanded or fetched.
func (d *docx) parse(part string, each func(*xml.Decoder, xml.Token) error) error {
	f := d.zip[part]
	if f == nil {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return errDocx
	}
	defer r.Close()
	limit := &meter{r: r, d: d, packed: int64(f.CompressedSize64)}
	text, wide := utf16Part(limit)
	dec := xml.NewDecoder(text)
	dec.CharsetReader = func(label string, r io.Reader) (io.Reader, error) {
		if wide { // it is read already
			return r, nil
		}
		return charset.NewReaderLabel(label, r)
	}
	depth := 0
	for {
		t, err := dec.RawToken()
		if err == io.EOF && depth == 0 {
			return nil
		}
		if err != nil {
			if limit.err != nil {
				return limit.err
			}
			return errDocx
		}
		switch t.(type) {
		case xml.StartElement:
			if depth++; depth > maxXML {
				return Fail("The Word document's parts are nested too deep: open it in Word or LibreOffice, save it anew, and upload that.")
			}
		case xml.EndElement:
			if depth--; depth < 0 {
				return errDocx
			}
		}
		if err := each(dec, t); err != nil {
			var failure *Failure
			if errors.As(err, &failure) {
				return err
			}
			return errDocx
		}
	}
}

// utf16Part is a part as UTF-8, if it is in UTF-16 by its mark or by its first two characters, "<" and another.
func utf16Part(r io.Reader) (text io.Reader, wide bool) {
	b := bufio.NewReader(r)
	head, _ := b.Peek(4) // a fault is met again when it is read
	order := unicode.BigEndian
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), len(head) == 4 && head[0] == '<' && head[1] == 0 && head[3] == 0:
		order = unicode.LittleEndian
	case bytes.HasPrefix(head, []byte("\xfe\xff")), len(head) == 4 && head[0] == 0 && head[1] == '<' && head[2] == 0:
	default:
		return b, false
	}
	return transform.NewReader(b, unicode.UTF16(order, unicode.UseBOM).NewDecoder()), true
}

// meter counts what is unpacked and stops it where no document goes.
type meter struct {
	r         io.Reader
	d         *docx
	n, packed int64
	err       error
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	m.n += int64(n)
	m.d.spent += int64(n)
	if m.n > maxPart || m.d.spent > maxParts || m.n > freeRatio && m.n > maxRatio*m.packed {
		m.err = errBomb
		return 0, m.err
	}
	return n, err
}

// document reads the parts in the order in which they help: styles and numbers first, then the body, with notes
// behind the paragraphs that refer to them, and headers and footers at the end.
func (d *docx) document(main string) (*Text, error) {
	rels, err := d.relations(main)
	if err != nil {
		return nil, err
	}
	w := &wordWriter{notes: map[string]string{}}
	for _, r := range rels {
		switch r.kind {
		case "styles":
			w.styles, err = d.styles(r.target)
		case "numbering":
			w.numbers, err = d.numbering(r.target)
		case "footnotes", "endnotes":
			err = d.notes(r.target, r.kind, w.notes)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := d.body(main, w); err != nil {
		return nil, err
	}
	seen := map[string]bool{"": true}
	for _, r := range rels {
		if r.kind != "header" && r.kind != "footer" {
			continue
		}
		side := &wordWriter{}
		if err := d.body(r.target, side); err != nil {
			return nil, err
		}
		text := side.plain()
		if !seen[text] { // the same on the first, the odd and the even pages
			seen[text] = true
			w.out.flush()
			w.out.sections = append(w.out.sections, Section{Text: text})
		}
	}
	w.out.flush()
	t := &Text{Sections: w.out.sections, Title: d.title()}
	if len(t.Sections) == 0 {
		if w.pictures > 0 {
			return nil, Fail("The Word document holds pictures and no text: run text recognition (OCR) over it, and upload the result.")
		}
		return nil, Fail("The Word document holds no text.")
	}
	return t, nil
}

// body reads a part into a writer.
func (d *docx) body(part string, w *wordWriter) error {
	if err := d.parse(part, w.token); err != nil {
		return err
	}
	w.endParagraph()
	return nil
}

func (d *docx) title() string {
	title, in := "", false
	err := d.parse("docProps/core.xml", func(_ *xml.Decoder, t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			in = t.Name.Local == "title"
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				title += string(t)
			}
		}
		return nil
	})
	if err != nil { // properties are no reason to refuse a text
		return ""
	}
	return squeeze(title)
}

// notes reads footnotes or endnotes by kind and id.
func (d *docx) notes(part, kind string, into map[string]string) error {
	var w *wordWriter
	id := ""
	return d.parse(part, func(dec *xml.Decoder, t xml.Token) error {
		switch e := t.(type) {
		case xml.StartElement:
			if e.Name.Local+"s" == kind {
				w, id = &wordWriter{}, value(e, "id")
				if value(e, "type") != "" { // the line that parts notes from text
					w = nil
				}
				return nil
			}
		case xml.EndElement:
			if e.Name.Local+"s" == kind && w != nil {
				w.endParagraph()
				into[kind+id] = w.plain()
				w = nil
				return nil
			}
		}
		if w == nil {
			return nil
		}
		return w.token(dec, t)
	})
}

// style is what matters of a style: does it make headings, or items of a list.
type style struct {
	level  int // of a heading, from 1; 0 for none
	list   string
	listAt int
	based  string
}

func (d *docx) styles(part string) (map[string]*style, error) {
	out := map[string]*style{}
	var s *style
	err := d.parse(part, func(_ *xml.Decoder, t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok {
			return nil
		}
		val := value(e, "val")
		switch e.Name.Local {
		case "style":
			s = &style{}
			out[value(e, "styleId")] = s
		case "name":
			if s != nil {
				s.level = max(s.level, headingName(val))
			}
		case "basedOn":
			if s != nil {
				s.based = val
			}
		case "outlineLvl":
			if n, err := strconv.Atoi(val); s != nil && err == nil && n >= 0 && n < 9 {
				s.level = n + 1
			}
		case "numId":
			if s != nil {
				s.list = val
			}
		case "ilvl":
			if n, err := strconv.Atoi(val); s != nil && err == nil && n >= 0 && n < 9 {
				s.listAt = n
			}
		}
		return nil
	})
	for _, s := range out {
		base := out[s.based]
		for n := 0; base != nil && n < 16; n++ {
			if s.level == 0 {
				s.level = base.level
			}
			if s.list == "" {
				s.list, s.listAt = base.list, base.listAt
			}
			base = out[base.based]
		}
	}
	return out, err
}

// headingName is the level of Word's own heading styles, whose names are the same in every language of Word: "heading
// 2", "Title".
func headingName(name string) int {
	name = strings.ToLower(name)
	if name == "title" {
		return 1
	}
	if rest, ok := strings.CutPrefix(name, "heading "); ok {
		if n, err := strconv.Atoi(rest); err == nil && n > 0 && n < 10 {
			return n
		}
	}
	return 0
}
