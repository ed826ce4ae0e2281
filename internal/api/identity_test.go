package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

var isoTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// password gives the harness's user a password.
func (h *harness) password(text string) {
	h.Helper()
	hash, err := auth.HashPassword(text)
	if err != nil {
		h.Fatal(err)
	}
	h.user.PasswordHash = hash
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
}

func TestMe(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.get("/user/me", status(200)).
			is(fmt.Sprintf(`{"id":%d,"name":"Ana","email":%q,"timezone":"UTC","country":"","plan":"default","total_balance":5}`,
				h.user.ID, h.user.Email))
	})
}

// Only the owner changes an account. A new email needs the password, and must not be another account's.
func TestUpdateMe(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.password("correct horse")
		other := storetest.User(t, h.db, 0)
		for _, c := range []struct {
			body  map[string]any
			field string
		}{
			{map[string]any{"name": ""}, "name"}, {map[string]any{"timezone": "Mars"}, "timezone"},
			{map[string]any{"email": "no address", "current_password": "correct horse"}, "email"},
			{map[string]any{"email": "new@example.com"}, "current_password"},
			{map[string]any{"email": "new@example.com", "current_password": "wrong"}, "current_password"},
			{map[string]any{"email": strings.ToUpper(other.Email), "current_password": "correct horse"}, "email"},
		} {
			errs, _ := h.do("PUT", "/user/me", c.body, status(422)).json()["errors"].(map[string]any)
			if len(errs) != 1 || errs[c.field] == nil {
				t.Errorf("%v is answered %v", c.body, errs)
			}
		}
		if u := h.get("/user/me", status(200)).json(); u["name"] != "Ana" || u["email"] != h.user.Email {
			t.Fatalf("a refused change changed %v", u)
		}
		got := h.do("PUT", "/user/me", map[string]any{"name": " Ana Lima ", "timezone": "America/Lima"},
			status(200)).json()["user"].(map[string]any)
		if got["name"] != "Ana Lima" || got["timezone"] != "America/Lima" || got["email"] != h.user.Email {
			t.Errorf("changed to %v", got)
		}
		mail := fmt.Sprintf("New-%d@Example.com", h.user.ID)
		h.do("PUT", "/user/me", map[string]any{"email": mail, "current_password": "correct horse"}, status(200))
		h.do("PUT", "/user/me", map[string]any{"email": strings.ToLower(mail)}, status(200)) // not a change
		h.post("/login", map[string]any{"email": mail, "password": "correct horse"}, header("Authorization", ""),
			status(200))
		h.post("/login", map[string]any{"email": h.user.Email, "password": "correct horse"},
			header("Authorization", ""), status(401))
		if u := h.get("/user/me", status(200)).json(); u["name"] != "Ana Lima" || u["email"] != strings.ToLower(mail) {
			t.Errorf("afterwards: %v", u)
		}
	})
}

func TestLoginAndLogout(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.password(" päss word ")
		none := header("Authorization", "")
		login := map[string]any{"email": "  " + strings.ToUpper(h.user.Email) + " ", "password": " päss word ",
			"token_name": "laptop"}
		a := h.post("/login", login, none, status(200)).json()
		if d := fmt.Sprint(a["user"]); d != fmt.Sprintf("map[email:%s id:%d name:Ana]", h.user.Email, h.user.ID) ||
			a["message"] == "" || len(a) != 3 {
			t.Errorf("login answers %v", a)
		}
		session := a["token"].(string)
		tokenForm(t, session)
		as := header("Authorization", "Bearer "+session)
		h.get("/user/me", as, status(200))
		if n := len(h.get("/user/api-keys", as).json()["api_keys"].([]any)); n != 1 {
			t.Errorf("%d keys: a session stands among them", n)
		}
		sid, _, _ := strings.Cut(session, "|")
		h.delete("/user/api-keys/"+sid, as, status(404)) // a session is no key
		bad := `{"message":"The email address or the password is wrong."}`
		for _, c := range []map[string]any{{"password": "päss word"}, {"password": "x"},
			{"email": "nobody@example.com"}, {"email": "no address"}, {"email": "' OR 1=1 --"}} {
			if got := h.post("/login", with(login, c), none, status(401)); !strings.HasPrefix(string(got.body), bad) {
				t.Errorf("%v: %s", c, got.body)
			}
		}
		h.post("/login", nil, none, status(422)).fails("email", "password")
		for _, v := range []any{5, true, []any{}, map[string]any{}, "", "  ", nil, "a\x00"} {
			h.post("/login", map[string]any{"email": v, "password": "x"}, none, status(422)).fails("email")
		}
		for _, v := range []any{5, true, []any{}, map[string]any{}, "", nil, strings.Repeat("x", 1025)} {
			h.post("/login", map[string]any{"email": "a@b.c", "password": v}, none, status(422)).fails("password")
		}
		h.post("/login", with(login, map[string]any{"token_name": strings.Repeat("é", 256)}), none,
			status(422)).fails("token_name")

		second := h.post("/login", login, none, status(200)).json()["token"].(string)
		h.post("/logout", nil, as, status(200)).is(`{"message":"Logged out successfully."}`)
		h.get("/user/me", as, status(401)).is(unauthenticated)
		h.post("/logout", nil, as, status(401))
		h.get("/user/me", header("Authorization", "Bearer "+second), status(200))
		h.post("/logout", nil, status(400)) // an API key is no session
		h.get("/user/me", status(200))

		h.user.DisabledAt = parley.Now()
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, h.user) })
		h.get("/user/me", status(401)).is(unauthenticated)
		h.get("/user/me", header("Authorization", "Bearer "+second), status(401)).is(unauthenticated)
		h.post("/login", login, none, status(401))
	})
}

func tokenForm(t *testing.T, token string) {
	t.Helper()
	if !regexp.MustCompile(`^\d+\|[A-Za-z0-9_-]{40,}$`).MatchString(token) {
		t.Errorf("the token %q is not ID|SECRET", token)
	}
}

func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.post("/user/api-keys", map[string]any{"name": " CI "}, status(201)).json()
		if made["message"] != "API key created successfully." {
			t.Errorf("message %v", made["message"])
		}
		key := made["api_key"].(map[string]any)
		token := key["token"].(string)
		tokenForm(t, token)
		if key["name"] != "CI" || !isoTime.MatchString(key["created_at"].(string)) {
			t.Errorf("made %v", key)
		}
		list := h.get("/user/api-keys", status(200))
		if strings.Contains(string(list.body), token[strings.IndexByte(token, '|'):]) ||
			strings.Contains(string(list.body), "hash") {
			t.Error("the list holds a secret")
		}
		newest := list.json()["api_keys"].([]any)[0].(map[string]any)
		if got := slices.Sorted(maps.Keys(newest)); !slices.Equal(got,
			[]string{"created_at", "id", "last_used_at", "name"}) || newest["last_used_at"] != nil {
			t.Errorf("listed %v", newest)
		}
		as := header("Authorization", "Bearer "+token)
		h.get("/user/me", as, status(200))
		newest = h.get("/user/api-keys").json()["api_keys"].([]any)[0].(map[string]any)
		if s, _ := newest["last_used_at"].(string); !isoTime.MatchString(s) {
			t.Errorf("last_used_at is %v after a use", newest["last_used_at"])
		}
		at := fmt.Sprintf("/user/api-keys/%d", id(newest))
		h.stranger().delete(at, status(404)).is(`{"message":"API key not found."}`)
		h.delete(at, as, status(200)).is(`{"message":"API key deleted successfully."}`) // a key can delete itself
		h.get("/user/me", as, status(401)).is(unauthenticated)
		h.delete(at, status(404)).is(`{"message":"API key not found."}`)

		h.post("/user/api-keys", nil, status(422)).
			is(`{"message":"The name field is required.","errors":{"name":["The name field is required."]}}`)
		for _, v := range []string{`5`, `true`, `[]`, `{}`} {
			h.post("/user/api-keys", nil, raw(`{"name":`+v+`}`), status(422)).says("name",
				"The name field must be a string.")
		}
		for _, v := range []string{`null`, `""`, `" \t "`} {
			h.post("/user/api-keys", nil, raw(`{"name":`+v+`}`), status(422)).says("name",
				"The name field is required.")
		}
		h.post("/user/api-keys", map[string]any{"name": strings.Repeat("😀", 255)}, status(201))
		h.post("/user/api-keys", map[string]any{"name": strings.Repeat("😀", 256)}, status(422)).says("name",
			"The name field must not be greater than 255 characters.")
	})
}

func TestBrokenCredentials(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n, secret, _ := strings.Cut(h.token, "|")
		stranger := h.stranger()
		m, _, _ := strings.Cut(stranger.token, "|")
		for _, v := range []string{
			"Bearer", "Bearer ", "Basic " + h.token, h.token, "Bearer" + h.token, "Token " + h.token, "Bearer " + n,
			"Bearer |" + secret,
			"Bearer " + secret, "Bearer " + n + "|", "Bearer " + n + "|" + secret[1:], "Bearer " + n + "|" +
				secret + "x", "Bearer " + n + "|" + strings.ToUpper(secret),
			"Bearer " + m + "|" + secret, "Bearer 0|" + secret, "Bearer -1|" + secret,
			"Bearer 99999999999999999999|" + secret, "Bearer x|" + secret,
			"Bearer 9223372036854775807|" + secret, "Bearer " + n + "||" + secret, "Bearer " + n + "|" +
				strings.Repeat("a", 43), "Bearer " + strings.Repeat("a", 5000),
			"Bearer \xff\xfe", "Bearer " + n + "|" + secret + " " + secret, "Bearer null", "Bearer '|' OR 1=1",
		} {
			h.get("/user/me", header("Authorization", v), status(401)).is(unauthenticated)
		}
		// the scheme's case and the number of spaces don't matter
		h.get("/user/me", header("Authorization", "bearer   "+h.token+" "), status(200))
		cookie := h.key(h.user, parley.Console)
		// the console's session token works only in its cookie
		h.get("/user/me", header("Authorization", "Bearer "+cookie), status(401))

		authority := &auth.Authority{DB: h.db, SessionFor: -time.Second}
		var expired string
		h.write(func(ctx context.Context, tx *store.Tx) (err error) {
			_, expired, err = authority.NewKey(ctx, tx, h.user.ID, parley.Session, "old")
			return err
		})
		h.get("/user/me", header("Authorization", "Bearer "+expired), status(401)).is(unauthenticated)
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteSessions(ctx, h.user.ID, 0) })
		h.get("/user/me", status(200)) // keys outlive sessions
	})
}

func TestRegister(t *testing.T) {
	none := header("Authorization", "")
	lite(t, nil).post("/register", map[string]any{}, none, status(404)).is(`{"message":"Not found."}`)
	eachDB(t, func(t *testing.T, db *store.DB) {
		h := open(t, db, func(c *api.Config) { c.Signup = true })
		body := map[string]any{"name": "Zoë", "email": "Zoe@Example.com", "password": "eight888"}
		a := h.post("/register", body, none, status(201)).json()
		token := a["token"].(string)
		tokenForm(t, token)
		me := h.get("/user/me", header("Authorization", "Bearer "+token), status(200)).json()
		if me["email"] != "zoe@example.com" || me["timezone"] != "UTC" || me["plan"] != "trial" ||
			me["total_balance"] != json.Number("0") {
			t.Errorf("registered %v", me)
		}
		h.post("/login", map[string]any{"email": "zoe@example.com", "password": "eight888"}, none, status(200))
		h.post("/register", with(body, map[string]any{"email": "ZOE@example.com"}), none, status(422)).says("email",
			"The email has already been taken.")
		h.post("/register", map[string]any{}, none, status(422)).fails("name", "email", "password")
		for field, values := range map[string][]any{
			"email": {"x", "a@b", "a b@c.de", "Ana <a@b.de>", "a@b.de,c@d.ef", 5, strings.Repeat("a", 251) +
				"@b.de"},
			"password": {"seven77", "7777777", 12345678, nil},
			"timezone": {"Mars/Olympus", "Local", "../etc/passwd", "/etc/localtime", 5, "UTC+1"},
			"name":     {"", 5, strings.Repeat("x", 256)},
		} {
			for _, v := range values {
				h.post("/register", with(body, map[string]any{"email": "b@c.de", field: v}), none,
					status(422)).fails(field)
			}
		}
		h.post("/register", with(body, map[string]any{"timezone": "Mars/Olympus", "password": "x"}), none,
			status(422)).fails("timezone", "password")
	})
}

func TestRequestLimit(t *testing.T) {
	h := lite(t, func(c *api.Config) { c.Rates.API = auth.Rate{PerSecond: 0.05, Burst: 4} })
	other := h.stranger()
	for left := range 4 {
		a := h.get("/user/me", status(200))
		if a.header.Get("X-RateLimit-Limit") != "4" || a.header.Get("X-RateLimit-Remaining") != fmt.Sprint(3-left) {
			t.Errorf("limit %s, remaining %s", a.header.Get("X-RateLimit-Limit"), a.header.Get("X-RateLimit-Remaining"))
		}
	}
	a := h.get("/user/nothing", status(429))
	wait := a.header.Get("Retry-After")
	if wait != "20" && wait != "19" || a.header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("Retry-After %s, remaining %s", wait, a.header.Get("X-RateLimit-Remaining"))
	}
	a.is(`{"message":"Too Many Attempts.","retry_after":` + wait + `}`)
	other.get("/user/me", status(200)) // each key has its own limit
	h.get("/user/me", header("Authorization", "Bearer "+h.key(h.user, parley.APIKey)), status(200))
	h.get("/user/me", header("Authorization", ""), status(401))

	free := lite(t, nil)
	if a := free.get("/user/me", status(200)); a.header.Get("X-RateLimit-Limit") != "" {
		t.Error("a limit that is off is told")
	}
}

func TestLoginLimits(t *testing.T) {
	h := lite(t, func(c *api.Config) { c.Auth.Logins = auth.NewLogins(auth.Rate{PerSecond: 0.01, Burst: 2}) })
	none := header("Authorization", "")
	try := func(email string, want int) *answer {
		t.Helper()
		return h.post("/login", map[string]any{"email": email, "password": "x"}, none, status(want))
	}
	try("a@example.com", 401)
	try("A@Example.com ", 401)
	a := try("a@example.com", 429)
	if got := a.json(); got["message"] != "Too Many Attempts." ||
		got["retry_after"] != json.Number(a.header.Get("Retry-After")) {
		t.Errorf("answered %s", a.body)
	}
	for i := range 9 { // 3 attempts were made already: an address has 12
		try(fmt.Sprintf("b%d@example.com", i), 401)
	}
	try("c@example.com", 429)
	h.post("/login", map[string]any{}, none, status(422)) // this is not an attempt
}
