package document

import (
	"bytes"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// Formulas, check boxes, ruby: each as somebody would type it.
func TestDocxSigns(t *testing.T) {
	m := func(s string) string { return "<m:oMath>" + s + "</m:oMath>" }
	x := func(s string) string { return "<m:r><m:t>" + s + "</m:t></m:r>" }
	in := func(name, s string) string { return "<m:" + name + ">" + s + "</m:" + name + ">" }
	frac := func(a, b string) string { return in("f", in("num", a)+in("den", b)) }
	pow := func(a, b string) string { return in("sSup", in("e", a)+in("sup", b)) }
	high := func(s string) string {
		return `<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>` + s + `</w:t></w:r>`
	}
	control := func(checked, sign string) string {
		return `<w:sdt><w:sdtPr><w14:checkbox>` + checked + `<w14:checkedState w14:val="2612"/></w14:checkbox></w:sdtPr><w:sdtContent>` + sign +
			`</w:sdtContent></w:sdt>`
	}
	form := func(state string) string {
		return `<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:name w:val="A"/><w:checkBox><w:sizeAuto/>` + state +
			`</w:checkBox></w:ffData></w:fldChar></w:r><w:r><w:instrText>FORMCHECKBOX</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>`
	}
	ruby := func(base, reading string) string {
		return `<w:r><w:ruby><w:rubyPr><w:lid w:val="ja-JP"/></w:rubyPr><w:rt>` + r(reading) + `</w:rt><w:rubyBase>` + r(base) +
			`</w:rubyBase></w:ruby></w:r>`
	}
	for _, c := range []struct{ name, body, want string }{
		{"fraction", p(r("The discount is "), m(frac(x("1"), x("2"))), r(" of the price")), "The discount is 1/2 of the price"},
		{"mixed number", p(r("2"), m(frac(x("1"), x("2"))), r(" kg")), "2 1/2 kg"},
		{"mixed number in a formula", p(m(x("2") + frac(x("1"), x("2")))), "2 1/2"},
		{"fraction of sums", p(m(frac(x("a+b"), x("2c")))), "(a+b)/2c"},
		{"fraction of fractions", p(m(frac(frac(x("1"), x("2")), x("3")))), "(1/2)/3"},
		{"binomial", p(m(in("f", `<m:fPr><m:type m:val="noBar"/></m:fPr>`+in("num", x("n"))+in("den", x("k"))))), "(n over k)"},
		{"power", p(m(pow(x("10"), x("3"))), r(" units")), "10^3 units"},
		{"negative power", p(m(pow(x("10"), x("-3")))), "10^-3"},
		{"power of a sum", p(m(pow(in("d", in("e", x("a+b"))), x("n+1")))), "(a+b)^(n+1)"},
		{"index", p(m(in("sSub", in("e", x("x"))+in("sub", x("1"))))), "x_1"},
		{"index and power", p(m(in("sSubSup", in("e", x("x"))+in("sub", x("1"))+in("sup", x("2"))))), "x_1^2"},
		{"root", p(m(in("rad", in("deg", "")+in("e", x("a+b"))))), "√(a+b)"},
		{"third root", p(m(in("rad", in("deg", x("3"))+in("e", x("8"))))), "8^(1/3)"},
		{"sum", p(m(in("nary", `<m:naryPr><m:chr m:val="∑"/></m:naryPr>`+in("sub", x("i=1"))+in("sup", x("n"))+in("e", x("i"))))), "∑_(i=1)^n i"},
		{"function", p(m(in("func", in("fName", x("sin"))+in("e", x("x"))))), "sin x"},
		{"braces", p(m(in("d", `<m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>`+in("e", x("0"))+in("e", x("1"))))), "[0|1]"},
		{"matrix", p(m(in("m", in("mr", in("e", x("1"))+in("e", x("2")))+in("mr", in("e", x("3"))+in("e", x("4")))))), "[1, 2; 3, 4]"},
		{"superscripts of runs", p(r("10"), high("3"), r(" and 5 m"), high("2"), r(", the 1"), high("st"), r(", Parley"), high("TM")),
			"10^3 and 5 m^2, the 1st, ParleyTM"},
		{"subscript", p(r("H"), `<w:r><w:rPr><w:vertAlign w:val="subscript"/></w:rPr><w:t>2</w:t></w:r>`, r("O")), "H2O"},
		{"checked", p(control(`<w14:checked w14:val="1"/>`, r("☒")), r(" breakfast")), "[x] breakfast"},
		{"not checked", p(control(`<w14:checked w14:val="0"/>`, r("☐")), r(" breakfast")), "[ ] breakfast"},
		{"a sign of a font", p(control(`<w14:checked w14:val="1"/>`, `<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>`), r(" dinner")),
			"[x] dinner"},
		{"a sign by itself",
			p(`<w:r><w:sym w:font="Wingdings" w:char="F0A8"/></w:r>`, r(" no "), `<w:r><w:sym w:font="Symbol" w:char="F0A3"/></w:r>`, r(" 5")),
			"[ ] no ≤ 5"},
		{"form, checked", p(form(`<w:default w:val="0"/><w:checked/>`), r(" I agree")), "[x] I agree"},
		{"form, by default", p(form(`<w:default w:val="1"/>`), r(" I agree")), "[x] I agree"},
		{"form, not checked", p(form(`<w:default w:val="1"/><w:checked w:val="0"/>`), r(" I agree")), "[ ] I agree"},
		{"other content control", p(`<w:sdt><w:sdtPr/><w:sdtContent>` + r("text") + `</w:sdtContent></w:sdt>`), "text"},
		{"ruby", p(r("私は"), ruby("東京", "とうきょう"), r("に行きます")), "私は東京(とうきょう)に行きます"},
		{"ruby by character", p(ruby("東", "とう"), ruby("京", "きょう"), r("駅")), "東京(とうきょう)駅"},
		{"ruby at the end", p(ruby("東京", "とうきょう")), "東京(とうきょう)"},
	} {
		got, err := readDocx(word(c.body))
		if err != nil || len(got.Sections) != 1 || got.Sections[0].Text != c.want {
			t.Errorf("%s: %v %+v, want %s", c.name, err, got, c.want)
		}
	}
	got, err := readDocx(testdata(t, "fraction.docx"))
	if err != nil || got.Sections[0].Text != "The discount is 1/2 of the price, area 10^3 units.\n\nH2O and 10^3" {
		t.Errorf("fraction.docx: %v %+v", err, got)
	}
}

// Parts of a file may be in UTF-16, with a mark or without.
func TestDocxUTF16(t *testing.T) {
	for name, e := range map[string]struct {
		order unicode.Endianness
		mark  unicode.BOMPolicy
	}{"little": {unicode.LittleEndian, unicode.UseBOM}, "big": {unicode.BigEndian, unicode.UseBOM},
		"little, no mark": {unicode.LittleEndian, unicode.IgnoreBOM}, "big, no mark": {unicode.BigEndian, unicode.IgnoreBOM}} {
		part, err := unicode.UTF16(e.order, e.mark).NewEncoder().String(`<?xml version="1.0" encoding="UTF-16"?><w:document ` + wordNS +
			`><w:body>` + p(r("Größe 5, 東京")) + `</w:body></w:document>`)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readDocx(packed("_rels/.rels", rels("officeDocument", "word/document.xml"), "word/document.xml", part))
		if err != nil || len(got.Sections) != 1 || got.Sections[0].Text != "Größe 5, 東京" {
			t.Errorf("%s: %v %+v", name, err, got)
		}
	}
	if _, err := readDocx(packed("word/document.xml", "\xff\xfe<\x00w")); !bytes.Contains([]byte(err.Error()), []byte("damaged")) {
		t.Errorf("cut off: %v", err)
	}
}
