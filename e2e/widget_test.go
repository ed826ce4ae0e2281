package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"parley/internal/ai/aitest"
)

// website is a customer's website: another origin, with a policy that allows nothing but the widget's server, and
// styles that would break the widget if they could reach it.
func website(t *testing.T, s *program, attributes string) string {
	t.Helper()
	return serveLocal(t, shopWith(s, attributes))
}

// shopWith serves that site.
func shopWith(s *program, attributes string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/style.css", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/css")
		fmt.Fprint(w, "* { color: red; font-size: 31px; } div, section, button { display: none !important; } parley-widget { position: static; }")
	})
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src "+s.URL+"; connect-src "+s.URL+
			"; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; "+
			"require-trusted-types-for 'script'; trusted-types 'none'")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Shop</title><link rel="stylesheet" href="/style.css">
			<main><h1>A shop</h1><p>Buy bread. <a href="/other">Elsewhere</a></p></main><script src="%s/embed.js" data-assistant-id="%s" %s async></script></html>`, s.URL, s.AssistantUUID, attributes)
	})
	return mux
}

// assistant changes the first assistant.
func (s *program) assistant(t *testing.T, change map[string]any) {
	t.Helper()
	var said map[string]any
	if status := s.call(t, "PUT", "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), change,
		&said); status != http.StatusOK {
		t.Fatalf("the assistant is answered %d %v", status, said)
	}
}

// inside returns a JavaScript expression for the element of a selector in the widget.
func inside(selector string) string {
	return "document.querySelector('parley-widget')?.shadowRoot.querySelector(" + quote(selector) + ")"
}

// told waits until the last element of a selector in the widget contains some words.
func (p *page) told(selector, words string) {
	p.t.Helper()
	p.until(fmt.Sprintf("[...(document.querySelector('parley-widget')?.shadowRoot.querySelectorAll(%s) || [])].some(e => "+
		"e.checkVisibility() && e.innerText.includes(%s))", quote(selector), quote(words)))
}

// focused waits until the element of a selector in the widget has the focus.
func (p *page) focused(selector string) {
	p.t.Helper()
	p.until("document.querySelector('parley-widget').shadowRoot.activeElement?.matches(" + quote(selector) + ")")
}

// tap clicks the middle of something in the widget.
func (p *page) tap(selector string) {
	p.t.Helper()
	p.until(inside(selector) + "?.checkVisibility()")
	at := eval[[]float64](p, "(r => [r.x + r.width / 2, r.y + r.height / 2])("+inside(selector)+
		".getBoundingClientRect())")
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// say types into the widget's input, which has the focus, and sends.
func (p *page) say(words string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(words), chromedp.KeyEvent("\r"))
}

// offline cuts the browser's network, or restores it.
func (p *page) offline(yes bool) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: yes, DownloadThroughput: -1,
				UploadThroughput: -1}}})
		return err
	}))
}

func TestWidgetOnAForeignWebsite(t *testing.T) {
	share(t, browser)
	s, model := thinking(t)
	s.assistant(t, map[string]any{"initial_message": "Hello {{customer_name}}, this is Acme.",
		"system_prompt": "Serve {{customer_name}}.",
		"widget_settings": map[string]any{"subtitle": "Usually replies at once", "color": "#ffd54a", "theme": "light",
			// the page fills this in
			"pre_chat_fields": []any{map[string]any{"variable": "customer_name", "label": "Your name",
				"required": true}}}})
	site := website(t, s, `data-variables='{"customer_name":"Ana"}'`)
	p := browse(t)
	p.scheme("light")
	p.before(`window.pressed = 0; for (const kind of ["keydown", "keypress", "keyup"]) document.addEventListener(kind, () => window.pressed++);
		const real = window.fetch; window.fetch = async (at, how) => {
			const res = await real(at, how);
			if (!window.breaks || !String(at).endsWith("/messages")) return res;
			return new Response(new ReadableStream({ start(c) { window.breakOff = () => c.error(new TypeError("cut")); } }), { headers: res.headers });
		};`)
	p.open(site)

	// Closed, the widget is a button; the page's styles don't reach it.
	p.until(inside(".launch") + "?.getAttribute('aria-label') === 'Open chat'")
	p.until("getComputedStyle(" + inside(".launch") + ").display === 'grid' && getComputedStyle(" +
		inside(".launch") + ").width === '56px'")
	p.accessible("widget closed")
	p.tap(".launch")
	p.told("h2", "Front desk")
	p.focused("textarea")
	p.until("getComputedStyle(" + inside(".launch") + ").color === 'rgb(0, 0, 0)'") // on yellow

	// A reply is written outside the live region, and is read aloud once it is whole.
	gate := make(chan struct{})
	markdown := "**Yes**, we *do*: `sourdough_loaf` at 6_000_000.\n\n- rye\n" +
		"- wheat, see [the list](https://shop.example.com/list)\n1. one\n2. two\n\n" +
		"[bad](javascript:alert(1)) <img src=x onerror=alert(2)> https://shop.example.com/bread.\n```\n<b>code</b>\n```"
	model.Script(aitest.Behaviour{Text: markdown, Gate: gate})
	p.say("Do you have <b>bread</b>?")
	p.told(".log .user", "Do you have <b>bread</b>?")
	p.told(".log .assistant", "Hello Ana, this is Acme.")
	p.until("!" + inside(".forming, .thread > .said") + ".hidden")
	p.until("!" + inside("[role=log]") + ".innerText.includes('Yes')")
	p.shot("widget-forming", false)
	close(gate)
	p.told("[role=log] .assistant strong", "Yes")
	p.told("[role=log] .assistant em", "do")
	p.told("[role=log] .assistant code", "sourdough_loaf")
	p.told("[role=log] .assistant ul li", "rye")
	p.told("[role=log] .assistant ol li", "two")
	p.told("[role=log] .assistant p", "at 6_000_000.")
	p.told("[role=log] .assistant p", "[bad](javascript:alert(1)) <img src=x onerror=alert(2)>")
	p.told("[role=log] .assistant pre", "<b>code</b>")
	if got := eval[[]string](p, "[..."+inside("[role=log]")+
		".querySelectorAll('a')].map(a => a.href + ' ' + a.rel)"); strings.Join(got, "\n") !=
		"https://shop.example.com/list noopener noreferrer nofollow\nhttps://shop.example.com/bread noopener noreferrer nofollow" {
		t.Errorf("links %q", got)
	}
	p.until("!" + inside("[role=log]") + ".querySelector('img, b, script') && " + inside(".thread > .said") + ".hidden")
	p.accessible("widget open")
	p.shot("widget-light", false)

	// After another page is opened, the conversation is the same, the widget is open as it was left, and it does not
	// take the focus.
	p.open(site + "/other")
	p.told("[role=log] .assistant strong", "Yes")
	p.until(inside("[role=log]") + ".children.length === 3")
	p.until("!document.querySelector('parley-widget').shadowRoot.activeElement")

	// A person takes over, live. When closed, the widget counts unread messages.
	id := eval[string](p, "JSON.parse(localStorage.getItem('parley:"+s.AssistantUUID+"')).conversation")
	s.call(t, "POST", "/user/conversations/"+id+"/disable-ai", nil, nil)
	p.told(".notice", "You are now talking to our team.")
	s.call(t, "POST", "/user/conversations/"+id+"/reply",
		map[string]any{"message": "This is Bea. We kept you a loaf."}, nil)
	p.told("[role=log] .human", "We kept you a loaf.")
	p.told("[role=log] .human .who", "Our team")
	p.tap(".thread")
	p.do(chromedp.KeyEvent("\u001b"))
	p.until(inside(".panel") + ".hidden")
	p.focused(".launch")
	s.call(t, "POST", "/user/conversations/"+id+"/reply", map[string]any{"message": "Anything else?"}, nil)
	p.told(".badge", "1")
	p.open(site)
	p.told(".badge", "1") // still unread
	p.shot("widget-badge", false)
	p.tap(".launch")
	p.told("[role=log] .human", "Anything else?")
	p.until(inside(".badge") + ".hidden")
	p.until(inside("[role=log]") + ".children.length === 5")
	p.say("No, thanks.")
	p.told("[role=log] .user", "No, thanks.")
	p.until("!" + inside(".send, .writer .main") + ".disabled")
	p.until(inside("[role=log]") + ".children.length === 6")

	// The Tab key cycles within the window.
	for range 2 {
		p.tap(".writer textarea")
		p.until("(" + inside(".panel") + ".dispatchEvent(new Event('x')), true)")
		p.do(chromedp.KeyEvent("\t"))
		p.focused(".writer .main")
		p.do(chromedp.KeyEvent("\t"))
		p.focused("header button")
	}
	p.do(chromedp.KeyEvent("\t", chromedp.KeyModifiers(8)))
	p.focused(".writer .main")

	// A new conversation begins.
	s.call(t, "DELETE", "/user/conversations/"+id, nil, nil)
	p.expect("404")
	p.tap(".writer textarea")
	model.Script(aitest.Behaviour{Text: "Again, hello."})
	p.say("Are you still there?")
	p.told("[role=log] .assistant", "Again, hello.")
	p.until(inside("[role=log]") + ".children.length === 3")
	p.tap("header button")
	p.told(".log .assistant", "Acme")
	p.until(inside("[role=log]") + ".children.length === 0")

	// A reply's stream that breaks off loses nothing when the other stream has brought the message: it isn't to be sent again.
	gate = make(chan struct{})
	model.Script(aitest.Behaviour{Text: "One loaf is left.", Gate: gate})
	p.tap(".writer textarea")
	p.do(chromedp.Evaluate[chromedp.Void]("window.breaks = true, window.pressed = 0, undefined"))
	p.say("Is there bread?")
	p.until("(b => b && b.order !== Infinity)(" + inside("[role=log] .user") + ") && window.breakOff")
	p.do(chromedp.Evaluate[chromedp.Void]("window.breakOff()"))
	p.until("!" + inside(".writer .main") + ".disabled")
	if eval[bool](p, "Boolean("+inside(".log .wrong")+")") {
		t.Error("a message that the server has is to be sent again")
	}
	close(gate)
	p.told("[role=log] .assistant", "One loaf is left.")
	if n := eval[int](p, "window.pressed"); n != 0 { // the page may have shortcuts
		t.Errorf("the page has seen %d keys that were pressed in the widget", n)
	}
}

func TestWidgetQuestionsThemesAndLanguages(t *testing.T) {
	share(t, browser)
	s, _ := thinking(t)
	s.assistant(t, map[string]any{"initial_message": "Shalom {{who}}, {{wish}}.",
		"widget_settings": map[string]any{"theme": "auto", "position": "top-left", "auto_open": true,
			"title": "מאפייה", "color": "rebeccapurple",
			"placeholder": "מה תרצו?", "pre_chat_fields": []any{
				map[string]any{"variable": "who", "label": "שם", "required": true},
				map[string]any{"variable": "mail", "label": "דוא״ל", "type": "email"},
				map[string]any{"variable": "wish", "label": "בקשה", "type": "textarea"}}}})
	var voices []struct{ ID int64 }
	s.call(t, "GET", "/user/assistants/voices?language_id=25", nil, &voices)
	if len(voices) == 0 {
		t.Fatal("no voice speaks Hebrew")
	}
	s.assistant(t, map[string]any{"language_id": 25, "voice_id": voices[0].ID})
	p := browse(t)
	p.scheme("dark")
	p.open(website(t, s, ""))
	p.told("label", "שם")
	p.until(inside(".root") + ".dir === 'rtl' && " + inside(".root") + ".lang === 'he'")
	p.until("!document.querySelector('parley-widget').shadowRoot.activeElement") // it opened by itself
	p.accessible("questions")
	p.shot("widget-questions-rtl-dark", false)
	p.tap(".ask .main")
	p.told("#f0e", "יש למלא שדה זה.")
	p.focused("#f0")
	p.do(chromedp.KeyEvent("Ana"))
	p.tap("#f1")
	p.do(chromedp.KeyEvent("nobody"))
	p.tap(".ask .main")
	p.told("#f1e", "יש לבדוק שדה זה.")
	p.until(inside("#f0e") + ".innerText === ''")
	p.do(chromedp.KeyEvent("@example.com"))
	p.tap("#f2")
	p.do(chromedp.KeyEvent("bread"))
	p.tap(".ask .main")
	p.told(".log .assistant", "Shalom Ana, bread.")
	p.focused(".writer textarea")
	p.say("שלום!")
	p.told(".log .assistant", "You said: שלום!")
	p.accessible("right to left, dark")
	p.shot("widget-rtl-dark", false)
	var got struct{ Variables map[string]string }
	id := eval[string](p, "JSON.parse(localStorage.getItem('parley:"+s.AssistantUUID+"')).conversation")
	if s.call(t, "GET", "/user/conversations/"+id, nil, &got); got.Variables["mail"] != "nobody@example.com" {
		t.Errorf("variables %v", got.Variables)
	}
	p.size(390, 844)
	p.accessible("phone")
	p.shot("widget-phone", false)
	if box := eval[[]float64](p, "(r => [r.x, r.y, r.width, r.height])("+inside(".panel")+
		".getBoundingClientRect())"); box[0] != 0 || box[1] != 0 || box[2] != 390 || box[3] != 844 {
		t.Errorf("on a phone the window is at %v", box)
	}
}

func TestWidgetSaysWhatIsWrong(t *testing.T) {
	share(t, browser)
	s, model := thinking(t, "PARLEY_RATE_PUBLIC=on", "PARLEY_RATE_MESSAGE=3/min")
	site := website(t, s, "")
	p := browse(t)
	p.expect("Parley: ") // the widget tells the website's owner
	for _, status := range []string{"402", "403", "404", "429"} {
		p.expect("status of " + status)
	}
	p.expect("ERR_INTERNET_DISCONNECTED")

	// On a website that is not allowed, the widget is not shown.
	s.assistant(t, map[string]any{"widget_settings": map[string]any{
		"allowed_origins": []string{"https://shop.example.com"}}})
	p.open(site)
	p.until("window.ParleyWidgets !== undefined")
	p.open(s.URL + "/widget-demo?assistant=" + s.AssistantUUID) // our own page is allowed
	p.until(inside(".launch") + "?.checkVisibility()")
	p.accessible("demo")
	p.shot("widget-demo", false)
	p.tap(".launch")
	p.say("Hi")
	p.told(".log .assistant", "You said: Hi")
	s.assistant(t, map[string]any{"widget_settings": map[string]any{"allowed_origins": []string{site}}})
	p.open(site)
	p.tap(".launch")
	p.focused(".writer textarea")

	// Offline: the message is kept, and sent when the visitor tries again.
	p.offline(true)
	p.say("Can you hear me?")
	p.told(".log .user .wrong", "The connection failed. Your message is kept")
	p.shot("widget-offline", false)
	p.offline(false)
	p.tap(".log .wrong .link")
	p.told(".log .assistant", "You said: Can you hear me?")
	p.until("[..." + inside("[role=log]") + ".querySelectorAll('.user')].length === 1")

	// A message that is too long: the widget says so before it is sent.
	p.do(chromedp.Evaluate[chromedp.Void]("(b => { b.value = 'x'.repeat(2001); b.dispatchEvent(new Event('input')) })(" +
		inside(".writer textarea") + ")"))
	p.told(".count", "Too long: 2001 of 2000 characters.")
	p.focused(".writer textarea")
	p.do(chromedp.KeyEvent("\r"))
	p.shot("widget-long", false)
	p.until(inside(".writer textarea") + ".value.length === 2001")
	p.do(chromedp.Evaluate[chromedp.Void]("(b => { b.value = ''; b.dispatchEvent(new Event('input')) })(" +
		inside(".writer textarea") + ")"))

	// A model that fails: the message is there, the reply is not.
	model.Script(aitest.Behaviour{Status: 400})
	p.say("Fail, please.")
	p.told(".log .user .wrong", "That did not work. Please try again.")
	p.tap(".log .wrong .link")
	p.told(".log .assistant", "You said: Fail, please.")
	p.say("Too much.") // the fourth within a minute
	p.told(".log .user .wrong", "You are sending messages too fast. Please wait")
}
