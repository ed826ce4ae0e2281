package store_test

import (
	"context"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Only its own user sees a call's deliveries, newest first.
func TestCallDeliveries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		owner, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		call, another := int64(7), int64(8)
		var ids []int64
		for _, of := range []*int64{&call, &another, nil, &call} {
			d := parley.NewDelivery(parley.EventCallCompleted, "https://shop.example.com/", map[string]any{})
			d.CallID = of
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueDelivery(ctx, owner.ID, d) })
			ids = append(ids, d.ID)
		}
		got, err := db.CallDeliveries(t.Context(), owner.ID, call)
		if err != nil || len(got) != 2 || got[0].ID != ids[3] || got[1].ID != ids[0] || got[0].Payload != "" {
			t.Errorf("%+v %v", got, err)
		}
		if got, err := db.CallDeliveries(t.Context(), other.ID, call); err != nil || len(got) != 0 {
			t.Errorf("another user sees %+v, %v", got, err)
		}
	})
}
