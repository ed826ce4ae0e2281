package payment_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/payment"
	"parley/internal/payment/stripetest"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// till is a till at a Stripe of its own, which tells of payments where told is set.
func till(t *testing.T, db *store.DB, told bool) (*payment.Till, *stripetest.Server, string) {
	stripe := stripetest.Serve(t)
	k, err := payment.New(db, stripetest.Key, stripetest.Secret, stripe.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	here := httptest.NewServer(k)
	t.Cleanup(here.Close)
	if told {
		stripe.Tell(here.URL + payment.WebhookPath)
	}
	return k, stripe, here.URL + payment.WebhookPath
}

func begin(t *testing.T, k *payment.Till, u *parley.User, amount string) *payment.Checkout {
	t.Helper()
	c, err := k.Begin(t.Context(), u, map[string]any{"amount": json.Number(amount)}, "http://here.example/ledger"+payment.Done,
		"http://here.example/ledger")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// has fails the test unless the user's balance is so much, moved by so many entries.
func has(t *testing.T, db *store.DB, u *parley.User, want parley.Money, entries int) {
	t.Helper()
	now, err := db.User(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	list, total, err := db.Ledger(t.Context(), u.ID, 0, 0, store.Page{Number: 1, Size: 10})
	if err != nil || now.Balance != want || total != entries {
		t.Errorf("balance %v in %d entries %v, want %v in %d (%v)", now.Balance, total, list, want, entries, err)
	}
}

func TestPaid(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		k, stripe, _ := till(t, db, true)
		u := storetest.User(t, db, 0)
		c := begin(t, k, u, "20.5")
		made := stripe.Sessions()[0]
		if made.AmountTotal != 2050 || made.Currency != "usd" || made.Mode != "payment" || made.Email != "" || c.Amount != 20_500_000 ||
			!strings.Contains(made.SuccessURL, "{CHECKOUT_SESSION_ID}") || c.Status != payment.Open || c.URL == nil || *c.URL != *made.URL {
			t.Errorf("%+v\n%+v", made, c)
		}
		if s := stripe.Expire(begin(t, k, u, "100").ID); s != http.StatusNoContent {
			t.Errorf("an event that means nothing here is answered with %d", s)
		}
		has(t, db, u, 0, 0)
		for range 3 { // Stripe tells some things twice
			if s := stripe.Pay(c.ID); s != http.StatusNoContent {
				t.Errorf("the webhook answers %d", s)
			}
		}
		if got, err := k.Look(t.Context(), u.ID, c.ID); err != nil || got.Status != payment.Paid || got.URL != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if err := k.Search(t.Context()); err != nil {
			t.Error(err)
		}
		has(t, db, u, 20_500_000, 1)
	})
}

// Whoever comes first gives the credit, and all at once give it once.
func TestPaidAndNotTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		k, stripe, _ := till(t, db, false)
		u, stranger := storetest.User(t, db, 0), storetest.User(t, db, 0)
		c := begin(t, k, u, "7")
		if got, err := k.Look(t.Context(), u.ID, c.ID); err != nil || got.Status != payment.Open {
			t.Errorf("%+v, %v", got, err)
		}
		stripe.Pay(c.ID)
		for _, id := range []string{c.ID, "cs_test_99", "1", "", "cs_../../balance"} {
			if got, err := k.Look(t.Context(), stranger.ID, id); !refused(err, parley.NotFound) {
				t.Errorf("a stranger sees %q: %+v, %v", id, got, err)
			}
		}
		has(t, db, u, 0, 0)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				var err error
				if i%2 == 0 {
					_, err = k.Look(t.Context(), u.ID, c.ID)
				} else {
					err = k.Search(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		has(t, db, u, 7_000_000, 1)
		has(t, db, stranger, 0, 0)
	})
}

// Payments that nobody tells of are found, over pages, and those of others are left alone.
func TestSearch(t *testing.T) {
	db := storetest.SQLite(t)
	k, stripe, _ := till(t, db, false)
	stripe.Page = 2
	u := storetest.User(t, db, 0)
	for range 5 {
		stripe.Pay(begin(t, k, u, "5").ID)
	}
	begin(t, k, u, "5") // is not paid
	// another Parley with the same Stripe account and an account of the same number
	elsewhere := storetest.Open(t, store.Options{Secret: []byte("another secret of thirty-two by.")})
	other, err := payment.New(elsewhere, stripetest.Key, "", stripe.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	stripe.Pay(begin(t, other, &parley.User{ID: u.ID, Email: "x@example.com"}, "500").ID)
	if err := k.Search(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, db, u, 25*parley.USD, 5)
	stripe.Away(true)
	if err := k.Search(t.Context()); err == nil {
		t.Error("a search of a Stripe that is away succeeds")
	}
}

func TestPaidInDays(t *testing.T) {
	db := storetest.SQLite(t)
	k, stripe, _ := till(t, db, true)
	u := storetest.User(t, db, 0)
	c := begin(t, k, u, "5")
	stripe.Promise(c.ID)
	if got, err := k.Look(t.Context(), u.ID, c.ID); err != nil || got.Status != payment.Processing {
		t.Errorf("%+v, %v", got, err)
	}
	has(t, db, u, 0, 0)
	if s := stripe.Confirm(c.ID); s != http.StatusNoContent {
		t.Errorf("the webhook answers %d", s)
	}
	has(t, db, u, 5*parley.USD, 1)
}

// What Stripe has not signed changes nothing, however much it looks like a payment.
func TestForged(t *testing.T) {
	db := storetest.SQLite(t)
	k, stripe, webhook := till(t, db, false)
	u := storetest.User(t, db, 0)
	c := begin(t, k, u, "5")
	stripe.Pay(c.ID)
	body, err := json.Marshal(map[string]any{"type": "checkout.session.completed", "data": map[string]any{"object": stripe.Sessions()[0]}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	good := stripetest.Sign(stripetest.Secret, now, body)
	for what, header := range map[string]string{
		"nothing":           "",
		"another secret":    stripetest.Sign("whsec_x", now, body),
		"an old one":        stripetest.Sign(stripetest.Secret, now.Add(-6*time.Minute), body),
		"one of the future": stripetest.Sign(stripetest.Secret, now.Add(6*time.Minute), body),
		"another body's":    stripetest.Sign(stripetest.Secret, now, append([]byte(" "), body...)),
		"no time":           good[strings.Index(good, "v1="):],
		"no signature":      good[:strings.Index(good, ",")],
		"no hex":            "t=1,v1=zz",
	} {
		if s := stripetest.Send(t, webhook, body, header); s != http.StatusBadRequest {
			t.Errorf("%s: %d", what, s)
		}
	}
	has(t, db, u, 0, 0)
	if s := stripetest.Send(t, webhook, body, good); s != http.StatusNoContent {
		t.Errorf("the right one: %d", s)
	}
	has(t, db, u, 5*parley.USD, 1)
	silent, err := payment.New(db, stripetest.Key, "", stripe.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	silent.ServeHTTP(w, httptest.NewRequest(http.MethodPost, payment.WebhookPath, nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("without a secret the webhook answers %d", w.Code)
	}
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.SQL().NewRaw("PRAGMA query_only = 1").Exec(ctx) // of the only connection that writes
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if s := stripetest.Send(t, webhook, body, good); s != http.StatusServiceUnavailable {
		t.Errorf("the right one, while nothing can be written: %d", s)
	}
}

func refused(err error, kind parley.Kind) bool {
	e := (*parley.Error)(nil)
	return errors.As(err, &e) && e.Kind == kind
}

func TestOrders(t *testing.T) {
	db := storetest.SQLite(t)
	k, stripe, _ := till(t, db, false)
	u := storetest.User(t, db, 0)
	for _, amount := range []any{nil, "20", json.Number("4.99"), json.Number("10000.01"), json.Number("5.001"), json.Number("-5"), true} {
		if _, err := k.Begin(t.Context(), u, map[string]any{"amount": amount}, "", ""); !refused(err, parley.Invalid) {
			t.Errorf("%v: %v", amount, err)
		}
	}
	if n := len(stripe.Sessions()); n != 0 {
		t.Errorf("%d sessions", n)
	}
	stripe.Away(true)
	if _, err := k.Begin(t.Context(), u, map[string]any{"amount": json.Number("5")}, "a", "b"); !refused(err, parley.Upstream) {
		t.Error(err)
	}
	stripe.Away(false)
	wrong, err := payment.New(db, "sk_wrong", "", stripe.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := wrong.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "PARLEY_STRIPE_SECRET_KEY") {
		t.Error(err)
	}
	if err := k.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	var nobody *payment.Till
	if _, err := nobody.Begin(t.Context(), u, nil, "", ""); !refused(err, parley.Refused) {
		t.Error(err)
	}
	if _, err := nobody.Look(t.Context(), u.ID, "cs_1"); !refused(err, parley.Refused) {
		t.Error(err)
	}
}

// What is refunded or disputed takes the credit back, once, whatever comes twice, late or in another order; what is won gives it again.
// The balance falls to zero at most.
func TestTakenBack(t *testing.T) {
	const usd = parley.USD
	for name, c := range map[string]struct {
		restricted bool
		do         func(s *stripetest.Server, id string)
		want       parley.Money
		entries    int
	}{
		"a refund":         {false, func(s *stripetest.Server, id string) { s.Refund(id, 2000) }, 0, 3},
		"refunds in parts": {false, func(s *stripetest.Server, id string) { s.Refund(id, 500); s.Refund(id, 700) }, 3 * usd, 4},
		"told twice":       {true, func(s *stripetest.Server, id string) { s.Refund(id, 500); s.Refund(id, 0); s.Refund(id, 0) }, 10 * usd, 3},
		"a dispute":        {false, func(s *stripetest.Server, id string) { s.Dispute(id, 2000, "needs_response", "created") }, 0, 3},
		"a question": {false, func(s *stripetest.Server, id string) { s.Dispute(id, 2000, "warning_needs_response", "created") }, 15 * usd,
			2},
		"a dispute of a sum": {true, func(s *stripetest.Server, id string) { s.Dispute(id, 1200, "needs_response", "created") }, 3 * usd, 3},
		"a dispute is lost": {false, func(s *stripetest.Server, id string) {
			s.Dispute(id, 2000, "needs_response", "created")
			s.Dispute(id, 2000, "needs_response", "funds_withdrawn")
			s.Dispute(id, 2000, "lost", "closed")
		}, 0, 3},
		"a dispute is won": {false, func(s *stripetest.Server, id string) {
			s.Dispute(id, 2000, "needs_response", "created")
			s.Dispute(id, 2000, "won", "closed")
			s.Dispute(id, 2000, "won", "funds_reinstated")
		}, 15 * usd, 4},
		"its beginning comes last": {false, func(s *stripetest.Server, id string) {
			s.Dispute(id, 2000, "won", "closed")
			s.Late(id, 2000, "needs_response", "created")
		}, 15 * usd, 2},
		"refunded, then disputed": {false, func(s *stripetest.Server, id string) {
			s.Refund(id, 1500)
			s.Dispute(id, 2000, "needs_response", "created")
		}, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				k, stripe, _ := till(t, db, true)
				stripe.Restricted = c.restricted
				u, other := storetest.User(t, db, 0), storetest.User(t, db, 7*usd)
				paid := begin(t, k, u, "20")
				stripe.Pay(paid.ID)
				if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.CallCharge, Amount: -5 * usd, Reference: "call:1"})
					return err
				}); err != nil {
					t.Fatal(err)
				}
				c.do(stripe, paid.ID)
				has(t, db, u, c.want, c.entries)
				has(t, db, other, 7*usd, 1)
			})
		})
	}
}

// An event for which Stripe was asked before another one, and which is worked off after it, changes nothing of what the
// other has found.
func TestTakenBackTogether(t *testing.T) {
	const usd = parley.USD
	for name, c := range map[string]struct {
		first, then func(s *stripetest.Server, id string)
		path        string
		want        parley.Money
		entries     int
	}{
		"two refunds": {func(s *stripetest.Server, id string) { s.Refund(id, 500) },
			func(s *stripetest.Server, id string) { s.Refund(id, 500) }, "/v1/charges/", 10 * usd, 2},
		"a refund that fails": {func(s *stripetest.Server, id string) { s.Refund(id, 500) },
			func(s *stripetest.Server, id string) { s.FailRefund(id, 500) }, "/v1/charges/", 20 * usd, 3},
		"one fails, another is made": {func(s *stripetest.Server, id string) { s.FailRefund(id, 0) },
			func(s *stripetest.Server, id string) { s.Refund(id, 500) }, "/v1/charges/", 15 * usd, 4},
		"a dispute is won": {func(s *stripetest.Server, id string) { s.Dispute(id, 2000, "needs_response", "created") },
			func(s *stripetest.Server, id string) { s.Dispute(id, 2000, "won", "closed") }, "/v1/disputes/", 20 * usd, 3},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				k, stripe, _ := till(t, db, true)
				u := storetest.User(t, db, 0)
				paid := begin(t, k, u, "20")
				stripe.Pay(paid.ID)
				asked, done, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
				var held atomic.Bool
				stripe.Held = func(path string) {
					if strings.HasPrefix(path, c.path) && !held.Swap(true) {
						close(asked)
						<-done
					}
				}
				go func() { defer close(over); c.first(stripe, paid.ID) }()
				<-asked
				c.then(stripe, paid.ID)
				close(done)
				<-over
				has(t, db, u, c.want, c.entries)
			})
		})
	}
}

// A refund that comes before anybody has told of the payment leaves nothing; one of somebody else's payment is nobody's credit.
func TestTakenBackEarly(t *testing.T) {
	db := storetest.SQLite(t, store.Rules{})
	k, stripe, hook := till(t, db, false)
	u := storetest.User(t, db, 0)
	paid := begin(t, k, u, "20")
	stripe.Pay(paid.ID)
	stripe.Tell(hook)
	if code := stripe.Refund(paid.ID, 2000); code != http.StatusNoContent {
		t.Errorf("the webhook answers %d", code)
	}
	has(t, db, u, 0, 2)
	if code := stripe.Event("charge.refunded",
		map[string]any{"id": "ch_" + paid.ID, "payment_intent": "pi_other", "amount_refunded": 5}); code != http.StatusNoContent {
		t.Errorf("the webhook answers %d", code)
	}
	has(t, db, u, 0, 2)
}
