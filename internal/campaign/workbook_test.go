package campaign

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
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
	for name, size := range map[string]int{"[Content_Types].xml": 100, "xl/workbook.xml": 100, "xl/worksheets/sheet1.xml": mostUnpacked + 1} {
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
