// Package charset tells which character set a text of bytes is written in, and whether a text reads like a language.
//
// What a text would say in each of the older character sets is measured against how the letters of 31 languages follow one
// another. Where two sets are about as likely and would say different things, or none says anything in a language, it says so
// rather than guess.
package charset

import (
	"bytes"
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Guess is the likeliest character set of a text.
type Guess struct {
	Name     string
	Encoding encoding.Encoding
	Or       string // the likeliest one in which the text says something else, "" for none
	// Sure says that the text reads like a language in it, and that no other set is about as likely and says something else.
	Sure bool
}

// set is a character set with the languages that are written in it. rarity is how much less likely it is than the commonest,
// as a logarithm.
type set struct {
	name      string
	encoding  encoding.Encoding
	languages string
	rarity    float64
}

var sets = []set{
	{"windows-1252", charmap.Windows1252, "en de fr es pt it nl sv da fi is", 0},
	{"windows-1250", charmap.Windows1250, "en de pl cs sk hu hr ro", 2},
	{"windows-1251", charmap.Windows1251, "en ru uk bg", 2},
	{"windows-1253", charmap.Windows1253, "en el", 2},
	{"windows-1254", charmap.Windows1254, "en de tr", 2},
	{"windows-1255", charmap.Windows1255, "en he", 2},
	{"windows-1256", charmap.Windows1256, "en ar fa", 2},
	{"windows-1257", charmap.Windows1257, "en lt lv", 3},
	{"windows-874", charmap.Windows874, "en th", 2},
	{"Shift-JIS", japanese.ShiftJIS, "ja", 2},
	{"EUC-JP", japanese.EUCJP, "ja", 3},
	{"GB18030", simplifiedchinese.GB18030, "zh", 2},
	{"Big5", traditionalchinese.Big5, "zh-hant", 2},
	{"EUC-KR", korean.EUCKR, "ko", 2},
	{"ISO-8859-15", charmap.ISO8859_15, "en de fr es pt it nl sv da fi", 3},
	{"ISO-8859-2", charmap.ISO8859_2, "en pl cs sk hu hr ro", 3},
	{"ISO-8859-5", charmap.ISO8859_5, "en ru bg", 4},
	{"ISO-8859-6", charmap.ISO8859_6, "en ar", 4},
	{"ISO-8859-7", charmap.ISO8859_7, "en el", 3},
	{"KOI8-R", charmap.KOI8R, "en ru bg", 3},
	{"KOI8-U", charmap.KOI8U, "en uk", 4},
	{"CP866", charmap.CodePage866, "en ru", 4},
	{"CP850", charmap.CodePage850, "en de fr es pt it", 4},
	{"CP852", charmap.CodePage852, "en pl cs sk hu hr", 4},
	{"Macintosh", charmap.Macintosh, "en de fr es pt it", 4},
}

const (
	maxSample = 4 << 10 // bytes that are looked at
	around    = 24      // bytes of ASCII beside others that are looked at, too
	old       = 4       // the rarity of sets that hardly anybody writes any more
	minOld    = 5       // letters that show that a text is in one of these
	margin    = 2.5     // how much likelier the best set must be than one that says something else, as a logarithm
)

// worst is how likely a letter is, on average and as a logarithm, in what still reads like a language of a set: ideographs
// are many, letters few.
func (s *set) worst() float64 {
	if strings.HasPrefix(s.languages, "en") {
		return -6
	}
	return -9
}

// Detect is the likeliest set of a text that is neither UTF-8 nor UTF-16.
func Detect(b []byte) Guess {
	parts := sample(b)
	type scored struct {
		set     *set
		score   float64
		mean    float64
		text    string
		letters int
	}
	var best, second scored
	var all []scored
	for i := range sets {
		s := &sets[i]
		one := scored{set: s, score: -s.rarity}
		for _, part := range parts {
			text, err := s.encoding.NewDecoder().Bytes(part)
			if err != nil {
				continue
			}
			score, letters, k := likeliest(string(text), s.languages)
			one.score, one.mean, one.letters = one.score+score, one.mean+letters, one.letters+k
			one.text += string(text) + "\n"
		}
		one.mean /= float64(max(one.letters, 1))
		all = append(all, one)
		if best.set == nil || one.score > best.score {
			best = one
		}
	}
	for _, one := range all {
		if one.text != best.text && (second.set == nil || one.score > second.score) {
			second = one
		}
	}
	if second.set == nil { // it says the same in all
		return Guess{best.set.name, best.set.encoding, "", best.mean >= best.set.worst()}
	}
	sure := best.score-second.score >= margin && best.mean >= best.set.worst() &&
		(best.set.rarity < old || best.letters >= minOld) && (best.set.rarity == 0 || strings.ContainsFunc(best.text, beyond))
	return Guess{best.set.name, best.set.encoding, second.set.name, sure}
}

// beyond says whether a character is a letter beyond ASCII: signs alone tell no language.
func beyond(r rune) bool { return r >= 0x80 && unicode.IsLetter(r) }

// sample is what tells the set of a text: the bytes beyond ASCII and those around them, in parts that no character goes across.
func sample(b []byte) (parts [][]byte) {
	size := 0
	for at := 0; at < len(b) && size < maxSample; {
		next := bytes.IndexFunc(b[at:], func(r rune) bool { return r >= 0x80 })
		if next < 0 {
			break
		}
		start := max(at, at+next-around)
		for start > at && b[start-1] >= 0x30 { // behind a blank or a sign, which ends no character
			start--
		}
		end, ascii := at+next, 0
		for ; end < len(b) && end-start < maxSample && (ascii < around || b[end] >= 0x30); end++ {
			if ascii++; b[end] >= 0x80 {
				ascii = 0
			}
		}
		parts = append(parts, b[start:end])
		size += end - start
		at = end
	}
	return parts
}

// likeliest is how likely a text is in the likeliest of some languages, as language.score has it.
func likeliest(text, names string) (score, letters float64, n int) {
	score = math.Inf(-1)
	for _, l := range languages(names) {
		if s, of, k := l.score(text); s > score {
			score, letters, n = s, of, k
		}
	}
	return score, letters, n
}
