package campaign

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// A list without a column for one of the assistant's variables keeps the campaign from being launched. A value that some
// leads lack does not, nor does a variable with a default.
func TestLaunch(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		caller := h.person(func(a *parley.Assistant) {
			a.PhoneNumberID = &h.number
			a.InitialMessage, a.SystemPrompt = "Hello {{name}}, {{company}} here.", "Today is {{current_date}}. Ask for {{order}}."
			a.Variables = map[string]string{"company": "Acme"}
		})
		c := h.campaign(map[string]any{"assistant_id": num(caller.ID)})
		add := func(number string, variables map[string]string) {
			t.Helper()
			if err := h.AddLead(t.Context(), h.user.ID, &parley.Lead{CampaignID: c.ID, PhoneNumber: number, Variables: variables},
				false); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Launch(t.Context(), h.user.ID, c.ID, ""); err == nil || !strings.Contains(err.Error(), "no leads") {
			t.Errorf("without leads: %v", err)
		}
		add("+12125550100", map[string]string{"name": "Ana", "Order": "12"})
		add("+12125550101", map[string]string{"name": ""})
		_, err := h.Launch(t.Context(), h.user.ID, c.ID, "")
		if err == nil || !strings.Contains(err.Error(), "uses {{order}}, but no lead has a value") {
			t.Errorf("with a column of another name: %v", err)
		}
		if got := h.now(c); got.Status != parley.CampaignDraft {
			t.Errorf("it is %s", got.Status)
		}
		add("+12125550102", map[string]string{"order": "13"})
		if _, err := h.Launch(t.Context(), h.user.ID+1, c.ID, ""); !store.IsNotFound(err) {
			t.Errorf("a stranger is answered %v", err)
		}
		if got, err := h.Launch(t.Context(), h.user.ID, c.ID, ""); err != nil || got.Status != parley.CampaignInProgress {
			t.Errorf("%v %v", got, err)
		}
	})
}

// The estimate is made from the assistant's own calls, once there are enough.
func TestEstimate(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(nil)
		h.leads(c, 0, 30)
		look := func() Estimate {
			t.Helper()
			a, err := h.Ahead(t.Context(), h.user.ID, c.ID)
			if err != nil {
				t.Fatal(err)
			}
			return a.Estimate
		}
		line, talk := h.Prices.Calls.Trunk, h.Prices.Calls.Assistant
		if e := look(); e.Own() || e.Minutes != 30 || e.Cost != 30*(line+talk) {
			t.Errorf("without calls: %+v", e)
		}
		// Of ten calls, six last 90 s: two started minutes. The others were not answered. What failed does not count, nor
		// do tests, calls of others, and calls that came in.
		made := func(n int, change func(*parley.Call)) {
			for range n {
				one := &parley.Call{AssistantID: h.assistant.ID, Type: parley.CallOutbound, Status: parley.CallInProgress}
				h.write(func(ctx context.Context, tx *store.Tx) error {
					one.Status = parley.CallInProgress
					if err := tx.CreateCall(ctx, h.user.ID, one); err != nil {
						return err
					}
					change(one)
					one.EndedAt, one.EndedReason = parley.DateTime(parley.Now()), parley.CustomerHangup
					return tx.EndCall(ctx, one)
				})
			}
		}
		made(6, func(c *parley.Call) { c.Status, c.Duration = parley.CallCompleted, 90 })
		made(3, func(c *parley.Call) { c.Status = parley.CallNoAnswer })
		made(5, func(c *parley.Call) { c.Status = parley.CallFailed })
		if e := look(); e.Own() || e.From.Calls != 9 {
			t.Errorf("with nine calls: %+v", e)
		}
		made(1, func(c *parley.Call) { c.Status = parley.CallBusy })
		e := look()
		if want := (store.CallMinutes{Calls: 10, Answered: 6, Seconds: 540, Started: 12}); !e.Own() || e.From != want {
			t.Errorf("from %+v, want %+v", e.From, want)
		}
		// 30 leads: 1.2 started minutes of a line and 54 s of the assistant each
		if want := 36*line + 27*talk; e.Minutes != 27 || e.Cost != want {
			t.Errorf("%d minutes for %s, want 27 for %s", e.Minutes, e.Cost, want)
		}
	})
}

// Who wants to be called first gets the first lead's call, which counts as no lead's attempt.
func TestRehearsal(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.campaign(map[string]any{"phone_number_ids": []any{num(h.number)}})
		if _, err := h.Rehearsal(t.Context(), h.user.ID, c.ID, "+12125550199"); err == nil {
			t.Error("without leads there is an order")
		}
		l := &parley.Lead{CampaignID: c.ID, PhoneNumber: "+12125550100", Variables: map[string]string{"name": "Ana"}}
		if err := h.AddLead(t.Context(), h.user.ID, l, false); err != nil {
			t.Fatal(err)
		}
		o, err := h.Rehearsal(t.Context(), h.user.ID, c.ID, "+12125550199")
		if err != nil || o.To != "+12125550199" || o.Variables["name"] != "Ana" || o.NumberID != h.number ||
			o.AssistantID != h.assistant.ID || o.UserID != h.user.ID || o.LeadID != 0 || o.CampaignID != 0 || o.Also != nil {
			t.Errorf("%+v %v", o, err)
		}
		if _, err := h.Rehearsal(t.Context(), h.user.ID+1, c.ID, "+12125550199"); !store.IsNotFound(err) {
			t.Errorf("a stranger is answered %v", err)
		}
	})
}

// What was left out comes back with its values and why, is mended, and imported again; an example has the right columns.
func TestRejected(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		caller := h.person(func(a *parley.Assistant) {
			a.SystemPrompt, a.Variables = "{{name}} {{company}} {{current_time}}", map[string]string{"company": "=Acme"}
		})
		storetest.Jobs(t, h.DB, h.AddWorkers, Queue)
		c := h.campaign(map[string]any{"assistant_id": num(caller.ID)})
		in := func(list string) *ImportReport {
			t.Helper()
			got, err := h.ImportLeads(t.Context(), h.user.ID, Import{CampaignID: c.ID, File: strings.NewReader(list), Rejected: true})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		got := in("phone_number;name\n+12125550100;Ana\n12;=Bo\n+12125550101;\"Cy\n+12125550100;Di\n+12125550102;Ed;more\n")
		want := "import_row,import_error,phone_number,name\n" +
			"2,The phone_number field must be a valid phone number in international format.,12,'=Bo\n" +
			"3,A quote is opened and never closed.,\"+12125550101;\"\"Cy\",\n" +
			"4,The phone_number is in this campaign already.,+12125550100,Di\n" +
			"5,There are more cells than columns in the header.,+12125550102,Ed,more\n"
		if want = strings.Replace(want, "\"+12125550101;", "\"'+12125550101;", 1); got.Rejected != want || got.Kept != 4 || got.Imported != 1 {
			t.Errorf("%d rows:\n%s\nwant:\n%s", got.Kept, got.Rejected, want)
		}
		again := in("import_row,import_error,phone_number,name\n2,it was wrong,+12125550103,Bo\n")
		list, _, err := h.DB.Leads(t.Context(), h.user.ID, store.LeadFilter{CampaignID: c.ID}, store.Page{Number: 1, Size: 9})
		if err != nil || again.Imported != 1 || again.Rejected != "" || fmt.Sprint(list[0].Variables) != "map[name:Bo]" {
			t.Errorf("%+v %v: %v", again, err, list[0].Variables)
		}
		many := in("phone_number,name\n" + strings.Repeat("1,"+strings.Repeat("x", 9000)+"\n", 200))
		if len(many.Rejected) > maxRejected || many.Kept < 100 || many.Kept >= many.Skipped || many.Skipped != 200 {
			t.Errorf("%d bytes of %d rows of %d", len(many.Rejected), many.Kept, many.Skipped)
		}

		var b bytes.Buffer
		if err := h.Sample(t.Context(), h.user.ID, c.ID, func(string) io.Writer { return &b }); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil || fmt.Sprint(rows) != "[[phone_number name company] [+12025550123  '=Acme]]" {
			t.Errorf("%v %v", rows, err)
		}
		if err := h.Sample(t.Context(), h.user.ID+1, c.ID, func(string) io.Writer { return io.Discard }); !store.IsNotFound(err) {
			t.Errorf("a stranger is answered %v", err)
		}
	})
}

// Columns of a list are taken for what the sender says they are; without a word, for what they are called.
func TestColumns(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		storetest.Jobs(t, h.DB, h.AddWorkers, Queue)
		c := h.campaign(nil)
		const list = "Mobile,First Name,note,Phone\n+12125550100,Ana,hm,ext 7\n12,Bo,,\n"
		names, err := Columns(t.Context(), strings.NewReader(list), 0)
		if err != nil || fmt.Sprint(names) != "[Mobile First Name note Phone]" {
			t.Errorf("the columns are %q: %v", names, err)
		}
		in := func(columns map[string]string) (*ImportReport, error) {
			return h.ImportLeads(t.Context(), h.user.ID, Import{CampaignID: c.ID, File: strings.NewReader(list), Columns: columns, Rejected: true})
		}
		if got, err := in(nil); err != nil || got.Imported != 0 {
			t.Errorf("by their names: %+v %v", got, err)
		}
		if _, err := in(map[string]string{"Phone": ""}); err == nil ||
			!strings.Contains(err.Error(), "Its columns are: Mobile, First Name, note") {
			t.Errorf("without a number: %v", err)
		}
		if _, err := in(map[string]string{"Mobile": "phone_number"}); err == nil || !strings.Contains(err.Error(), "phone_number twice") {
			t.Errorf("with two numbers: %v", err)
		}
		got, err := in(map[string]string{"Mobile": "phone_number", "First Name": "name", "note": "", "Phone": "extension"})
		if err != nil || got.Imported != 1 || !strings.HasPrefix(got.Rejected, "import_row,import_error,Mobile,First Name,note,Phone\n2,") {
			t.Fatalf("%+v %v", got, err)
		}
		leads, _, err := h.DB.Leads(t.Context(), h.user.ID, store.LeadFilter{CampaignID: c.ID}, store.Page{Number: 1, Size: 9})
		if err != nil || len(leads) != 1 || leads[0].PhoneNumber != "+12125550100" ||
			fmt.Sprint(leads[0].Variables) != "map[extension:ext 7 name:Ana]" {
			t.Errorf("%+v %v", leads, err)
		}
	})
	for column, want := range map[string]string{"First name": "first_name", "FIRST-NAME": "first_name", "order": "order", "Order": "order",
		"Phone": "phone_number", "other": "other", "import_row": "", "!": "!"} {
		if got := Suggest(column, []string{"first_name", "order", "_"}); got != want {
			t.Errorf("%q is taken for %q, want %q", column, got, want)
		}
	}
}
