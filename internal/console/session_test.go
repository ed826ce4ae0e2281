package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
)

func TestSignInGivesAGuardedCookie(t *testing.T) {
	h := open(t, func(c *Config) { c.Front.PublicURL = "https://voice.example.com" })
	u := h.user(t)
	form := url.Values{"email": {" " + strings.ToUpper(u.Email)}, "password": {password}}
	cookie := func(r *reply) *http.Cookie {
		t.Helper()
		list := (&http.Response{Header: r.header}).Cookies()
		if len(list) != 1 {
			t.Fatalf("%d cookies", len(list))
		}
		return list[0]
	}
	plain := cookie(h.visitor(t).post("/signin", form).moved("/"))
	if plain.Name != "parley_session" || !plain.HttpOnly || plain.Secure ||
		plain.SameSite != http.SameSiteLaxMode || plain.Path != "/" || plain.Domain != "" || plain.MaxAge != 3600 {
		t.Errorf("cookie %+v", plain)
	}
	r := h.visitor(t)
	req, _ := http.NewRequest("POST", h.url+"/signin", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Host = "voice.example.com" // as a proxy in front of us sends it
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if c := cookie(&reply{header: res.Header}); c.Name != "__Host-parley_session" || !c.Secure || !c.HttpOnly {
		t.Errorf("cookie over HTTPS: %+v", c)
	}
	if _, err := h.Auth.Authenticate(t.Context(), plain.Value, parley.APIKey, parley.Session); err == nil {
		t.Error("the console's cookie opens the API")
	}
}

func TestSignInTellsNothing(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.visitor(t)
	wrong := v.post("/signin", url.Values{"email": {u.Email},
		"password": {"wrong password"}}).is(http.StatusUnauthorized)
	unknown := v.post("/signin", url.Values{"email": {"nobody@example.com"},
		"password": {"wrong password"}}).is(http.StatusUnauthorized)
	if a, b := strings.ReplaceAll(wrong.body, u.Email, "*"),
		strings.ReplaceAll(unknown.body, "nobody@example.com", "*"); a != b {
		t.Errorf("an unknown address is told from a wrong password:\n%s\n%s", a, b)
	}
	if wrong.header.Get("Set-Cookie") != "" {
		t.Error("a cookie for a failure")
	}
	for _, form := range []url.Values{{}, {"email": {u.Email}}, {"password": {password}},
		{"email": {u.Email}, "password": {strings.Repeat("x", 2000)}}} {
		v.post("/signin", form).is(http.StatusUnprocessableEntity)
	}
}

func TestSessionIsNewAtEverySignIn(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.visitor(t)
	at, _ := url.Parse(h.url)
	planted := &http.Cookie{Name: "parley_session", Value: "1|" + strings.Repeat("a", 43), Path: "/"}
	v.client.Jar.SetCookies(at, []*http.Cookie{planted})
	form := url.Values{"email": {u.Email}, "password": {password}}
	v.post("/signin", form).moved("/")
	first := v.client.Jar.Cookies(at)[0].Value
	if first == planted.Value {
		t.Fatal("the planted session was taken")
	}
	v.get("/account").is(http.StatusOK)
	v.post("/signin", form).moved("/")
	second := v.client.Jar.Cookies(at)[0].Value
	if _, err := h.Auth.Authenticate(t.Context(), first, parley.Console); first == second || err == nil {
		t.Error("the older session still lives")
	}
	v.get("/signin?return=%2Fkeys").moved("/keys") // a visitor who is signed in needs no form

	v.post("/signout", nil).moved("/signin?done=signed-out")
	if _, err := h.Auth.Authenticate(t.Context(), second, parley.Console); err == nil {
		t.Error("the session outlives signing out")
	}
	v.client.Jar.SetCookies(at, []*http.Cookie{{Name: "parley_session", Value: second, Path: "/"}})
	v.get("/account").moved("/signin?return=%2Faccount")
	v.get("/signin?done=signed-out").is(http.StatusOK).says("You are signed out.")
	v.post("/signout", nil).moved("/signin?done=signed-out") // signing out twice is fine
}

func TestSessionEnds(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	disabled := *u
	disabled.DisabledAt = parley.Now()
	if err := h.DB.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.SaveUser(ctx, &disabled)
	}); err != nil {
		t.Fatal(err)
	}
	v.get("/account").moved("/signin?return=%2Faccount")

	short := open(t, func(c *Config) { c.Auth = &auth.Authority{DB: c.DB, SessionFor: time.Microsecond} })
	u = short.user(t)
	gone := short.visitor(t)
	gone.post("/signin", url.Values{"email": {u.Email}, "password": {password}}).moved("/")
	gone.get("/assistants?q=x").moved("/signin?return=" + url.QueryEscape("/assistants?q=x"))
	gone.post("/tools/new", nil, "Referer", short.url+"/tools/new").moved("/signin?return=%2Ftools%2Fnew")
	gone.post("/tools/new", nil, "Referer", "https://evil.example/x").moved("/signin")
}

func TestReturnPathIsLocal(t *testing.T) {
	for text, want := range map[string]string{
		"/keys": "/keys", "/assistants?q=a%20b&page=2": "/assistants?q=a%20b&page=2", "": "/", "keys": "/",
		"//evil.example": "/", "/\\evil.example": "/",
		"https://evil.example/": "/", "javascript:alert(1)": "/", "/%2f/evil": "/", "/a\r\nSet-Cookie: x": "/",
		"/\tx": "/", "/signin?return=/signin": "/", "http:/x": "/",
		"///evil.example": "/", "/ok//fine": "/ok//fine",
	} {
		if got := localPath(text); got != want {
			t.Errorf("localPath(%q) = %q, want %q", text, got, want)
		}
	}
	h := open(t)
	u := h.user(t)
	h.visitor(t).post("/signin", url.Values{"email": {u.Email}, "password": {password},
		"return": {"//evil.example/"}}).moved("/")
	h.visitor(t).post("/signin", url.Values{"email": {u.Email}, "password": {password},
		"return": {"/keys"}}).moved("/keys")
}

func TestSignInIsThrottled(t *testing.T) {
	h := open(t, func(c *Config) { c.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 1e-9, Burst: 2}) })
	u := h.user(t)
	v := h.visitor(t)
	wrong := url.Values{"email": {u.Email}, "password": {"wrong password"}}
	v.post("/signin", wrong).is(http.StatusUnauthorized)
	v.post("/signin", wrong).is(http.StatusUnauthorized)
	r := v.post("/signin", url.Values{"email": {u.Email},
		"password": {password}}).is(http.StatusTooManyRequests).says("Too many attempts.")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	// Another email address has a count of its own, but six times as many attempts block the visitor.
	for n := range 20 {
		email := "user" + id(int64(n)) + "@elsewhere.example"
		status := v.post("/signin", url.Values{"email": {email}, "password": {"x"}}).status
		if want := map[bool]int{true: http.StatusUnauthorized,
			false: http.StatusTooManyRequests}[n < 12-3]; status != want {
			t.Fatalf("attempt %d: %d, want %d", n, status, want)
		}
	}
}

func TestPasswordChange(t *testing.T) {
	// two sign-ins, a wrong guess, the right one
	h := open(t, func(c *Config) { c.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 1e-9, Burst: 4}) })
	u := h.user(t)
	here, there := h.signedIn(t, u), h.signedIn(t, u)
	h.key(t, u)
	h.key(t, u)
	change := func(current, next string) *reply {
		return here.post("/account/password", url.Values{"current": {current}, "password": {next}})
	}
	for _, c := range []struct{ current, next, field string }{
		{"", "new password", "current"}, {password, "short", "password"}, {password, "Password123!", "password"},
		{password, u.Email, "password"}, {password, strings.Repeat("x", 1025), "password"},
		{"not it at all", "new password", "current"},
	} {
		r := change(c.current, c.next).is(http.StatusUnprocessableEntity)
		if r.doc().Find("#e-"+c.field).Length() != 1 {
			t.Errorf("%+v: the error is not beside its field", c)
		}
		if strings.Contains(r.body, "new password\"") || strings.Contains(r.body, password) {
			t.Error("a password is in the page")
		}
	}
	there.get("/account").is(http.StatusOK)
	change(password, "new password").moved("/account?done=password")
	here.get("/account?done=password").is(http.StatusOK).says("Your password is changed.")
	there.get("/account").moved("/signin?return=%2Faccount")
	if _, err := h.Auth.Login(t.Context(), "192.0.2.1", u.Email, "new password"); err != nil {
		t.Errorf("the new password: %v", err)
	}
	// The keys stay, unless they are to be deleted too.
	keys := func() int {
		list, err := h.DB.Keys(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if keys() != 2 {
		t.Errorf("%d keys are left", keys())
	}
	// Guesses at the current password count like those at sign-in.
	change("guess", "another password").is(http.StatusUnprocessableEntity).says("Too many attempts.")
}

// Someone who fears that their password is known can delete all keys when they change it, and at any other time.
func TestKeysAreRevokedTogether(t *testing.T) {
	h := open(t)
	u, other := h.user(t), h.user(t)
	h.key(t, other)
	v := h.signedIn(t, u)
	keys := func(u *parley.User) int {
		list, err := h.DB.Keys(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	h.key(t, u)
	h.key(t, u)
	if v.get("/account").doc().Find("input[name=revoke_keys]").Length() != 1 ||
		v.get("/keys").doc().Find("form[action='/keys/delete']").Length() != 1 {
		t.Error("the choice is not there")
	}
	v.post("/account/password", url.Values{"current": {password}, "password": {"river stone lamp"},
		"revoke_keys": {"1"}}).moved("/account?done=password")
	if keys(u) != 0 {
		t.Errorf("%d keys outlive it", keys(u))
	}
	h.key(t, u)
	h.key(t, u)
	v.post("/keys/delete", nil).moved("/keys?done=revoked-all")
	if keys(u) != 0 || keys(other) != 1 {
		t.Errorf("%d keys are left, and %d of somebody else's", keys(u), keys(other))
	}
	v.get("/keys?done=revoked-all").says("All keys are revoked")
}

// The console and the API count sign-ins together.
func TestSignInsAreCountedOnce(t *testing.T) {
	h := open(t, func(c *Config) { c.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 1e-9, Burst: 2}) })
	u := h.user(t)
	for range 2 { // through the API
		if _, err := h.Auth.Login(t.Context(), "127.0.0.1", u.Email, "wrong"); err == nil {
			t.Fatal("signed in")
		}
	}
	h.visitor(t).post("/signin", url.Values{"email": {u.Email}, "password": {password}}).is(http.StatusTooManyRequests)
}

// A live stream counts against its address.
func TestStreamsPerAddress(t *testing.T) {
	h := open(t, func(c *Config) { c.Streams = auth.NewSlots(1) })
	v := h.signedIn(t, h.user(t))
	_, next := v.stream("GET", "/conversations/live", nil)
	until(t, next, "list", "")
	if r := v.get("/live").is(http.StatusTooManyRequests); r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// Name, email address and time zone can be changed. The email address, which is used to sign in, needs the password.
func TestProfile(t *testing.T) {
	// a sign-in, a wrong guess, two right ones
	h := open(t, func(c *Config) { c.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 1e-9, Burst: 4}) })
	u, other := h.user(t), h.user(t)
	v := h.signedIn(t, u)
	save := func(name, email, zone, password string) *reply {
		return v.post("/account", url.Values{"name": {name}, "email": {email}, "timezone": {zone},
			"current_password": {password}})
	}
	for _, c := range []struct{ name, email, zone, password, field string }{
		{"", u.Email, "UTC", "", "name"}, {strings.Repeat("x", 256), u.Email, "UTC", "", "name"},
		{"Ana", "", "UTC", password, "email"}, {"Ana", "no address", "UTC", password, "email"},
		{"Ana", u.Email, "Mars", "", "timezone"}, {"Ana", "new@example.com", "UTC", "", "current_password"},
		{"Ana", "new@example.com", "UTC", "not it at all", "current_password"},
		{"Ana", strings.ToUpper(other.Email), "UTC", password, "email"},
	} {
		r := save(c.name, c.email, c.zone, c.password).is(http.StatusUnprocessableEntity)
		if r.doc().Find("#e-"+c.field).Length() != 1 || r.doc().Find("[id^=e-]").Length() != 1 {
			t.Errorf("%+v: the error is not beside its field: %s", c, r.doc().Find("[id^=e-]").Text())
		}
		if strings.Contains(r.body, password) {
			t.Error("the password is in the page")
		}
	}
	if now, err := h.DB.User(t.Context(), u.ID); err != nil || now.Name != u.Name || now.Email != u.Email ||
		now.Timezone != u.Timezone {
		t.Fatalf("a refused change changed %+v %v", now, err)
	}
	save("Ana <b>", u.Email, "Europe/Berlin", "").moved("/account?done=saved")
	v.get("/account").says("Ana <b>").says("Europe/Berlin")
	save("Ana <b>", "New@Example.com", "Europe/Berlin", password).moved("/account?done=saved")
	if now, err := h.DB.User(t.Context(), u.ID); err != nil || now.Email != "new@example.com" ||
		now.PasswordHash != u.PasswordHash || now.Balance != u.Balance {
		t.Errorf("%+v %v", now, err)
	}
	// Guesses at the password here count like those at sign-in.
	for range 5 {
		save("Ana", "further@example.com", "UTC", "guess").is(http.StatusUnprocessableEntity)
	}
	save("Ana", "further@example.com", "UTC", password).is(http.StatusUnprocessableEntity).says("Too many attempts.")
}
