// Package payment lets account holders pay by card: a page of Stripe's (Checkout) takes the payment, and what was paid
// becomes credit, once. No card ever comes near this server.
//
// A payment is told in three ways, each of which may fail: by Stripe's webhook, by the payer who comes back, and by the
// list of payments, which is looked through again and again. Whichever is first gives the credit; the id of the Checkout
// session is its reference in the ledger, so that the others give nothing.
package payment

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"parley/internal/channel"
	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// Till takes payments. Its methods may be called from any goroutine.
type Till struct {
	DB            *store.DB
	Key           string // Stripe's secret key
	WebhookSecret string // signs what Stripe tells; "": it tells nothing
	BaseURL       string

	http *http.Client
}

// New makes a till of the settings, nil where nobody can pay.
func New(db *store.DB, key, webhookSecret, baseURL string) (*Till, error) {
	if key == "" {
		return nil, nil
	}
	if baseURL == "" {
		baseURL = "https://api.stripe.com"
	}
	if u, err := url.Parse(baseURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("PARLEY_STRIPE_BASE_URL: %q is not a URL such as https://api.stripe.com", baseURL)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	return &Till{DB: db, Key: key, WebhookSecret: webhookSecret, BaseURL: strings.TrimSuffix(baseURL, "/"),
		http: &http.Client{Transport: t, Timeout: patience, // the key goes nowhere else
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Close drops idle connections.
func (t *Till) Close() {
	if t != nil {
		t.http.CloseIdleConnections()
	}
}

// Order is how much credit somebody wants.
type Order struct {
	Amount parley.Money `json:"amount" required:"true" minimum:"5" maximum:"10000" doc:"USD, in whole cents."`
}

// Checkout is a payment, as the API shows it.
type Checkout struct {
	ID     string       `json:"id" doc:"Id of Stripe's Checkout session."`
	Status string       `json:"status" enum:"open,processing,paid,expired" doc:"processing: paid by a method that takes days. paid: the credit is on the balance."`
	Amount parley.Money `json:"amount" doc:"USD."`
	URL    *string      `json:"url" doc:"Where to pay; null when it is no longer open."`
}

// The states of a payment.
const (
	Open       = "open"
	Processing = "processing"
	Paid       = "paid"
	Expired    = "expired"
)

// NotSetUp is the refusal where nobody can pay.
var NotSetUp = parley.Errorf(parley.Refused, "This server takes no payments by card: its operator has not set PARLEY_STRIPE_SECRET_KEY.")

var notFound = parley.Errorf(parley.NotFound, "Payment not found")

// Done is what Begin's first page is called with: the session's id, which Stripe puts in.
const Done = "/paid?session={CHECKOUT_SESSION_ID}"

const cent = parley.USD / 100

// Begin opens a page at Stripe's on which the user pays. Afterwards it sends the browser to one of back's pages; the
// first is given the session's id in the place of {CHECKOUT_SESSION_ID}.
func (t *Till) Begin(ctx context.Context, who *parley.User, tree map[string]any, done, back string) (*Checkout, error) {
	if t == nil {
		return nil, NotSetUp
	}
	var o Order
	fields := form.Bind(tree, &o, true)
	if len(fields) == 0 && o.Amount%cent != 0 {
		fields.Add("amount", "must be in whole cents.")
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	// Stripe asks for the e-mail address itself: it refuses one such as admin@localhost.
	s, err := t.create(ctx, url.Values{
		"mode":                                   {"payment"},
		"success_url":                            {done},
		"cancel_url":                             {back},
		"client_reference_id":                    {strconv.FormatInt(who.ID, 10)},
		"line_items[0][quantity]":                {"1"},
		"line_items[0][price_data][currency]":    {"usd"},
		"line_items[0][price_data][unit_amount]": {strconv.FormatInt(int64(o.Amount/cent), 10)},
		"line_items[0][price_data][product_data][name]": {"Credit for calls and messages"},
		"metadata[" + mark + "]":                        {t.sign(who.ID)},
	})
	if err != nil {
		return nil, err
	}
	return s.shown(), nil
}

// Look asks Stripe what became of a payment of the user's. What was paid is on the balance when it returns.
func (t *Till) Look(ctx context.Context, userID int64, id string) (*Checkout, error) {
	if t == nil {
		return nil, NotSetUp
	}
	if !strings.HasPrefix(id, "cs_") || len(id) > 255 {
		return nil, notFound
	}
	s, err := t.retrieve(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.payer(s) != userID {
		return nil, notFound
	}
	if err := t.credit(ctx, s); err != nil {
		return nil, err
	}
	return s.shown(), nil
}

// mark is the name under which a session keeps whose payment it is. Sessions that others make with the same Stripe
// account, another Parley among them, have none that this server can read.
const mark = "parley_account"

func (t *Till) sign(userID int64) string {
	return base64.RawURLEncoding.EncodeToString(t.DB.Seal(mark, strconv.AppendInt(nil, userID, 10)))
}

// payer is the user who pays a session, 0 where it is none of ours.
func (t *Till) payer(s *session) int64 {
	sealed, err := base64.RawURLEncoding.DecodeString(s.Metadata[mark])
	if err != nil {
		return 0
	}
	text, err := t.DB.Unseal(mark, sealed)
	if err != nil {
		return 0
	}
	id, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// credit puts what was paid on the payer's balance, once.
func (t *Till) credit(ctx context.Context, s *session) error {
	userID := t.payer(s)
	if userID == 0 || s.shown().Status != Paid {
		return nil
	}
	if s.Currency != "usd" || s.AmountTotal <= 0 {
		return fmt.Errorf("the payment %s is of %d in %s: credit is in USD", s.ID, s.AmountTotal, s.Currency)
	}
	return t.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		given, err := tx.Post(ctx, userID, &parley.LedgerEntry{Kind: parley.Credit, Amount: parley.Money(s.AmountTotal) * cent,
			Reference: "stripe:" + s.ID, Description: "Payment by card"})
		if given {
			slog.InfoContext(ctx, "a payment became credit", "user", userID, "session", s.ID)
		}
		return err
	})
}

// searchBack is how far back payments are looked for that nobody has told of. Stripe tells for three days; a payment by
// a bank takes up to two weeks.
const searchBack = 15 * 24 * time.Hour

// Search gives credit for the payments that neither Stripe nor the payer has told of.
func (t *Till) Search(ctx context.Context) error {
	return t.each(ctx, time.Now().Add(-searchBack), func(s *session) error {
		if err := t.credit(ctx, s); !gone(err) {
			return err
		}
		return nil
	})
}

// gone says whether an error means that the payer's account is no longer there.
func gone(err error) bool {
	e := (*parley.Error)(nil)
	return errors.As(err, &e) && e.Kind == parley.NotFound
}

type searchArgs struct{}

func (searchArgs) Kind() string { return "payments" }

// AddWorkers adds the search for payments; without a till there is nothing to search.
func (t *Till) AddWorkers(w *river.Workers) {
	river.AddWorker(w, channel.Work(func(ctx context.Context, _ searchArgs) error {
		if t == nil {
			return nil
		}
		return t.Search(ctx)
	}))
}

// Periodic are the jobs that time causes.
func (t *Till) Periodic() []*river.PeriodicJob {
	if t == nil {
		return nil
	}
	return []*river.PeriodicJob{channel.Every(10*time.Minute, searchArgs{})}
}
