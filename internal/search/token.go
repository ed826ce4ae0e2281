package search

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A passage is found by tokens: its words cut to their stems. The sign that a token begins with says how the passage
// has the word.
const (
	inText    = "_"
	oftenIn   = "+" // three times or more
	inHeading = "-"
)

// maxWord bounds a word, in characters; what is longer is nobody's word.
const maxWord = 40

// terms are a text's words in order: lower case, without accents and apostrophes. Scripts that don't part their words
// give every two neighbouring signs. A number with a dot or a dash inside, and a name such as x86_64, is its parts.
func terms(text string, yield func(word string)) {
	var w []rune
	flush := func() {
		if len(w) > 0 && len(w) <= maxWord {
			yield(string(w))
		}
		w = w[:0]
	}
	var before rune // the sign before, in a script without spaces
	alone := false  // and it has not been part of a pair
	endRun := func() {
		if before != 0 && alone {
			yield(string(before))
		}
		before = 0
	}
	for _, r := range fold(text) {
		if r < 0x80 {
			endRun()
			switch {
			case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
				w = append(w, r)
			case 'A' <= r && r <= 'Z':
				w = append(w, r+'a'-'A')
			case r == '\'':
			default:
				flush()
			}
			continue
		}
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
			unicode.Khmer, unicode.Myanmar):
			flush()
			if before != 0 {
				yield(string([]rune{before, r}))
			}
			before, alone = r, before == 0
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			endRun()
			if r = unicode.ToLower(r); r == 'ß' {
				w = append(w, 's')
				r = 's'
			}
			w = append(w, r)
		case accent(r) || r == '’' || r == 0xad || r == 0x200d:
		case unicode.IsMark(r): // a vowel of its script
			w = append(w, r)
		default:
			endRun()
			flush()
		}
	}
	endRun()
	flush()
}

// accent says whether a sign that stands behind a letter is left out: accents, voicing marks, and the vowel points
// that few write.
func accent(r rune) bool {
	return 0x300 <= r && r <= 0x36f || r == 0x3099 || r == 0x309a || 0x591 <= r && r <= 0x5c7 || 0x64b <= r &&
		r <= 0x65f
}

// fold takes accents apart from their letters, so that they can be left out. ASCII stays as it is.
func fold(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return norm.NFKD.String(s)
		}
	}
	return s
}

// stopwords say nothing of what a passage is about, in the languages that most documents here are in. They are
// neither found nor looked for.
var stopwords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a an the and or but if of to in on at by for from with about into as is are was were be been being am do does did
		done have has had i me my you your he him his she her it its we us our they them their this that these those what which who whom
		whose when why how can could will would shall should may might must not no so than then too very just also any there here up
		der das den dem des ein eine einer eines einem einen und oder aber nicht ist sind mit von zu zum zur im auf fur als auch es sie ich
		wir ihr sich bei nach wie wer wo le la les un une du et ou mais est sont dans pour par avec sur que qui ne pas ce cette au aux
		se il elle nous vous el los las una unos unas del al por para es lo gli di che della het een van voor dat nie sie jest`) {
		m[w] = true
	}
	return m
}()

// stem cuts the endings of English words. In other languages it makes a few pairs of words alike, in passages and in
// questions both, and so loses nothing.
func stem(w string) string {
	if len(w) < 4 || !ascii(w) || w[0] >= '0' && w[0] <= '9' {
		return w
	}
	switch {
	case strings.HasSuffix(w, "sses"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
	case strings.HasSuffix(w, "s"):
		w = w[:len(w)-1]
	}
	cut := ""
	switch {
	case strings.HasSuffix(w, "eed"):
	case strings.HasSuffix(w, "ed") && vowel(w[:len(w)-2]):
		cut = w[:len(w)-2]
	case strings.HasSuffix(w, "ing") && vowel(w[:len(w)-3]):
		cut = w[:len(w)-3]
	}
	if len(cut) > 2 {
		n := len(cut)
		if cut[n-1] == cut[n-2] && !strings.ContainsRune("lsz", rune(cut[n-1])) {
			cut = cut[:n-1] // running, but not calling
		}
		w = cut
	}
	for _, e := range endings {
		if strings.HasSuffix(w, e.from) && len(w)-len(e.from) >= e.least {
			w = w[:len(w)-len(e.from)] + e.to
			break
		}
	}
	if n := len(w); n > 3 {
		switch w[n-1] {
		case 'e':
			w = w[:n-1]
		case 'y':
			if !strings.ContainsRune("aeiou", rune(w[n-2])) {
				w = w[:n-1] + "i"
			}
		}
	}
	return w
}

// endings are cut, or made others, where at least so many letters are left of the word.
var endings = [...]struct {
	from, to string
	least    int
}{
	{"ational", "at", 4}, {"ization", "iz", 4}, {"ation", "", 6}, {"ation", "at", 3}, {"ator", "at", 4},
	{"fulness", "ful", 4}, {"iveness", "iv", 4},
	{"ousness", "ous", 4}, {"ement", "", 4}, {"ment", "", 4}, {"ness", "", 4}, {"ally", "al", 4},
	{"ably", "abl", 4}, {"ible", "ibl", 4}, {"able", "", 4}, {"ly", "", 4},
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func vowel(s string) bool { return strings.ContainsAny(s, "aeiouy") }

// Lexicon remembers the stems of words that come again and again.
type Lexicon map[string]string

func (l Lexicon) stem(w string) string {
	s, ok := l[w]
	if !ok {
		s = stem(w)
		l[w] = s
	}
	return s
}

// Index makes of passages ready to be stored: what each is found by, and the words that they add to the vocabulary.
func (l Lexicon) Index(chunks []Chunk) []Word {
	have := map[string]int{} // word -> how many of the passages have it
	here := map[string]bool{}
	count := map[string]int{}
	for i := range chunks {
		c := &chunks[i]
		clear(here)
		clear(count)
		take := func(kind string) func(string) {
			return func(w string) {
				if stopwords[w] {
					return
				}
				if !here[w] {
					here[w] = true
					have[w]++
				}
				if s := l.stem(w); kind == inHeading {
					count[inHeading+s]++
				} else {
					count[s]++
				}
			}
		}
		terms(c.Title, take(inHeading))
		terms(c.Heading, take(inHeading))
		terms(c.Text, take(inText))
		c.Tokens = make([]string, 0, len(count)+8)
		for s, n := range count {
			if strings.HasPrefix(s, inHeading) {
				c.Tokens = append(c.Tokens, s)
				continue
			}
			c.Tokens = append(c.Tokens, inText+s)
			if n >= 3 {
				c.Tokens = append(c.Tokens, oftenIn+s)
			}
		}
	}
	words := make([]Word, 0, len(have))
	for w, n := range have {
		words = append(words, Word{Word: w, Chunks: n, Tokens: spellings(w)})
	}
	slices.SortFunc(words, func(a, b Word) int { return strings.Compare(a.Word, b.Word) })
	return words
}

// A misspelt word is found by what a single slip leaves of it: short words by all that is left when one letter is
// missing (equal for two words that differ by one letter more, less, other or swapped), longer ones by every three
// letters in a row.
const (
	missing = "_"
	threes  = "+"
)

// spellings are the tokens that a word of the vocabulary is found by.
func spellings(w string) []string {
	n := len([]rune(w))
	switch {
	case n < 3:
		return nil
	case n < 7:
		return lacking(w)
	case n == 7:
		return append(lacking(w), trigrams(w)...)
	}
	return trigrams(w)
}

// wanted are the tokens that a word of a question is looked for by.
func wanted(w string) []string {
	n := len([]rune(w))
	switch {
	case n < 3:
		return nil
	case n < 6:
		return lacking(w)
	case n <= 8:
		return append(lacking(w), trigrams(w)...)
	}
	return trigrams(w)
}

func lacking(w string) []string {
	r := []rune(w)
	out := []string{missing + w}
	for i := range r {
		if i > 0 && r[i] == r[i-1] {
			continue
		}
		out = append(out, missing+string(r[:i])+string(r[i+1:]))
	}
	return out
}

func trigrams(w string) []string {
	r := []rune(w)
	out := make([]string, 0, len(r))
	for i := range len(r) - 2 {
		t := threes + string(r[i:i+3])
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// slips is how many letters more, less, other or swapped make a of b, or more than most.
func slips(a, b []rune, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
