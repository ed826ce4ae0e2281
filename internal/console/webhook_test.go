package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

func TestDeliveries(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	v.get("/webhooks").says("Send events to your server").says("/user/assistants/ID/webhook-test")
	d := h.delivery(t, u, a)
	status := 503
	why := "503 Service Unavailable"
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.NoteAttempt(ctx, d, &parley.DeliveryAttempt{At: parley.Now(), Status: &status, Error: &why,
			DurationMS: 41, Answer: "busy <b>"}, 0)
		return err
	})
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		ok := 204
		low := parley.BalanceLow{TotalBalance: parley.USD}.Delivery("https://low.example.com/")
		low.Status = parley.DeliveryDelivered
		return tx.RecordDelivery(ctx, u.ID, low, &parley.DeliveryAttempt{At: parley.Now(), Status: &ok})
	})
	v.get("/webhooks").says("1 attempt").says("503 Service Unavailable").says("balance.low").says("Delivered")
	for path, want := range map[string]int{"?event=balance.low": 1, "?event=call.inbound": 0, "?status=pending": 1,
		"?status=failed": 0, "?status=delivered&event=balance.low": 1} {
		if n := v.get("/webhooks" + path).is(http.StatusOK).doc().Find(".list li").Length(); n != want {
			t.Errorf("%s: %d rows, want %d", path, n, want)
		}
	}
	v.get("/webhooks?event=call.inbound").says("No delivery matches")
	v.get("/webhooks?status=sent").moved("/webhooks")
	v.get("/webhooks?page=7&status=pending").moved("/webhooks?status=pending")

	one := "/webhooks/" + id(d.ID)
	page := v.get(one).is(http.StatusOK).says("busy <b>").says("41 ms").says("503 Service Unavailable")
	if payload := page.doc().Find("#payload").Text(); !strings.Contains(payload,
		"{\n  \"event\": \"conversation.ended\",\n  \"version\": 1,\n  \"test\": true,") {
		t.Errorf("payload: %s", payload)
	}
	v.post(one+"/resend", nil).moved(one + "?done=resent")
	if got, err := h.DB.Delivery(t.Context(), u.ID, d.ID); err != nil || got.Earlier != 1 ||
		got.Status != parley.DeliveryPending || got.NextAttemptAt > parley.Now() {
		t.Errorf("sent again: %+v %v", got, err)
	}
	if page := v.get(one + "?done=resent").says("It is being sent again."); page.doc().Find(
		"#delivery[hx-trigger]").Length() != 1 {
		t.Error("a delivery under way does not look for news")
	}
}

func TestDeliveriesBySteps(t *testing.T) {
	h := open(t)
	u := h.user(t)
	h.write(t, func(ctx context.Context, tx *store.Tx) error {
		for range pageSize + 2 {
			if err := tx.EnqueueDelivery(ctx, u.ID,
				parley.BalanceLow{}.Delivery("https://low.example.com/")); err != nil {
				return err
			}
		}
		return nil
	})
	v := h.signedIn(t, u)
	first := v.get("/webhooks?status=pending").doc()
	if n, next := first.Find(".list li").Length(), first.Find("a[rel=next]").AttrOr("href", ""); n != pageSize ||
		next != "/webhooks?page=2&status=pending" {
		t.Errorf("%d rows, then %s", n, next)
	}
	if n := v.get("/webhooks?page=2&status=pending").doc().Find(".list li").Length(); n != 2 {
		t.Errorf("page 2 has %d rows", n)
	}
}

func TestWebhookSettings(t *testing.T) {
	h := open(t)
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	v := h.signedIn(t, u)
	const at = "/webhooks/settings"
	v.get(at).says("No assistant has a webhook yet").says("For 24 hours every webhook carries two signatures")

	// The secret is shown only when it is asked for.
	keys, err := event.Keys(t.Context(), h.DB, u.ID, parley.Now())
	if err != nil {
		t.Fatal(err)
	}
	first := store.WebhookSecretText(keys[0])
	if strings.Contains(v.get(at).body, "whsec_") {
		t.Error("the secret is shown unasked")
	}
	if got := v.post("/webhooks/secret", nil).is(http.StatusOK).doc().Find("#secret").AttrOr("value",
		""); got != first {
		t.Errorf("shown as %q", got)
	}
	v.post("/webhooks/secret/rotate", nil).moved(at + "?done=rotated")
	second := v.post("/webhooks/secret", nil).doc().Find("#secret").AttrOr("value", "")
	if second == first || !strings.HasPrefix(second, "whsec_") {
		t.Errorf("rotated to %q", second)
	}
	if keys, err := event.Keys(t.Context(), h.DB, u.ID, parley.Now()); err != nil || len(keys) != 2 ||
		store.WebhookSecretText(keys[1]) != first {
		t.Errorf("%d keys sign, %v", len(keys), err)
	}

	// The account's endpoint.
	for _, bad := range []string{"ftp://x", "no url", "https://" + strings.Repeat("a", 2050)} {
		r := v.post(at, url.Values{"url": {bad}}).is(http.StatusUnprocessableEntity)
		if r.doc().Find("#e-url").Text() == "" || r.form(at).Get("url") != bad {
			t.Errorf("%.20s: no error beside the box, or the box lost it", bad)
		}
	}
	v.post(at, url.Values{"url": {"https://me.example.com/hook"}}).moved(at + "?done=saved")
	if got := v.get(at).form(at).Get("url"); got != "https://me.example.com/hook" {
		t.Errorf("the box holds %q", got)
	}
	v.post(at, url.Values{"url": {""}}).moved(at + "?done=saved")
	if got, err := h.DB.User(t.Context(), u.ID); err != nil || got.WebhookURL != "" {
		t.Errorf("emptied: %q %v", got.WebhookURL, err)
	}

	// A test for each endpoint of an assistant.
	if _, err := h.Assistants.Update(t.Context(), u.ID, a.ID,
		map[string]any{"conversation_ended_webhook_url": "https://shop.example.com/ended"}); err != nil {
		t.Fatal(err)
	}
	test := at + "/test/" + id(a.ID)
	form := v.get(at).says("https://shop.example.com/ended").form(test)
	if got := form["event"]; len(got) != 1 || got[0] != "conversation.ended" {
		t.Errorf("tests %q", got)
	}
	to := v.post(test, form).is(http.StatusSeeOther).header.Get("Location")
	v.get(to).is(http.StatusOK).says("The test is on its way.").says("https://shop.example.com/ended")
	for _, none := range []string{"call.completed", "balance.low", "", "x"} {
		v.post(test, url.Values{"event": {none}}).is(http.StatusUnprocessableEntity).says(
			"no webhook URL for this event")
	}
}
