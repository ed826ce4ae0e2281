package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A user makes a campaign, previews a list before it is imported, starts the campaign, and sees the results of the
// calls without a reload.
func TestConsoleCampaign(t *testing.T) {
	share(t, browser)
	s := start(t, "PARLEY_SIP_LISTEN=off")
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/campaigns")
	p.see("h1", "Call a list of people")
	p.shot("campaigns-none", false)
	s.caller(t)
	if status := s.call(t, "PUT", fmt.Sprintf("/user/assistant/%d", s.Assistant), map[string]any{"ringing_time": 2},
		nil); status != http.StatusOK {
		t.Fatalf("the assistant is answered %d", status)
	}
	p.click("a[href='/campaigns/new']")
	p.see("h1", "New campaign")
	p.look("campaign-new")
	p.expect("422")
	p.fill("#f-max_retries", "9")
	p.click("#save")
	p.see(".mistakes", "check 2 fields")
	p.fill("#f-name", "Spring <b>")
	p.fill("#f-max_retries", "1")
	// The form starts with office hours; this test calls at any time.
	p.until(
		`[...document.querySelectorAll("[name=allowed_days]:checked")].map((d) => d.value).join() === "monday,tuesday,wednesday,thursday,friday"`)
	p.until(
		`document.querySelector("#f-allowed_hours_start_time").value + ` +
			`document.querySelector("#f-allowed_hours_end_time").value === "09:0018:00"`)
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("[name=allowed_days][type=checkbox]").forEach((d) => { d.checked = true; });
		document.querySelector("#f-allowed_hours_start_time").value = "00:00"; document.querySelector("#f-allowed_hours_end_time").value = "23:59"`))
	p.click("#save")
	p.until("/^\\/campaigns\\/\\d+$/.test(location.pathname)")
	p.see("h1", "Spring <b>")

	file := filepath.Join(t.TempDir(), "list.csv")
	list := "phone_number;name\n+12025550003;Ana <img src=x onerror=alert(1)>\n12;Bo\n+12025550004;\"Cy\n+12025550003;again\n" +
		"+12125550003;Di\n+13125550004;Ed\n"
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.SetUploadFiles(chromedp.CSS("#list"), []string{file}))
	p.click("button[formaction$='/check']")
	p.see("#import-report", "3 rows can be imported")
	p.until("document.querySelectorAll('#import-report .bad-rows:not(.preview) tbody tr').length === 3")
	p.look("campaign-check")
	if text := eval[string](p, "atob(document.querySelector('#rejected').href.split('base64,')[1])"); !strings.Contains(text, ",12,Bo\n") {
		t.Errorf("the rows that would be left out are %q", text)
	}
	p.click("#rejected") // as a file: the page stays
	p.see("#import-report", "3 rows can be imported")
	p.click(".import-go")
	p.see("#import-report", "3 leads imported")
	p.until("document.querySelectorAll('#results .list li').length === 3")
	p.click("#campaign-state a.primary")
	p.see("h1", "Start")
	p.see("h1", "Spring <b>")
	p.see(".facts", "3 leads")
	p.see(".facts", "Every day, around the clock")
	p.see(".facts", "if everyone answers")
	p.see("[aria-labelledby=places-t]", "New York")
	p.see("[aria-labelledby=places-t]", "before 8:00 or after 21:00")
	p.see("[aria-labelledby=unfilled-t]", "{{who}}")
	p.see("main", "It can't start while no lead has a value")
	p.until("!document.querySelector(\"form[action$='/start'] button\")")
	p.look("campaign-start-blocked")
	p.click(".crumb a")
	p.until("document.readyState === 'complete' && document.querySelector('#list') && !document.querySelector('#import-report')?.innerText")
	if err := os.WriteFile(file, []byte("Mobile,Whom\n+13125550003,Flo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.SetUploadFiles(chromedp.CSS("#list"), []string{file}))
	p.expect("422")
	p.click("button[formaction$='/check']")
	p.see("#import-report", "must have a phone_number column")
	p.see(".columns", "{{who}}")
	p.do(chromedp.SetValue(chromedp.CSS("#column-0"), "phone_number"), chromedp.SetValue(chromedp.CSS("#column-1"), "who"))
	p.look("campaign-columns")
	p.click(".import-go")
	p.see("#import-report", "1 lead imported")

	// One's own number first, with the first lead's variables; then it starts.
	p.click("#campaign-state a.primary")
	p.see("main", "3 leads have no value")
	p.look("campaign-start")
	p.fill("#own-number", "+14155550003")
	p.click("form[action$='/try'] button")
	p.see("#call-state", "The line was busy.")
	p.open(s.URL + "/campaigns")
	p.click(".list a.stretch")
	p.see("#campaign-sums", "0 of 4")
	p.click("#campaign-state a.primary")
	p.click("form[action$='/start'] button")
	p.see("#campaign-state", "In progress")
	p.see("#campaign-sums", "Busy")
	p.until("document.querySelector('#campaign-sums .sums div:nth-child(2) dd').innerText === '4'")
	p.see("#results", "busy")
	p.see("#results", "Ana <img src=x onerror=alert(1)>")
	p.look("campaign-calls")
	p.click("form[action$='/stop'] button")
	p.see("#campaign-state", "Stopped")
	// Later, by itself; canceled; and at another time, which comes at once.
	p.click("#campaign-state a.primary")
	p.until("document.querySelector('#starts-at')")
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector('#starts-at').value = %q",
		time.Now().UTC().Add(48*time.Hour).Format("2006-01-02T15:04"))))
	p.click("form[action$='/schedule'] button")
	p.see("#campaign-state", "It starts")
	p.look("campaign-scheduled")
	p.click("form[action$='/unschedule'] button")
	p.see("#campaign-state", "Stopped")
	where := eval[string](p, "location.pathname")
	if status := s.call(t, "POST", "/user"+where+"/schedule", map[string]any{
		"starts_at": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)}, nil); status != http.StatusOK {
		t.Fatalf("the schedule is answered %d", status)
	}
	p.see("#campaign-state", "In progress")
	p.open(s.URL + "/campaigns")
	p.see(".list", "Spring <b>")
	p.look("campaigns")
	p.size(390, 800)
	p.open(s.URL + "/campaigns")
	p.click(".list a.stretch")
	p.see("h1", "Spring <b>")
	p.shot("campaign-phone", false)
	p.accessible("campaign-phone")
}
