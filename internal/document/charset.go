package document

import (
	"strings"
	"unicode"
)

// syllables reports whether nine in ten pairs of bytes are Hangul syllables of KS X 1001. Korean text has hardly anything
// else, while Chinese text in GB18030 and single letters of European sets are pairs of EUC-KR, too, but others.
func syllables(b []byte) bool {
	pairs, hangul := 0, 0
	for i := 0; i+1 < len(b); i++ {
		if b[i] < 0x80 {
			continue
		}
		pairs++
		if b[i] >= 0xb0 && b[i] <= 0xc8 && b[i+1] >= 0xa1 {
			hangul++
		}
		i++
	}
	return hangul*10 >= pairs*9
}

// hanzi reports whether at least half of the pairs of bytes are characters of GB 2312, which Chinese text mostly has. A
// single letter of a European set and the ASCII letter after it are a pair of GB18030, too.
func hanzi(b []byte) bool {
	pairs, common := 0, 0
	for i := 0; i+1 < len(b); i++ {
		if b[i] < 0x80 {
			continue
		}
		pairs++
		if b[i+1] >= 0xa1 {
			common++
		}
		i++
	}
	return common*2 >= pairs
}

// kana reports whether a letter is one that only Japanese writes.
func kana(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) && r < 0xff00 }

// mixed reports whether most words with letters beyond ASCII have Latin and other letters side by side, as nobody writes.
func mixed(text string) bool {
	words, both := 0, 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		other := strings.ContainsFunc(word, func(r rune) bool { return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Hebrew) })
		if strings.ContainsFunc(word, func(r rune) bool { return r >= 0x80 }) {
			words++
		}
		if other && strings.ContainsFunc(word, func(r rune) bool { return r < 0x80 }) {
			both++
		}
	}
	return both*2 > words
}
