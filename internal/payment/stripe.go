package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
)

// Stripe's API, https://docs.stripe.com/api/checkout/sessions: forms in, JSON out.

const (
	apiVersion = "2025-06-30.basil"
	patience   = 15 * time.Second
	maxBody    = 4 << 20 // a page of 100 sessions has some hundred KB
)

// session is a Checkout session, as far as it is read here.
type session struct {
	ID            string            `json:"id"`
	Status        string            `json:"status"`         // open, complete, expired
	PaymentStatus string            `json:"payment_status"` // paid, unpaid, no_payment_required
	AmountTotal   int64             `json:"amount_total"`   // cents
	Currency      string            `json:"currency"`
	URL           *string           `json:"url"` // while it is open
	Metadata      map[string]string `json:"metadata"`
}

// shown is the session as the API shows it.
func (s *session) shown() *Checkout {
	c := &Checkout{ID: s.ID, Amount: parley.Money(s.AmountTotal) * cent, URL: s.URL}
	switch {
	case s.PaymentStatus == "paid":
		c.Status = Paid
	case s.Status == "complete":
		c.Status = Processing
	case s.Status == "expired":
		c.Status = Expired
	default:
		c.Status = Open
	}
	return c
}

// refusal is an error that Stripe answers.
type refusal struct {
	Status  int
	Message string `json:"message"`
	Code    string `json:"code"`
}

func (r *refusal) Error() string { return fmt.Sprintf("Stripe answers %d: %s", r.Status, r.Message) }

func (t *Till) create(ctx context.Context, values url.Values) (*session, error) {
	s := new(session)
	if err := t.ask(ctx, http.MethodPost, "/v1/checkout/sessions", values, s); err != nil {
		return nil, failed(ctx, err)
	}
	if s.ID == "" || s.URL == nil {
		return nil, failed(ctx, errors.New("no page to pay on in Stripe's answer"))
	}
	return s, nil
}

func (t *Till) retrieve(ctx context.Context, id string) (*session, error) {
	s := new(session)
	err := t.ask(ctx, http.MethodGet, "/v1/checkout/sessions/"+url.PathEscape(id), nil, s)
	if r := (*refusal)(nil); errors.As(err, &r) && r.Status == http.StatusNotFound {
		return nil, notFound
	}
	if err != nil {
		return nil, failed(ctx, err)
	}
	return s, nil
}

// each calls fn for every session that was completed, of those made since a moment, the newest first. An error of one
// does not keep it from the others.
func (t *Till) each(ctx context.Context, since time.Time, fn func(*session) error) error {
	var wrong []error
	after := ""
	for {
		q := url.Values{"status": {"complete"}, "limit": {"100"}, "created[gte]": {strconv.FormatInt(since.Unix(), 10)}}
		if after != "" {
			q.Set("starting_after", after)
		}
		var page struct {
			Data    []*session `json:"data"`
			HasMore bool       `json:"has_more"`
		}
		if err := t.ask(ctx, http.MethodGet, "/v1/checkout/sessions?"+q.Encode(), nil, &page); err != nil {
			return errors.Join(append(wrong, err)...)
		}
		for _, s := range page.Data {
			wrong = append(wrong, fn(s))
			after = s.ID
		}
		if !page.HasMore || len(page.Data) == 0 {
			return errors.Join(wrong...)
		}
	}
}

// Ping says whether Stripe takes the key.
func (t *Till) Ping(ctx context.Context) error {
	err := t.ask(ctx, http.MethodGet, "/v1/checkout/sessions?limit=1", nil, new(struct{}))
	if r := (*refusal)(nil); errors.As(err, &r) && (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden) {
		return errors.New("the key PARLEY_STRIPE_SECRET_KEY is refused by Stripe; it must allow Checkout sessions to be read and written")
	}
	if err != nil {
		return fmt.Errorf("no proper answer from Stripe: %w", err)
	}
	return nil
}

// failed is the error for the payer; Stripe's own goes into the log.
func failed(ctx context.Context, err error) error {
	slog.ErrorContext(ctx, "Stripe", "error", err)
	return parley.Errorf(parley.Upstream, "The payment service does not answer as it should. Nothing was charged; try again later.")
}

func (t *Till) ask(ctx context.Context, method, path string, values url.Values, out any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, t.BaseURL+path, strings.NewReader(values.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+t.Key)
	req.Header.Set("Stripe-Version", apiVersion)
	if values != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		e := struct{ Error *refusal }{&refusal{}}
		if json.Unmarshal(body, &e) != nil || e.Error == nil {
			e.Error = &refusal{}
		}
		e.Error.Status = resp.StatusCode
		return e.Error
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read Stripe's answer: %w", err)
	}
	return nil
}
