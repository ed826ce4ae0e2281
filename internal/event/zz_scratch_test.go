package event

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestScratchBacklog(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		for b := range 20 {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				for range 1000 {
					if err := tx.EnqueueDelivery(ctx, h.user.ID, parley.BalanceLow{}.Delivery("http://127.0.0.1:1/x")); err != nil {
						return err
					}
				}
				_ = b
				return nil
			})
		}
		other := storetest.User(t, h.db, 0)
		h.send(other.ID, "http://127.0.0.1:1/y")
		began := time.Now()
		for range 100 {
			l, err := h.db.DueLanes(t.Context(), parley.Now())
			if err != nil || len(l) != 2 {
				t.Fatal(l, err)
			}
		}
		t.Log("due lanes", time.Since(began)/100)
		lanes, _ := h.db.DueLanes(t.Context(), parley.Now())
		began = time.Now()
		for range 50 {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.ClaimDeliveries(ctx, lanes[0], 8, parley.Now(), parley.Now().Add(time.Minute))
				return err
			})
		}
		t.Log("claim", time.Since(began)/50)
	})
}

func TestScratchDelay(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		h.s.now = time.Now
		h.run(h.s)
		dead, fine := h.hanging(), h.endpoint(200)
		others := []*parley.User{storetest.User(t, h.db, 0), storetest.User(t, h.db, 0), storetest.User(t, h.db, 0)}
		run := func(hang bool) {
			var wg sync.WaitGroup
			var list []*parley.Delivery
			tick := time.NewTicker(10 * time.Millisecond)
			for i := range 600 {
				<-tick.C
				url := fine.URL
				if hang {
					url = dead.URL
				}
				wg.Go(func() { h.send(h.user.ID, url) })
				if i%2 == 0 {
					list = append(list, h.send(others[i%3].ID, fine.URL))
				}
			}
			wg.Wait()
			time.Sleep(time.Second)
			var delays []time.Duration
			for _, d := range list {
				delays = append(delays, h.log(d)[0].At.Sub(d.CreatedAt))
			}
			slices.Sort(delays)
			fmt.Println(hang, "p50", delays[len(delays)/2], "p99", delays[len(delays)*99/100], "max", delays[len(delays)-1])
		}
		for range 5 {
			run(false)
			run(true)
		}
	})
}
