package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/audio"
	"parley/internal/provider/gptlive/gptlivetest"
)

// The editor as a new user meets it: the prompt is there at once, each section is one click away, and a draft is saved
// without one.
func TestConsoleEditor(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	one := s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10)
	p.open(one)
	inSight := func(selector string) string {
		return fmt.Sprintf("(() => { const r = document.querySelector(%s).getBoundingClientRect(); "+
			"return r.top >= 0 && r.top < innerHeight - 60; })()", quote(selector))
	}
	for _, selector := range []string{"#f-system_prompt", "#f-initial_message", ".index"} {
		if !eval[bool](p, inSight(selector)) {
			t.Errorf("%s can't be seen at once", selector)
		}
	}

	// One click leads to a section, and the index stays in sight. A second one opens a fold.
	p.click(".index a[href='#manners']")
	p.until(inSight("#manners") + " && " + inSight(".index") + " && document.querySelector('.index [aria-current]').hash === '#manners'")
	const fold = "#manners .fold:has(#f-interrupt_sensitivity)"
	p.see(fold+" summary", "Interruption sensitivity 0.5")
	p.until("document.querySelector('#f-interrupt_sensitivity').checkVisibility() === false")
	p.click(fold + " summary")
	p.fill("#f-interrupt_sensitivity", "9")

	// The keyboard saves; what is wrong in a fold is shown.
	p.expect("422")
	save := func() {
		p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.dispatchEvent(
			new KeyboardEvent("keydown", {key: "s", ctrlKey: true, bubbles: true, cancelable: true}))`))
	}
	save()
	p.until("document.querySelector('.mistakes, [data-problems]') && document.querySelector('#f-interrupt_sensitivity').checkVisibility()")
	p.fill("#f-interrupt_sensitivity", "0.7")
	save()
	p.see("#notice", "The draft is saved.")
	p.see(fold+" .set", "0.7")

	p.recordsMessage()
	p.open(one)

	// A variable without a value is marked where it stands.
	p.fill("#f-initial_message", "Hello {{company}}, {{nobody}}.")
	p.until("[...document.querySelectorAll('.copy-of mark.missing')].map(m => m.textContent).join() === '{{nobody}}'")

	// The widget's preview follows what is typed, and asks the server for nothing else.
	p.click(".index a[href='#widget']")
	p.fill("[id='f-widget_settings.title']", "Ask the baker")
	const preview = "document.querySelector('[data-widget-preview] iframe').contentDocument?.querySelector('parley-widget')?.shadowRoot"
	p.until(preview + "?.querySelector('h2')?.textContent === 'Ask the baker'")
	p.until(preview + "?.querySelector('.body')?.textContent.startsWith('Hello Acme')")
	save()
	p.until("!document.querySelector('form.touched')")

	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		for _, width := range []int64{1280, 390} {
			p.size(width, 844)
			p.open(one)
			p.accessible(fmt.Sprint("editor ", scheme, " ", width))
			if over := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
				t.Errorf("at %d px the editor is %d px too wide", width, over)
			}
		}
	}
}

// recordsMessage uploads a message for voicemails from the editor, hears it, and removes it.
func (p *page) recordsMessage() {
	file := filepath.Join(p.t.TempDir(), "message.wav")
	wav := append(audio.AppendWAVHeader(nil, 8000, 1, 32000), make([]byte, 32000)...)
	if err := os.WriteFile(file, wav, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.click("#manners .fold:has(#recorded) summary")
	link := chromedp.CSS("#recorded a")
	p.do(chromedp.Focus(link, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	p.see("h1", "Recorded voicemail message")
	p.do(chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{file}))
	p.click("main form button[type=submit]")
	p.see("#notice", "The recording is saved.")
	p.see("#recorded", "0:02")
	p.until("document.querySelector('#recorded audio').duration === 2")
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.size(1280, 844)
		p.shot("voicemail-"+scheme, false)
		p.size(390, 844)
		p.accessible("voicemail on a phone, " + scheme)
		p.shot("voicemail-phone-"+scheme, false)
		if over := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			p.t.Errorf("the page of the recorded message is %d px too wide", over)
		}
	}
	p.size(1280, 844)
	p.click("[popovertarget=ask-remove]")
	p.click("#ask-remove button[type=submit]")
	p.see("#notice", "The recording is removed.")
}

// A tool is tried from its page: open it, type, one click.
func TestConsoleToolTried(t *testing.T) {
	share(t, browser)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"ready_at":"4 pm","number":%q}`, r.URL.Query().Get("number"))
	}))
	t.Cleanup(far.Close)
	s := start(t, "PARLEY_EGRESS_ALLOW=127.0.0.0/8")
	var made struct{ Data struct{ ID int64 } }
	s.call(t, "POST", "/user/tools", map[string]any{"name": "order_status", "description": "Says when an order is ready.", "method": "GET",
		"endpoint": far.URL, "headers": []any{map[string]any{"name": "X-Key", "value": "hidden-value"}},
		"schema": []any{map[string]any{"name": "number", "type": "string", "description": "The order's number"}}}, &made)
	p := browse(t)
	p.signIn(s)
	p.open(fmt.Sprintf("%s/tools/%d", s.URL, made.Data.ID))
	p.fill("#try-number", "4711")
	p.click("#try-send")
	p.see("#tried", "200 OK")
	p.see("#tried", "X-Key: ••••••••")
	p.see("#tried [data-told]", `{"ready_at":"4 pm","number":"4711"}`)
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.size(1280, 900)
		p.accessible("tool " + scheme)
		p.size(390, 844)
		p.accessible("tool on a phone, " + scheme)
		p.shot("tool-tried-"+scheme, true)
	}
}

// A lead is added by hand in two clicks from the campaign's page, and changed in two.
func TestConsoleLeadByHand(t *testing.T) {
	share(t, browser)
	s := start(t)
	s.assistant(t, map[string]any{"type": "outbound", "variables": map[string]any{"customer_name": ""}})
	var made struct{ Data struct{ ID int64 } }
	s.call(t, "POST", "/user/campaigns", map[string]any{"name": "Spring", "assistant_id": s.Assistant}, &made)
	p := browse(t)
	p.signIn(s)
	at := fmt.Sprintf("%s/campaigns/%d", s.URL, made.Data.ID)
	p.open(at)
	p.click("a[href$='/leads/new']")
	p.fill("#f-phone_number", "+14155550123")
	p.fill("[name='variables.0.value']", "Ana")
	p.click("#save")
	p.see("#notice", "Saved.")
	p.see("main .list", "Ana")
	p.click("main .list .over")
	p.see("h1", "Lead")
	p.fill("[name='variables.0.value']", "Ben")
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		for _, width := range []int64{1280, 390} {
			p.size(width, 844)
			p.accessible(fmt.Sprint("lead ", scheme, " ", width))
		}
	}
	p.shot("lead", false)
	p.click("#save")
	p.see("main .list", "Ben")
	p.accessible("campaign with a lead")
	p.shot("campaign-lead", false)
}

// Fields that can't act are greyed out as soon as a model is chosen that decides by itself when it speaks.
func TestConsoleDecidingModel(t *testing.T) {
	share(t, browser)
	g := gptlivetest.New(t)
	s := start(t, "PARLEY_OPENAI_REALTIME_BASE_URL="+g.URL, "PARLEY_OPENAI_REALTIME_API_KEY="+gptlivetest.Key,
		"PARLEY_OPENAI_REALTIME_MODEL=gpt-realtime-test", "PARLEY_OPENAI_LIVE_MODEL="+gptlivetest.Model)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	p.choose("#f-mode", "multimodal")
	p.until("document.querySelector('#f-mode').value === 'multimodal' && document.querySelector('#n-voice_stability').textContent !== ''")
	pick := func(code string) {
		p.choose("#f-multimodal_model_id", eval[string](p,
			"[...document.querySelectorAll('#f-multimodal_model_id option')].find(o => o.textContent.includes("+quote(code)+")).value"))
	}
	const grey = "getComputedStyle(document.querySelector('#f-endpoint_type')).color !== " +
		"getComputedStyle(document.querySelector('#f-mode')).color"
	pick(gptlivetest.Model)
	p.until("document.querySelector('#n-endpoint_type').textContent.startsWith('No effect') && " + grey)
	p.click(".index a[href='#manners']")
	for _, fold := range []string{"#f-interrupt_sensitivity", "#f-endpoint_type"} {
		p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector(" + quote(fold) + ").closest('details')?.setAttribute('open', '')"))
	}
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.accessible("deciding model " + scheme)
	}
	p.shot("deciding-model", true)
	pick("gpt-realtime-test")
	p.until("document.querySelector('#n-endpoint_type').textContent === '' && !(" + grey + ")")
}
