package oauth_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/oauth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// house is a server that lets apps in, and somebody with an account on it.
type house struct {
	*testing.T
	*oauth.Server
	db  *store.DB
	url string
	by  *auth.Who
}

const (
	callback = "https://claude.example/callback?x=1"
	verifier = "verifier-verifier-verifier-verifier-verifier"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func each(t *testing.T, test func(h *house)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := &house{T: t, db: db,
			Server: &oauth.Server{Auth: &auth.Authority{DB: db, SessionFor: time.Hour}, Secret: []byte("a secret of the tests"),
				Rate: auth.NewLimiter(auth.Rate{})}}
		s := httptest.NewServer(h.Handler())
		t.Cleanup(s.Close)
		h.url = s.URL
		h.by = &auth.Who{User: storetest.User(t, db, 0), Key: &parley.Key{Kind: parley.Console}}
		test(h)
	})
}

type object = map[string]any

// send sends a request, and returns its JSON.
func (h *house) send(method, path, kind, body string) (status int, out object) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&out); err != nil {
		h.Fatalf("%s %s: %v %s", method, path, err, raw)
	}
	return res.StatusCode, out
}

// register registers an app.
func (h *house) register(uris ...string) (id string) {
	h.Helper()
	raw, _ := json.Marshal(object{"client_name": "Claude", "redirect_uris": uris})
	status, out := h.send("POST", "/oauth/register", "application/json", string(raw))
	if status != 201 {
		h.Fatalf("the registration is answered %d %v", status, out)
	}
	return out["client_id"].(string)
}

func asking(id string, changes ...string) url.Values {
	form := url.Values{"client_id": {id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"a state & more"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return form
}

// read has the server read what an app asks for.
func (h *house) read(form url.Values) (*oauth.Ask, error) {
	r := httptest.NewRequest("GET", h.url+oauth.AuthorizePath, nil)
	return h.Read(r, form)
}

// code has the account let an app in.
func (h *house) code(id string) string {
	h.Helper()
	ask, err := h.read(asking(id))
	if err != nil {
		h.Fatal(err)
	}
	ctx := store.By(h.Context(), h.by.Actor("127.0.0.1"))
	back, err := h.Allow(httptest.NewRequest("POST", h.url, nil).WithContext(ctx), h.by, ask, parley.RoleViewer)
	if err != nil {
		h.Fatal(err)
	}
	u, err := url.Parse(back)
	if err != nil {
		h.Fatal(err)
	}
	q := u.Query()
	if u.Host != "claude.example" || q.Get("x") != "1" || q.Get("state") != "a state & more" || q.Get("iss") != h.url {
		h.Errorf("the reader is sent to %s", back)
	}
	return q.Get("code")
}

// token asks for tokens.
func (h *house) token(id string, changes ...string) (status int, out object) {
	h.Helper()
	form := url.Values{"client_id": {id}, "grant_type": {"authorization_code"}, "redirect_uri": {callback}, "code_verifier": {verifier}}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return h.send("POST", "/oauth/token", "application/x-www-form-urlencoded", form.Encode())
}

// who is whose access token it is; nil: nobody's.
func (h *house) who(token any, kinds ...parley.KeyKind) *auth.Who {
	h.Helper()
	text, _ := token.(string)
	who, err := h.Auth.Authenticate(h.Context(), text, kinds...)
	if err != nil && !errors.Is(err, auth.ErrUnauthenticated) {
		h.Fatal(err)
	}
	return who
}

// What apps need to know is where the specifications say.
func TestMetadata(t *testing.T) {
	each(t, func(h *house) {
		for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
			if _, out := h.send("GET", path, "", ""); out["resource"] != h.url+"/mcp" || out["authorization_servers"].([]any)[0] != h.url {
				h.Errorf("%s says %v", path, out)
			}
		}
		_, out := h.send("GET", "/.well-known/oauth-authorization-server", "", "")
		if out["issuer"] != h.url || out["authorization_endpoint"] != h.url+"/oauth/authorize" || out["token_endpoint"] != h.url+"/oauth/token" ||
			out["code_challenge_methods_supported"].([]any)[0] != "S256" || len(out["code_challenge_methods_supported"].([]any)) != 1 {
			h.Errorf("the server says %v", out)
		}
	})
}

// Readers are sent only where it is safe to send them.
func TestRegistration(t *testing.T) {
	each(t, func(h *house) {
		for _, uri := range []string{"https://claude.example/cb", "http://127.0.0.1:1234/cb", "http://localhost/cb", "http://[::1]:1/cb"} {
			h.register(uri)
		}
		for _, uri := range []string{"", "http://claude.example/cb", "javascript:alert(1)", "https://", "https:///cb", "https://a@b.example/cb",
			"https://claude.example/cb#x", "myapp://cb", "data:text/html,x", "http://localhost.evil.example/", "/cb",
			"https://claude.example/" + strings.Repeat("x", 600)} {
			raw, _ := json.Marshal(object{"redirect_uris": []string{uri}})
			if status, out := h.send("POST", "/oauth/register", "application/json", string(raw)); status != 400 ||
				out["error"] != "invalid_redirect_uri" {
				h.Errorf("%q is answered %d %v", uri, status, out)
			}
		}
		six, _ := json.Marshal(object{"redirect_uris": make([]string, 6)})
		for _, body := range []string{string(six), `{}`, `[]`, "no JSON", `{"client_name":"` + strings.Repeat("x", 20<<10) + `"}`} {
			if status, out := h.send("POST", "/oauth/register", "application/json", body); status != 400 {
				h.Errorf("%.40q is answered %d %v", body, status, out)
			}
		}
	})
}

// What an app asks for is refused where it is not the app's to ask, or not safe.
func TestAsk(t *testing.T) {
	each(t, func(h *house) {
		id := h.register(callback, "http://127.0.0.1:1234/cb")
		if ask, err := h.read(asking(id, "resource", h.url+"/mcp")); err != nil || ask.Name != "Claude" || ask.Host != "claude.example" ||
			ask.Local || !strings.Contains(ask.Refused(), "error=access_denied") {
			h.Errorf("the app asks %+v %v", ask, err)
		}
		if ask, err := h.read(asking(id, "redirect_uri", "http://127.0.0.1:9/cb")); err != nil || !ask.Local {
			h.Errorf("with another port of the reader's machine it asks %+v %v", ask, err)
		}
		other := &oauth.Server{Secret: []byte("another secret")}
		if _, err := other.Read(httptest.NewRequest("GET", h.url, nil), asking(id)); err == nil {
			h.Error("an id that another server signed is taken")
		}
		for _, c := range [][]string{{"client_id", ""}, {"client_id", id + "x"}, {"client_id", "x" + id}, {"redirect_uri", ""},
			{"redirect_uri", "https://claude.example/callback"}, {"redirect_uri", callback + "&y=2"}, {"redirect_uri", "https://evil.example/"},
			{"redirect_uri", "http://127.0.0.1:1234/other"}, {"redirect_uri", "http://localhost:1234/cb"}, {"response_type", "token"},
			{"code_challenge", ""}, {"code_challenge", "short"}, {"code_challenge_method", "plain"}, {"code_challenge_method", ""},
			{"resource", "https://other.example/mcp"}, {"state", strings.Repeat("x", 3000)}} {
			if ask, err := h.read(asking(id, c...)); err == nil {
				h.Errorf("%.60q is asked: %+v", c, ask)
			}
		}
	})
}

// A code is exchanged once, by the app that asked, with the proof that it is that app.
func TestExchange(t *testing.T) {
	each(t, func(h *house) {
		id := h.register(callback)
		code := h.code(id)
		status, out := h.token(id, "code", code, "resource", h.url+"/mcp")
		if status != 200 || out["token_type"] != "Bearer" || out["expires_in"] != 3600.0 {
			h.Fatalf("the code is answered %d %v", status, out)
		}
		access, refresh := out["access_token"], out["refresh_token"]
		who := h.who(access, parley.OAuthAccess)
		if who == nil || who.User.ID != h.by.User.ID || who.Role() != parley.RoleViewer || who.Key.Name != "Claude (claude.example)" {
			h.Fatalf("the access token is of %+v", who)
		}
		for _, token := range []any{access, refresh, code} {
			if h.who(token, parley.APIKey, parley.Session, parley.Console) != nil || token != access && h.who(token, parley.OAuthAccess) != nil {
				h.Errorf("%v is taken for something else", token)
			}
		}
		// The same code again: somebody has a copy, so that what it was exchanged for ends.
		if status, out := h.token(id, "code", code); status != 400 || out["error"] != "invalid_grant" {
			h.Errorf("the code's second exchange is answered %d %v", status, out)
		}
		if h.who(access, parley.OAuthAccess) != nil {
			h.Error("the access token outlives the second exchange of its code")
		}
		if status, _ := h.token(id, "grant_type", "refresh_token", "refresh_token", refresh.(string)); status != 400 {
			h.Error("so does the refresh token")
		}
		other := h.register(callback)
		if other != id { // ids say what was registered, and nothing else
			h.Error("the same app has two ids")
		}
		stranger := h.register(callback, "https://claude.example/other")
		for _, c := range [][]string{{"code_verifier", strings.Repeat("x", 43)}, {"code_verifier", "short"}, {"code_verifier", ""},
			{"redirect_uri", "https://claude.example/other"}, {"code", ""}, {"code", "1|x"}, {"grant_type", "password"},
			{"resource", "https://other.example/mcp"}, {"client_id", ""}, {"client_id", stranger}} {
			if status, out := h.token(id, append([]string{"code", h.code(id)}, c...)...); status != 400 || out["access_token"] != nil {
				h.Errorf("with %q it is answered %d %v", c, status, out)
			}
		}
	})
}

// A refresh token is another one after each use, and is the app's alone; an earlier one ends the grant.
func TestRefresh(t *testing.T) {
	each(t, func(h *house) {
		id, stranger := h.register(callback), h.register(callback, "https://claude.example/other")
		_, first := h.token(id, "code", h.code(id))
		again := func(id string, token any) (int, object) {
			return h.token(id, "grant_type", "refresh_token", "refresh_token", token.(string))
		}
		status, second := again(id, first["refresh_token"])
		if status != 200 || second["refresh_token"] == first["refresh_token"] || h.who(second["access_token"], parley.OAuthAccess) == nil {
			h.Fatalf("the refresh is answered %d %v", status, second)
		}
		if h.who(first["access_token"], parley.OAuthAccess) != nil {
			h.Error("the first access token outlives the refresh")
		}
		if list, err := h.db.Grants(h.Context(), h.by.User.ID, parley.Now()); err != nil || len(list) != 1 {
			h.Errorf("the grants are %v %v", list, err)
		}
		if status, _ := again(id, first["refresh_token"]); status != 400 {
			h.Errorf("the first refresh token is answered %d", status)
		}
		if status, _ := again(id, second["refresh_token"]); status != 400 || h.who(second["access_token"], parley.OAuthAccess) != nil {
			h.Error("the grant outlives the use of an earlier refresh token")
		}
		_, third := h.token(id, "code", h.code(id))
		if status, _ := again(stranger, third["refresh_token"]); status != 400 || h.who(third["access_token"], parley.OAuthAccess) != nil {
			h.Error("another app's refresh token is taken, or leaves the grant in force")
		}
	})
}

// A grant ends when the account ends it, or the app gives it back, or its holder is disabled.
func TestRevoked(t *testing.T) {
	each(t, func(h *house) {
		id := h.register(callback)
		made := func() object { _, out := h.token(id, "code", h.code(id)); return out }
		out := made()
		who := h.who(out["access_token"], parley.OAuthAccess)
		other := storetest.User(h.T, h.db, 0)
		if err := h.Auth.RevokeGrant(h.Context(), other.ID, who.Key.GrantID); !store.IsNotFound(err) {
			h.Errorf("another account ends it: %v", err)
		}
		if err := h.Auth.RevokeGrant(h.Context(), h.by.User.ID, who.Key.GrantID); err != nil {
			h.Fatal(err)
		}
		gone := func(what string, out object) {
			h.Helper()
			if status, _ := h.token(id, "grant_type", "refresh_token", "refresh_token", out["refresh_token"].(string)); status != 400 ||
				h.who(out["access_token"], parley.OAuthAccess) != nil {
				h.Errorf("%s: the tokens live on", what)
			}
		}
		gone("ended by the account", out)
		for _, which := range []string{"refresh_token", "access_token"} {
			out := made()
			form := url.Values{"token": {out[which].(string)}}.Encode()
			if status, _ := h.send("POST", "/oauth/revoke", "application/x-www-form-urlencoded", form); status != 200 {
				h.Errorf("giving back the %s is answered %d", which, status)
			}
			gone("given back by the "+which, out)
		}
		if status, _ := h.send("POST", "/oauth/revoke", "application/x-www-form-urlencoded", "token=1%7Cx"); status != 200 {
			h.Errorf("giving back nothing is answered %d", status)
		}
		out = made()
		if err := h.Auth.Disable(h.Context(), h.by.User.ID, false); err != nil {
			h.Fatal(err)
		}
		gone("disabled", out)
	})
}

// An address asks so often, and no more.
func TestRate(t *testing.T) {
	each(t, func(h *house) {
		h.Rate = auth.NewLimiter(auth.Rate{PerSecond: 0.001, Burst: 1})
		h.register(callback)
		if status, _ := h.send("POST", "/oauth/register", "application/json", `{}`); status != 429 {
			h.Errorf("the second registration is answered %d", status)
		}
	})
}
