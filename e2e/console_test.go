package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// signIn signs in with the credentials that the first start printed.
func (p *page) signIn(s *program) {
	p.t.Helper()
	p.open(s.URL + "/")
	p.fill("[name=email]", s.Email)
	p.fill("[name=password]", s.Password)
	p.click("button[type=submit]")
	p.see("h1", "Overview")
}

// A new user finds their way: signs in, opens the assistant, makes a mistake, creates a key, and signs out.
func TestConsole(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	one := "/assistants/" + strconv.FormatInt(s.Assistant, 10)

	p.expect("401") // the wrong password below
	p.open(s.URL + one)
	p.until("location.pathname === '/signin'")
	p.fill("[name=email]", s.Email)
	p.fill("[name=password]", "wrong")
	p.click("button[type=submit]")
	p.see("[role=alert]", "The email address or the password is wrong.")
	p.fill("[name=password]", s.Password)
	p.do(chromedp.KeyEvent("\r"))
	p.see("h1", "Front desk") // where they wanted to go

	// The prompt highlights its variables, and the page says which have no value.
	p.see("[data-vars] li", "company")
	p.fill("#f-system_prompt", "You are {{role}} of {{company}} & <b>bold</b>.\nToday is {{current_date}}.")
	p.see("[data-vars] .missing", "role")
	p.until("document.querySelectorAll('.copy-of mark').length >= 4")
	p.see("[data-dirty]", "Unsaved changes")
	p.click("[data-rows=variables] [data-add]")
	p.do(chromedp.KeyEvent("role"))
	p.until("!document.querySelector('[data-vars] .missing')")

	// Leaving asks for confirmation. The browser only asks on a page that the user has interacted with, as here.
	p.open(s.URL + "/keys")
	if n := p.asked("beforeunload"); n != 1 {
		t.Errorf("leaving unsaved changes asked %d times", n)
	}
	p.open(s.URL + one)
	if n := p.asked("beforeunload"); n != 1 {
		t.Error("leaving an untouched form asked")
	}

	// A mistake is reported beside its field, and no input is lost.
	p.expect("422")
	p.fill("#f-name", "Reception")
	p.fill("#f-max_duration", "7")
	p.click(".save button")
	p.see(".mistakes", "check one field")
	p.see("[id=e-max_duration]", "must be at least 20")
	p.until("document.activeElement.classList.contains('mistakes')") // a screen reader is sent there
	p.click(".mistakes a")
	p.until("document.activeElement.id === 'f-max_duration' || location.hash === '#f-max_duration'")
	p.fill("#f-max_duration", "120")
	p.click("#save")
	p.see("#notice", "The draft is saved.")
	p.publish()
	p.see("h1", "Reception")
	p.until("document.title.startsWith('Reception')")
	var a struct {
		Name        string `json:"name"`
		MaxDuration int    `json:"max_duration"`
		LanguageID  int64  `json:"language_id"`
	}
	if s.call(t, http.MethodGet, "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), nil,
		&a); a.Name != "Reception" || a.MaxDuration != 120 {
		t.Errorf("the API has %+v", a)
	}

	// Another language offers its voices without losing the user's input.
	p.fill("#f-name", "Empfang")
	p.do(chromedp.SetValue(chromedp.CSS("#f-language_id"), "3"),
		chromedp.Evaluate[chromedp.Void]("document.querySelector('#f-language_id').dispatchEvent(new Event('change', {bubbles: true}))"))
	p.until("[...document.querySelectorAll('#f-voice_id option')].every(o => o.value.endsWith('003'))")
	p.publish()
	p.see("h1", "Empfang")
	if s.call(t, http.MethodGet, "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), nil, &a); a.LanguageID != 3 {
		t.Errorf("the API has %+v", a)
	}

	p.newAssistant(s)
	p.search(s)
	p.newKey(s)

	// The theme changes at once, and is remembered.
	for _, want := range []string{"light", "dark"} {
		p.click("[data-theme-button]")
		p.until("document.documentElement.dataset.theme === '" + want + "'")
	}
	p.open(s.URL + "/account")
	p.until("document.documentElement.dataset.theme === 'dark' && getComputedStyle(document.body).colorScheme === 'dark'")

	p.click("[aria-label='Sign out']")
	p.see("#notice", "You are signed out.")
	p.open(s.URL + "/assistants")
	p.until("location.pathname === '/signin'")
}

// publish saves the draft in the editor and makes it live.
func (p *page) publish() {
	p.t.Helper()
	p.click("#to-publish")
	p.see("h1", "Publish the draft")
	p.click("#publish")
	p.see("#notice", "Published")
}

// newAssistant makes an assistant from a template, finds it in the list and deletes it, with the keyboard.
func (p *page) newAssistant(s *program) {
	p.t.Helper()
	p.open(s.URL + "/assistants/new")
	p.click("input[value=reminder]")
	p.fill("#f-name", `<img src=x onerror="alert(1)">`)
	p.click(".save button")
	p.see("h1", "<img src=x")
	p.until("/^\\/assistants\\/\\d+$/.test(location.pathname) && !location.search")
	p.see("#notice", "Created.")
	p.click("[popovertarget=ask-delete]")
	p.see("#ask-delete", "Delete this assistant?")
	p.do(chromedp.KeyEvent("\u001b"))
	p.until("!document.querySelector('#ask-delete').matches(':popover-open')")
	p.click("[popovertarget=ask-delete]")
	p.do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
	p.see("#notice", "Deleted.")
	p.until("!document.querySelector('.list').innerText.includes('onerror')")
}

func (p *page) search(s *program) {
	p.t.Helper()
	p.open(s.URL + "/assistants")
	p.fill("#q", "nothing like it")
	p.see("#results", "No assistant has")
	p.until("location.search.includes('q=nothing')")
	p.fill("#q", "EMPF")
	p.see("#results .stretch", "Empfang")
	p.until("document.activeElement.id === 'q'") // the reader can go on typing
}

func (p *page) newKey(s *program) {
	p.t.Helper()
	p.open(s.URL + "/keys")
	p.fill("#f-name", "shop")
	p.click("form .primary")
	p.see(".fresh", "Copy it now")
	token := eval[string](p, "document.querySelector('#token').value")
	with := &program{URL: s.URL, Key: token}
	if status := with.call(p.t, http.MethodGet, "/user/me", nil, nil); status != http.StatusOK {
		p.t.Errorf("the new key is answered %d", status)
	}
	p.click("[data-copy]")
	p.see("[data-copy]", "Copied")
	p.open(s.URL + "/keys")
	p.until("!document.querySelector('#token')")
	p.click(".list li:first-child [popovertarget]")
	p.click(".ask:popover-open .primary")
	p.see("#notice", "revoked")
	if status := with.call(p.t, http.MethodGet, "/user/me", nil, nil); status != http.StatusUnauthorized {
		p.t.Errorf("the revoked key is answered %d", status)
	}
}

// When the server refuses a form, the input stays in it.
func TestConsoleRefusalKeepsTheForm(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	s.call(t, http.MethodDelete, "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), nil, nil)
	p.fill("#f-system_prompt", "A long prompt that nobody wants to write twice.")
	p.expect("404")
	p.expect("Response Status Error Code 404")
	p.click("#save")
	p.see("#trouble", "Nothing was saved. Assistant not found")
	if got := eval[string](p, "document.querySelector('#f-system_prompt').value"); !strings.Contains(got, "twice") {
		t.Errorf("the box holds %q", got)
	}
}

// A script's request after the session has ended is refused with an explanation, and the user's input stays.
func TestConsoleSessionEndsWhileEditing(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/assistants/" + strconv.FormatInt(s.Assistant, 10))
	p.fill("#f-name", "Written just now")
	p.do(chromedp.Evaluate[chromedp.Void]("fetch('/signout', {method: 'POST'}).then(() => { document.body.dataset.out = 'yes' }), undefined"))
	p.until("document.body.dataset.out === 'yes'")
	p.expect("401")
	p.expect("Response Status Error Code 401")
	p.expect("frame-ancestors") // the widget's preview follows what is written, and is asked to sign in
	p.click(".save button")
	p.see("#trouble", "Your session has ended.")
	if got := eval[string](p, "document.querySelector('#f-name').value"); got != "Written just now" {
		t.Errorf("the box holds %q", got)
	}
	p.open("about:blank")
	if p.asked("beforeunload") != 1 {
		t.Error("what was not saved can be lost without a word")
	}
}

// Every page, in both themes and on a phone, is checked with axe-core and saved as a picture.
func TestConsoleLooks(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	one := "/assistants/" + strconv.FormatInt(s.Assistant, 10)
	p.scheme("light")
	p.open(s.URL + "/signin")
	p.look("signin")
	p.signIn(s)
	p.open(s.URL + "/tools")
	p.look("tools-none")
	s.furnish(t)
	for _, pg := range []struct{ name, path string }{{"assistants", "/assistants"},
		{"search", "/assistants?q=nobody"}, {"new", "/assistants/new"}, {"editor", one},
		{"versions", one + "/versions"},
		{"diff", one + "/versions/1"}, {"tools", "/tools"}, {"tool", "/tools/1"}, {"keys", "/keys"},
		{"account", "/account"}, {"do-not-call", "/do-not-call"}} {
		p.open(s.URL + pg.path)
		p.look(pg.name)
	}
	p.open(s.URL + one)
	for _, section := range []string{"prompt", "voice", "manners", "knowledge", "after", "widget"} {
		p.do(chromedp.Evaluate[chromedp.Void]("document.getElementById(" + quote(section) + ").scrollIntoView()"))
		p.shot("editor-"+section, false)
	}
	p.expect("422")
	p.expect("404")
	p.open(s.URL + one)
	p.fill("#f-max_duration", "7")
	p.fill("#f-name", " ")
	p.click(".save button")
	p.see(".mistakes", "2 fields")
	p.look("mistakes")
	p.click("[popovertarget=ask-delete]")
	p.look("question")
	p.open(s.URL + "/keys")
	p.fill("#f-name", "shop")
	p.click("form .primary")
	p.see(".fresh", "Copy it now")
	p.look("key")
	p.open(s.URL + "/assistants/999")
	p.look("missing")

	p.open(s.URL + "/assistants")
	p.size(390, 844)
	p.click("[popovertarget=nav]")
	p.see("#nav", "API keys")
	p.accessible("menu")
	p.shot("menu-phone", false)
	p.click("#nav a[href='/tools']")
	p.until("location.pathname === '/tools'")
}

// look checks a page and saves its pictures.
func (p *page) look(name string) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.size(1280, 900)
		p.shot(name+"-"+scheme, false)
		p.accessible(name + " " + scheme)
	}
	p.scheme("light")
	p.size(390, 844)
	p.shot(name+"-phone", false)
	p.accessible(name + " phone")
	if wide := eval[int](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide > 0 {
		p.t.Errorf("%s is %d pixels wider than a phone", name, wide)
	}
	p.size(1280, 900)
}

// furnish gives the account one of everything.
func (s *program) furnish(t *testing.T) {
	t.Helper()
	made := func(status int) {
		t.Helper()
		if status != http.StatusCreated && status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	for i, name := range []string{"look_up_order", "book_table", "open_ticket"} {
		made(s.call(t, "POST", "/user/tools", map[string]any{"name": name,
			"description": "Looks up an order by its number and says where it is.",
			"endpoint":    "https://shop.example.com/orders/{number}", "method": []string{"GET", "POST", "DELETE"}[i],
			"schema":  []any{map[string]any{"name": "number", "type": "string", "description": "The order number"}},
			"headers": []any{map[string]any{"name": "Authorization", "value": "Bearer secret"}}}, nil))
	}
	first := fmt.Sprintf("/user/assistant/%d", s.Assistant)
	made(s.call(t, "PUT", first,
		map[string]any{"system_prompt": "You are the friendly receptionist of {{company}}.\nToday is {{current_date}}. " +
			"Ask for {{customer_nmae}}.\n\nWhat you know\n- We are open Monday to Saturday from 7 am to 6 pm, and closed on Sundays.\n" +
			"- We are at 12 Market Street, next to the town hall.\n\n" +
			"When you don't know something, say so and offer that a colleague calls back.", "tool_ids": []int{1}}, nil))
	var got map[string]any
	made(s.call(t, "GET", first, nil, &got))
	for i, name := range []string{"Dentist reception", "Night support", "Pick-up reminder",
		strings.Repeat("A very long name ", 10)} {
		got["name"], got["status"] = name, []string{"active", "inactive"}[i%2]
		made(s.call(t, "POST", "/user/assistants", got, nil))
	}
}
