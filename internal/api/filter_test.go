package api_test

import (
	"fmt"
	"testing"
)

// A saved filter is made, read, changed and deleted, by its owner alone.
func TestFilters(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.get("/user/filters", status(200)).is(`{"data":[]}`)
		made := h.post("/user/filters", map[string]any{"page": "calls", "name": "Failed", "query": "status=failed"}, status(201)).json()
		one := fmt.Sprintf("/user/filters/%d", id(made["data"].(map[string]any)))
		h.post("/user/filters", map[string]any{"page": "calls", "name": "Failed", "query": "status=busy"}).fails("name")
		h.post("/user/filters", map[string]any{"page": "leads"}).fails("page", "name", "query")
		h.put(one, map[string]any{"query": "status=busy"}, status(200))
		h.put(one, map[string]any{"name": ""}).fails("name")
		got := h.get(one, status(200)).json()["data"].(map[string]any)
		if got["name"] != "Failed" || got["query"] != "status=busy" || got["page"] != "calls" {
			t.Errorf("changed %v", got)
		}
		other := h.stranger()
		other.get(one, status(404))
		other.put(one, map[string]any{"name": "Mine"}, status(404))
		other.delete(one, status(404))
		h.delete(one, status(200))
		h.get("/user/filters", status(200)).is(`{"data":[]}`)
	})
}
