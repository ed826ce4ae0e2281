package pdf

import (
	"bytes"
	"compress/lzw"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// make writes objects 1, 2, … with a correct cross-reference table; object 1 is the catalog.
func build(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}

func streamOf(dict, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>stream\n%s\nendstream", dict, len(data), data)
}

// page makes a file of one page, whose font is object 4.
func page(content, font string, more ...string) []byte {
	return build(append([]string{"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F 4 0 R>>/XObject<</X 6 0 R>>/Properties<</P 6 0 R>>>>>>",
		"<</Type/Page/Parent 2 0 R/Contents 5 0 R>>", font, streamOf("", content)}, more...)...)
}

const helvetica = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"

func TestText(t *testing.T) {
	wide := "<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[<</DW 500/W[1[300]2 9 600]>>]/ToUnicode 6 0 R>>"
	cmap := streamOf("", "1 begincodespacerange<0000><ffff>endcodespacerange 2 beginbfchar<0001><00480069>\n"+
		"<0002><d83dde00>endbfchar 2 beginbfrange<0003><0005><0061><0006><0007>[<0078><0079>]endbfrange")
	for name, c := range map[string]struct {
		content, font string
		more          []string
		want          string
	}{
		"strings": {`BT /F 10 Tf (a\(b\)\\ \141\
c(d)) Tj ET`, helvetica, nil, `a(b)\ ac(d)`},
		"hex": {`BT /F 10 Tf <48 65 6C6c6f2> Tj ET`, helvetica, nil, "Hello"},
		"words by places": {`BT /F 10 Tf [(Kern)20(ed)-400(words)] TJ ET`, helvetica, nil,
			"Kerned words"},
		"lines": {
			`BT /F 10 Tf 12 TL 50 700 Td (one) Tj T* (two) Tj (three) ' 0 -40 Td (four) Tj ET`, helvetica, nil,
			"one\ntwo\nthree\n\nfour"},
		"word spacing": {`BT /F 10 Tf 5 Tw (a b) Tj 0 Tw 4 Tc (cd) Tj ET`, helvetica, nil,
			"a bc d"},
		"a row in pieces": {
			`BT /F 10 Tf 1 0 0 1 50 700 Tm (left) Tj 1 0 0 1 300 700 Tm (right) Tj ET`, helvetica, nil, "left right"},
		"a word in pieces, with another between": {
			`BT /F 10 Tf 1 0 0 1 50 700 Tm (be) Tj 1 0 0 1 50 650 Tm (other) Tj 1 0 0 1 61.1 700 Tm (fore) Tj ET`,
			helvetica, nil, "before\n\nother"},
		"superscript": {`BT /F 10 Tf (x) Tj /F 6 Tf 4 Ts (2) Tj ET`, helvetica, nil, "x2"},
		"printed twice": {`BT /F 10 Tf 50 700 Td (b) Tj 1 0 0 1 50.2 700 Tm (b) Tj ET`,
			helvetica, nil, "b"},
		"turned": {`BT /F 10 Tf 0 1 -1 0 50 50 Tm (up) Tj ( there) Tj ET`,
			helvetica, nil, "up there"},
		"differences": {`BT /F 10 Tf (abc) Tj ET`,
			"<</Subtype/Type1/BaseFont/X/Encoding<</Differences[97/fi/Euro/uni00E9]>>>>", nil, "fi€é"},
		"WinAnsi": {`BT /F 10 Tf (\200\344) Tj ET`,
			"<</Subtype/TrueType/BaseFont/X/Encoding/WinAnsiEncoding>>", nil, "€ä"},
		"Symbol": {`BT /F 10 Tf (abG) Tj ET`, "<</Subtype/Type1/BaseFont/Symbol>>",
			nil, "αβΓ"},
		"numbers for names": {`BT /F 10 Tf (\033\034x) Tj ET`,
			"<</Subtype/Type3/FontMatrix[.01 0 0 .01 0 0]/FirstChar 27/Widths[50 50]/Encoding<</Differences[27/a27/a28 120/a120]>>>>", nil, "fffix"},
		"accents": {`BT /F 10 Tf [(\302)333(e)] TJ ET`,
			"<</Subtype/Type1/BaseFont/Helvetica/Encoding/StandardEncoding>>", nil, "é"},
		"to Unicode": {`BT /F 10 Tf <00010002000300050007> Tj ET`, wide, []string{cmap},
			"Hi😀acy"},
		"built-in names": {`BT /F 10 Tf (A) Tj ET`,
			"<</Subtype/Type1/BaseFont/X/FontDescriptor<</FontFile 6 0 R>>>>",
			[]string{streamOf("", "%!PS\n/Encoding 256 array\ndup 65 /alpha put\nreadonly def eexec xyz")}, "α"},
		"Chinese": {"BT /F 10 Tf <c4e3bac3> Tj ET",
			"<</Subtype/Type0/Encoding/GBK-EUC-H/DescendantFonts[<<>>]>>", nil, "你好"},
		"a form": {`q 1 0 0 1 0 10 cm /X Do Q`, helvetica,
			[]string{streamOf("/Type/XObject/Subtype/Form/Matrix[1 0 0 1 0 0]", "BT /F 10 Tf (in form) Tj ET")},
			"in form"},
		"text instead": {
			`BT /F 10 Tf /Span <</ActualText (whole)>> BDC (w) Tj (h) Tj EMC ( end) Tj /Span /P BDC (z) Tj EMC ET`,
			helvetica, []string{"<</ActualText <feff00e9>>>"}, "whole endé"},
		"an image within": {
			"BT /F 10 Tf (a) Tj ET BI /W 2 /H 2 ID \x00EI\xff ( EI Q BT /F 10 Tf 100 0 Td (b) Tj ET", helvetica,
			nil, "a b"},
		"nonsense": {`]] >> ( BT /F 10 Tf`, helvetica, nil, ""},
		"more nonsense": {
			`Q Q EMC Tj TJ 1 Tf /F Tf BT /F 10 Tf /G 5 Tf (x) Tj /F 9 Tf (ok) Tj [(] Tj ET`, helvetica, nil, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := Read(page(c.content, c.font, c.more...), 9)
			if err != nil || len(doc.Pages) != 1 || doc.Pages[0] != c.want {
				t.Errorf("%v %+v, want %q", err, doc, c.want)
			}
		})
	}
}

// TestFilters: the same content with each filter that is used for text.
func TestFilters(t *testing.T) {
	content := "BT /F 10 Tf (" + strings.Repeat("packed and unpacked ", 400) + ") Tj ET"
	var flate, a85 bytes.Buffer
	z := zlib.NewWriter(&flate)
	z.Write([]byte(content))
	z.Close()
	e := ascii85.NewEncoder(&a85)
	e.Write(flate.Bytes())
	e.Close()
	columns := 20
	var up bytes.Buffer
	z = zlib.NewWriter(&up)
	above := make([]byte, columns)
	padded := content + strings.Repeat(" ", columns-len(content)%columns)
	for i := 0; i < len(padded); i += columns {
		line := []byte(padded[i : i+columns])
		kind := byte(i / columns % 3) // none, sub, up
		out := []byte{kind}
		for k, v := range line {
			switch kind {
			case 1:
				if k > 0 {
					v -= line[k-1]
				}
			case 2:
				v -= above[k]
			}
			out = append(out, v)
		}
		z.Write(out)
		copy(above, line)
	}
	z.Close()
	run := ""
	for i := 0; i < len(content); i += 100 {
		part := content[i:min(i+100, len(content))]
		run += string(rune(len(part)-1)) + part
	}
	for name, c := range map[string][2]string{
		"flate":   {"/Filter/FlateDecode", flate.String()},
		"cut off": {"/Filter/FlateDecode", flate.String()[:flate.Len()-6]},
		"two":     {"/Filter[/ASCII85Decode/FlateDecode]", a85.String() + "~>"},
		"hex":     {"/Filter/ASCIIHexDecode", hex.EncodeToString([]byte(content)) + ">"},
		"predictors": {fmt.Sprintf("/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns %d>>", columns),
			up.String()},
		"runs": {"/Filter/RunLengthDecode", run + "\x80"},
		"lzw":  {"/Filter/LZWDecode", lzwed(content)},
	} {
		file := build("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
			"<</Type/Page/Parent 2 0 R/Resources<</Font<</F 4 0 R>>>>/Contents[5 0 R]>>", helvetica,
			streamOf(c[0], c[1]))
		doc, err := Read(file, 9)
		if err != nil || strings.Count(doc.Pages[0], "packed and unpacked") != 400 {
			t.Errorf("%s: %v %+v", name, err, doc)
		}
	}
	var gif bytes.Buffer // GIF's LZW is a different one: reading it must do no harm
	w := lzw.NewWriter(&gif, lzw.LSB, 8)
	w.Write([]byte(content))
	w.Close()
	unlzw(gif.Bytes(), 1)
}

// lzwed compresses with nine-bit codes only: it clears the table before the codes would grow.
func lzwed(s string) string {
	var out []byte
	acc, bits := 0, 0
	put := func(code int) {
		acc, bits = acc<<9|code, bits+9
		for bits >= 8 {
			bits -= 8
			out = append(out, byte(acc>>bits))
			acc &= 1<<bits - 1
		}
	}
	for i := range len(s) {
		if i%200 == 0 {
			put(256)
		}
		put(int(s[i]))
	}
	put(257)
	put(0)
	return string(out)
}

// TestMended: files whose tables are wrong or missing, and files with loops.
func TestMended(t *testing.T) {
	whole := page("BT /F 10 Tf (mended) Tj ET", helvetica)
	packed := func() []byte { // objects in an object stream, without a table
		return []byte("%PDF-1.5\n7 0 obj" + streamOf("/Type/ObjStm/N 3/First 15",
			"1 0 2 31 4 81   <</Type/Catalog/Pages 2 0 R>>   <</Type/Pages/Kids[3 0 R]/Count 1>>               "+
				helvetica) +
			"endobj\n3 0 obj<</Type/Page/Parent 2 0 R/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>endobj\n5 0 obj" +
			streamOf("", "BT /F 10 Tf (mended) Tj ET") + "endobj\n8 0 obj<</Type/XRef/Root 1 0 R>>endobj\n%%EOF")
	}
	for name, file := range map[string][]byte{
		"whole":          whole,
		"rubbish before": append([]byte("HTTP/1.1 200 OK\r\n\r\n"), whole...),
		"rubbish behind": append(bytes.Clone(whole), "\n<html>"...),
		"no table":       whole[:bytes.Index(whole, []byte("xref"))],
		"a wrong table":  bytes.ReplaceAll(whole, []byte("00000 n"), []byte("00007 n"))[:len(whole)],
		"wrong offsets":  bytes.Replace(whole, []byte("%PDF-1.7\n"), []byte("%PDF-1.7\n% more than there was\n"), 1),
		"wrong length":   bytes.Replace(whole, []byte("/Length 26"), []byte("/Length 99"), 1),
		"Prev in a circle": bytes.Replace(whole, []byte("/Root 1 0 R"),
			[]byte(fmt.Sprintf("/Root 1 0 R/Prev %d", bytes.Index(whole, []byte("xref")))), 1),
		"an object stream": packed(),
		"version 2":        bytes.Replace(whole, []byte("%PDF-1.7"), []byte("%PDF-2.0"), 1),
		"carriage returns": bytes.ReplaceAll(whole, []byte("\nendobj\n"), []byte("\rendobj\r")),
		"a circle of forms": page("BT /F 10 Tf (mended) Tj ET /X Do", helvetica,
			streamOf("/Subtype/Form/Resources<</XObject<</X 6 0 R>>>>", "/X Do /X Do")),
	} {
		doc, err := Read(file, 9)
		if err != nil || len(doc.Pages) != 1 || doc.Pages[0] != "mended" {
			t.Errorf("%s: %v %+v", name, err, doc)
		}
	}
	for name, c := range map[string]struct {
		file string
		want error
	}{
		"not a PDF":         {"hello", ErrNotPDF},
		"nothing":           {"", ErrNotPDF},
		"no more than that": {"%PDF-1.4\n", ErrBroken},
		"itself its length": {"%PDF-1.4\n1 0 obj<</Length 1 0 R>>stream\nx\nendstream endobj\ntrailer<</Root 1 0 R>>", ErrBroken},
		"a reference to it": {"%PDF-1.4\n1 0 obj 2 0 R endobj 2 0 obj 1 0 R endobj\ntrailer<</Root 1 0 R>>", ErrBroken},
		"its own parent":    {"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[2 0 R 2 0 R]>>endobj", ErrBroken},
		"pages of pages": {"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R 4 0 R 5 0 R]>>endobj 3 0 obj<<>>endobj 4 " +
			"0 obj<<>>endobj 5 0 obj<<>>endobj", ErrPages},
		"deep": {"%PDF-1.4\n1 0 obj" + strings.Repeat("[", 1<<20), ErrBroken},
	} {
		if _, err := Read([]byte(c.file), 2); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGlyphNames(t *testing.T) {
	for glyph, want := range map[string]string{"A": "A", "eacute": "é", "a.alt": "a", "f_f_i": "ffi",
		"uni20AC": "€", "u1F600": "😀", "uniD800": "", "nonsense": "", "": "", "_": "", "ffl": "ffl"} {
		if got := glyphText(glyph); got != want {
			t.Errorf("%q: %q", glyph, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("../testdata/*.pdf")
	if err != nil || len(files) < 3 {
		f.Fatal(err, files)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(page("BT /F 10 Tf (x) Tj ET", helvetica))
	f.Add([]byte("%PDF-1.5\n7 0 obj" + streamOf("/Type/ObjStm/N 1/First 4", "1 0 <</Type/Catalog>>") + "endobj"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if doc, err := Read(b, 50); err == nil && (len(doc.Pages) == 0 || len(doc.Pages) > 50) {
			t.Fatal(len(doc.Pages))
		}
	})
}

// FuzzContent fuzzes only a page's content and a font's map, within a valid file.
func FuzzContent(f *testing.F) {
	f.Add("BT /F 10 Tf [(a)-300(b)] TJ T* (c) ' ET q Q BI ID EI", "1 beginbfrange<00><ff><0041>endbfrange")
	f.Add("/X Do BT /F -1 Tf 1e38 0 0 1e-38 0 0 Tm (z) Tj (y) \" ET",
		"beginbfchar<0001>/a endbfchar <00000000><ffffffff>begincodespacerange 1 endcodespacerange")
	f.Fuzz(func(t *testing.T, content, cmap string) {
		for _, font := range []string{"<</Subtype/Type0/Encoding 6 0 R/ToUnicode 6 0 R/DescendantFonts[<</W[0 9 1 1[2]]>>]>>",
			"<</Subtype/Type1/ToUnicode 6 0 R/Widths 6 0 R>>"} {
			if _, err := Read(page(content, font, streamOf("/Subtype/Form", cmap)), 9); err != nil &&
				!errors.Is(err, ErrBroken) && !errors.Is(err, ErrPages) && !errors.Is(err, errTooMuch) &&
				!errors.Is(err, ErrPassword) {
				t.Fatal(err)
			}
		}
	})
}
