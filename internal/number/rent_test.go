package number_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"parley/internal/carrier"
	"parley/internal/carrier/carriertest"
	"parley/internal/form"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestBuy(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		if _, err := h.pool.Buy(ctx, h.user.ID, "+12025559999"); err == nil {
			t.Error("a number was bought that the carrier does not have")
		}
		n := h.buy(number1)
		if n.Type != parley.NumberNormal || !n.SMSCapable || n.CountryCode != "US" || !n.Subscribed(parley.Now()) ||
			!h.carrier.Rented(number1) {
			t.Errorf("bought %+v", n)
		}
		h.money(4 * parley.USD)
		_, err := h.pool.Buy(ctx, h.user.ID, number1)
		h.is(err, parley.Refused)
		list, err := h.pool.Search(ctx, h.user.ID, "US", "")
		if err != nil || len(list) != 1 || list[0].PhoneNumber != number2 ||
			list[0].Formatted != "(202) 555-0102" || list[0].Price != parley.USD {
			t.Errorf("then a search finds %+v: %v", list, err)
		}
		poor := storetest.User(t, h.db, parley.USD-1)
		if _, err := h.pool.Search(ctx, poor.ID, "US", ""); err != nil {
			t.Fatal(err)
		}
		_, err = h.pool.Buy(ctx, poor.ID, number2)
		h.is(err, parley.Payment)
		if h.carrier.Rented(number2) {
			t.Error("the carrier was asked for a number that nobody pays")
		}
		stranger := storetest.User(t, h.db, parley.USD)
		// found by another: it is looked up again
		if n, err := h.pool.Buy(ctx, stranger.ID, number2); err != nil || n.PhoneNumber != number2 {
			t.Errorf("a number that is to be had: %+v, %v", n, err)
		}
	})
}

// Whatever the carrier answers and wherever the server dies, a number is either the user's and charged once, or
// nobody's and free.
func TestBuyFailures(t *testing.T) {
	unknown := errors.New("the line went dead")
	for name, c := range map[string]struct {
		before, after func(string, string) error
		dies          bool
		kind          parley.Kind
		owned         bool // after the sweep
	}{
		"not to be had": {before: on("buy", &carrier.Error{Message: "gone", Taken: true}, false), kind: parley.Refused},
		"refused": {before: on("buy", &carrier.Error{Message: "an address is needed"}, false),
			kind: parley.Internal},
		"fails before": {before: on("buy", unknown, false), kind: -1},
		"fails after":  {after: on("buy", unknown, false), kind: -1},
		"dies before":  {before: on("buy", nil, true), dies: true, owned: true},
		"dies after":   {after: on("buy", nil, true), dies: true, owned: true},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, h *harness) {
				h.search()
				h.carrier.Before, h.carrier.After = c.before, c.after
				buy := func() {
					_, err := h.pool.Buy(t.Context(), h.user.ID, number1)
					if c.kind > 0 || c.kind == parley.Internal {
						h.is(err, c.kind)
					} else if err == nil {
						t.Error("no error")
					}
				}
				if c.dies {
					h.dies(buy)
				} else {
					buy()
					h.money(5 * parley.USD)
				}
				if len(h.numbers()) != 0 {
					t.Fatal("a number is there")
				}
				h.carrier.Before, h.carrier.After = nil, nil
				for range 2 {
					if err := h.sweep(); err != nil {
						t.Fatal(err)
					}
				}
				if got := len(h.numbers()) == 1; got != c.owned || h.carrier.Rented(number1) != c.owned {
					t.Errorf("owned: %v, rented: %v, want %v", got, h.carrier.Rented(number1), c.owned)
				}
				if c.owned {
					h.money(4 * parley.USD)
					return
				}
				h.money(5 * parley.USD)
				h.buy(number1) // it can be bought again
				h.money(4 * parley.USD)
			})
		})
	}
}

// A carrier may complete a purchase that we have given up. The number is not left to nobody.
func TestBuyLate(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.search()
		h.carrier.Before = on("buy", errors.New("the line went dead"), false)
		if _, err := h.pool.Buy(t.Context(), h.user.ID, number1); err == nil {
			t.Error("no error")
		}
		h.carrier.Before = nil
		if err := h.pool.Sweep(t.Context(), parley.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := h.carrier.Buy(t.Context(), number1); err != nil { // our request gets there at last
			t.Fatal(err)
		}
		if err := h.sweep(); err != nil || h.carrier.Rented(number1) || len(h.numbers()) != 0 {
			t.Errorf("rented: %v, owned: %d, %v", h.carrier.Rented(number1), len(h.numbers()), err)
		}
		h.money(5 * parley.USD)
		h.buy(number1)
	})
}

func TestBuyRace(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.search()
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 8 {
			wg.Go(func() {
				_, err := h.pool.Buy(t.Context(), h.user.ID, number1)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else {
					h.is(err, parley.Refused)
				}
			})
		}
		wg.Wait()
		if won != 1 || len(h.numbers()) != 1 {
			t.Errorf("%d bought it", won)
		}
		h.money(4 * parley.USD)
	})
}

func TestRent(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		n := h.buy(number1)
		collect := func(at parley.Time) {
			t.Helper()
			var wg sync.WaitGroup
			for range 3 { // nodes
				wg.Go(func() {
					if err := h.pool.CollectRent(ctx, at); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		collect(n.PaidUntil - 1)
		h.money(4 * parley.USD)
		collect(n.PaidUntil)
		h.money(3 * parley.USD)
		collect(n.PaidUntil + 1)
		h.money(3 * parley.USD)
		second := n.NextRent(n.PaidUntil)
		third := n.NextRent(second)
		collect(third) // the server was away for a month: both months are charged
		h.money(parley.USD)
		fourth := n.NextRent(third)
		collect(fourth)
		h.money(0)
		if got := h.numbers()[0]; got.PaidUntil != n.NextRent(fourth) || h.charges(parley.RentCharge) != 5 {
			t.Errorf("paid until %v with %d charges", got.PaidUntil, h.charges(parley.RentCharge))
		}
		// Then no money is left. The number stays for a week, unpaid; a payment brings it back.
		due := h.numbers()[0].PaidUntil
		a := &parley.Assistant{}
		form.Defaults(a)
		a.Name, a.Type, a.Timezone, a.LanguageID, a.VoiceID, a.PhoneNumberID = "Desk", "inbound", "UTC", 1, 1001, &n.ID
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, h.user.ID, a) })
		collect(due.Add(number.Grace - time.Second))
		if len(h.numbers()) != 1 || !h.carrier.Rented(number1) {
			t.Fatal("a number was given back within the days of grace")
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: parley.USD,
				Reference: "again", Description: "x"})
			return err
		})
		collect(due.Add(number.Grace - time.Second))
		h.money(0)
		due = n.NextRent(due)
		if got := h.numbers()[0].PaidUntil; got != due {
			t.Errorf("paid until %v, want %v: the days of grace are paid too", got, due)
		}
		h.carrier.After = on("release", errors.New("the line went dead"), false)
		if err := h.pool.CollectRent(ctx, due.Add(number.Grace)); err == nil {
			t.Error("no word of a carrier that failed")
		}
		if len(h.numbers()) != 1 {
			t.Error("a number is gone that the carrier may still rent to us")
		}
		h.carrier.After = nil
		collect(due.Add(number.Grace))
		if len(h.numbers()) != 0 || h.carrier.Rented(number1) {
			t.Error("an unpaid number was kept")
		}
		h.money(0)
		if got, err := h.db.Assistant(ctx, h.user.ID, a.ID); err != nil || got.PhoneNumberID != nil {
			t.Errorf("the assistant still has the number: %v %v", got.PhoneNumberID, err)
		}
	})
}

// A number that was given back for its unpaid rent is not charged again, even if the server dies before it knows, and
// money comes then.
func TestUnpaidIsGivenBack(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		n := h.buy(number1)
		post := func(amount parley.Money) {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: amount,
					Reference: amount.String(), Description: "x"})
				return err
			})
		}
		post(-4 * parley.USD)
		h.carrier.After = on("release", nil, true)
		h.dies(func() { h.pool.CollectRent(ctx, n.PaidUntil.Add(number.Grace)) })
		h.carrier.After = nil
		post(4 * parley.USD)
		if err := h.pool.CollectRent(ctx, n.PaidUntil.Add(number.Grace+time.Hour)); err != nil || len(h.numbers()) != 0 {
			t.Errorf("%d numbers are left: %v", len(h.numbers()), err)
		}
		if got := h.charges(parley.RentCharge); got != 1 {
			t.Errorf("%d months were charged", got)
		}
		h.money(4 * parley.USD)
	})
}

func TestGiveUp(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		n := h.buy(number1)
		if err := h.pool.Give(ctx, storetest.User(t, h.db, 0).ID, n.ID); !store.IsNotFound(err) {
			t.Errorf("a stranger gave it up: %v", err)
		}
		if err := h.pool.Give(ctx, h.user.ID, n.ID); err != nil {
			t.Fatal(err)
		}
		h.is(h.pool.Give(ctx, h.user.ID, n.ID), parley.Refused)
		if err := h.pool.CollectRent(ctx, n.PaidUntil-1); err != nil || len(h.numbers()) != 1 ||
			!h.numbers()[0].Subscribed(parley.Now()) {
			t.Errorf("it is not kept for the time that is paid: %v", err)
		}
		h.carrier.Before = on("release", nil, true)
		h.dies(func() { h.pool.CollectRent(ctx, n.PaidUntil) })
		h.carrier.Before = nil
		if err := h.pool.CollectRent(ctx, n.PaidUntil); err != nil || len(h.numbers()) != 0 ||
			h.carrier.Rented(number1) {
			t.Errorf("it was not given back: %v", err)
		}
		h.money(4 * parley.USD)
	})
}

// leaving is a carrier whose client disconnects while a message is handed over.
type leaving struct {
	*carriertest.Fake
	leave func()
}

func (c leaving) Send(ctx context.Context, m carrier.SMS) (string, error) {
	sid, err := c.Fake.Send(ctx, m)
	c.leave()
	return sid, cmp.Or(err, ctx.Err())
}

// A code that was sent to somebody who has disconnected holds, and is paid.
func TestCallerIDClientLeaves(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx, leave := context.WithCancel(t.Context())
		h.pool.Carrier = leaving{h.carrier, leave}
		c, err := h.pool.AskCallerID(ctx, h.user.ID, person)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.pool.VerifyCallerID(t.Context(), h.user.ID, c.ID, h.carrier.Sent()[0].Body[:6]); err != nil {
			t.Error(err)
		}
		h.money(5*parley.USD - cent)
	})
}

func TestCallerID(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		ctx := t.Context()
		ask := func() (*parley.CallerID, string) {
			t.Helper()
			c, err := h.pool.AskCallerID(ctx, h.user.ID, person)
			if err != nil {
				t.Fatal(err)
			}
			sent := h.carrier.Sent()
			return c, sent[len(sent)-1].Body[:6]
		}
		wrong := func(code string) string { return map[bool]string{true: "000000", false: "111111"}[code == "111111"] }
		c, code := ask()
		if len(h.numbers()) != 0 {
			t.Error("an unverified number is owned")
		}
		if _, err := h.pool.VerifyCallerID(ctx, storetest.User(t, h.db, 0).ID, c.ID, code); !store.IsNotFound(err) {
			t.Errorf("a stranger verified it: %v", err)
		}
		for range parley.CallerIDTries {
			_, err := h.pool.VerifyCallerID(ctx, h.user.ID, c.ID, wrong(code))
			h.is(err, parley.Invalid)
		}
		_, err := h.pool.VerifyCallerID(ctx, h.user.ID, c.ID, code) // too late
		h.is(err, parley.Invalid)
		old := c
		c, code = ask()
		if _, err := h.pool.VerifyCallerID(ctx, h.user.ID, old.ID, code); !store.IsNotFound(err) {
			t.Errorf("an older question still stands: %v", err)
		}
		_, err = h.pool.VerifyCallerID(ctx, h.user.ID, c.ID, wrong(code))
		h.is(err, parley.Invalid)
		n, err := h.pool.VerifyCallerID(ctx, h.user.ID, c.ID, code)
		if err != nil || n.Type != parley.NumberCallerID || n.PhoneNumber != person || n.CountryCode != "US" ||
			n.SMSCapable || n.Subscribed(parley.Now()) {
			t.Fatalf("verified %+v: %v", n, err)
		}
		_, err = h.pool.AskCallerID(ctx, h.user.ID, person)
		h.is(err, parley.Refused)
		if err := h.pool.Give(ctx, h.user.ID, n.ID); err != nil || len(h.numbers()) != 0 {
			t.Errorf("it does not go at once: %v", err)
		}
		h.carrier.Before = on("send", &carrier.Error{Message: "no route"}, false)
		_, err = h.pool.AskCallerID(ctx, h.user.ID, person)
		h.is(err, parley.Internal)
		h.money(5*parley.USD - 2*cent) // two codes went out
	})
}
