package payment

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/internal/store"
	"parley/internal/web"
)

// WebhookPath is where Stripe tells of payments.
const WebhookPath = "/webhooks/stripe"

const (
	maxEvent = 1 << 20
	oldest   = 5 * time.Minute // that a signature may be, either way
)

// ServeHTTP takes Stripe's events. One whose signature is not right changes nothing. Stripe tells again, for three days,
// what is not answered with 2xx.
func (t *Till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if t == nil || t.WebhookSecret == "" {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusRequestEntityTooLarge)
		return
	}
	if !signed(t.WebhookSecret, r.Header.Get("Stripe-Signature"), body, time.Now()) {
		slog.WarnContext(r.Context(),
			"a request to Stripe's webhook has no valid signature: is PARLEY_STRIPE_WEBHOOK_SECRET that of this endpoint?")
		http.Error(w, "the signature is not valid", http.StatusBadRequest)
		return
	}
	if err := t.take(r.Context(), body); err != nil {
		web.NotTaken(w, r, store.Told(err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// take gives credit for the payment that an event tells of, or takes it back. Others are answered, too, or Stripe would tell them again.
func (t *Till) take(ctx context.Context, body []byte) error {
	var e struct {
		Type string `json:"type"`
		Data struct {
			Object json.RawMessage `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	var err error
	s := new(session)
	switch e.Type {
	case "checkout.session.completed", "checkout.session.async_payment_succeeded": // the latter: of methods that take days
		if err = json.Unmarshal(e.Data.Object, s); err == nil {
			err = t.credit(ctx, s)
		}
	case "charge.refunded", "charge.refund.updated":
		c := new(charge)
		if err = json.Unmarshal(e.Data.Object, c); err == nil {
			err = t.refunded(ctx, c, e.Type == "charge.refund.updated")
		}
	case "charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.closed", "charge.dispute.funds_reinstated":
		d := new(dispute)
		if err = json.Unmarshal(e.Data.Object, d); err == nil {
			err = t.disputed(ctx, d)
		}
	}
	if gone(err) { // the account is gone; told again it would be, too
		slog.ErrorContext(ctx, "a payment for an account that is gone: refund it at Stripe", "session", s.ID)
		return nil
	}
	return err
}

// signed says whether one of the signatures of a header (t=SECONDS,v1=HEX,…) is that of a body, and not too old.
func signed(secret, header string, body []byte, now time.Time) bool {
	stamp, ok := "", false
	for part := range strings.SplitSeq(header, ",") {
		if text, found := strings.CutPrefix(strings.TrimSpace(part), "t="); found {
			stamp = text
		}
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > oldest {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	for part := range strings.SplitSeq(header, ",") {
		if text, found := strings.CutPrefix(strings.TrimSpace(part), "v1="); found {
			got, err := hex.DecodeString(text)
			ok = ok || err == nil && hmac.Equal(got, want)
		}
	}
	return ok
}
