package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/egress"
	"parley/internal/oidc"
	"parley/internal/oidc/oidctest"
	"parley/internal/parley"
	"parley/internal/store/storetest"
)

// loopback lets requests out to issuers on this machine.
var loopback = egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))

const callback = "https://voice.example.com/signin/oidc/callback"

// visit goes to an address and returns the parameters of where it sends the browser.
func visit(t *testing.T, to string) url.Values {
	t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	at, err := res.Location()
	if err != nil || !strings.HasPrefix(at.String(), callback+"?") {
		t.Fatalf("%s: %d, sent to %v: %v", to, res.StatusCode, at, err)
	}
	return at.Query()
}

func open(t *testing.T, there *oidctest.Issuer, domains ...string) *oidc.Issuer {
	t.Helper()
	i, err := oidc.Open(storetest.SQLite(t), loopback, there.URL, oidctest.ClientID, oidctest.ClientSecret, domains)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestSignIn(t *testing.T) {
	there := oidctest.New(t, "Ana@Example.com", "Ana Lima")
	i := open(t, there, "other.example", "@example.com")
	to, kept, err := i.Begin(t.Context(), callback, "/keys")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(to, "code_verifier") || strings.Contains(kept, "Verifier") {
		t.Errorf("the verifier is told: %s %s", to, kept)
	}
	q := visit(t, to)
	who, back, err := i.Finish(t.Context(), callback, kept, q)
	if err != nil || who.Email != "ana@example.com" || who.Subject != "person-1" || who.Issuer != there.URL || who.Name != "Ana Lima" ||
		back != "/keys" {
		t.Fatalf("%+v %q %v", who, back, err)
	}
	if _, _, err := i.Finish(t.Context(), callback, kept, q); err == nil {
		t.Error("a code is taken twice")
	}
	if f := i.Check(t.Context()); f.State != parley.DoctorNote || !strings.Contains(f.Text, "without TLS") {
		t.Errorf("%+v", f)
	}
}

// What an issuer, or somebody in its name, must not get away with.
func TestRefused(t *testing.T) {
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		alter func(claims map[string]any)
		sign  *rsa.PrivateKey
		says  string
	}{
		"nonce":       {func(c map[string]any) { c["nonce"] = "another" }, nil, "did not succeed"},
		"no nonce":    {func(c map[string]any) { delete(c, "nonce") }, nil, "did not succeed"},
		"audience":    {func(c map[string]any) { c["aud"] = "another program" }, nil, "did not succeed"},
		"issuer":      {func(c map[string]any) { c["iss"] = "https://accounts.example.org" }, nil, "did not succeed"},
		"party":       {func(c map[string]any) { c["azp"] = "another program" }, nil, "did not succeed"},
		"nobody":      {func(c map[string]any) { delete(c, "sub") }, nil, "did not succeed"},
		"too early":   {func(c map[string]any) { c["nbf"] = time.Now().Add(time.Hour).Unix() }, nil, "did not succeed"},
		"expired":     {func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }, nil, "did not succeed"},
		"signature":   {func(map[string]any) {}, stranger, "did not succeed"},
		"unverified":  {func(c map[string]any) { c["email_verified"] = false }, nil, "is verified"},
		"not said":    {func(c map[string]any) { delete(c, "email_verified") }, nil, "is verified"},
		"no address":  {func(c map[string]any) { delete(c, "email") }, nil, "is verified"},
		"other house": {func(c map[string]any) { c["email"] = "ana@example.com.evil.example" }, nil, "can't sign in here"},
	} {
		t.Run(name, func(t *testing.T) {
			there := oidctest.New(t, "ana@example.com", "Ana")
			i := open(t, there, "example.com")
			there.Alter, there.Sign = c.alter, c.sign
			to, kept, err := i.Begin(t.Context(), callback, "/")
			if err != nil {
				t.Fatal(err)
			}
			who, _, err := i.Finish(t.Context(), callback, kept, visit(t, to))
			var e *parley.Error
			if who != nil || !errors.As(err, &e) || !strings.Contains(e.Message, c.says) {
				t.Errorf("%+v %v", who, err)
			}
		})
	}
}

// A sign-in ends in the browser that began it.
func TestFlowIsOfOneBrowser(t *testing.T) {
	there := oidctest.New(t, "ana@example.com", "Ana")
	i := open(t, there)
	to, kept, err := i.Begin(t.Context(), callback, "/")
	if err != nil {
		t.Fatal(err)
	}
	_, others, err := i.Begin(t.Context(), callback, "/")
	if err != nil {
		t.Fatal(err)
	}
	q := visit(t, to)
	for name, bad := range map[string]string{"nothing": "", "another's": others, "broken": kept[:20], "made up": "e30"} {
		if who, _, err := i.Finish(t.Context(), callback, bad, q); who != nil || err == nil {
			t.Errorf("%s: %+v", name, who)
		}
	}
	said := url.Values{"error": {"access_denied"}, "state": q["state"]}
	if who, _, err := i.Finish(t.Context(), callback, kept, said); who != nil || err == nil {
		t.Error("a refusal signs in")
	}
	if who, _, err := i.Finish(t.Context(), callback, kept, q); err != nil || who.Email != "ana@example.com" {
		t.Errorf("%+v %v", who, err)
	}
}

// signIn is a whole sign-in, and how it ends.
func signIn(t *testing.T, i *oidc.Issuer) (*parley.Identity, error) {
	t.Helper()
	to, kept, err := i.Begin(t.Context(), callback, "/")
	if err != nil {
		return nil, err
	}
	who, _, err := i.Finish(t.Context(), callback, kept, visit(t, to))
	return who, err
}

// An issuer's keys are kept, and read again when it signs with another one. Its clock may be a little behind.
func TestKeysAndClocks(t *testing.T) {
	there := oidctest.New(t, "ana@example.com", "Ana")
	i := open(t, there)
	for range 3 {
		if _, err := signIn(t, i); err != nil {
			t.Fatal(err)
		}
	}
	if n, m := there.Asked("/keys"), there.Asked("/.well-known/openid-configuration"); n != 1 || m != 1 {
		t.Errorf("its keys were read %d times, its configuration %d times", n, m)
	}
	there.Rotate(t)
	if who, err := signIn(t, i); err != nil || who.Subject != "person-1" {
		t.Errorf("after its keys changed: %v", err)
	}
	there.Alter = func(c map[string]any) { c["exp"] = time.Now().Add(-20 * time.Second).Unix() }
	if _, err := signIn(t, i); err != nil {
		t.Errorf("a clock that is 20 seconds behind: %v", err)
	}
}

// Where tenants' requests may not go, an issuer's configuration can't send ours either.
func TestIssuerIsGuarded(t *testing.T) {
	there := oidctest.New(t, "ana@example.com", "Ana")
	i, err := oidc.Open(storetest.SQLite(t), egress.New(nil), there.URL, oidctest.ClientID, oidctest.ClientSecret, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := i.Check(t.Context()); f.State != parley.DoctorFail || !strings.Contains(f.Text, egress.Setting) {
		t.Errorf("%+v", f)
	}
	if _, _, err := i.Begin(t.Context(), callback, "/"); err == nil || there.Asked("/.well-known/openid-configuration") != 0 {
		t.Errorf("it was reached: %v", err)
	}
}

// Each thing that an issuer may fail to answer is told as that, and nothing secret is.
func TestIssuerFails(t *testing.T) {
	for _, path := range []string{"/.well-known/openid-configuration", "/token", "/keys"} {
		there := oidctest.New(t, "ana@example.com", "Ana")
		there.Away = path
		i := open(t, there)
		_, err := signIn(t, i)
		var e *parley.Error
		if !errors.As(err, &e) || strings.Contains(err.Error(), oidctest.ClientSecret) || strings.Contains(e.Message, "503") {
			t.Errorf("%s: %v", path, err)
		}
	}
	there := oidctest.New(t, "ana@example.com", "Ana")
	i := open(t, there)
	to, kept, err := i.Begin(t.Context(), callback, "/")
	if err != nil {
		t.Fatal(err)
	}
	q := visit(t, to)
	there.Close()
	_, _, err = i.Finish(t.Context(), callback, kept, q)
	if e := (*parley.Error)(nil); !errors.As(err, &e) || e.Kind != parley.Upstream || !strings.Contains(e.Message, "does not answer") {
		t.Errorf("an issuer that is gone meanwhile: %v", err)
	}
}

// Whom the issuer vouched for is kept by the browser, and can't be made up, changed, or taken from a flow.
func TestKept(t *testing.T) {
	there := oidctest.New(t, "ana@example.com", "Ana")
	i := open(t, there)
	kept, err := i.Keep(&parley.Identity{Subject: "1", Email: "ana@example.com"}, "/keys")
	if err != nil {
		t.Fatal(err)
	}
	if who, back := i.Kept(kept); who == nil || who.Subject != "1" || who.Issuer != there.URL || who.Email != "ana@example.com" ||
		back != "/keys" {
		t.Errorf("%+v %q", who, back)
	}
	_, flow, err := i.Begin(t.Context(), callback, "/")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", kept[:30], "e30", flow} {
		if who, _ := i.Kept(bad); who != nil {
			t.Errorf("%q: %+v", bad, who)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		kept, err := i.Keep(&parley.Identity{Subject: "1"}, "/")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(oidc.FlowFor)
		if who, _ := i.Kept(kept); who != nil {
			t.Error("it is kept for ever")
		}
	})
}

func TestIssuerIsAway(t *testing.T) {
	there := oidctest.New(t, "ana@example.com", "Ana")
	i := open(t, there)
	there.Close()
	if f := i.Check(t.Context()); f.State != parley.DoctorFail || !strings.Contains(f.Text, there.URL) {
		t.Errorf("%+v", f)
	}
	if _, _, err := i.Begin(t.Context(), callback, "/"); err == nil {
		t.Error("a sign-in begins at an issuer that is away")
	}
	if f := (*oidc.Issuer)(nil).Check(t.Context()); f.State != parley.DoctorOK {
		t.Errorf("%+v", f)
	}
	for _, wrong := range []string{"accounts.example.com", "ftp://example.com", "http://"} {
		if _, err := oidc.Open(nil, nil, wrong, "id", "", nil); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	if _, err := oidc.Open(nil, nil, "https://example.com", "", "", nil); err == nil {
		t.Error("no client id is taken")
	}
}
