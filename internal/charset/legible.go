package charset

import (
	"math"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// pooled is how letters follow one another in all languages of a script together: languages that no sample has are like those
// that one has, and garbage is like none.
type pooled map[[2]rune]float64

var legible = sync.OnceValue(func() map[*unicode.RangeTable]pooled {
	all := map[*unicode.RangeTable]pooled{}
	follow := map[*unicode.RangeTable]map[rune]float64{}
	for _, script := range scripts[:3] {
		all[script], follow[script] = pooled{}, map[rune]float64{}
	}
	for _, l := range models() {
		if all[l.script] == nil {
			continue
		}
		eachWord(l.sample, func(script *unicode.RangeTable, word []rune) {
			if script != l.script {
				return
			}
			eachPair(word, func(a, b rune) {
				all[script][[2]rune{a, b}]++
				follow[script][a]++
			})
		})
	}
	for script, pairs := range all {
		for p := range pairs {
			pairs[p] /= follow[script][p[0]] + 20
		}
	}
	return all
})

// Garbled is a likeness below which the letters of a text are not those that it was written with.
const Garbled = -3.65

// Language is how much a text's words look like words, from about -2.2 in most languages to -5 in letters at random, and how
// many letters that says it of: those of Latin, Cyrillic and Greek words of three letters and more.
func Language(text string) (likeness float64, letters int) {
	models := legible()
	sum, pairs := 0.0, 0
	eachWord(text, func(script *unicode.RangeTable, word []rune) {
		m := models[script]
		if m == nil || len(word) < 3 {
			return
		}
		letters += len(word)
		eachPair(word, func(a, b rune) {
			sum += math.Log(0.98*m[[2]rune{a, b}] + 0.02/30)
			pairs++
		})
	})
	return sum / float64(max(pairs, 1)), letters
}

// eachWord gives the words of a text, in small letters without accents, and their script. Words with digits are none.
func eachWord(text string, each func(script *unicode.RangeTable, word []rune)) {
	var word []rune
	digits := false
	flush := func() {
		if len(word) > 0 && !digits {
			each(scriptOf(word[0]), word)
		}
		word, digits = word[:0], false
	}
	for _, r := range norm.NFD.String(text) {
		switch {
		case unicode.IsLetter(r):
			word = append(word, unicode.ToLower(r))
		case unicode.Is(unicode.Mn, r):
		case unicode.IsDigit(r):
			digits = true
		default:
			flush()
		}
	}
	flush()
}

// eachPair gives the letters of a word that stand side by side, with a blank before the first and behind the last.
func eachPair(word []rune, each func(a, b rune)) {
	before := ' '
	for _, r := range word {
		each(before, r)
		before = r
	}
	each(before, ' ')
}
