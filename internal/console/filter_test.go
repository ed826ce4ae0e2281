package console

import (
	"net/http"
	"net/url"
	"testing"

	"parley/internal/parley"
)

// Filters are saved from the list that has them, stand above it, are renamed and deleted.
func TestSavedFilters(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.caller(t, u, "Caller <b>")
	h.called(t, u, a, over(parley.CustomerHangup))
	v := h.signedIn(t, u)
	if n := v.get("/calls").doc().Find("#saved a").Length(); n != 0 {
		t.Errorf("without filters there are %d links", n)
	}
	at := "/calls?" + url.Values{"status": {"failed"}, "search": {"a & b"}, "date_from": {"2026-01-01"}}.Encode()
	link := v.get(at).doc().Find("#saved a").AttrOr("href", "")
	form := v.get(link).is(http.StatusOK).form("/filters/new")
	v.post("/filters/new", form).is(http.StatusUnprocessableEntity).says("check one field")
	form.Set("name", "Failed <b>")
	back := v.post("/filters/new", form).is(http.StatusSeeOther).header.Get("Location")
	page := v.get(back).is(http.StatusOK)
	if got := page.doc().Find("#saved a[aria-current]"); got.Text() != "Failed <b>" || got.AttrOr("href", "") != back {
		t.Errorf("saved as %q at %q, not %q", got.Text(), got.AttrOr("href", ""), back)
	}
	if got := page.doc().Find("select[name=status] option[selected]").AttrOr("value", ""); got != "failed" {
		t.Errorf("it filters %q", got)
	}
	if got := page.doc().Find("input[name=search]").AttrOr("value", ""); got != "a & b" {
		t.Errorf("it searches %q", got)
	}
	v.post("/filters/new", form).is(http.StatusUnprocessableEntity).says("already")
	v.post("/filters/new", url.Values{"page": {"calls"}, "query": {"status=wrong"}, "name": {"x"}}).moved("/filters")
	v.post("/filters/new", url.Values{"page": {"keys"}, "query": {"a=b"}, "name": {"x"}}).moved("/filters")

	at = "/analytics?range=30d&assistant_id=" + id(a.ID)
	form = v.get(v.get(at).doc().Find("#saved a").AttrOr("href", "")).form("/filters/new")
	form.Set("name", "Month")
	v.post("/filters/new", form).is(http.StatusSeeOther)
	v.get("/analytics").says("Month")
	if got := v.get(at).doc().Find("#saved a[aria-current]").Text(); got != "Month" {
		t.Errorf("the analytics' filter is %q", got)
	}

	list, err := h.DB.SavedFilters(t.Context(), u.ID, "")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	one := "/filters/" + id(list[0].ID)
	v.get("/filters").says("Failed <b>").says("Month")
	v.post(one, url.Values{"name": {""}}).is(http.StatusUnprocessableEntity).says("The name is required.")
	v.post(one, url.Values{"name": {"30 days"}}).moved("/filters?done=saved")
	v.get("/analytics").says("30 days")
	v.post(one+"/delete", nil).moved("/filters?done=deleted")
	if n := v.get("/analytics").doc().Find("#saved a").Length(); n != 0 {
		t.Errorf("after it was deleted there are %d links", n)
	}
}
