package console

import (
	"encoding/base32"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/totp"
)

// turnOn sets a visitor's second factor up by its pages. It returns the codes of an app by how many steps they are after the
// one that confirmed it, and the recovery codes.
func (v *visitor) turnOn(password string) (code func(ahead int64) string, recovery []string) {
	v.t.Helper()
	v.get("/account").is(http.StatusOK).says("Two-factor sign-in")
	v.post("/account/two-factor", nil).moved("/account/two-factor")
	page := v.get("/account/two-factor").is(http.StatusOK)
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(page.doc().Find("#secret").AttrOr("value", ""))
	if err != nil || len(secret) != 20 {
		v.t.Fatalf("secret %q: %v", secret, err)
	}
	step := totp.Step(time.Now())
	code = func(ahead int64) string { return totp.Code(secret, step+ahead) }
	on := v.post("/account/two-factor/confirm", url.Values{"code": {code(0)}, "password": {password}}).is(http.StatusOK)
	recovery = strings.Fields(on.doc().Find("#recovery").Text())
	if len(recovery) != 10 {
		v.t.Fatalf("recovery codes %q", recovery)
	}
	return code, recovery
}

func TestSignInWithACode(t *testing.T) {
	h := open(t)
	u := h.user(t)
	elsewhere, v := h.signedIn(t, u), h.signedIn(t, u)
	v.get("/account/two-factor").moved("/account") // nothing was begun
	v.post("/account/two-factor", nil).moved("/account/two-factor")
	if again := v.get("/account/two-factor"); again.doc().Find("#secret").AttrOr("value", "") !=
		v.get("/account/two-factor").doc().Find("#secret").AttrOr("value", "-") {
		t.Error("loading the page again changes the secret")
	}
	h.signedIn(t, u) // it does not count before it is confirmed
	v.post("/account/two-factor/confirm", url.Values{"code": {"12"}, "password": {password}}).is(http.StatusUnprocessableEntity).
		says("does not match")
	code, recovery := v.turnOn(password)
	v.get("/account").is(http.StatusOK).says("10 recovery codes left")
	if page := v.get("/account/two-factor").is(http.StatusOK); page.doc().Find("#secret, .qr").Length() > 0 {
		t.Error("the secret is shown again")
	}
	elsewhere.get("/account").moved("/signin?return=%2Faccount") // its session has ended

	w := h.visitor(t)
	form := url.Values{"email": {u.Email}, "password": {password}, "return": {"/keys?x=1"}}
	w.post("/signin", form).moved("/signin/code?return=%2Fkeys%3Fx%3D1")
	w.get("/keys").moved("/signin?return=%2Fkeys") // half a session opens nothing
	page := w.get("/signin/code?return=%2Fkeys%3Fx%3D1").is(http.StatusOK)
	enter := page.form("/signin/code")
	for _, wrong := range []string{"", "000", code(0), code(20)} {
		enter.Set("code", wrong)
		if r := w.post("/signin/code", enter).is(http.StatusUnauthorized); r.header.Get("Set-Cookie") != "" {
			t.Errorf("%q gets a cookie", wrong)
		}
	}
	enter.Set("code", code(1))
	w.post("/signin/code", enter).moved("/keys?x=1")
	w.get("/keys").is(http.StatusOK)
	enter.Set("code", recovery[0])
	w.post("/signin/code", enter).moved("/signin") // what was half is used up

	x := h.visitor(t)
	x.post("/signin/code", enter).moved("/signin") // a code alone is nothing
	x.get("/signin/code").moved("/signin")
	x.post("/signin", url.Values{"email": {u.Email}, "password": {password}}).moved("/signin/code")
	enter = x.get("/signin/code?recovery=1").is(http.StatusOK).form("/signin/code")
	enter.Set("code", code(1))
	x.post("/signin/code", enter).is(http.StatusUnauthorized).says("Enter a recovery code") // it was used
	enter.Set("code", recovery[0])
	x.post("/signin/code", enter).moved("/")

	x.post("/account/two-factor/off", url.Values{"code": {recovery[0]}, "password": {password}}).is(422).says("already been used")
	fresh := strings.Fields(x.post("/account/two-factor/codes", url.Values{"code": {recovery[1]}, "password": {password}}).
		is(http.StatusOK).doc().Find("#recovery").Text())
	x.post("/account/two-factor/off", url.Values{"code": {recovery[2]}, "password": {password}}).is(422)
	x.post("/account/two-factor/off", url.Values{"code": {fresh[0]}, "password": {"wrong"}}).is(422).says("not your password")
	x.post("/account/two-factor/off", url.Values{"code": {fresh[0]}, "password": {password}}).moved("/account?done=second-off")
	x.post("/account/two-factor/off", url.Values{"code": {fresh[1]}, "password": {password}}).is(http.StatusNotFound)
	h.signedIn(t, u)
}

// Half a session lasts for minutes, is no session, and ends with a new password.
func TestHalfASession(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	code, _ := v.turnOn(password)
	w := h.visitor(t)
	w.post("/signin", url.Values{"email": {u.Email}, "password": {password}}).moved("/signin/code")
	at, _ := url.Parse(h.url)
	half := ""
	for _, c := range w.client.Jar.Cookies(at) {
		if c.Name == "parley_session" {
			t.Errorf("a session before the code")
		}
		if c.Name == halfCookie {
			half = c.Value
		}
	}
	who, err := h.Auth.Authenticate(t.Context(), half, parley.HalfSession)
	if err != nil {
		t.Fatal(err)
	}
	if last := who.Key.ExpiresAt.Sub(who.Key.CreatedAt).Round(time.Second); last != auth.HalfSessionFor {
		t.Errorf("it lasts %s", last)
	}
	if _, err := h.Auth.Authenticate(t.Context(), half, parley.Console, parley.Session, parley.APIKey); err == nil {
		t.Error("half a session opens the console or the API")
	}
	if err := h.Auth.SetPassword(t.Context(), u.ID, "battery staple", false); err != nil {
		t.Fatal(err)
	}
	w.post("/signin/code", url.Values{"code": {code(1)}}).moved("/signin")
}
