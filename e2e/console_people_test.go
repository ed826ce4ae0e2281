package e2e

import (
	"net/http"
	"testing"
)

// An owner invites an agent by a link. The agent joins in a browser of their own, reads the inbox, and can neither change
// an assistant nor see what is the owner's; removed, they are signed out.
func TestConsolePeople(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/people")
	p.expect("422")
	p.fill("#f-name", "Bo Li")
	p.fill("#f-email", "bo")
	p.click("#invite")
	p.see("#e-email", "email")
	p.fill("#f-email", "bo@example.com")
	p.click("#invite")
	p.see(".fresh h2", "An invitation for Bo Li")
	p.look("people-invited")
	link := eval[string](p, "document.querySelector('#link').value")

	q := browse(t)
	q.open(link)
	q.see("h1", "Join")
	q.fill("#f-password", "three green bottles")
	q.look("people-join")
	q.click("#main button.primary")
	q.see(".who strong", "Bo Li")
	q.look("overview-agent")
	q.click("nav a[href='/conversations']")
	q.see("h1", "onversation")
	s.converse(t)
	q.see("#results .unread", "Visitor") // lists are live for members too
	q.until("document.title.startsWith('(1) ')")
	q.open(s.URL + "/assistants")
	q.click(".list a[href^='/assistants/']")
	q.see("#read-only", "not change it")
	q.until("document.querySelector('#f-name').disabled && !document.querySelector('#main [type=submit]')")
	q.look("assistant-agent")
	q.until("!document.querySelector('nav a[href=\"/people\"], nav a[href=\"/ledger\"], nav a[href=\"/keys\"]')")
	q.open(s.URL + "/account")
	q.see(".facts", "Agent")
	q.fill("#f-name", "Bo")
	q.click("#save-profile")
	q.see(".who strong", "Bo")
	q.expect("403")
	q.open(s.URL + "/ledger")
	q.see("[data-message]", "You need the role")

	p.open(s.URL + "/people")
	p.see("#people", "bo@example.com")
	p.look("people")
	q.expect("401") // its live connection is refused, if the browser asks before it leaves the page
	p.click("#people [popovertarget^=ask-person]")
	p.click("#people [role=alertdialog] .primary")
	p.see("#notice", "Removed.")
	q.open(s.URL + "/conversations")
	q.see("h1", "Sign in")
	login := map[string]any{"email": "bo@example.com", "password": "three green bottles"}
	if status := s.call(t, http.MethodPost, "/login", login, nil); status != http.StatusUnauthorized {
		t.Errorf("who was removed signs in: %d", status)
	}
}
