package lang

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Option is a key that a menu offers.
type Option struct {
	Key   byte
	Label []string // what it is for, in words
}

// Options are the keys that a menu's text offers: "for sales, press one", "press 2 for support". Each line of the text is
// something said without a pause.
func Options(text, language string) (out []Option) {
	l := Of(language)
	var before []string // said before a pause, without a key
	for line := range strings.SplitSeq(text, "\n") {
		tokens := loose(line)
		found := l.presses(tokens)
		switch len(found) {
		case 0:
			before = tokens
			continue
		case 1:
			label := slices.Concat(tokens[:found[0].from], tokens[found[0].to:])
			if len(label) == 0 {
				label = before
			}
			out = append(out, Option{found[0].key, label})
		default:
			out = append(out, l.several(tokens, found)...)
		}
		before = nil
	}
	return out
}

// press is where words such as "press one" stand.
type press struct {
	from, to int
	key      byte
}

func (l *Language) presses(tokens []string) (found []press) {
	for i := 0; i < len(tokens); {
		n := phraseAt(tokens[i:], l.Answering.Press)
		if n == 0 {
			i++
			continue
		}
		to, key := l.key(tokens, i+n)
		if key != 0 {
			found = append(found, press{i, to, key})
			i = to
			continue
		}
		i += n
	}
	return found
}

// several are the options of a line that has more than one. Menus name the key first or last, and keep to it; where it
// comes first, something follows the last one.
func (l *Language) several(tokens []string, found []press) (out []Option) {
	tail := tokens[found[len(found)-1].to:]
	first := len(tail) > 0 && !slices.ContainsFunc(tail, func(t string) bool { return slices.Contains(l.Answering.Press, t) })
	for i, p := range found {
		begin, end := 0, p.from
		switch {
		case first && i+1 < len(found):
			begin, end = p.to, found[i+1].from
		case first:
			begin, end = p.to, len(tokens)
		case i > 0:
			begin = found[i-1].to
		}
		out = append(out, Option{p.key, tokens[begin:end]})
	}
	return out
}

// key finds the key that is named within a few words from i on, and where the words after it begin.
func (l *Language) key(tokens []string, i int) (to int, key byte) {
	const within = 4
	for k := i; k < min(len(tokens), i+within); k++ {
		if phraseAt(tokens[k:], l.Answering.Press) > 0 && k > i {
			break
		}
		t := tokens[k]
		if _, rest, found := strings.Cut(t, "'"); found { // "l'uno"
			t = rest
		}
		n, digits := l.Dictation.numeral(append([]string{t}, tokens[k+1:]...))
		if n > 0 && len(digits) == 1 {
			if k+n < len(tokens) {
				if more, _ := l.Dictation.numeral(tokens[k+n:]); more > 0 {
					break // a telephone number
				}
			}
			return k + n, digits[0]
		}
	}
	return i, 0
}

// phraseAt is how many of the first words are one of some phrases.
func phraseAt(tokens []string, phrases []string) (n int) {
	for _, p := range phrases {
		words := strings.Fields(p)
		if len(words) > n && len(words) <= len(tokens) && slices.Equal(words, tokens[:len(words)]) {
			n = len(words)
		}
	}
	return n
}

// Choose picks the option that fits a goal, told in a few words; without one that does, the one that leads to a person.
// fits says that it is the goal's.
func Choose(options []Option, goal, language string) (chosen Option, fits, ok bool) {
	l := Of(language)
	most := 0
	wanted := pairs(loose(goal))
	for _, o := range options {
		n := 0
		label := pairs(o.Label)
		for _, t := range wanted {
			if l.means(t) && slices.ContainsFunc(label, func(w string) bool { return alike(t, w) }) {
				n++
			}
		}
		if n > most {
			chosen, most = o, n
		}
	}
	if most > 0 {
		return chosen, true, true
	}
	for i := len(options) - 1; i >= 0; i-- { // the last one is for all that has no key of its own
		if Says(strings.Join(options[i].Label, " "), l.Answering.Operator) {
			return options[i], false, true
		}
	}
	return Option{}, false, false
}

// pairs are words to compare: in scripts without spaces, two characters that follow each other are about a word.
func pairs(tokens []string) (out []string) {
	for i, t := range tokens {
		switch {
		case !spacelessIn(t):
			out = append(out, t)
		case i+1 < len(tokens) && spacelessIn(tokens[i+1]):
			out = append(out, t+tokens[i+1])
		}
	}
	return out
}

// means says whether a word of a goal tells anything.
func (l *Language) means(t string) bool {
	w := &l.Words
	return spacelessIn(t) || utf8.RuneCountInString(t) > 2 && !w.Dangling[t] && !w.Hollow[t] && !w.Questions[t] &&
		!slices.Contains(l.Answering.Press, t) && !slices.Contains(l.Answering.Offer, t)
}

// alike says whether two words are the same but for their endings.
func alike(a, b string) bool {
	if spacelessIn(a) {
		return a == b
	}
	const stem = 5
	x, y := []rune(a), []rune(b)
	short := min(len(x), len(y))
	return short >= stem-1 && string(x[:min(short, stem)]) == string(y[:min(short, stem)])
}

// Hears looks for phrases in a text of which a recognizer may have lost a word: of five words or more, one may be
// missing.
func Hears(tokens []string, phrases []string) string {
	said := strings.Join(tokens, " ")
	for _, p := range phrases {
		words := strings.Fields(p)
		if Says(said, []string{p}) || len(words) > 4 && nearly(tokens, words) {
			return p
		}
	}
	return ""
}

// nearly says whether words follow each other in a text, but for one.
func nearly(tokens, words []string) bool {
	for skip := range words {
		rest := slices.Delete(slices.Clone(words), skip, skip+1)
		for i := 0; i+len(rest) <= len(tokens); i++ {
			if slices.Equal(tokens[i:i+len(rest)], rest) {
				return true
			}
		}
	}
	return false
}
