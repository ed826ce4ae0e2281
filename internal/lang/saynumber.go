package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// amount is a number as it is written.
type amount struct {
	whole, part string // figures
	end         int
	grouped     bool
}

// figures returns a number as a synthesizer of the language reads it: with its decimal sign, and without signs between
// thousands, except in English, where one that has no such sign may be taken for a year.
func (s *sayer) figures(a amount) string {
	whole := a.whole
	if a.grouped && s.Say.Decimal == "." {
		whole = ""
		for i, c := range a.whole {
			if i > 0 && (len(a.whole)-i)%3 == 0 {
				whole += ","
			}
			whole += string(c)
		}
	}
	if a.part == "" {
		return whole
	}
	return whole + s.Say.Decimal + a.part
}

// digits returns how many figures begin at i.
func (s *sayer) digits(i int) int {
	n := 0
	for i+n < len(s.text) && figure(rune(s.text[i+n])) {
		n++
	}
	return n
}

// amount reads a number.
func (s *sayer) amount(i int) (amount, bool) {
	n := s.digits(i)
	if n == 0 || n > 15 {
		return amount{}, false
	}
	a := amount{whole: s.text[i : i+n], end: i + n}
	first := ""
	for n <= 3 && len(a.whole) < 15 && a.whole[0] != '0' {
		sep, size := s.group(a.end)
		if sep == "" || first != "" && sep != first {
			break
		}
		// "1.250" is a thousand in German, "1,250" is a decimal; with two groups there is no doubt.
		if _, twice := s.group(a.end + size + 3); first == "" && sep == s.Say.Decimal && twice == 0 {
			break
		}
		first, a.grouped = sep, true
		a.whole += s.text[a.end+size : a.end+size+3]
		a.end += size + 3
	}
	if a.end+1 < len(s.text) && first != s.text[a.end:a.end+1] {
		sep, k := s.text[a.end], s.digits(a.end+1)
		own := string(sep) == s.Say.Decimal
		if k > 0 && (own || sep == '.' && k != 3 && !s.OrdinalDot) ||
			k > 0 && sep == '.' && s.OrdinalDot && (k == 1 || k == 2) && !s.dotted(a.end+1+k) {
			a.part = s.text[a.end+1 : a.end+1+k]
			a.end += 1 + k
		}
	}
	return a, true
}

// dotted reports whether a dot or a figure is at i, as in dates and addresses of computers.
func (s *sayer) dotted(i int) bool { return i < len(s.text) && s.text[i] == '.' && s.digits(i+1) > 0 }

// group returns the sign between thousands at i, and its size; three figures follow it.
func (s *sayer) group(i int) (sep string, size int) {
	if i >= len(s.text) {
		return "", 0
	}
	r, n := utf8.DecodeRuneInString(s.text[i:])
	switch r {
	case '.', ',':
		if s.Say.Decimal == "" {
			return "", 0
		}
	case '\u00a0', '\u202f', '’', '\'':
	case ' ':
		if !s.Say.Spaced {
			return "", 0
		}
	default:
		return "", 0
	}
	if s.digits(i+n) != 3 {
		return "", 0
	}
	return string(r), n
}

// number finds a number with what belongs to it: its unit, its currency, the rest of a fraction, the month of a day.
func (s *sayer) number(i int) (item, bool) {
	if s.Say.Decimal == "" {
		return item{}, false
	}
	if it, ok := s.fraction(i); ok {
		return it, true
	}
	a, ok := s.amount(i)
	if !ok {
		return item{}, false
	}
	if it, ok := s.dayMonth(i, a); ok {
		return it, true
	}
	if it, ok := s.ordinal(i, a); ok {
		return it, true
	}
	if it, ok := s.moneyAfter(a); ok {
		return it, true
	}
	at := a.end
	if strings.HasPrefix(s.text[at:], " ") {
		at++
	} else if r := firstRune(s.text[at:]); r == '\u00a0' || r == '\u202f' {
		at += utf8.RuneLen(r)
	}
	if unit := s.Say.units.find(s.text[at:]); unit != "" && (at > a.end || unit != "s") {
		return s.per(item{said: s.many(s.Say.Units[unit], a), end: at + len(unit), one: true}), true
	}
	if r := firstRune(s.text[a.end:]); unicode.IsLetter(r) {
		return item{said: s.text[i:a.end], end: a.end}, true // "4K": whatever it is
	}
	return item{said: s.figures(a), end: a.end, one: true}, true
}

// per says the slash between an amount and what it is for.
func (s *sayer) per(it item) item {
	if per := s.Say.Signs["per"]; per != "" && strings.HasPrefix(s.text[it.end:], "/") && unicode.IsLetter(firstRune(s.text[it.end+1:])) {
		it.said += " " + per + " "
		it.end++
		it.one = false
	}
	return it
}

// many returns a number with the form of a word that belongs to it.
func (s *sayer) many(forms string, a amount) string {
	f := strings.Split(forms, "|")
	n := a.whole
	if n == "1" && a.part == "" {
		return f[0]
	}
	said := s.figures(a) + " "
	switch {
	case s.Say.Below && (n == "0" || n == "1"):
		_, one, _ := strings.Cut(f[0], " ")
		return said + one
	case len(f) < 4:
		return said + f[len(f)-1]
	case a.part != "":
		return said + f[3]
	case n[len(n)-1] >= '2' && n[len(n)-1] <= '4' && !(len(n) > 1 && n[len(n)-2] == '1'):
		return said + f[1]
	}
	return said + f[2]
}

var vulgar = map[rune]string{'½': "1/2", '¼': "1/4", '¾': "3/4", '⅓': "1/3", '⅔': "2/3", '⅛': "1/8", '⅕': "1/5"}

// fraction finds "1/2", "½", "2 ½" and "8/10".
func (s *sayer) fraction(i int) (item, bool) {
	if f := vulgar[firstRune(s.text[i:])]; f != "" && s.Say.Fractions[f] != "" {
		return item{said: s.Say.Fractions[f], end: i + utf8.RuneLen(firstRune(s.text[i:])), word: true}, true
	}
	n := s.digits(i)
	if n == 0 || n > 3 {
		return item{}, false
	}
	if it, ok := s.mixed(i, i+n); ok {
		return it, true
	}
	over := s.over(i)
	if over == 0 || s.sums {
		return item{}, false
	}
	f := s.text[i:over]
	if word := s.Say.Fractions[f]; word != "" {
		return item{said: word, end: over, word: true}, true
	}
	a, b, _ := strings.Cut(f, "/")
	if f == "24/7" {
		return item{said: "24 7", end: over, word: true}, true
	}
	if s.Say.OutOf == "" {
		return item{}, false
	}
	return item{said: a + " " + s.Say.OutOf + " " + b, end: over, word: true}, true
}

// over returns the end of a fraction at i; 0 if there is none.
func (s *sayer) over(i int) int {
	n := s.digits(i)
	if n == 0 || n > 3 || i+n >= len(s.text) || s.text[i+n] != '/' {
		return 0
	}
	k := s.digits(i + n + 1)
	end := i + n + 1 + k
	if k == 0 || k > 3 || end < len(s.text) && (s.text[end] == '/' || wordy(firstRune(s.text[end:]))) {
		return 0
	}
	return end
}

// mixed finds a whole number from i to j with a fraction behind it.
func (s *sayer) mixed(i, j int) (item, bool) {
	k := j
	if strings.HasPrefix(s.text[k:], " ") {
		k++
	}
	f, end := vulgar[firstRune(s.text[k:])], 0
	if f != "" {
		end = k + utf8.RuneLen(firstRune(s.text[k:]))
	} else if end = s.over(k); end > 0 && k > j {
		f = s.text[k:end]
	}
	if word := s.Say.Mixed[f]; word != "" {
		if one := s.Say.Mixed["1 "+f]; one != "" && s.text[i:j] == "1" {
			word = one
		}
		return item{said: fill(word, "{n}", s.text[i:j]), end: end, word: true}, true
	}
	return item{}, false
}

// money finds an amount behind its currency.
func (s *sayer) money(i int) (item, bool) {
	name := s.Say.money.find(s.text[i:])
	if name == "" {
		// "USD500" has no end of a word.
		for _, key := range s.Say.money[s.text[i]] {
			if strings.HasPrefix(s.text[i:], key) && s.digits(i+len(key)) > 0 {
				name = key
				break
			}
		}
	}
	if name == "" {
		return item{}, false
	}
	at := i + len(name)
	if r := firstRune(s.text[at:]); r == ' ' || r == '\u00a0' || r == '\u202f' {
		at += utf8.RuneLen(r)
	}
	if s.digits(at) == 0 {
		return item{}, false
	}
	a, ok := s.amount(at)
	if !ok {
		return item{}, false
	}
	s.even(&a)
	large, end := s.large(a.end)
	if large == "" {
		end = a.end
	}
	return s.per(item{said: s.sum(a, large, name), end: end, one: true}), true
}

// even passes over the dash of "5,-".
func (s *sayer) even(a *amount) {
	for _, dash := range []string{",-", ",–", ",—", ".-", ".–"} {
		if a.part == "" && strings.HasPrefix(s.text[a.end:], dash) {
			a.end += len(dash)
		}
	}
}

// moneyAfter finds the currency behind a number.
func (s *sayer) moneyAfter(a amount) (item, bool) {
	s.even(&a)
	large, at := s.large(a.end)
	if large == "" {
		at = a.end
	}
	if r := firstRune(s.text[at:]); r == ' ' || r == '\u00a0' || r == '\u202f' {
		at += utf8.RuneLen(r)
	}
	name := s.Say.money.find(s.text[at:])
	if name == "" {
		// A single letter means millions of money alone.
		if _, end := s.large(a.end); large != "" && len(strings.TrimSpace(s.text[a.end:end])) > 2 {
			return item{said: s.figures(a) + " " + large, end: end, one: true}, true
		}
		return item{}, false
	}
	return s.per(item{said: s.sum(a, large, name), end: at + len(name), one: true}), true
}

// large finds the word for millions and the like behind a number.
func (s *sayer) large(i int) (word string, end int) {
	at := i
	if r := firstRune(s.text[at:]); r == ' ' || r == '\u00a0' {
		at += utf8.RuneLen(r)
	}
	end = at
	for end < len(s.text) && !strings.ContainsRune(" ,;:!?)-–/€$", firstRune(s.text[end:])) {
		_, n := utf8.DecodeRuneInString(s.text[end:])
		end += n
	}
	for _, w := range []string{s.text[at:end], strings.TrimSuffix(s.text[at:end], ".")} {
		if word = s.Say.Money.Large[w]; word != "" {
			return word, at + len(w)
		}
	}
	return "", i
}

// sum says an amount of money.
func (s *sayer) sum(a amount, large, name string) string {
	major, minor, _ := strings.Cut(s.Say.Money.Names[name], ";")
	f := strings.Split(major, "|")
	switch {
	case large != "":
		unit := f[len(f)-1]
		if len(f) == 4 {
			unit = f[2]
		}
		of := s.Say.Money.Of
		if s.Say.Money.Vowel != "" && strings.ContainsRune("aeiouhAEIOUH", firstRune(unit)) {
			of = s.Say.Money.Vowel
		}
		return s.figures(a) + " " + large + " " + of + unit
	case minor == "" || len(a.part) != 2:
		return s.many(major, a)
	}
	cents := amount{whole: strings.TrimLeft(a.part, "0")}
	a.part = ""
	switch {
	case cents.whole == "":
		return s.many(major, a)
	case a.whole == "0":
		return s.many(minor, cents)
	}
	return fill(s.Say.Money.Join, "{a}", s.many(major, a), "{b}", s.many(minor, cents), "{n}", cents.whole)
}
