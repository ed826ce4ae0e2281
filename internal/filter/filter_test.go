package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/filter"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// A filter is saved under a name of its own for each page, renamed and deleted, by its owner alone.
func TestFilters(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		save := func(user int64, page, name, query string) (*parley.SavedFilter, error) {
			return filter.Save(t.Context(), db, user, map[string]any{"page": page, "name": name, "query": query})
		}
		rename := func(user, id int64, name string) error {
			_, err := filter.Change(t.Context(), db, user, id, map[string]any{"name": name})
			return err
		}
		list := func(user int64, page string) string {
			t.Helper()
			got, err := db.SavedFilters(t.Context(), user, page)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range got {
				names = append(names, f.Page+" "+f.Name+" "+f.Query)
			}
			return strings.Join(names, "; ")
		}
		made := map[string]int64{}
		for _, f := range [][2]string{{"calls", "Failed"}, {"analytics", "Failed"}, {"calls", "Busy"}} {
			got, err := save(u.ID, f[0], " "+f[1]+" ", "status="+strings.ToLower(f[1]))
			if err != nil {
				t.Fatal(err)
			}
			made[f[0]+f[1]] = got.ID
		}
		if _, err := save(other.ID, "calls", "Failed", "type=web"); err != nil {
			t.Error(err)
		}
		for _, f := range [][3]string{{"calls", "Failed", "a=b"}, {"calls", "", "a=b"}, {"ledger", "x", "a=b"}, {"calls", "x", ""},
			{"calls", strings.Repeat("x", 101), "a=b"}, {"calls", "x", strings.Repeat("x", 2001)}} {
			if _, err := save(u.ID, f[0], f[1], f[2]); err == nil {
				t.Errorf("%.30v is saved", f)
			}
		}
		if got := list(u.ID, "calls"); got != "calls Busy status=busy; calls Failed status=failed" {
			t.Errorf("the filters of calls are %s", got)
		}
		id := made["callsFailed"]
		if err := rename(u.ID, id, "Busy"); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("a name that is taken: %v", err)
		}
		if err := rename(u.ID, id, " "); err == nil {
			t.Error("a filter without a name")
		}
		if err := rename(u.ID, id, "Lost"); err != nil {
			t.Error(err)
		}
		for _, err := range []error{rename(other.ID, id, "Mine"), filter.Delete(t.Context(), db, other.ID, id)} {
			if !store.IsNotFound(err) {
				t.Errorf("a stranger is answered %v", err)
			}
		}
		if err := filter.Delete(t.Context(), db, u.ID, made["callsBusy"]); err != nil {
			t.Error(err)
		}
		if got := list(u.ID, ""); got != "analytics Failed status=failed; calls Lost status=failed" {
			t.Errorf("all filters are %s", got)
		}
		if got := list(other.ID, ""); got != "calls Failed type=web" {
			t.Errorf("the other's filters are %s", got)
		}
		for i := range parley.MaxFilters - 2 {
			if _, err := save(u.ID, "calls", fmt.Sprint(i), "a=b"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := save(u.ID, "calls", "one more", "a=b"); err == nil || !strings.Contains(err.Error(), "50 saved filters") {
			t.Errorf("beyond the limit: %v", err)
		}
	})
}
