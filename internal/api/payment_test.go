package api_test

import (
	"testing"

	"parley/internal/api"
	"parley/internal/payment"
	"parley/internal/payment/stripetest"
)

func TestCheckout(t *testing.T) {
	stripe := stripetest.Serve(t)
	h := lite(t, func(c *api.Config) {
		var err error
		if c.Payments, err = payment.New(c.DB, stripetest.Key, "", stripe.URL); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Payments.Close)
	})
	const path = "/user/billing/checkout"
	h.post(path, nil, status(422)).fails("amount")
	h.post(path, map[string]any{"amount": 3}, status(422)).fails("amount")
	made := h.post(path, map[string]any{"amount": 12.5}, status(201), header("Idempotency-Key", "k1")).json()["data"].(map[string]any)
	h.post(path, map[string]any{"amount": 12.5}, status(201), header("Idempotency-Key", "k1"))
	if n := len(stripe.Sessions()); n != 1 {
		t.Errorf("%d sessions for one key", n)
	}
	id := made["id"].(string)
	if made["url"] == nil || made["status"] != "open" {
		t.Errorf("%v", made)
	}
	stripe.Pay(id)
	h.stranger().get(path+"/"+id, status(404)).is(`{"message":"Payment not found"}`)
	h.get(path+"/cs_none", status(404)).is(`{"message":"Payment not found"}`)
	for range 2 {
		if got := h.get(path+"/"+id, status(200)).json()["data"].(map[string]any); got["status"] != "paid" || got["url"] != nil {
			t.Errorf("%v", got)
		}
	}
	if u, err := h.db.User(t.Context(), h.user.ID); err != nil || u.Balance != 17_500_000 {
		t.Errorf("%v, %v", u.Balance, err)
	}
	entry := h.get("/user/billing/ledger", status(200)).json()["data"].([]any)[0].(map[string]any)
	if entry["kind"] != "credit" || entry["reference"] != "stripe:"+id {
		t.Errorf("%v", entry)
	}
	none := lite(t, nil)
	none.post(path, map[string]any{"amount": 12.5}, status(400)).is(
		`{"message":"This server takes no payments by card: its operator has not set PARLEY_STRIPE_SECRET_KEY."}`)
	none.get(path+"/cs_1", status(400))
}
