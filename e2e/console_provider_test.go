package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/internal/ai/aitest"
	"parley/internal/provider/anthropic/anthropictest"
)

// From the first sign-in to a real model's answer takes one pasted key and at most four clicks.
func TestConsoleFirstKey(t *testing.T) {
	share(t, browser)
	claude := anthropictest.New(t)
	claude.Usually(aitest.Behaviour{Text: "Good morning from a real model."})
	s := start(t, "PARLEY_ANTHROPIC_MODEL="+anthropictest.Quick, "PARLEY_SIP_LISTEN=off")
	p := browse(t)
	p.signIn(s)
	p.see("#part-model .wrong", "No language model is connected")
	p.see("#part-jobs .tag", "Ready")
	p.see("#part-telephone", "PARLEY_SIP_LISTEN")
	p.look("overview-setup")
	clicks := 0
	click := func(selector string) {
		clicks++
		p.click(selector)
	}
	click("#connect")
	p.expect("422")
	const box = "#key-server-anthropic"
	p.fill("#base-anthropic", claude.URL) // otherwise the real Anthropic would be asked
	p.fill(box, "wrong-key-0123456789")
	p.do(chromedp.KeyEvent(kb.Enter)) // with the keyboard alone
	p.see("#server-anthropic [role=alert]", "Anthropic refuses this key")
	p.look("providers-refused")
	p.fill(box, anthropictest.Key)
	click("#server-anthropic button[value=save]")
	p.see("#server-anthropic .tag", "Connected")
	p.look("providers")
	click("#think")
	p.see("h1", "Test chat")
	click("#talk-begin button[type=submit]")
	p.fill(".composer textarea", "Hello")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.see(".said.ai .words", "Good morning from a real model.")
	if clicks > 4 {
		t.Errorf("it takes %d clicks", clicks)
	}
	p.open(s.URL + "/")
	p.see("#part-model .tag", "Ready")
	p.see("#part-model", "Anthropic")
	if eval[bool](p, "Boolean(document.querySelector('#connect'))") {
		t.Error("the overview still says that there is no model")
	}
	said, _ := s.operate(t, "doctor")
	if want := "answers; " + anthropictest.Quick + " think (key entered in the console)"; !strings.Contains(said, want) {
		t.Errorf("the doctor says\n%s\nwant %q", said, want)
	}
}
