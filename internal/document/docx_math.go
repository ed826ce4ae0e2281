package document

import (
	"encoding/xml"
	"strings"
	"unicode"
)

// A formula (OMML, ECMA-376 part 1, 22.1) is written in one line as people type it: 1/2, 10^3, x_1, √(a + b). Without the signs
// between its parts a formula would be another one.

// formula is an element of a formula that is being read.
type formula struct {
	name  string
	text  strings.Builder     // what it holds itself
	parts map[string][]string // what its named parts hold
	signs map[string]string   // of its properties: chr, begChr, endChr, sepChr, degHide
}

// formulaParts are the elements that are a part of the one around them, and not text in it.
var formulaParts = map[string]bool{"num": true, "den": true, "e": true, "sup": true, "sub": true, "deg": true, "fName": true,
	"lim": true, "mr": true}

// maxFormula bounds how deep a formula is.
const maxFormula = 64

// startFormula follows an element that begins in a formula.
func (w *wordWriter) startFormula(e xml.StartElement) {
	if n := len(w.formulas); n > 1 {
		switch e.Name.Local {
		case "chr", "begChr", "endChr", "sepChr", "degHide", "type": // of properties, which are of the element around them
			outer := w.formulas[n-2]
			if outer.signs == nil {
				outer.signs = map[string]string{}
			}
			outer.signs[e.Name.Local] = value(e, "val")
		}
	}
	if len(w.formulas) < maxFormula {
		w.formulas = append(w.formulas, &formula{name: e.Name.Local})
	} else {
		w.tooDeep++
	}
}

// endFormula gives what an element of a formula holds to the one around it, or to the paragraph.
func (w *wordWriter) endFormula() {
	n := len(w.formulas)
	if w.tooDeep > 0 || n == 0 {
		w.tooDeep = max(w.tooDeep-1, 0)
		return
	}
	f := w.formulas[n-1]
	w.formulas = w.formulas[:n-1]
	text := f.written()
	if n == 1 {
		if top := w.top(); top != nil && begins(text, unicode.IsDigit) && ends(top.text.String(), unicode.IsDigit) {
			text = " " + text // "2 1/2"
		}
		w.write(text)
		return
	}
	outer := w.formulas[n-2]
	if formulaParts[f.name] {
		if outer.parts == nil {
			outer.parts = map[string][]string{}
		}
		outer.parts[f.name] = append(outer.parts[f.name], text)
		return
	}
	if f.name == "f" && begins(text, unicode.IsDigit) && ends(outer.text.String(), unicode.IsDigit) {
		outer.text.WriteByte(' ')
	}
	outer.text.WriteString(text)
}

// part is what a named part holds, "" if it is not there.
func (f *formula) part(name string) string { return strings.Join(f.parts[name], "") }

// sign is a sign of the element's properties.
func (f *formula) sign(name, usual string) string {
	if s, ok := f.signs[name]; ok {
		return s
	}
	return usual
}

// written is the element in one line.
func (f *formula) written() string {
	e := f.part("e")
	switch f.name {
	case "f":
		if f.sign("type", "") == "noBar" {
			return "(" + f.part("num") + " over " + f.part("den") + ")"
		}
		return whole(f.part("num")) + "/" + whole(f.part("den"))
	case "sSup":
		return power(whole(e), f.part("sup"))
	case "sSub":
		return below(whole(e), f.part("sub"))
	case "sSubSup":
		return power(below(whole(e), f.part("sub")), f.part("sup"))
	case "sPre":
		return power(below("", f.part("sub")), f.part("sup")) + e
	case "rad":
		if deg := f.part("deg"); deg != "" {
			return power(whole(e), "1/"+whole(deg))
		}
		return "√" + whole(e)
	case "nary":
		return power(below(f.sign("chr", "∫"), f.part("sub")), f.part("sup")) + " " + e
	case "func":
		return f.part("fName") + " " + whole(e)
	case "limLow", "limUpp":
		return below(e, f.part("lim"))
	case "d":
		return f.sign("begChr", "(") + strings.Join(f.parts["e"], f.sign("sepChr", "|")) + f.sign("endChr", ")")
	case "m":
		return "[" + strings.Join(f.parts["mr"], "; ") + "]"
	case "mr":
		return strings.Join(f.parts["e"], ", ")
	case "eqArr":
		return strings.Join(f.parts["e"], "; ")
	case "acc":
		return e + f.sign("chr", "\u0302")
	}
	return f.text.String() + e // boxes, bars, groups: what they hold
}

func power(base, sup string) string {
	if sup == "" {
		return base
	}
	return base + "^" + whole(sup)
}

func below(base, sub string) string {
	if sub == "" {
		return base
	}
	return base + "_" + whole(sub)
}

// whole is a part that stands beside a sign: in brackets, if it is more than a number or a name.
func whole(s string) string {
	s = strings.TrimSpace(s)
	simple := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '.' && r != ',' && r != '%' && r != '∞' && r != '°'
	}) < 0
	if simple || bracketed(s) || strings.HasPrefix(s, "-") && !strings.ContainsAny(s[1:], " +-*/^_") {
		return s
	}
	return "(" + s + ")"
}

// bracketed says whether a text is in one pair of brackets.
func bracketed(s string) bool {
	if !strings.HasPrefix(s, "(") {
		return false
	}
	depth := 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i == len(s)-1
		}
	}
	return false
}

func begins(s string, is func(rune) bool) bool {
	for _, r := range s {
		return is(r)
	}
	return false
}

func ends(s string, is func(rune) bool) bool {
	last := ' '
	for _, r := range s[max(0, len(s)-4):] {
		last = r
	}
	return is(last)
}
