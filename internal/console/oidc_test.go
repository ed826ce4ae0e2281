package console

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"parley/internal/auth"
	"parley/internal/egress"
	"parley/internal/oidc"
	"parley/internal/oidc/oidctest"
	"parley/internal/parley"
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
		if c.Issuer, err = oidc.Open(c.DB, egress.New(nil, netip.MustParsePrefix("127.0.0.0/8")), there.URL, oidctest.ClientID,
			oidctest.ClientSecret, nil); err != nil {
			t.Fatal(err)
		}
		c.Signup = signup
	}), there
}

// byIssuer signs in there, and returns the page that follows.
func (v *visitor) byIssuer() *reply {
	v.t.Helper()
	return v.get(v.atIssuer(v.get("/signin/oidc").is(http.StatusSeeOther).header.Get("Location")))
}

// joined signs in by the issuer for the first time, with the password.
func (v *visitor) joined() *reply {
	v.t.Helper()
	v.byIssuer().moved("/signin/oidc/join")
	return v.post("/signin/oidc/join", url.Values{"password": {password}})
}

// person has the issuer vouch for somebody from now on.
func person(there *oidctest.Issuer, subject, email string) {
	there.Alter = func(claims map[string]any) { claims["sub"], claims["email"] = subject, email }
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

	person(there, "ana", strings.ToUpper(u.Email))
	back := v.atIssuer(v.get(link).is(http.StatusSeeOther).header.Get("Location"))
	h.visitor(t).get(back).is(http.StatusBadRequest).says("not begun in this browser") // somebody else's
	v.get(back).moved("/signin/oidc/join")
	v.get("/keys").moved("/signin?return=%2Fkeys") // not yet
	v.get("/signin/oidc/join").is(http.StatusOK).says(u.Email)
	h.visitor(t).get("/signin/oidc/join").moved("/signin")
	h.visitor(t).post("/signin/oidc/join", url.Values{"password": {password}}).moved("/signin")
	v.post("/signin/oidc/join", url.Values{"password": {"wrong"}}).is(http.StatusUnauthorized).says("password is wrong")
	v.post("/signin/oidc/join", url.Values{"password": {password}}).moved("/keys")
	v.get("/keys").is(http.StatusOK)
	v.get(back).is(http.StatusBadRequest) // once
	v.get("/signin/oidc/join").moved("/signin")
	h.visitor(t).byIssuer().moved("/") // from now on without the password

	mo := h.member(t, u, parley.RoleViewer)
	person(there, "mo", mo.Email())
	w := h.visitor(t)
	w.joined().moved("/")
	w.get("/account").is(http.StatusOK).says(mo.Name())
	w.get("/keys").is(http.StatusForbidden) // with the role that they have
	person(there, "ana", u.Email)
	if err := h.Auth.Disable(t.Context(), u.ID, false); err != nil {
		t.Fatal(err)
	}
	h.visitor(t).byIssuer().is(http.StatusForbidden).says("is disabled")
	there.Close()
	h.visitor(t).get("/signin/oidc/callback?state=1&code=2").is(http.StatusBadRequest)
	if page := open(t).visitor(t).get("/signin"); page.doc().Find("a.button").Length() != 0 {
		t.Error("a server without an issuer offers it")
	}
}

// Somebody comes back to this server, whatever the address that began their sign-in named.
func TestOpenIDConnectLeadsNowhereElse(t *testing.T) {
	h, there := issued(t, "", false)
	u := h.user(t)
	person(there, "ana", u.Email)
	h.visitor(t).joined().moved("/")
	for _, evil := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "/signin/oidc"} {
		v := h.visitor(t)
		to := v.get("/signin/oidc?" + url.Values{"return": {evil}}.Encode()).is(http.StatusSeeOther).header.Get("Location")
		v.get(v.atIssuer(to)).moved("/")
	}
}

// An issuer that is away is told of on the sign-in page, where the password still works; and one address asks it only so
// often.
func TestOpenIDConnectIsAway(t *testing.T) {
	h, there := issued(t, "", false)
	u := h.user(t)
	person(there, "ana", u.Email)
	there.Away = "/.well-known/openid-configuration"
	v := h.visitor(t)
	page := v.get("/signin/oidc?return=%2Fkeys").is(http.StatusBadGateway).says("does not answer. Sign in with your password")
	if back := page.doc().Find("input[name=return]").AttrOr("value", ""); back != "/keys" {
		t.Errorf("it leads back to %q", back)
	}
	h, there = issued(t, "nobody@example.com", false)
	h.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 1e-9, Burst: 1}) // six for an address
	v = h.visitor(t)
	for range 6 {
		v.byIssuer().is(http.StatusForbidden)
	}
	asked := there.Asked("/token")
	v.byIssuer().is(http.StatusTooManyRequests).says("Too many attempts")
	if there.Asked("/token") != asked {
		t.Error("the issuer is asked past the limit")
	}
}

// Whoever has a second factor is asked for it too.
func TestOpenIDConnectAndACode(t *testing.T) {
	h, there := issued(t, "", false)
	u := h.user(t)
	person(there, "ana", u.Email)
	code, _ := h.signedIn(t, u).turnOn(password)
	v := h.visitor(t)
	v.joined().moved("/signin/code")
	v.get("/keys").moved("/signin?return=%2Fkeys")
	v.post("/signin/code", url.Values{"code": {code(1)}}).moved("/")
	v.get("/keys").is(http.StatusOK)
	h.visitor(t).byIssuer().moved("/signin/code")
}

// Accounts are made only where anybody may make one.
func TestSignUpByOpenIDConnect(t *testing.T) {
	h, _ := issued(t, "new@example.com", true)
	h.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 1, Burst: 10})
	v := h.visitor(t)
	v.byIssuer().moved("/")
	v.get("/account").is(http.StatusOK).says("trial")
	u, err := h.DB.UserByEmail(t.Context(), "new@example.com")
	if err != nil || u.Name != "Ana Lima" || u.SignedUpAt == 0 || u.Balance != 0 || u.PasswordHash == "" {
		t.Errorf("%+v %v", u, err)
	}
	v.byIssuer().moved("/") // the same one again
}
