package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Money is charged, refunded, reserved, settled, released, retried and interrupted in the middle, all at once. The
// balance is always the sum of the ledger and never below zero, and no charge takes what is free below zero.
func TestMoneyHoldsUnderAnyInterleaving(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const workers, steps = 8, 60
		u := storetest.User(t, db, 20*parley.USD)
		crash := errors.New("crash")
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(7, uint64(w)))
				for range steps {
					ref := fmt.Sprintf("ref %d", r.IntN(120)) // shared: goroutines repeat a movement
					amount := parley.Money(r.Int64N(int64(2 * parley.USD)))
					op, torn := r.IntN(5), r.IntN(4) == 0
					err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
						switch op {
						case 0:
							_, err = tx.Post(ctx, u.ID,
								&parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -amount, Reference: ref})
						case 1:
							_, err = tx.Post(ctx, u.ID,
								&parley.LedgerEntry{Kind: parley.Refund, Amount: amount / 2, Reference: ref})
						case 2:
							err = tx.Reserve(ctx, u.ID, ref, amount, parley.Now().Add(time.Hour))
						case 3:
							_, err = tx.Settle(ctx, u.ID,
								&parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -amount, Reference: ref})
						case 4:
							err = tx.Release(ctx, u.ID, ref)
						}
						if err == nil && torn {
							return crash
						}
						return err
					})
					if err != nil && err != crash && err != error(store.Insufficient) {
						t.Errorf("operation %d: %v", op, err)
					}
				}
			})
		}
		wg.Wait()
		got, err := db.User(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		list, total, err := db.Ledger(t.Context(), u.ID, 0, 0, store.Page{Number: 1, Size: 10_000})
		if err != nil || total != len(list) {
			t.Fatal(total, err)
		}
		var sum parley.Money
		seen := map[string]bool{}
		for i := len(list) - 1; i >= 0; i-- { // oldest first
			e := list[i]
			sum += e.Amount
			if e.BalanceAfter != sum || sum < 0 {
				t.Fatalf("after entry %d the sum is %v and balance_after %v", e.ID, sum, e.BalanceAfter)
			}
			if key := string(e.Kind) + e.Reference; seen[key] {
				t.Errorf("%s was posted twice", key)
			} else {
				seen[key] = true
			}
		}
		if sum != got.Balance {
			t.Errorf("the ledger sums up to %v, the balance is %v", sum, got.Balance)
		}
		if len(list) < 20 {
			t.Errorf("only %d movements: the test shows nothing", len(list))
		}
	})
}

// Money that is set aside can't be spent on anything else until it expires. The clock is the test's own.
func TestReservationsLapse(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Options(t, engine)
			synctest.Test(t, func(t *testing.T) {
				db := storetest.Open(t, o)
				u := storetest.User(t, db, 1000)
				write(t, db, func(ctx context.Context, tx *store.Tx) error {
					return tx.Reserve(ctx, u.ID, "a number", 900, parley.Now().Add(time.Minute))
				})
				spend := func(reference string) error {
					return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
						_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -200,
							Reference: reference})
						return err
					})
				}
				if err := spend("early"); !errors.Is(err, store.Insufficient) {
					t.Errorf("what was set aside was spent: %v", err)
				}
				time.Sleep(59 * time.Second)
				if err := spend("a second before"); !errors.Is(err, store.Insufficient) {
					t.Errorf("what was set aside was spent a second early: %v", err)
				}
				time.Sleep(2 * time.Second)
				if err := spend("late"); err != nil {
					t.Errorf("what was set aside is held for ever: %v", err)
				}
			})
		})
	}
}
