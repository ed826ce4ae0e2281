package campaign

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"parley/internal/charset"
)

const (
	maxLine    = 64 << 10 // bytes
	maxColumns = 201
	maxCell    = 10_000 // characters, as of any variable

	// A record that line breaks in quotes spread over lines. An open quote must not swallow the list, nor must
	// looking for its end cost much.
	maxRecord = 16 << 10 // bytes
	maxLines  = 50
)

// table reads a list: a spreadsheet (XLSX), or a CSV file (RFC 4180, and what spreadsheets make of it): commas,
// semicolons, tabs or bars; UTF-8 or UTF-16, with a mark or without, or an older character set. A quote that never
// closes costs its own line, not those after it. Cells are text, whatever they look like.
type table struct {
	book   *workbook // of a spreadsheet; nil: lines are read
	lines  *bufio.Reader
	count  *counted
	again  []string   // lines that were read ahead
	ahead  [][]string // rows of a spreadsheet likewise
	comma  byte
	names  []string // of the columns, as the file has them; a name that it has twice is numbered
	header []string // what they are taken for; "": left out
	row    int      // the last one that was read; the first line after the header is 1
}

// Close removes what reading a spreadsheet has left on disk.
func (s *table) Close() {
	if s.book != nil {
		s.book.Close()
	}
}

// consumed is how many bytes of the file have been read.
func (s *table) consumed() int64 { return s.count.n }

// badRow is a row that can't be read.
type badRow struct {
	row  int
	text string
}

func (b *badRow) Error() string { return fmt.Sprintf("row %d: %s", b.row, b.text) }

// badSheet is a file that can't be read as a list at all; the text follows "The file field ".
type badSheet string

func (b badSheet) Error() string { return "the file " + string(b) }

// openSheet reads the header of a file of so many bytes. columns say what some columns are to be taken for, "" for
// nothing; the others keep their names.
func openSheet(file io.ReadSeeker, size int64, columns map[string]string) (*table, error) {
	s, err := readHeader(file, size, columns)
	if err == nil {
		err = s.name(columns)
	}
	if err != nil && s != nil {
		s.Close()
	}
	return s, err
}

// readHeader reads the names of a file's columns.
func readHeader(file io.ReadSeeker, size int64, columns map[string]string) (*table, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if head = head[:n]; err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	s := &table{count: &counted{r: file}}
	switch {
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0")):
		return nil, badSheet("is an older spreadsheet, or one with a password: save it as XLSX or CSV, without a password.")
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		if s.book, err = openWorkbook(file); err != nil {
			return nil, err
		}
		s.count.n = size
	default:
		if err := s.openLines(file, head); err != nil {
			return nil, err
		}
	}
	first, err := s.findHeader(columns)
	if err != nil {
		s.Close()
		return nil, err
	}
	for _, name := range first {
		name = strings.TrimSpace(strings.Trim(name, "\ufeff\u200b"))
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			s.Close()
			return nil, badSheet("must be UTF-8 or UTF-16 text.")
		}
		s.names = append(s.names, s.fresh(name))
	}
	return s, nil
}

// fresh is a column's name, with a number where the file has it already.
func (s *table) fresh(name string) string {
	is := name
	for n := 2; is != "" && slices.Contains(s.names, is); n++ {
		is = fmt.Sprintf("%s %d", name, n)
	}
	return is
}

// openLines prepares the lines of a CSV file, in whatever character set it is written.
func (s *table) openLines(file io.ReadSeeker, head []byte) error {
	order, wide := utf16(head)
	var older encoding.Encoding
	if !wide {
		var err error
		if _, err = file.Seek(0, io.SeekStart); err == nil {
			older, err = olderSet(bufio.NewReaderSize(file, maxLine))
		}
		if err != nil {
			return err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var text io.Reader = s.count
	switch {
	case wide:
		text = transform.NewReader(s.count, utf.UTF16(order, utf.UseBOM).NewDecoder())
	case older != nil:
		text = transform.NewReader(s.count, older.NewDecoder())
	}
	s.lines = bufio.NewReaderSize(text, maxLine)
	for { // some programs write it twice
		mark, err := s.lines.Peek(3)
		if err != nil && err != io.EOF || string(mark) != "\ufeff" {
			return ignoreEnd(err)
		}
		s.lines.Discard(3)
	}
}

func ignoreEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// maxSample is how many bytes of lines that are not UTF-8 tell their character set.
const maxSample = 64 << 10

// maxSigns is how many bytes beyond ASCII a list may have whose set nobody can tell: a sign or two.
const maxSigns = 2

// olderSet is the character set of a text, nil for UTF-8. A text in UTF-8 may have some lines that are broken: then
// others of its lines are in it. A text that may be in one set or another is refused.
func olderSet(r *bufio.Reader) (encoding.Encoding, error) {
	var line, sample []byte
	good, bad := 0, 0
	for {
		c, err := r.ReadByte()
		if err != nil && err != io.EOF {
			return nil, err
		}
		if err == nil && c != '\n' && c != '\r' {
			if len(line) < maxLine {
				line = append(line, c)
			}
			continue
		}
		switch plain := !slices.ContainsFunc(line, func(b byte) bool { return b >= 0x80 }); {
		case plain:
		case utf8.Valid(line):
			good++
		default:
			if bad++; len(sample) < maxSample {
				sample = append(append(sample, line...), '\n')
			}
		}
		if line = line[:0]; err == io.EOF {
			break
		}
	}
	if bad == 0 || good >= bad {
		return nil, nil
	}
	g := charset.Detect(sample)
	switch letters := slices.DeleteFunc(slices.Clone(sample), func(b byte) bool { return b < 0x80 }); {
	case g.Sure:
		return g.Encoding, nil
	case len(letters) <= maxSigns: // as the commonest set has them
		return charmap.Windows1252, nil
	case g.Or == "":
		return nil, badSheet("must be saved as CSV UTF-8 or XLSX: its character set can't be told.")
	}
	return nil, badSheet(fmt.Sprintf("must be saved as CSV UTF-8 or XLSX: its character set can't be told for sure (%s or %s).", g.Name, g.Or))
}

// maxBefore is how many rows may stand above a header: titles, dates.
const maxBefore = 10

// findHeader reads the cells of a file's header, and leaves the rows after it to be read. It is the first row that names
// a column of phone numbers; else the first row, or the second where the first is a title.
func (s *table) findHeader(columns map[string]string) ([]string, error) {
	var rows []headRow
	at := -1
	for at < 0 && len(rows) < maxBefore {
		row, err := s.headRow()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if rows = append(rows, row); row.named(columns) {
			at = len(rows) - 1
		}
	}
	filled := slices.DeleteFunc(indexesOf(rows), func(i int) bool { return rows[i].filled() == 0 })
	switch {
	case len(filled) == 0:
		return nil, badSheet("must not be empty.")
	case at >= 0:
	case len(filled) > 1 && rows[filled[0]].filled() == 1 && rows[filled[1]].filled() > 1 && !rows[filled[1]].numbers():
		at = filled[1]
	default:
		at = filled[0]
	}
	for _, row := range rows[at+1:] {
		if s.book != nil {
			s.ahead = append(s.ahead, row.cells)
		} else {
			s.again = append(s.again, row.line)
		}
	}
	s.comma = rows[at].comma
	switch head := rows[at]; {
	case head.torn:
		return nil, badSheet("must have a header whose quotes are closed.")
	case len(head.cells) > maxColumns:
		return nil, badSheet(fmt.Sprintf("must not have more than %d columns.", maxColumns))
	default:
		return head.cells, nil
	}
}

func indexesOf(rows []headRow) (list []int) {
	for i := range rows {
		list = append(list, i)
	}
	return list
}

// headRow is a row that may be a header.
type headRow struct {
	cells []string
	line  string // of a CSV file
	comma byte
	torn  bool // its quotes are not closed
}

// headRow reads a row that may be a header.
func (s *table) headRow() (headRow, error) {
	if s.book != nil {
		cells, err := s.book.next()
		return headRow{cells: cells}, err
	}
	line, err := s.line()
	if err != nil {
		return headRow{}, err
	}
	if sep, ok := strings.CutPrefix(line, "sep="); ok && len(sep) == 1 && s.comma == 0 { // a spreadsheet's own hint
		s.comma = sep[0]
		return s.headRow()
	}
	row := headRow{line: line, comma: s.comma}
	if row.comma == 0 {
		row.comma = comma(line)
	}
	p := parser{comma: row.comma}
	row.torn = p.feed(line) != whole
	row.cells = p.cells
	return row, nil
}

// filled is how many cells hold something.
func (r *headRow) filled() (n int) {
	for _, c := range r.cells {
		if strings.TrimSpace(c) != "" {
			n++
		}
	}
	if n == 0 && r.torn {
		return 1
	}
	return n
}

// numbers says whether a cell holds what may be a phone number, as no header's does.
func (r *headRow) numbers() bool {
	return slices.ContainsFunc(r.cells, func(c string) bool {
		digits := 0
		for _, b := range []byte(c) {
			if b >= '0' && b <= '9' {
				digits++
			}
		}
		return digits >= 6
	})
}

// named says whether a row is a header that names a column of phone numbers.
func (r *headRow) named(columns map[string]string) bool {
	return !r.torn && !r.numbers() && slices.ContainsFunc(r.cells, func(c string) bool {
		c = strings.TrimSpace(strings.Trim(c, "\ufeff\u200b"))
		return usual(c) == phoneColumn || columns[c] == phoneColumn
	})
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

// name says what the columns are taken for; those without a name are left out. Of several that are called as a column of
// phone numbers, phone_number itself or else the first is one, and the others are variables of their names.
func (s *table) name(columns map[string]string) error {
	phone, _ := s.phone(columns)
	for i, own := range s.names {
		name, ok := columns[own]
		if !ok {
			if name = usual(own); name == phoneColumn && i != phone && !mapped(columns) {
				name = own
			}
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

// phone is the column that is taken for the phone number where nothing is said.
func (s *table) phone(columns map[string]string) (at int, ok bool) {
	at = -1
	for i, name := range s.names {
		if _, said := columns[name]; said || usual(name) != phoneColumn {
			continue
		}
		if at < 0 || plainName(name) == phoneColumn && plainName(s.names[at]) != phoneColumn {
			at = i
		}
	}
	return at, at >= 0
}

// mapped says whether a column is said to hold the phone number.
func mapped(columns map[string]string) bool {
	for _, as := range columns {
		if as == phoneColumn {
			return true
		}
	}
	return false
}

// maxEmpty is how many empty rows are passed over at a time.
const maxEmpty = 10_000

// next is the next row: its cells by the header, at least one of which is not empty; nil after maxEmpty empty rows. The error is
// io.EOF at the end, a badRow where it can't be read and the reading goes on; the cells are then as far as they are known.
func (s *table) next(ctx context.Context) ([]string, error) {
	for range maxEmpty {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cells, err := s.read()
		if err == io.EOF {
			return nil, err
		}
		if err != nil {
			return cells, err
		}
		if !slices.ContainsFunc(cells, func(c string) bool { return c != "" }) {
			continue // a line of separators, as spreadsheets leave them at the end
		}
		return cells, s.check(cells)
	}
	return nil, nil
}

// read is the next row, also an empty one.
func (s *table) read() ([]string, error) {
	if s.book != nil {
		if s.row++; len(s.ahead) > 0 {
			cells := s.ahead[0]
			s.ahead = s.ahead[1:]
			return cells, nil
		}
		return s.book.next()
	}
	line, err := s.line()
	if err == io.EOF {
		return nil, err
	}
	s.row++
	if err != nil || strings.TrimSpace(line) == "" {
		return nil, err
	}
	cells, err := s.record(line)
	if err != nil {
		return []string{line}, err
	}
	return cells, nil
}

// record takes apart the record that begins with a line.
func (s *table) record(line string) ([]string, error) {
	p := parser{comma: s.comma}
	state, size := p.feed(line), len(line)
	var ahead []string
	for state == unclosed && len(ahead) < maxLines && size < maxRecord {
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
		case strings.ContainsRune(c, 0):
			return &badRow{s.row, "There is a null character: save the file anew as CSV UTF-8."}
		case !utf8.ValidString(c) || strings.ContainsRune(c, utf8.RuneError):
			return &badRow{s.row, "There are characters that are not UTF-8: save the file as CSV UTF-8."}
		case len(c) > maxCell && utf8.RuneCountInString(c) > maxCell:
			return &badRow{s.row, fmt.Sprintf("A cell has more than %d characters.", maxCell)}
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
		if long = long || len(b) >= maxLine; !long {
			b = append(b, c)
		}
	}
	if long {
		return "", &badRow{s.row + 1, fmt.Sprintf("The line is longer than %d KiB.", maxLine>>10)}
	}
	return string(b), nil
}
