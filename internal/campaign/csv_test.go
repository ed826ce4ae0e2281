package campaign

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// readAll reads a file: its rows by number, and what is wrong with the other rows or with the whole file.
func readAll(r io.ReadSeeker) (header []string, rows map[int][]string, bad map[int]string, err error) {
	s, err := openSheet(r, 0, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	defer s.Close()
	rows, bad = map[int][]string{}, map[int]string{}
	for {
		cells, err := s.next(context.Background())
		var b *badRow
		switch {
		case err == io.EOF:
			return s.header, rows, bad, nil
		case errors.As(err, &b):
			bad[b.row] = b.text
		case err != nil:
			return nil, nil, nil, err
		case cells != nil:
			rows[s.row] = cells
		}
	}
}

func TestSheet(t *testing.T) {
	utf16 := func(e unicode.Endianness, p unicode.BOMPolicy, text string) string {
		b, err := unicode.UTF16(e, p).NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const quote, long = "A quote is opened and never closed.", "The line is longer than 64 KiB."
	const torn = "A quoted text is followed by something other than a separator: write a quote in a text twice."
	const plain = "phone_number,name\n+1,Ána\n+2,Bo\n"
	two := map[int][]string{1: {"+1", "Ána"}, 2: {"+2", "Bo"}}
	for name, c := range map[string]struct {
		file   string
		header []string
		rows   map[int][]string
		bad    map[int]string
	}{
		"commas":               {plain, nil, two, nil},
		"no last line end":     {strings.TrimSpace(plain), nil, two, nil},
		"CRLF":                 {strings.ReplaceAll(plain, "\n", "\r\n"), nil, two, nil},
		"CR":                   {strings.ReplaceAll(plain, "\n", "\r"), nil, two, nil},
		"UTF-8 with a mark":    {"\xef\xbb\xbf" + plain, nil, two, nil},
		"UTF-16 little":        {utf16(unicode.LittleEndian, unicode.UseBOM, plain), nil, two, nil},
		"UTF-16 big":           {utf16(unicode.BigEndian, unicode.UseBOM, plain), nil, two, nil},
		"UTF-16 without mark":  {utf16(unicode.LittleEndian, unicode.IgnoreBOM, plain), nil, two, nil},
		"UTF-16 big, no mark":  {utf16(unicode.BigEndian, unicode.IgnoreBOM, plain), nil, two, nil},
		"semicolons":           {strings.ReplaceAll(plain, ",", ";"), nil, two, nil},
		"tabs":                 {strings.ReplaceAll(plain, ",", "\t"), nil, two, nil},
		"bars":                 {strings.ReplaceAll(plain, ",", "|"), nil, two, nil},
		"a spreadsheet's hint": {"sep=;\n" + strings.ReplaceAll(plain, ",", ";"), nil, two, nil},
		"a comma in a quote of a header with semicolons": {"phone_number;\"a,b,c\"\n+1;x\n",
			[]string{"phone_number", "a,b,c"}, map[int][]string{1: {"+1", "x"}}, nil},
		"blank lines count": {"\n\nphone_number,name\n\n+1,Ána\n\n", nil,
			map[int][]string{2: {"+1", "Ána"}}, nil},
		"empty rows count": {"phone_number,name\n,\n+1,Ána\n,,,\n", nil,
			map[int][]string{2: {"+1", "Ána"}}, nil},
		"spaces": {" Phone Number , name \n +1 , Ána \n", nil,
			map[int][]string{1: {"+1", "Ána"}}, nil},
		"other names": {"PHONE,name\n+1,x\n", nil, map[int][]string{1: {"+1", "x"}}, nil},
		"fewer cells": {"phone_number,name\n+1\n", nil, map[int][]string{1: {"+1"}}, nil},
		"empty cells at the end": {"phone_number,name\n+1,x,,\n", nil, map[int][]string{1: {"+1", "x", "", ""}},
			nil},
		"more cells": {"phone_number,name\n+1,x,y\n+2,z\n", nil, map[int][]string{2: {"+2", "z"}},
			map[int]string{1: "There are more cells than columns in the header."}},
		"quotes": {"phone_number,name\n\"+1\", \"a \"\"b\"\", c\" \n", nil,
			map[int][]string{1: {"+1", `a "b", c`}}, nil},
		"a quote in a text": {"phone_number,name\n+1,5\" pipe\n", nil,
			map[int][]string{1: {"+1", `5" pipe`}}, nil},
		"a quoted line break": {"phone_number,name\n+1,\"a\nb\"\n+2,c\n", nil,
			map[int][]string{1: {"+1", "a\nb"}, 2: {"+2", "c"}}, nil},
		"formulas are text": {"phone_number,name\n+1,=HYPERLINK(\"http://x\")\n+2,@SUM(A1)\n+3,-1+1\n", nil,
			map[int][]string{1: {"+1", `=HYPERLINK("http://x")`}, 2: {"+2", "@SUM(A1)"}, 3: {"+3", "-1+1"}}, nil},
		"a quote that never closes": {"phone_number,name\n+1,\"a\n+2,b\n+3,c\n", nil,
			map[int][]string{2: {"+2", "b"}, 3: {"+3", "c"}}, map[int]string{1: quote}},
		"and one after it": {"phone_number,name\n+1,\"a\n+2,\"b\"\n+3,\"c\n+4,d\n", nil,
			map[int][]string{2: {"+2", "b"}, 4: {"+4", "d"}}, map[int]string{1: torn, 3: quote}},
		"behind a quote": {"phone_number,name\n+1,\"a\"b\n+2,c\n", nil, map[int][]string{2: {"+2", "c"}},
			map[int]string{1: torn}},
		"a line without end": {"phone_number,name\n+1," + strings.Repeat("x", maxLine) + "\n+2,c\n", nil,
			map[int][]string{2: {"+2", "c"}}, map[int]string{1: long}},
		"a cell too long": {"phone_number,name\n+1," + strings.Repeat("é", maxCell+1) + "\n+2," +
			strings.Repeat("é", maxCell) + "\n", nil,
			map[int][]string{2: {"+2", strings.Repeat("é", maxCell)}},
			map[int]string{1: "A cell has more than 10000 characters."}},
		"another encoding": {"phone_number,name\n+1,\xc1na\n+2,Bo\n", nil, two, nil},
		"a broken line of UTF-8": {"phone_number,name\n+1,Ána\n+2,B\xf6\n", nil,
			map[int][]string{1: {"+1", "Ána"}}, map[int]string{
				2: "There are characters that are not UTF-8: save the file as CSV UTF-8."}},
		"a mark twice":        {"\xef\xbb\xbf\xef\xbb\xbf" + plain, nil, two, nil},
		"a mark in quotes":    {"\xef\xbb\xbf\"\ufeffphone_number\",name\n+1,Ána\n+2,Bo\n", nil, two, nil},
		"a title":             {"Leads of March\n" + plain, nil, two, nil},
		"a title with commas": {"Leads of March,\n,\n" + plain, nil, two, nil},
		"a date and a title":  {"2026-03-01\n\nLeads, all of them\n" + plain, nil, two, nil},
		"several numbers": {"Phone,Phone,phone_number\n+3,+4,+1\n", []string{"Phone", "Phone 2", "phone_number"},
			map[int][]string{1: {"+3", "+4", "+1"}}, nil},
		"a name twice": {"phone_number,a,a,a\n+1,x,y,z\n", []string{"phone_number", "a", "a 2", "a 3"},
			map[int][]string{1: {"+1", "x", "y", "z"}}, nil},
		"a null": {"phone_number,name\n+1,a\x00b\n+2,c\n", nil, map[int][]string{2: {"+2", "c"}},
			map[int]string{1: "There is a null character: save the file anew as CSV UTF-8."}},
		"nameless columns": {"phone_number,,name\n+1,x,y\n", []string{"phone_number", "", "name"},
			map[int][]string{1: {"+1", "x", "y"}}, nil},
		"no rows": {"phone_number\n", []string{"phone_number"}, map[int][]string{}, nil},
	} {
		header, rows, bad, err := readAll(strings.NewReader(c.file))
		if c.header == nil {
			c.header = []string{"phone_number", "name"}
		}
		if c.bad == nil {
			c.bad = map[int]string{}
		}
		if err != nil || !reflect.DeepEqual(header, c.header) || !reflect.DeepEqual(rows, c.rows) ||
			!reflect.DeepEqual(bad, c.bad) {
			t.Errorf("%s: header %q rows %.300q bad %v: %v", name, header, fmt.Sprint(rows), bad, err)
		}
	}
}

func TestNoSheet(t *testing.T) {
	for file, want := range map[string]string{
		"":                     "must not be empty.",
		"\n \n":                "must not be empty.",
		"sep=;":                "must not be empty.",
		"name,age\nx,1\n":      "must have a phone_number column. Its columns are: name, age",
		"+14155550100\n":       "must have a phone_number column. Its columns are: +14155550100",
		"phone_number,\"a\n":   "must have a header whose quotes are closed.",
		"PK\x03\x04rest":       "is an archive or a damaged spreadsheet: open it in your spreadsheet program and save it as XLSX or CSV.",
		"\xd0\xcf\x11\xe0rest": "is an older spreadsheet, or one with a password: save it as XLSX or CSV, without a password.",
		"phone_number,a\x00\n": "must be UTF-8 or UTF-16 text.",
		"phone_number,name\n+1,\xbd\xbe\xbf\n": "must be saved as CSV UTF-8 or XLSX: " +
			"its character set can't be told for sure (ISO-8859-5 or windows-1253).",
		"phone_number" + strings.Repeat(",a", 201): "must not have more than 201 columns.",
	} {
		_, _, _, err := readAll(strings.NewReader(file))
		var bad badSheet
		if !errors.As(err, &bad) || string(bad) != want {
			t.Errorf("%.40q: %v, want %s", file, err, want)
		}
	}
	broken := errors.New("the line is down")
	if _, _, _, err := readAll(failing{strings.NewReader("phone_number\n+1\n"), broken}); !errors.Is(err, broken) {
		t.Errorf("a file that can't be read: %v", err)
	}
}

// failing is a file that can be read up to a point.
type failing struct {
	*strings.Reader
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

// A list in which every quote stays open is read in linear, not quadratic, time: quadratic time would be minutes.
func TestOpenQuotesStayCheap(t *testing.T) {
	for _, line := range []string{"+1,\"x", "+1,\"" + strings.Repeat(`""`, 150), `x","y`, "+1,\"" +
		strings.Repeat("x", 300)} {
		file := "phone_number,name\n" + strings.Repeat(line+"\n", 5_000)
		began := time.Now()
		_, rows, bad, err := readAll(strings.NewReader(file))
		if took := time.Since(began); err != nil || len(rows)+len(bad) == 0 || took > 10*time.Second {
			t.Errorf("%.20q: %d rows, %d bad in %s: %v", line, len(rows), len(bad), took, err)
		}
	}
}

// A file that Go's own reader accepts is read in the same way.
func FuzzSheet(f *testing.F) {
	for _, seed := range []string{"phone_number,name\n+1,x\n", "phone_number;a\n\"x\";\"y\"\"z\"\n",
		"phone_number\t\"a\nb\"\n1\t2\n", "\xff\xfep\x00h\x00o\x00n\x00e\x00\n\x00", "phone,b\n\"a\n\n,\"\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		header, rows, bad, err := readAll(bytes.NewReader(file))
		if err != nil {
			return
		}
		lines := bytes.Count(file, []byte("\n")) + bytes.Count(file, []byte("\r"))
		if len(rows)+len(bad) > lines {
			t.Fatalf("%d rows of %d lines", len(rows)+len(bad), lines)
		}
		for n, cells := range rows {
			if n < 1 || len(cells) == 0 {
				t.Fatalf("row %d: %q", n, cells)
			}
		}
		if len(bad) > 0 || bytes.ContainsAny(file, "\r\x00|;\t \v\f\u0085\u00a0\u2028\u2029") ||
			bytes.HasPrefix(file, []byte("sep=")) || !utf8.Valid(file) || !isPlain(file) {
			return
		}
		std := csv.NewReader(bytes.NewReader(file))
		std.FieldsPerRecord = -1
		all, err := std.ReadAll()
		if err != nil {
			return // our reader may accept what Go's refuses
		}
		if !slices.ContainsFunc(all[0], func(c string) bool { return usual(strings.TrimSpace(c)) == phoneColumn }) {
			return // it has rows above the header
		}
		var want [][]string
		for _, r := range all[1:] {
			if strings.Join(r, "") != "" {
				for i := range r {
					r[i] = strings.TrimSpace(r[i])
				}
				want = append(want, r)
			}
		}
		var got [][]string
		for _, n := range slices.Sorted(maps.Keys(rows)) {
			got = append(got, rows[n])
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q, Go reads %q; header %q", got, want, header)
		}
	})
}

// isPlain excludes what our reader and Go's are meant to read differently: rows that contain nothing but line breaks
// in quotes.
func isPlain(file []byte) bool {
	return !bytes.Contains(file, []byte("\"\n")) || !bytes.Contains(file, []byte("\n\""))
}

// Lists in the character sets that spreadsheets save by are read as they are meant.
func TestOlderCharacterSets(t *testing.T) {
	file, err := os.Open("testdata/cp1252-phone_number.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	header, rows, bad, err := readAll(file)
	if fmt.Sprint(header, rows, bad) != "[phone_number name city] map[1:[+4915112345601 Müller Köln] 2:[+4915112345602 Smith Bonn]] map[]" ||
		err != nil {
		t.Errorf("%v %v %v: %v", header, rows, bad, err)
	}
	for _, name := range []string{"Müller", "Muñoz", "François", "Søren"} { // one row is enough
		line, err := charmap.Windows1252.NewEncoder().String("phone_number,name\n+4915112345601," + name + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, rows, bad, err := readAll(strings.NewReader(line)); err != nil || len(bad) > 0 || rows[1][1] != name {
			t.Errorf("%s alone: %v %v: %v", name, rows, bad, err)
		}
	}
	for name, c := range map[string]struct {
		encode encoding.Encoding
		header string
		cells  []string
	}{
		"Windows-1252":          {charmap.Windows1252, "Straße", []string{"Müller", "Grünwald", "Weiß", "Schäfer"}},
		"Windows-1252, French":  {charmap.Windows1252, "Prénom", []string{"François", "Hélène", "Zoé", "Aurélie"}},
		"Windows-1252, Spanish": {charmap.Windows1252, "Dirección", []string{"Muñoz", "José", "Íñigo", "Núñez"}},
		"Windows-1250":          {charmap.Windows1250, "Příjmení", []string{"Dvořák", "Křížová", "Černý", "Žižka", "Růžička", "Šťastný"}},
		"Windows-1251":          {charmap.Windows1251, "Имя", []string{"Иван Петров", "Анна Смирнова", "Ольга Кузнецова"}},
		"GB18030":               {simplifiedchinese.GB18030, "姓名", []string{"王小明", "李小红", "张伟", "北京市朝阳区"}},
	} {
		var b strings.Builder
		fmt.Fprintf(&b, "phone_number,%s\n", c.header)
		for i, cell := range c.cells {
			fmt.Fprintf(&b, "%s,%s\n", phone(i), cell)
		}
		text, err := c.encode.NewEncoder().String(b.String())
		if err != nil {
			t.Fatal(err)
		}
		header, rows, bad, err := readAll(strings.NewReader(text))
		if err != nil || len(bad) > 0 || header[1] != c.header {
			t.Errorf("%s: header %q, bad rows %v: %v", name, header, bad, err)
		}
		for i, cell := range c.cells {
			if got := rows[i+1]; len(got) != 2 || got[1] != cell {
				t.Errorf("%s: row %d is %q, want %s", name, i+1, got, cell)
			}
		}
	}
}
