package payment

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"parley/internal/parley"
	"parley/internal/store"
)

// What is refunded or disputed at Stripe takes the credit back that the payment gave. An event says what has happened; how things
// stand, Stripe is asked, because events come twice, late, and in any order. It is asked again behind each change, because another event
// may have been worked off since the answer. A key that may not ask has the event itself believed.

// charge is what a payment took from a card, as far as it is read here.
type charge struct {
	ID       string `json:"id"`
	Charge   string `json:"charge"` // of a refund, which some events are of
	Intent   string `json:"payment_intent"`
	Refunded int64  `json:"amount_refunded"` // cents, of all its refunds
}

// dispute is a payer's complaint at their bank.
type dispute struct {
	ID     string `json:"id"`
	Intent string `json:"payment_intent"`
	Amount int64  `json:"amount"` // cents
	Status string `json:"status"` // warning_…: a question, which takes no money; needs_response, under_review, won, lost
}

// refunded takes back what was refunded of a payment. failed says that a refund may have failed: then there may be less of
// them than we have taken back.
func (t *Till) refunded(ctx context.Context, c *charge, failed bool) error {
	if c.Charge != "" {
		c = &charge{ID: c.Charge, Intent: c.Intent}
	}
	for last := (charge{}); ; failed = true { // from the second time on, Stripe has said one thing and then another
		known, err := t.stands(ctx, "/v1/charges/"+url.PathEscape(c.ID), c)
		if err != nil || c.Intent == "" || *c == last {
			return err
		}
		if err := t.takeBack(ctx, c.Intent, "refund", c.Refunded, !known || !failed, "Payment refunded"); err != nil || !known {
			return err
		}
		last = *c
	}
}

// disputed takes back what is disputed of a payment, and gives it again when the dispute is won.
func (t *Till) disputed(ctx context.Context, d *dispute) error {
	for last := (dispute{}); ; {
		known, err := t.stands(ctx, "/v1/disputes/"+url.PathEscape(d.ID), d)
		if err != nil || d.Intent == "" || *d == last {
			return err
		}
		cents, what := int64(0), "Dispute of a payment won"
		switch d.Status {
		case "needs_response", "under_review", "lost":
			cents, what = d.Amount, "Payment disputed"
		}
		if err := t.takeBack(ctx, d.Intent, d.ID, cents, false, what); err != nil || !known {
			return err
		}
		last = *d
	}
}

// stands asks Stripe how something stands now, and puts it into what the event has said; known is false where the key may not ask.
func (t *Till) stands(ctx context.Context, path string, into any) (known bool, err error) {
	err = t.ask(ctx, http.MethodGet, path, nil, into)
	if r := (*refusal)(nil); errors.As(err, &r) && (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden) {
		return false, nil
	}
	return err == nil, err
}

// takeBack takes so many cents of a payment's credit back for a reason. A payment that is none of ours is nobody's credit.
func (t *Till) takeBack(ctx context.Context, intent, reason string, cents int64, only bool, description string) error {
	var page struct {
		Data []*session `json:"data"`
	}
	if err := t.ask(ctx, http.MethodGet, "/v1/checkout/sessions?"+url.Values{"payment_intent": {intent}}.Encode(), nil, &page); err != nil {
		return err
	}
	for _, s := range page.Data {
		userID := t.payer(s)
		if userID == 0 {
			continue
		}
		if err := t.credit(ctx, s); err != nil { // nobody has told of it yet
			return err
		}
		var moved parley.Money
		err := t.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			moved, err = tx.TakeBack(ctx, userID, "stripe:"+s.ID, reason, parley.Money(cents)*cent, only, description)
			return err
		})
		if err != nil {
			return err
		}
		if moved != 0 {
			slog.WarnContext(ctx, "the credit of a payment changed", "user", userID, "session", s.ID, "reason", reason, "taken_back", moved)
		}
	}
	return nil
}
