package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// A user signs in, is shown what to do next, speaks with the assistant through the browser's microphone, and finds the
// call on the start page.
func TestConsoleOverviewAndTestCall(t *testing.T) {
	share(t, recognizer)
	need(t, "flite", "sox", "pocketsphinx_batch")
	s, model := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0", "PARLEY_EGRESS_ALLOW=127.0.0.0/8")
	hours := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"opens":"<b>7</b>"}`) }))
	t.Cleanup(hours.Close)
	s.call(t, "POST", "/user/tools", map[string]any{"name": "opening_hours", "description": "Says when the shop opens.", "method": "GET",
		"endpoint": hours.URL}, nil)
	s.assistant(t, map[string]any{"status": "inactive", "initial_message": "Hello {{customer_name}}.",
		"system_prompt": "Answer {{customer_name}}.", "tool_ids": []int{1}})
	model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c1", Name: "opening_hours", Arguments: `{"day":"tomorrow"}`}}})
	model.Usually(aitest.Behaviour{Text: "We open at <b>seven</b>."})
	p := browse(t, fakeMicrophone(microphone(t, 4, "what time do you open tomorrow", 60))...)
	p.signIn(s)
	p.see(".steps", "Talk to your assistant")
	p.look("overview-none")
	p.click(".steps .primary")
	p.see("h1", "Front desk")
	p.see(".test-cost", "Speaking costs $0.06 a minute")
	p.fill("#talk-begin input:not([type=hidden])", "Ana")
	p.do(chromedp.Evaluate[chromedp.Void](`window.states = [];
		new MutationObserver(() => states.push(document.querySelector("[data-call-state]").textContent)).observe(
			document.querySelector("[data-call-state]"), {childList: true})`))
	p.click("[data-call-start]")
	p.see("[data-call-state]", "You can speak now")
	p.see("[data-call-words] .ai", "Hello Ana.")
	p.see("[data-call-words] .customer", "open")
	p.see("[data-call-words] .ai", "We open at <b>seven</b>.")
	p.see("[data-call-words] .ai header", " ms")
	p.see("[data-call-words] .customer + .tool-call", "opening_hours")
	p.until("['Listening…', 'Thinking…', 'Speaking…'].every((state) => states.includes(state))")
	p.until("document.activeElement.matches('[data-call-mute]')") // with the keyboard alone
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("document.querySelector('[data-call-mute]').ariaPressed === 'true'")
	p.do(chromedp.KeyEvent(kb.Tab))
	p.do(chromedp.KeyEvent(kb.Enter))
	p.see("[data-call-state]", "The call has ended.")
	p.until("document.activeElement.matches('[data-call-again]')")
	p.until("document.querySelector('[data-call-record]').checkVisibility()")
	p.click("[data-call-words] .tool-call summary")
	p.see("[data-call-words] .tool-call", `"day": "tomorrow"`)
	p.see("[data-call-words] .tool-call", `"opens": "<b>7</b>"`)
	p.look("test-call")
	p.size(390, 844)
	p.click("[popovertarget=talk]")
	p.see("[data-call-words] .ai", "We open at")
	p.shot("test-call-sheet", false)
	p.accessible("test call on a phone")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.size(1280, 900)
	c := s.lastCall(t, "completed")
	if c.EndedReason != "customer_hangup" || c.InputVariable["customer_name"] != "Ana" || c.TotalCost <= 0 {
		t.Errorf("%+v", c)
	}
	p.click("[data-call-back]")
	p.until("document.querySelector('[data-call]').hidden && !document.querySelector('[data-talk-in]').hidden")

	// On a phone the call is in a sheet: closing the sheet hangs up.
	p.size(390, 844)
	p.click("[popovertarget=talk]")
	p.click("[data-call-start]")
	p.see("[data-call-state]", "You can speak now")
	s.lastCall(t, "in-progress")
	p.do(chromedp.KeyEvent(kb.Escape))
	s.lastCall(t, "completed")
	p.click("[popovertarget=talk]")
	p.see("[data-call-state]", "The call ended when you closed this.")
	p.click("[data-call-back]")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.size(1280, 900)

	// Leaving the editor hangs up.
	p.click("[data-call-start]")
	p.see("[data-call-state]", "You can speak now")
	s.lastCall(t, "in-progress")
	p.open(s.URL + "/")
	s.lastCall(t, "completed")
	p.open(s.URL + "/")
	p.see(".chart", "Reply latency")
	p.see(".chart", "p50 ")
	p.look("overview")
	p.until("[...document.querySelectorAll('.sums dd')][2].innerText === '3'")
}

// When the microphone is denied, the page says so and how to fix it. The same goes for a call that the balance doesn't
// cover.
func TestConsoleTestCallThatCantBe(t *testing.T) {
	share(t, browser)
	s, _ := thinking(t, "PARLEY_WEBRTC_LISTEN=127.0.0.1:0")
	one := s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10)
	p := browse(t, "deny-permission-prompts", "use-fake-device-for-media-stream")
	p.signIn(s)
	p.open(one)
	p.click("[data-call-start]")
	p.see("[data-call-state].wrong", "The microphone is blocked. Allow it for this page")
	p.look("test-call-denied")
}

// A voice can be previewed beside its name, and the widget's snippet can be copied.
func TestConsoleVoicePreviewAndSnippet(t *testing.T) {
	share(t, browser)
	need(t, "flite")
	s, _ := thinking(t)
	s.assistant(t, map[string]any{"status": "active"})
	one := s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10)
	p := browse(t, "autoplay-policy=no-user-gesture-required")
	p.signIn(s)
	p.open(one)
	p.until("(window.played = [], HTMLMediaElement.prototype.play = new Proxy(HTMLMediaElement.prototype.play, { apply: (play, audio, " +
		"args) => { played.push(audio); return play.apply(audio, args); } }), true)")
	p.click("[data-preview]")
	p.until("played.length === 1 && played[0].currentTime > 0.2")
	p.until("played[0].ended && document.querySelector('[data-preview]').ariaPressed === 'false'")
	p.click("[data-preview]")
	p.until("played.length === 2 && played[1].currentTime > 0")
	p.click("[data-preview]")
	p.until("played[1].paused")
	p.shot("editor-voice-preview", false)

	line := eval[string](p, "document.querySelector('#snippet').value")
	if !strings.HasPrefix(line, `<script src="`+s.URL+`/embed.js" data-assistant-id="`) {
		t.Errorf("the line is %s", line)
	}
	p.click("[data-copy=snippet]")
	p.see("[data-copy=snippet]", "Copied")
	p.shot("editor-snippet", false)
	demo := eval[string](p, "document.querySelector(\"a[href^='/widget-demo']\").href")
	res, err := http.Get(demo)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the demo page is answered %d", res.StatusCode)
	}
	p.open(demo)
	p.until("document.querySelector('script[data-assistant-id]')")
}

// An assistant is exported to a file and imported elsewhere, and the page says what could not be carried over.
func TestConsoleExportAndImport(t *testing.T) {
	share(t, browser)
	s, _ := thinking(t)
	s.assistant(t, map[string]any{"name": "Front <i>desk</i>", "status": "active"})
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	file := eval[string](p, "document.querySelector('a[download]').href")
	send := func(change string) {
		p.open(s.URL + "/assistants/new")
		p.until(`(() => {
			if (!window.sent) window.sent = fetch(` + quote(file) + `).then((r) => r.text()).then((text) => {
				const d = new DataTransfer();
				d.items.add(new File([` + change + `], "assistant.yaml", { type: "application/yaml" }));
				document.querySelector("#f-file").files = d.files;
			});
			return document.querySelector("#f-file").files.length;
		})()`)
		p.click("form[action='/assistants/import'] button")
	}
	p.expect("422")
	send("'<html>'")
	p.see("#e-file", "This is not an assistant file")
	p.look("import-refused")
	send(`text.replace("llm_model: thinker", "llm_model: deep-thought")`)
	p.see("h1", "“Front <i>desk</i>” is imported")
	p.see(".left-out", "The language model deep-thought: it is not available here")
	p.look("imported")
	p.click(".head .primary")
	p.see("h1", "Front <i>desk</i>")
	p.until("document.querySelector('#f-status').value === 'inactive'")
}
