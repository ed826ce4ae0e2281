package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"parley/internal/ai/aitest"
	"parley/internal/parley"
	"parley/internal/payment"
	"parley/internal/payment/stripetest"
	"parley/internal/store"
)

type selection = goquery.Selection

func TestLedger(t *testing.T) {
	h := open(t)
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/ledger").is(http.StatusOK).says("$5.00")
	conv := h.talk(t, h.assistant(t, u, "Front desk"), parley.WidgetConversation)
	h.model.Script(aitest.Behaviour{Text: "Hi."})
	h.say(t, conv, "Hello")
	err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: 10 * parley.USD,
			Reference: "credit:1", Description: "Paid <b>in</b>"}); err != nil {
			return err
		}
		if err := tx.Reserve(ctx, u.ID, "call:7", parley.USD/2, parley.Now().Add(time.Hour)); err != nil {
			return err
		}
		_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: "teleport", Amount: -parley.USD, Reference: "t:1",
			Description: "Not known here"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	doc := v.get("/ledger").is(http.StatusOK).doc()
	var sums, rows []string
	doc.Find(".sums dd").Each(func(_ int, s *selection) { sums = append(sums, s.Text()) })
	doc.Find(".ledger tbody tr").Each(func(_ int, s *selection) {
		var cells []string
		s.Find("td + td").Each(func(_ int, c *selection) {
			cells = append(cells,
				strings.Join(strings.Fields(c.Text()), " "))
		})
		rows = append(rows, strings.Join(cells, " | "))
	})
	if got := strings.Join(sums, " "); got != "$13.99 $0.50 $13.49" {
		t.Errorf("the sums are %s", got)
	}
	want := []string{"teleport Not known here t:1 | −$1.00 | $13.99",
		"Credit Paid <b>in</b> credit:1 | +$10.00 | $14.99",
		"Message Message to Front desk (widget) message:2 | −$0.01 | $4.99"}
	if len(rows) < 3 || strings.Join(rows[:3], "\n") != strings.Join(want, "\n") {
		t.Errorf("the rows are\n%s", strings.Join(rows, "\n"))
	}
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	v.get("/ledger?date_to=" + yesterday).says("No entries on these days.").says("$13.99")
	v.get("/ledger?date_from=" + yesterday).says("teleport")
	v.get("/ledger?date_from=tomorrow").moved("/ledger")
	v.get("/ledger?page=9&date_from=" + yesterday).moved("/ledger?date_from=" + yesterday)
	err = h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for i := range pageSize {
			if _, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.Refund, Amount: parley.USD,
				Reference: "r:" + id(int64(i))}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	next := v.get("/ledger").says("1–25 of").doc().Find("[rel=next]").AttrOr("href", "")
	v.get(next).says("teleport")
}

// Credit is paid for on a page of Stripe's, to which the browser is taken with scripts and without.
func TestPayByCard(t *testing.T) {
	none := open(t)
	if body := none.signedIn(t, none.user(t)).get("/ledger").is(http.StatusOK).body; strings.Contains(body, "by card") {
		t.Error("where nobody can pay, the page offers it")
	}
	stripe := stripetest.Serve(t)
	h := open(t, func(c *Config) {
		var err error
		if c.Payments, err = payment.New(c.DB, stripetest.Key, "", stripe.URL); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Payments.Close)
	})
	u := h.user(t)
	v := h.signedIn(t, u)
	v.get("/ledger").is(http.StatusOK).says("Add credit by card")
	v.post("/ledger", url.Values{"amount": {"3"}}).is(http.StatusUnprocessableEntity).says("at least 5")
	page := v.post("/ledger", url.Values{"amount": {"25"}}).is(http.StatusOK)
	made := stripe.Sessions()[0]
	if to := page.header.Get("HX-Redirect"); to != *made.URL || page.header.Get("Refresh") != "0; url="+to ||
		page.doc().Find("a.primary").AttrOr("href", "") != to {
		t.Errorf("%v", page.header)
	}
	back := strings.Replace(made.SuccessURL, "{CHECKOUT_SESSION_ID}", made.ID, 1)
	back = back[strings.Index(back, "/ledger"):]
	v.get(back).moved("/ledger?done=unpaid")
	stripe.Pay(made.ID)
	v.get(back).moved("/ledger?done=paid")
	v.get(back).moved("/ledger?done=paid")
	v.get("/ledger?done=paid").says("Thank you. Your payment was added to your balance.").says("$30.00")
	h.signedIn(t, h.user(t)).get(back).is(http.StatusNotFound)
}
