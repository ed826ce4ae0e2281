package lang

import (
	"strings"
	"unicode/utf8"
)

// phone finds a telephone number, or another number that is told figure by figure.
func (s *sayer) phone(i int) (item, bool) {
	c := s.text[i]
	if c != '+' && c != '(' && !figure(rune(c)) {
		return item{}, false
	}
	at := i
	if c == '+' {
		at++
	}
	var groups []string
	var seps strings.Builder
	total, end := 0, at
	for at < len(s.text) && len(groups) < 12 {
		n := s.digits(at)
		if n > 0 {
			groups = append(groups, s.text[at:at+n])
			total += n
			at += n
			end = at
			if strings.HasPrefix(s.text[at:], ")") {
				end++
			}
		}
		k := 0
		for at+k < len(s.text) && k < 3 {
			r, size := utf8.DecodeRuneInString(s.text[at+k:])
			if !strings.ContainsRune(" -.()/\u00a0\u2011\u202f", r) {
				break
			}
			k += size
		}
		if k == 0 || s.digits(at+k) == 0 {
			break
		}
		if len(groups) > 0 {
			seps.WriteString(s.text[at : at+k])
		}
		at += k
	}
	if total == 0 || total > 24 || end < len(s.text) && wordy(firstRune(s.text[end:])) || strings.HasPrefix(s.text[end:], "%") {
		return item{}, false
	}
	told := s.dialled(c, groups, total, seps.String())
	if !told { // the first group alone
		n := s.digits(i)
		end = i + n
		if n == 0 || !s.long(i, end) {
			return item{}, false
		}
		groups, seps = []string{s.text[i:end]}, strings.Builder{}
	}
	said := s.told(groups, c == '+')
	return item{said: said, end: end}, true
}

// dialled reports whether groups of figures are a telephone number or the number of a card.
func (s *sayer) dialled(first byte, groups []string, total int, seps string) bool {
	if strings.ContainsAny(seps, "./") && !strings.ContainsAny(seps, " -(") && first != '+' && groups[0][0] != '0' {
		if !(len(groups) == 3 && len(groups[0]) == 3 && len(groups[1]) == 3 && len(groups[2]) == 4) {
			return false
		}
	}
	switch {
	case first == '+':
		return total >= 8
	case first == '(':
		return total >= 7 && len(groups) > 1
	case len(groups) == 1:
		return false
	case groups[0][0] == '0' && len(groups[0]) > 1:
		return total >= 7
	case len(groups) == 2:
		return len(groups[0]) == 3 && len(groups[1]) == 4 && seps == "-" || len(groups[1]) >= 6 && total >= 9
	case total < 8:
		return false
	}
	short, threes := false, true
	for i, g := range groups {
		short = short || len(g) == 1 && i > 0
		threes = threes && (i == 0 || len(g) == 3)
	}
	if short {
		return false
	}
	return !threes || strings.Contains(seps, "-") || len(groups[0]) == 3 && total == 9 && strings.Trim(seps, " ") == ""
}

// long reports whether the figures from i to end are told one by one: there are many, they begin with 0, or the word
// before says that they are a code.
func (s *sayer) long(i, end int) bool {
	n := end - i
	rest := s.text[end:]
	if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',' || rest[0] == ':' || rest[0] == '/') && figure(rune(rest[1])) {
		return false
	}
	if trimmed := strings.TrimLeft(rest, " \u00a0"); s.Say.units.find(trimmed) != "" || s.Say.money.find(trimmed) != "" {
		return false
	}
	code := s.Say.Codes[s.before(i)]
	switch {
	case n >= 3 && s.text[i] == '0', n >= 3 && code:
		return true
	}
	return n >= 7 && !strings.HasSuffix(s.text[i:end], "000")
}

// told says groups of figures.
func (s *sayer) told(groups []string, plus bool) string {
	var parts []string
	if plus {
		parts = append(parts, "")
	}
	for _, g := range groups {
		switch {
		case s.Say.Pairs && len(g) == 2:
			parts = append(parts, pair(g))
		case s.Say.Pairs && len(g) == 10 && g[0] == '0':
			for ; g != ""; g = g[2:] {
				parts = append(parts, pair(g[:2]))
			}
		default:
			for _, c := range chunks(g) {
				parts = append(parts, spread(c))
			}
		}
	}
	if plus {
		parts[1] = s.Language.Signs.Plus + " " + parts[1]
		parts = parts[1:]
	}
	return strings.Join(parts, ", ")
}

// pair says two figures as a number, and a zero before the other.
func pair(g string) string {
	if g[0] == '0' {
		return spread(g)
	}
	return g
}

// chunks cuts figures into groups that can be kept in mind.
func chunks(g string) (list []string) {
	for len(g) > 4 {
		n := 3
		if len(g) == 8 {
			n = 4
		}
		list = append(list, g[:n])
		g = g[n:]
	}
	return append(list, g)
}

// spread puts spaces between characters.
func spread(g string) string {
	out := make([]byte, 0, 2*len(g))
	for i := range len(g) {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(out, g[i])
	}
	return string(out)
}

// code finds an order code, which is told letter by letter and figure by figure.
func (s *sayer) code(i int) (item, bool) {
	end, letters, run, most, figures, changes := i, 0, 0, 0, 0, 0
	for end < len(s.text) {
		c := s.text[end]
		upper := c >= 'A' && c <= 'Z'
		if !upper && !figure(rune(c)) && !((c == '-' || c == '/') && end > i && end+1 < len(s.text) && capital(s.text[end+1])) {
			break
		}
		if upper {
			letters++
			run++
			most = max(most, run)
		} else {
			run = 0
		}
		if figure(rune(c)) {
			figures++
		}
		if end > i && capital(c) && capital(s.text[end-1]) && upper != (s.text[end-1] >= 'A') {
			changes++
		}
		end++
	}
	if letters == 0 || figures == 0 || most > 4 || end < len(s.text) && wordy(firstRune(s.text[end:])) {
		return item{}, false
	}
	if !(figures >= 3 || changes >= 2 && letters+figures >= 4 || s.Say.Codes[s.before(i)] && letters+figures >= 3) {
		return item{}, false
	}
	if n := s.digits(i); n > 0 && s.Say.units.find(s.text[i+n:]) != "" {
		return item{}, false
	}
	var parts []string
	for g := range strings.FieldsFuncSeq(s.text[i:end], func(r rune) bool { return r == '-' || r == '/' }) {
		if strings.Trim(g, "0123456789") == "" {
			for _, c := range chunks(g) {
				parts = append(parts, spread(c))
			}
			continue
		}
		parts = append(parts, spread(g))
	}
	return item{said: strings.Join(parts, ", "), end: end}, true
}

// capital reports whether a byte is a figure or a capital letter.
func capital(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' }
