package lang

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// two reads a number of one or two figures at i.
func (s *sayer) two(i int) (n, end int, ok bool) {
	k := s.digits(i)
	if k < 1 || k > 2 {
		return 0, 0, false
	}
	n, _ = strconv.Atoi(s.text[i : i+k])
	return n, i + k, true
}

// time finds a time of the day.
func (s *sayer) time(i int) (item, bool) {
	c := &s.Say.Clock
	h, end, ok := s.two(i)
	if !ok || h > 24 || c.Sharp == "" {
		return item{}, false
	}
	m, minutes, bare := 0, false, true // bare: "14 h" may be how long something takes, too
	if end < len(s.text) {
		sep := s.text[end]
		if sep == ':' || sep == '.' || c.Letter && (sep == 'h' || sep == 'H') {
			if n, e, ok := s.two(end + 1); ok && e == end+3 && n < 60 &&
				!(e < len(s.text) && (s.text[e] == ':' || s.text[e] == '.' && s.digits(e+1) > 0)) {
				if sep != '.' || s.hours(e) > e || s.half(e) != "" {
					m, end, minutes, bare = n, e, true, false
				}
			} else if sep == ':' {
				return item{}, false
			}
		}
		if sp := strings.TrimLeft(s.text[end:], " "); !minutes && c.Letter && len(sp) > 0 && sp[0] == 'h' && !wordy(firstRune(sp[1:])) {
			minutes, end = true, len(s.text)-len(sp)+1
			if strings.HasPrefix(s.text[end:], " ") { // "14 h 30"
				if n, e, ok := s.two(end + 1); ok && e == end+3 && n < 60 && !wordy(firstRune(s.text[e:])) && !strings.HasPrefix(s.text[e:], ":") {
					m, end = n, e
				}
			}
		}
	}
	half := ""
	if half = s.half(end); half != "" && h <= 12 {
		minutes = true
		end = s.halfEnd(end)
	} else {
		half = ""
	}
	if e := s.hours(end); e > end {
		end, minutes = e, true
	}
	if !minutes || h == 24 && m > 0 || end < len(s.text) && wordy(firstRune(s.text[end:])) {
		return item{}, false
	}
	switch said := s.clock(i, h, m, half); {
	case !bare || half != "" || m > 0:
		return item{said: said, end: end, one: true}, true
	case c.Sharp == "{h}":
		return item{}, false
	case h != 1:
		hour := cmp.Or(c.Hours[strconv.Itoa(h)], strconv.Itoa(h))
		return item{said: fill(c.Sharp, "{h}", hour), end: end, one: true}, true
	default:
		return item{said: said, end: end, one: true}, true
	}
}

// hours passes over a word of the clock at i: "Uhr".
func (s *sayer) hours(i int) int {
	at := i
	if r := firstRune(s.text[at:]); r == ' ' || r == '\u00a0' {
		at += utf8.RuneLen(r)
	}
	for _, w := range s.Say.Clock.Words {
		if strings.HasPrefix(s.text[at:], w) && !wordy(firstRune(s.text[at+len(w):])) {
			return at + len(w)
		}
	}
	return i
}

var halves = [...]string{"a.m.", "p.m.", "A.M.", "P.M.", "am", "pm", "AM", "PM"}

// half returns "A M" or "P M" where the text says so at i, in languages that do.
func (s *sayer) half(i int) string {
	if !s.Say.Clock.Twelve {
		return ""
	}
	rest := strings.TrimPrefix(s.text[i:], " ")
	for _, h := range halves {
		if strings.HasPrefix(rest, h) && !wordy(firstRune(rest[len(h):])) {
			said := strings.ToUpper(h[:1]) + " M"
			if strings.HasSuffix(h, ".") && strings.TrimSpace(rest[len(h):]) == "" {
				said += "."
			}
			return said
		}
	}
	return ""
}

func (s *sayer) halfEnd(i int) int {
	rest := strings.TrimPrefix(s.text[i:], " ")
	for _, h := range halves {
		if strings.HasPrefix(rest, h) {
			return len(s.text) - len(rest) + len(h)
		}
	}
	return i
}

// afternoon reports whether a text has a time after noon by 24 hours.
func afternoon(text string) bool {
	for i := 2; i+2 < len(text); i++ {
		if text[i] == ':' &&
			(text[i-2] == '1' && text[i-1] > '2' && text[i-1] <= '9' || text[i-2] == '2' && text[i-1] >= '0' && text[i-1] < '4') &&
			figure(rune(text[i+1])) && figure(rune(text[i+2])) && !(i > 2 && figure(rune(text[i-3]))) {
			return true
		}
	}
	return false
}

// clock says a time; half is "A M", "P M" or "".
func (s *sayer) clock(i, h, m int, half string) string {
	c := &s.Say.Clock
	if c.Twelve && half == "" && (h == 0 || h > 12 || s.whole) {
		half = "A M"
		if h >= 12 && h < 24 {
			half = "P M"
		}
		h %= 12
		if h == 0 {
			h = 12
		}
	}
	key := strconv.Itoa(h)
	hour := key
	if word := c.Hours[key]; word != "" {
		hour = word
		if end, ok := c.After[s.before(i)]; ok {
			hour = endings(hour, end)
		}
	}
	min := strconv.Itoa(m)
	switch {
	case m == 0 && half != "":
		return hour + " " + half
	case m == 0 && c.Only[key] != "":
		return c.Only[key]
	case m == 0:
		return fill(c.Sharp, "{h}", hour)
	}
	said := fill(c.Past, "{h}", hour, "{m}", min)
	if m < 10 {
		said = fill(c.Early, "{h}", hour, "{m}", min)
	}
	if c.Most[key] != "" {
		said = fill(c.Most[key], "{m}", min)
	}
	if half != "" {
		said += " " + half
	}
	return said
}

// endings puts an ending into the place of the last letter of each word.
func endings(words, end string) string {
	list := strings.Fields(words)
	for i, w := range list {
		_, n := utf8.DecodeLastRuneInString(w)
		w = w[:len(w)-n]
		if end == "ej" && (strings.HasSuffix(w, "g") || strings.HasSuffix(w, "k")) {
			w += "i"
		}
		list[i] = w + end
	}
	return strings.Join(list, " ")
}

// date finds a date in figures.
func (s *sayer) date(i int) (item, bool) {
	d := &s.Say.Dates
	n := s.digits(i)
	if n == 0 || len(d.Months) == 0 {
		return item{}, false
	}
	if n == 4 && i+5 < len(s.text) && s.text[i+4] == '-' { // 2024-03-15
		month, e, ok := s.two(i + 5)
		if ok && e == i+7 && e < len(s.text) && s.text[e] == '-' {
			if day, end, ok := s.two(e + 1); ok && s.ends(end) {
				return s.dated(i, day, month, s.text[i:i+4], end)
			}
		}
		return item{}, false
	}
	a, e, ok := s.two(i)
	if !ok || e >= len(s.text) || !strings.ContainsRune("./-", rune(s.text[e])) {
		return item{}, false
	}
	sep, first := s.text[e], e-i
	b, e2, ok := s.two(e + 1)
	if !ok {
		return item{}, false
	}
	second := e2 - e - 1
	day, month := a, b
	if sep != '.' && (d.MonthFirst && a <= 12 || b > 12) {
		day, month = b, a
	}
	if e2 < len(s.text) && s.text[e2] == sep {
		switch k := s.digits(e2 + 1); {
		case k == 4 || k == 2 && sep != '-':
			if end := e2 + 1 + k; s.ends(end) {
				year := s.text[e2+1 : end]
				if k == 2 {
					year = "20" + year
				}
				return s.dated(i, day, month, year, end)
			}
			return item{}, false
		case sep == '.' && k == 0 && s.OrdinalDot && b <= 12: // 15.3.
			end := e2 + 1
			it, ok := s.dated(i, day, month, "", end)
			if strings.TrimSpace(s.text[end:]) == "" {
				it.said += "."
			}
			return it, ok
		}
		return item{}, false
	}
	if sep == '/' && first == 2 && second == 2 && (s.text[i] == '0' || s.text[e+1] == '0') && s.ends(e2) { // 15/03
		return s.dated(i, day, month, "", e2)
	}
	return item{}, false
}

// ends reports whether a date may end at i: no letter or figure follows, and no sign with a figure behind it.
func (s *sayer) ends(i int) bool {
	return i >= len(s.text) || !wordy(firstRune(s.text[i:])) && !(strings.ContainsRune("/-.", rune(s.text[i])) && s.digits(i+1) > 0)
}

// spanOf returns the length of the word that a text begins with.
func spanOf(text string) int {
	if i := strings.IndexFunc(text, func(r rune) bool { return !wordy(r) }); i >= 0 {
		return i
	}
	return len(text)
}

// dated says a date; year is "" where there is none.
func (s *sayer) dated(i, day, month int, year string, end int) (item, bool) {
	d := &s.Say.Dates
	if day < 1 || day > 31 || month < 1 || month > 12 {
		return item{}, false
	}
	said := fill(d.Short, "{d}", s.day(i, day), "{m}", d.Months[month-1])
	if year != "" {
		said = fill(d.Full, "{d}", s.day(i, day), "{m}", d.Months[month-1], "{y}", s.year(year))
		end = s.yearEnd(end)
	}
	return item{said: said, end: end, one: true}, true
}

// yearEnd passes over what is written after a year, which YearWord says.
func (s *sayer) yearEnd(i int) int {
	for _, w := range s.Say.Dates.Written {
		if strings.HasPrefix(s.text[i:], " "+w) && !wordy(firstRune(s.text[i+1+len(w):])) {
			return i + 1 + len(w)
		}
	}
	return i
}

// day says the day of a month.
func (s *sayer) day(i, day int) string {
	d := &s.Say.Dates
	key := strconv.Itoa(day)
	if word := d.Days[key]; word != "" {
		before := s.before(i)
		if strings.ContainsRune("-–—", lastRune(strings.TrimRight(s.text[:i], " "))) {
			before = s.Say.Ranges.To
		}
		end, ok := d.Endings[before]
		if !ok {
			end = d.Endings[""]
		}
		return word + end
	}
	return key
}

// year says the year of a date.
func (s *sayer) year(year string) string {
	d := &s.Say.Dates
	said := year
	if d.Hundred != "" && year >= "1100" && year < "2000" {
		said = year[:2] + " " + d.Hundred
		if rest := strings.TrimLeft(year[2:], "0"); rest != "" {
			said += " " + rest
		}
	}
	if d.Years[year] != "" {
		said = d.Years[year]
	} else if head := d.Years[year[:2]]; head != "" {
		rest := strings.TrimLeft(year[2:], "0")
		tail := d.Days[rest]
		if tail == "" && len(rest) == 2 {
			tail = strings.TrimSpace(d.Years[rest[:1]+"0"] + " " + d.Days[rest[1:]])
		}
		said = head + " " + tail
	}
	if d.YearWord != "" {
		said += " " + d.YearWord
	}
	return said
}

// dayMonth finds the month behind a day, with its year.
func (s *sayer) dayMonth(i int, a amount) (item, bool) {
	d := &s.Say.Dates
	n, err := strconv.Atoi(a.whole)
	if err != nil || n < 1 || n > 31 || a.part != "" || len(a.whole) > 2 {
		return item{}, false
	}
	rest := s.text[a.end:]
	if s.OrdinalDot && len(d.Endings) > 0 {
		var dot bool
		if rest, dot = strings.CutPrefix(rest, "."); !dot {
			return item{}, false
		}
	}
	rest = strings.TrimLeft(rest, " ")
	if d.Of != "" {
		rest = strings.TrimPrefix(rest, d.Of+" ")
	}
	size := spanOf(rest)
	month := s.Say.months[strings.ToLower(rest[:size])]
	if month == 0 {
		return item{}, false
	}
	if firstRune(rest) >= 'a' && firstRune(rest) <= 'z' && d.Months[month-1][0] < 'a' {
		return item{}, false // "2 may leave"
	}
	pattern := d.Day
	if pattern == "" {
		pattern = d.Short
	}
	end := len(s.text) - len(rest) + size
	said := fill(pattern, "{d}", s.day(i, n), "{m}", d.Months[month-1])
	return s.ofYear(said, d.Months[month-1], end), true
}

// ofYear adds the year that follows a month at end. Where it needs no words of its own it is left where it stands.
func (s *sayer) ofYear(said, month string, end int) item {
	d := &s.Say.Dates
	it := item{said: said, end: end, one: true}
	if strings.HasPrefix(s.text[end:], " ") && s.digits(end+1) == 4 && (d.Hundred != "" || len(d.Years) > 0) {
		it.said += " " + s.year(s.text[end+1:end+5])
		it.end = s.yearEnd(end + 5)
	}
	return it
}

// monthDay finds a day behind its month: "March 3".
func (s *sayer) monthDay(i int) (item, bool) {
	d := &s.Say.Dates
	if !d.MonthFirst || s.text[i] < 'A' || s.text[i] > 'Z' {
		return item{}, false
	}
	size := strings.IndexByte(s.text[i:], ' ')
	if size < 3 {
		return item{}, false
	}
	month := s.Say.months[strings.ToLower(s.text[i:i+size])]
	day, end, ok := s.two(i + size + 1)
	if month == 0 || !ok || day < 1 || day > 31 ||
		end < len(s.text) && (wordy(firstRune(s.text[end:])) || s.text[end] == ':' || s.text[end] == '/') {
		return item{}, false
	}
	return item{said: d.Months[month-1] + " " + s.day(i, day), end: end, one: true, day: true}, true
}

// ordinal finds an ordinal that synthesizers read wrongly.
func (s *sayer) ordinal(i int, a amount) (item, bool) {
	d := &s.Say.Dates
	if a.part != "" || len(a.whole) > 2 {
		return item{}, false
	}
	rest := s.text[a.end:]
	if len(d.Endings) > 0 && strings.HasPrefix(rest, ". ") && len(rest) > 2 && wordy(firstRune(rest[2:])) {
		end, ok := d.Endings[s.before(i)]
		if word := d.Days[strings.TrimLeft(a.whole, "0")]; ok && word != "" && s.before(i) != "" {
			return item{said: word + end, end: a.end + 1}, true
		}
	}
	r := strings.TrimLeft(strings.TrimPrefix(rest, "."), " ")
	if len(d.Endings) > 0 && strings.HasPrefix(rest, ".") && strings.ContainsRune("-–", firstRune(r)) {
		_, n := utf8.DecodeRuneInString(r)
		day, _ := strconv.Atoi(a.whole)
		if _, end, ok := s.two(len(s.text) - len(strings.TrimLeft(r[n:], " "))); ok && strings.HasPrefix(s.text[end:], ".") &&
			d.Days[a.whole] != "" {
			return item{said: s.day(i, day), end: a.end + 1, one: true}, true // 3.–5. Mai
		}
	}
	size := spanOf(rest)
	if size == 0 || size > 6 {
		return item{}, false
	}
	if word := s.Say.Suffixes[a.whole+rest[:size]]; word != "" {
		return item{said: word, end: a.end + size}, true
	}
	if word := s.Say.Suffixes[rest[:size]]; word != "" {
		return item{said: a.whole + word, end: a.end + size}, true
	}
	return item{}, false
}
