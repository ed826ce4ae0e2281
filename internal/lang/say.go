package lang

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Say is how a language says what is written in figures and signs. Plain numbers stay figures: every synthesizer reads
// those. A language without a Say has only telephone numbers and codes said figure by figure.
type Say struct {
	Decimal string            `json:"decimal"` // sign before decimals: "." or ","
	Spaced  bool              `json:"spaced"`  // thousands may be parted by spaces
	Below   bool              `json:"below"`   // what is less than two is singular
	Signs   map[string]string `json:"signs"`   // "+" is "plus"; "per" is the slash of "km/day"
	Short   map[string]string `json:"short"`   // abbreviations in full
	Codes   Set               `json:"codes"`   // a number after one of these is told figure by figure
	Pairs   bool              `json:"pairs"`   // telephone numbers are said in pairs of figures
	Stage   Set               `json:"stage"`   // stage directions begin with these

	Clock     Clock             `json:"clock"`
	Dates     Dates             `json:"dates"`
	Ranges    Ranges            `json:"ranges"`
	Money     Money             `json:"money"`
	Units     map[string]string `json:"units"`     // "one|many", or "one|few|many|part"; one has its number
	Fractions map[string]string `json:"fractions"` // "1/2"
	Mixed     map[string]string `json:"mixed"`     // "1/2" after a whole number {n}
	OutOf     string            `json:"out_of"`    // other fractions: "8 out of 10"
	Suffixes  map[string]string `json:"suffixes"`  // of ordinals that are read wrongly: "2e" is "2ème"

	units, money, short index
	months              map[string]int
}

// Clock is how times are said. {h} is the hour and {m} the minute.
type Clock struct {
	Sharp  string            `json:"sharp"`  // 9:00
	Past   string            `json:"past"`   // 9:30
	Early  string            `json:"early"`  // 9:05
	Hours  map[string]string `json:"hours"`  // {h}, where it is not a plain number
	After  map[string]string `json:"after"`  // what follows a word: the ending in place of an hour's last letter
	Only   map[string]string `json:"only"`   // Sharp for some hours
	Most   map[string]string `json:"most"`   // Past for some hours
	Twelve bool              `json:"twelve"` // 14:30 is half past two
	Words  []string          `json:"words"`  // may follow, and are not said again
	Letter bool              `json:"letter"` // 14h30
}

// Dates is how dates are said. {d} is the day, {m} the month and {y} the year.
type Dates struct {
	Months     []string          `json:"months"`
	Short      string            `json:"short"`
	Full       string            `json:"full"`
	Day        string            `json:"day"` // where the day was written first, if that differs from Short
	MonthFirst bool              `json:"month_first"`
	Days       map[string]string `json:"days"`     // days that are not plain numbers
	Endings    map[string]string `json:"endings"`  // of Days after a word; "" stands for other words
	Hundred    string            `json:"hundred"`  // 1999 is 19 hundred 99
	Years      map[string]string `json:"years"`    // years, their first two figures, and tens
	YearWord   string            `json:"year"`     // said after a year
	Of         string            `json:"of"`       // between a day and its month, in texts
	Written    []string          `json:"year_end"` // may be written after a year
}

// Ranges is how "5-10" is said.
type Ranges struct {
	To      string            `json:"to"`
	From    string            `json:"from"`    // before the first, unless one of After is there
	After   Set               `json:"after"`   // words that say it already
	Between map[string]string `json:"between"` // "between" has "and"
}

// Money is how amounts are said.
type Money struct {
	Join  string            `json:"join"`  // {a} is the whole, {b} the hundredths with their name, {n} without
	Of    string            `json:"of"`    // after a million
	Vowel string            `json:"vowel"` // in place of Of, before a vowel
	Names map[string]string `json:"names"` // of currencies: forms as in Units; those of the hundredth after ";"
	Large map[string]string `json:"large"` // "Mio." is "Millionen"
}

// index finds the longest key that a text begins with. Its lists are ordered from long to short.
type index map[byte][]string

func newIndex(words map[string]string) index {
	x := index{}
	for w := range words {
		x[w[0]] = append(x[w[0]], w)
	}
	for _, list := range x {
		slices.SortFunc(list, func(a, b string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return strings.Compare(a, b)
		})
	}
	return x
}

// find returns the longest key at the start of a text; "" for none. A key that ends with a letter ends a word.
func (x index) find(text string) string {
	if text == "" {
		return ""
	}
	for _, key := range x[text[0]] {
		if strings.HasPrefix(text, key) && (!wordy(lastRune(key)) || !wordy(firstRune(text[len(key):]))) {
			return key
		}
	}
	return ""
}

// index prepares the lists of a language.
func (s *Say) index() {
	s.units, s.money, s.short = newIndex(s.Units), newIndex(s.Money.Names), newIndex(s.Short)
	s.months = map[string]int{}
	for i, m := range s.Dates.Months {
		s.months[strings.ToLower(m)] = i + 1
	}
}

// before reports whether an abbreviation means something only before a number, and is another word elsewhere.
func (s *Say) before(short string) bool {
	full := s.Short[short]
	return full != "" && (full == s.Signs["#"] || full == s.Signs["~"])
}

func firstRune(s string) rune {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return 0
	}
	return r
}

func wordy(r rune) bool { return unicode.IsLetter(r) || figure(r) }

func figure(r rune) bool { return r >= '0' && r <= '9' }

// sayer goes through a text once.
type sayer struct {
	*Language
	style Style
	text  string
	out   strings.Builder
	sums  bool // there is an equals sign, so that a dash between numbers subtracts
	whole bool // there is a time after noon by 24 hours, so that all times are by 24 hours
}

// item is something that is said otherwise than it is written.
type item struct {
	said string
	end  int  // in the text
	one  bool // may be the beginning or the end of a range
	day  bool // is a day behind its month
	word bool // words also for who reads numbers
}

// numbers returns a text with what is written in figures and signs as it is said.
func numbers(text string, l *Language, style Style) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return figure(r) || r < utf8.RuneSelf && strings.ContainsRune(".=+%&#<>", r) || r > 0x7f && !unicode.IsLetter(r)
	}) {
		return text
	}
	s := &sayer{Language: l, style: style, text: text, sums: strings.Contains(text, "="), whole: afternoon(text)}
	s.out.Grow(len(text) + len(text)/2)
	for i := 0; i < len(text); {
		if next, ok := s.at(i); ok {
			i = next
			continue
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		s.out.WriteString(text[i : i+n])
		i += n
	}
	return s.out.String()
}

// at says what begins at i, and returns where it goes on.
func (s *sayer) at(i int) (next int, ok bool) {
	c := s.text[i]
	if last := lastRune(s.text[:i]); c == ' ' || i > 0 && wordy(last) && !spaceless(last) && wordy(firstRune(s.text[i:])) {
		return 0, false
	}
	if n, ok := s.sign(i); ok {
		return n, true
	}
	it, ok := s.item(i)
	if !ok {
		return 0, false
	}
	if it.one {
		if joint, ok := s.span(i, it); ok {
			s.out.WriteString(joint.said)
			return joint.end, true
		}
	}
	s.out.WriteString(s.as(i, it))
	return it.end, true
}

// as returns an item as the style has it.
func (s *sayer) as(i int, it item) string {
	if s.style == AsWritten && !it.word {
		return s.text[i:it.end]
	}
	return it.said
}

// item finds what begins at i.
func (s *sayer) item(i int) (item, bool) {
	for _, find := range [...]func(int) (item, bool){s.money, s.date, s.time, s.phone, s.code, s.number, s.monthDay, s.abbreviation} {
		if it, ok := find(i); ok {
			return it, true
		}
	}
	return item{}, false
}

// span joins an item with another behind a dash.
func (s *sayer) span(i int, a item) (item, bool) {
	j, spaced := a.end, false
	if strings.HasPrefix(s.text[j:], " ") {
		j, spaced = j+1, true
	}
	r, n := utf8.DecodeRuneInString(s.text[j:])
	if !strings.ContainsRune("-–—‑−", r) || r == utf8.RuneError || s.sums || s.Say.Ranges.To == "" {
		return item{}, false
	}
	j += n
	if after, _ := strings.CutPrefix(s.text[j:], " "); spaced != (len(after) < len(s.text[j:])) {
		return item{}, false
	} else if spaced {
		j++
	}
	if j >= len(s.text) || !figure(rune(s.text[j])) && s.Say.money.find(s.text[j:]) == "" {
		return item{}, false
	}
	b, ok := s.item(j)
	if !ok || !b.one {
		return item{}, false
	}
	if n, end, ok := s.two(j); ok && a.day && end == b.end {
		b.said = s.day(j, n)
	}
	said, other := s.as(i, a), s.as(j, b)
	before := s.before(i)
	if and := s.Say.Ranges.Between[before]; and != "" {
		return item{said: said + " " + and + " " + other, end: b.end}, true
	}
	if s.Say.Ranges.From != "" && !s.Say.Ranges.After[before] {
		said = s.Say.Ranges.From + " " + said
	}
	return item{said: said + " " + s.Say.Ranges.To + " " + other, end: b.end}, true
}

// before returns the word before i in lower case, without signs.
func (s *sayer) before(i int) string {
	text := strings.TrimRight(s.text[:i], " ")
	word := text[strings.LastIndexFunc(text, unicode.IsSpace)+1:]
	return strings.ToLower(strings.Trim(word, ".,:;()\"'„“”«»¿¡#"))
}

// abbreviation finds an abbreviation.
func (s *sayer) abbreviation(i int) (item, bool) {
	key := s.Say.short.find(s.text[i:])
	if key == "" || s.style == AsWritten {
		return item{}, false
	}
	end := i + len(key)
	if s.Say.before(key) && !figure(firstRune(strings.TrimLeft(s.text[end:], " "))) {
		return item{}, false
	}
	said := s.Say.Short[key]
	if strings.HasSuffix(key, ".") && strings.TrimSpace(s.text[end:]) == "" {
		said += "."
	}
	return item{said: said, end: end}, true
}

// sign says a sign that stands between or before numbers.
func (s *sayer) sign(i int) (next int, ok bool) {
	r, n := utf8.DecodeRuneInString(s.text[i:])
	if figure(r) || unicode.IsLetter(r) {
		if !(r == 'x' && s.between(i, i+1)) {
			return 0, false
		}
	}
	key := string(r)
	switch r {
	case '*', 'x', '×', '·':
		key = "*"
		if !s.between(i, i+n) && r != '×' {
			if n == 1 && strings.HasPrefix(s.text[i:], "**") && s.between(i, i+2) {
				key, n = "^", 2
				break
			}
			return 0, false
		}
	case '−', '-':
		key = "-"
		follows := figure(firstRune(s.text[i+n:])) || s.Say.money.find(s.text[i+n:]) != "" && firstRune(s.text[i+n:]) != '-'
		starts := i == 0 || strings.ContainsRune(" (=,;:*", lastRune(s.text[:i]))
		if !(s.sums && s.between(i, i+n)) && !(follows && starts) {
			return 0, false
		}
	case '+':
		if figure(firstRune(s.text[i+n:])) {
			if it, ok := s.phone(i); ok {
				s.out.WriteString(s.as(i, it))
				return it.end, true
			}
		} else if !s.between(i, i+n) && !s.alone(i, n) {
			return 0, false
		}
	case '/', '÷', ':':
		if r == '÷' {
			key = "/"
		}
		if r != '÷' && !(s.sums && s.between(i, i+n)) {
			return 0, false
		}
		key = "/"
	case '=', '<', '>', '≤', '≥', '≈', '±', '√', '^', '≠':
		if (r == '<' || r == '>' || r == '^') && !s.between(i, i+n) && !s.alone(i, n) {
			return 0, false
		}
		if r == '=' && !s.alone(i, n) && !s.between(i, i+n) {
			return 0, false
		}
	case '~', '#', '№', '§':
		if !figure(firstRune(strings.TrimLeft(s.text[i+n:], " "))) {
			if r == '#' && unicode.IsLetter(firstRune(s.text[i+n:])) {
				return i + n, true // a hashtag
			}
			return 0, false
		}
		if r == '№' {
			key = "#"
		}
		if it, ok := s.code(i + n); ok && r == '#' && s.style == InWords && s.Say.Signs["#"] != "" {
			s.put(i, "#")
			s.out.WriteString(it.said)
			return it.end, true
		}
	case '&':
		if !s.alone(i, n) {
			return 0, false
		}
	case '²', '³':
		if i == 0 || !wordy(lastRune(s.text[:i])) {
			return 0, false
		}
	default:
		return 0, false
	}
	if s.Say.Signs[key] == "" || s.style == AsWritten && key != "*" && key != "/" && key != "^" {
		return 0, false
	}
	s.put(i, key)
	next = i + n
	for next < len(s.text) && s.text[next] == ' ' {
		next++
	}
	return next, true
}

// put writes the word of a sign with spaces around it.
func (s *sayer) put(i int, key string) {
	if i > 0 && s.text[i-1] != ' ' && s.text[i-1] != '(' {
		s.out.WriteByte(' ')
	}
	s.out.WriteString(s.Say.Signs[key] + " ")
}

// between reports whether what stands from i to j stands between two numbers, with as much space before as behind.
func (s *sayer) between(i, j int) bool {
	left, right := strings.TrimRight(s.text[:i], " "), strings.TrimLeft(s.text[j:], " ")
	if (len(left) == i) != (len(right) == len(s.text)-j) {
		return false
	}
	a, b := lastRune(left), firstRune(right)
	return (figure(a) || strings.ContainsRune(")%²³", a) && a != utf8.RuneError) &&
		(figure(b) || strings.ContainsRune("(-−√", b) && b != utf8.RuneError)
}

// alone reports whether n bytes at i have spaces around them.
func (s *sayer) alone(i, n int) bool {
	return i > 0 && s.text[i-1] == ' ' && i+n < len(s.text) && s.text[i+n] == ' '
}

// fill puts values into a pattern: name, value, name, value.
func fill(pattern string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		pattern = strings.Replace(pattern, pairs[i], pairs[i+1], 1)
	}
	return pattern
}
