package pdf

import (
	"bytes"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// font turns the strings of a page's content into characters.
type font struct {
	composite bool
	vertical  bool
	unicode   *cmap // ToUnicode
	codes     *cmap // a composite font's own encoding
	decode    func(string) string
	names     [256]string  // a simple font's glyphs
	texts     [256]*string // what they stand for, once asked
	widths    map[int]float64
	missing   float64
	scale     float64 // from a glyph's width to text space: 1/1000 but in Type 3 fonts
	guess     int     // base of the numbers in glyphs' names, 0 where names are names
}

// char is one character as shown.
type char struct {
	text  string
	width float64 // in text space, for a size of 1
	space bool    // the one-byte code 32, which word spacing widens
}

func (f *file) font(d dict) *font {
	t := &font{scale: 0.001, widths: map[int]float64{}}
	if s, ok := f.get(d["ToUnicode"]).(stream); ok {
		if data, err := f.decode(s); err == nil {
			t.unicode = parseCMap(data)
		}
	}
	if f.name(d["Subtype"]) == "Type0" {
		f.composite(t, d)
		return t
	}
	f.encoding(t, d)
	first := f.int(d["FirstChar"])
	for i, w := range f.array(d["Widths"]) {
		if i > 255 {
			break
		}
		t.widths[first+i] = f.float(w)
	}
	t.missing = f.float(f.dict(d["FontDescriptor"])["MissingWidth"])
	if f.name(d["Subtype"]) == "Type3" {
		t.scale = 0.001
		if m := f.array(d["FontMatrix"]); len(m) == 6 && f.float(m[0]) != 0 {
			t.scale = max(f.float(m[0]), -f.float(m[0]))
		}
	} else if len(t.widths) == 0 {
		t.standardWidths(string(f.name(d["BaseFont"])))
	}
	return t
}

// encoding finds the names of a simple font's glyphs (9.6.6).
func (f *file) encoding(t *font, d dict) {
	enc := f.get(d["Encoding"])
	base, _ := enc.(name)
	descriptor := f.dict(d["FontDescriptor"])
	if e, ok := enc.(dict); ok {
		base = f.name(e["BaseEncoding"])
	}
	baseFont := string(f.name(d["BaseFont"]))
	if e := standard().encodings[base]; e != nil {
		t.names = *e
	} else if names := f.builtin(descriptor); names != nil {
		t.names = *names
	} else if e := standard().encodings[name(strings.TrimPrefix(trimTag(baseFont), "ITC"))]; e != nil {
		t.names = *e // Symbol, ZapfDingbats
	} else if f.name(d["Subtype"]) == "TrueType" {
		t.names = *standard().encodings["WinAnsiEncoding"]
	} else {
		t.names = *standard().encodings["StandardEncoding"]
	}
	if e, ok := enc.(dict); ok {
		code := 0
		for _, v := range f.array(e["Differences"]) {
			switch v := f.get(v).(type) {
			case int:
				code = v
			case name:
				if code >= 0 && code < 256 {
					t.names[code] = string(v)
				}
				code++
			}
		}
	}
	t.guess = guessBase(&t.names)
}

// guessBase looks whether glyphs are named by numbers: then some hold no digit beyond 9, or all do.
func guessBase(names *[256]string) int {
	known, decimal, hex := 0, 0, 0
	for _, n := range names {
		if n == "" || n == ".notdef" {
			continue
		}
		if glyphText(n) != "" {
			known++
		} else if _, ok := numbered(n, 10); ok {
			decimal++
		} else if _, ok := numbered(n, 16); ok {
			hex++
		}
	}
	switch {
	case hex > known:
		return 16
	case decimal > 0:
		return 10
	}
	return 0
}

func trimTag(font string) string { // "ABCDEF+Helvetica"
	if len(font) > 7 && font[6] == '+' {
		return font[7:]
	}
	return font
}

// builtin reads the encoding in the clear part of an embedded Type 1 font: "dup 65 /A put".
func (f *file) builtin(descriptor dict) *[256]string {
	s, ok := f.get(descriptor["FontFile"]).(stream)
	if !ok {
		return nil
	}
	data, err := f.decode(s)
	if err != nil {
		return nil
	}
	if i := bytes.Index(data, []byte("eexec")); i >= 0 {
		data = data[:i]
	}
	i := bytes.Index(data, []byte("/Encoding"))
	if i < 0 {
		return nil
	}
	l := &lexer{b: data, i: i + len("/Encoding")}
	if l.token() == keyword("StandardEncoding") {
		return standard().encodings["StandardEncoding"]
	}
	var names [256]string
	for {
		switch l.token() {
		case end, keyword("def"), keyword("readonly"):
			return &names
		case keyword("dup"):
			code, ok := l.token().(int)
			glyph, ok2 := l.token().(name)
			if ok && ok2 && code >= 0 && code < 256 {
				names[code] = string(glyph)
			}
		}
	}
}

// standardWidths are those of the standard font that comes nearest.
func (t *font) standardWidths(base string) {
	base = strings.ToLower(trimTag(base))
	family, bold, italic := "Helvetica", strings.Contains(base, "bold"), strings.Contains(base, "italic") ||
		strings.Contains(base, "oblique")
	switch {
	case strings.Contains(base, "cour"), strings.Contains(base, "mono"):
		t.missing = 600
		return
	case strings.Contains(base, "symbol"):
		family = "Symbol"
	case strings.Contains(base, "dingbats"):
		family = "ZapfDingbats"
	case strings.Contains(base, "times"), strings.Contains(base, "serif"), strings.Contains(base, "roman"):
		family = "Times-" + map[[2]bool]string{{false, false}: "Roman", {true, false}: "Bold",
			{false, true}: "Italic", {true, true}: "BoldItalic"}[[2]bool{bold, italic}]
	case bold:
		family = "Helvetica-Bold"
	}
	w := standard().widths[family]
	for i, g := range t.names {
		if x, ok := w[g]; ok {
			t.widths[i] = x
		}
	}
	t.missing = 500
}

// composite reads a Type 0 font (9.7).
func (f *file) composite(t *font, d dict) {
	t.composite = true
	var child dict
	if a := f.array(d["DescendantFonts"]); len(a) > 0 {
		child = f.dict(a[0])
	}
	t.missing = 1000
	if w, ok := child["DW"]; ok {
		t.missing = f.float(w)
	}
	t.cidWidths(f, f.array(child["W"]))
	switch enc := f.get(d["Encoding"]).(type) {
	case stream:
		if data, err := f.decode(enc); err == nil {
			t.codes = parseCMap(data)
		}
	case name:
		t.vertical = strings.HasSuffix(string(enc), "-V")
		t.predefined(string(enc))
	}
	if t.codes == nil {
		t.codes = &cmap{spaces: []codespace{{0, 0xffff, 2}}, cids: []cidRange{{0, 0xffff, 2, 0}}}
	}
}

// predefined knows the encodings of 9.7.5.2 that are character sets of their own. Their glyphs' numbers are not known
// here, so that all are as wide as the font's default.
func (t *font) predefined(enc string) {
	var e encoding.Encoding
	switch {
	case strings.Contains(enc, "UCS2"), strings.Contains(enc, "UTF16"):
		t.decode = func(s string) string { return string(utf16.Decode(units(s))) }
		return
	case strings.HasPrefix(enc, "GBK"), strings.HasPrefix(enc, "GB-EUC"), strings.HasPrefix(enc, "GBpc"):
		e = simplifiedchinese.GBK
	case strings.HasPrefix(enc, "ETen"), strings.HasPrefix(enc, "B5"):
		e = traditionalchinese.Big5
	case strings.Contains(enc, "RKSJ"):
		e = japanese.ShiftJIS
	case enc == "EUC-H", enc == "EUC-V":
		e = japanese.EUCJP
	case strings.HasPrefix(enc, "KSC"):
		e = korean.EUCKR
	default:
		return
	}
	t.decode = func(s string) string { out, _ := e.NewDecoder().String(s); return out }
	t.codes = &cmap{spaces: []codespace{{0, 0x80, 1}, {0x8140, 0xfefe, 2}}}
	if e == japanese.ShiftJIS {
		t.codes.spaces = []codespace{{0, 0x80, 1}, {0xa0, 0xdf, 1}, {0x8140, 0x9ffc, 2}, {0xe040, 0xfcfc, 2}}
	}
}

// cidWidths reads "12 [500 600] 20 30 1000".
func (t *font) cidWidths(f *file, w array) {
	for i := 0; i+1 < len(w) && len(t.widths) < maxMap; {
		first := f.int(w[i])
		if list, ok := f.get(w[i+1]).(array); ok {
			for k, x := range list {
				t.widths[first+k] = f.float(x)
			}
			i += 2
			continue
		}
		if i+2 >= len(w) {
			return
		}
		last, x := f.int(w[i+1]), f.float(w[i+2])
		for c := first; c <= last && c < first+1<<16; c++ {
			t.widths[c] = x
		}
		i += 3
	}
}

// chars calls yield with each character of a shown string.
func (t *font) chars(s string, yield func(char)) {
	if !t.composite {
		for i := range len(s) {
			c := int(s[i])
			w, ok := t.widths[c]
			if !ok {
				w = t.missing
			}
			yield(char{t.simple(c), w * t.scale, c == ' '})
		}
		return
	}
	for len(s) > 0 {
		c, n := t.codes.next(s)
		w, ok := t.widths[t.codes.cid(c)]
		if !ok {
			w = t.missing
		}
		yield(char{t.wide(c, s[:n]), w * t.scale, n == 1 && c.value == ' '})
		s = s[n:]
	}
}

func (t *font) wide(c code, raw string) string {
	if t.unicode != nil {
		if text, ok := t.unicode.lookup(c); ok {
			return text
		}
	}
	if t.decode != nil {
		return t.decode(raw)
	}
	return ""
}

func (t *font) simple(c int) string {
	if t.texts[c] == nil {
		text := t.look(c)
		t.texts[c] = &text
	}
	return *t.texts[c]
}

func (t *font) look(c int) string {
	if t.unicode != nil {
		if text, ok := t.unicode.lookup(code{uint32(c), 1}); ok && text != "" && text != "\x00" {
			return text
		}
	}
	glyph := t.names[c]
	if text, ok := glyphs()[glyph]; ok {
		return text
	}
	if t.guess > 0 {
		if n, ok := numbered(glyph, t.guess); ok {
			return cork(n)
		}
	}
	return glyphText(glyph)
}
