package document

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// packed makes a zip file of parts. A name may occur twice.
func packed(parts ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		if err == nil {
			_, err = w.Write([]byte(parts[i+1]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

const wordNS = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"`

func rels(list ...string) string {
	s := `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	for i := 0; i < len(list); i += 2 {
		s += fmt.Sprintf(`<Relationship Id="r%d" Type="http://x/relationships/%s" Target="%s"/>`, i, list[i], list[i+1])
	}
	return s + `</Relationships>`
}

// word makes a document with this body and these other parts.
func word(body string, parts ...string) []byte {
	return packed(append([]string{"_rels/.rels", rels("officeDocument", "word/document.xml"),
		"word/_rels/document.xml.rels", rels("styles", "styles.xml", "numbering", "numbering.xml", "footnotes",
			"footnotes.xml", "endnotes", "endnotes.xml", "header", "header1.xml", "header", "header2.xml", "footer",
			"/word/footer1.xml"),
		"word/document.xml", `<?xml version="1.0" encoding="UTF-8"?><w:document ` + wordNS + `><w:body>` + body +
			`</w:body></w:document>`}, parts...)...)
}

func p(runs ...string) string { return "<w:p>" + strings.Join(runs, "") + "</w:p>" }
func r(text string) string    { return "<w:r><w:t xml:space=\"preserve\">" + text + "</w:t></w:r>" }
func styled(s, text string) string {
	return p(`<w:pPr><w:pStyle w:val="`+s+`"/></w:pPr>`, r(text))
}
func listed(num, level int, text string) string {
	return p(fmt.Sprintf(`<w:pPr><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr></w:pPr>`, level, num),
		r(text))
}
func cell(inner string) string { return "<w:tc>" + inner + "</w:tc>" }
func row(cells ...string) string {
	return "<w:tr>" + strings.Join(cells, "") + "</w:tr>"
}
func notes(kind, id, text string) string {
	return "<w:" + kind + "s " + wordNS + "><w:" + kind + ` w:type="separator" w:id="-1">` + p(r("-----")) +
		"</w:" + kind + "><w:" + kind + ` w:id="` + id + `">` + p(r(text)) + "</w:" + kind + "></w:" + kind + "s>"
}

func TestDocx(t *testing.T) {
	styles := `<w:styles ` + wordNS + `><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style><w:style w:styleId="Mine"><w:name w:val="Meine"/><w:basedOn w:val="H1"/></w:style>` +
		`<w:style w:styleId="Deep"><w:name w:val="x"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style><w:style w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style>` +
		`<w:style w:styleId="Item"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>`
	numbering := `<w:numbering ` + wordNS +
		`><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>` +
		`<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>` +
		`<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="x"/></w:lvl></w:abstractNum>` +
		`<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num></w:numbering>`
	for name, c := range map[string]struct {
		body  string
		parts []string
		want  []Section
	}{
		"headings": {p(r("Before")) + styled("Mine", "One") + p(r("a")) + styled("Deep",
			"Sub") + p(r("b")) + styled("H1", "Two") + p(r("c")), []string{"word/styles.xml", styles},
			[]Section{{Text: "Before"}, {Heading: []string{"One"}, Text: "a"},
				{Heading: []string{"One", "Sub"}, Text: "b"}, {Heading: []string{"Two"}, Text: "c"}}},
		"lists": {listed(1, 0, "a") + listed(1, 1, "b") + listed(1, 1, "c") + listed(1, 0, "d") + listed(2, 0,
			"e") + p(r("f")) + styled("Item", "g"),
			[]string{"word/numbering.xml", numbering, "word/styles.xml", styles},
			[]Section{{Text: "3. a\n  3.i) b\n  3.ii) c\n4. d\n- e\n\nf\n\n5. g"}}},
		"tables": {"<w:tbl>" + row(cell(p(r("A"))+p(r("more"))), cell(p(r("B")))) + row(cell(""),
			cell("")) + row(cell("<w:tbl>"+row(cell(p(r("in"))), cell(p(r("side"))))+"</w:tbl>"+p()),
			cell(p(r("D")))) + "</w:tbl>", nil,
			[]Section{{Text: "A more | B\nin | side | D"}}},
		"tracked changes": {p(r("kept "), `<w:ins>`+r("new ")+`</w:ins>`,
			`<w:del><w:r><w:delText>old </w:delText></w:r>`+r("gone")+`</w:del>`, `<w:moveFrom>`+r("from")+
				`</w:moveFrom><w:moveTo>`+r("to")+`</w:moveTo>`) +
			p(`<w:pPr><w:rPr><w:del w:id="1"/></w:rPr><w:pPrChange><w:pPr><w:pStyle w:val="H1"/></w:pPr></w:pPrChange></w:pPr>`, r("still here")),
			[]string{"word/styles.xml", styles}, []Section{{Text: "kept new to\n\nstill here"}}},
		"fields and links": {p(r("See "), `<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK "http://x"</w:instrText><w:t>code</w:t></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>`+r("page 7")+`<w:r><w:fldChar w:fldCharType="end"/></w:r>`,
			`<w:hyperlink>`+r(" and this")+`</w:hyperlink><w:fldSimple w:instr="DATE">`+r(" today")+
				`</w:fldSimple>`), nil, []Section{{Text: "See page 7 and this today"}}},
		"hidden": {p(r("seen "), `<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>`,
			`<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>shown</w:t></w:r>`), nil, []Section{{Text: "seen shown"}}},
		"characters": {p(`<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d&amp;&#252;</w:t><w:sym w:char="00E9"/><w:sym w:char="F0E0"/></w:r>`), nil,
			[]Section{{Text: "a\tb\nc-d&üé"}}},
		"notes": {p(r("Text"), `<w:r><w:footnoteReference w:id="2"/></w:r>`, r(" goes on"),
			`<w:r><w:endnoteReference w:id="2"/></w:r>`) + p(r("After")),
			[]string{"word/footnotes.xml", notes("footnote", "2", "A foot."), "word/endnotes.xml",
				notes("endnote", "2", "An end.")}, []Section{{Text: "Text goes on\n\nA foot.\n\nAn end.\n\nAfter"}}},
		"headers": {p(r("Body")), []string{"word/header1.xml", `<w:hdr ` + wordNS + `>` + p(r("Head")) + `</w:hdr>`,
			"word/header2.xml", `<w:hdr ` + wordNS + `>` + p(r("Head")) + `</w:hdr>`, "word/footer1.xml",
			`<w:ftr ` + wordNS + `>` + p(r("Foot")) + `</w:ftr>`},
			[]Section{{Text: "Body"}, {Text: "Head"}, {Text: "Foot"}}},
		"text box": {p(r("Around"), `<w:r><mc:AlternateContent><mc:Choice><w:drawing><w:txbxContent>`+p(r("boxed"))+
			`</w:txbxContent></w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent>`+p(r("boxed"))+
			`</w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent></w:r>`, r(" it")), nil,
			[]Section{{Text: "Around it\n\nboxed"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readDocx(word(c.body, c.parts...))
			if err != nil || !reflect.DeepEqual(got.Sections, c.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, c.want)
			}
		})
	}
}

// TestDocxFiles reads the files that pandoc and LibreOffice wrote from one text.
func TestDocxFiles(t *testing.T) {
	for _, name := range []string{"guide-pandoc.docx", "guide-libreoffice.docx"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readDocx(b)
		if err != nil || got.Title != "Harbour Guide" || len(got.Sections) != 3 {
			t.Fatalf("%s: %v %+v", name, err, got)
		}
		want := []Section{
			{Heading: []string{"Arriving"}, Text: "The harbour office opens at six in the morning and closes when the last ferry has left. " +
				"Visitors report their flagship, its efficient crew and their affinity for difficult offices before mooring. " +
				"Café Zoë serves breakfast for 4.50 € from seven.\n\nBreakfast is not served in winter."},
			{Heading: []string{"Arriving", "Berths"},
				Text: "Berth | Length | Price\nNorth | 12 m | 30 €\nSouth | 18 m | 45 €\n\n1. Call the office on channel nine.\n2. " +
					"Wait for the pilot:\n  a. inside the breakwater,\n  b. or at anchor.\n3. Moor."},
			{Heading: []string{"Leaving"}, Text: "- Pay at the office.\n- Return the key.\n\nОпоздавшие платят за полный день. " +
				"Wer zu spät kommt, bezahlt den ganzen Tag."},
		}
		if !reflect.DeepEqual(got.Sections, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got.Sections, want)
		}
	}
}

// bomb is a tiny document whose body inflates to n bytes.
func bomb(n int, says uint64) []byte {
	var b, body bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := flate.NewWriter(&body, 9)
	if err != nil {
		panic(err)
	}
	sum := crc32.NewIEEE()
	head := []byte(`<w:document ` + wordNS + `><w:body><w:p><w:r><w:t>`)
	zeros := bytes.Repeat([]byte("a"), 1<<20)
	for _, part := range append([][]byte{head}, make([][]byte, n>>20)...) {
		if part == nil {
			part = zeros
		}
		sum.Write(part)
		if _, err := w.Write(part); err != nil {
			panic(err)
		}
	}
	w.Close()
	raw, err := z.CreateRaw(&zip.FileHeader{Name: "word/document.xml", Method: zip.Deflate, CRC32: sum.Sum32(),
		CompressedSize64: uint64(body.Len()), UncompressedSize64: says})
	if err != nil {
		panic(err)
	}
	if _, err := raw.Write(body.Bytes()); err != nil {
		panic(err)
	}
	z.Close()
	return b.Bytes()
}

func TestDocxRefused(t *testing.T) {
	many := make([]string, 0, 2*maxEntries+2)
	for i := range maxEntries + 1 {
		many = append(many, fmt.Sprint(i), "")
	}
	old, err := os.ReadFile("testdata/guide.doc")
	if err != nil {
		t.Fatal(err)
	}
	whole := word(p(r("text")))
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"not a zip":   {[]byte("hello"), "not a Word document (.docx)"},
		"another zip": {packed("a.txt", "x"), "not a Word document (.docx)"},
		"a spreadsheet": {packed("_rels/.rels", rels("officeDocument", "xl/workbook.xml"), "xl/workbook.xml",
			"<x/>"), "not a Word document (.docx)"},
		"an old document": {old, "older Word document (.doc), or one with a password"},
		"cut off":         {whole[:len(whole)/2], "damaged"},
		"broken":          {word("<w:p><w:r><w:t>text"), "damaged"},
		"no text":         {word(p()), "no text"},
		"pictures":        {word(p("<w:r><w:drawing/></w:r>")), "text recognition"},
		"a bomb":          {bomb(24<<20, 24<<20+uint64(len(wordNS))+37), "unpacks to far more"},
		"a lying bomb":    {bomb(24<<20, 100), "damaged"},
		"many entries":    {packed(many...), "unpacks to far more"},
		"deep":            {word(strings.Repeat("<w:p>", maxXML)), "nested too deep"},
		"entities": {packed("word/document.xml",
			`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><w:document `+wordNS+`><w:body>`+p(r("&e;"))+
				`</w:body></w:document>`), "damaged"},
		"laughter": {packed("word/document.xml",
			`<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><w:document `+wordNS+`><w:body>`+p(r("&b;"))+
				`</w:body></w:document>`), "damaged"},
		"a chain of closings": {word("</w:body></w:document></w:document>"), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readDocx(c.file)
			if failure := (*Failure)(nil); !errors.As(err, &failure) || !strings.Contains(failure.Reason, c.want) {
				t.Errorf("got %v, %+v", err, got)
			}
		})
	}
}

func FuzzDocx(f *testing.F) {
	for _, name := range []string{"guide-pandoc.docx", "guide.doc"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(word(p(r("x"))))
	f.Fuzz(func(t *testing.T, b []byte) { sound(t)(readDocx(b)) })
}

// FuzzWord fuzzes only the body, within a valid file.
func FuzzWord(f *testing.F) {
	f.Add(p(r("x")) + listed(1, 8, "y") + "<w:tbl>" + row(cell(p(r("z")))) + "</w:tbl>")
	f.Add("<w:tbl><w:tr><w:tc></w:tr></w:tbl></w:tc>")
	f.Add(`<w:p><w:r><w:fldChar w:fldCharType="end"/><w:t>a</w:t><w:footnoteReference w:id="1"/></w:r>`)
	f.Fuzz(func(t *testing.T, body string) {
		sound(t)(readDocx(word(body, "word/footnotes.xml", notes("footnote", "1", body))))
	})
}
