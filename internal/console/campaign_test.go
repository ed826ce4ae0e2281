package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/internal/campaign"
	"parley/internal/parley"
	"parley/internal/store"
)

func withCampaigns(c *Config) {
	c.Campaigns = campaign.New(campaign.Config{DB: c.DB, Prices: c.Prices, Hub: c.Hub})
}

// sendList sends a form with a file.
func (v *visitor) sendList(path, file string, fields ...string) *reply {
	v.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		w.WriteField(fields[i], fields[i+1])
	}
	if file != "" {
		part, err := w.CreateFormFile("file", "list.csv")
		if err != nil {
			v.t.Fatal(err)
		}
		part.Write([]byte(file))
	}
	w.Close()
	req, err := http.NewRequest("POST", v.harness.url+path, &b)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil {
		v.t.Fatal(err)
	}
	return &reply{v.t, res.StatusCode, res.Header, body.String()}
}

func TestCampaignPages(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/campaigns").is(http.StatusOK).says("Call a list of people")
	v.get("/campaigns/new").says("There is no outbound assistant yet.")
	a := h.caller(t, u, "Caller <b>")
	form := v.get("/campaigns/new").form("/campaigns/new")
	if form.Get("allowed_hours_start_time") != "09:00" || form.Get("allowed_hours_end_time") != "18:00" ||
		strings.Join(form["allowed_days"], " ") != " monday tuesday wednesday thursday friday" ||
		form.Get("max_calls_in_parallel") != "3" {
		t.Errorf("defaults: %v", form)
	}
	form.Set("name", "")
	form.Set("max_retries", "9")
	form.Set("timezone", "Mars")
	form["allowed_days"] = []string{""}
	v.post("/campaigns/new", form).is(http.StatusUnprocessableEntity).says("please check 4 fields")
	form.Set("name", "Spring <script>")
	form.Set("max_retries", "2")
	form.Set("timezone", "Europe/Berlin")
	form["allowed_days"] = []string{"", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
	form.Set("allowed_hours_start_time", "00:00")
	at := strings.TrimSuffix(v.post("/campaigns/new", form).is(http.StatusSeeOther).header.Get("Location"),
		"?done=created")
	v.get("/campaigns").says("Spring <script>").says("Draft")
	page := v.get(at).is(http.StatusOK).says("Spring <script>").says(a.Name + " calls").says("Import a list above.")
	if page.doc().Find("script:not([src])").Length() != 0 {
		t.Error("a name became a script")
	}

	// A list is shown first, and then imported.
	list := "phone_number;name\n+14155550101;Ana <i>\n12;Bo\n+14155550102;\"Cy\n+14155550101;again\n+14155550103;Di\n"
	checked := v.sendList(at+"/check", list).is(http.StatusOK).doc().Find("#import-report")
	if text := checked.Text(); !strings.Contains(text, "2 rows can be imported") ||
		!strings.Contains(text, "3 would be left out") || checked.Find(".bad-rows:not(.preview) tbody tr").Length() != 3 ||
		checked.Find(".preview tbody tr").Length() != 4 {
		t.Errorf("checked: %s", text)
	}
	if list, _ := h.DB.Campaigns(t.Context(), u.ID); len(list) != 1 {
		t.Fatal(list)
	}
	v.get(at).says("Import a list above.")
	link := checked.Find("#rejected").AttrOr("href", "")
	rows64, ok := strings.CutPrefix(link, "data:text/csv;charset=utf-8;base64,")
	if raw, err := base64.StdEncoding.DecodeString(rows64); !ok || err != nil ||
		!strings.Contains(string(raw), "international format.,12,Bo\n") {
		t.Errorf("the rows that would be left out are %q: %v", link, err)
	}
	if text := v.sendList(at+"/import", list).is(http.StatusOK).doc().Find(
		"#import-report").Text(); !strings.Contains(text, "2 leads imported") || !strings.Contains(text, "3 left out") {
		t.Errorf("imported: %s", text)
	}
	if text := v.sendList(at+"/import", list, "allow_duplicate",
		"1").is(http.StatusOK).doc().Find("#import-report").Text(); !strings.Contains(text, "3 leads imported") {
		t.Errorf("with duplicates: %s", text)
	}
	// A column of another name is matched by hand; what the assistant needs and the list has not is said.
	matched := v.sendList(at+"/check", "Mobile,Who\n+14155550155,Ana\n").is(http.StatusUnprocessableEntity).
		says("must have a phone_number column")
	if as := matched.doc().Find("#column-1 option[selected]").AttrOr("value", ""); as != "who" {
		t.Errorf("the column Who is taken for %q", as)
	}
	v.sendList(at+"/check", "Mobile,Name\n+14155550155,Ana\n", "column.0.name", "Mobile", "column.0.as", "phone_number").is(
		http.StatusOK).says("1 row can be imported").says("Variables without a column").says("{{who}}")
	if text := v.sendList(at+"/check", "Mobile,Name\n+14155550155,Ana\n", "column.0.name", "Mobile", "column.0.as", "phone_number",
		"column.1.name", "Name", "column.1.as", "who").is(http.StatusOK).says("1 row can be imported").doc().Find(".columns").
		Text(); strings.Contains(text, "without a column") {
		t.Errorf("all columns are there, and yet: %s", text)
	}
	v.sendList(at+"/import", "name\nAna\n").is(http.StatusUnprocessableEntity).says(
		"The file field must have a phone_number column. Its columns are: name")
	v.sendList(at+"/import", "").is(http.StatusUnprocessableEntity).says("Choose a file first: CSV, or a spreadsheet (XLSX).")
	rows := func(path string) int { return v.get(path).is(http.StatusOK).doc().Find("#results li").Length() }
	// the last is the empty list's
	if a, b, c := rows(at), rows(at+"?phone_number=%2B14155550103"), rows(at+"?status=completed"); a != 5 ||
		b != 2 || c != 1 {
		if c = v.get(at + "?status=completed").doc().Find("#results .list li").Length(); a != 5 || b != 2 || c != 0 {
			t.Errorf("%d leads, %d with a number, %d completed", a, b, c)
		}
	}
	v.get(at).says("Ana <i>")

	v.post(at+"/stop", nil).is(http.StatusConflict).says("The campaign is not in progress.")
	if to := v.get(at).doc().Find("#campaign-state a.primary").AttrOr("href", ""); to != at+"/start" {
		t.Errorf("Start leads to %q", to)
	}
	ask := v.get(at + "/start").is(http.StatusOK).says("5 leads").says("Every day, 00:00 to 18:00").says(
		"Los Angeles").says("if everyone answers and talks for one minute")
	if text := strings.Join(strings.Fields(ask.doc().Find("[aria-labelledby=unfilled-t]").Text()),
		" "); !strings.Contains(text, "{{who}} no lead has a value") || strings.Contains(text, "{{company}}") {
		t.Errorf("the variables without a value are %q", text)
	}
	v.get(at).says("Draft") // asking starts nothing
	// the list does not fit: no button, and nothing starts without it either
	if ask.doc().Find(`form[action="`+at+`/start"] button[type=submit]`).Length() != 0 {
		t.Error("a campaign whose list does not fit can be started")
	}
	v.post(at+"/start", nil).is(http.StatusConflict).says("{{who}}, but no lead has a value for it")
	v.get(at).says("Draft")
	if head, _, _ := strings.Cut(v.get(at+"/sample.csv").is(http.StatusOK).body, "\n"); !strings.HasPrefix(head, "phone_number,who,company") {
		t.Errorf("the example's columns are %q", head)
	}
	v.sendList(at+"/import", "phone_number,who\n+14155550104,Flo\n").is(http.StatusOK)
	ask = v.get(at + "/start").says("This assistant has made too few calls")
	v.post(at+"/try", url.Values{"phone_number": {"me"}}).is(http.StatusUnprocessableEntity).says("in international format")
	called := v.post(at+"/try", url.Values{"phone_number": {"+14155550003"}}).is(http.StatusSeeOther).header.Get("Location")
	v.get(called).is(http.StatusOK)
	// It may start later by itself, which can be canceled.
	v.post(at+"/schedule", url.Values{"starts_at": {"2001-01-01T09:00"}}).is(http.StatusUnprocessableEntity).says("must be in the future")
	v.post(at+"/schedule", url.Values{"starts_at": {""}}).is(http.StatusUnprocessableEntity).says("must be a date and a time")
	later := time.Now().Add(48 * time.Hour).Format("2006-01-02T15:04")
	v.post(at+"/schedule", url.Values{"starts_at": {later}}).moved(at + "?done=scheduled")
	v.get(at).says("It starts").says("Scheduled").says("Change the time")
	if got := v.get(at+"/start").is(http.StatusOK).doc().Find("#starts-at").AttrOr("value", ""); got != later {
		t.Errorf("the start that can be changed is %q, not %q", got, later)
	}
	v.get("/campaigns").says("Scheduled")
	v.post(at+"/unschedule", nil).moved(at + "?done=unscheduled")
	v.post(at+"/unschedule", nil).is(http.StatusConflict).says("has no scheduled start")
	v.get(at).says("Draft")
	v.post(at+"/start", ask.form(at+"/start")).moved(at + "?done=started")
	v.get(at).says("In progress")
	v.get(at + "/start").moved(at)
	v.post(at+"/stop", nil).moved(at + "?done=stopped")
	v.get(at).says("Stopped")
	edit := v.get(at + "/edit").form(at + "/edit")
	edit.Set("name", "Autumn")
	v.post(at+"/edit", edit).moved(at + "?done=saved")
	if got := v.get(at + "/export").is(http.StatusOK); got.header.Get(
		"Content-Type") != "text/csv; charset=utf-8" || strings.Count(got.body, "\n") != 7 {
		t.Errorf("the export is %s", got.body)
	}

	stranger := h.signedIn(t, h.user(t))
	for _, path := range []string{at, at + "/start", at + "/edit", at + "/export", at + "/live"} {
		stranger.get(path).is(http.StatusNotFound)
	}
	for _, path := range []string{at + "/start", at + "/stop", at + "/delete", at + "/edit"} {
		stranger.post(path, url.Values{}).is(http.StatusNotFound)
	}
	stranger.sendList(at+"/import", list).is(http.StatusNotFound)
	v.post(at+"/delete", nil).moved("/campaigns?done=deleted")
	v.get(at).is(http.StatusNotFound)
}

// The page says what a campaign is waiting for: its pause, its hours.
func TestCampaignWaits(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.caller(t, u, "Caller <b>")
	c, err := h.Campaigns.Create(t.Context(), u, map[string]any{"name": "Night", "assistant_id": numeral(id(a.ID))})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Campaigns.AddLead(t.Context(), u.ID, &parley.Lead{CampaignID: c.ID, PhoneNumber: "+14155550101"},
		false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Campaigns.Begin(t.Context(), u.ID, c.ID); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/campaigns/%d", c.ID)
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		return tx.PauseCampaign(ctx, u.ID, c.ID, "The balance is used up.", parley.Now().Add(60e9))
	})
	v.get(at).says("Paused").says("The balance is used up.")
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"name": "Gone"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Assistants.Delete(t.Context(), u.ID, a.ID); err != nil {
		t.Fatal(err)
	}
	v.get(at).says("Its assistant was deleted")
}
