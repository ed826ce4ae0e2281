package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

func TestAuditPage(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	a := h.assistant(t, u, "Front desk")
	v.get("/audit").is(http.StatusOK).says("Nothing yet")
	is := func(action parley.AuditAction, kind parley.AuditKind, thing, name string) {
		t.Helper()
		list, _, err := h.DB.Audit(t.Context(), u.ID, store.AuditFilter{}, store.Page{Number: 1, Size: 100})
		if err != nil || len(list) == 0 {
			t.Fatalf("%d entries: %v", len(list), err)
		}
		if e := list[0]; e.Action != action || e.Kind != kind || e.ThingID != thing || e.Name != name || e.Who != "owner" ||
			e.WhoName != "Ana" || e.Address != "127.0.0.1" {
			t.Errorf("the last entry is %+v, want %s %s %s %s", e, action, kind, thing, name)
		}
	}
	path := "/assistants/" + id(a.ID)
	form := v.get(path).form(path)
	form.Set("system_prompt", "Say s3cret things.")
	v.post(path, form).moved(path + "?done=drafted")
	is(parley.AuditCreated, parley.AuditDraft, id(a.ID), "Front desk")
	v.post(path+"/publish", nil).moved(path + "?done=published")
	is(parley.AuditDeleted, parley.AuditDraft, id(a.ID), "Front desk")
	v.post("/account/password", url.Values{"current": {"wrong"}, "password": {"another horse"}}).is(http.StatusUnprocessableEntity)
	v.post("/account/password", url.Values{"current": {password}, "password": {"another horse"}}).moved("/account?done=password")
	is(parley.AuditChanged, parley.AuditAccount, "", "Ana")
	v.post("/tools/new", url.Values{"name": {"look_up"}, "description": {"Looks up."}, "endpoint": {"https://example.com/s3cret"},
		"method": {"GET"}})
	list, err := h.DB.Tools(t.Context(), u.ID)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	is(parley.AuditCreated, parley.AuditTool, id(list[0].ID), "look_up")
	v.post("/tools/"+id(list[0].ID)+"/delete", nil)
	is(parley.AuditDeleted, parley.AuditTool, id(list[0].ID), "look_up")

	page := v.get("/audit").is(http.StatusOK).says("changed the assistant").says("system_prompt").says("deleted the tool").
		says("changed the account").says("from 127.0.0.1")
	for _, text := range []string{"s3cret", "another horse"} {
		if strings.Contains(page.body, text) {
			t.Errorf("the page shows %s", text)
		}
	}
	if page = v.get("/audit?kind=tool").is(http.StatusOK); page.doc().Find(".audit li").Length() != 2 {
		t.Errorf("%d rows of tools", page.doc().Find(".audit li").Length())
	}
	v.get("/audit?who=key:1").is(http.StatusOK).says("No entry matches")
	v.get("/audit?date_from=nonsense").moved("/audit")
	if csv := v.get("/audit.csv?kind=tool").is(http.StatusOK).body; strings.Count(csv, "\n") != 3 || !strings.Contains(csv, "look_up") {
		t.Errorf("CSV:\n%s", csv)
	}
	h.signedIn(t, h.user(t)).get("/audit").is(http.StatusOK).says("Nothing yet")
}

// Every kind of things has words in the filter and in a row.
func TestAuditWords(t *testing.T) {
	for _, o := range auditKinds[1:] {
		kind := parley.AuditKind(o.value)
		if auditThings[kind] == "" {
			t.Errorf("%s is in the filter, and has no words", kind)
		}
	}
	if len(auditThings) != len(auditKinds)-1 {
		t.Errorf("%d kinds have words, %d are in the filter", len(auditThings), len(auditKinds)-1)
	}
}
