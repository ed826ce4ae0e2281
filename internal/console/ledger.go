package console

import (
	"parley"
	"parley/internal/form"
	"parley/internal/store"
)

// ledger is a page of the movements of a user's money.
type ledger struct {
	dates
	Page int `query:"page" minimum:"1" maximum:"2147483648"`

	entries       []parley.LedgerEntry
	total         int
	balance, free parley.Money
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
	l := &ledger{Page: 1}
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
	return show("Ledger", ledgerPage(l)), err
}
