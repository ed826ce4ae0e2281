package e2e

import (
	"context"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"parley/internal/ai/aitest"
)

// tab opens one more tab in the browser's window, in the foreground.
func (p *page) tab() *page {
	p.t.Helper()
	ctx, _ := chromedp.NewContext(p.ctx, chromedp.WithNewWindow(false)) // it closes with the browser
	next := &page{t: p.t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		p.t.Fatalf("open a tab: %v", err)
	}
	next.front()
	return next
}

// front brings a tab to the foreground; the others of its window are hidden.
func (p *page) front() {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.BringToFront, cdp.Empty{})
		return err
	}))
	p.until("!document.hidden")
}

// A browser opens at most six connections to a server, for all tabs together. With eight tabs, each is served, hidden
// tabs close their event streams, and a tab that is shown again catches up on what happened meanwhile.
func TestConsoleManyTabs(t *testing.T) {
	s, model := thinking(t)
	conversation := s.converse(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/conversations/" + conversation)
	p.see(".mode", "The assistant replies.")
	var last *page
	for _, path := range []string{"/", "/conversations", "/calls", "/knowledge", "/", "/conversations",
		"/conversations/" + conversation} {
		last = p.tab()
		last.open(s.URL + path)
	}
	p.until("document.hidden")
	model.Script(aitest.Behaviour{Text: "We open at seven."})
	if status := s.call(t, "POST", "/conversations/"+conversation+"/messages",
		map[string]any{"message": "When do you open?"}, nil); status != 200 {
		t.Fatalf("the message is answered %d", status)
	}
	last.see("#thread .ai", "We open at seven.") // live, in the eighth
	p.until("!document.querySelector('#thread').innerText.includes('We open at seven.')")
	p.front()
	p.see("#thread .ai", "We open at seven.")
	if eval[int](p, "document.querySelectorAll('#thread .said').length") != eval[int](last,
		"document.querySelectorAll('#thread .said').length") {
		t.Error("the tabs show different conversations")
	}
}

// A message in the test chat appears at once, and as the server stored it before the model's first word. Taking over
// ends the reply in the middle.
func TestConsoleTestChatAtOnce(t *testing.T) {
	s, model := thinking(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10) + "/talk")
	p.click("#talk-begin .primary")
	p.until("location.pathname.startsWith('/conversations/')")
	model.Script(aitest.Behaviour{Fault: aitest.Stall})
	p.do(chromedp.Focus(chromedp.CSS(".composer textarea"), chromedp.NodeVisible),
		chromedp.KeyEvent("Is anybody <b>there</b>?"))
	if !eval[bool](p, `(() => {
		document.querySelector(".composer").requestSubmit();
		return [...document.querySelectorAll("#thread .customer .words")].some((w) => w.textContent === "Is anybody <b>there</b>?");
	})()`) {
		t.Error("the message does not stand there at once")
	}
	p.see("#thread .customer[id^=m-]", "Is anybody <b>there</b>?")
	p.until("document.querySelectorAll('#thread .customer').length === 1 && !document.querySelector('#typing').hidden")
	p.click("#mode button") // take over
	p.see("#mode", "A person replies")
	p.until("document.querySelector('#typing').hidden && !document.querySelector('.composer').dataset.busy")
	p.until("document.querySelector('.composer [data-refused]').hidden && !document.querySelector('#thread .wrong')")
	p.click("#mode button")
	p.see("#mode", "The assistant replies")

	gate := make(chan struct{})
	model.Script(aitest.Behaviour{Text: "One two three four five.", Gate: gate})
	p.do(chromedp.Focus(chromedp.CSS(".composer textarea"), chromedp.NodeVisible), chromedp.KeyEvent("Count."),
		chromedp.KeyEvent("\r"))
	p.until("document.querySelector('[data-forming] .words').textContent.startsWith('One')")
	p.click("#mode button")
	p.see("#mode", "A person replies")
	close(gate)
	p.until("document.querySelector('[data-forming]').hidden && !document.querySelector('.composer').dataset.busy")
	if said := eval[int](p, "document.querySelectorAll('#thread .ai').length"); said != 1 { // only the first words
		t.Errorf("the assistant has said %d things", said)
	}
}
