package api

import (
	"context"
	"time"

	"parley/internal/parley"
	"parley/internal/payment"
)

func (a *API) billingRoutes() {
	handle(a, op{Method: "GET", Path: "/user/billing/ledger", Name: "listLedger", Tag: "Billing",
		Summary: "Every movement of the balance, newest first"}, a.listLedger)
	handle(a, op{Method: "POST", Path: "/user/billing/checkout", Name: "createCheckout", Tag: "Billing", Status: 201, Idempotent: true,
		Body: payment.Order{}, Summary: "Begin a payment by card: the answer's url is the page to pay on"}, a.createCheckout)
	handle(a, op{Method: "GET", Path: "/user/billing/checkout/{id}", Name: "getCheckout", Tag: "Billing", NotFound: "Payment not found",
		Summary: "Read what became of a payment; once it is paid, the credit is on the balance"}, a.getCheckout)
	handle(a, op{Method: "GET", Path: "/user/limits", Name: "listLimits", Tag: "Billing",
		Summary: "Every limit of the account, and how much of it is used"}, a.listLimits)
	handle(a, op{Method: "GET", Path: "/user/analytics", Name: "getAnalytics", Tag: "Analytics",
		Summary: "Figures for a range of days: calls, conversations, latency, costs"}, a.getAnalytics)
}

// limitRow is a limit as the API shows it.
type limitRow struct {
	Name    string  `json:"name" doc:"As the prices file knows it, where a plan sets it."`
	What    string  `json:"what"`
	Per     string  `json:"per" doc:"What it is counted for: account, API key, address, …"`
	Span    string  `json:"span" enum:"stored,at the same time,per second,per minute,per hour,per day" doc:"Days are UTC."`
	Most    *int64  `json:"most" doc:"null: a setting of the server says it."`
	Used    *int64  `json:"used" doc:"null: it is not counted in rows."`
	Setting *string `json:"setting" doc:"The setting by which the server's operator changes it; null: the plan, or nothing."`
}

func (a *API) listLimits(ctx context.Context, r *request, _ *none) (*listOf[limitRow], error) {
	list, err := a.DB.Limits(ctx, r.UserID(), parley.Now())
	rows := make([]limitRow, len(list))
	for i, l := range list {
		rows[i] = limitRow{Name: l.Name, What: l.What, Per: l.Holder(), Span: string(l.Span), Used: l.Used}
		if l.Setting != "" {
			rows[i].Setting = &l.Setting
		} else {
			rows[i].Most = &l.Most
		}
	}
	return &listOf[limitRow]{rows}, err
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
