package campaign

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"parley/internal/parley"
	"parley/internal/store"
)

// book makes a spreadsheet of some sheets; the first is hidden where it is called so.
func book(t *testing.T, sheets map[string][][]any, order ...string) *bytes.Reader {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	for i, name := range order {
		if i == 0 {
			f.SetSheetName("Sheet1", name)
		} else if _, err := f.NewSheet(name); err != nil {
			t.Fatal(err)
		}
		for r, row := range sheets[name] {
			for c, v := range row {
				at, err := excelize.CoordinatesToCellName(c+1, r+1)
				if err == nil {
					err = f.SetCellValue(name, at, v)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if order[0] == "hidden" {
		f.SetActiveSheet(1)
		if err := f.SetSheetVisible("hidden", false); err != nil {
			t.Fatal(err)
		}
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

// Spreadsheets are read as people make them: with titles, with numbers that are kept as numbers, with hidden sheets.
func TestWorkbook(t *testing.T) {
	rows := [][]any{{"phone_number", "name", "due"}, {491711234567, "Müller", time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)},
		{"0171 1234568", " Bo ", 12.5}, {}, {"+49 171 1234569", "", ""}}
	header, got, bad, err :=
		readAll(book(t, map[string][][]any{"hidden": {{"nothing"}}, "Leads": append([][]any{{"Leads of March"}, {}}, rows...)},
			"hidden", "Leads"))
	if err != nil || fmt.Sprint(header) != "[phone_number name due]" || len(bad) != 0 || len(got) != 3 {
		t.Fatalf("%q %v %v: %v", header, got, bad, err)
	}
	if got[1][0] != "491711234567" || got[1][1] != "Müller" || !strings.Contains(got[1][2], "26") || strings.Contains(got[1][2], "4608") {
		t.Errorf("the first row is %q", got[1])
	}
	if fmt.Sprint(got[2]) != "[0171 1234568 Bo 12.5]" || got[4][0] != "+49 171 1234569" {
		t.Errorf("%v", got)
	}
	whole := book(t, map[string][][]any{"Leads": rows}, "Leads")
	cut := make([]byte, whole.Size()/2)
	whole.Read(cut)
	if _, _, _, err := readAll(bytes.NewReader(cut)); !errors.Is(err, notWorkbook) {
		t.Errorf("half of one: %v", err)
	}
	if n := len(reading); n != 0 {
		t.Errorf("%d spreadsheets are open", n)
	}
}

// What unpacks to far more than a list does is refused, and takes no memory to speak of.
func TestWorkbookIsBounded(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, size := range map[string]int{"[Content_Types].xml": 100, "xl/workbook.xml": 100, "xl/worksheets/sheet1.xml": maxUnpacked + 1} {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		zeros := bytes.Repeat([]byte(" "), 1<<20)
		for ; size > 0; size -= len(zeros) {
			part.Write(zeros[:min(size, len(zeros))])
		}
	}
	w.Close()
	var bad badSheet
	if _, _, _, err := readAll(bytes.NewReader(b.Bytes())); !errors.As(err, &bad) ||
		!strings.Contains(string(bad), "unpacks to more than 128 MiB") {
		t.Errorf("%d bytes that are many: %v", b.Len(), err)
	}
}

// packed makes a spreadsheet whose one sheet has these rows after a header.
func packed(t *testing.T, rows string) *bytes.Reader {
	t.Helper()
	plain := book(t, map[string][][]any{"Leads": {{"phone_number"}}}, "Leads")
	parts, err := zip.NewReader(plain, plain.Size())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, part := range parts.File {
		from, err := part.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(part.Name, "sheet1.xml") {
			text = bytes.Replace(text, []byte("</sheetData>"), []byte(rows+"</sheetData>"), 1)
		}
		to, err := w.Create(part.Name)
		if err == nil {
			_, err = to.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

// A few hundred bytes for many empty cells or rows don't keep a reader busy: the list is refused in words.
func TestWorkbookOfEmptyCells(t *testing.T) {
	const wide, lead = `<row><c r="XFD1"><f/></c></row>`, `<row><c t="inlineStr"><is><t>+491711234567</t></is></c></row>`
	for name, c := range map[string]struct {
		rows string
		want string // "": it is read
	}{
		"some wide rows":    {strings.Repeat(wide, maxWide) + lead, ""},
		"too many of them":  {strings.Repeat(wide, maxWide+1) + lead, "rows with cells beyond column 201"},
		"every row":         {fmt.Sprintf(`<row r="%d"/>`, excelize.TotalRows-1) + lead, ""},
		"more than any has": {fmt.Sprintf(`<row r="%d"/>`, excelize.TotalRows) + lead, "has more than 1048576 rows"},
	} {
		_, rows, _, err := readAll(packed(t, c.rows))
		var bad badSheet
		switch {
		case c.want == "" && (err != nil || len(rows) != 1):
			t.Errorf("%s: %v, %v", name, rows, err)
		case c.want != "" && (!errors.As(err, &bad) || !strings.Contains(string(bad), c.want)):
			t.Errorf("%s: %v, %v", name, rows, err)
		}
	}
	s, err := openSheet(packed(t, `<row r="50000"/>`+lead), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	gone, cancel := context.WithCancel(t.Context())
	defer cancel()
	for n := 1; ; n++ { // the import gets its turn every maxEmpty rows, and stops when it must
		cells, err := s.next(gone)
		if n < 5 && (cells != nil || err != nil) || n == 5 && !errors.Is(err, context.Canceled) {
			t.Fatalf("%d: %q, %v", n, cells, err)
		}
		if n == 4 {
			cancel()
		}
		if n == 5 {
			return
		}
	}
}

// Whoever waits for other lists to be read stops waiting with the request.
func TestReadingEnds(t *testing.T) {
	var taken []func()
	for range maxReading {
		done, err := toRead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, done)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Columns(gone, strings.NewReader("phone_number\n"), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("with a place for nobody: %v", err)
	}
	for _, done := range taken {
		done()
		done()
	}
	if names, err := Columns(t.Context(), strings.NewReader("phone_number,name\n"), 0); err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	if n := len(reading); n != 0 {
		t.Errorf("%d lists are being read", n)
	}
}

// An import that processes begin again and again without an end fails. One whose sheet can't be read on says so.
func TestImportTries(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		for name, c := range map[string]struct {
			file  *bytes.Reader
			tries int
			want  string
		}{
			"the last try": {packed(t, `<row><c t="inlineStr"><is><t>+491711234567</t></is></c></row>`), importTries - 1, ""},
			"one more":     {packed(t, ""), importTries, "A fault on this server ended the import after 0 rows"},
			"a wide one":   {packed(t, strings.Repeat(`<row><c r="XFD1"><f/></c></row>`, maxWide+1)), 0, "cells beyond column 201"},
		} {
			row, err := h.queueImport(t.Context(), h.user.ID, Import{CampaignID: h.campaign(nil).ID, File: c.file, Size: c.file.Size()})
			for range c.tries {
				h.write(func(ctx context.Context, tx *store.Tx) error { // whoever leased it is gone
					_, err := tx.LeaseImport(ctx, row.ID, "gone", parley.Now(), parley.Now()-1)
					return err
				})
			}
			if err == nil {
				err = h.finishImport(t.Context(), row.ID)
			}
			now, _ := h.imported(row)
			if err != nil || now.EndedAt == 0 || (now.State == parley.ImportFailed) != (c.want != "") || !strings.Contains(now.Failure, c.want) {
				t.Errorf("%s: %+v, %v", name, now, err)
			}
		}
	})
}

// A spreadsheet is imported as a list is.
func TestWorkbookImport(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		var rows [][]any
		rows = append(rows, []any{"Phone", "name"})
		for i := range 700 {
			rows = append(rows, []any{phone(i), fmt.Sprint("Ana ", i)})
		}
		file := book(t, map[string][][]any{"Leads": rows}, "Leads")
		row, err := h.queueImport(t.Context(), h.user.ID, Import{CampaignID: c.ID, File: file, Size: file.Size()})
		if err == nil {
			err = h.finishImport(t.Context(), row.ID)
		}
		if now, leads := h.imported(row); err != nil || now.Imported != 700 || leads != 700 {
			t.Errorf("%+v with %d leads: %v", now, leads, err)
		}
	})
}
