package console

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
)

// Every figure links to its list, which has as many rows as the figure says.
func TestAnalytics(t *testing.T) {
	h := open(t)
	u := h.user(t)
	u.Timezone = "Asia/Kathmandu"
	h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) })
	a := h.caller(t, u, "Front <b>desk</b>")
	h.called(t, u, a, over(parley.CustomerHangup))
	h.called(t, u, a, over(parley.CustomerHangup))
	h.called(t, u, a, over(parley.ProviderFailure))
	h.called(t, u, a, func(c *parley.Call) { over(parley.CustomerHangup)(c); c.Test = true })
	v := h.signedIn(t, u)
	if v.get("/").doc().Find(`a[href="/analytics"]`).Length() == 0 {
		t.Error("the start page does not lead there")
	}
	doc := v.get("/analytics?range=today").is(200).says("Cost per assistant").says("Front <b>desk</b>").says("Asia/Kathmandu").doc()
	if got := doc.Find(".sums dd").First().Text(); got != "3" {
		t.Errorf("%s calls", got)
	}
	rows := func(path string) int { return v.get(path).is(200).doc().Find("#results .list li").Length() }
	links := 0
	doc.Find(".shares li").Each(func(_ int, s *goquery.Selection) {
		href := s.Find("a").AttrOr("href", "")
		if !strings.HasPrefix(href, "/calls?") || strings.HasPrefix(s.Find("a").Text(), "p") {
			return
		}
		links++
		if n := rows(href); fmt.Sprint(n) != s.Find("span").First().Text() {
			t.Errorf("%s has %d calls, not %s", href, n, s.Find("span").First().Text())
		}
	})
	if links != 5 { // two statuses, two reasons, one who answered
		t.Errorf("%d links", links)
	}
	if got := doc.Find(".plot a").First().AttrOr("href", ""); rows(got) != 3 {
		t.Errorf("the day leads to %s", got)
	}
	if got := v.get("/analytics?range=yesterday").doc().Find(".sums dd").First().Text(); got != "0" {
		t.Errorf("yesterday: %s calls", got)
	}
	for _, path := range []string{"/analytics?range=week", "/analytics?date_from=2020-01-01&date_to=2026-01-01", "/analytics?assistant_id=x"} {
		v.get(path).moved("/analytics")
	}
	day := time.Now().In(u.Zone()).Format(time.DateOnly)
	if got := v.get("/analytics?range=90d&date_from=" + day + "&date_to=" + day).doc().Find(".plot").First().Find("a").Length(); got != 1 {
		t.Errorf("dates give way to a range: %d days", got)
	}
	if got := h.signedIn(t, h.user(t)).get("/analytics").doc().Find(".sums dd").First().Text(); got != "0" {
		t.Errorf("a stranger sees %s calls", got)
	}
}

// The search of the lists finds what was said, and shows it.
func TestSearchTranscripts(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.caller(t, u, "Front desk")
	h.called(t, u, a, over(parley.CustomerHangup))
	h.talk(t, a, parley.TestConversation)
	if err := search.IndexTranscripts(t.Context(), h.DB); err != nil {
		t.Fatal(err)
	}
	v := h.signedIn(t, u)
	doc := v.get("/calls?search=" + url.QueryEscape("cakes <b>")).says("No call matches").doc()
	if doc.Find("input[name=search]").AttrOr("value", "") != "cakes <b>" {
		t.Error("the words are not kept")
	}
	if got := v.get("/calls?search=cakes").doc().Find(".list li mark").Text(); got != "cake" {
		t.Errorf("marked: %q", got)
	}
	if got := v.get("/conversations?search=bakery").doc().Find(".list li mark").Text(); got != "Bakery" {
		t.Errorf("marked: %q", got)
	}
}

func TestDownloads(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.caller(t, u, "=1+1")
	h.called(t, u, a, over(parley.CustomerHangup))
	h.called(t, u, a, over(parley.ProviderFailure))
	v := h.signedIn(t, u)
	link := v.get("/calls?status=failed").doc().Find(".download a").AttrOr("href", "")
	rows, err := csv.NewReader(strings.NewReader(v.get(link).is(200).body)).ReadAll()
	if err != nil || len(rows) != 2 || !strings.Contains(strings.Join(rows[1], "|"), "|'=1+1|") {
		t.Errorf("%s: %q %v", link, rows, err)
	}
	for _, path := range []string{"/conversations.csv", "/campaigns.csv", "/messages.csv", "/ledger.csv", "/webhooks.csv",
		"/assistants/" + id(a.ID) + "/test-runs.csv"} {
		if kind := v.get(path).is(200).header.Get("Content-Type"); kind != "text/csv; charset=utf-8" {
			t.Errorf("%s is %s", path, kind)
		}
	}
	v.get("/calls.csv?status=none").is(404)
	h.signedIn(t, h.user(t)).get("/assistants/" + id(a.ID) + "/test-runs.csv").is(404)
}
