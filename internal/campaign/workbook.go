package campaign

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/xuri/excelize/v2"
)

// A spreadsheet is a packed file: what it unpacks to is bounded, and large sheets are unpacked into files. A cell far to the
// right has its row filled up with empty ones, so rows with such cells are bounded as well.
const (
	maxUnpacked = 128 << 20 // bytes, of all its parts
	maxInMemory = 8 << 20   // bytes of a part: of a larger one a file is made
	maxWide     = 1000      // rows that are wider than maxColumns
	maxReading  = 4         // lists that are read at once for requests; those of jobs are bounded by Importers
)

var reading = make(chan struct{}, maxReading)

// toRead waits until one more list may be read for a request. done must be called after the reading, and may be called again.
func toRead(ctx context.Context) (done func(), err error) {
	select {
	case reading <- struct{}{}:
		return sync.OnceFunc(func() { <-reading }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// workbook is the first sheet of a spreadsheet that is not hidden, row by row.
type workbook struct {
	file         *excelize.File
	shown, plain *excelize.Rows // the cells as the spreadsheet shows them, and as it keeps them
	rows, wide   int            // read, and how many of them were wider than maxColumns
}

const notWorkbook = badSheet("is an archive or a damaged spreadsheet: open it in your spreadsheet program and save it as XLSX or CSV.")

// openWorkbook opens a spreadsheet. It must be closed.
func openWorkbook(file io.ReadSeeker) (w *workbook, err error) {
	defer func() {
		if recover() != nil { // a file that nobody has foreseen
			err = notWorkbook
		}
		if err != nil {
			w.Close()
			w = nil
		}
	}()
	w = &workbook{}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return w, err
	}
	if w.file, err = excelize.OpenReader(file, excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxInMemory}); err != nil {
		if strings.Contains(err.Error(), "exceeds the") {
			return w, badSheet(fmt.Sprintf("unpacks to more than %d MiB: save the list alone as XLSX, or as CSV.", maxUnpacked>>20))
		}
		return w, notWorkbook
	}
	for _, name := range w.file.GetSheetList() {
		if visible, err := w.file.GetSheetVisible(name); err != nil || !visible {
			continue
		}
		if w.shown, err = w.file.Rows(name); err != nil {
			continue
		}
		if w.plain, err = w.file.Rows(name); err == nil {
			return w, nil
		}
	}
	return w, badSheet("has no sheet that can be read: save the list as the first sheet of an XLSX file, or as CSV.")
}

// Close removes what was unpacked.
func (w *workbook) Close() {
	for _, rows := range []*excelize.Rows{w.shown, w.plain} {
		if rows != nil {
			rows.Close()
		}
	}
	if w.file != nil {
		w.file.Close()
	}
}

// next is the next row, io.EOF after the last one. Numbers that the spreadsheet shows shortened are as it keeps them.
func (w *workbook) next() (cells []string, err error) {
	defer func() {
		if recover() != nil {
			cells, err = nil, notWorkbook
		}
	}()
	if !w.shown.Next() || !w.plain.Next() {
		if w.shown.Error() != nil {
			return nil, notWorkbook
		}
		return nil, io.EOF
	}
	if w.rows++; w.rows > excelize.TotalRows {
		return nil, badSheet(fmt.Sprintf("has more than %d rows: save the list alone as XLSX, or as CSV.", excelize.TotalRows))
	}
	if cells, err = w.shown.Columns(); err != nil {
		return nil, notWorkbook
	}
	if len(cells) > maxColumns {
		if w.wide++; w.wide > maxWide {
			return nil, badSheet(fmt.Sprintf("has more than %d rows with cells beyond column %d: delete the columns that are no part of the list.",
				maxWide, maxColumns))
		}
	}
	plain, err := w.plain.Columns(excelize.Options{RawCellValue: true})
	if err != nil {
		return nil, notWorkbook
	}
	for i := range cells {
		if i < len(plain) && strings.ContainsAny(cells[i], "E#") && strings.Trim(plain[i], "0123456789") == "" && plain[i] != "" {
			cells[i] = plain[i]
		}
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, nil
}
