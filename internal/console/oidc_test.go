package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley"
	"parley/internal/auth"
	"parley/internal/oidc"
	"parley/internal/oidc/oidctest"
)

// atIssuer follows the browser to the issuer, and returns the path that it comes back to.
func (v *visitor) atIssuer(to string) string {
	v.t.Helper()
	res, err := v.client.Get(to)
	if err != nil {
		v.t.Fatal(err)
	}
	res.Body.Close()
	path, ok := strings.CutPrefix(res.Header.Get("Location"), v.harness.url)
	if !ok || !strings.HasPrefix(path, "/signin/oidc/callback?") {
		v.t.Fatalf("%s sends the browser to %q", to, res.Header.Get("Location"))
	}
	return path
}

// issued is a console with an issuer that vouches for an address.
func issued(t *testing.T, email string, signup bool) (*harness, *oidctest.Issuer) {
	there := oidctest.New(t, email, "Ana Lima")
	return open(t, func(c *Config) {
		var err error
		if c.Issuer, err = oidc.Open(c.DB, there.URL, oidctest.ClientID, oidctest.ClientSecret, nil); err != nil {
			t.Fatal(err)
		}
		c.Signup = signup
	}), there
}

func TestSignInByOpenIDConnect(t *testing.T) {
	h, there := issued(t, "nobody@example.com", false)
	u := h.user(t)
	v := h.visitor(t)
	page := v.get("/signin?return=%2Fkeys").is(http.StatusOK)
	link := page.doc().Find("a.button").AttrOr("href", "")
	begin := v.get(link).is(http.StatusSeeOther)
	to := begin.header.Get("Location")
	if !strings.HasPrefix(to, there.URL+"/authorize?") || !strings.Contains(begin.header.Get("Set-Cookie"), "HttpOnly") {
		t.Fatalf("sent to %s with %s", to, begin.header.Get("Set-Cookie"))
	}
	v.get(v.atIssuer(to)).is(http.StatusForbidden).says("There is no account for nobody@example.com here.")

	there.Alter = func(claims map[string]any) { claims["email"] = strings.ToUpper(u.Email) }
	back := v.atIssuer(v.get(link).is(http.StatusSeeOther).header.Get("Location"))
	h.visitor(t).get(back).is(http.StatusBadRequest).says("not begun in this browser") // somebody else's
	v.get(back).moved("/keys")
	v.get("/keys").is(http.StatusOK)
	v.get(back).is(http.StatusBadRequest) // once

	mo := h.member(t, u, parley.RoleViewer)
	there.Alter = func(claims map[string]any) { claims["email"] = mo.Email() }
	w := h.visitor(t)
	w.get(w.atIssuer(w.get("/signin/oidc").header.Get("Location"))).moved("/")
	w.get("/account").is(http.StatusOK).says(mo.Name())
	w.get("/keys").is(http.StatusForbidden) // with the role that they have
	there.Alter = func(claims map[string]any) { claims["email"] = u.Email }
	if err := h.Auth.Disable(t.Context(), u.ID, false); err != nil {
		t.Fatal(err)
	}
	v.get(v.atIssuer(v.get("/signin/oidc").header.Get("Location"))).is(http.StatusForbidden).says("is disabled")
	there.Close()
	h.visitor(t).get("/signin/oidc/callback?state=1&code=2").is(http.StatusBadRequest)
	if page := open(t).visitor(t).get("/signin"); page.doc().Find("a.button").Length() != 0 {
		t.Error("a server without an issuer offers it")
	}
}

// Whoever has a second factor is asked for it too.
func TestOpenIDConnectAndACode(t *testing.T) {
	h, there := issued(t, "", false)
	u := h.user(t)
	there.Alter = func(claims map[string]any) { claims["email"] = u.Email }
	code, _ := h.signedIn(t, u).turnOn(password)
	v := h.visitor(t)
	v.get(v.atIssuer(v.get("/signin/oidc").header.Get("Location"))).moved("/signin/code")
	v.get("/keys").moved("/signin?return=%2Fkeys")
	v.post("/signin/code", url.Values{"code": {code(1)}}).moved("/")
	v.get("/keys").is(http.StatusOK)
}

// Accounts are made only where anybody may make one.
func TestSignUpByOpenIDConnect(t *testing.T) {
	h, _ := issued(t, "new@example.com", true)
	h.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 1, Burst: 10})
	v := h.visitor(t)
	v.get(v.atIssuer(v.get("/signin/oidc").header.Get("Location"))).moved("/")
	v.get("/account").is(http.StatusOK).says("trial")
	u, err := h.DB.UserByEmail(t.Context(), "new@example.com")
	if err != nil || u.Name != "Ana Lima" || u.SignedUpAt == 0 || u.Balance != 0 || u.PasswordHash == "" {
		t.Errorf("%+v %v", u, err)
	}
	v.get(v.atIssuer(v.get("/signin/oidc").header.Get("Location"))).moved("/") // the same one again
}
