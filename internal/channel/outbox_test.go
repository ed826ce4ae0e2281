package channel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"parley/internal/channel"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// letter is a message of a channel that keeps its rows in memory.
type letter struct {
	user    int64
	status  string
	claimed bool
	moved   []bool // what Save was told about the money
}

// postbox is that channel, with one letter. fail is the carrier's error; the other fields decide what follows.
type postbox struct {
	m       letter
	fail    error
	then    channel.Outcome
	carried int
	during  func() // while the carrier has it
}

// ranks say in which direction a letter's status moves: a delivered letter can't fail later.
var ranks = map[string]int{"queued": 0, channel.Sent: 1, channel.Refused: 2, "delivered": 3}

func (b *postbox) Create(_ context.Context, _ *store.Tx, m *letter) error { b.m = *m; return nil }

func (b *postbox) Claim(context.Context, *store.Tx, int64, parley.Time) (*letter, bool, error) {
	mine := b.m.status == "queued" && !b.m.claimed
	b.m.claimed = b.m.claimed || mine
	return &b.m, mine, nil
}

func (b *postbox) Unclaim(context.Context, *store.Tx, int64) error { b.m.claimed = false; return nil }

func (b *postbox) Carry(context.Context, *letter) (string, error) {
	b.carried++
	if b.during != nil {
		b.during()
	}
	return "name", b.fail
}

func (b *postbox) Judge(context.Context, *letter, error, parley.Time, bool) (channel.Outcome, string) {
	return b.then, "no such address"
}

func (b *postbox) Lock(context.Context, *store.Tx, int64) (*letter, error) { return &b.m, nil }

func (b *postbox) At(m *letter) channel.State { return at(m.status) }

func at(status string) channel.State {
	switch status {
	case "queued":
		return channel.Queued
	case channel.Refused:
		return channel.Failed
	}
	return channel.Taken
}

func (b *postbox) Comes(m *letter, r channel.Report) (channel.State, bool) {
	return at(r.Status), ranks[r.Status] > ranks[m.status]
}

func (b *postbox) Bill(m *letter) channel.Bill {
	return channel.Bill{UserID: m.user, Kind: parley.SMSCharge, Reference: "letter:1", Cost: parley.USD,
		For: "a letter", Back: "a letter came back"}
}

func (b *postbox) Save(_ context.Context, _ *store.Tx, m *letter, r channel.Report, moved bool) error {
	m.status, m.moved = r.Status, append(m.moved, moved)
	return nil
}

// posted returns a queued letter, of a user with 5 USD.
func posted(t *testing.T) (db *store.DB, b *postbox, o *channel.Outbox[letter],
	money func(balance, free parley.Money)) {
	t.Helper()
	db, b = storetest.SQLite(t), &postbox{}
	o = &channel.Outbox[letter]{DB: db, Box: b}
	u := storetest.User(t, db, 5*parley.USD)
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return o.Add(ctx, tx, &letter{user: u.ID, status: "queued"})
	})
	if err != nil {
		t.Fatal(err)
	}
	return db, b, o, func(balance, free parley.Money) {
		t.Helper()
		now, err := db.User(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Free(t.Context(), u.ID); err != nil || got != free*parley.USD ||
			now.Balance != balance*parley.USD {
			t.Errorf("the balance is %s, of which %s are free (%v); want %d and %d", now.Balance, got, err, balance,
				free)
		}
	}
}

// What happens when a letter is handed over, and what it then costs.
func TestDeliver(t *testing.T) {
	dead := errors.New("the line went dead")
	for name, c := range map[string]struct {
		fail          error
		then          channel.Outcome
		told          string // by the carrier, while it has the letter
		status        string
		balance, free parley.Money
		claimed       bool
		failed        bool
		arrived       bool
	}{
		"taken":              {status: "sent", balance: 4, free: 4, claimed: true},
		"taken, told before": {told: "delivered", status: "delivered", balance: 4, free: 4, claimed: true},
		"refused": {fail: dead, then: channel.Ended, status: "failed", balance: 5, free: 5,
			claimed: true, failed: true},
		"sent, and refused then": {fail: dead, then: channel.Ended, told: "sent", status: "failed", balance: 5,
			free: 5, claimed: true, failed: true},
		"lost, and arrived after all": {fail: dead, then: channel.Ended, told: "delivered", status: "delivered",
			balance: 4, free: 4, claimed: true, arrived: true},
		"not known": {fail: dead, then: channel.Open, status: "queued", balance: 5, free: 4,
			claimed: true},
		"another time": {fail: dead, then: channel.Again, status: "queued", balance: 5, free: 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, b, o, money := posted(t)
			money(5, 4)
			b.fail, b.then = c.fail, c.then
			if c.told != "" {
				b.during = func() {
					if _, err := o.Told(t.Context(), 1, channel.Report{Name: "name", Status: c.told}); err != nil {
						t.Error(err)
					}
				}
			}
			_, err := o.Deliver(t.Context(), 1, parley.Now(), true)
			f, failed := errors.AsType[*channel.Failure](err)
			if (err != nil) != (c.fail != nil && !c.arrived) || failed != c.failed || err != nil &&
				!errors.Is(err, dead) || failed && f.Reason != "no such address" {
				t.Errorf("told %v", err)
			}
			if b.m.status != c.status || b.m.claimed != c.claimed {
				t.Errorf("it stands as %+v", b.m)
			}
			money(c.balance, c.free)
			if _, err := o.Deliver(t.Context(), 1, parley.Now(), true); c.claimed && (err != nil || b.carried != 1) {
				t.Errorf("it was handed over %d times: %v", b.carried, err)
			}
		})
	}
}

// When statuses are repeated or out of order, money moves only once in each direction, and Save is told about it.
func TestTold(t *testing.T) {
	for name, c := range map[string]struct {
		told    []string
		balance parley.Money
		moved   string
	}{
		"sent, delivered":   {[]string{"sent", "delivered", "sent", "delivered"}, 4, "[true true]"},
		"delivered at once": {[]string{"delivered", "sent"}, 4, "[true]"},
		"came back":         {[]string{"sent", "failed", "failed"}, 5, "[true true]"},
		// a refund is final
		"came back, or did not": {[]string{"sent", "failed", "delivered", "delivered"}, 5, "[true true true]"},
		"was never sent":        {[]string{"failed", "sent", "failed"}, 5, "[true]"},
		"was sent after all":    {[]string{"failed", "delivered"}, 4, "[true true]"},
		"nothing that is known": {[]string{"queued", ""}, 5, "[]"},
	} {
		_, b, o, money := posted(t)
		for _, status := range c.told {
			if _, err := o.Told(t.Context(), 1, channel.Report{Name: "name", Status: status}); err != nil {
				t.Fatal(err)
			}
		}
		free := c.balance
		if len(b.m.moved) == 0 {
			free-- // still reserved
		}
		money(c.balance, free)
		if got := fmt.Sprint(b.m.moved); got != c.moved {
			t.Errorf("%s: moved %s, want %s", name, got, c.moved)
		}
	}
}

// A price that the balance does not cover is not charged, and the channel is told so.
func TestTakenForNothing(t *testing.T) {
	db, b, o, money := posted(t)
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Release(ctx, b.m.user, "letter:1"); err != nil {
			return err
		}
		_, err := tx.Post(ctx, b.m.user, &parley.LedgerEntry{Kind: parley.SMSCharge, Amount: -5 * parley.USD,
			Reference: "all", Description: "x"})
		return err
	})
	if err == nil {
		_, err = o.Told(t.Context(), 1, channel.Report{Name: "name", Status: channel.Sent})
	}
	if err != nil || fmt.Sprint(b.m.moved) != "[false]" {
		t.Errorf("moved %v: %v", b.m.moved, err)
	}
	money(0, 0)
}

func TestParts(t *testing.T) {
	for text, want := range map[string]string{"": "[]", " a b ": `["a b"]`, "aaaa bbbb": `["aaaa" "bbbb"]`,
		"aaaaaaa": `["aaaaa" "aa"]`, "a bbbbbbb": `["a bbb" "bbbb"]`} {
		if got := fmt.Sprintf("%q", channel.Parts(text, 5)); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
}
