package api

import (
	"context"
	"time"

	"parley"
)

func (a *API) billingRoutes() {
	handle(a, op{Method: "GET", Path: "/user/billing/ledger", Name: "listLedger", Tag: "Billing",
		Summary: "Every movement of the balance, newest first"}, a.listLedger)
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
