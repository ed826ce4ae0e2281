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

// before has a script run before those of every page.
func (p *page) before(script string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
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

// A browser opens at most six connections to a server, for all tabs together. Ten tabs share one: all of them change at
// once, whether they are seen or hidden, and when the one that has the connection is closed, another takes over.
func TestConsoleManyTabs(t *testing.T) {
	share(t, browser)
	s, model := thinking(t)
	conversation := s.converse(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/conversations/" + conversation)
	p.see(".mode", "The assistant replies.")
	tabs := []*page{p}
	for _, path := range []string{"/", "/conversations", "/calls", "/conversations/" + conversation, "/live-calls", "/conversations",
		"/keys", "/conversations/" + conversation, "/conversations/" + conversation} {
		next := p.tab()
		next.open(s.URL + path)
		tabs = append(tabs, next)
	}
	p.until("document.hidden")
	leaders := func() (n int) {
		for _, tab := range tabs {
			n += eval[int](tab, "Number(Boolean(window.parleyLive.leads()))")
		}
		return n
	}
	said := func(words string) {
		t.Helper()
		for i, tab := range tabs {
			switch at := eval[string](tab, "location.pathname"); at {
			case "/conversations/" + conversation:
				tab.see("#thread", words)
			case "/conversations":
				tab.see("#results", words)
			default:
				t.Logf("tab %d is at %s", i, at)
			}
		}
	}
	model.Script(aitest.Behaviour{Text: "We open at seven."})
	if status := s.call(t, "POST", "/conversations/"+conversation+"/messages",
		map[string]any{"message": "When do you open?"}, nil); status != 200 {
		t.Fatalf("the message is answered %d", status)
	}
	said("We open at seven.")
	if n := leaders(); n != 1 {
		t.Errorf("%d tabs have a connection", n)
	}
	if status := s.call(t, "POST", "/automate/conversations/"+conversation+"/disable-ai", nil, nil); status != 200 {
		t.Fatalf("handing over is answered %d", status)
	}
	s.say(t, conversation, "I want a person.")
	for _, tab := range tabs {
		tab.until("document.querySelector('#waiting').textContent.trim().startsWith('1')")
	}

	tabs[0].open("about:blank") // it had the connection
	tabs = tabs[1:]
	s.say(t, conversation, "Is nobody there?")
	said("Is nobody there?")
	if n := leaders(); n != 1 {
		t.Errorf("%d tabs have a connection, after one went", n)
	}
}

// Where a browser has no Web Locks, each tab has a connection of its own, and lets go of it while it is hidden.
func TestConsoleTabsWithoutLocks(t *testing.T) {
	share(t, browser)
	s, _ := thinking(t)
	conversation := s.converse(t)
	p := browse(t)
	p.before("Object.defineProperty(Navigator.prototype, 'locks', { get: () => undefined });")
	p.signIn(s)
	p.open(s.URL + "/conversations/" + conversation)
	p.see(".mode", "The assistant replies.")
	if status := s.call(t, "POST", "/user/conversations/"+conversation+"/disable-ai", nil, nil); status != 200 {
		t.Fatalf("taking over is answered %d", status)
	}
	p.see(".mode", "is replying")
}

// A browser that was asked to says when a conversation begins to need a person: by a sound, and by a notification. One
// that was not asked says nothing.
func TestConsoleAlarms(t *testing.T) {
	share(t, browser)
	s, _ := thinking(t)
	conversation := s.converse(t)
	p := browse(t)
	p.before(`window.told = []; window.asked = 0; window.sounds = 0;
		window.Notification = class { static permission = "default"; static async requestPermission() { window.asked++; return this.permission = "granted"; }
			constructor(title, how) { window.told.push(title + ": " + how.body); } };
		const Sound = window.AudioContext; window.AudioContext = class extends Sound { constructor() { super(); window.sounds++; } };`)
	p.signIn(s)
	p.open(s.URL + "/conversations?show=all")
	p.see("[data-alarm=notice][aria-pressed=false]", "Notifications")
	waits := func(id string) {
		t.Helper()
		s.call(t, "POST", "/automate/conversations/"+id+"/disable-ai", nil, nil)
		s.say(t, id, "A person, please.")
	}
	waits(conversation)
	p.until("document.querySelector('#waiting').textContent.trim().startsWith('1')")
	if n := eval[int](p, "window.told.length + window.sounds + window.asked"); n != 0 {
		t.Errorf("nobody asked for it, and it was heard or seen %d times", n)
	}
	p.click("[data-alarm=notice]")
	p.see("[data-alarm=notice][aria-pressed=true]", "Notifications")
	p.click("[data-alarm=sound]")
	p.see("[data-alarm=sound][aria-pressed=true]", "Sound")
	p.until("window.sounds === 1") // as it will be
	p.look("inbox-alarms")
	waits(s.converse(t))
	p.until("window.told.join() === 'A customer waits for a person: 2 conversations need a person.'")
	p.until("window.sounds === 2")
	p.click("[data-alarm=notice]")
	p.see("[data-alarm=notice][aria-pressed=false]", "Notifications")
	waits(s.converse(t))
	p.until("window.sounds === 3")
	if n := eval[int](p, "window.told.length"); n != 1 {
		t.Errorf("%d notifications, though they are off", n)
	}
	s.call(t, "POST", "/automate/conversations/"+conversation+"/enable-ai", nil, nil) // one fewer is no reason to ring
	p.until("document.querySelector('#waiting').textContent.trim().startsWith('2')")
	p.do(chromedp.Evaluate[chromedp.Void]("window.quiet = false, navigator.locks.request('parley-ring', " +
		"() => { window.quiet = true }), undefined"))
	p.until("window.quiet")
	if n := eval[int](p, "window.sounds"); n != 3 {
		t.Errorf("%d sounds, though no conversation has begun to need a person", n)
	}
}

// A message in the test chat appears at once, and as the server stored it before the model's first word. Taking over
// ends the reply in the middle.
func TestConsoleTestChatAtOnce(t *testing.T) {
	share(t, browser)
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
	eventually(t, "the stalling model is asked", func() bool { return len(model.Requests()) == 1 }) // else the next message meets it
	p.click("#mode button")                                                                         // take over
	p.see("#mode", "is replying")
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
	p.see("#mode", "is replying")
	close(gate)
	p.until("document.querySelector('[data-forming]').hidden && !document.querySelector('.composer').dataset.busy")
	if said := eval[int](p, "document.querySelectorAll('#thread .ai').length"); said != 1 { // only the first words
		t.Errorf("the assistant has said %d things", said)
	}
}
