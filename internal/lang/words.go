package lang

import (
	"slices"
	"strings"
	"unicode"
)

// Completion says whether more is to come.
type Completion int

// The completions.
const (
	Undecided Completion = iota
	Finished
	Unfinished
)

// Completeness judges by the end of a text whether more is to come. Recognizers that write punctuation say it
// themselves; otherwise the last words do: nobody ends with "and", "my number is" or "the".
func Completeness(text, language string) Completion {
	text = strings.TrimSpace(text)
	tokens := Tokens(text)
	if len(tokens) == 0 {
		return Undecided
	}
	l := &Of(language).Words
	last := tokens[len(tokens)-1]
	switch {
	case strings.HasSuffix(text, ",") || strings.HasSuffix(text, "...") || strings.HasSuffix(text, "…") ||
		strings.HasSuffix(text, "-"):
		return Unfinished
	case l.Dangling[last] || len(tokens) > 1 && l.Dangling[tokens[len(tokens)-2]+" "+last]:
		return Unfinished
	case isNumber(last, l) && !closed(text):
		return Unfinished // a number is told in groups
	case closed(text):
		return Finished
	case len(tokens) <= 3 && (l.Answers[tokens[0]] || l.Answers[last]):
		return Finished
	}
	return Undecided
}

// Tokens cuts a text into lower-case words. In scripts without spaces each character is a word.
func Tokens(text string) []string {
	var out []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			out = append(out, strings.Trim(word.String(), "'’-"))
			word.Reset()
		}
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case spaceless(r):
			flush()
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '\'' || r == '’' || r == '-':
			if r == '’' {
				r = '\''
			}
			word.WriteRune(r)
		default:
			flush()
		}
	}
	flush()
	kept := out[:0]
	for _, w := range out {
		if w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

// spaceless says whether a rune is of a script that has no spaces between its words.
func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar) && !unicode.IsMark(r)
}

// Count counts the words of a text, as min_interrupt_words means them: of scripts without spaces two characters are
// about one.
func Count(text string) int {
	n, small := 0, 0
	for _, t := range Tokens(text) {
		if r := []rune(t); len(r) == 1 && spaceless(r[0]) {
			small++
		} else {
			n++
		}
	}
	return n + (small+1)/2
}

func isNumber(token string, l *Words) bool {
	if l.Numbers[token] {
		return true
	}
	for _, r := range token {
		if !unicode.IsDigit(r) {
			return false
		}
	}
	return token != ""
}

// IsBackchannel says whether a text only tells that the customer listens: "mm-hm", "yeah, okay". A text that is still
// being heard (open) may end with the beginning of such words.
func IsBackchannel(text, language string, open bool) bool {
	l := &Of(language).Words
	return allOf(text, open, l.Listening)
}

// IsInterruption says whether a text, however short, asks the other to stop: "wait", "no", "okay stop".
func IsInterruption(text, language string) bool {
	l := Of(language)
	return allOf(text, false, l.Words.Listening, l.Interrupting) && !allOf(text, false, l.Words.Listening)
}

// IsNod says whether a text is words of listening, and not sounds alone, with which many words begin.
func IsNod(text, language string) bool {
	return IsBackchannel(text, language, false) && !allOf(text, false, known().Sounds)
}

// IsGreeting says whether a text only greets, or asks who is there.
func IsGreeting(text, language string, open bool) bool {
	l := &Of(language).Words
	return allOf(text, open, l.Listening, l.Greetings)
}

// IsFarewell says whether a text only thanks or says goodbye.
func IsFarewell(text, language string, open bool) bool {
	l := &Of(language).Words
	return allOf(text, open, l.Listening, l.Farewells)
}

// IsHollow says whether a text has no word that means anything by itself.
func IsHollow(text, language string) bool {
	l := &Of(language).Words
	return allOf(text, false, l.Listening, l.Hollow)
}

// allOf says whether a text consists of nothing but the phrases of some sets.
func allOf(text string, open bool, sets ...Set) bool {
	in := func(phrase string) bool {
		for _, s := range sets {
			if s[phrase] {
				return true
			}
		}
		return false
	}
	tokens := Tokens(text)
	for i := 0; i < len(tokens); {
		n := min(maxPhrase, len(tokens)-i)
		for ; n > 0; n-- {
			joint := strings.Join(tokens[i:i+n], " ")
			if in(joint) || in(strings.ReplaceAll(joint, " ", "")) {
				break
			}
		}
		if n == 0 {
			return open && begins(strings.Join(tokens[i:], " "), sets)
		}
		i += n
	}
	return len(tokens) > 0
}

// maxPhrase is how many words the phrases have at most; characters, in scripts without spaces.
const maxPhrase = 8

// begins says whether one of the phrases begins with these words.
func begins(words string, sets []Set) bool {
	close := strings.ReplaceAll(words, " ", "")
	for _, s := range sets {
		for phrase := range s {
			if strings.HasPrefix(phrase, words+" ") || spacelessIn(words) && strings.HasPrefix(phrase, close) {
				return true
			}
		}
	}
	return false
}

// closed says whether a text ends as a sentence does, for recognizers that write punctuation.
func closed(text string) bool {
	for _, end := range []string{".", "!", "?", "。", "！", "？", "؟", "।"} {
		if strings.HasSuffix(text, end) && !strings.HasSuffix(text, "...") {
			return true
		}
	}
	return false
}

// Says looks for whole phrases in a text that was made of Tokens.
func Says(tokens string, phrases []string) bool {
	tokens = " " + tokens + " "
	for _, p := range phrases {
		if strings.Contains(tokens, " "+p+" ") || spacelessIn(p) &&
			strings.Contains(strings.ReplaceAll(tokens, " ", ""), p) {
			return true
		}
	}
	return false
}

// SaysOf counts the phrases in a text that was made of Tokens; one that is a part of another counts once.
func SaysOf(tokens string, phrases []string) int {
	var found []string
	for _, p := range phrases {
		if Says(tokens, []string{p}) && !slices.ContainsFunc(found, func(q string) bool { return alikeIn(p, q) }) {
			found = append(found, p)
		}
	}
	return len(found)
}

func alikeIn(p, q string) bool { return strings.Contains(p, q) || strings.Contains(q, p) }

// Tells looks for phrases of a list that are not what people say, too.
func (a *Answering) Tells(tokens string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return !slices.Contains(a.Either, p) && Says(tokens, []string{p}) })
}

func spacelessIn(s string) bool { return strings.ContainsFunc(s, spaceless) }

// Asks says whether a text ends with a question.
func Asks(text string) bool {
	text = strings.TrimRight(text, " \n\t\"'”’»)]*_")
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟")
}

// Consents says whether a text is a short yes or a short no to a question; neither where it is not clear.
func Consents(text, language string) (yes, no bool) {
	const most = 5 // words: who says more means more
	tokens := Tokens(text)
	if len(tokens) > most || Asks(text) {
		return false, false
	}
	c := &Of(language).Consent
	said := strings.Join(tokens, " ")
	yes, no = Says(said, c.Yes), Says(said, c.No)
	return yes && !no, no && !yes
}

// consents says whether these words are a plain yes or no.
func consents(tokens []string, c *Consent) bool {
	said := strings.Join(tokens, " ")
	is := func(phrase string) bool {
		return phrase == said || spacelessIn(phrase) && phrase == strings.ReplaceAll(said, " ", "")
	}
	return slices.ContainsFunc(c.Yes, is) || slices.ContainsFunc(c.No, is)
}

// Mood is what a filler fits.
type Mood uint8

// The moods.
const (
	Neutral Mood = iota
	Negative
	Positive
	Question
)

// MoodOf judges what the customer said.
func MoodOf(text, language string) Mood {
	tokens := Tokens(text)
	l := &Of(language).Words
	if Asks(text) || len(tokens) > 0 && l.Questions[tokens[0]] {
		return Question
	}
	has := func(words Set) bool {
		return slices.ContainsFunc(tokens, func(t string) bool { return words[t] })
	}
	switch {
	case has(l.Negative):
		return Negative
	case has(l.Positive):
		return Positive
	}
	return Neutral
}
