package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"parley"
	"parley/internal/event"
	"parley/internal/store"
)

// The campaign's page shows the progress of an import while it runs; if the sender leaves in the middle, what was
// imported stays.
func TestImportIsTold(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.Hub = event.NewHub()
		c := h.campaign(nil)
		told, stop, _ := h.Hub.Listen(Topic(c.ID), 5)
		defer stop()
		var list strings.Builder
		list.WriteString("phone_number\n")
		for i := range 1200 {
			list.WriteString(phone(i) + "\n")
			if i%100 == 0 {
				list.WriteString("nobody\n")
			}
		}
		size := int64(list.Len())
		report, err := h.ImportLeads(t.Context(), h.user.ID,
			Import{CampaignID: c.ID, File: strings.NewReader(list.String()), Size: size})
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

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := h.campaign(nil)
		sender := io.MultiReader(strings.NewReader(list.String()), calls(func() { cancel() }))
		if _, err := h.ImportLeads(ctx, h.user.ID, Import{CampaignID: gone.ID, File: sender}); !errors.Is(err,
			context.Canceled) {
			t.Fatalf("the sender has left: %v", err)
		}
		if _, n, err := h.DB.Leads(t.Context(), h.user.ID, store.LeadFilter{CampaignID: gone.ID},
			store.Page{Number: 1, Size: 1}); err != nil || n < batchRows || n >= 1200 {
			t.Errorf("%d leads are there: %v", n, err)
		}
	})
}

// calls is an empty reader that calls a function when it is read.
type calls func()

func (c calls) Read([]byte) (int, error) { c(); return 0, io.EOF }

// A dry run adds nothing, and says what an import would add.
func TestDryImport(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
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
		c := h.campaign(nil)
		report, err := h.ImportLeads(t.Context(), h.user.ID,
			Import{CampaignID: c.ID, File: strings.NewReader("phone_number\n" + strings.Repeat("nobody\n", MostRows))})
		if err != nil || report.Skipped != MostRows || len(report.Errors) != mostErrors || report.More != MostRows-mostErrors {
			t.Fatalf("%d skipped, %d errors and %d more, %v", report.Skipped, len(report.Errors), report.More, err)
		}
		if last := report.Errors[mostErrors-1]; last.Row != mostErrors {
			t.Errorf("the last one told is row %d", last.Row)
		}
		if answer, err := json.Marshal(report); err != nil || len(answer) > 200<<10 {
			t.Errorf("the answer has %d KB, %v", len(answer)>>10, err)
		}
	})
}
