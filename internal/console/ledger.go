package console

import (
	"cmp"
	"encoding/json"
	"reflect"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/payment"
	"parley/internal/store"
)

// ledger is a page of the movements of a user's money.
type ledger struct {
	dates
	Page int `query:"page" minimum:"1" maximum:"2147483648"`

	entries       []parley.LedgerEntry
	total         int
	balance, free parley.Money
	pay           *fields // nil: nobody can pay by card
}

func (l *ledger) at(page int) string { return address("/ledger", l.values(), page) }

// reserved is what is set aside for messages and calls under way.
func (l *ledger) reserved() parley.Money { return l.balance - l.free }

// kindLabels are the kinds of entries in words.
var kindLabels = map[parley.LedgerKind]string{parley.Credit: "Credit", parley.MessageCharge: "Message",
	parley.Refund:     "Refund",
	parley.RentCharge: "Number rent", parley.SMSCharge: "Text message"}

func kindLabel(k parley.LedgerKind) string {
	if label := kindLabels[k]; label != "" {
		return label
	}
	return string(k)
}

func (c *Console) ledgerPage(r *request) (*answer, error) {
	return c.ledger(r, map[string]any{"amount": json.Number("20")}, nil)
}

func (c *Console) ledger(r *request, order map[string]any, wrong parley.Fields) (*answer, error) {
	l := &ledger{Page: 1}
	if c.Payments != nil {
		l.pay = fieldsOf[payment.Order](order, wrong)
	}
	if len(form.Query(r.URL.Query(), l)) > 0 {
		return see("/ledger"), nil
	}
	from, to := l.bounds(r.zone())
	var err error
	if l.entries, l.total, err = c.DB.Ledger(r.Context(), r.UserID(), from, to,
		store.Page{Number: l.Page, Size: pageSize}); err != nil {
		return nil, err
	}
	if len(l.entries) == 0 && l.total > 0 {
		return see(l.at((l.total + pageSize - 1) / pageSize)), nil
	}
	u, err := c.DB.User(r.Context(), r.UserID())
	if err != nil {
		return nil, err
	}
	l.balance = u.Balance
	l.free, err = c.DB.Free(r.Context(), r.UserID())
	if len(wrong) > 0 {
		return invalid("Ledger", ledgerPage(l)), err
	}
	return show("Ledger", ledgerPage(l)), err
}

// ledgerPay sends the browser to the page at Stripe's on which the payment is made. It is no redirect of the form, which
// the pages' policy keeps within this server.
func (c *Console) ledgerPay(r *request) (*answer, error) {
	order := decode(r.PostForm, reflect.TypeFor[payment.Order]())
	here := c.Front.Base(r.Request) + "/ledger"
	made, err := c.Payments.Begin(r.Context(), r.who.User, order, here+payment.Done, here)
	if wrong, ok := fieldErrors(err); ok {
		return c.ledger(r, order, wrong)
	}
	if err != nil {
		return nil, err
	}
	r.w.Header().Set("HX-Redirect", *made.URL)
	r.w.Header().Set("Refresh", "0; url="+*made.URL)
	return show("Payment", payPage(made)), nil
}

// ledgerPaid is where Stripe sends the browser afterwards.
func (c *Console) ledgerPaid(r *request) (*answer, error) {
	if c.Payments == nil {
		return see("/ledger"), nil
	}
	made, err := c.Payments.Look(r.Context(), r.UserID(), r.URL.Query().Get("session"))
	if err != nil {
		return nil, err
	}
	return see("/ledger", cmp.Or(map[string]string{payment.Paid: "paid", payment.Processing: "paying"}[made.Status], "unpaid")), nil
}
