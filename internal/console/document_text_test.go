package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
)

// A document's page shows what was read from it, passage by passage, and to its owner alone.
func TestDocumentText(t *testing.T) {
	h := open(t, func(c *Config) { c.Knowledge = shelf(t, c.DB) })
	u := h.user(t)
	k, v := h.handbook(t, u), h.signedIn(t, u)
	var long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&long, "Rule %d of the house says that everybody closes window number %d in the evening, "+
			"whatever the weather is like.\n\n", i, i)
	}
	v.upload(libraryPath(k.ID)+"/files", file{"rules.txt", long.String()})
	h.work(t)
	list, err := h.DB.Documents(t.Context(), u.ID, k.ID)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(20 * time.Second)
	for err == nil && list[0].Status == parley.KnowledgeProcessing && time.Now().Before(deadline) {
		<-tick.C
		list, err = h.DB.Documents(t.Context(), u.ID, k.ID)
	}
	if err != nil || len(list) != 1 || list[0].ChunksCount <= pageSize {
		t.Fatalf("%+v %v", list, err)
	}
	path := libraryPath(k.ID) + "/documents/" + id(list[0].ID)
	r := v.get(path).is(http.StatusOK).says("What was read").says("Rule 0 of the house")
	if n := r.doc().Find(".passages li").Length(); n != pageSize {
		t.Errorf("%d passages on the first page", n)
	}
	if strings.Contains(r.doc().Text(), "Rule 399 ") {
		t.Error("the first page has everything")
	}
	last := (list[0].ChunksCount + pageSize - 1) / pageSize
	r = v.get(fmt.Sprintf("%s?page=%d", path, last)).says("Rule 399 ")
	if n, want := r.doc().Find(".passages li").Length(), list[0].ChunksCount-(last-1)*pageSize; n != want {
		t.Errorf("%d passages on the last page, want %d", n, want)
	}
	h.signedIn(t, h.user(t)).get(path).is(http.StatusNotFound)
}
