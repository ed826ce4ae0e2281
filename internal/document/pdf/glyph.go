package pdf

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:embed glyphlist.txt
var glyphList string

//go:embed standard.txt
var standardList string

// glyphs is the Adobe Glyph List: a glyph's name to its text.
var glyphs = sync.OnceValue(func() map[string]string {
	m := make(map[string]string, 4400)
	for line := range strings.Lines(glyphList) {
		key, codes, ok := strings.Cut(strings.TrimSpace(line), ";")
		if ok && line[0] != '#' {
			m[key] = unhexRunes(strings.ReplaceAll(codes, " ", ""), 4)
		}
	}
	// Names of TeX's fonts that the list doesn't have.
	for key, text := range map[string]string{"ff": "ff", "ffi": "ffi", "ffl": "ffl", "fi": "fi", "fl": "fl",
		"dotlessj": "ȷ", "visiblespace": "␣", "suppress": "", "mu": "µ", "Omega": "Ω", "Delta": "Δ"} {
		m[key] = text
	}
	return m
})

// standard is what a PDF file may leave out.
var standard = sync.OnceValue(func() (s struct {
	encodings map[name]*[256]string
	widths    map[string]map[string]float64
}) {
	s.encodings, s.widths = map[name]*[256]string{}, map[string]map[string]float64{}
	for line := range strings.Lines(standardList) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "encoding":
			e := new([256]string)
			for i, g := range fields[2:] {
				if g != "-" {
					e[32+i] = g
				}
			}
			s.encodings[name(fields[1])] = e
		case "widths":
			w := map[string]float64{}
			for _, f := range fields[2:] {
				g, width, _ := strings.Cut(f, "=")
				w[g], _ = strconv.ParseFloat(width, 64)
			}
			s.widths[fields[1]] = w
		}
	}
	return s
})

// glyphText is the text that a glyph's name stands for, by the rules of the Adobe Glyph List Specification.
func glyphText(glyph string) string {
	if t, ok := glyphs()[glyph]; ok {
		return t
	}
	glyph, _, _ = strings.Cut(glyph, ".") // "a.alt"
	if t, ok := glyphs()[glyph]; ok {
		return t
	}
	if hex, ok := strings.CutPrefix(glyph, "uni"); ok && len(hex) >= 4 && len(hex)%4 == 0 {
		if t := unhexRunes(hex, 4); t != "" {
			return t
		}
	}
	if hex, ok := strings.CutPrefix(glyph, "u"); ok && len(hex) >= 4 && len(hex) <= 6 {
		if t := unhexRunes(hex, len(hex)); t != "" {
			return t
		}
	}
	if first, rest, ok := strings.Cut(glyph, "_"); ok && first != "" { // "f_f_i"
		return glyphText(first) + glyphText(rest)
	}
	return ""
}

// unhexRunes reads runes of n digits each, "" when they are none.
func unhexRunes(hex string, n int) string {
	var out []rune
	for ; len(hex) >= n; hex = hex[n:] {
		v, err := strconv.ParseUint(hex[:n], 16, 32)
		if err != nil || !utf8.ValidRune(rune(v)) {
			return ""
		}
		out = append(out, rune(v))
	}
	return string(out)
}

// numbered reads names such as "a65", "c65", "G41" or "C0065", which some writers make from a character's code. base
// is 10 or 16.
func numbered(glyph string, base int) (code int, ok bool) {
	digits := strings.TrimLeft(glyph, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if base == 16 && len(glyph) > 1 {
		digits = glyph[1:]
	}
	if len(digits) == 0 || len(glyph)-len(digits) > 2 {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, base, 16)
	return int(v), err == nil && v < 256
}

// cork is the text of a code that stands for itself: Latin-1, and below that what TeX's fonts have in the Cork
// encoding.
func cork(code int) string {
	if code >= 32 {
		return string(rune(code))
	}
	if code < 16 {
		return ""
	}
	return [...]string{"“", "”", "„", "«", "»", "–", "—", "", "‰", "ı", "ȷ", "ff", "fi", "fl", "ffi", "ffl"}[code-16]
}
