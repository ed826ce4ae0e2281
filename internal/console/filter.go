package console

import (
	"net/url"
	"strings"

	"parley/internal/filter"
	"parley/internal/form"
	"parley/internal/parley"
)

// filtered are the lists whose filters can be saved.
var filtered = enum("calls=Calls", "analytics=Analytics")

// saved is what a list shows of the filters that are saved for it.
type saved struct {
	page, query string // query: the filters that the list has now
	list        []parley.SavedFilter
}

func (c *Console) saved(r *request, page string, filters url.Values) (s saved, err error) {
	s = saved{page: page, query: filters.Encode()}
	s.list, err = c.DB.SavedFilters(r.Context(), r.UserID(), page)
	return s, err
}

// known says whether the list's filters are saved as they are.
func (s saved) known() bool {
	for _, f := range s.list {
		if f.Query == s.query {
			return true
		}
	}
	return false
}

// new is where the list's filters are saved.
func (s saved) new() string {
	return address("/filters/new", url.Values{"page": {s.page}, "query": {s.query}}, 0)
}

// filterForm is the page that saves filters.
type filterForm struct {
	*fields
	page, query string
}

// filtersOf are the filters of a list in a text, as the list itself would write them; "" where there are none.
func filtersOf(page, text string) string {
	v, err := url.ParseQuery(text)
	if err != nil {
		return ""
	}
	switch page {
	case "calls":
		var q callQuery
		if len(form.Query(v, &q)) == 0 {
			return q.values().Encode()
		}
	case "analytics":
		var q analyticsQuery
		if len(form.Query(v, &q)) == 0 {
			return q.whole().Encode()
		}
	}
	return ""
}

func (c *Console) filterNew(r *request) (*answer, error) {
	page := r.URL.Query().Get("page")
	query := filtersOf(page, r.URL.Query().Get("query"))
	if query == "" {
		return see("/filters"), nil
	}
	return show("Save filters", filterNew(&filterForm{fieldsOf[parley.SavedFilter](map[string]any{}, nil), page, query})), nil
}

func (c *Console) filterSave(r *request) (*answer, error) {
	page := r.PostFormValue("page")
	query := filtersOf(page, r.PostFormValue("query"))
	if query == "" {
		return see("/filters"), nil
	}
	tree := map[string]any{"page": page, "query": query, "name": r.PostFormValue("name")}
	_, err := filter.Save(r.Context(), c.DB, r.UserID(), tree)
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see("/" + page + "?" + query), nil
	case !ok:
		return nil, err
	}
	return invalid("Save filters", filterNew(&filterForm{fieldsOf[parley.SavedFilter](tree, wrong), page, query})), nil
}

func (c *Console) filterList(r *request) (*answer, error) {
	list, err := c.DB.SavedFilters(r.Context(), r.UserID(), "")
	return show("Saved filters", filterList(list, "")), err
}

func (c *Console) filterRename(r *request) (*answer, error) {
	_, err := filter.Change(r.Context(), c.DB, r.UserID(), r.id("id"), map[string]any{"name": r.PostFormValue("name")})
	wrong, ok := fieldErrors(err)
	switch {
	case err == nil:
		return see("/filters", "saved"), nil
	case !ok:
		return nil, err
	}
	list, err := c.DB.SavedFilters(r.Context(), r.UserID(), "")
	if err != nil {
		return nil, err
	}
	why := strings.ReplaceAll(fieldsOf[parley.SavedFilter](nil, wrong).wrong("name"), "This field", "The name")
	return invalid("Saved filters", filterList(list, why)), nil
}

func (c *Console) filterDelete(r *request) (*answer, error) {
	if err := filter.Delete(r.Context(), c.DB, r.UserID(), r.id("id")); err != nil {
		return nil, err
	}
	return see("/filters", "deleted"), nil
}
