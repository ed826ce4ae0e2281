package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// However many strangers come at once, no more than the budget is set aside. What they turn out not to cost is free
// again; what they cost is not.
func TestPublicBudget(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, parley.USD), storetest.User(t, db, parley.USD)
		reserve := func(userID int64, reference string, amount parley.Money) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.ReservePublic(ctx, userID, reference, amount, parley.Now().Add(time.Hour))
			})
		}
		spent := func(want parley.Money) {
			t.Helper()
			got, budget, err := db.PublicSpend(t.Context(), u.ID, parley.Now())
			if err != nil || got != want || budget != 100 {
				t.Errorf("%d of %d are spent, want %d: %v", got, budget, want, err)
			}
		}
		var let atomic.Int64
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				switch err := reserve(u.ID, fmt.Sprint("message:", i), 10); {
				case err == nil:
					let.Add(1)
				case !errors.Is(err, store.PublicBudgetSpent):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if let.Load() != 10 {
			t.Fatalf("%d of 10 were let in", let.Load())
		}
		spent(100)
		if err := reserve(other.ID, "message:1", 100); err != nil {
			t.Errorf("another account: %v", err)
		}
		var held []string
		for i := range 30 {
			reference := fmt.Sprint("message:", i)
			if free, err := db.Free(t.Context(), u.ID); err != nil || free != parley.USD-100 {
				t.Fatal(free, err)
			}
			if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.ReservePublic(ctx, u.ID, reference, 10, parley.Now().Add(time.Hour)) // renewing takes no more
			}); err == nil {
				held = append(held, reference)
			}
		}
		if len(held) != 10 {
			t.Fatalf("%d were renewed", len(held))
		}
		spent(100)
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.Release(ctx, u.ID, held[0]) })
		spent(90)
		settle := func(reference string, amount parley.Money) {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Settle(ctx, u.ID, &parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -amount,
					Reference: reference})
				return err
			})
		}
		settle(held[1], 10)
		spent(90)
		settle(held[2], 4)
		settle(held[2], 4) // settling twice counts once
		spent(84)
		// the reservation is gone
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.Release(ctx, u.ID, held[1]) })
		spent(84)
		if err := reserve(u.ID, "message:99", 16); err != nil {
			t.Error(err)
		}
		if err := reserve(u.ID, "message:100", 1); !errors.Is(err, store.PublicBudgetSpent) {
			t.Errorf("past the budget: %v", err)
		}
		spent(100)
		write(t, db, func(ctx context.Context, tx *store.Tx) error { // spending that is not a stranger's does not count
			return tx.Reserve(ctx, u.ID, "call:1", 1000, parley.Now().Add(time.Hour))
		})
		spent(100)
		// Tomorrow there is a new budget, and the counts of earlier days are deleted.
		tomorrow := parley.Now().Add(24 * time.Hour)
		if got, _, err := db.PublicSpend(t.Context(), u.ID, tomorrow); err != nil || got != 0 {
			t.Errorf("%d are spent of tomorrow: %v", got, err)
		}
		expire := func(at parley.Time) {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Expire(ctx, at)
				return err
			})
		}
		expire(tomorrow)
		spent(100) // yesterday's count may still be corrected
		expire(tomorrow.Add(48 * time.Hour))
		spent(0)
	}, store.Rules{PublicBudget: 100})
}

// The account gets one warning a day, before the budget is used up.
func TestPublicBudgetIsWarnedOf(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, parley.USD)
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.SetWebhookURL(ctx, u.ID, "https://hooks.example.com")
		})
		for i, want := range []int{0, 0, 0, 1, 1, 1} {
			reference := fmt.Sprint("message:", i)
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				if i == 4 { // the spending falls, and rises again
					if err := tx.Release(ctx, u.ID, "message:3"); err != nil {
						return err
					}
				}
				return tx.ReservePublic(ctx, u.ID, reference, map[bool]parley.Money{true: 0, false: 20}[i == 5],
					parley.Now().Add(time.Hour))
			})
			list, total, err := db.Deliveries(t.Context(), u.ID, parley.EventPublicBudgetLow, "",
				store.Page{Number: 1, Size: 10})
			if err != nil || total != want {
				t.Fatalf("after %d: %d warnings, want %d: %v", i+1, total, want, err)
			}
			if want == 1 {
				d, err := db.Delivery(t.Context(), u.ID, list[0].ID)
				if err != nil || !containsAll(d.Payload, `"event":"public_budget.low"`, `"spent":0.00008`,
					`"budget":0.0001`) {
					t.Errorf("%s: %v", d.Payload, err)
				}
			}
		}
	}, store.Rules{PublicBudget: 100})
}

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
