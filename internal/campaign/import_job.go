package campaign

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// A list is stored before it is read, and read as a job: a browser that leaves or a server that dies loses none of it.
// Each batch is one transaction, which stores its leads and how far the import is. So a batch is added once, whichever
// process goes on with the list.

// Queue is where lists are imported, so that they keep no other job waiting; how many at a time is its MaxWorkers, which is to be
// Importers.
const (
	Queue     = "imports"
	Importers = 3
)

const (
	importLease = 15 * time.Second       // a batch takes far less
	importTries = 10                     // of processes, without one batch between them
	keepRejects = time.Hour              // after the end
	keepImports = 7 * 24 * time.Hour     // after the end
	lookAgain   = 300 * time.Millisecond // for the end of an import, which no hub tells of on other nodes
)

// importArgs is the job that finishes an import; importSweep looks for those that nobody works on.
type (
	importArgs struct {
		ID int64 `json:"id"`
	}
	importSweep struct{}
)

// Kind implements river.JobArgs.
func (importArgs) Kind() string { return "lead_import" }

// Kind implements river.JobArgs.
func (importSweep) Kind() string { return "lead_import_sweep" }

// AddWorkers registers the workers of this room's jobs.
func (d *Roster) AddWorkers(w *river.Workers) {
	river.AddWorker(w, river.WorkFunc(func(ctx context.Context, j *river.Job[importArgs]) error { return d.finishImport(ctx, j.Args.ID) }))
	river.AddWorker(w, river.WorkFunc(func(ctx context.Context, _ *river.Job[importSweep]) error { return d.sweepImports(ctx) }))
}

// Periodic are the jobs that time causes.
func (d *Roster) Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(importLease), func() (river.JobArgs, *river.InsertOpts) {
		return importSweep{}, &river.InsertOpts{MaxAttempts: 1} // the next one comes anyway
	}, &river.PeriodicJobOpts{RunOnStart: true})}
}

// importOrder is how a list is to be read, as its row keeps it.
type importOrder struct {
	Country    string
	Duplicates bool
	Columns    map[string]string
	Rejected   bool
	By         *store.Actor
}

// importNotes are what a report has beside its counts, as the row keeps it.
type importNotes struct {
	Errors []ImportError
	More   int
	ReadAs []ReadNumber
}

// queueImport stores a list and has it imported.
func (d *Roster) queueImport(ctx context.Context, userID int64, in Import) (*parley.LeadImport, error) {
	order, err := json.Marshal(importOrder{in.Country, in.Duplicates, in.Columns, in.Rejected, store.ActorOf(ctx)})
	if err != nil {
		return nil, err
	}
	row := &parley.LeadImport{CampaignID: in.CampaignID, Blob: "imports/" + rand.Text(), Options: string(order), Errors: "{}"}
	if err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateImport(ctx, userID, row) }); err != nil {
		return nil, err
	}
	if _, err = in.File.Seek(0, io.SeekStart); err == nil {
		row.Size, err = d.Blobs.Put(ctx, row.Blob, in.File)
	}
	if err == nil {
		err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.RunImport(ctx, userID, row); err != nil {
				return err
			}
			return tx.EnqueueIn(ctx, Queue, importArgs{row.ID})
		})
	}
	if err != nil {
		after := context.WithoutCancel(ctx)
		return nil, errors.Join(fmt.Errorf("keep the list: %w", err), d.Blobs.Delete(after, row.Blob),
			d.DB.Write(after, func(ctx context.Context, tx *store.Tx) error { return tx.DropImport(ctx, userID, row.ID) }))
	}
	return row, nil
}

// awaitImport waits for the end of an import.
func (d *Roster) awaitImport(ctx context.Context, userID, id int64, rejected bool) (*ImportReport, error) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		row, err := d.DB.Import(ctx, userID, id)
		if err != nil {
			return nil, err
		}
		switch row.State {
		case parley.ImportFailed:
			return nil, parley.Errorf(parley.Refused, "%s", row.Failure)
		case parley.ImportDone:
			report := ReportOf(row)
			if rejected {
				report.Rejected, report.Kept, err = d.DB.Rejects(ctx, userID, id)
			}
			return report, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// ReportOf is the report of an import so far, without the rows that were left out.
func ReportOf(row *parley.LeadImport) *ImportReport {
	var notes importNotes
	if err := json.Unmarshal([]byte(row.Errors), &notes); err != nil {
		slog.Error("read the notes of an import", "import", row.ID, "error", err) // our own
	}
	r := &ImportReport{Imported: row.Imported, Skipped: row.Skipped, Errors: notes.Errors, More: notes.More, ReadAs: notes.ReadAs}
	if r.Errors == nil {
		r.Errors = []ImportError{}
	}
	return r
}

// errTries is that importTries processes have worked on an import, and none of them came to say why it does not go on.
var errTries = errors.New("it has been tried too often without one more row")

// finishImport works on an import until its end, unless another process does.
func (d *Roster) finishImport(ctx context.Context, id int64) error {
	var row *parley.LeadImport
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		now := parley.Now()
		row, err = tx.LeaseImport(ctx, id, rand.Text(), now, now.Add(importLease))
		return err
	})
	if err != nil || row == nil {
		return err
	}
	if err = errTries; row.Tries <= importTries {
		err = d.runImport(ctx, row)
	}
	invalid, isInvalid := errors.AsType[*parley.Error](err)
	switch {
	case err == nil:
	case store.ImportLost(err):
		return nil
	case isInvalid && invalid.Kind == parley.NotFound:
		err = d.endImport(ctx, row, parley.ImportFailed, "The campaign was deleted while the list was imported.")
	case isInvalid:
		err = d.endImport(ctx, row, parley.ImportFailed, invalid.Message)
	case ctx.Err() == nil && row.Tries >= importTries:
		slog.ErrorContext(ctx, "import a list", "import", row.ID, "campaign", row.CampaignID, "error", err)
		err = d.endImport(ctx, row, parley.ImportFailed,
			fmt.Sprintf("A fault on this server ended the import after %d rows. Import the list again: what has been imported is not added twice.",
				row.Rows))
	default:
		after := context.WithoutCancel(ctx)
		return errors.Join(fmt.Errorf("import %d: %w", row.ID, err), d.DB.Write(after, func(ctx context.Context, tx *store.Tx) error {
			return tx.GiveBackImport(ctx, row.ID, row.Owner)
		}))
	}
	if err != nil {
		return err
	}
	if err := d.removeList(ctx, row); err != nil { // the sweep tries it again
		slog.WarnContext(ctx, "remove the file of an import", "import", row.ID, "error", err)
	}
	return nil
}

func (d *Roster) removeList(ctx context.Context, row *parley.LeadImport) error {
	if err := d.Blobs.Delete(ctx, row.Blob); err != nil {
		return err
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.ForgetImport(ctx, row.ID) })
}

// endImport stores an import's end, and tells of it.
func (d *Roster) endImport(ctx context.Context, row *parley.LeadImport, state parley.ImportState, failure string) error {
	row.State, row.Failure, row.EndedAt = state, failure, parley.Now()
	err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.KeepImport(ctx, row) })
	if err == nil {
		d.tellImport(row)
	}
	return err
}

func (d *Roster) tellImport(row *parley.LeadImport) {
	if d.Hub != nil {
		d.Hub.Tell(Topic(row.CampaignID), event.Event{Kind: "import", Data: ImportingOf(row)})
	}
	d.Wake(row.UserID)
}

// ImportingOf is how far an import is.
func ImportingOf(row *parley.LeadImport) Importing {
	return Importing{Rows: row.Rows, Imported: row.Imported, Skipped: row.Skipped, Read: row.ReadBytes, Size: row.Size, Done: row.EndedAt != 0}
}

// runImport adds the rows of a leased import's list that are not added yet, and notes the end with the last of them.
func (d *Roster) runImport(ctx context.Context, row *parley.LeadImport) error {
	var order importOrder
	if err := json.Unmarshal([]byte(row.Options), &order); err != nil {
		return err
	}
	if order.By != nil {
		ctx = store.By(ctx, *order.By)
	}
	file, err := d.Blobs.Open(ctx, row.Blob)
	if errors.Is(err, fs.ErrNotExist) {
		return parley.Errorf(parley.Refused, "The file of the import is gone. Import the list again: what has been imported is not added twice.")
	}
	if err != nil {
		return err
	}
	defer file.Close()
	im := &importer{Roster: d, userID: row.UserID, report: ReportOf(row), Import: Import{CampaignID: row.CampaignID, Country: order.Country,
		Duplicates: order.Duplicates, Columns: order.Columns, Rejected: order.Rejected}}
	if err := im.open(file, row.Size); err != nil {
		return err
	}
	defer im.sheet.Close()
	text, _, err := d.DB.Rejects(ctx, row.UserID, row.ID)
	if err != nil {
		return err
	}
	for im.size = len(text); im.rows < row.Rows; { // those that are in already
		cells, err := im.sheet.next(ctx)
		if err != nil && !errors.As(err, new(*badRow)) {
			return unread(err)
		}
		if cells != nil || err != nil {
			im.rows++
		}
	}
	for row.EndedAt == 0 {
		b, err := im.read(ctx)
		if err == nil {
			err = im.store(ctx, row, b)
		}
		if err != nil {
			return err
		}
		d.tellImport(row)
	}
	return nil
}

// store adds a batch, and how far the import is with it, in one transaction.
func (im *importer) store(ctx context.Context, row *parley.LeadImport, b *batch) error {
	var next parley.LeadImport
	var report ImportReport
	size := im.size
	err := im.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { // it may be tried again
		if _, err := tx.Campaign(ctx, im.userID, im.CampaignID); err != nil { // it may be deleted meanwhile
			return err
		}
		room, err := tx.RoomForLeads(ctx, im.userID)
		if err != nil {
			return err
		}
		var added []bool
		if leads := b.leads[:min(int64(len(b.leads)), room)]; len(leads) > 0 {
			if added, err = tx.AddLeads(ctx, im.userID, im.CampaignID, leads, im.Duplicates); err != nil {
				return err
			}
		}
		report, next, im.size = *im.report, *row, size
		text, kept := im.rejected(report.take(b, added))
		if next.Rows = im.rows; text != "" {
			if err := tx.AddRejects(ctx, row.ID, im.rows, kept, text); err != nil {
				return err
			}
			im.size += len(text)
		}
		notes, err := json.Marshal(importNotes{report.Errors, report.More, report.ReadAs})
		if err != nil {
			return err
		}
		now := parley.Now()
		next.Imported, next.Skipped, next.Errors, next.ReadBytes = report.Imported, report.Skipped, string(notes), im.sheet.consumed()
		next.Tries, next.LeaseUntil = 0, now.Add(importLease)
		if b.end {
			next.State, next.EndedAt = parley.ImportDone, now
		}
		return tx.KeepImport(ctx, &next)
	})
	if err == nil {
		*row, *im.report = next, report
	}
	return err
}

// sweepImports has imports worked on that nobody works on, and removes what nobody needs.
func (d *Roster) sweepImports(ctx context.Context) error {
	now := parley.Now()
	list, err := d.DB.StrandedImports(ctx, now, 100)
	if err != nil {
		return err
	}
	var failed []error
	for i := range list {
		if list[i].State == parley.ImportRunning {
			failed = append(failed,
				d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueIn(ctx, Queue, importArgs{list[i].ID}) }))
		} else {
			failed = append(failed, d.removeList(ctx, &list[i]))
		}
	}
	return errors.Join(append(failed, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.TidyImports(ctx, now.Add(-keepRejects), now.Add(-keepImports))
	}))...)
}
