package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Splitter cuts a reply into sentences as it forms. The pieces together are the reply, to the letter.
type Splitter struct {
	Language string

	text  string // what was not given out yet
	count int    // of pieces that were
}

const (
	commaFrom  = 24  // runes: from here on
	commaAfter = 40  // the first piece is cut at a comma when it gets so long, so that something is heard soon
	cutAfter   = 220 // and any other when it gets so long; without a comma
	cutAt      = 300 // between words here, or anywhere
)

// Push takes the next piece of a reply and returns the sentences that are complete.
func (s *Splitter) Push(delta string) []string {
	s.text += delta
	var out []string
	for {
		n := s.end()
		if n == 0 {
			return out
		}
		out = append(out, s.text[:n])
		s.text = s.text[n:]
		s.count++
	}
}

// Flush returns what is left.
func (s *Splitter) Flush() string {
	rest := s.text
	s.text = ""
	if rest != "" {
		s.count++
	}
	return rest
}

// end is how many bytes of the text are a sentence, with the space after it; 0 when none is complete.
func (s *Splitter) end() int {
	runes, early, comma, blank, spoken := 0, 0, 0, 0, false
	for i, r := range s.text {
		runes++
		next := i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			next = i + 1
		}
		switch {
		case r == '\n':
			if spoken {
				return s.spaces(next)
			}
		case strings.ContainsRune("。！？｡", r):
			if n := s.closers(next); n < len(s.text) || s.count == 0 {
				return n
			}
			return 0
		case strings.ContainsRune(".!?…؟।;", r):
			n := s.closers(next)
			if n == len(s.text) {
				return 0 // what follows decides
			}
			if after, _ := utf8.DecodeRuneInString(s.text[n:]); !unicode.IsSpace(after) || r == ';' &&
				s.Language != "el" {
				break
			}
			if r == '.' && s.numbers(i) { // "No. 5", and not "No. I can't."
				rest := strings.TrimLeft(s.text[n:], " ")
				if rest == "" {
					return 0
				}
				if figure(firstRune(rest)) {
					break
				}
			} else if r == '.' && !s.isEnd(i) {
				break
			}
			return s.spaces(n)
		case strings.ContainsRune(",:;—–，、；：", r):
			if next < len(s.text) && (unicode.IsSpace(rune(s.text[next])) || spaceless(lastRune(s.text[:i]))) {
				comma = s.spaces(next)
				if early == 0 && runes >= commaFrom {
					early = comma
				}
			}
		case unicode.IsSpace(r):
			blank = next
		}
		spoken = spoken || !unicode.IsSpace(r)
		switch {
		case s.count == 0 && runes >= commaAfter && early > 0:
			return early
		case runes >= cutAfter && comma > 0:
			return comma
		case runes >= cutAt && blank > 0:
			return blank
		case runes >= cutAt:
			return next
		}
	}
	return 0
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// closers skips quotation marks, brackets, markup and more ends of sentences.
func (s *Splitter) closers(i int) int {
	for i < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[i:])
		if !strings.ContainsRune(".!?…。！？\"'”’»)]*_」』）", r) {
			break
		}
		i += n
	}
	return i
}

// spaces skips blanks.
func (s *Splitter) spaces(i int) int {
	for i < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[i:])
		if !unicode.IsSpace(r) {
			break
		}
		i += n
	}
	return i
}

// numbers says whether the full stop at i is of an abbreviation that stands before a number.
func (s *Splitter) numbers(i int) bool {
	return Of(s.Language).Say.before(lastWord(s.text[:i]) + ".")
}

// lastWord returns the word at the end of a text, without the signs before it.
func lastWord(text string) string {
	return strings.TrimLeft(text[strings.LastIndexFunc(text, unicode.IsSpace)+1:], "\"'“‘„«([*_")
}

// isEnd says whether the full stop at i ends a sentence: not after an abbreviation, an initial, the number of a list,
// or, in languages that write ordinals so, any number.
func (s *Splitter) isEnd(i int) bool {
	before := s.text[:i]
	word := lastWord(before)
	if word == "" {
		return true
	}
	lower := strings.ToLower(word)
	runes := []rune(word)
	if len(runes) == 1 && unicode.IsLetter(runes[0]) && !spaceless(runes[0]) &&
		!(runes[0] == 'I' && s.Language == "en") {
		return false // an initial, z. B.
	}
	if strings.Contains(word, ".") && !strings.ContainsFunc(word, unicode.IsDigit) &&
		utf8.RuneCountInString(word) <= 5 && !strings.Contains(word, "..") {
		return false // e.g., z.B., a.m.
	}
	if strings.Trim(word, "0123456789") == "" {
		alone := strings.TrimSpace(before[:len(before)-len(word)])
		if alone == "" || strings.HasSuffix(before[:len(before)-len(word)], "\n") {
			return false // of a list
		}
		return !Of(s.Language).OrdinalDot
	}
	say := &Of(s.Language).Say
	rest := strings.TrimRight(before[:len(before)-len(word)], " ")
	return !known().Abbreviations[lower] && say.Short[lastWord(rest)+" "+word+"."] == "" &&
		(say.Short[word+"."] == "" || say.before(word+"."))
}

// Cut keeps the first part of a text, in whole words. Half a word or more counts as heard.
func Cut(text string, share float64) string {
	runes := []rune(text)
	n := int(share*float64(len(runes)) + 0.5)
	if n >= len(runes) {
		return text
	}
	if n <= 0 {
		return ""
	}
	if spaceless(runes[n-1]) {
		return string(runes[:n])
	}
	from, to := n, n
	for from > 0 && !space(runes[from-1]) {
		from--
	}
	for to < len(runes) && !space(runes[to]) {
		to++
	}
	if 2*(n-from) >= to-from && to > from {
		return string(runes[:to])
	}
	return strings.TrimRight(string(runes[:from]), " \n\t")
}

func space(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }
