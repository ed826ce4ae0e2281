package sms_test

import (
	"context"
	"strings"
	"testing"

	"parley/internal/carrier"
	"parley/internal/parley"
	"parley/internal/store"
)

// Text messages follow the rules for calls: where they may go, and what they may cost in a day. So do replies and
// codes.
func TestSMSLimits(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		h.texts.Prices.SMS["default"] = cent
		n := h.buy(number1) // 1 USD
		h.texts.Limits.Allow = func(e164 string) bool {
			return strings.HasPrefix(e164, "+1") &&
				!parley.CostlyPhone(e164)
		}
		h.offices.Limits = h.texts.Limits
		says := func(err error, words string) {
			t.Helper()
			h.is(err, parley.Forbidden)
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("told %v, want %s", err, words)
			}
		}
		const abroad, premium = "+33142685300", "+19002345678"
		for _, to := range []string{abroad, premium} {
			_, err := h.texts.Send(ctx, h.user.ID, n.ID, to, "Hi")
			says(err, "PARLEY_CALL_PREFIXES")
			_, err = h.offices.AskCallerID(ctx, h.user.ID, to)
			says(err, "PARLEY_CALL_PREFIXES")
		}
		if _, err := h.texts.Send(ctx, h.user.ID, n.ID+1, abroad, "Hi"); err == nil ||
			err.Error() != "From number not found" {
			t.Errorf("a number that is not there: %v", err)
		}
		if len(h.carrier.Sent()) != 0 {
			t.Errorf("the carrier has %v", h.carrier.Sent())
		}

		// The day's limit leaves room for four segments; the day's calls count too.
		h.texts.Limits.DailySpend = 5 * cent
		h.offices.Limits = h.texts.Limits
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.AddSpend(ctx, h.user.ID, parley.Now(),
				cent)
		})
		if _, err := h.offices.AskCallerID(ctx, h.user.ID, person); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := h.texts.Send(ctx, h.user.ID, n.ID, person, "Hi"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := h.texts.Send(ctx, h.user.ID, n.ID, person, strings.Repeat("long ", 60)) // two segments
		says(err, "PARLEY_CALL_DAILY_SPEND")
		h.carrier.Before = on("send", &carrier.Error{Message: "no route"}, false)
		if _, err := h.texts.Send(ctx, h.user.ID, n.ID, person, "Hi"); err == nil { // it costs nothing, as it fails
			t.Error("it was sent")
		}
		if _, err := h.offices.AskCallerID(ctx, h.user.ID, "+12025550199"); err == nil {
			t.Error("the code was sent")
		}
		h.carrier.Before = nil
		if _, err := h.texts.Send(ctx, h.user.ID, n.ID, person, "Hi"); err != nil {
			t.Errorf("within the day's spend: %v", err)
		}
		_, err = h.texts.Send(ctx, h.user.ID, n.ID, person, "Hi")
		says(err, "0.05 of the 0.05 USD")
		_, err = h.offices.AskCallerID(ctx, h.user.ID, "+12025550199")
		says(err, "PARLEY_CALL_DAILY_SPEND")
		h.money(4*parley.USD - 4*cent)
		if spent, err := h.db.Spend(ctx, h.user.ID, parley.Now()); err != nil || spent != 5*cent {
			t.Errorf("the day has cost %s: %v", spent, err)
		}
		if got := len(h.carrier.Sent()); got != 4 {
			t.Errorf("%d messages went out", got)
		}
	})
}
