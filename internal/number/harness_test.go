package number_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/internal/billing"
	"parley/internal/carrier"
	"parley/internal/carrier/carriertest"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

const (
	number1, number2, person = "+12025550101", "+12025550102", "+12025550777"
	cent                     = parley.USD / 100 // the price of a segment in these tests
)

// harness is a database with a user who has money, a scripted carrier and a pool.
type harness struct {
	testing.TB
	db      *store.DB
	carrier *carriertest.Fake
	pool    *number.Pool
	user    *parley.User
}

func each(t *testing.T, test func(t *testing.T, h *harness)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t testing.TB, db *store.DB) *harness {
	h := &harness{TB: t, db: db}
	h.carrier = &carriertest.Fake{Stock: []carrier.Number{
		{PhoneNumber: number1, CountryCode: "US", AddressRequirements: "none", SMSCapable: true},
		{PhoneNumber: number2, CountryCode: "US", AddressRequirements: "none", SMSCapable: false}}}
	prices, err := billing.ReadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	prices.Numbers["US"] = billing.NumberPrice{Rent: parley.USD}
	prices.SMS["US"] = parley.USD / 100
	h.user = storetest.User(t, db, 5*parley.USD)
	h.pool = number.New(number.Config{DB: db, Carrier: h.carrier, Prices: prices})
	return h
}

func (h *harness) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// buy searches for a number of the stock and buys it.
func (h *harness) buy(number string) *parley.Number {
	h.Helper()
	h.search()
	n, err := h.pool.Buy(h.Context(), h.user.ID, number)
	if err != nil {
		h.Fatal(err)
	}
	return n
}

func (h *harness) search() {
	h.Helper()
	if _, err := h.pool.Search(h.Context(), h.user.ID, "US", ""); err != nil {
		h.Fatal(err)
	}
}

// sweep finishes everything that is stuck.
func (h *harness) sweep() error {
	return h.pool.Sweep(h.Context(), parley.Now().Add(number.Settles+time.Minute))
}

// dies runs a function during which the server dies.
func (h *harness) dies(fn func()) {
	h.Helper()
	defer func() {
		if recover() == nil {
			h.Error("it lived")
		}
	}()
	fn()
}

// money checks the balance, the free part of it, and that the ledger agrees.
func (h *harness) money(balance parley.Money) {
	h.Helper()
	u, err := h.db.User(h.Context(), h.user.ID)
	if err != nil {
		h.Fatal(err)
	}
	free, err := h.db.Free(h.Context(), h.user.ID)
	if err != nil {
		h.Fatal(err)
	}
	list, _, err := h.db.Ledger(h.Context(), h.user.ID, 0, 0, store.Page{Number: 1, Size: 100})
	if err != nil {
		h.Fatal(err)
	}
	sum := parley.Money(0)
	for _, e := range list {
		sum += e.Amount
	}
	if u.Balance != balance || free != balance || sum != balance {
		h.Errorf("balance %v, free %v, ledger %v; want %v", u.Balance, free, sum, balance)
	}
}

// charges counts the ledger's entries of a kind.
func (h *harness) charges(kind parley.LedgerKind) (n int) {
	h.Helper()
	list, _, err := h.db.Ledger(h.Context(), h.user.ID, 0, 0, store.Page{Number: 1, Size: 100})
	if err != nil {
		h.Fatal(err)
	}
	for _, e := range list {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (h *harness) numbers() []parley.Number {
	h.Helper()
	list, err := h.db.Numbers(h.Context(), h.user.ID)
	if err != nil {
		h.Fatal(err)
	}
	return list
}

// is expects an error of a kind.
func (h *harness) is(err error, kind parley.Kind) {
	h.Helper()
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != kind {
		h.Errorf("got %v, want an error of kind %d", err, kind)
	}
}

// on scripts the carrier: what happens before or after an act.
func on(act string, err error, dies bool) func(string, string) error {
	return func(a, _ string) error {
		if a != act {
			return nil
		}
		if dies {
			panic("the server dies")
		}
		return err
	}
}
