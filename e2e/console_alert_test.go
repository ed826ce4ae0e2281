package e2e

import (
	"strings"
	"testing"

	"parley/internal/mail/mailtest"
)

// An alert is made with three clicks from any page. Within a minute it is raised, its e-mail leads to its page, and
// that to the list behind it.
func TestConsoleAlerts(t *testing.T) {
	share(t, browser)
	post := mailtest.Serve(t)
	s := start(t, "PARLEY_SIP_LISTEN=off", "PARLEY_SMTP_URL=smtp://"+post.Address+"?tls=off", "PARLEY_SMTP_FROM=parley@example.com")
	p := browse(t)
	p.signIn(s)
	p.click("#nav a[href='/alerts']") // one
	p.see("h1", "Know when something goes wrong")
	p.look("alerts-none")
	p.click("a[href='/alerts/new']") // two
	p.see("h1", "New alert")
	p.look("alert-new")
	p.click(".ranges a[href$='kind=no_calls']")
	p.see("main", "Counts from")
	p.look("alert-new-hours")
	p.click(".ranges a[href$='kind=balance_below']")
	p.expect("422")
	p.fill("#f-threshold", "nothing")
	p.click("#save")
	p.see(".mistakes", "check one field")
	p.fill("#f-threshold", "100000")
	p.fill("#f-name", "Fill it up <b>")
	p.click("#save") // three, where the proposal is right
	p.until("/^\\/alerts\\/\\d+$/.test(location.pathname)")
	at := eval[string](p, "location.pathname")
	p.see("h1", "Fill it up <b>")
	p.see("#alert-state", "Raised") // by itself
	p.look("alert")

	p.click("#send-test")
	p.see("main", "The test is on its way")
	p.look("alert-tested")
	sent := map[string]string{}
	for _, m := range post.Wait(2) {
		sent[m.Header.Get("Subject")] = m.Text
	}
	for _, subject := range []string{"An alert of your account was raised", "A test of an alert"} {
		lines := strings.Fields(sent[subject])
		if len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], at) {
			t.Fatalf("%q is %q", subject, sent[subject])
		}
		p.open(lines[len(lines)-1])
		p.see("h1", "Fill it up <b>")
	}
	p.click("header a[href='/ledger']")
	p.see("h1", "Ledger")
	p.open(s.URL + "/alerts")
	p.see(".list .tag", "Raised")
	p.look("alerts")
	p.open(s.URL + at)
	p.click("#f-active")
	p.click("#save")
	p.see("#alert-state", "Off")
	p.click("[popovertarget=ask-delete]")
	p.click("#ask-delete .primary")
	p.see("h1", "Know when something goes wrong")
}
