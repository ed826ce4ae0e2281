package sms_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"parley/internal/carrier"
	"parley/internal/channel/sms"
	"parley/internal/parley"
	"parley/internal/store"
)

const cent = parley.USD / 100 // the price of a segment in these tests

func TestSend(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		m, err := h.texts.Send(t.Context(), h.user.ID, n.ID, "+1 202 555 0777", "Grüße 👋")
		if err != nil || m.Status != parley.SMSSent || m.To != person || m.From != number1 || m.Segments != 1 ||
			m.TotalCost != cent || m.SID != "SM1" {
			t.Fatalf("sent %+v: %v", m, err)
		}
		h.money(4*parley.USD - cent)
		if got := h.carrier.Sent(); len(got) != 1 || got[0].Body != "Grüße 👋" ||
			got[0].Reference != fmt.Sprintf("sms:%d", m.ID) {
			t.Errorf("the carrier has %+v", got)
		}
		if err := h.sweep(); err != nil || len(h.carrier.Sent()) != 1 {
			t.Errorf("a sweep sent it again: %v", err)
		}
	})
}

// Whatever the carrier answers and wherever the server dies, a message is either sent and charged once, or not sent
// and not charged.
func TestSendFailures(t *testing.T) {
	unknown := errors.New("the line went dead")
	for name, c := range map[string]struct {
		before, after func(string, string) error
		dies          bool
		sent          int // by the carrier, after the sweep
		status        parley.SMSStatus
	}{
		"refused": {before: on("send", &carrier.Error{Message: "no route"}, false),
			status: parley.SMSFailed},
		"later": {before: on("send", &carrier.Error{Message: "slow down", Later: true}, false),
			status: parley.SMSFailed},
		"fails before":           {before: on("send", unknown, false), status: parley.SMSFailed},
		"answer lost":            {after: on("send", unknown, false), sent: 1, status: parley.SMSSent},
		"dies before":            {before: on("send", nil, true), dies: true, sent: 1, status: parley.SMSSent},
		"dies after it was sent": {after: on("send", nil, true), dies: true, sent: 1, status: parley.SMSSent},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, h *harness) {
				n := h.buy(number1)
				// an earlier message with the same text
				if _, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "the same words"); err != nil {
					t.Fatal(err)
				}
				h.carrier.Before, h.carrier.After = c.before, c.after
				send := func() {
					m, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "the same words")
					var f *sms.Failure
					if failed := errors.As(err, &f); failed != (c.status == parley.SMSFailed) || m == nil ||
						m.Status != c.status {
						t.Errorf("answered %+v: %v", m, err)
					}
				}
				if c.dies {
					h.dies(send)
					u, _ := h.db.User(t.Context(), h.user.ID)
					if free, _ := h.db.Free(t.Context(), h.user.ID); u.Balance != 4*parley.USD-cent ||
						free != u.Balance-cent {
						t.Errorf("balance %v, of which %v is free", u.Balance, free)
					}
				} else {
					send()
				}
				h.carrier.Before, h.carrier.After = nil, nil
				for range 2 {
					if err := h.sweep(); err != nil {
						t.Fatal(err)
					}
				}
				last := h.messages()[0]
				if got := len(h.carrier.Sent()); got != 1+c.sent || last.Status != c.status {
					t.Errorf("the carrier sent %d, the row says %q", got, last.Status)
				}
				if c.sent == 1 && last.SID != "SM2" {
					t.Errorf("the row has the carrier's name %q, another message's", last.SID)
				}
				h.money(4*parley.USD - cent*parley.Money(1+c.sent))
				if got := h.charges(parley.SMSCharge); got != 1+c.sent {
					t.Errorf("%d charges", got)
				}
			})
		})
	}
}

// If the search at the carrier fails, the fate of a message stays open: it is neither sent again nor given up.
func TestUncertainStaysOpen(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		h.carrier.After = on("send", nil, true)
		h.dies(func() { h.texts.Send(t.Context(), h.user.ID, n.ID, person, "once") })
		h.carrier.After, h.carrier.Before = nil, on("find", &carrier.Error{Message: "slow down"}, false)
		if err := h.sweep(); err == nil || len(h.carrier.Sent()) != 1 || h.messages()[0].Status != parley.SMSQueued {
			t.Errorf("the carrier sent %d, the row says %q: %v", len(h.carrier.Sent()), h.messages()[0].Status, err)
		}
		h.carrier.Before = nil
		if err := h.sweep(); err != nil || len(h.carrier.Sent()) != 1 || h.messages()[0].Status != parley.SMSSent {
			t.Errorf("the carrier sent %d, the row says %q: %v", len(h.carrier.Sent()), h.messages()[0].Status, err)
		}
		h.money(4*parley.USD - cent)
	})
}

// Two servers that find the same message send it once: only one gets the lease.
func TestSweepsTogether(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		h.carrier.Before = on("send", nil, true)
		for i := range 5 {
			h.dies(func() { h.texts.Send(t.Context(), h.user.ID, n.ID, person, fmt.Sprint("message ", i)) })
		}
		h.carrier.Before = nil
		h.texts.Lease = 0
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := h.sweep(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := len(h.carrier.Sent()); got != 5 {
			t.Errorf("%d were sent", got)
		}
		h.money(4*parley.USD - 5*cent)
	})
}

func TestSendRace(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		h.texts.Prices.SMS["US"] = parley.USD
		var wg sync.WaitGroup
		for range 12 { // there is money for four
			wg.Go(func() {
				if _, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "x"); err != nil {
					h.is(err, parley.Refused)
				}
			})
		}
		wg.Wait()
		if got := len(h.carrier.Sent()); got != 4 {
			t.Errorf("%d were sent", got)
		}
		h.money(0)
	})
}

// A carrier's reports that are repeated, out of order, or about another message.
func TestReports(t *testing.T) {
	const s, d, u, f, q = parley.SMSSent, parley.SMSDelivered, parley.SMSUndelivered, parley.SMSFailed, parley.SMSQueued
	for name, c := range map[string]struct {
		told []parley.SMSStatus
		want parley.SMSStatus
		paid bool
	}{
		"in order":             {[]parley.SMSStatus{q, s, d}, d, true},
		"out of order":         {[]parley.SMSStatus{d, s, q}, d, true},
		"twice":                {[]parley.SMSStatus{s, s, d, d, s}, d, true},
		"undelivered is paid":  {[]parley.SMSStatus{s, u, u}, u, true},
		"failed is given back": {[]parley.SMSStatus{f, f, s, f}, f, false},
		"delivered stays so":   {[]parley.SMSStatus{d, f, u}, d, true},
		"undelivered stays so": {[]parley.SMSStatus{u, d, f}, u, true},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, h *harness) {
				n := h.buy(number1)
				m, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "x")
				if err != nil {
					t.Fatal(err)
				}
				tell := func(r carrier.Report) {
					t.Helper()
					if err := h.texts.Report(t.Context(), r); err != nil {
						t.Error(err)
					}
				}
				for i, status := range c.told {
					r := carrier.Report{Reference: fmt.Sprintf("sms:%d", m.ID), SID: m.SID, Status: status}
					if i%2 == 1 {
						r.Reference = "" // found by the carrier's own id
					}
					tell(r)
				}
				tell(carrier.Report{Reference: fmt.Sprintf("sms:%d", m.ID), SID: "SM-another", Status: f})
				tell(carrier.Report{Reference: "sms:99999", SID: "SM-unknown", Status: f})
				tell(carrier.Report{Reference: "caller-id:1", SID: "SM-code", Status: d})
				if got := h.messages()[0].Status; got != c.want {
					t.Errorf("it is %q, want %q", got, c.want)
				}
				h.money(4*parley.USD - map[bool]parley.Money{true: cent}[c.paid])
			})
		})
	}
}

// A message that was given up because the carrier did not answer was sent if the carrier says so later, and is paid then
// if there is money for it.
func TestReportOfGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		spent, cost parley.Money // by somebody else meanwhile; by the message
	}{
		"paid":            {0, cent},
		"no money by now": {4*parley.USD - cent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, h *harness) {
				n := h.buy(number1)
				if _, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "x"); err != nil {
					t.Fatal(err)
				}
				unknown := errors.New("the line went dead")
				h.carrier.After, h.carrier.Before = on("send", unknown, false), on("find", unknown, false)
				m, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "x")
				if f, ok := errors.AsType[*sms.Failure](err); !ok || !f.Unanswered || m.Status != parley.SMSFailed {
					t.Fatalf("answered %+v: %v", m, err)
				}
				h.write(func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: -c.spent,
						Reference: "spent", Description: "x"})
					return err
				})
				balance := 4*parley.USD - cent - c.spent
				for _, r := range []struct {
					carrier.Report
					want parley.SMSStatus
					cost parley.Money
				}{
					{carrier.Report{SID: "SM2", Status: parley.SMSFailed}, parley.SMSFailed, 0},
					{carrier.Report{SID: "SM2", Status: parley.SMSDelivered}, parley.SMSDelivered, c.cost},
					{carrier.Report{SID: "SM2", Status: parley.SMSSent}, parley.SMSDelivered, c.cost},
					{carrier.Report{SID: "SM3", Status: parley.SMSUndelivered}, parley.SMSDelivered, c.cost},
				} {
					r.Reference = fmt.Sprintf("sms:%d", m.ID)
					if err := h.texts.Report(t.Context(), r.Report); err != nil {
						t.Error(err)
					}
					got := h.messages()[0]
					if got.Status != r.want || r.want == parley.SMSDelivered && (got.SID != "SM2" || got.Error != nil ||
						got.TotalCost != c.cost) {
						t.Errorf("told %+v, it is %+v", r.Report, got)
					}
					h.money(balance - r.cost)
					if spent, err := h.db.Spend(t.Context(), h.user.ID, parley.Now()); err != nil || spent != cent+r.cost {
						t.Errorf("%v count as spent today: %v", spent, err)
					}
				}
			})
		})
	}
}

// A report may arrive before our own bookkeeping is done, even if the server dies first.
func TestReportBeforeTheRow(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		told := func(dies bool) func(string, string) error {
			return func(act, _ string) error {
				if act == "send" {
					sent := h.carrier.Sent()
					last := sent[len(sent)-1]
					if err := h.texts.Report(t.Context(),
						carrier.Report{Reference: last.Reference, SID: last.SID,
							Status: parley.SMSDelivered}); err != nil {
						t.Error(err)
					}
					if dies {
						panic("the server dies")
					}
				}
				return nil
			}
		}
		h.carrier.After = told(false)
		if m, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "x"); err != nil ||
			m.Status != parley.SMSDelivered || m.SID != "SM1" {
			t.Errorf("sent %+v: %v", m, err)
		}
		h.carrier.After = told(true)
		h.dies(func() { h.texts.Send(t.Context(), h.user.ID, n.ID, person, "y") })
		h.carrier.After = nil
		if err := h.sweep(); err != nil || len(h.carrier.Sent()) != 2 || h.messages()[0].Status != parley.SMSDelivered {
			t.Errorf("the carrier sent %d: %v", len(h.carrier.Sent()), err)
		}
		h.money(4*parley.USD - 2*cent)
	})
}
