package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/internal/ai/aitest"
)

// Somebody sees yesterday's cost per assistant in two clicks from the start page, opens the calls behind a figure,
// and finds what was said.
func TestConsoleAnalytics(t *testing.T) {
	share(t, browser)
	s, model := thinking(t, "PARLEY_SIP_LISTEN=off")
	model.Usually(aitest.Behaviour{Text: "We bake cheesecakes on Fridays."})
	s.caller(t)
	for range 2 {
		if status := s.call(t, "POST", "/user/make_call", map[string]any{"phone_number": "+14155550003",
			"assistant_id": s.Assistant}, nil); status != http.StatusOK {
			t.Fatalf("make_call is answered %d", status)
		}
	}
	var made struct {
		ID string `json:"conversation_id"`
	}
	s.call(t, "POST", "/conversations", map[string]any{"assistant_id": s.AssistantUUID, "type": "widget"}, &made)
	s.call(t, "POST", "/conversations/"+made.ID+"/messages", map[string]any{"message": "Do you bake cakes with cheese?"}, nil)
	s.until(t, "/user/analytics?range=today", func(got analyzed) bool { return got.Total.Calls == 2 && got.Total.Messages == 1 })

	p := browse(t)
	p.signIn(s)
	p.click("#nav a[href='/analytics']") // one
	p.see("h1", "Analytics")
	p.click(".ranges a[href='/analytics?range=yesterday']") // two
	p.see(".span-of", time.Now().UTC().AddDate(0, 0, -1).Format("Monday, January 2"))
	p.see("#by-assistant", "Cost per assistant")
	p.look("analytics-none")
	p.click(".ranges a[href='/analytics?range=today']")
	p.see(".figures-table", "<img src=x onerror=alert(1)>")
	p.look("analytics")
	// A date is typed digit by digit, though each changes what is shown, and the keyboard stays where it is.
	day := time.Now().UTC().AddDate(0, 0, -1)
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#results').dataset.old = 'yes', undefined"),
		chromedp.Focus(chromedp.CSS("input[name=date_from]"), chromedp.NodeVisible),
		chromedp.KeyEvent(day.Format("0102")+"2")) // so far it is in the year 2
	p.until("!document.querySelector('#results').dataset.old")
	p.do(chromedp.KeyEvent(day.Format("2006")[1:]))
	p.see(".span-of", day.Format("January 2, 2006")+" to ")
	p.until("document.activeElement.name === 'date_from' && !document.querySelector('.ranges [aria-current]')")
	p.open(s.URL + "/analytics?range=90d")
	p.look("analytics-90")
	p.click(".shares a[href*='ended_reason=busy']")
	p.see("h1", "Calls")
	p.until("document.querySelectorAll('#results .list li').length === 2")
	p.look("calls-filtered")
	// Filters are kept: two clicks and a name.
	p.click("#saved a[href^='/filters/new']") // one
	p.see("h1", "Save filters")
	p.look("filter-new")
	p.fill("#f-name", "Busy <b>")
	p.click("#save") // two
	p.see("#saved a[aria-current]", "Busy <b>")
	p.do(chromedp.SetValue(chromedp.CSS("select[name=type]"), "inbound"))
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('select[name=type]').dispatchEvent(new Event('change', {bubbles: true}))"))
	p.see("#saved", "Save these filters") // it is another filter now
	p.open(s.URL + "/calls")
	p.click("#saved a[href*='ended_reason=busy']")
	p.until("document.querySelectorAll('#results .list li').length === 2")
	p.look("calls-saved")
	p.click("#saved a[href='/filters']")
	p.see("h1", "Saved filters")
	p.look("filters")
	p.fill(".rename input", "Engaged")
	p.click(".rename button")
	p.see(".list", "Engaged")
	p.click("[popovertarget^=ask-filter]")
	p.click(".ask .primary.danger")
	p.see("main", "There are none yet.")
	p.open(s.URL + "/conversations")
	p.fill("input[name=search]", "cheesecake")
	p.see(".list mark", "cheesecakes")
	p.look("search-transcripts")
}

// analyzed is what analytics say.
type analyzed struct {
	Total struct{ Calls, Messages int }
}

// until asks for something until it is as it should be.
func (s *program) until(t *testing.T, path string, ok func(analyzed) bool) {
	t.Helper()
	var got analyzed
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if s.call(t, "GET", path, nil, &got); ok(got) {
			return
		}
	}
	t.Fatalf("%s is %+v", path, got)
}
