package voice

import (
	"math"
	"strings"
	"time"
	"unicode"
)

// manner is how an assistant behaves in a call, in the turn machine's terms.
type manner struct {
	language      string
	interruptible bool
	minWords      int
	confirm       time.Duration // so much speech cuts a reply off
	endpoint      time.Duration // so much silence ends a turn
	smart         bool          // what was said moves it

	initial     string // the initial message, "" for none
	wait        bool   // for the customer to speak first
	reengage    time.Duration
	prompted    bool // the model is told how to re-engage
	maxSilence  time.Duration
	maxDuration time.Duration
	fillers     bool
	speculate   bool // replies are begun before the turn has ended

	outbound     bool
	endOnMachine bool
	message      bool // there is one for a voicemail
}

// endpointing is how much silence after the last voiced sample ends a turn, by endpoint_sensitivity.
func endpointing(sensitivity float64) time.Duration {
	return millis(200 + 1000/(1+3*max(sensitivity, 0)))
}

// confirmation is how much speech cuts a reply off, by interrupt_sensitivity.
func confirmation(sensitivity float64) time.Duration {
	return millis(100 + 600/(1+4*max(sensitivity, 0)))
}

func millis(ms float64) time.Duration { return time.Duration(math.Round(ms)) * time.Millisecond }

// The bounds of endpointing by what was said.
const (
	shortest = 200 * time.Millisecond
	slowest  = 2000 * time.Millisecond
)

// pause is how much silence ends a turn that has this text so far.
func (m *manner) pause(text string) time.Duration {
	if !m.smart {
		return m.endpoint
	}
	factor := 1.0
	switch completeness(text, m.language) {
	case finished:
		factor = 0.5
	case unfinished:
		factor = 2.5
	}
	return min(max(time.Duration(float64(m.endpoint)*factor), shortest), slowest)
}

type completion int

const (
	undecided completion = iota
	finished
	unfinished
)

// completeness judges by the end of a text whether more is to come. Recognizers that write punctuation say it themselves; otherwise the
// last words do: nobody ends with "and", "my number is" or "the".
func completeness(text, language string) completion {
	text = strings.TrimSpace(text)
	tokens := tokenize(text)
	if len(tokens) == 0 {
		return undecided
	}
	l := wordsOf(language)
	last := tokens[len(tokens)-1]
	switch {
	case strings.HasSuffix(text, ",") || strings.HasSuffix(text, "...") || strings.HasSuffix(text, "…") || strings.HasSuffix(text, "-"):
		return unfinished
	case l.dangling[last] || len(tokens) > 1 && l.dangling[tokens[len(tokens)-2]+" "+last]:
		return unfinished
	case isNumber(last, l) && !l.closed(text):
		return unfinished // a number is told in groups
	case l.closed(text):
		return finished
	case len(tokens) <= 3 && (l.answers[tokens[0]] || l.answers[last]):
		return finished
	}
	return undecided
}

// tokenize cuts a text into lower-case words. Of scripts without spaces each character is a word.
func tokenize(text string) []string {
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
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && !unicode.IsMark(r)
}

// words counts the words of a text, as min_interrupt_words means them: of scripts without spaces two characters are about one.
func words(text string) int {
	n, small := 0, 0
	for _, t := range tokenize(text) {
		if r := []rune(t); len(r) == 1 && spaceless(r[0]) {
			small++
		} else {
			n++
		}
	}
	return n + (small+1)/2
}

func isNumber(token string, l *lexicon) bool {
	if l.numbers[token] {
		return true
	}
	for _, r := range token {
		if !unicode.IsDigit(r) {
			return false
		}
	}
	return token != ""
}

// isBackchannel says whether a text only tells that the customer listens: "mm-hm", "yeah, okay". A text that is still being heard (open)
// may end with the beginning of such words.
func isBackchannel(text, language string, open bool) bool {
	l := wordsOf(language)
	return allOf(text, open, l.listening)
}

// isNod says whether a text is words of listening, and not sounds alone, with which many words begin.
func isNod(text, language string) bool {
	return isBackchannel(text, language, false) && !allOf(text, false, soundSet)
}

// isGreeting says whether a text only greets, or asks who is there.
func isGreeting(text, language string, open bool) bool {
	l := wordsOf(language)
	return allOf(text, open, l.listening, l.greeting)
}

// isFarewell says whether a text only thanks or says goodbye.
func isFarewell(text, language string, open bool) bool {
	l := wordsOf(language)
	return allOf(text, open, l.listening, l.farewell)
}

// isHollow says whether a text has no word that means anything by itself.
func isHollow(text, language string) bool {
	return allOf(text, false, wordsOf(language).listening, littleWords[language])
}

// allOf says whether a text consists of nothing but the phrases of some sets.
func allOf(text string, open bool, sets ...map[string]bool) bool {
	in := func(phrase string) bool {
		for _, s := range sets {
			if s[phrase] {
				return true
			}
		}
		return false
	}
	tokens := tokenize(text)
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
func begins(words string, sets []map[string]bool) bool {
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
