package document

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The sizes that ingest cuts with, in characters: some 300 tokens, of which a dozen passages fit into a prompt.
const (
	ChunkSize    = 1200
	ChunkOverlap = 150
)

// Chunk is a passage: what is found, shown to a model, and cited.
type Chunk struct {
	Heading string // the headings above it, joined by " > "
	Page    int    // where it begins
	URL     string
	Text    string
}

// Split cuts sections into passages of at most size characters. It cuts between paragraphs where it can, else between
// sentences or a table's rows, and inside a sentence only when that alone is longer than size; never inside a
// character. A passage begins with the last sentences of the one before it, up to overlap characters, and a piece of
// a table with the table's first row. Sections with the same heading and address go on as one, also over pages. The
// same sections give the same passages.
func Split(sections []Section, size, overlap int) []Chunk {
	size = max(size, 1)
	overlap = max(0, min(overlap, size/2))
	var out []Chunk
	for i := 0; i < len(sections); {
		j := i + 1
		for j < len(sections) && sections[j].URL == sections[i].URL &&
			slices.Equal(sections[j].Heading, sections[i].Heading) {
			j++
		}
		c := cutter{size: size, overlap: overlap}
		for _, s := range sections[i:j] {
			c.section(s)
		}
		out = append(out, c.cut(Chunk{Heading: strings.Join(sections[i].Heading, " > "), URL: sections[i].URL})...)
		i = j
	}
	return out
}

// unit is what is not cut: a sentence, a row, or a piece of one that is too long.
type unit struct {
	text  string
	glue  string // what parts it from the unit before
	count int    // characters
	page  int
	table int // where the first row of its table is among the units, plus one; 0 for no row
}

// cutter looks at each character a fixed number of times, whatever the text: no step begins again at what an earlier
// one has passed.
type cutter struct {
	size, overlap int
	units         []unit
}

// section adds the units of a section. A paragraph that a page's end cuts in two is one again.
func (c *cutter) section(s Section) {
	first := true
	for block := range strings.SplitSeq(s.Text, "\n\n") {
		if block = strings.Trim(block, "\n"); strings.TrimSpace(block) == "" {
			continue
		}
		glue := "\n\n"
		if first && len(c.units) > 0 && c.units[len(c.units)-1].page != s.Page &&
			goesOn(c.units[len(c.units)-1].text, block) {
			glue = " "
		}
		first = false
		if isTable(block) {
			table := len(c.units) + 1
			for row := range strings.SplitSeq(block, "\n") {
				c.add(row, glue, s.Page, table)
				glue = "\n"
			}
			continue
		}
		for len(block) > 0 {
			n := sentence(block)
			text := strings.TrimRightFunc(block[:n], unicode.IsSpace)
			c.add(text, glue, s.Page, 0)
			glue = " "
			if rest := block[len(text):]; strings.HasPrefix(rest, "\n") {
				glue = "\n"
			}
			block = strings.TrimLeftFunc(block[n:], unicode.IsSpace)
		}
	}
}

// goesOn says whether b is the rest of a sentence.
func goesOn(a, b string) bool {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return (unicode.IsLower(last) || last == ',' || last == '-') && unicode.IsLower(first)
}

// isTable says whether most lines of a block are rows.
func isTable(block string) bool {
	rows := strings.Count(block, " | ")
	return rows > 0 && 2*rows > strings.Count(block, "\n")
}

// add appends a unit, cut into pieces when it is longer than a passage.
func (c *cutter) add(text, glue string, page, table int) {
	for text != "" {
		if n, all := characters(text, c.size); all {
			c.units = append(c.units, unit{text, glue, n, page, table})
			return
		}
		at, tight := breakAt(text, c.size)
		piece := strings.TrimRightFunc(text[:at], unicode.IsSpace)
		if piece != "" {
			c.units = append(c.units, unit{piece, glue, utf8.RuneCountInString(piece), page, table})
		}
		text, glue = strings.TrimLeftFunc(text[at:], unicode.IsSpace), " "
		if tight {
			glue = ""
		}
	}
}

// characters counts the characters of s up to most; all says that there are no more.
func characters(s string, most int) (n int, all bool) {
	if len(s) <= most {
		return utf8.RuneCountInString(s), true
	}
	for range s {
		if n == most {
			return n, false
		}
		n++
	}
	return n, true
}

// breakAt is the best byte offset to break a text behind at most n characters: at white space in the second half,
// else anywhere, which is tight.
func breakAt(s string, n int) (at int, tight bool) {
	k, space := 0, -1
	for i, r := range s {
		if k == n {
			at = i
			break
		}
		if k > n/2 && unicode.IsSpace(r) {
			space = i
		}
		k++
	}
	if r, _ := utf8.DecodeRuneInString(s[at:]); unicode.IsSpace(r) {
		return at, false
	}
	if space > 0 {
		return space, false
	}
	return at, true
}

// cut packs units into passages.
func (c *cutter) cut(source Chunk) []Chunk {
	var out []Chunk
	for i := 0; i < len(c.units); {
		head, from := c.carry(i, len(out) > 0)
		total := c.length(head, from, i)
		j := i
		for j < len(c.units) && (j == i || total+glueLen(c.units[j])+c.units[j].count <= c.size) {
			if j > i || total > 0 {
				total += glueLen(c.units[j])
			}
			total += c.units[j].count
			j++
		}
		j = c.paragraphEnd(i, j)
		chunk := source
		chunk.Page = c.units[i].page
		var b strings.Builder
		if head >= 0 {
			b.WriteString(c.units[head].text)
			b.WriteByte('\n')
		}
		for k := from; k < j; k++ {
			if k > from {
				b.WriteString(c.units[k].glue)
			}
			b.WriteString(c.units[k].text)
		}
		chunk.Text = b.String()
		out = append(out, chunk)
		i = j
	}
	return out
}

// glueLen counts characters; glue is ASCII.
func glueLen(u unit) int { return len(u.glue) }

// carry is what a passage that begins with unit i repeats: the first row of a table (its index, else -1), or the units
// from an earlier one on. The repetition leaves room for unit i.
func (c *cutter) carry(i int, again bool) (head, from int) {
	if !again {
		return -1, i
	}
	if t := c.units[i].table; t > 0 {
		if first := t - 1; first < i && c.units[first].count+1+c.units[i].count <= c.size {
			return first, i
		}
		return -1, i
	}
	room := min(c.overlap, c.size-c.units[i].count)
	for from = i; from > 0; from-- {
		u := c.units[from-1]
		room -= u.count + glueLen(c.units[from])
		if room < 0 || u.table > 0 || c.units[from].glue == "" {
			break
		}
	}
	return -1, from
}

// length is how long what is carried is.
func (c *cutter) length(head, from, i int) (n int) {
	if head >= 0 {
		return c.units[head].count
	}
	for k := from; k < i; k++ {
		if k > from {
			n += glueLen(c.units[k])
		}
		n += c.units[k].count
	}
	return n
}

// paragraphEnd moves a passage's end back to that of a paragraph when the passage stays more than half full.
func (c *cutter) paragraphEnd(i, j int) int {
	if j == len(c.units) || c.units[j].glue == "\n\n" {
		return j
	}
	n := 0
	for k := i; k < j; k++ {
		n += c.units[k].count
	}
	for k := j - 1; k > i; k-- {
		if n -= c.units[k].count; 2*n < c.size {
			break
		}
		if c.units[k].glue == "\n\n" {
			return k
		}
	}
	return j
}

// sentence is the length in bytes of the first sentence of s, with the white space behind it.
func sentence(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.' || c == '!' || c == '?':
			n, end := stop(s, i)
			if n > 0 {
				return n
			}
			i = end - 1 // the marks that follow this one end no sentence either
		case c == '\n': // a list's item, a verse, an address
			if n := i + 1; n < len(s) && item(s[n:]) {
				return n
			}
		case c == 0xe3 || c == 0xef: // 。！？
			if p := s[i:min(i+3, len(s))]; p == "。" || p == "！" || p == "？" {
				return i + 3
			}
		case c == 0xe2 && strings.HasPrefix(s[i:], "…"):
			if n, _ := stop(s, i+2); n > 0 {
				return n
			}
		}
	}
	return len(s)
}

// stop says where a sentence ends that may end with the byte at i, 0 when it does not; and where the run of marks
// ends that begins at i.
func stop(s string, i int) (n, end int) {
	end = i + 1
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if !strings.ContainsRune(`.!?)]}"'”’»`, r) {
			break
		}
		end += n
	}
	next := end
	for next < len(s) && (s[next] == ' ' || s[next] == '\n' || s[next] == '\t') {
		next++
	}
	if next == len(s) {
		return next, end
	}
	if next == end { // "3.14", "example.com"
		return 0, end
	}
	r, _ := utf8.DecodeRuneInString(s[next:])
	if unicode.IsLower(r) || s[i] == '.' && end == i+1 && abbreviated(s[:i]) {
		return 0, end
	}
	return next, end
}

// abbreviations that names and numbers follow, in the languages that the catalog speaks most.
var abbreviations = map[string]bool{"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true,
	"no": true, "nr": true, "vs": true, "fig": true, "vol": true,
	"art": true, "sec": true, "ch": true, "pp": true, "cf": true, "ca": true, "approx": true, "e.g": true,
	"i.e": true, "z.b": true, "bzw": true, "str": true, "abs": true, "al": true}

// abbreviated says whether the word at the end of s wants a full stop without ending the sentence.
func abbreviated(s string) bool {
	start := strings.LastIndexAny(s[max(0, len(s)-12):], " \n\t([")
	word := s[max(0, len(s)-12)+start+1:]
	if len(word) == 1 && (word[0] >= 'A' && word[0] <= 'Z') { // J. Smith
		return true
	}
	return len(word) < 8 && abbreviations[strings.ToLower(word)]
}

// item says whether a line begins as a list's item does.
func item(s string) bool {
	if strings.HasPrefix(s, "- ") || strings.HasPrefix(s, "* ") || strings.HasPrefix(s, "• ") {
		return true
	}
	n := 0
	for n < len(s) && n < 4 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n > 0 && n+1 < len(s) && (s[n] == '.' || s[n] == ')') && s[n+1] == ' '
}
