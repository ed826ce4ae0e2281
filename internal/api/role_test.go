package api_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// member makes a member of the house's account.
func (h *harness) member(role parley.Role) *auth.Who {
	h.Helper()
	i, err := h.authority.Invite(h.Context(), &auth.Who{User: h.user}, "", map[string]any{"name": "Mo", "role": string(role),
		"email": fmt.Sprintf("%s-%d@example.com", role, h.user.ID)})
	if err != nil {
		h.Fatal(err)
	}
	who, _, err := h.authority.Accept(h.Context(), "192.0.2.1", i.Token, &auth.Acceptance{Password: "correct horse battery",
		Timezone: "UTC"}, parley.Session)
	if err != nil {
		h.Fatal(err)
	}
	return who
}

// credential makes a member's session, or the owner's API key that is limited to a role.
func (h *harness) credential(who *auth.Who, how string, role parley.Role) (token string) {
	h.Helper()
	var err error
	if how == "session" {
		token, err = h.authority.Begin(h.Context(), who, parley.Session, "test", nil)
	} else {
		if role == parley.RoleOwner {
			role = ""
		}
		_, token, err = h.authority.MakeKey(h.Context(), &auth.Who{User: h.user}, &auth.KeyInput{Name: "test", Scope: role})
	}
	if err != nil {
		h.Fatal(err)
	}
	return token
}

// whoMay names those who may do something: the least of the roles that are one more than the other, and those beside them.
func whoMay(t *testing.T, what string, may []parley.Role) (text string) {
	t.Helper()
	for _, role := range parley.Roles {
		in := slices.Contains(may, role)
		switch beside := role == parley.RoleBilling || role == parley.RoleAuditor; {
		case in && beside:
			text += " +" + string(role)
		case in && text == "":
			text = string(role)
		case !in && !beside && text != "":
			t.Errorf("%s: %s may not what %s may", what, role, text)
		}
	}
	return text
}

// Every operation is called by every role, with a session and with a key. What the least role that gets through is must
// be what testdata/roles.txt says: somebody has thought about each line there. A new operation belongs to administrators until roles
// (role.go) names it.
func TestRoles(t *testing.T) {
	plan := func(name string) parley.Plan {
		p := usual().Plan(name)
		p.APIKeys = 100_000
		return p
	}
	h := open(t, storetest.SQLite(t, store.Rules{Plan: plan}), func(c *api.Config) { c.Signup = true })
	owner := &auth.Who{User: h.user}
	people := map[parley.Role]*auth.Who{parley.RoleOwner: owner}
	for _, role := range parley.Roles {
		if role != parley.RoleOwner {
			people[role] = h.member(role)
		}
	}
	// refused says whether a request was refused for the role of its credential
	refused := func(o api.Operation, as string) bool {
		r := httptest.NewRequest(o.Method, "/api"+strings.NewReplacer("{", "", "}", "").Replace(o.Path), nil)
		r.Header.Set("Authorization", "Bearer "+as)
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		text := w.Body.String()
		no := w.Code == 403 && (strings.Contains(text, "You need the role ") || strings.Contains(text, "You can't change an account"))
		if w.Code == 401 && !o.Anybody || strings.Contains(text, "the role ") != no {
			t.Errorf("%s %s: %d %s", o.Method, o.Path, w.Code, text)
		}
		return no
	}
	var got strings.Builder
	for _, o := range h.api.Operations() {
		least := map[string]string{}
		for _, how := range []string{"session", "key"} {
			var may []parley.Role
			for _, role := range parley.Roles {
				if !refused(o, h.credential(people[role], how, role)) {
					may = append(may, role)
				}
			}
			least[how] = whoMay(t, o.Method+" "+o.Path+" by "+how, may)
		}
		switch {
		case o.Anybody:
			least["session"] = "anybody"
		case least["session"] == "viewer +billing +auditor" && least["key"] == "owner":
			least["session"] = "self"
		case least["session"] != least["key"]:
			t.Errorf("%s %s: a member needs %s, a key %s", o.Method, o.Path, least["session"], least["key"])
		}
		fmt.Fprintf(&got, "%-31s %-6s %s\n", least["session"], o.Method, o.Path)
	}
	const golden = "testdata/roles.txt"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s differs; if each role is meant as it is, change the file:\n%s", golden, diff(string(want), got.String()))
	}
	for _, line := range api.RoleTable() {
		if !strings.Contains(got.String(), " "+line+"\n") {
			t.Errorf("the table of roles has %q, and there is no such operation", line)
		}
	}
}

// diff are the lines that only one of two texts has.
func diff(want, got string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, a, b string }{{"-", want, got}, {"+", got, want}} {
		for line := range strings.Lines(side.a) {
			if !strings.Contains("\n"+side.b, "\n"+line) {
				b.WriteString(side.sign + line)
			}
		}
	}
	return b.String()
}

// Somebody is invited, accepts, works within their role, and is refused from the moment they are disabled or removed.
func TestMembers(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		mine := h.get("/user/me", status(200))
		mine.is(fmt.Sprintf(`{"id":%d,"name":%q,"email":%q,"timezone":"UTC","country":"","plan":"default","total_balance":5}`,
			h.user.ID, h.user.Name, h.user.Email))
		h.post("/user/invitations", map[string]any{"email": "x", "role": "boss"}, status(422)).fails("email", "name", "role")
		h.post("/user/invitations", map[string]any{"email": strings.ToUpper(h.stranger().user.Email), "name": "X", "role": "viewer"},
			status(422)).says("email", "The email has already been taken.")
		invite := func(email string) (token string, id string) {
			data := h.post("/user/invitations", map[string]any{"email": email, "name": "Bo", "role": "agent"}, status(201)).
				json()["data"].(map[string]any)
			return data["token"].(string), fmt.Sprint(data["id"])
		}
		none := header("Authorization", "")
		address := fmt.Sprintf("Bo-%d@Example.com", h.user.ID)
		accept := func(token string) map[string]any {
			return map[string]any{"token": token, "password": "correct horse battery", "timezone": "Europe/Berlin"}
		}
		old, _ := invite(address)
		withdrawn, id := invite("other-" + address)
		h.stranger().delete("/user/invitations/"+id, status(404))
		h.delete("/user/invitations/"+id, status(200))
		token, _ := invite(address)
		if list := h.get("/user/invitations", status(200)).list(); len(list) != 1 || list[0]["token"] != nil {
			t.Errorf("invitations: %v", list)
		}
		for _, bad := range []string{old, withdrawn, token + "x", "invite-1-", "x"} {
			h.post("/invitations/accept", accept(bad), none, status(404))
		}
		weak := accept(token)
		weak["password"] = "password"
		h.post("/invitations/accept", weak, none, status(422)).fails("password")
		in := h.post("/invitations/accept", accept(token), none, status(201)).json()
		h.post("/invitations/accept", accept(token), none, status(404))
		as := header("Authorization", "Bearer "+in["token"].(string))
		me := h.get("/user/me", as, status(200)).json()
		if me["name"] != "Bo" || me["email"] != strings.ToLower(address) || me["role"] != "agent" ||
			me["timezone"] != "Europe/Berlin" || me["total_balance"] != nil || fmt.Sprint(me["id"]) != fmt.Sprint(h.user.ID) {
			t.Errorf("the member is %v", me)
		}
		// works in the account, by their role
		h.get("/user/calls", as, status(200))
		h.get("/user/tools", as, status(403)).is(`{"message":"You need the role editor for this. You have the role agent."}`)
		h.get("/user/knowledgebases/1", as, status(404))
		h.post("/user/knowledgebases", nil, as, status(403))
		h.put("/user/me", map[string]any{"name": "Bodo"}, as, status(200))
		h.put("/user/me", map[string]any{"email": h.user.Email, "current_password": "correct horse battery"}, as,
			status(422)).says("email", "The email has already been taken.")
		h.put("/user/me", map[string]any{"email": strings.ToLower(address), "current_password": "x"}, status(422))
		mine.is(strings.TrimSpace(string(h.get("/user/me", status(200)).body)))
		h.post("/register", nil, none) // whether there is such an operation or not, no 5xx

		list := h.get("/user/members", status(200)).list()
		if len(list) != 1 || list[0]["name"] != "Bodo" || list[0]["language"] != nil || list[0]["last_seen_at"] == nil {
			t.Fatalf("members: %v", list)
		}
		one := "/user/members/" + fmt.Sprint(list[0]["id"])
		h.stranger().put(one, map[string]any{"role": "viewer"}, status(404))
		h.stranger().delete(one, status(404))
		h.stranger().post("/user/api-keys", map[string]any{"name": "k", "member_id": list[0]["id"]}, status(422)).fails("member_id")

		key := h.post("/user/api-keys", map[string]any{"name": "k", "scope": "editor", "member_id": list[0]["id"]},
			status(201)).json()["api_key"].(map[string]any)
		asKey := header("Authorization", "Bearer "+key["token"].(string))
		if me := h.get("/user/me", asKey, status(200)).json(); me["role"] != "agent" { // the lesser of both
			t.Errorf("the key is %v", me)
		}
		h.stranger().post(one+"/reset-password", nil, status(404))
		h.stranger().delete(one+"/two-factor", status(404))
		h.post(one+"/reset-password", nil, as, status(403))
		link := h.post(one+"/reset-password", nil, status(201)).json()["data"].(map[string]any)
		if link["emailed"] != false || !strings.HasSuffix(fmt.Sprint(link["link"]), "/reset/"+fmt.Sprint(link["token"])) ||
			link["expires_at"] == nil {
			t.Errorf("the link is %v", link)
		}
		chosen := map[string]any{"token": link["token"], "password": "another horse battery"}
		h.post("/password/reset", map[string]any{"token": "x", "password": "another horse battery"}, none, status(404))
		h.post("/password/reset", map[string]any{"token": link["token"], "password": "password"}, none, status(422)).fails("password")
		h.post("/password/reset", chosen, none, status(200))
		h.post("/password/reset", chosen, none, status(404))
		h.get("/user/me", as, status(401))
		signed := h.post("/login", map[string]any{"email": strings.ToLower(address), "password": "another horse battery"}, none,
			status(200)).json()
		as = header("Authorization", "Bearer "+signed["token"].(string))
		h.delete(one+"/two-factor", status(404)) // there is none
		h.put(one, map[string]any{"role": "boss"}, status(422)).fails("role")
		h.put(one, map[string]any{"role": "viewer"}, status(200))
		h.post("/user/calls/1/hangup", nil, as, status(403))

		h.put(one, map[string]any{"disabled": true}, status(200))
		login := map[string]any{"email": address, "password": "another horse battery"}
		for _, as := range []option{as, asKey} {
			h.get("/user/me", as, status(401)).is(unauthenticated)
		}
		h.post("/login", login, none, status(401))
		h.put(one, map[string]any{"disabled": false}, status(200))
		h.get("/user/me", as, status(401)) // sessions have ended; keys are good again
		h.get("/user/me", asKey, status(200))
		again := h.post("/login", login, none, status(200)).json()
		if u := again["user"].(map[string]any); u["role"] != "viewer" || u["name"] != "Bodo" {
			t.Errorf("signed in as %v", u)
		}
		as = header("Authorization", "Bearer "+again["token"].(string))
		h.get("/user/me", as, status(200))
		h.delete(one, status(200))
		for _, as := range []option{as, asKey} {
			h.get("/user/me", as, status(401)).is(unauthenticated)
		}
		h.post("/login", login, none, status(401))
		if keys := h.get("/user/api-keys").json()["api_keys"].([]any); len(keys) != 1 {
			t.Errorf("keys: %v", keys)
		}
		h.delete(one, status(404))
	})
}
