package campaign

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	longestLine = 64 << 10 // bytes
	mostColumns = 201
	longestCell = 10_000 // characters, as of any variable

	// A record that line breaks in quotes spread over lines. An open quote must not swallow the list, nor must
	// looking for its end cost much.
	longestRecord = 16 << 10 // bytes
	mostLines     = 50
)

// table reads a CSV file (RFC 4180, and what spreadsheets make of it): commas, semicolons, tabs or bars; UTF-8 or
// UTF-16, with a mark or without. A quote that never closes costs its own line, not those after it. Cells are text,
// whatever they look like.
type table struct {
	lines  *bufio.Reader
	again  []string // lines that were read ahead
	comma  byte
	names  []string // of the columns, as the file has them
	header []string // what they are taken for; "": left out
	row    int      // the last one that was read; the first line after the header is 1
}

// badRow is a row that can't be read.
type badRow struct {
	row  int
	text string
}

func (b *badRow) Error() string { return fmt.Sprintf("row %d: %s", b.row, b.text) }

// badSheet is a file that can't be read as a list at all; the text follows "The file field ".
type badSheet string

func (b badSheet) Error() string { return "the file " + string(b) }

// openSheet reads a file's header. columns say what some columns are to be taken for, "" for nothing; the others keep
// their names.
func openSheet(r io.Reader, columns map[string]string) (*table, error) {
	s, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	return s, s.name(columns)
}

// readHeader reads the names of a file's columns.
func readHeader(r io.Reader) (*table, error) {
	raw := bufio.NewReaderSize(r, longestLine)
	head, err := raw.Peek(512)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0")):
		return nil, badSheet("is a spreadsheet or an archive: save it as CSV.")
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		raw.Discard(3)
	}
	s := &table{lines: raw}
	if order, ok := utf16(head); ok {
		s.lines = bufio.NewReaderSize(transform.NewReader(raw, utf.UTF16(order, utf.UseBOM).NewDecoder()),
			longestLine)
	}
	line := ""
	for strings.TrimSpace(line) == "" {
		if line, err = s.line(); err == io.EOF {
			return nil, badSheet("must not be empty.")
		} else if err != nil {
			return nil, err
		}
	}
	if sep, ok := strings.CutPrefix(line, "sep="); ok && len(sep) == 1 { // a spreadsheet's own hint
		if line, err = s.line(); err != nil {
			return nil, badSheet("must not be empty.")
		}
		s.comma = sep[0]
	} else {
		s.comma = comma(line)
	}
	p := parser{comma: s.comma}
	if p.feed(line) != whole {
		return nil, badSheet("must have a header whose quotes are closed.")
	}
	cells := p.cells
	if len(cells) > mostColumns {
		return nil, badSheet(fmt.Sprintf("must not have more than %d columns.", mostColumns))
	}
	for _, name := range cells {
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return nil, badSheet("must be UTF-8 or UTF-16 text.")
		}
		s.names = append(s.names, strings.TrimSpace(name))
	}
	return s, nil
}

// Columns are the names of a list's columns, as the file has them, without those that have none.
func Columns(file io.Reader) ([]string, error) {
	s, err := readHeader(file)
	var bad badSheet
	var row *badRow
	switch {
	case errors.As(err, &bad), errors.As(err, &row): // the import says it
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the list: %w", err)
	}
	return slices.DeleteFunc(s.names, func(name string) bool { return name == "" || name == rowColumn || name == whyColumn }), nil
}

// usual is what a column of that name is taken for where nothing else is said.
func usual(name string) string {
	if name == rowColumn || name == whyColumn { // of rows that were left out before
		return ""
	}
	plain := strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(name))
	if plain == phoneColumn || plain == "phone" {
		return phoneColumn
	}
	return name
}

// Suggest is what a column would best be taken for, among an assistant's variables: the one of the same name, but for
// spaces, signs and upper case.
func Suggest(column string, variables []string) string {
	if as := usual(column); as == phoneColumn || slices.Contains(variables, as) {
		return as
	}
	plain := func(name string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, name)
	}
	for _, name := range variables {
		if plain(name) == plain(column) && plain(name) != "" {
			return name
		}
	}
	return usual(column)
}

// utf16 says whether a file is of two bytes a character: by its mark, or by zeros where ASCII has its upper byte.
func utf16(head []byte) (utf.Endianness, bool) {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return utf.LittleEndian, true
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return utf.BigEndian, true
	}
	var zeros [2]int
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	switch n := len(head) / 2; {
	case n > 0 && zeros[1] > n/2 && zeros[0] == 0:
		return utf.LittleEndian, true
	case n > 0 && zeros[0] > n/2 && zeros[1] == 0:
		return utf.BigEndian, true
	}
	return utf.BigEndian, false
}

// comma is what parts the cells of a header: what stands in it most often, outside of quotes.
func comma(line string) byte {
	var count [256]int
	quoted := false
	for i := range len(line) {
		if line[i] == '"' {
			quoted = !quoted
		} else if !quoted {
			count[line[i]]++
		}
	}
	best := byte(',')
	for _, c := range []byte(";\t|") {
		if count[c] > count[best] {
			best = c
		}
	}
	return best
}

// phoneColumn is the one column that must be there.
const phoneColumn = "phone_number"

// name says what the columns are taken for; those without a name are left out.
func (s *table) name(columns map[string]string) error {
	for _, own := range s.names {
		name, ok := columns[own]
		if !ok {
			name = usual(own)
		}
		switch {
		case utf8.RuneCountInString(name) > 255:
			return badSheet("must not have column names of more than 255 characters.")
		case name != "" && slices.Contains(s.header, name):
			return badSheet(fmt.Sprintf("must not have the column %s twice.", name))
		}
		s.header = append(s.header, name)
	}
	if !slices.Contains(s.header, phoneColumn) {
		found := strings.Join(s.names, ", ")
		if len(found) > 200 {
			found = strings.ToValidUTF8(found[:200], "") + "..."
		}
		return badSheet("must have a phone_number column. Its columns are: " + found)
	}
	return nil
}

// next is the next row: its cells by the header, at least one of which is not empty. The error is io.EOF at the end,
// a badRow where it can't be read and the reading goes on; the cells are then as far as they are known.
func (s *table) next() ([]string, error) {
	for {
		line, err := s.line()
		if err == io.EOF {
			return nil, err
		}
		s.row++
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells, err := s.record(line)
		if err != nil {
			return []string{line}, err
		}
		if !slices.ContainsFunc(cells, func(c string) bool { return c != "" }) {
			continue // a line of separators, as spreadsheets leave them at the end
		}
		return cells, s.check(cells)
	}
}

// record takes apart the record that begins with a line.
func (s *table) record(line string) ([]string, error) {
	p := parser{comma: s.comma}
	state, size := p.feed(line), len(line)
	var ahead []string
	for state == unclosed && len(ahead) < mostLines && size < longestRecord {
		more, err := s.line()
		if err != nil {
			break
		}
		ahead = append(ahead, more)
		state, size = p.feed(more), size+len(more)
	}
	switch state {
	case unclosed:
		s.again = append(ahead, s.again...)
		return nil, &badRow{s.row, "A quote is opened and never closed."}
	case torn:
		s.again = append(ahead, s.again...)
		return nil, &badRow{s.row, "A quoted text is followed by something other than a separator: write a quote in a text twice."}
	}
	for i := range p.cells {
		p.cells[i] = strings.TrimSpace(p.cells[i])
	}
	return p.cells, nil
}

// check looks at the cells of a row.
func (s *table) check(cells []string) error {
	for i, c := range cells {
		switch {
		case i >= len(s.header) && c != "":
			return &badRow{s.row, "There are more cells than columns in the header."}
		case !utf8.ValidString(c) || strings.ContainsRune(c, utf8.RuneError) || strings.ContainsRune(c, 0):
			return &badRow{s.row, "There are characters that are not UTF-8: save the file as CSV UTF-8."}
		case len(c) > longestCell && utf8.RuneCountInString(c) > longestCell:
			return &badRow{s.row, fmt.Sprintf("A cell has more than %d characters.", longestCell)}
		}
	}
	return nil
}

// line is the next line without its end, which is LF, CRLF or CR. One that is too long is a badRow.
func (s *table) line() (string, error) {
	if len(s.again) > 0 {
		line := s.again[0]
		s.again = s.again[1:]
		return line, nil
	}
	var b []byte
	long := false
	for {
		c, err := s.lines.ReadByte()
		if err == io.EOF && (len(b) > 0 || long) {
			break
		}
		if err != nil {
			return "", err
		}
		if c == '\r' {
			if next, err := s.lines.Peek(1); err == nil && next[0] == '\n' {
				s.lines.Discard(1)
			}
			break
		}
		if c == '\n' {
			break
		}
		if long = long || len(b) >= longestLine; !long {
			b = append(b, c)
		}
	}
	if long {
		return "", &badRow{s.row + 1, fmt.Sprintf("The line is longer than %d KiB.", longestLine>>10)}
	}
	return string(b), nil
}

// state is how the text of a record stands.
type state int

const (
	whole    state = iota
	unclosed       // a quote is not closed
	torn           // something stands between a closed quote and the next separator
)

// parser takes a record apart, line by line. A cell is quoted when a quote is the first of it but for spaces; quotes
// elsewhere are text.
type parser struct {
	comma  byte
	cells  []string
	quoted bool // a quote is open, of the cell in text
	text   strings.Builder
}

// feed takes the record's next line.
func (p *parser) feed(line string) state {
	if p.quoted {
		p.text.WriteByte('\n')
	}
	for {
		if !p.quoted {
			start := strings.TrimLeft(line, " ")
			if !strings.HasPrefix(start, `"`) {
				cell, rest, more := strings.Cut(line, string(p.comma))
				p.cells = append(p.cells, cell)
				if !more {
					return whole
				}
				line = rest
				continue
			}
			p.quoted, line = true, start[1:]
		}
		text, rest, closed := strings.Cut(line, `"`)
		p.text.WriteString(text)
		if !closed {
			return unclosed
		}
		if strings.HasPrefix(rest, `"`) {
			p.text.WriteByte('"')
			line = rest[1:]
			continue
		}
		p.cells = append(p.cells, p.text.String())
		p.quoted = false
		p.text.Reset()
		if rest = strings.TrimLeft(rest, " "); rest == "" {
			return whole
		}
		if rest[0] != p.comma {
			return torn
		}
		line = rest[1:]
	}
}
