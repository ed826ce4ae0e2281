package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"parley/internal/auth"
	"parley/internal/oauth"
	"parley/internal/parley"
)

// An app is let in by somebody who is signed in and has seen who asks and where they are sent; it can be disconnected again.
func TestApp(t *testing.T) {
	h := open(t)
	apps := &oauth.Server{Auth: h.Auth, Secret: []byte("secret of the tests"), Rate: auth.NewLimiter(auth.Rate{})}
	h.Console.Apps = apps
	far := httptest.NewServer(apps.Handler())
	t.Cleanup(far.Close)
	raw := []byte(`{"client_name":"Claude <b>","redirect_uris":["https://claude.example/cb"]}`)
	res, err := http.Post(far.URL+"/oauth/register", "application/json", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var made struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil {
		t.Fatal(err)
	}
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	form := url.Values{"client_id": {made.ID}, "redirect_uri": {"https://claude.example/cb"}, "response_type": {"code"}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	path := oauth.AuthorizePath + "?" + form.Encode()
	u := h.user(t)
	v := h.signedIn(t, u)
	h.visitor(t).get(path).moved("/signin?return=" + url.QueryEscape(path))
	page := v.get(path).is(http.StatusOK).says("Claude <b>").says(u.Name).doc()
	if page.Find("#app-host").Text() != "claude.example" || page.Find("main b, #main b").Length() != 0 {
		t.Error("the page does not say where it leads, or takes the app's name as HTML")
	}
	if refuse := page.Find("#refuse").AttrOr("href", ""); !strings.HasPrefix(refuse, "https://claude.example/cb?error=access_denied&") {
		t.Errorf("refusing leads to %s", refuse)
	}
	v.get(strings.Replace(path, "claude.example", "evil.example", 1)).is(http.StatusBadRequest)
	form.Set("scope", "viewer")
	allowed := v.post(oauth.AuthorizePath, form).is(http.StatusOK)
	back, err := url.Parse(allowed.doc().Find("#back").AttrOr("href", ""))
	if err != nil || back.Host != "claude.example" || allowed.header.Get("Refresh") != "0; url="+back.String() {
		t.Fatalf("allowing leads to %v %v", back, allowed.header)
	}
	got, err := http.PostForm(far.URL+"/oauth/token", url.Values{"client_id": {made.ID}, "grant_type": {"authorization_code"},
		"redirect_uri": {"https://claude.example/cb"}, "code_verifier": {verifier}, "code": {back.Query().Get("code")}})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := json.NewDecoder(got.Body).Decode(&tokens); err != nil {
		t.Fatal(err)
	}
	who, err := h.Auth.Authenticate(t.Context(), tokens.Access, parley.OAuthAccess)
	if err != nil || who.User.ID != u.ID || who.Role() != parley.RoleViewer {
		t.Fatalf("the token is of %+v %v", who, err)
	}
	v.get("/keys").says("Connected apps").says("Claude <b> (claude.example)").says("as viewer")
	v.post("/keys/apps/"+id(who.Key.GrantID)+"/delete", nil).moved("/keys?done=revoked")
	if _, err := h.Auth.Authenticate(t.Context(), tokens.Access, parley.OAuthAccess); err == nil {
		t.Error("the app's token outlives its end")
	}
	form.Set("scope", "emperor")
	v.post(oauth.AuthorizePath, form).is(http.StatusBadRequest)
}
