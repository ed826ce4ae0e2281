package console

import (
	"net/http"
	"testing"

	"parley/internal/parley"
)

// A tool of the customer's page has a form without what belongs to a request, and can't be tried here.
func TestPageTool(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	page := v.get("/tools/new?kind=client").says("New page tool")
	for _, field := range []string{"endpoint", "method", "mode"} {
		if page.doc().Find("[name="+field+"]").Length() != 0 {
			t.Errorf("the form asks for %s", field)
		}
	}
	form := page.form("/tools/new")
	form.Set("description", "Shows a product.")
	if r := v.post("/tools/new", form).is(http.StatusUnprocessableEntity).says("New page tool"); r.doc().Find("#e-name").Text() == "" ||
		r.doc().Find("#e-endpoint").Length() != 0 {
		t.Errorf("the mistakes are %q", r.doc().Find(".mistakes").Text())
	}
	form.Set("name", "show_product")
	form.Set("schema.0.name", "product")
	form.Set("schema.0.type", "string")
	form.Set("schema.0.description", "Its number")
	v.post("/tools/new", form).moved("/tools?done=created")
	list, err := h.DB.Tools(t.Context(), u.ID)
	if err != nil || len(list) != 1 || list[0].Kind != parley.ToolClient || list[0].Endpoint != "" || len(list[0].Schema) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	v.get("/tools").says("Page").says("show_product")
	path := "/tools/" + id(list[0].ID)
	page = v.get(path)
	if page.doc().Find("form[action$='/try']").Length() != 0 {
		t.Error("it can be tried")
	}
	form = page.form(path)
	form.Set("description", "Shows a product on the page.")
	v.post(path, form)
	if got, err := h.DB.Tool(t.Context(), u.ID, list[0].ID); err != nil || got.Kind != parley.ToolClient ||
		got.Description != "Shows a product on the page." || len(got.Schema) != 1 {
		t.Errorf("%+v %v", got, err)
	}
}
