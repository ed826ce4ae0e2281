package e2e

import (
	"net/http"
	"strconv"
	"testing"
)

// From an edit to a restored version: what is saved is not live yet; it is tested, published, compared and undone.
func TestConsoleDraft(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	one := "/assistants/" + strconv.FormatInt(s.Assistant, 10)
	type shown struct {
		Name    string `json:"name"`
		Initial string `json:"initial_message"`
	}
	live := func() (a shown) {
		t.Helper()
		if status := s.call(t, http.MethodGet, "/user/assistant/"+strconv.FormatInt(s.Assistant, 10), nil, &a); status != http.StatusOK {
			t.Fatal(status)
		}
		return a
	}
	before := live()

	// The draft is saved, and not live.
	p.open(s.URL + one)
	p.until("getComputedStyle(document.querySelector('[data-talks-draft]')).display === 'none'")
	p.fill("#f-initial_message", "Good day, you are talking to the new one.")
	p.see("[data-dirty]", "Unsaved changes")
	p.click("#save")
	p.see("#notice", "The draft is saved.")
	p.see("[data-draft]", "Draft, not live.")
	p.see("[data-draft]", "Changed: Greeting")
	p.until("getComputedStyle(document.querySelector('[data-talks-draft]')).display !== 'none'")
	if got := live(); got != before {
		t.Errorf("a draft is live: %+v", got)
	}
	p.look("draft")

	// The test chat beside the editor talks to the draft.
	p.click("#talk-begin [type=submit]")
	p.see("#thread", "you are talking to the new one")

	// Unsaved work is protected when the user leaves for the published version.
	p.fill("#f-name", "Not saved")
	p.open(s.URL + one + "/publish")
	if n := p.asked("beforeunload"); n != 1 {
		t.Errorf("leaving unsaved changes asked %d times", n)
	}
	p.see("h1", "Publish the draft")
	p.see(".change ins", "you are talking to the new one")
	p.look("publish")
	p.fill("#f-note", "A friendlier greeting.")
	p.click("#publish")
	p.see("#notice", "Published")
	p.until("!document.querySelector('[data-draft]')")
	if got := live(); got.Initial != "Good day, you are talking to the new one." || got.Name != before.Name {
		t.Errorf("published %+v", got)
	}

	// Versions are compared, and one is restored.
	p.open(s.URL + one + "/versions")
	p.see(".list li", "A friendlier greeting.")
	p.look("versions-two")
	p.click(".list li:last-child .stretch")
	p.see("h1", "Version 1")
	p.see(".change ins", "you are talking to the new one")
	p.look("version")
	p.click("form[action$='/versions/1/restore'] button")
	p.see("#notice", "live again")
	if got := live(); got != before {
		t.Errorf("restored %+v, want %+v", got, before)
	}
	p.open(s.URL + one + "/versions")
	p.see(".list li", "Restored version 1")

	// Discarding asks for confirmation.
	p.open(s.URL + one)
	p.fill("#f-name", "Dropped")
	p.click("#save")
	p.see("[data-draft]", "Changed: Name")
	p.click("[popovertarget=ask-discard]")
	p.see("#ask-discard", "Discard this draft?")
	p.click("#ask-discard .primary")
	p.see("#notice", "The draft is discarded.")
	p.until("document.querySelector('#f-name').value !== 'Dropped'")
}

// A link lets somebody without an account talk to the draft, until it is revoked.
func TestConsoleShare(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	one := "/assistants/" + strconv.FormatInt(s.Assistant, 10)
	s.call(t, http.MethodPut, "/user/assistants/"+strconv.FormatInt(s.Assistant, 10)+"/draft",
		map[string]any{"initial_message": "Hello from the draft."}, nil)
	p.open(s.URL + one)
	p.click("[data-draft] a[href$='/share']")
	p.see("h1", "Share the draft")
	p.click("#make-link")
	p.see(".fresh", "Copy it now")
	p.look("share")
	link := eval[string](p, "document.querySelector('#link').value")
	p.click("[aria-label='Sign out']")
	p.see("#notice", "You are signed out.")
	p.open(link)
	p.see("[data-shared]", "been invited to try a draft")
	p.told(".log .assistant", "Hello from the draft.")
	p.tap("textarea")
	p.say("Are you there?")
	p.told(".log .user", "Are you there?")
	p.until("document.querySelector('parley-widget').shadowRoot.querySelectorAll('.log .assistant').length >= 2")
	p.look("shared")

	p.signIn(s)
	p.open(s.URL + "/conversations?type=test")
	p.see("#results .list", "Share link")
	p.open(s.URL + one + "/share")
	p.click("[popovertarget=ask-revoke]")
	p.click("#ask-revoke .primary")
	p.see("#notice", "All links are revoked.")
	p.expect("404")
	p.open(link)
	p.see("main", "This link is no longer valid")
}
