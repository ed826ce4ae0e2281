package api

import (
	"context"
	"time"

	"parley"
	"parley/internal/payment"
)

func (a *API) billingRoutes() {
	handle(a, op{Method: "GET", Path: "/user/billing/ledger", Name: "listLedger", Tag: "Billing",
		Summary: "Every movement of the balance, newest first"}, a.listLedger)
	handle(a, op{Method: "POST", Path: "/user/billing/checkout", Name: "createCheckout", Tag: "Billing", Status: 201, Idempotent: true,
		Body: payment.Order{}, Summary: "Begin a payment by card: the answer's url is the page to pay on"}, a.createCheckout)
	handle(a, op{Method: "GET", Path: "/user/billing/checkout/{id}", Name: "getCheckout", Tag: "Billing", NotFound: "Payment not found",
		Summary: "Read what became of a payment; once it is paid, the credit is on the balance"}, a.getCheckout)
	handle(a, op{Method: "GET", Path: "/user/analytics", Name: "getAnalytics", Tag: "Analytics",
		Summary: "Figures for a range of days: calls, conversations, latency, costs"}, a.getAnalytics)
}

// dateQuery bounds a list by day, UTC, both days included.
type dateQuery struct {
	DateFrom string `query:"date_from" format:"date" doc:"YYYY-MM-DD."`
	DateTo   string `query:"date_to" format:"date" doc:"YYYY-MM-DD, included."`
}

// bounds are the instants that the days stand for: from the first day's beginning to, exclusive, the last one's end.
func (q dateQuery) bounds() (from, to parley.Time) {
	if d, err := time.Parse(time.DateOnly, q.DateFrom); err == nil {
		from = parley.At(d)
	}
	if d, err := time.Parse(time.DateOnly, q.DateTo); err == nil {
		to = parley.At(d.AddDate(0, 0, 1))
	}
	return from, to
}

func (a *API) listLedger(ctx context.Context, r *request, in *struct {
	pageQuery
	dateQuery
}) (*Paginated[parley.LedgerEntry], error) {
	from, to := in.bounds()
	p := in.page(15)
	list, total, err := a.DB.Ledger(ctx, r.UserID(), from, to, p)
	if err != nil {
		return nil, err
	}
	e := envelope(a, r.Request, list, total, p)
	return &e, nil
}

func (a *API) createCheckout(ctx context.Context, r *request, _ *none) (*messageData[*payment.Checkout], error) {
	ledger := a.Front.Base(r.Request) + "/ledger"
	made, err := a.Payments.Begin(ctx, r.Who.User, r.Body, ledger+payment.Done, ledger)
	return &messageData[*payment.Checkout]{"Checkout created successfully", made}, err
}

func (a *API) getCheckout(ctx context.Context, r *request, in *struct {
	ID string `path:"id"`
}) (*data[*payment.Checkout], error) {
	c, err := a.Payments.Look(ctx, r.UserID(), in.ID)
	return &data[*payment.Checkout]{c}, err
}
