package campaign

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/event"
	"parley/internal/sheet"
	"parley/internal/store"
)

const (
	// MostRows is how many rows one import takes.
	MostRows  = 100_000
	batchRows = 500 // in one transaction, so that others get their turn
)

// Import is a list that is imported.
type Import struct {
	CampaignID int64
	File       io.Reader
	Size       int64 // of the file in bytes, for the progress; 0 when it is not known
	Duplicates bool  // numbers that the campaign has already are added again
	Dry        bool  // nothing is added: the report is what it would be
	// what columns of the file are taken for, by their names: phone_number, a variable, "" for nothing
	Columns  map[string]string
	Rejected bool // the report has the rows that are left out, as CSV
}

// ImportReport is what became of an import. Rows that failed are told one by one, the others are imported.
type ImportReport struct {
	Imported int           `json:"imported"`
	Skipped  int           `json:"skipped"`
	Errors   []ImportError `json:"errors" doc:"One for each skipped row, the first 1000 of them."`
	More     int           `json:"more_errors,omitempty" doc:"How many skipped rows errors leaves out."`
	// Nothing of it is stored: whoever sent the list has it.
	Rejected string `json:"rejected_csv,omitempty" doc:"With rejected_csv: the skipped rows with their values and the reasons, up to 1 MiB."`
	Kept     int    `json:"-"` // rows in Rejected
}

// ImportError is why a row was not imported.
type ImportError struct {
	Row     int    `json:"row" doc:"The first line after the header is 1."`
	Field   string `json:"field" doc:"The column, or row for the whole row."`
	Message string `json:"message"`
}

// Importing is how far an import is, as the hub tells it (Topic) under the kind "import".
type Importing struct {
	Rows     int   `json:"rows"` // read
	Imported int   `json:"imported"`
	Skipped  int   `json:"skipped"`
	Read     int64 `json:"read"` // bytes
	Size     int64 `json:"size"`
	Done     bool  `json:"done"`
}

// ImportLeads adds the rows of a CSV file to a campaign of the user's, some at a time. It fails as a whole only where
// the file is no such list; what was imported stays, also when ctx ends on the way.
func (d *Roster) ImportLeads(ctx context.Context, userID int64, in Import) (*ImportReport, error) {
	if _, err := d.DB.Campaign(ctx, userID, in.CampaignID); err != nil {
		return nil, err
	}
	count := &counted{r: in.File}
	s, err := openSheet(count, in.Columns)
	var bad badSheet
	var row *badRow
	switch {
	case errors.As(err, &bad):
		return nil, fileError(string(bad))
	case errors.As(err, &row):
		return nil, fileError("must have a header: " + row.text)
	case err != nil:
		return nil, fmt.Errorf("read the list: %w", err)
	}
	im := &importer{Roster: d, Import: in, userID: userID, sheet: s, count: count,
		report: &ImportReport{Errors: []ImportError{}}, seen: map[string]bool{}}
	for end := false; !end; {
		if end, err = im.batch(ctx); err != nil {
			return nil, err
		}
	}
	return im.report, im.writeRejected()
}

func fileError(text string) error {
	var f parley.Fields
	f.Add("file", "%s", text)
	return f.Err()
}

type importer struct {
	*Roster
	Import
	userID int64
	sheet  *table
	count  *counted
	rows   int
	report *ImportReport
	seen   map[string]bool // of a dry import: numbers that it would have added
	left   []rejected
	size   int // bytes of left, about
}

// rejected is a row that was left out, as far as it could be read.
type rejected struct {
	row   int
	cells []string
	why   string
}

const (
	rowColumn, whyColumn = "import_row", "import_error" // of rows that were left out; an import takes no notice of them
	mostRejected         = 1 << 20                      // bytes of such rows that a report has
	mostErrors           = 1000                         // rows that a report has a reason for
)

func (im *importer) skip(row int, field, text string, cells []string) {
	im.report.Skipped++
	if len(im.report.Errors) < mostErrors {
		im.report.Errors = append(im.report.Errors, ImportError{row, field, text})
	} else {
		im.report.More++
	}
	if !im.Rejected {
		return
	}
	size := len(text) + 16
	for _, c := range cells {
		size += len(c) + 1
	}
	if im.size += size; im.size <= mostRejected {
		im.left = append(im.left, rejected{row, cells, text})
	}
}

// writeRejected writes the rows that were left out, so that they can be mended and imported again.
func (im *importer) writeRejected() error {
	if len(im.left) == 0 {
		return nil
	}
	slices.SortStableFunc(im.left, func(a, b rejected) int { return a.row - b.row })
	var b strings.Builder
	out := csv.NewWriter(&b)
	head := []string{rowColumn, whyColumn}
	for _, name := range im.sheet.names {
		head = append(head, sheet.Plain(name))
	}
	out.Write(head) // failures show at the end
	for _, r := range im.left {
		line := []string{strconv.Itoa(r.row), r.why}
		for _, c := range r.cells {
			line = append(line, sheet.Phone(c))
		}
		for len(line) < len(head) {
			line = append(line, "")
		}
		out.Write(line)
	}
	out.Flush()
	im.report.Rejected, im.report.Kept = b.String(), len(im.left)
	return out.Error()
}

// batch reads and stores some rows. end says that there are no more.
func (im *importer) batch(ctx context.Context) (end bool, err error) {
	told := len(im.report.Errors)
	leads, rows := make([]*parley.Lead, 0, batchRows), make([]rejected, 0, batchRows)
	for len(leads) < batchRows && !end {
		cells, err := im.sheet.next()
		var bad *badRow
		switch {
		case err == io.EOF:
			end = true
			continue
		case err != nil && !errors.As(err, &bad):
			return false, fmt.Errorf("read the list: %w", err)
		}
		if im.rows++; im.rows > MostRows {
			im.skip(im.sheet.row, "row", fmt.Sprintf("An import takes %d rows: this one and those after it were not read. Import them as another file.", MostRows), cells)
			end = true
			continue
		}
		if bad != nil {
			im.skip(bad.row, "row", bad.text, cells)
			continue
		}
		if l := im.lead(cells); l != nil {
			leads, rows = append(leads, l), append(rows, rejected{row: im.sheet.row, cells: cells})
		}
	}
	if err := im.add(ctx, leads, rows); err != nil {
		return false, err
	}
	// duplicates were found last
	slices.SortStableFunc(im.report.Errors[told:], func(a, b ImportError) int { return a.Row - b.Row })
	if im.Dry {
		return end, nil
	}
	if im.Hub != nil {
		im.Hub.Tell(Topic(im.CampaignID), event.Event{Kind: "import",
			Data: Importing{Rows: im.rows, Imported: im.report.Imported,
				Skipped: im.report.Skipped, Read: im.count.n, Size: im.Size, Done: end}})
	}
	im.Wake(im.userID)
	return end, nil
}

// lead is a row's lead, nil where its number is none. Empty cells are no variables: the assistant's own values stand
// then.
func (im *importer) lead(cells []string) *parley.Lead {
	l := &parley.Lead{Variables: map[string]string{}}
	phone := ""
	for i, name := range im.sheet.header {
		switch {
		case i >= len(cells) || cells[i] == "" || name == "":
		case name == phoneColumn:
			phone = cells[i]
		default:
			l.Variables[name] = cells[i]
		}
	}
	if phone == "" {
		im.skip(im.sheet.row, phoneColumn, "The phone_number field is required.", cells)
		return nil
	}
	var ok bool
	if l.PhoneNumber, ok = parley.NormalizePhone(phone); !ok {
		im.skip(im.sheet.row, phoneColumn, "The phone_number field must be a valid phone number in international format.", cells)
		return nil
	}
	return l
}

func (im *importer) add(ctx context.Context, leads []*parley.Lead, rows []rejected) error {
	if len(leads) == 0 {
		return nil
	}
	do := im.store
	if im.Dry {
		do = im.try
	}
	added, err := do(ctx, leads)
	if err != nil {
		return err
	}
	for i, row := range rows {
		switch {
		case i >= len(added):
			im.skip(row.row, "row", "Your plan allows no more leads: this row was not stored. Delete leads that are done, or ask the operator of this server for a larger plan.", row.cells)
		case added[i]:
			im.report.Imported++
		default:
			im.skip(row.row, phoneColumn, "The phone_number is in this campaign already.", row.cells)
		}
	}
	return nil
}

// try says which leads of a dry import would be added.
func (im *importer) try(ctx context.Context, leads []*parley.Lead) (added []bool, err error) {
	added = make([]bool, len(leads))
	numbers := make([]string, len(leads))
	for i, l := range leads {
		numbers[i] = l.PhoneNumber
	}
	there, err := im.DB.CampaignNumbers(ctx, im.userID, im.CampaignID, numbers)
	for i, n := range numbers {
		added[i] = im.Duplicates || !there[n] && !im.seen[n]
		im.seen[n] = true
	}
	return added, err
}

func (im *importer) store(ctx context.Context, leads []*parley.Lead) (added []bool, err error) {
	err = im.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Campaign(ctx, im.userID, im.CampaignID); err != nil { // it may be deleted meanwhile
			return err
		}
		room, err := tx.RoomForLeads(ctx, im.userID)
		if err != nil {
			return err
		}
		added, err = tx.AddLeads(ctx, im.userID, im.CampaignID, leads[:min(int64(len(leads)), room)], im.Duplicates)
		return err
	})
	return added, err
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
