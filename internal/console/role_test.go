package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/internal/auth"
	"parley/internal/parley"
)

// member makes a member of a user's account, with the password of these tests.
func (h *harness) member(t *testing.T, u *parley.User, role parley.Role) *auth.Who {
	t.Helper()
	i, err := h.Auth.Invite(t.Context(), &auth.Who{User: u}, "", map[string]any{"name": "Mo " + string(role), "role": string(role),
		"email": fmt.Sprintf("%s-%d@example.com", role, u.ID)})
	if err != nil {
		t.Fatal(err)
	}
	who, _, err := h.Auth.Accept(t.Context(), "192.0.2.1", i.Token, &auth.Acceptance{Password: password,
		Timezone: "Europe/Berlin"}, parley.Session)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// in is a visitor who is signed in as somebody.
func (h *harness) in(t *testing.T, who *auth.Who) *visitor {
	t.Helper()
	v := h.visitor(t)
	v.post("/signin", url.Values{"email": {who.Email()}, "password": {password}}).moved("/")
	return v
}

// Every route is asked for by every role. The least role that is let in must be what testdata/roles.txt says: somebody
// has thought about each line there. A new page belongs to administrators until roles (role.go) names it.
func TestRoles(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	people := map[parley.Role]*auth.Who{parley.RoleOwner: {User: u}}
	for _, role := range parley.Roles {
		if role != parley.RoleOwner {
			people[role] = h.member(t, u, role)
		}
	}
	refused := func(r route, who *auth.Who) bool {
		token, err := h.Auth.Begin(t.Context(), who, parley.Console, "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequest(r.method, strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(r.path), nil)
		req.AddCookie(&http.Cookie{Name: sessionCookie, Value: token})
		req.Header.Set("Parley-Once", "1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		no := strings.Contains(w.Body.String(), "You need the role ")
		if no && w.Code != http.StatusForbidden || strings.HasPrefix(w.Header().Get("Location"), "/signin") && r.path != "/signout" {
			t.Errorf("%s %s as %s: %d", r.method, r.path, who.Role(), w.Code)
		}
		return no
	}
	var got strings.Builder
	for _, r := range everyRoute(t) {
		least := "anybody"
		if !r.anybody {
			var may []parley.Role
			for _, role := range parley.Roles {
				if !refused(r, people[role]) {
					may = append(may, role)
				}
			}
			least = whoMay(t, r.method+" "+r.path, may)
		}
		fmt.Fprintf(&got, "%-31s %-6s %s\n", least, r.method, r.path)
	}
	const golden = "testdata/roles.txt"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s differs; if each role is meant as it is, change the file:\n%s", golden, differing(string(want), got.String()))
	}
	for line := range roles {
		method, path, _ := strings.Cut(line, " ")
		if !strings.Contains(got.String(), fmt.Sprintf(" %-6s %s\n", method, path)) {
			t.Errorf("the table of roles has %q, and there is no such route", line)
		}
	}
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

// differing are the lines that only one of two texts has.
func differing(want, got string) string {
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

// The pages of members have no link and no form that would be refused, and are what they were otherwise.
func TestPagesWithinRoles(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	a := h.assistant(t, u, "Desk")
	body := treeOf(a)
	body["variables"] = map[string]any{"code": "sesame"}
	body["system_prompt"] = "The door opens to {{code}}."
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, body); err != nil {
		t.Fatal(err)
	}
	editor := assistantPath(a.ID, "")
	pages := []string{"/", "/assistants", editor, "/calls", "/conversations", "/campaigns", "/knowledge", "/numbers", "/trunks",
		"/messages", "/do-not-call", "/alerts", "/analytics", "/account"}
	for _, role := range parley.Roles {
		if role == parley.RoleBilling { // who sees the ledger alone: TestBillingPages
			continue
		}
		who := &auth.Who{User: u}
		if role != parley.RoleOwner {
			who = h.member(t, u, role)
		}
		v := h.in(t, who)
		for _, page := range pages {
			doc := v.get(page).is(200).doc()
			for _, s := range doc.Find("a[href], form").EachIter() {
				method, to := "GET", s.AttrOr("href", s.AttrOr("action", s.AttrOr("hx-post", "")))
				if s.Is("form") {
					method = strings.ToUpper(s.AttrOr("method", "GET"))
				}
				if !h.may(role, method, to) && s.Find(":not([disabled])").Filter("input:not([type=hidden]), select, textarea").Length() > 0 ||
					!h.may(role, method, to) && s.Find("[type=submit]").Length() > 0 || s.Is("a") && !h.may(role, method, to) {
					t.Errorf("%s: %s is shown %s %s", page, role, method, to)
				}
			}
			if doc.Find("h1").Length() == 0 || doc.Find("nav a[href='/calls']").Length() != 1 {
				t.Errorf("%s: %s does not see it whole", page, role)
			}
			for path, least := range map[string]parley.Role{"/people": parley.RoleAdministrator, "/ledger": parley.NeedLedger,
				"/tools": parley.RoleEditor, "/account": parley.NeedSession, "/audit": parley.RoleAuditor} {
				want := role.Includes(least) || role == parley.RoleAuditor && path == "/people"
				if there := doc.Find("nav a[href='"+path+"']").Length() == 1; there != want {
					t.Errorf("%s: %s sees %s in the menu: %v", page, role, path, there)
				}
			}
		}
		changes := role.Includes(parley.RoleEditor)
		doc := v.get(editor).is(200).doc()
		if html, _ := doc.Html(); strings.Contains(html, "sesame") != changes {
			t.Errorf("%s sees the secrets of an assistant: %v", role, !changes)
		}
		if name := doc.Find("#f-name"); name.AttrOr("value", "") != "Desk" || (name.AttrOr("disabled", "no") == "no") != changes ||
			(doc.Find("#read-only").Length() == 0) != changes {
			t.Errorf("%s sees the editor, and may write there: %v", role, !changes)
		}
		if tests := doc.Find("#talk, [popovertarget=talk], [data-call]").Length() > 0; tests != changes {
			t.Errorf("%s is shown the test chat: %v", role, tests)
		}
		if status := v.post(editor, url.Values{"name": {"Taken"}}).status; (status == 403) == changes {
			t.Errorf("%s changes an assistant: %d", role, status)
		}
		if changes {
			v.post(editor+"/discard", nil).is(303)
		}
	}
}

// Somebody of the role billing sees the ledger, and may pay; nothing else is shown to them.
func TestBillingPages(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	v := h.in(t, h.member(t, u, parley.RoleBilling))
	v.get("/").moved("/ledger")
	doc := v.get("/ledger").is(200).doc()
	if n := doc.Find("nav a[href='/calls'], nav a[href='/people'], nav a[href='/assistants']").Length(); n != 0 {
		t.Errorf("%d links of the menu lead to what they may not see", n)
	}
	for _, page := range []string{"/calls", "/conversations", "/assistants", "/people", "/keys", "/audit"} {
		v.get(page).is(403)
	}
	v.get("/account").is(200)
}

// Somebody is invited by a link, joins with a password, minds their own profile, and is out as soon as they are removed.
func TestPeople(t *testing.T) {
	h := open(t)
	u := h.user(t)
	owner := h.signedIn(t, u)
	owner.post("/people", url.Values{"name": {""}, "email": {"x"}, "role": {"boss"}}).is(422).says("email")
	doc := owner.post("/people", url.Values{"name": {"Bo"}, "email": {"bo@example.com"}, "role": {"agent"}}).is(200).doc()
	link := strings.TrimPrefix(doc.Find("#link").AttrOr("value", ""), h.url)
	if !strings.HasPrefix(link, "/join/invite-") {
		t.Fatalf("the link is %q", link)
	}
	if owner.get("/people").is(200).says("Invited"); strings.Contains(owner.get("/people").body, link) {
		t.Error("the link is shown again")
	}
	v := h.visitor(t)
	v.get("/join/invite-1-x").is(404).says("no longer valid")
	if got := v.get(link).is(200).says("bo@example.com").doc().Find("#f-name").AttrOr("value", ""); got != "Bo" {
		t.Errorf("the name is %q", got)
	}
	form := url.Values{"name": {"Bo Li"}, "password": {"password"}, "timezone": {"Europe/Berlin"}}
	if again := v.post(link, form).is(422).says("easy to guess"); strings.Contains(again.body, `value="password"`) {
		t.Error("the password goes back into the page")
	}
	form.Set("password", password)
	v.post(link, form).moved("/")
	v.get("/").is(200).says("Bo Li")
	h.visitor(t).post(link, form).is(404)
	v.get("/people").is(403).says("You need the role administrator for this. You have the role agent.")
	v.get("/ledger").is(403)
	v.post("/account", url.Values{"name": {"Bo"}, "email": {"bo@example.com"}, "timezone": {"UTC"}}).moved("/account?done=saved")
	v.post("/account/password", url.Values{"current": {password}, "password": {"three green bottles"}, "revoke_keys": {"1"}}).
		moved("/account?done=password")
	v.get("/account").is(200).says("Agent")
	owner.get("/account").is(200) // the owner's session is not theirs
	list, err := h.DB.Members(t.Context(), u.ID)
	if err != nil || len(list) != 1 || list[0].Name != "Bo" {
		t.Fatalf("%+v %v", list, err)
	}
	path := personPath(&list[0], "")
	owner.post(path, url.Values{"role": {"editor"}}).moved("/people?done=saved")
	v.get("/tools").is(200)
	stranger := h.signedIn(t, h.user(t))
	stranger.post(path, url.Values{"role": {"viewer"}}).is(404)
	stranger.post(path+"/delete", nil).is(404)
	owner.post(path, url.Values{"disabled": {"1"}}).moved("/people?done=saved")
	v.get("/").moved("/signin")
	v.post("/signin", url.Values{"email": {"bo@example.com"}, "password": {"three green bottles"}}).is(401)
	owner.post(path, url.Values{"disabled": {"0"}}).moved("/people?done=saved")
	v.post("/signin", url.Values{"email": {"bo@example.com"}, "password": {"three green bottles"}}).moved("/")
	if _, err := h.Auth.ResetPassword(t.Context(), &auth.Who{User: u}, list[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	owner.post(path+"/delete", nil).moved("/people?done=gone")
	v.get("/").moved("/signin")
	owner.post("/people", url.Values{"name": {"Al"}, "email": {"al@example.com"}, "role": {"viewer"}}).is(200)
	invited, err := h.DB.Invitations(t.Context(), u.ID, parley.Now())
	if err != nil || len(invited) != 1 {
		t.Fatalf("%v %v", invited, err)
	}
	withdraw := fmt.Sprintf("/people/invitations/%d/delete", invited[0].ID)
	stranger.post(withdraw, nil).is(404)
	owner.post(withdraw, nil).moved("/people?done=withdrawn")
}

// A member who has forgotten their password chooses a new one by the owner's link, once. Their second factor stays, until
// the owner turns that off too.
func TestForgottenPassword(t *testing.T) {
	h := open(t)
	u := h.user(t)
	owner, stranger := h.signedIn(t, u), h.signedIn(t, h.user(t))
	who := h.member(t, u, parley.RoleAgent)
	v := h.in(t, who)
	path := personPath(who.Member, "")
	stranger.post(path+"/reset", nil).is(404)
	stranger.post(path+"/two-factor", nil).is(404)
	v.post(path+"/reset", nil).is(403)
	link := func() string {
		t.Helper()
		page := owner.post(path+"/reset", nil).is(200).says("works once")
		return strings.TrimPrefix(page.doc().Find("#link").AttrOr("value", ""), h.url)
	}
	old := link()
	fresh := link()
	lost := h.visitor(t)
	lost.get(old).is(404).says("no longer valid")
	lost.get("/reset/reset-1-x").is(404)
	lost.get(fresh).is(200).says(who.Email())
	v.get("/").is(200) // nothing has changed yet
	lost.post(fresh, url.Values{"password": {"password"}}).is(422).says("easy to guess")
	lost.post(fresh, url.Values{"password": {"three green bottles"}}).moved("/signin?done=reset")
	lost.post(fresh, url.Values{"password": {"four green bottles"}}).is(404) // once
	v.get("/").moved("/signin")
	v.post("/signin", url.Values{"email": {who.Email()}, "password": {password}}).is(401)
	v.post("/signin", url.Values{"email": {who.Email()}, "password": {"three green bottles"}}).moved("/")

	if page := owner.get("/people").is(200); strings.Contains(page.body, "Two-factor off") {
		t.Error("a second factor that is not there is turned off")
	}
	code, _ := v.turnOn("three green bottles")
	lost.post(link(), url.Values{"password": {"five green bottles"}}).moved("/signin?done=reset")
	lost.post("/signin", url.Values{"email": {who.Email()}, "password": {"five green bottles"}}).moved("/signin/code")
	lost.post("/signin/code", url.Values{"code": {code(1)}}).moved("/")
	owner.get("/people").is(200).says("Two-factor off")
	owner.post(path+"/two-factor", nil).moved("/people?done=second-gone")
	owner.post(path+"/two-factor", nil).is(404)
	h.visitor(t).post("/signin", url.Values{"email": {who.Email()}, "password": {"five green bottles"}}).moved("/")

	owner.post("/people/0/two-factor", nil).is(404) // not their own, which takes the password and a code
	last := link()
	owner.post(path, url.Values{"disabled": {"1"}}).moved("/people?done=saved")
	lost.get(last).is(404)
	owner.post(path+"/reset", nil).is(400)
}
