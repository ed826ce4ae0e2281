package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/oidc"
	"parley/internal/oidc/oidctest"
	"parley/internal/store/storetest"
)

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
	i, err := oidc.Open(storetest.SQLite(t), there.URL, oidctest.ClientID, oidctest.ClientSecret, domains)
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
	if err != nil || who.Email != "ana@example.com" || who.Name != "Ana Lima" || back != "/keys" {
		t.Fatalf("%+v %q %v", who, back, err)
	}
	if _, _, err := i.Finish(t.Context(), callback, kept, q); err == nil {
		t.Error("a code is taken twice")
	}
	if f := i.Check(t.Context()); f.State != parley.DoctorOK {
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
		if _, err := oidc.Open(nil, wrong, "id", "", nil); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	if _, err := oidc.Open(nil, "https://example.com", "", "", nil); err == nil {
		t.Error("no client id is taken")
	}
}
