package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/alert"
	"parley/internal/mail"
	"parley/internal/parley"
)

// An alert is made of each kind with the fields of its kind, shown as it stands, changed, tested, switched off, deleted.
func TestAlertPages(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk <b>")
	v := h.signedIn(t, u)
	v.get("/analytics").says("Alerts")
	v.get("/alerts").is(http.StatusOK).says("Know when something goes wrong")

	fields := map[parley.AlertKind]string{
		parley.AlertFailures: "assistant_id channel window_minutes min_calls",
		parley.AlertLatency:  "assistant_id channel window_minutes min_calls",
		parley.AlertSpend:    "assistant_id",
		parley.AlertBalance:  "",
		parley.AlertSilence:  "assistant_id channel hours_start hours_end days",
	}
	for _, k := range alertKinds {
		form := v.get("/alerts/new?kind=" + string(k.kind)).is(http.StatusOK).form("/alerts/new")
		for _, name := range []string{"assistant_id", "channel", "window_minutes", "min_calls", "hours_start", "hours_end", "days"} {
			if want := strings.Contains(" "+fields[k.kind]+" ", " "+name+" "); form.Has(name) != want {
				t.Errorf("%s has %s: %t", k.kind, name, form.Has(name))
			}
		}
		v.post("/alerts/new", form).is(http.StatusSeeOther) // as it is proposed
	}
	list, err := h.DB.Alerts(t.Context(), u.ID)
	if err != nil || len(list) != len(alertKinds) {
		t.Fatalf("%d alerts: %v", len(list), err)
	}
	silence, failures := &list[0], &list[4]
	if silence.Kind != parley.AlertSilence || *silence.HoursStart != "09:00" || len(silence.Days) != 5 || !silence.Active {
		t.Errorf("%+v", silence)
	}

	// The account has $5: the rule about the balance is raised by one look.
	if err := h.Alerts.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := v.get("/alerts").is(http.StatusOK).says("The balance is below $10.00").says("raised since").says("$5.00")
	if n := page.doc().Find(".list .tag.bad").Length(); n != 1 {
		t.Errorf("%d are raised", n)
	}
	at := alertPath(failures.ID)
	form := v.get(at).is(http.StatusOK).says("Nothing to measure").form(at)
	form.Set("threshold", "120")
	form.Set("name", "")
	v.post(at, form).is(http.StatusUnprocessableEntity).says("please check 2 fields")
	form.Set("threshold", "30")
	form.Set("name", "Sales <i>")
	form.Set("assistant_id", id(a.ID))
	form.Set("channel", "inbound")
	v.post(at, form).moved(at + "?done=saved")
	page = v.get(at).says("Sales <i>").says("30 % or more of the inbound calls within an hour fail")
	link, _ := page.doc().Find("header a.button").Attr("href")
	day := time.Now().Add(-time.Hour).In(u.Zone()).Format(time.DateOnly)
	if want := "/calls?assistant_id=" + id(a.ID) + "&date_from=" + day + "&status=failed&test=false&type=inbound"; link != want {
		t.Errorf("the list behind it is %s, want %s", link, want)
	}
	v.get(link).is(http.StatusOK).says("Calls")

	// Nobody can be told yet; then the account has an endpoint.
	v.post(at+"/test", nil).is(http.StatusUnprocessableEntity).says("this server sends no e-mail")
	v.post("/webhooks/settings", map[string][]string{"url": {"https://example.com/hook"}}).is(http.StatusSeeOther)
	v.post(at+"/test", nil).is(http.StatusOK).says("The test is on its way").says("https://example.com/hook")
	v.get("/webhooks").says("alert.raised")

	form.Set("active", "0")
	v.post(at, form).moved(at + "?done=saved")
	if got := v.get("/alerts").doc().Find(".list .tag.plain").Text(); !strings.Contains(got, "Off") {
		t.Errorf("the tags are %q", got)
	}
	v.post(at+"/delete", nil).moved("/alerts?done=deleted")
	v.get(at).is(http.StatusNotFound)
}

// watch is what looks at the alerts of a console's accounts; it sends no e-mail.
func watch(c *Config) *alert.Watch {
	return alert.New(c.DB, &mail.Sender{}, "https://voice.example.com")
}
