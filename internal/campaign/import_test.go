package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// listOf is a list of n leads, with a row in a hundred that is none.
func listOf(n int) string {
	var list strings.Builder
	list.WriteString("phone_number\n")
	for i := range n {
		list.WriteString(phone(i) + "\n")
		if i%100 == 0 {
			list.WriteString("nobody\n")
		}
	}
	return list.String()
}

// The campaign's page shows the progress of an import while it runs.
func TestImportIsTold(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.Hub = event.NewHub()
		storetest.Jobs(t, h.DB, h.AddWorkers, Queue)
		c := h.campaign(nil)
		told, stop, _ := h.Hub.Listen(Topic(c.ID), 5)
		defer stop()
		list := listOf(1200)
		size := int64(len(list))
		report, err := h.ImportLeads(t.Context(), h.user.ID,
			Import{CampaignID: c.ID, File: strings.NewReader(list), Size: size})
		if err != nil || report.Imported != 1200 || report.Skipped != 12 || len(report.Errors) != 12 ||
			report.Errors[1].Row != 103 {
			t.Fatalf("%+v: %v", report, err)
		}
		var last Importing
		for n := 0; !last.Done; n++ {
			now := (<-told).Data.(Importing)
			if now.Rows <= last.Rows || now.Imported <= last.Imported || now.Read < last.Read || now.Size != size ||
				n > 5 {
				t.Errorf("after %+v: %+v", last, now)
			}
			last = now
		}
		if last.Imported != 1200 || last.Skipped != 12 || last.Read != size {
			t.Errorf("at the end: %+v", last)
		}
	})
}

// queued stores a list that no process works on yet.
func (h *harness) queued(c *parley.Campaign, list string, in Import) *parley.LeadImport {
	h.Helper()
	in.CampaignID, in.File = c.ID, strings.NewReader(list)
	row, err := h.queueImport(context.Background(), h.user.ID, in)
	if err != nil {
		h.Fatal(err)
	}
	return row
}

// imported is how an import stands, and how many leads its campaign has.
func (h *harness) imported(row *parley.LeadImport) (now *parley.LeadImport, leads int) {
	h.Helper()
	now, err := h.DB.Import(context.Background(), h.user.ID, row.ID)
	if err == nil {
		_, leads, err = h.DB.Leads(context.Background(), h.user.ID, store.LeadFilter{CampaignID: row.CampaignID}, store.Page{Number: 1, Size: 1})
	}
	if err != nil {
		h.Fatal(err)
	}
	return now, leads
}

// Once its file is here a list is imported to its end: the browser may leave, processes may die, and two may work on it. No
// row is added twice, also where numbers may be.
func TestImportIsFinished(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		row := h.queued(c, listOf(1200), Import{Duplicates: true, Rejected: true})
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := h.awaitImport(gone, h.user.ID, row.ID, true); !errors.Is(err, context.Canceled) {
			t.Errorf("the browser has left: %v", err)
		}
		refused := func() {
			t.Helper()
			h.leads(c, 5000, 1)
			if _, err := h.Begin(t.Context(), h.user.ID, c.ID); err == nil || !strings.Contains(err.Error(), "A list is being imported") {
				t.Errorf("a campaign begins while its list comes in: %v", err)
			}
		}
		refused()

		// the process dies after a batch
		h.Hub = event.NewHub()
		told, stop, _ := h.Hub.Listen(Topic(c.ID), 5)
		defer stop()
		dying, die := context.WithCancel(t.Context())
		died := make(chan error)
		go func() { died <- h.finishImport(dying, row.ID) }()
		<-told
		die()
		err := <-died
		now, leads := h.imported(row)
		if now.EndedAt == 0 && (err == nil || leads != now.Imported+1 || now.Imported < batchRows || now.LeaseUntil != 0) {
			t.Errorf("%+v with %d leads: %v", now, leads, err)
		}

		// two go on
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := h.finishImport(t.Context(), row.ID); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		now, leads = h.imported(row)
		report, err := h.awaitImport(t.Context(), h.user.ID, row.ID, true)
		if err != nil || now.State != parley.ImportDone || leads != 1201 || report.Imported != 1200 || report.Skipped != 12 ||
			report.Kept != 12 ||
			strings.Count(report.Rejected, "\n") != 13 || !strings.HasPrefix(report.Rejected, "import_row,import_error,phone_number\n2,") {
			t.Errorf("%+v with %d leads; %+v %v", now, leads, report, err)
		}
		if _, err := h.Blobs.Open(t.Context(), row.Blob); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is kept: %v", err)
		}
		if _, err := h.Begin(t.Context(), h.user.ID, c.ID); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// One process at a time has an import: another one gets it when the lease is over, or was given back.
func TestImportHasOneOwner(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		row := h.queued(h.campaign(nil), listOf(1), Import{})
		lease := func(owner string, now, until parley.Time) (got bool) {
			t.Helper()
			err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				im, err := tx.LeaseImport(ctx, row.ID, owner, now, until)
				got = im != nil
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		first, again, early, late := lease("a", 100, 200), lease("b", 150, 250), lease("b", 199, 250), lease("b", 200, 300)
		if !first || again || early || !late {
			t.Errorf("the first %v, another meanwhile %v, at the last moment %v, afterwards %v", first, again, early, late)
		}
	})
}

// An import that nobody works on is found, and one that can't be finished says why.
func TestStrandedImport(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		row, lost := h.queued(h.campaign(nil), listOf(10), Import{}), h.queued(h.campaign(nil), listOf(10), Import{})
		deleted := h.campaign(nil)
		orphan := h.queued(deleted, listOf(10), Import{})
		h.write(func(ctx context.Context, tx *store.Tx) error {
			now := parley.Now()
			_, err := tx.LeaseImport(ctx, row.ID, "dead", now.Add(-time.Minute), now.Add(-time.Second))
			return err
		})
		if err := h.Blobs.Delete(t.Context(), lost.Blob); err != nil {
			t.Fatal(err)
		}
		if err := h.Delete(t.Context(), h.user.ID, deleted.ID); err != nil {
			t.Fatal(err)
		}
		if err := h.sweepImports(t.Context()); err != nil {
			t.Fatal(err)
		}
		storetest.Jobs(t, h.DB, h.AddWorkers, Queue)
		if report, err := h.awaitImport(t.Context(), h.user.ID, row.ID, false); err != nil || report.Imported != 10 {
			t.Errorf("%+v %v", report, err)
		}
		for of, want := range map[*parley.LeadImport]string{lost: "The file of the import is gone", orphan: "The campaign was deleted"} {
			if _, err := h.awaitImport(t.Context(), h.user.ID, of.ID, false); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if _, err := h.DB.Import(t.Context(), h.user.ID+1, row.ID); !store.IsNotFound(err) {
			t.Errorf("a stranger is answered %v", err)
		}
	})
}

// An account has few imports at once.
func TestFewImports(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		for range 5 {
			h.queued(c, listOf(1), Import{})
		}
		_, err := h.queueImport(t.Context(), h.user.ID, Import{CampaignID: c.ID, File: strings.NewReader(listOf(1))})
		if e, ok := errors.AsType[*parley.Error](err); !ok || e.Kind != parley.TooMany {
			t.Errorf("a sixth list: %v", err)
		}
	})
}

// A dry run adds nothing, and says what an import would add.
func TestDryImport(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		storetest.Jobs(t, h.DB, h.AddWorkers, Queue)
		c := h.campaign(nil)
		h.leads(c, 0, 2)
		list := fmt.Sprintf("phone_number,name\n%s,a\n%s,b\n%s,c\nx,d\n%s,e\n", phone(1), phone(2), phone(3), phone(2))
		do := func(in Import) *ImportReport {
			t.Helper()
			in.CampaignID, in.File = c.ID, strings.NewReader(list)
			r, err := h.ImportLeads(t.Context(), h.user.ID, in)
			if err != nil {
				t.Fatal(err)
			}
			r.Preview, r.Names = nil, nil // of a dry one alone
			return r
		}
		for _, duplicates := range []bool{false, true} {
			dry := do(Import{Dry: true, Duplicates: duplicates})
			if counts, err := h.DB.LeadCounts(t.Context(), h.user.ID, c.ID); err != nil || !duplicates &&
				counts[parley.LeadCreated] != 2 {
				t.Fatalf("a dry import added leads: %v %v", counts, err)
			}
			if real := do(Import{Duplicates: duplicates}); fmt.Sprint(real) != fmt.Sprint(dry) {
				t.Errorf("duplicates %v: told %+v, did %+v", duplicates, dry, real)
			}
		}
	})
}

// A list of rows that are all bad is answered with the first of them, and how many more there are.
func TestImportErrorsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		storetest.Jobs(t, h.DB, h.AddWorkers, Queue)
		c := h.campaign(nil)
		report, err := h.ImportLeads(t.Context(), h.user.ID,
			Import{CampaignID: c.ID, File: strings.NewReader("phone_number\n" + strings.Repeat("nobody\n", MaxRows))})
		if err != nil || report.Skipped != MaxRows || len(report.Errors) != maxErrors || report.More != MaxRows-maxErrors {
			t.Fatalf("%d skipped, %d errors and %d more, %v", report.Skipped, len(report.Errors), report.More, err)
		}
		if last := report.Errors[maxErrors-1]; last.Row != maxErrors {
			t.Errorf("the last one told is row %d", last.Row)
		}
		if answer, err := json.Marshal(report); err != nil || len(answer) > 200<<10 {
			t.Errorf("the answer has %d KB, %v", len(answer)>>10, err)
		}
	})
}
