package lang

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Which is the language of a text, one of several; "" where that is not clear. It looks at the script, at words that we
// know of the languages, above all at frequent ones, and at letters that not all of them have.
func Which(text string, of []string) string {
	const (
		enough = 2 // points, for a script that others share
		lead   = 2 // points more than the next
	)
	script := scriptOf(text)
	best, first, second, fits := "", -1, -1, 0
	tokens, letters := Tokens(text), special(text)
	for _, code := range of {
		l := looks()[code]
		if script == "" || l == nil || !l.scripts[script] {
			continue
		}
		fits++
		switch n := l.points(tokens, letters); {
		case n > first:
			best, first, second = code, n, first
		case n > second:
			second = n
		}
	}
	if fits == 1 && script != latin || first >= enough && first >= second+lead {
		return best
	}
	return ""
}

// guessed is how much of a text is looked at to guess its language, in bytes.
const guessed = 400

// Guess is the language of a text, of all that we know; "" where that is not clear, as in most texts of a word or two.
func Guess(text string) string {
	if len(text) > guessed {
		text = strings.ToValidUTF8(text[:guessed], "")
	}
	return Which(text, slices.Sorted(maps.Keys(looks())))
}

// look is how texts of a language look.
type look struct {
	scripts  map[string]bool
	frequent Set // nearly every sentence has some of them
	known    Set
	letters  map[rune]bool // those that are not in ASCII
}

// points are a text's, by its words and its letters.
func (l *look) points(tokens []string, letters map[rune]bool) (n int) {
	for _, t := range tokens {
		switch {
		case l.frequent[t]:
			n += 2
		case l.known[t]:
			n++
		}
	}
	for r := range letters {
		if l.letters[r] {
			n++
		}
	}
	return n
}

// looks are those of all languages that have a file.
var looks = sync.OnceValue(func() map[string]*look {
	all := map[string]*look{}
	for code, l := range known().languages {
		if code != "" {
			all[code] = l.look(code)
		}
	}
	return all
})

func (l *Language) look(code string) *look {
	w, a := &l.Words, &l.Answering
	frequent := strings.Join(slices.Collect(maps.Keys(union(w.Dangling, l.Frequent))), " \n")
	texts := []string{frequent}
	for _, s := range []Set{w.Listening, w.Greetings, w.Farewells, w.Answers, w.Numbers, w.Positive, w.Negative, w.Questions, l.Interrupting} {
		texts = slices.AppendSeq(texts, maps.Keys(s))
	}
	texts = append(texts, slices.Concat(a.Machine, a.Person, a.Menu, a.Hold, a.Press, a.Offer, a.Operator)...)
	if p := &l.Phrases; !l.English || code == "en" {
		texts = append(texts, p.StillThere, p.Moment, p.StillOn, p.Apology, p.Failure, p.NotConnected, p.Announced, p.Consent,
			p.LeaveMessage)
	}
	whole := strings.Join(texts, "\n")
	out := &look{scripts: map[string]bool{}, frequent: Set{}, known: Set{}, letters: special(whole)}
	for _, t := range Tokens(frequent) {
		out.frequent[t] = true
	}
	for _, t := range Tokens(whole) {
		out.known[t] = true
	}
	for _, t := range texts {
		if s := scriptOf(t); s != "" {
			out.scripts[s] = true
		}
	}
	return out
}

// special are the letters of a text that are not in ASCII.
func special(text string) map[rune]bool {
	found := map[rune]bool{}
	for _, r := range strings.ToLower(text) {
		if r > unicode.MaxASCII && unicode.IsLetter(r) {
			found[r] = true
		}
	}
	return found
}

const latin = "Latin"

// scripts are those of our languages. Japanese has two of its own and one that it shares.
var scripts = map[string][]*unicode.RangeTable{latin: {unicode.Latin}, "Cyrillic": {unicode.Cyrillic}, "Greek": {unicode.Greek},
	"Arabic": {unicode.Arabic}, "Hebrew": {unicode.Hebrew}, "Devanagari": {unicode.Devanagari}, "Tamil": {unicode.Tamil},
	"Thai": {unicode.Thai}, "Hangul": {unicode.Hangul}, "Kana": {unicode.Hiragana, unicode.Katakana}, "Han": {unicode.Han}}

// scriptOf is the script of most of a text's letters, and Kana if it has any; "" if it has no letters of ours.
func scriptOf(text string) (most string) {
	count := map[string]int{}
	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}
		for name, tables := range scripts {
			if unicode.In(r, tables...) {
				count[name]++
				break
			}
		}
	}
	if count["Kana"] > 0 {
		return "Kana"
	}
	for name, n := range count {
		if n > count[most] || n == count[most] && name < most {
			most = name
		}
	}
	return most
}
