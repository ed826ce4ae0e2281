package local

import (
	"strings"
	"unicode"
)

// hums are how a program writes hums. Left as they are, it spells them, as they have no vowel: "em em aitch em".
type hums struct{ mm, hm, mmhm string }

var (
	fliteHums  = hums{mm: "um", hm: "hum", mmhm: "um-hum"}
	espeakHums = hums{mm: "[[m:]]", hm: "[[h@m]]", mmhm: "[[m:h'@m]]"} // phonemes of all its languages
)

// in writes those in a text, whose words are separated by single spaces.
func (h hums) in(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		from := strings.IndexFunc(w, unicode.IsLetter)
		to := strings.LastIndexFunc(w, unicode.IsLetter) + 1
		if from < 0 || w == strings.ToUpper(w) { // "HM" is an abbreviation
			continue
		}
		const digits = "0123456789"
		if before := words[max(i-1, 0)]; strings.ContainsAny(w[:from], digits) || strings.TrimRight(before, digits) != before {
			continue // "5mm" and "20 mm" are millimetres
		}
		if hum := h.of(strings.ReplaceAll(strings.ToLower(w[from:to]), "-", "")); hum != "" {
			words[i] = w[:from] + hum + w[to:]
		}
	}
	return strings.Join(words, " ")
}

// of writes a word; "" if it is no hum.
func (h hums) of(word string) string {
	rest := strings.TrimLeft(word, "h")
	switch {
	case len(word) < 2 || strings.Trim(word, "hm") != "" || rest == "":
		return ""
	case strings.Contains(strings.TrimRight(rest, "h"), "h"):
		return h.mmhm
	case rest != word:
		return h.hm
	}
	return h.mm
}
