package e2e

import (
	"net/http"
	"testing"
)

// A user changes their name and the address that they sign in with, and signs in with the new one.
func TestConsoleAccount(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/account")
	p.fill("#f-name", "אנה <b>")
	p.fill("#f-timezone", "Europe/Lisbon")
	p.click("#save-profile")
	p.see("#notice", "Saved.")
	p.see(".who strong", "אנה <b>") // in the sidebar, too
	p.until("getComputedStyle(document.querySelector('#f-name')).direction === 'rtl' && " +
		"getComputedStyle(document.querySelector('#f-timezone')).direction === 'ltr'")

	p.expect("422")
	p.fill("#f-email", "Ana@Example.com")
	p.click("#save-profile")
	p.see("[id='e-current_password']", "required to change the email")
	p.look("account-mistake")
	p.fill("[id='f-current_password']", s.Password)
	p.click("#save-profile")
	p.see("#notice", "Saved.")
	p.click("[aria-label='Sign out']")
	p.see("#notice", "You are signed out.")
	s.Email = "ana@example.com"
	p.signIn(s)
	var me struct{ Name, Email, Timezone string }
	if status := s.call(t, http.MethodGet, "/user/me", nil, &me); status != http.StatusOK || me.Name != "אנה <b>" ||
		me.Email != s.Email || me.Timezone != "Europe/Lisbon" {
		t.Errorf("%d %+v", status, me)
	}
}
