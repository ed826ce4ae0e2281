package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/ai/aitest"
)

// caller makes the first assistant one that calls people, with a hostile name.
func (s *program) caller(t *testing.T) {
	t.Helper()
	var found struct {
		Data []struct {
			PhoneNumber string `json:"phone_number"`
		}
	}
	var bought struct{ Data struct{ ID int64 } }
	s.call(t, "GET", "/user/phone-numbers/search?country_code=US", nil, &found)
	if status := s.call(t, "POST", "/user/phone-numbers/purchase",
		map[string]any{"phone_number": found.Data[0].PhoneNumber}, &bought); status != http.StatusCreated {
		t.Fatalf("the number is answered %d", status)
	}
	status := s.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(s.Assistant, 10),
		map[string]any{"name": "<img src=x onerror=alert(1)>", "type": "outbound", "status": "active",
			"record": true, "allow_interruptions": false,
			"phone_number_id": bought.Data.ID, "initial_message": "Good morning {{who}}, this is {{company}}.",
			"variables": map[string]any{"company": "Acme Bakery"},
			"post_call_schema": []any{map[string]any{"name": "summary", "type": "string",
				"description": "What it was about"}}}, nil)
	if status != http.StatusOK {
		t.Fatalf("the assistant is answered %d", status)
	}
}

// A user has an assistant call, reads along, hangs up, listens to the recording, and sees the result.
func TestConsoleCalls(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "pocketsphinx_batch")
	s, model := thinking(t, "PARLEY_SIP_LISTEN=off")
	// the reply is long, so that nobody hangs up meanwhile
	model.Usually(aitest.Behaviour{Text: "Your order is ready at four o'clock. " +
		strings.Repeat("We are at the corner of Market Street and the old town hall. ", 2)})
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/calls")
	p.see("h1", "No calls yet")
	p.shot("calls-none", false)
	s.caller(t)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	p.click(".actions a[href$='/call']")
	p.see("h1", "Call somebody")
	p.look("call-new")
	p.expect("422")
	p.fill("#f-phone_number", "12")
	p.click(".call-form .primary")
	p.see("#e-phone_number", "phone number")
	p.fill("#f-phone_number", "+1 415 555 0123")
	p.fill("#f-variables\\.0", "Ana <b>")
	p.click(".call-form .primary")
	p.until("/^\\/calls\\/\\d+$/.test(location.pathname)")

	// Live: it rings, is answered, and the transcript appears by itself.
	p.see("#call-state", "In progress")
	p.see(".said.ai .words", "Good morning Ana <b>, this is Acme Bakery.")
	p.until("document.querySelector('.said.customer:not(.partial) .words')")
	p.see(".said.ai .words", "Your order is ready at four")
	p.until("document.querySelector('[data-since]').innerText !== '0:00'")
	p.shot("call-live", false)
	p.accessible("call-live")
	model.Usually(aitest.Behaviour{Text: `{"sentiment":"positive","outcome":"success","score":9,"summary":"Ana asked for <b>her order</b>."}`})
	p.click("[popovertarget=ask-hangup]")
	p.click("#ask-hangup .primary")
	p.see("#call-state", "It was hung up from the console")
	p.see("#facts", "positive")
	p.see("#facts", "Ana asked for <b>her order</b>.")
	p.see("#facts", "min × $")

	// The recording's waveform is drawn, and follows the transcript.
	p.until("document.querySelector('[data-wave]') && !document.querySelector('[data-wave]').hidden && " +
		"document.querySelector('audio').readyState > 0")
	p.until(`(() => { const c = document.querySelector('canvas'); return c.width > 100 && c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0) })()`)
	p.click(".said.customer [data-seek]")
	p.until(`(() => { const a = document.querySelector('audio'), t = document.querySelector('.said.customer'); return !a.paused && a.currentTime > Number(t.dataset.at) && t.hasAttribute('aria-current') })()`)
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('audio').pause()"))
	p.do(chromedp.Focus(chromedp.CSS("[data-wave] input")), chromedp.KeyEvent(kb.Home))
	p.until("document.querySelector('audio').currentTime < 0.2")
	p.click(".said.ai:nth-of-type(2) .words, .said.ai .words")
	p.until("document.querySelector('audio').currentTime > 0 && !document.querySelector('audio').paused")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('audio').pause()"))
	p.see("#latency-t", "Latency")
	p.look("call")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#latency-t').scrollIntoView()"))
	p.shot("call-latency", false)

	// A busy line, and the list.
	p.click("[href^='/calls/new?to=']")
	p.until("document.querySelector('#f-phone_number').value === '+14155550123'")
	p.fill("#f-phone_number", "+14155550003")
	p.click(".call-form .primary")
	p.see("#call-state", "The line was busy.")
	p.see("main", "Nothing was said.")
	p.shot("call-busy", false)
	p.open(s.URL + "/calls")
	p.until("document.querySelectorAll('.list li').length === 2")
	p.look("calls")
	p.do(chromedp.SetValue(chromedp.CSS("select[name=status]"), "busy"),
		chromedp.Evaluate[chromedp.Void]("document.querySelector('select[name=status]').dispatchEvent(new Event('change', {bubbles: true}))"))
	p.until("document.querySelectorAll('.list li').length === 1 && location.search.includes('status=busy')")
	p.click(".list a")
	p.click("[popovertarget=ask-delete]")
	p.click("#ask-delete .primary")
	p.see("#notice", "Deleted.")

	// The overview updates itself when the API makes a call.
	p.open(s.URL + "/")
	today := "Number(document.querySelectorAll('.sums dd')[2].innerText)"
	before := eval[int](p, today)
	if status := s.call(t, "POST", "/user/make_call",
		map[string]any{"assistant_id": s.Assistant, "phone_number": "+14155550003"},
		nil); status != http.StatusOK && status != http.StatusCreated {
		t.Fatalf("the call is answered %d", status)
	}
	p.until(fmt.Sprintf("%s === %d", today, before+1))
	if n := p.asked("alert"); n > 0 {
		t.Errorf("a name or a transcript came alive: %d alerts", n)
	}
}
