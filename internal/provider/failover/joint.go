package failover

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// joint joins a continuation to what was said: it holds back a repetition of its end, which models tend to produce.
type joint struct {
	said  string
	ends  []string // of what was said, in words, the longest first
	held  string
	joins bool // it has been decided where to go on
}

// maxRepeated is how many words are looked for in what goes on.
const maxRepeated = 200

func newJoint(said string) *joint {
	j := &joint{said: said}
	words := wordsOf(said)
	words = words[max(len(words)-maxRepeated, 0):]
	for i := range words {
		j.ends = append(j.ends, strings.Join(words[i:], " "))
	}
	return j
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// wordsOf are the words of a text, without what stands between them.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWord(r) })
}

// push takes a piece of the continuation, and returns the new part of it.
func (j *joint) push(text string) string {
	if j.joins {
		return text
	}
	j.held += text
	for _, end := range j.ends {
		if _, m := begins(j.held, end); m == more || m == edge {
			return "" // it may still turn out to be a repetition, or another word
		}
	}
	return j.flush()
}

// flush returns what is held back and is not a repetition.
func (j *joint) flush() string {
	if j.joins {
		return ""
	}
	j.joins = true
	rest := j.held
	for _, end := range j.ends {
		if n, m := begins(j.held, end); m == whole || m == edge {
			rest = j.held[n:]
			if r, _ := utf8.DecodeRuneInString(rest); isWord(r) {
				return rest // the word that was cut off, said to its end
			}
			break
		}
	}
	last, _ := utf8.DecodeLastRuneInString(j.said)
	if !isWord(last) { // what stands between is there already
		rest = strings.TrimLeftFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == last })
	}
	if first, _ := utf8.DecodeRuneInString(rest); rest != "" && !unicode.IsSpace(last) && !unicode.IsSpace(first) &&
		(isWord(first) || unicode.IsPunct(first) && !isWord(last)) && !spaceless(first) {
		rest = " " + rest
	}
	return rest
}

// spaceless says whether a letter is of a script that puts no spaces between words.
func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// How far a text begins with words.
type match int

const (
	not   match = iota
	more        // as far as it goes
	edge        // with all of them, and there it ends
	whole       // with all of them
)

// begins says whether a text begins with words that are separated by single spaces, and where it goes on after them.
// The last word may be the beginning of a longer one, where there are others before it: it was cut off.
func begins(text, words string) (n int, m match) {
	at, between := 0, false // between: of words of text
	for i, r := range text {
		switch {
		case at == len(words):
			if isWord(r) && !between && !strings.Contains(words, " ") {
				return 0, not
			}
			return i, whole
		case !isWord(r):
			between = at > 0
			continue
		}
		if between {
			if words[at] != ' ' {
				return 0, not
			}
			at++
			between = false
		}
		want, size := utf8.DecodeRuneInString(words[at:])
		if unicode.ToLower(r) != want {
			return 0, not
		}
		at += size
	}
	if at == len(words) { // what follows may be the rest of a longer word
		return len(text), edge
	}
	return 0, more
}
