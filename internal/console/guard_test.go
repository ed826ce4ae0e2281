package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/alert"
	"parley/internal/auth"
	"parley/internal/exam"
	"parley/internal/filter"
	"parley/internal/parley"
	"parley/internal/store"
)

// route is an entry of routes.
type route struct {
	method, path string
	anybody      bool // no session is needed
}

// everyRoute is every route that the source of routes registers, so that a new page must keep these rules too.
func everyRoute(t *testing.T) (list []route) {
	t.Helper()
	source, err := os.ReadFile("console.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`c\.(page|files|open)\("([A-Z]+) (/[^"]*)"`).FindAllStringSubmatch(
		string(source), -1) {
		list = append(list, route{method: m[2], path: m[3], anybody: m[1] == "open"})
	}
	if len(list) < 100 {
		t.Fatalf("%d routes were found", len(list))
	}
	return list
}

// at is the route's address with its ids filled in, which are found by the beginning of the route. It fails for an id
// that is not among them.
func (r route) at(t *testing.T, ids map[string]string) string {
	t.Helper()
	if strings.HasPrefix(r.path, "/join/") || strings.HasPrefix(r.path, "/reset/") {
		return strings.ReplaceAll(r.path, "{token}", ids[r.path[1:strings.LastIndexByte(r.path, '/')]])
	}
	path := strings.NewReplacer("{$}", "", "{document}", ids["document"], "{version}", "1", "{session}",
		"x", "{test}", ids["test"], "{run}", ids["run"], "{result}", ids["result"],
		"{token}", ids["token"], "{lead}", ids["lead"], "{note}", ids["note"], "{leg}", ids["leg"]).Replace(r.path)
	before, rest, found := strings.Cut(path, "{id}")
	if !found {
		return path
	}
	if ids[before] == "" {
		t.Fatalf("%s %s: nobody has such a thing here", r.method, r.path)
	}
	return before + ids[before] + rest
}

// everything creates one of everything that has an id, and returns the ids by where the pages are. What has a name is
// called name.
func (h *harness) everything(t *testing.T, u *parley.User, name string) map[string]string {
	t.Helper()
	a := h.caller(t, u, name)
	k := h.handbook(t, u)
	d := &parley.Document{Name: name, Type: parley.TXT, Links: []string{}}
	if err := h.Knowledge.Add(t.Context(), u.ID, k.ID, d); err != nil {
		t.Fatal(err)
	}
	c := h.called(t, u, a, over(parley.CustomerHangup))
	h.record(t, c)
	if _, err := h.Calls.KeepVoicemail(t.Context(), u.ID, a.ID, bytes.NewReader(message(1))); err != nil {
		t.Fatal(err)
	}
	leg := &parley.CallLeg{CallID: c.ID, Kind: parley.LegGuest, Status: parley.LegEnded, PhoneNumber: "+4930901821"}
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateLeg(ctx, u.ID, leg); err != nil {
			return err
		}
		_, err := tx.KeepLegRecording(ctx, leg.ID, "recordings/"+id(c.ID)) // another name for the call's
		return err
	})
	camp, err := h.Campaigns.Create(t.Context(), u,
		map[string]any{"name": name, "assistant_id": numeral(id(a.ID)), "allowed_hours_start_time": "00:00",
			"allowed_hours_end_time": "23:59", "timezone": "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := h.DB.Numbers(t.Context(), u.ID)
	if err != nil || len(numbers) == 0 {
		t.Fatal(numbers, err)
	}
	listed, err := h.Campaigns.Blacklist(t.Context(), u.ID, "+4930901899")
	if err != nil {
		t.Fatal(err)
	}
	own, err := h.Endpoints.Create(t.Context(), u.ID,
		map[string]any{"name": name, "kind": "agent", "protocol": "parley", "url": "https://example.com/turns"})
	if err != nil {
		t.Fatal(err)
	}
	test, run, result := h.examined(t, u, a, name)
	_, token, err := h.Auth.Share(t.Context(), u.ID, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	lead := &parley.Lead{CampaignID: camp.ID, PhoneNumber: "+4930901897", Variables: map[string]string{"name": name}}
	if err := h.Campaigns.AddLead(t.Context(), u.ID, lead, false); err != nil {
		t.Fatal(err)
	}
	kept, err := filter.Save(t.Context(), h.DB, u.ID, map[string]any{"page": "calls", "name": name, "query": "type=web"})
	if err != nil {
		t.Fatal(err)
	}
	watched, err := alert.Create(t.Context(), h.DB, u.ID, map[string]any{"name": name, "kind": "balance_below", "threshold": numeral("10")})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := h.Assistants.CreateGroup(t.Context(), u.ID, parley.Folder, map[string]any{"name": name})
	if err != nil {
		t.Fatal(err)
	}
	label, err := h.Assistants.CreateGroup(t.Context(), u.ID, parley.Label, map[string]any{"name": name, "color": "red"})
	if err != nil {
		t.Fatal(err)
	}
	conv := h.talk(t, a, parley.TestConversation).ID
	note, err := h.Chat.AddNote(t.Context(), u.ID, conv, name, name)
	if err != nil {
		t.Fatal(err)
	}
	canned, err := h.Chat.AddAnswer(t.Context(), u.ID, map[string]any{"name": "hours", "content": name})
	if err != nil {
		t.Fatal(err)
	}
	i, err := h.Auth.Invite(t.Context(), &auth.Who{User: u}, "", map[string]any{"name": name, "role": "agent",
		"email": fmt.Sprintf("invited-%d@example.com", u.ID)})
	if err != nil {
		t.Fatal(err)
	}
	member := h.member(t, u, parley.RoleAgent).Member
	member.Name = name
	err = h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.SaveMember(ctx, member) })
	if err != nil {
		t.Fatal(err)
	}
	link, err := h.Auth.ResetPassword(t.Context(), &auth.Who{User: u}, member.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	code, err := h.Auth.GrantCode(t.Context(), &auth.Who{User: u, Key: &parley.Key{}}, "", name, "an app")
	if err != nil {
		t.Fatal(err)
	}
	app, _, _ := strings.Cut(code, "|")
	return map[string]string{"/keys/apps/": app, "join": i.Token, "reset": link.Token, "/people/": id(member.ID),
		"/people/invitations/": id(i.ID), "token": token, "note": id(note.ID), "/canned-answers/": id(canned.ID), "/alerts/": id(watched.ID),
		"/filters/": id(kept.ID), "lead": id(lead.ID), "leg": id(leg.ID), "test": test, "run": run, "result": result,
		"/do-not-call/": id(listed.ID), "/assistants/": id(a.ID), "/calls/": id(c.ID), "/campaigns/": id(camp.ID),
		"/conversations/": conv, "/knowledge/": id(k.ID),
		"/tools/": id(h.tool(t, u, "secret_plans").ID), "/endpoints/": id(own.ID), "/numbers/": id(numbers[0].ID),
		"/numbers/caller-id/": id(h.askCallerID(t, u, "+4930901820")),
		"/trunks/":            id(h.trunk(t, u, name, "+4930901822").ID), "/whatsapp/": id(h.sender(t, u)),
		"/webhooks/": id(h.delivery(t, u, a).ID), "/webhooks/settings/test/": id(a.ID),
		"/keys/": id(h.key(t, u)), "document": id(d.ID), "/folders/": id(folder.ID), "/labels/": id(label.ID)}
}

// examined is a test of the assistant's with a run that failed.
func (h *harness) examined(t *testing.T, u *parley.User, a *parley.Assistant, name string) (test, run, result string) {
	t.Helper()
	script := "name: " + strconv.Quote(name) + "\nsteps:\n  - say: hello\n"
	made, err := h.Exams.Create(t.Context(), u.ID, a.ID, script)
	if err != nil {
		t.Fatal(err)
	}
	began, err := h.Exams.Start(t.Context(), u.ID, a.ID, exam.Order{})
	if err != nil {
		t.Fatal(err)
	}
	now := parley.Now()
	if err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.ClaimTests(ctx, "node", true, now, now.Add(time.Minute), 1)
		if err != nil || len(list) != 1 {
			return fmt.Errorf("claimed %v: %w", list, err)
		}
		r := &list[0]
		r.State, r.Picture = parley.TestFailed, "<svg/>"
		r.Verdicts = []parley.TestVerdict{{Line: 3, What: name, Got: name}}
		r.Turns = []parley.CallTurn{{Speaker: "customer", Text: name}}
		result = id(r.ID)
		_, err = tx.FinishTest(ctx, r)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return id(made.ID), id(began.ID), result
}

// Every route needs a session, every one that changes something refuses other websites, and every one with an id serves
// only its owner.
func TestEveryRouteIsGuarded(t *testing.T) {
	h := open(t, withCampaigns)
	owner := h.user(t)
	theirs := h.everything(t, owner, "Secret plans")
	unknown := map[string]string{}
	for kind := range theirs {
		unknown[kind] = "424242"
	}
	unknown["/conversations/"] = "00000000-0000-4000-8000-000000000000"
	nobody, own, other := h.visitor(t), h.signedIn(t, owner), h.signedIn(t, h.user(t))
	form := url.Values{"name": {"stolen"}, "message": {"stolen"}, "event": {"conversation.ended"}, "assistant_id": {""}}
	for _, r := range everyRoute(t) {
		path, body := r.at(t, theirs), form
		if r.method == http.MethodGet {
			body = nil
		} else {
			own.send(r.method, path, body, "Sec-Fetch-Site", "cross-site").is(http.StatusForbidden)
			own.send(r.method, path, body, "Origin", "https://evil.example").is(http.StatusForbidden)
		}
		if r.anybody {
			continue
		}
		if got := nobody.send(r.method, path, body); !strings.HasPrefix(
			got.is(http.StatusSeeOther).header.Get("Location"), "/signin") {
			t.Errorf("%s %s without a session leads to %s", r.method, r.path, got.header.Get("Location"))
		}
		nobody.send(r.method, path, body, "HX-Request", "true").is(http.StatusUnauthorized)
		if !strings.Contains(r.path, "{id}") {
			continue
		}
		foreign, none := other.send(r.method, path, body), other.send(r.method, r.at(t, unknown), body)
		if foreign.status != http.StatusNotFound || none.status != http.StatusNotFound {
			t.Errorf("%s %s answers another user %d, and for what nobody has %d", r.method, r.path, foreign.status,
				none.status)
		}
		if foreign.doc().Find("main").Text() != none.doc().Find("main").Text() {
			t.Errorf("%s %s tells a foreign id from an unknown one", r.method, r.path)
		}
	}
	for _, r := range everyRoute(t) { // and none of it was done
		if r.method == http.MethodGet && !strings.HasSuffix(r.path, "/live") && !strings.HasPrefix(r.path, "/signin") &&
			!strings.HasPrefix(r.path, "/oauth/") && // an app's own request, which TestApp makes
			!strings.HasPrefix(r.path, "/confirm/") { // a token that nobody was sent
			if got := own.get(r.at(t, theirs)); got.status >= http.StatusBadRequest {
				t.Errorf("the owner's %s answers %d", r.path, got.status)
			}
		}
	}
}

// Names are shown as text on every page.
func TestEveryPageShowsNamesAsText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	h := open(t, withCampaigns)
	u := h.user(t)
	ids := h.everything(t, u, evil)
	v := h.signedIn(t, u)
	shown := 0
	for _, r := range everyRoute(t) {
		if r.method != http.MethodGet || strings.HasSuffix(r.path, "/live") {
			continue
		}
		page := v.get(r.at(t, ids))
		if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
			continue
		}
		shown += strings.Count(page.doc().Find("main").Text(), evil)
		if page.doc().Find("script:not([src]), img:not([src^='/assistants/'][src$='/picture']), [onerror]").Length() > 0 ||
			strings.Contains(page.body, "<script>") {
			t.Errorf("%s: a name came alive", r.path)
		}
	}
	if shown < 20 {
		t.Errorf("the name was seen %d times", shown)
	}
}

// What people write keeps its direction on every page, and doesn't change that of the sentence around it.
func TestEveryPageIsolatesNames(t *testing.T) {
	const name = "מאפיית האופה"
	h := open(t, withCampaigns)
	u := h.user(t)
	ids := h.everything(t, u, name)
	v := h.signedIn(t, u)
	shown := 0
	for _, r := range everyRoute(t) {
		if r.method != http.MethodGet || strings.HasSuffix(r.path, "/live") {
			continue
		}
		page := v.get(r.at(t, ids))
		if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
			continue
		}
		page.doc().Find("main *").Each(func(_ int, el *goquery.Selection) {
			el.Contents().Each(func(_ int, text *goquery.Selection) {
				if goquery.NodeName(text) != "#text" || !strings.Contains(text.Text(), name) ||
					el.Closest("optgroup, option, title").Length() > 0 {
					return
				}
				shown++
				if el.Closest("[dir], bdi").Length() == 0 && !strings.Contains(text.Text(), "\u2068"+name+"\u2069") {
					t.Errorf("%s: the name takes the direction of the page in %q", r.path,
						strings.TrimSpace(text.Text()))
				}
			})
		})
		for _, box := range []string{"main textarea", "main input[type=text]:not([readonly])"} {
			page.doc().Find(box).Not("[dir=auto]").Each(func(_ int, el *goquery.Selection) {
				if name := el.AttrOr("name", ""); name != "username" && name != "phone_number" {
					t.Errorf("%s: what is written into %q takes the direction of the page", r.path, name)
				}
			})
		}
	}
	if shown < 20 {
		t.Errorf("the name was seen %d times", shown)
	}
}

// A hidden tab asks every live page for its current state, and holds no connection for it.
func TestEveryLivePageLooksOnce(t *testing.T) {
	h := open(t, withCampaigns)
	u := h.user(t)
	ids := h.everything(t, u, "Front desk")
	v := h.signedIn(t, u)
	pages := 0
	for _, r := range everyRoute(t) {
		if !strings.HasSuffix(r.path, "/live") {
			continue
		}
		pages++
		// the answer ends
		if got := v.send(r.method, r.at(t, ids), nil, "Parley-Once",
			"1").is(http.StatusOK); !strings.Contains(got.body, "event: ") {
			t.Errorf("%s says nothing: %q", r.path, got.body)
		}
	}
	if pages < 6 {
		t.Errorf("there are %d live pages", pages)
	}
}
