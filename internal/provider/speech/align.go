package speech

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/internal/ai"
)

// clean replaces everything that is not text by spaces, one for each byte, so that positions stay the same.
func clean(text string) string {
	b := []byte(text)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || unicode.IsControl(r) {
			for k := range n {
				b[i+k] = ' '
			}
		}
		i += n
	}
	return string(b)
}

// sayable reports whether a text has anything to speak.
func sayable(text string) bool { return strings.ContainsFunc(text, spoken) }

func spoken(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// pass advances in a text by what a vendor says that it has spoken, and returns how far. Vendors leave out punctuation
// and write expanded numbers in their own way: words that are not in the text are skipped.
func pass(text string, at int, said string) int {
	for _, r := range said {
		if unicode.IsSpace(r) {
			continue
		}
		for i := at; i < len(text); {
			next, n := utf8.DecodeRuneInString(text[i:])
			if unicode.ToLower(next) == unicode.ToLower(r) {
				at = i + n
				break
			}
			if spoken(next) {
				break
			}
			i += n
		}
	}
	return at
}

// wordEnd returns the end of the word, with its punctuation, of which text[:at] has been spoken; false within a word.
func wordEnd(text string, at int) (int, bool) {
	last, _ := utf8.DecodeLastRuneInString(text[:at])
	for at < len(text) {
		r, n := utf8.DecodeRuneInString(text[at:])
		switch {
		case unicode.IsSpace(r):
			if strings.TrimSpace(text[at:]) == "" {
				at = len(text)
			}
			return at, true
		case spoken(r): // writing without spaces has its words where it has its characters
			return at, unicode.In(last, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
		}
		at += n
	}
	return at, true
}

// count settles from where marks count. Vendors' documents and servers differ: a mark nearer to the beginning of its
// sound (or text) than to that of the context counts from the latter.
func (s *speaking) count(first Mark, from int) {
	if s.v.manners.Dones {
		if s.origin >= 0 {
			return
		}
		from = s.start
	}
	s.origin = from
	if at := s.length(first.From); at > from/2 {
		s.origin = 0
	}
}

// length is a time in samples.
func (s *speaking) length(d time.Duration) int {
	return int(d * time.Duration(s.as.Rate) / time.Second)
}

// moment is a place in the context as a time of texts[cur].
func (s *speaking) moment(sample int) time.Duration {
	return max(time.Duration(sample-s.start)*time.Second/time.Duration(s.as.Rate), s.at)
}

// word adds what a mark tells of texts[cur].
func (s *speaking) word(words []ai.Word, m Mark) []ai.Word {
	text := s.texts[s.cur]
	at := pass(text, s.passed, m.Text)
	if at == s.passed {
		return words
	}
	s.passed = at
	end, ok := wordEnd(text, at)
	if !ok || end <= s.until {
		return words
	}
	s.until, s.at = end, s.moment(s.origin+s.length(m.To))
	return append(words, ai.Word{Until: end, At: s.at})
}

// covered reports whether the times of all of texts[cur] have arrived.
func (s *speaking) covered() bool { return strings.TrimSpace(s.texts[s.cur][s.passed:]) == "" }

// follows reports whether what was spoken is the beginning of a text after texts[cur].
func (s *speaking) follows(said string) bool {
	text := s.texts[s.cur]
	if sayable(text[s.passed:]) || !sayable(said) || pass(text, s.passed, said) > s.passed {
		return false
	}
	for _, next := range s.texts[s.cur+1 : s.sent] {
		if sayable(next) {
			return pass(next, 0, said) > 0
		}
	}
	return false
}
