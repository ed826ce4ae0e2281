package lang

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Dictation is how numbers, addresses and names are asked for and told, letter by letter and digit by digit.
type Dictation struct {
	Numerals []string       `json:"numerals"` // how the numbers from 0 to 99 are said, "|" between ways
	Times    map[string]int `json:"times"`    // "double" is 2
	Digits   []string       `json:"digits"`   // "digits", also at the end of a word: with a number before it, how many
	Number   []string       `json:"number"`   // asks for digits
	Email    []string       `json:"email"`
	Letters  []string       `json:"letters"` // asks for a spelling
	Birth    []string       `json:"birth"`   // asks for a date with its year

	Months    []string       `json:"months"`    // "|" between ways
	Ordinals  []string       `json:"ordinals"`  // from the first on, "|" between ways
	Centuries map[string]int `json:"centuries"` // how a year of four digits begins: "nineteen hundred" is 19; also a part of a word

	Sorry []string `json:"sorry"` // what follows takes the place of what was just told

	values   map[string]string // digits of each numeral
	months   map[string]bool
	ordinals map[string]bool
}

// index finds the digits of each numeral.
func (d *Dictation) index() {
	d.values = map[string]string{}
	for n, ways := range d.Numerals {
		digits := string(rune('0' + n%10))
		if n >= 10 {
			digits = string(rune('0'+n/10)) + digits
		}
		for _, way := range strings.Split(ways, "|") {
			d.values[way] = digits
		}
	}
	ways := func(list []string) map[string]bool {
		set := map[string]bool{}
		for _, l := range list {
			for _, way := range strings.Split(l, "|") {
				set[way] = true
			}
		}
		return set
	}
	d.months, d.ordinals = ways(d.Months), ways(d.Ordinals)
}

// FormKind is what kind of thing somebody is asked for.
type FormKind uint8

// The kinds.
const (
	AnyForm FormKind = iota
	NumberForm
	EmailForm
	SpelledForm
	BirthForm
)

// Form is what somebody is asked for.
type Form struct {
	Kind   FormKind
	Length int // of a number, in digits; 0 where that was not said
}

// Progress is how much of it was told.
type Progress uint8

// The progress.
const (
	ToldNothing Progress = iota // or something else
	ToldPart
	ToldWhole
)

// Asked finds what a sentence asks for. A sentence that only speaks of such a thing seems to ask for it, which does no
// harm: it counts only once somebody begins to tell one.
func Asked(text, language string) Form {
	d := &Of(language).Dictation
	tokens := loose(text)
	said := strings.Join(Tokens(text), " ") + " | " + strings.Join(tokens, " ")
	switch {
	case Says(said, d.Email):
		return Form{Kind: EmailForm}
	case Says(said, d.Letters):
		return Form{Kind: SpelledForm}
	case Says(said, d.Birth):
		return Form{Kind: BirthForm}
	}
	if n := d.length(tokens); n > 0 {
		return Form{Kind: NumberForm, Length: n}
	}
	if Says(said, d.Number) {
		return Form{Kind: NumberForm}
	}
	return Form{}
}

// length is how many digits are asked for: "six digits", "sechsstellig".
func (d *Dictation) length(tokens []string) int {
	for i, t := range tokens {
		for _, word := range d.Digits {
			before, found := strings.CutSuffix(t, word)
			if !found {
				before, _, found = strings.Cut(t, word)
			}
			if !found {
				continue
			}
			if before == "" && i > 0 {
				before = tokens[i-1]
			}
			if n := d.small(before); n > 0 {
				return n
			}
		}
	}
	return 0
}

// small is a number of digits that somebody may ask for, 0 if a word is none.
func (d *Dictation) small(word string) int {
	digits := d.values[word]
	if digits == "" {
		digits = word
	}
	n := 0
	for _, r := range digits {
		if r < '0' || r > '9' || n > 20 {
			return 0
		}
		n = 10*n + int(r-'0')
	}
	if n > 20 {
		return 0
	}
	return n
}

// loose is the words of a text, and of compounds with a hyphen.
func loose(text string) []string { return Tokens(strings.ReplaceAll(text, "-", " ")) }

// Digits reads the digits that a text tells, whether they are written or said: in any groups, with "double five", and
// with what was corrected on the way. tail says that the text ends with one.
func Digits(text, language string) (digits string, tail bool) {
	d := &Of(language).Dictation
	tokens := loose(text)
	times, group, sorry := 1, 0, 0 // sorry: where a correction begins, plus 1
	for i := 0; i < len(tokens); {
		n, value := d.numeral(tokens[i:])
		switch {
		case n > 0:
			was := len(digits)
			digits += strings.Repeat(value, times)
			if sorry > 0 { // it takes the place of as many digits before it
				fresh := digits[sorry-1:]
				digits = digits[:max(sorry-1-len(fresh), 0)] + fresh
				sorry = 0
			}
			group, times, tail = len(digits)-was, 1, true
			i += n
			continue
		case d.Times[tokens[i]] > 0:
			times = d.Times[tokens[i]]
		default:
			times, tail = 1, false
			if skip := d.corrects(tokens[i:]); skip > 0 && group > 0 {
				sorry = len(digits) + 1
				i += skip
				continue
			}
			sorry = 0
		}
		i++
	}
	return digits, tail || times > 1
}

// corrects is how many words take back what was told before them.
func (d *Dictation) corrects(tokens []string) int {
	for n := min(maxPhrase, len(tokens)); n > 0; n-- {
		for _, p := range d.Sorry {
			if p == strings.Join(tokens[:n], " ") {
				return n
			}
		}
	}
	return 0
}

// numeral is how many of the first words are a number, and its digits.
func (d *Dictation) numeral(tokens []string) (n int, digits string) {
	if strings.Trim(tokens[0], "0123456789") == "" {
		return 1, tokens[0]
	}
	for n := min(4, len(tokens)); n > 0; n-- {
		if v := d.values[strings.Join(tokens[:n], " ")]; v != "" {
			return n, v
		}
	}
	return 0, ""
}

// Told says how much of what was asked for a text tells.
func (f Form) Told(text, language string) Progress {
	l := Of(language)
	tokens := loose(text)
	if f.Kind == AnyForm || len(tokens) == 0 {
		return ToldNothing
	}
	digits, tail := Digits(text, language)
	letter := spells(tokens)
	switch f.Kind {
	case EmailForm:
		return l.address(text, tail && len(digits) > 1 || letter || l.begins(text, tokens))
	case NumberForm:
		switch {
		case f.Length > 0 && len(digits) >= f.Length && tail:
			return ToldWhole
		case len(digits) == 1 && (len(tokens) > 4 || l.refuses(tokens)): // "I don't have one"
		case len(digits) > 0 && (tail || letter) || len(digits) > 1 && len(digits) < f.Length:
			return ToldPart
		}
	case SpelledForm:
		if spelt(tokens) {
			return ToldWhole
		}
		if letter || tail || l.begins(text, tokens) {
			return ToldPart
		}
	case BirthForm:
		switch {
		case len(digits) >= 6 || hasYear(tokens) || len(digits) > 4 && tail || l.Dictation.short(tokens):
			return ToldWhole
		}
		if told, words := l.Dictation.date(tokens); words || len(digits) == 0 {
			return told
		}
		return ToldPart
	}
	return ToldNothing
}

// refuses says whether there is a word of refusal among these. One that only takes back what was told before it ("six,
// no, one") is none.
func (l *Language) refuses(tokens []string) bool {
	for i := 0; i < len(tokens); i++ {
		if skip := l.Dictation.corrects(tokens[i:]); skip > 0 && i+skip < len(tokens) {
			if n, _ := l.Dictation.numeral(tokens[i+skip:]); n > 0 {
				i += skip - 1
				continue
			}
		}
		if l.Words.Negative[tokens[i]] {
			return true
		}
	}
	return false
}

// begins says whether a text may be the first part of a name or an address: a few words that mean nothing else here.
// Whoever answers or asks something else says at least one that is known.
func (l *Language) begins(text string, tokens []string) bool {
	const most = 4 // words
	names, last := 0, tokens[len(tokens)-1]
	for _, t := range tokens {
		w := &l.Words
		switch {
		case w.Dangling[t]: // "it's"
		case w.Listening[t], w.Greetings[t], w.Farewells[t], w.Answers[t], w.Hollow[t], w.Negative[t], w.Positive[t],
			w.Questions[t], l.Dictation.corrects([]string{t}) > 0:
			return false
		default:
			names++
		}
	}
	return (names > 0 || l.Words.Dangling[last]) && names <= most && !Asks(text)
}

// part is a part of a date in words.
type part struct {
	named  bool   // a month or an ordinal
	digits string // of a number
	years  string // a century's first digits, or all four of a year
}

// parts reads the parts of a date: "the third of May nineteen hundred" is an ordinal, a month and a century.
func (d *Dictation) parts(tokens []string) (list []part) {
	for i := 0; i < len(tokens); {
		n, p := 0, part{}
		if n, p.years = d.century(tokens[i:]); n > 0 {
		} else if n = max(longestOf(tokens[i:], d.months), longestOf(tokens[i:], d.ordinals)); n > 0 {
			p.named = true
		} else if n, p.digits = d.numeral(tokens[i:]); n == 0 {
			i++
			continue
		}
		list, i = append(list, p), i+n
	}
	return list
}

// date says how much of a date in words is told: "the third of May nineteen eighty-four", "dritter fünfter
// vierundachtzig". words says that it has a month, an ordinal or a century in words.
func (d *Dictation) date(tokens []string) (told Progress, words bool) {
	list := d.parts(tokens)
	if !slices.ContainsFunc(list, func(p part) bool { return p.named || p.years != "" }) {
		return ToldNothing, false
	}
	last := list[len(list)-1]
	before, tail := len(list), "" // the numbers that it ends with
	for before > 0 && list[before-1].digits != "" && len(tail) < 4 {
		before--
		tail = list[before].digits + tail
	}
	after := func(n int) bool { return len(list) > n && list[len(list)-n].years != "" } // a century before the last parts
	switch {
	case len(list) > 3 && isCentury(list[0].digits) && len(list[1].digits) == 2 && (list[2].named || list[3].named):
		return ToldWhole, true // its year was told first
	case len(last.years) == 4, after(2) && (last.named || len(last.digits) > 0), len(tail) == 4 && before > 0 && isCentury(tail[:2]):
		return ToldWhole, true
	case last.years == "20" && len(list) > 2:
		return ToldNothing, true // "two thousand" may be all of it
	case len(list) > 2 && (last.named && list[1].named || len(last.digits) == 2 && !isCentury(last.digits)):
		return ToldWhole, true // of a year in two digits
	}
	return ToldPart, true
}

// short says whether words are a whole date in numbers whose year has two digits, none of which can begin a longer one: "5/4/84",
// "cuatro del cinco del ochenta y cuatro".
func (d *Dictation) short(tokens []string) bool {
	var numbers []int
	for _, p := range d.parts(tokens) {
		n, err := strconv.Atoi(p.digits)
		if err != nil || len(p.digits) > 2 {
			return false
		}
		numbers = append(numbers, n)
	}
	return len(numbers) == 3 && min(numbers[0], numbers[1]) >= 1 && min(numbers[0], numbers[1]) <= 12 &&
		max(numbers[0], numbers[1]) <= 31 && numbers[2] > 31
}

func isCentury(digits string) bool { return digits == "19" || digits == "20" }

// century is how many of the first words begin a year, and its first digits; with what follows in the same word, all of
// them ("neunzehnhundertvierundachtzig").
func (d *Dictation) century(tokens []string) (n int, digits string) {
	for phrase, century := range d.Centuries {
		words := strings.Fields(phrase)
		if len(words) <= n || len(words) > len(tokens) || !slices.Equal(words[:len(words)-1], tokens[:len(words)-1]) {
			continue
		}
		rest, found := strings.CutPrefix(tokens[len(words)-1], words[len(words)-1])
		two := d.values[strings.TrimPrefix(rest, "und")]
		switch {
		case !found || rest != "" && two == "":
		case rest == "":
			n, digits = len(words), strconv.Itoa(century)
		default:
			n, digits = len(words), strconv.Itoa(century)+("0" + two)[len(two)-1:]
		}
	}
	return n, digits
}

// longestOf is how many of the first words are an entry of a set.
func longestOf(tokens []string, set map[string]bool) int {
	for n := min(3, len(tokens)); n > 0; n-- {
		if set[strings.Join(tokens[:n], " ")] {
			return n
		}
	}
	return 0
}

func hasYear(tokens []string) bool {
	for _, t := range tokens {
		if len(t) == 4 && strings.Trim(t, "0123456789") == "" {
			return true
		}
	}
	return false
}

// spells says whether words end with letters that are told one by one.
func spells(tokens []string) bool {
	run := 0
	for i := len(tokens) - 1; i >= 0 && utf8.RuneCountInString(tokens[i]) == 1; i-- {
		if r, _ := utf8.DecodeRuneInString(tokens[i]); !unicode.IsLetter(r) || spaceless(r) {
			break
		}
		run++
	}
	return run > 1 || run == 1 && len(tokens) == 1
}

// spelt says whether words are a name and then all of its letters.
func spelt(tokens []string) bool {
	letters := ""
	for i := len(tokens) - 1; i > 0 && utf8.RuneCountInString(tokens[i]) == 1; i-- {
		if letters = tokens[i] + letters; tokens[i-1] == letters && len(letters) > 1 {
			return true
		}
	}
	return false
}

// address says how much of an e-mail address a text tells: it ends with a dot and what follows that.
func (l *Language) address(text string, told bool) Progress {
	tokens := strings.Fields(strings.ToLower(strings.TrimRight(strings.TrimSpace(text), ".,!?")))
	at, dot := -1, -1
	for i, t := range tokens {
		switch t = strings.Trim(t, ",;:"); {
		case t == strings.ToLower(l.Signs.At) || t == "@" || t == "at":
			at, dot = i, -1
		case t == strings.ToLower(l.Signs.Dot) || t == "dot" || t == "punkt":
			dot = i
		case strings.Contains(t, "@"):
			at, dot = i, -1
			if domain := t[strings.Index(t, "@")+1:]; strings.Contains(strings.Trim(domain, "."), ".") {
				return ToldWhole
			}
		case at >= 0 && strings.Contains(strings.Trim(t, "."), "."):
			return ToldWhole
		}
	}
	last := len(tokens) - 1
	switch {
	case at >= 0 && dot > at && last > dot && (tokens[last] == "co" || tokens[last] == "ac"):
		return ToldPart // "dot uk"
	case at >= 0 && dot > at && last > dot && utf8.RuneCountInString(tokens[last]) > 1:
		return ToldWhole
	case at >= 0 || dot >= 0 || told:
		return ToldPart
	}
	return ToldNothing
}
