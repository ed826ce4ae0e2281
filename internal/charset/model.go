package charset

import (
	_ "embed"
	"math"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// samples has a line for each language: its name, a tab, and a text of everyday business in it.
//
//go:embed samples.txt
var samples string

// language is how likely characters are behind one another in a language.
type language struct {
	name   string
	sample string
	pairs  map[[2]rune]float64 // how often the second follows the first, of all that follow it
	single map[rune]float64
	common map[rune]bool // ideographs or syllables that texts mostly have
	script *unicode.RangeTable
}

var models = sync.OnceValue(func() map[string]*language {
	m := map[string]*language{}
	for line := range strings.Lines(samples) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		m[name] = learn(name, text)
	}
	return m
})

// languages are those of some names.
func languages(names string) (list []*language) {
	all := models()
	for name := range strings.FieldsSeq(names) {
		list = append(list, all[name])
	}
	return list
}

// learn makes a language's model of a text.
func learn(name, text string) *language {
	l := &language{name: name, sample: text, pairs: map[[2]rune]float64{}, single: map[rune]float64{}}
	follow, all := map[rune]float64{}, 0.0
	before := ' '
	for _, r := range text {
		r = unicode.ToLower(r)
		l.pairs[[2]rune{before, r}]++
		l.single[r]++
		follow[before]++
		all++
		before = r
	}
	for p := range l.pairs {
		l.pairs[p] /= follow[p[0]] + 2 // what was seen once or twice proves little
	}
	for r := range l.single {
		l.single[r] /= all
	}
	switch name {
	case "zh":
		l.common = ideographs(simplifiedchinese.GBK, 0xb0, 0xd7, 0xa1)
	case "zh-hant":
		l.common = ideographs(traditionalchinese.Big5, 0xa4, 0xc6, 0x40)
	case "ja":
		l.common = ideographs(japanese.ShiftJIS, 0x88, 0x97, 0x40)
	case "ko":
		l.common = ideographs(korean.EUCKR, 0xb0, 0xc8, 0xa1)
	}
	for _, script := range scripts {
		if n := strings.IndexFunc(text, func(r rune) bool { return unicode.Is(script, r) }); n >= 0 &&
			(l.script == nil || script != unicode.Latin) {
			l.script = script
		}
	}
	return l
}

// scripts are those whose letters have no place beside another script's in a word.
var scripts = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Hebrew, unicode.Arabic, unicode.Thai}

// ideographs are the characters that a set has in its first, common part.
func ideographs(e encoding.Encoding, first, last, trail byte) map[rune]bool {
	m := map[rune]bool{}
	for lead := int(first); lead <= int(last); lead++ {
		for t := int(trail); t < 0xff; t++ {
			if b, err := e.NewDecoder().Bytes([]byte{byte(lead), byte(t)}); err == nil {
				if r := []rune(string(b)); len(r) == 1 && unicode.In(r[0], unicode.Han, unicode.Hangul) {
					m[r[0]] = true
				}
			}
		}
	}
	return m
}

// marks are signs that texts in any language have.
const marks = "“”„‘’‚–—…€«»°§·©®™№•×½¼¾²³£¿¡ªº、。「」『』，：（）！？；・ー　،؟؛״׳\u00a0\u00ad\u200c\u200d\u200e\u200f"

// rare is how likely a character is that the sample doesn't have.
func (l *language) rare(r rune) float64 {
	switch {
	case r == '\n' || r == '\r' || r == '\t' || r == ' ':
		return 1e-2
	case r < 0x20 || r >= 0x7f && r < 0xa0 || r == unicode.ReplacementChar:
		return 1e-12
	case r < 0x80:
		return 2e-3
	case strings.ContainsRune(marks, r):
		return 1e-3
	case l.common != nil:
		switch {
		case l.common[r]:
			return 2.5e-4
		case unicode.In(r, unicode.Han, unicode.Hangul):
			return 2e-6
		case l.name == "ja" && unicode.In(r, unicode.Hiragana, unicode.Katakana) && r < 0xff00:
			return 3e-3
		case r >= 0xff01 && r <= 0xff5e: // wide letters
			return 1e-4
		case l.name == "ja" && r >= 0xff61 && r <= 0xff9f: // narrow kana
			return 1e-5
		}
		return 1e-8
	case l.script != nil && l.script != unicode.Latin && unicode.Is(l.script, r):
		return 1e-4
	case unicode.Is(unicode.Latin, r):
		return 2e-6
	}
	return 1e-7
}

// of is how likely a character is behind another one, both in lower case, as a logarithm.
func (l *language) of(before, r rune) float64 {
	pair, rare := 0.85, 0.1
	if l.common != nil { // the sample has a small part of what is written
		pair, rare = 0.4, 0.4
	}
	return math.Log(pair*l.pairs[[2]rune{before, r}] + (1-pair)*((1-rare)*l.single[r]+rare*l.rare(r)))
}

// Odds against what nobody writes.
var (
	oddCase   = math.Log(0.003) // a capital behind a small letter: "dÜ"
	oddScript = math.Log(0.01)  // letters of two scripts side by side
)

// score is how likely a text is, as a logarithm, how much of that are its letters and what is beyond ASCII, and how many these are.
func (l *language) score(text string) (sum, letters float64, n int) {
	before, was := ' ', ' '
	for _, r := range text {
		low := unicode.ToLower(r)
		one := l.of(before, low)
		if r >= 0x80 || was >= 0x80 {
			if unicode.IsUpper(r) && unicode.IsLower(was) {
				one += oddCase
			}
			if alien(was, r) {
				one += oddScript
			}
		}
		if sum += one; r >= 0x80 || unicode.IsLetter(r) {
			letters += one
			n++
		}
		before, was = low, r
	}
	return sum, letters, n
}

// alien says whether two letters belong to different scripts that don't mix in a word.
func alien(a, b rune) bool {
	if !unicode.IsLetter(a) || !unicode.IsLetter(b) {
		return false
	}
	return scriptOf(a) != scriptOf(b)
}

func scriptOf(r rune) *unicode.RangeTable {
	for _, s := range scripts {
		if unicode.Is(s, r) {
			return s
		}
	}
	return nil
}
