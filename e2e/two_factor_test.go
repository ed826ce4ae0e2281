package e2e

import (
	"encoding/base32"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/totp"
)

// A user sets two-factor sign-in up by what the page shows, signs in with the app and with a recovery code, and turns it
// off; the operator does so for whoever lost both.
func TestTwoFactorSignIn(t *testing.T) {
	share(t, browser)
	s := start(t)
	p := browse(t)
	p.signIn(s)
	p.open(s.URL + "/account")
	p.see("#second-state", "Off")
	p.click("form[action='/account/two-factor'] button")
	p.see("h1", "Two-factor sign-in")
	p.look("two-factor-setup")
	text := eval[string](p, "document.querySelector('#secret').value")
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	step := totp.Step(time.Now())
	p.expect("422")
	p.fill("#f-code", "000")
	p.fill("#f-password", s.Password)
	p.click("#main form button[type=submit]")
	p.see("#e-code", "does not match")
	p.fill("#f-code", totp.Code(secret, step))
	p.fill("#f-password", s.Password)
	p.click("#main form button[type=submit]")
	p.see("h2", "Two-factor sign-in is on")
	p.look("two-factor-codes")
	recovery := strings.Fields(eval[string](p, "document.querySelector('#recovery').value"))
	p.click("#main .primary")
	p.see("#second-state", "10 recovery codes left")
	p.look("account-two-factor")

	p.click("[aria-label='Sign out']")
	p.see("#notice", "You are signed out.")
	password := func() {
		p.open(s.URL + "/signin?return=%2Faccount%2Ftwo-factor")
		p.fill("[name=email]", s.Email)
		p.fill("[name=password]", s.Password)
		p.click("button.primary")
		p.see("h1", "Enter the code")
	}
	password()
	p.expect("401")
	p.fill("[name=code]", "123")
	p.click("button.primary")
	p.see("#wrong", "is wrong")
	p.look("sign-in-code")
	p.fill("[name=code]", totp.Code(secret, max(step+1, totp.Step(time.Now()))))
	p.click("button.primary")
	p.see("h1", "Two-factor sign-in") // where the link led
	p.look("two-factor-on")
	p.click("[aria-label='Sign out']")
	p.see("#notice", "You are signed out.")
	password()
	p.click("a[href*=recovery]")
	p.see("h1", "Enter a recovery code")
	p.fill("[name=code]", recovery[0])
	p.click("button.primary")
	p.see(".head p", "9 recovery codes left")
	p.fill("#f-code", recovery[1])
	p.fill("#f-password", s.Password)
	p.click("#main .danger")
	p.see("#notice", "Two-factor sign-in is off.")

	// again, and by the operator
	p.click("form[action='/account/two-factor'] button")
	p.see("h1", "Two-factor sign-in")
	secret, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(
		eval[string](p, "document.querySelector('#secret').value"))
	if err != nil {
		t.Fatal(err)
	}
	p.fill("#f-code", totp.Code(secret, totp.Step(time.Now())))
	p.fill("#f-password", s.Password)
	p.click("#main form button[type=submit]")
	p.see("h2", "Two-factor sign-in is on")
	p.open(s.URL + "/audit")
	p.see("#results", "turned off two-factor sign-in")
	p.look("audit")
	login := map[string]any{"email": s.Email, "password": s.Password}
	if status := s.call(t, http.MethodPost, "/login", login, nil); status != http.StatusUnauthorized {
		t.Errorf("login without a code: %d", status)
	}
	for _, c := range [][]string{{"", "on"}, {"--off", "off"}, {"", "off"}} {
		args := append([]string{"user", "two-factor", "--user", s.Email}, strings.Fields(c[0])...)
		if out, ok := s.operate(t, args...); !ok || out != "two-factor sign-in is "+c[1] {
			t.Errorf("%v: %q %v", args, out, ok)
		}
	}
	if status := s.call(t, http.MethodPost, "/login", login, nil); status != http.StatusOK {
		t.Errorf("login once it is off: %d", status)
	}
}
