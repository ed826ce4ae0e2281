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

	"parley/internal/parley"
	"parley/internal/sheet"
)

const (
	// MaxRows is how many rows one import takes.
	MaxRows   = 100_000
	batchRows = 500 // in one transaction, so that others get their turn
)

// Import is a list that is imported.
type Import struct {
	CampaignID int64
	File       io.ReadSeeker
	Size       int64  // of the file in bytes, for the progress; 0 when it is not known
	Country    string // where national numbers are read; "": nowhere
	Duplicates bool   // numbers that the campaign has already are added again
	Dry        bool   // nothing is added: the report is what it would be
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
	Preview  []PreviewRow  `json:"-"` // of a dry import: the first rows
	ReadAs   []ReadNumber  `json:"read_as,omitempty" doc:"The first 10 numbers that were written without a country code, and how they were read."`
	// Whoever sent the list has it: it is kept for an hour.
	Rejected string   `json:"rejected_csv,omitempty" doc:"With rejected_csv: the skipped rows with their values and the reasons, up to 1 MiB."`
	Kept     int      `json:"-"` // rows in Rejected
	Names    []string `json:"-"` // of a dry import: the columns
}

const (
	maxErrors  = 1000 // rows that a report has a reason for
	maxReadAs  = 10
	maxPreview = 5
)

// ImportError is why a row was not imported.
type ImportError struct {
	Row     int    `json:"row" doc:"The first line after the header is 1."`
	Field   string `json:"field" doc:"The column, or row for the whole row."`
	Message string `json:"message"`
}

// ReadNumber is a number as it was written, and as it was read.
type ReadNumber struct {
	Row    int    `json:"row"`
	Text   string `json:"text"`
	Number string `json:"phone_number"`
}

// PreviewRow is a row of a list, and how its number is read.
type PreviewRow struct {
	Row    int
	Cells  []string
	Number string // E.164
	Why    string // it is none
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

// ImportLeads adds the rows of a list to a campaign of the user's, some at a time. It fails as a whole only where the
// file is no such list. Once the file is stored the import is finished as a job, whether or not ctx ends before.
func (d *Roster) ImportLeads(ctx context.Context, userID int64, in Import) (*ImportReport, error) {
	if _, err := d.DB.Campaign(ctx, userID, in.CampaignID); err != nil {
		return nil, err
	}
	im := &importer{Roster: d, Import: in, userID: userID, report: &ImportReport{Errors: []ImportError{}}, seen: map[string]bool{}}
	done, err := toRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := im.open(in.File, in.Size); err != nil {
		return nil, err
	}
	if in.Dry {
		return im.try(ctx)
	}
	im.sheet.Close()
	done()
	row, err := d.queueImport(ctx, userID, in)
	if err != nil {
		return nil, err
	}
	return d.awaitImport(ctx, userID, row.ID, in.Rejected)
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
	report *ImportReport
	rows   int             // read so far
	seen   map[string]bool // of a dry import: numbers that it would have added
	size   int             // of the rows that were left out, as CSV
}

// open reads the list's header.
func (im *importer) open(file io.ReadSeeker, size int64) (err error) {
	im.sheet, err = openSheet(file, size, im.Columns)
	if row, isRow := errors.AsType[*badRow](err); isRow {
		return fileError("must have a header: " + row.text)
	}
	return unread(err)
}

// unread is why a list can't be read on, nil for nil.
func unread(err error) error {
	if bad, ok := errors.AsType[badSheet](err); ok {
		return fileError(string(bad))
	}
	if err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	return nil
}

// try says what an import would do.
func (im *importer) try(ctx context.Context) (*ImportReport, error) {
	defer im.sheet.Close()
	im.report.Names = im.sheet.names
	for end := false; !end; {
		b, err := im.read(ctx)
		if err != nil {
			return nil, err
		}
		added, err := im.tryLeads(ctx, b.leads)
		if err != nil {
			return nil, err
		}
		text, kept := im.rejected(im.report.take(b, added))
		im.report.Rejected += text
		im.report.Kept, im.size, end = im.report.Kept+kept, im.size+len(text), b.end
	}
	return im.report, nil
}

const (
	rowColumn, whyColumn = "import_row", "import_error" // of rows that were left out; an import takes no notice of them
	maxRejected          = 1 << 20                      // bytes of such rows that a report has
)

// skipped is a row that was left out, as far as it could be read.
type skipped struct {
	ImportError
	cells []string
}

// batch is some rows of a list.
type batch struct {
	leads []*parley.Lead
	from  []skipped // the leads' rows, to be said why if they are not added
	left  []skipped
	read  []ReadNumber
	end   bool // there are no more rows
}

func (b *batch) skip(row int, field, text string, cells []string) {
	b.left = append(b.left, skipped{ImportError{row, field, text}, cells})
}

// read reads the list's next rows. They are none where many rows of the list are empty.
func (im *importer) read(ctx context.Context) (*batch, error) {
	b := &batch{}
	for len(b.leads) < batchRows && len(b.left) < batchRows && !b.end {
		cells, err := im.sheet.next(ctx)
		bad, isBad := errors.AsType[*badRow](err)
		switch {
		case err == io.EOF:
			b.end = true
			continue
		case err != nil && !isBad:
			return nil, unread(err)
		case err == nil && cells == nil:
			return b, nil
		}
		im.rows++
		switch {
		case im.rows > MaxRows:
			b.skip(im.sheet.row, "row",
				fmt.Sprintf("An import takes %d rows: this one and those after it were not read. Import them as another file.", MaxRows), cells)
			b.end = true
		case isBad:
			b.skip(bad.row, "row", bad.text, cells)
		default:
			im.lead(b, cells)
		}
	}
	return b, nil
}

// lead adds a row's lead, unless its number is none. Empty cells are no variables: the assistant's own values stand
// then.
func (im *importer) lead(b *batch, cells []string) {
	l, phone := &parley.Lead{Variables: map[string]string{}}, ""
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
		b.skip(im.sheet.row, phoneColumn, "The phone_number field is required.", cells)
		return
	}
	var err error
	l.PhoneNumber, err = parley.ReadPhone(phone, im.Country)
	if im.Dry && len(im.report.Preview) < maxPreview {
		shown := PreviewRow{Row: im.sheet.row, Cells: cells, Number: l.PhoneNumber}
		if err != nil {
			shown.Why = err.Error()
		}
		im.report.Preview = append(im.report.Preview, shown)
	}
	if err != nil {
		b.skip(im.sheet.row, phoneColumn, notPhone(err), cells)
		return
	}
	if _, whole := parley.NormalizePhone(phone); !whole && len(b.read) < maxReadAs {
		b.read = append(b.read, ReadNumber{im.sheet.row, phone, l.PhoneNumber})
	}
	b.leads, b.from = append(b.leads, l), append(b.from, skipped{ImportError{Row: im.sheet.row}, cells})
}

// notPhone says why a row's number is none.
func notPhone(err error) string {
	return strings.TrimSpace("The phone_number field must be a valid phone number in international format. " + parley.PhoneHelp(err))
}

// take adds a batch to the report, with which of its leads were added, and returns the rows that were left out.
func (r *ImportReport) take(b *batch, added []bool) []skipped {
	left := slices.Clone(b.left)
	for i, from := range b.from {
		switch {
		case i >= len(added):
			from.Field, from.Message = "row", "Your plan allows no more leads: this row was not stored. "+
				"Delete leads that are done, or ask the operator of this server for a larger plan."
			left = append(left, from)
		case added[i]:
			r.Imported++
		default:
			from.Field, from.Message = phoneColumn, "The phone_number is in this campaign already."
			left = append(left, from)
		}
	}
	slices.SortStableFunc(left, func(a, b skipped) int { return a.Row - b.Row })
	for _, l := range left {
		r.Skipped++
		if len(r.Errors) < maxErrors {
			r.Errors = append(r.Errors, l.ImportError)
		} else {
			r.More++
		}
	}
	r.ReadAs = append(r.ReadAs, b.read[:min(len(b.read), maxReadAs-len(r.ReadAs))]...)
	return left
}

// rejected writes rows that were left out as CSV, as many as a report has room for, so that they can be mended and
// imported again; the first of them after a header.
func (im *importer) rejected(left []skipped) (text string, kept int) {
	if !im.Rejected || len(left) == 0 || im.size >= maxRejected {
		return "", 0
	}
	var b strings.Builder
	out := csv.NewWriter(&b)
	head := []string{rowColumn, whyColumn}
	for _, name := range im.sheet.names {
		head = append(head, sheet.Plain(name))
	}
	if im.size == 0 {
		out.Write(head)
		out.Flush() // into memory: it can't fail
	}
	for _, l := range left {
		line := []string{strconv.Itoa(l.Row), l.Message}
		for _, c := range l.cells {
			line = append(line, sheet.Phone(c))
		}
		for len(line) < len(head) {
			line = append(line, "")
		}
		was := b.Len()
		out.Write(line)
		if out.Flush(); im.size+b.Len() > maxRejected {
			im.size = maxRejected // it is full
			return b.String()[:was], kept
		}
		kept++
	}
	return b.String(), kept
}

// tryLeads says which leads of a dry import would be added.
func (im *importer) tryLeads(ctx context.Context, leads []*parley.Lead) (added []bool, err error) {
	if len(leads) == 0 {
		return nil, nil
	}
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
