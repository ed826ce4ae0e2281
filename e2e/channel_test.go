package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/internal/channel/whatsapp/graph/graphtest"
)

// choose picks an option of a select.
func (p *page) choose(selector, value string) {
	p.t.Helper()
	p.do(chromedp.SetValue(chromedp.CSS(selector), value),
		chromedp.Evaluate[chromedp.Void]("document.querySelector("+quote(selector)+
			").dispatchEvent(new Event('change', {bubbles: true}))"))
}

// Numbers, messages and webhooks in a browser: a number is bought and set up, messages are sent and answered, an event
// arrives.
func TestConsoleChannels(t *testing.T) {
	share(t, browser)
	platform := graphtest.New(t)
	platform.Set([]graphtest.Object{graphtest.Number("111", "+1 631-555-8151", "Acme", "CONNECTED", "GREEN",
		"TIER_1K")},
		[]graphtest.Object{graphtest.Template("t1", "order_ready", "APPROVED", "POSITIONAL",
			"Dear {{1}}, your order {{2}} is ready."),
			graphtest.Template("t2", "new", "PENDING", "POSITIONAL", "Soon.")})
	s, _ := thinking(t, "PARLEY_SIP_LISTEN=127.0.0.1:0", "PARLEY_WHATSAPP_TOKEN="+graphtest.Token, "PARLEY_WHATSAPP_BUSINESS_ID="+
		graphtest.BusinessID, "PARLEY_WHATSAPP_BASE_URL="+platform.URL,
		"PARLEY_WHATSAPP_APP_SECRET="+graphtest.AppSecret, "PARLEY_WHATSAPP_VERIFY_TOKEN="+graphtest.VerifyToken)
	own := fmt.Sprintf("/user/assistant/%d", s.Assistant)
	hook := serveLocal(t, http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprint(w, "thank you <b>")
	}))
	p := browse(t)
	p.scheme("light")
	p.signIn(s)
	for _, name := range []string{"numbers", "trunks", "messages", "whatsapp", "webhooks"} {
		p.open(s.URL + "/" + name)
		p.until("document.querySelector('.empty h1')")
		p.look(name + "-none")
	}

	p.buysNumber(s)
	if status := s.call(t, "PUT", own, map[string]any{"type": "inbound", "status": "active"}, nil); status != 200 {
		t.Fatal(status)
	}
	p.do(chromedp.Reload())
	p.fill("#f-nickname", "Shop line")
	p.choose("#f-assistant_id", fmt.Sprint(s.Assistant))
	p.click("#save")
	p.see("#notice", "Saved.")
	p.look("number")
	p.click("[popovertarget=ask-release]")
	p.see(".ask:popover-open", "goes back to the carrier")
	p.look("number-question")
	p.open(s.URL + "/numbers")
	p.see(".list", "Answered by Front desk")

	p.writes(s)
	p.hooks(s, hook, own)
	p.trunks(s)
	p.callerID(s)
	p.open(s.URL + "/numbers")
	p.look("numbers")

	s.command(t, "whatsapp", "assign", "--sender", "+16315558151", "--user", s.Email)
	p.open(s.URL + "/whatsapp")
	p.look("whatsapp")
	p.click(".list .stretch")
	p.choose("#f-assistant_id", fmt.Sprint(s.Assistant))
	p.click("form .primary")
	p.see("#notice", "Saved.")
	p.see(".list", "order_ready")
	p.look("sender")
}

func (p *page) buysNumber(s *program) {
	p.t.Helper()
	p.open(s.URL + "/numbers/buy")
	p.fill("#f-contains", "12x")
	p.expect("422")
	p.click(".find .primary")
	p.see("#e-contains", "must contain only digits")
	p.fill("#f-contains", "")
	p.choose("#f-country_code", "US")
	p.click(".find .primary")
	p.until("document.querySelectorAll('.list li').length >= 10")
	p.look("market")
	p.click(".list li:first-child [popovertarget]")
	p.see(".ask:popover-open", "You'll pay")
	p.look("market-question")
	p.click(".ask:popover-open .primary")
	p.see("#notice", "Number added.")
	p.click("#route [data-add]")
	p.click("#route [name='hours.0.days'][value=monday]")
	p.do(chromedp.SetValue(chromedp.CSS("#route [name='hours.0.from']"), "09:00"),
		chromedp.SetValue(chromedp.CSS("#route [name='hours.0.to']"), "17:30"))
	p.fill("#f-closed_dates", "2026-12-25")
	p.click("#save")
	p.see("#notice", "Saved")
	p.until("document.querySelector(\"[name='hours.0.to']\").value === '17:30'")
	p.do(chromedp.Evaluate[chromedp.Void]("document.getElementById('route').scrollIntoView()"))
	p.look("number-hours")
}

// writes sends a message, sees it arrive, and has one come in that the assistant answers.
func (p *page) writes(s *program) {
	p.t.Helper()
	p.open(s.URL + "/messages/new")
	p.fill("#f-to", "12")
	p.fill("#f-body", strings.Repeat("ä", 80)+"€ <script>alert(1)</script>")
	p.see("#cost", "1 segment.")
	p.do(chromedp.SendKeys(chromedp.CSS("#f-body"), strings.Repeat("😀", 3)))
	p.see("#cost", "2 segments.")
	p.until("document.activeElement.id === 'f-body'") // the writer can go on typing
	p.click("#save")
	p.see("#e-to", "Invalid to phone number")
	p.fill("#f-to", "+14155552671")
	p.see("#cost", "2 segments to (415) 555-2671: $")
	p.look("message")
	p.click("#save")
	p.see("#notice", "Sent.")
	p.see(".list", "<script>alert(1)</script>")
	p.see(".list .tag", "Delivered") // a moment later, without a click
	p.look("messages")
	p.choose("[name=status]", "failed")
	p.see("#results", "No message matches")
	p.open(s.URL + "/messages/outbox")
	p.see("#outbox", "<script>alert(1)</script>")
	p.fill("#f-from", "+14155552671")
	p.fill("#f-body", "Are you open?")
	p.click(".save .primary")
	p.see("#notice", "Message received.")
	waits(p.t, "the assistant's answer", func() bool {
		p.open(s.URL + "/messages/outbox")
		return eval[int](p, "document.querySelectorAll('#outbox li').length") == 2
	})
	p.look("outbox")
}

// hooks sets up endpoints and checks the deliveries to them.
func (p *page) hooks(s *program, hook, own string) {
	p.t.Helper()
	if status := s.call(p.t, "PUT", own, map[string]any{"conversation_ended_webhook_url": hook + "/ended"},
		nil); status != 200 {
		p.t.Fatal(status)
	}
	p.open(s.URL + "/webhooks/settings")
	p.fill("#f-url", "no url")
	p.click(".inline .primary")
	p.see("#e-url", "valid URL")
	p.fill("#f-url", hook+"/account")
	p.click(".inline .primary")
	p.see("#notice", "Saved.")
	p.click("#show-secret")
	p.until("document.querySelector('#secret').value.startsWith('whsec_')")
	first := eval[string](p, "document.querySelector('#secret').value")
	p.click("[popovertarget=ask-rotate]")
	p.see(".ask:popover-open", "24 hours")
	p.click(".ask:popover-open .primary")
	p.see("#notice", "also signed with the old one")
	p.click("#show-secret")
	p.until("document.querySelector('#secret') && document.querySelector('#secret').value !== " + quote(first))
	p.look("webhook-settings")
	p.click("form[action*='/test/'] button")
	p.see("#notice", "The test is on its way.")
	p.see("#delivery .tag", "Delivered") // without a reload
	p.see("#delivery", "200 OK")
	p.see("#delivery", "thank you <b>")
	p.see("#payload", `"event": "conversation.ended"`)
	p.look("delivery")
	p.click(".head button")
	p.see("#notice", "It is being sent again.")
	p.until("document.querySelectorAll('#delivery tbody tr').length === 2")
	p.open(s.URL + "/webhooks")
	p.see(".list", "conversation.ended")
	p.look("webhooks")
	p.choose("[name=status]", "failed")
	p.see("#results", "No delivery matches")
}

func (p *page) trunks(s *program) {
	p.t.Helper()
	p.open(s.URL + "/trunks/new")
	p.fill("#f-name", "Office")
	p.fill("#f-phone_number", "+4930901820")
	p.fill("#f-sip_address", "no host!")
	p.click("#save")
	p.see("#e-sip_address", "must be a host name")
	p.fill("#f-sip_address", "10.0.0.5:5060")
	p.fill("#f-sip_password", "s3cret")
	p.click("#save")
	p.see("#notice", "Created.")
	p.click("#check")
	p.see(".fresh", "PARLEY_SIP_LISTEN")
	p.look("trunk")
	p.open(s.URL + "/trunks")
	p.look("trunks")
}

func (p *page) callerID(s *program) {
	p.t.Helper()
	p.open(s.URL + "/numbers/caller-id")
	p.fill("#f-phone_number", "+4930901825")
	p.click("form .primary")
	p.see("h1", "Enter the code")
	p.look("caller-id")
	at := eval[string](p, "location.href")
	p.open(s.URL + "/messages/outbox")
	code := eval[string](p, "document.querySelector('#outbox .words-whole').innerText.slice(0, 6)")
	p.open(at)
	p.fill("#f-code", code)
	p.click("form .primary")
	p.see("#notice", "The number is verified.")
	// it disappears by itself, also with reduced motion
	p.until("getComputedStyle(document.querySelector('.notice')).visibility === 'hidden'")
}
