package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parley"
)

func TestAssistantList(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/assistants").says("Make your first assistant")
	for i := range pageSize + 3 {
		h.assistant(t, u, "Desk "+id(int64(i)))
	}
	h.assistant(t, u, "ÄRZTE am Markt")
	rows := func(path string) []string {
		return v.get(path).is(http.StatusOK).doc().Find(".list li a").Map(textOfNode)
	}
	if got := rows("/assistants"); len(got) != pageSize || got[0] != "Desk 0" {
		t.Errorf("page 1: %q", got)
	}
	if got := rows("/assistants?page=2"); len(got) != 4 {
		t.Errorf("page 2: %q", got)
	}
	if got := rows("/assistants?q=desk+2&page=1"); len(got) != 9 { // 2, 20 to 27
		t.Errorf("search: %q", got)
	}
	if got := rows("/assistants?q=%C3%A4rzte"); len(got) != 1 {
		t.Errorf("search in another case: %q", got)
	}
	if got := rows("/assistants?q=desk&page=2"); len(got) != 3 {
		t.Errorf("page 2 of a search: %q", got)
	}
	v.get("/assistants?q=100%25").says("No assistant has “100%” in its name")
	v.get("/assistants?page=9").moved("/assistants?page=2")
	v.get("/assistants?page=-1").moved("/assistants")
	v.get("/assistants?page=x").moved("/assistants")
	if next := v.get("/assistants?q=desk").doc().Find("a[rel=next]").AttrOr("href",
		""); next != "/assistants?page=2&q=desk" {
		t.Errorf("next page of a search is %s", next)
	}
}

func TestEveryTemplateMakesAnAssistant(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	for _, tpl := range templates {
		form := v.get("/assistants/new").form("/assistants/new")
		form.Set("name", tpl.name)
		form.Set("template", tpl.id)
		form.Set("language_id", "3")
		path := v.post("/assistants/new", form).is(http.StatusSeeOther).header.Get("Location")
		v.get(path).is(http.StatusOK).says("Created.")
	}
	list, err := h.Assistants.All(t.Context(), u.ID, "")
	if err != nil || len(list) != len(templates) {
		t.Fatal(len(list), err)
	}
	for _, a := range list {
		if a.LanguageID != 3 || a.SystemPrompt == "" || len(a.PostCallSchema) < 2 || a.Status != "inactive" {
			t.Errorf("%+v", a)
		}
	}
	r := v.post("/assistants/new", url.Values{"name": {" "}, "template": {"nothing"},
		"language_id": {"9999"}}).is(http.StatusUnprocessableEntity)
	for _, want := range []string{"This field is required.", "Choose one of the templates.",
		"No voice on this server speaks this language"} {
		r.says(want)
	}
}

func TestVersions(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	form.Set("system_prompt", "You are kind.\r\nYou are brief.")
	v.publish(path, form)
	form = v.get(path).form(path)
	form.Set("system_prompt", "You are kind.\r\nYou are very brief.")
	v.publish(path, form)

	if n := v.get(path + "/versions").doc().Find(".list li").Length(); n != 3 {
		t.Errorf("%d versions", n)
	}
	d := v.get(path + "/versions/2").is(http.StatusOK).doc()
	if del, ins := d.Find("del").Text(), d.Find("ins").Text(); del != "−You are brief." ||
		ins != "+You are very brief." {
		t.Errorf("diff: %q, %q", del, ins)
	}
	if d.Find(`form[action="`+path+`/versions/2/restore"]`).Length() != 1 {
		t.Error("it can't be restored")
	}
	v.get(path + "/versions/3").says("This is the live version.")
	v.get(path + "/versions/9").is(http.StatusNotFound)
	v.get(path + "/versions/x").is(http.StatusNotFound)
	if d := v.get(path + "/versions/1?to=2").doc(); d.Find(".change ins").Text() != "+You are kind.+You are brief." {
		t.Errorf("from the first to the second: %q", d.Find(".change").Text())
	}
	v.post(path+"/versions/2/restore", nil).moved(path + "?done=restored")
	if got, err := h.Assistants.Get(t.Context(), u.ID, a.ID); err != nil || got.PromptVersion != 4 ||
		got.SystemPrompt != "You are kind.\nYou are brief." {
		t.Errorf("restored: %d %q %v", got.PromptVersion, got.SystemPrompt, err)
	}
}

func TestPublishing(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	live := func() *parley.Assistant {
		t.Helper()
		got, err := h.Assistants.Get(t.Context(), u.ID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	v.get(path + "/publish").is(http.StatusOK).says("Nothing to publish")
	v.post(path+"/publish", nil).is(http.StatusNotFound)
	form := v.get(path).form(path)
	form.Set("name", "Reception")
	form["wait_for_customer"] = []string{"0", "1"}
	form.Set("then", "publish")
	v.post(path, form).moved(path + "/publish")
	if got := live(); got.Name != "Front desk" || got.WaitForCustomer {
		t.Errorf("a draft is live: %+v", got)
	}
	page := v.get(path).says("Draft, not live.").says("Changed: Name, Let the customer speak first.")
	if page.form(path).Get("name") != "Reception" || page.doc().Find("h1").Text() != "Front desk" {
		t.Error("the editor does not show the draft")
	}
	d := v.get(path + "/publish").is(http.StatusOK).doc()
	if got := d.Find(".change").Map(textOfNode); len(got) != 2 || !strings.Contains(got[0], "−Front desk +Reception") ||
		!strings.Contains(got[1], "−off +on") {
		t.Errorf("what changes: %q", got)
	}
	v.post(path+"/publish", url.Values{"note": {" A new name. "}}).moved(path + "?done=published")
	if got := live(); got.Name != "Reception" || !got.WaitForCustomer {
		t.Errorf("published %+v", got)
	}
	list := v.get(path + "/versions").doc().Find(".list li").First().Text()
	for _, want := range []string{"Version 2", "A new name.", "Name, Let the customer speak first", "live", u.Name} {
		if !strings.Contains(list, want) {
			t.Errorf("the version is listed as %q, without %q", list, want)
		}
	}
	if strings.Contains(v.get(path).body, "Draft, not live.") {
		t.Error("a published draft is still one")
	}
	form = v.get(path).form(path)
	form.Set("name", "Dropped")
	v.post(path, form).moved(path + "?done=drafted")
	v.post(path+"/discard", nil).moved(path + "?done=discarded")
	if got := v.get(path).form(path).Get("name"); got != "Reception" {
		t.Errorf("after discarding: %q", got)
	}
	// An assistant that can't be published says why, and its button is disabled.
	form = v.get(path).form(path)
	form["is_webhook_active"] = []string{"0", "1"}
	v.post(path, form).moved(path + "?done=drafted")
	d = v.get(path + "/publish").says("It can't be published yet").doc()
	if _, off := d.Find("#publish").Attr("disabled"); !off {
		t.Error("it can be published with problems")
	}
	v.post(path+"/publish", nil).is(http.StatusConflict)
	if live().IsWebhookActive {
		t.Error("it is live with problems")
	}
	stranger := h.signedIn(t, h.user(t))
	for _, tail := range []string{"/publish", "/versions", "/versions/1"} {
		stranger.get(path + tail).is(http.StatusNotFound)
	}
	stranger.post(path+"/publish", nil).is(http.StatusNotFound)
	stranger.post(path+"/discard", nil).is(http.StatusNotFound)
	stranger.post(path+"/versions/1/restore", nil).is(http.StatusNotFound)
	if v.get(path).form(path).Get("is_webhook_active") == "" || !strings.Contains(v.get(path).body, "Draft, not live.") {
		t.Error("another user discarded the draft")
	}
}

// The test beside the editor talks to the draft, and follows its changes.
func TestTalkingToTheDraft(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	form.Set("initial_message", "Drafted hello.")
	v.post(path, form).moved(path + "?done=drafted")
	r := v.post(path+"/talk", url.Values{"variables": {""}}).is(http.StatusSeeOther)
	v.get(r.header.Get("Location")).says("Drafted hello.")
	live, _, err := h.Chat.Start(t.Context(), a, parley.WidgetConversation, nil)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := h.DB.Messages(t.Context(), live.ID); err != nil || len(list) != 1 || list[0].Content == "Drafted hello." {
		t.Errorf("the draft speaks to customers: %+v, %v", list, err)
	}
	v.get(path).says("You are talking to the draft")
}

func TestToolSecretsStayOnTheServer(t *testing.T) {
	h := open(t)
	u := h.user(t)
	tool := h.tool(t, u, "look_up")
	v := h.signedIn(t, u)
	path := "/tools/" + id(tool.ID)
	stored := func() *parley.Tool {
		t.Helper()
		got, err := h.DB.Tool(t.Context(), u.ID, tool.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	hidden := func(r *reply) *reply {
		t.Helper()
		if strings.Contains(r.body, "secret-value") {
			t.Fatal("the page holds the secret")
		}
		return r
	}
	form := hidden(v.get(path)).form(path)
	form.Set("description", "Looks an order up.")
	v.post(path, form).moved(path + "?done=saved")
	if got := stored(); got.Headers[0].Value != secret || got.Headers[1].Value != "{{kind}}" ||
		got.Description != "Looks an order up." || len(got.Schema) != 1 || !got.Schema[0].Required {
		t.Errorf("saved as %+v", got)
	}

	// The first header is removed, the second is renamed and keeps its value, and a new one is added.
	form = v.get(path).form(path)
	for _, field := range []string{"name", "value", "kept"} {
		form.Del("headers.0." + field)
	}
	form.Set("headers.1.name", "X-Sort")
	form.Set("headers.5.name", "X-New")
	form.Set("headers.5.value", "new")
	form.Set("method", "TEAPOT")
	r := hidden(v.post(path, form).is(http.StatusUnprocessableEntity))
	if r.doc().Find("#e-method").Length() != 1 {
		t.Error("the error is not beside its field")
	}
	form = r.form(path) // the user corrects it in the page that shows the error
	form.Set("method", "POST")
	v.post(path, form).moved(path + "?done=saved")
	if got := stored().Headers; len(got) != 2 || got[0] != (parley.ToolHeader{Name: "X-Sort", Value: "{{kind}}"}) ||
		got[1] != (parley.ToolHeader{Name: "X-New", Value: "new"}) {
		t.Errorf("headers %+v", got)
	}

	// A new value replaces the stored one; an index beyond the list keeps no value.
	form = v.get(path).form(path)
	form.Set("headers.0.value", "edited")
	form.Set("headers.1.kept", "7")
	v.post(path, form).moved(path + "?done=saved")
	if got := stored().Headers; got[0].Value != "edited" || got[1].Value != "" {
		t.Errorf("headers %+v", got)
	}

	stale := form
	stale.Set("seen", "1")
	hidden(v.post(path, stale).is(http.StatusConflict)).says("while you were editing it")
	v.post(path+"/delete", nil).moved("/tools?done=deleted")
	v.get("/tools").says("Give your assistants tools")
}

func TestToolErrorsStandBesideTheirFields(t *testing.T) {
	h := open(t)
	u := h.user(t)
	h.tool(t, u, "look_up")
	v := h.signedIn(t, u)
	good := url.Values{"name": {"book_table"}, "description": {"Books."}, "endpoint": {"https://x.example/"},
		"method": {"POST"}, "timeout": {"5"}, "schema": {""}, "headers": {""},
		"schema.3.name": {"day"}, "schema.3.type": {"string"}, "schema.3.description": {"Which day"},
		"schema.3.required": {"0", "1"}}
	for field, bad := range map[string]string{"name": "Bad Name", "description": "", "endpoint": "ftp://x",
		"method": "X", "timeout": "31", "schema.3.name": "1", "schema.3.description": "x",
		"schema.3.type": "date"} {
		form := url.Values{}
		for k, v := range good {
			form[k] = v
		}
		form.Set(field, bad)
		shown := strings.Replace(field, ".3.", ".0.", 1)
		r := v.post("/tools/new", form).is(http.StatusUnprocessableEntity)
		if wrong := r.doc().Find(`[id="e-` + shown + `"]`); wrong.Length() != 1 || wrong.Text() == "" {
			t.Errorf("%s: no error beside the field\n%s", field, r.doc().Find(".mistakes").Text())
		}
		if r.doc().Find(`.mistakes a[href="#f-`+shown+`"]`).Length() != 1 ||
			r.doc().Find(`[id="f-`+shown+`"][aria-invalid=true]`).Length() != 1 {
			t.Errorf("%s: the list of mistakes does not lead to the field", field)
		}
		if got := r.form("/tools/new").Get(shown); got != bad && field != "method" && field != "schema.3.type" {
			t.Errorf("%s: the box holds %q", field, got)
		}
	}
	taken := url.Values{}
	for k, v := range good {
		taken[k] = v
	}
	taken.Set("name", "look_up")
	if r := v.post("/tools/new", taken).is(http.StatusUnprocessableEntity); r.doc().Find(
		"#e-name").Text() != "The name has already been taken." {
		t.Error("a taken name")
	}
	v.post("/tools/new", good).moved("/tools?done=created")
	v.get("/tools").says("book_table")
}

func TestToolsAreLimitedByThePlan(t *testing.T) {
	h := open(t)
	u := h.user(t)
	h.Prices.Plans["default"] = parley.Plan{Tools: 1, StoredMB: 1}
	h.tool(t, u, "look_up")
	form := url.Values{"name": {"book_table"}, "description": {"Books."}, "endpoint": {"https://x.example/"},
		"method": {"POST"}}
	h.signedIn(t, u).post("/tools/new", form).is(http.StatusForbidden).says("Your plan allows 1 tools.")
}

func TestKeys(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	if r := v.post("/keys", url.Values{"name": {" "}}).is(http.StatusUnprocessableEntity); r.doc().Find(
		"#e-name").Length() != 1 {
		t.Error("no error beside the name")
	}
	token := v.post("/keys", url.Values{"name": {"shop"}}).is(http.StatusOK).doc().Find("#token").AttrOr("value", "")
	who, err := h.Auth.Authenticate(t.Context(), token, parley.APIKey)
	if err != nil || who.User.ID != u.ID || who.Key.Name != "shop" {
		t.Fatal(who, err)
	}
	_, half, _ := strings.Cut(token, "|")
	if list := v.get("/keys").says("shop"); strings.Contains(list.body, half) {
		t.Error("the token is shown again")
	}
	v.post("/keys/"+id(who.Key.ID)+"/delete", nil).moved("/keys?done=revoked")
	if _, err := h.Auth.Authenticate(t.Context(), token, parley.APIKey); err == nil {
		t.Error("the key outlives its end")
	}
	// A session is not a key: it can't be ended from here.
	session := v.harness.signedIn(t, u)
	at, _ := url.Parse(h.url)
	own, _, _ := strings.Cut(session.client.Jar.Cookies(at)[0].Value, "|")
	v.post("/keys/"+own+"/delete", nil).is(http.StatusNotFound)
}

// A share link is shown once, opens a page that needs no sign-in, and can be revoked.
func TestShareLinks(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID) + "/share"
	link := v.post(path, nil).is(http.StatusOK).says("Copy it now").doc().Find("#link").AttrOr("value", "")
	if strings.Contains(v.get(path).says("Valid links").body, link) {
		t.Error("the link is shown again")
	}
	at, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(at.Path, "/share/share-") {
		t.Fatalf("%q, %v", link, err)
	}
	page := h.visitor(t).get(at.Path).is(http.StatusOK).says("been invited to try a draft of")
	if page.doc().Find(`script[src="/embed.js"]`).AttrOr("data-assistant-id", "") != strings.TrimPrefix(at.Path, "/share/") {
		t.Error("the widget does not talk by the link")
	}
	h.visitor(t).get(at.Path + "x").is(http.StatusNotFound).says("This link is no longer valid")
	h.visitor(t).get("/share/share-1").is(http.StatusNotFound)
	v.post(path+"/revoke", nil).moved(path + "?done=unshared")
	h.visitor(t).get(at.Path).is(http.StatusNotFound)
}

// The page for publishing shows the results of the draft's tests.
func TestPublishingShowsTheTests(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	path := "/assistants/" + id(a.ID)
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID, map[string]any{"require_tests": true}); err != nil {
		t.Fatal(err)
	}
	form := v.get(path).form(path)
	form.Set("name", "Reception")
	v.post(path, form).moved(path + "?done=drafted")
	if d := v.get(path + "/publish").says("have not been run against the draft").doc(); d.Find(`[name="skip_tests"]`).Length() != 1 {
		t.Error("nobody can overrule it")
	}
	v.post(path+"/publish", nil).is(http.StatusConflict).says("have not been run")
	v.post(path+"/publish", url.Values{"skip_tests": {"1"}, "note": {"Now."}}).moved(path + "?done=published")
	if text := v.get(path + "/versions").doc().Find(".list li").First().Text(); !strings.Contains(text, "Now. (Published without its tests") {
		t.Errorf("the version is %q", text)
	}
	v.post(path+"/duplicate", nil).is(http.StatusSeeOther)
	if list, err := h.DB.Assistants(t.Context(), u.ID, ""); err != nil || len(list) != 2 || list[1].Name != "Reception (copy)" {
		t.Errorf("the copy: %+v, %v", list, err)
	}
}
