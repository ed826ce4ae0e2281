package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/auth"
	"parley/internal/limit"
	"parley/internal/parley"
)

// The page has every limit with its use, and the account leads to it.
func TestLimitsPage(t *testing.T) {
	h := open(t)
	u := h.user(t)
	h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	if v.get("/account").doc().Find(`a[href="/account/limits"]`).Length() == 0 {
		t.Error("the account does not lead to its limits")
	}
	page := v.get("/account/limits").is(http.StatusOK).doc()
	rows := page.Find("table.limits tbody tr").Map(func(_ int, row *goquery.Selection) string {
		return strings.Join(row.Find("th, td").Map(textOfNode), " ")
	})
	if len(rows) != len(parley.Limits) {
		t.Errorf("%d rows of %d limits", len(rows), len(parley.Limits))
	}
	for _, want := range []string{"Assistants 1 500", "Tools 0 100", "Minutes of test calls 0 3000", "Notes per conversation 200"} {
		found := false
		for _, row := range rows {
			found = found || strings.Join(strings.Fields(row), " ") == want
		}
		if !found {
			t.Errorf("no row says %q: %q", want, rows)
		}
	}
}

// Pages count against what the account may ask and have answered at once, and say which limit was reached.
func TestPagesAreCounted(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	h.Gate = limit.New(h.Prices.Plan, auth.Rate{PerSecond: 0.001, Burst: 2})
	for range 4 {
		v.get("/account").is(http.StatusOK)
	}
	v.get("/account").is(http.StatusTooManyRequests).says("4 in a burst")
	h.signedIn(t, h.user(t))
}
