package sms_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/internal/assistant"
	"parley/internal/billing"
	"parley/internal/carrier"
	"parley/internal/carrier/carriertest"
	"parley/internal/catalog"
	"parley/internal/channel/sms"
	"parley/internal/chat"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/number"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
)

const number1, number2, person = "+12025550101", "+12025550102", "+12025550777"

// harness is a database with a user who has money, a scripted carrier and a channel.
type harness struct {
	testing.TB
	db      *store.DB
	carrier *carriertest.Fake
	texts   *sms.Channel
	offices *number.Pool // where the numbers come from
	user    *parley.User
	hub     *event.Hub
	people  *assistant.Studio
	cat     *catalog.Catalog
}

func each(t *testing.T, test func(t *testing.T, h *harness)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t testing.TB, db *store.DB) *harness {
	h := &harness{TB: t, db: db, hub: event.NewHub()}
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
	h.texts = &sms.Channel{DB: db, Carrier: h.carrier, Prices: prices, Lease: time.Nanosecond}
	h.offices = number.New(number.Config{DB: db, Carrier: h.carrier, Prices: prices})
	providers, err := provider.Open(provider.All())
	if err != nil {
		t.Fatal(err)
	}
	guard := egress.New(nil)
	t.Cleanup(func() { providers.Close(); guard.Close() })
	h.cat = catalog.New("", provider.All())
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, h.cat.Models()) })
	rows, err := db.Models(t.Context())
	if err == nil {
		err = h.cat.SetModels(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.people = &assistant.Studio{DB: db, Catalog: h.cat, Providers: providers, Tools: tool.New(guard)}
	chat.New(chat.Config{DB: db, Assistants: h.people, Prices: prices, Hub: h.hub,
		Channels: func(c *chat.Chat) []chat.Replied {
			h.texts.Chat = c
			return []chat.Replied{h.texts.Replied}
		}})
	t.Cleanup(func() { h.texts.Chat.Stop(context.Background()) })
	return h
}

func (h *harness) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// assistant makes an assistant that answers a number.
func (h *harness) assistant(n *parley.Number) *parley.Assistant {
	h.Helper()
	voice := h.cat.Voices("pipeline", 1)[0]
	num := func(n int64) json.Number { return json.Number(fmt.Sprint(n)) }
	a, err := h.people.Create(h.Context(), h.user.ID,
		map[string]any{"name": "Desk", "type": "inbound", "mode": "pipeline", "status": "active",
			"timezone": "UTC", "voice_id": num(voice.ID), "language_id": num(1),
			"llm_model_id":    num(h.cat.ModelsOf(parley.LLM)[0].ID),
			"phone_number_id": num(n.ID), "system_prompt": "We are open from 7 am to 6 pm. This is {{assistant_phone}}."})
	if err != nil {
		h.Fatal(err)
	}
	return a
}

// buy searches for a number of the stock and buys it.
func (h *harness) buy(number string) *parley.Number {
	h.Helper()
	h.search()
	n, err := h.offices.Buy(h.Context(), h.user.ID, number)
	if err != nil {
		h.Fatal(err)
	}
	return n
}

func (h *harness) search() {
	h.Helper()
	if _, err := h.offices.Search(h.Context(), h.user.ID, "US", ""); err != nil {
		h.Fatal(err)
	}
}

// sweep finishes every message that is stuck.
func (h *harness) sweep() error {
	return h.texts.Sweep(h.Context(), parley.Now().Add(time.Minute))
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

func (h *harness) messages() []parley.SMS {
	h.Helper()
	list, _, err := h.db.SMSPage(h.Context(), h.user.ID, store.SMSFilter{}, store.Page{Number: 1, Size: 100})
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
