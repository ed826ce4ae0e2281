package store_test

import (
	"context"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestAssistantsNamed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, parley.USD), storetest.User(t, db, parley.USD)
		var ids []int64
		for _, owner := range []int64{u.ID, u.ID, other.ID, u.ID, u.ID} {
			a := spoken(t, db, owner)
			old := *a
			a.Name = "ÄRZTE am Markt"
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveAssistant(ctx, owner, &old, a) })
			if owner == u.ID {
				ids = append(ids, a.ID)
			}
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistant(ctx, u.ID, ids[1]) })
		match := func(name string) bool { return strings.Contains(strings.ToLower(name), "ärzte") }
		for page, want := range [][]int64{{ids[0], ids[2]}, {ids[3]}, {}} {
			list, total, err := db.AssistantsNamed(t.Context(), u.ID, store.AssistantFilter{}, match, store.Page{Number: page + 1, Size: 2})
			if err != nil || total != 3 || len(list) != len(want) {
				t.Fatalf("page %d: %d of %d, %v", page+1, len(list), total, err)
			}
			for i := range want {
				if list[i].ID != want[i] || list[i].Name != "ÄRZTE am Markt" {
					t.Errorf("page %d: %d is %+v", page+1, i, list[i])
				}
			}
		}
		if list, total, err := db.AssistantsNamed(t.Context(), u.ID, store.AssistantFilter{}, func(string) bool { return false },
			store.Page{Number: 1, Size: 2}); err != nil || total != 0 || len(list) != 0 {
			t.Errorf("nobody's name: %d of %d, %v", len(list), total, err)
		}
	})
}

// A UUID names an assistant only for its own user.
func TestAssistantByUUIDOfItsUser(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, own, other := t.Context(), storetest.User(t, db, 0), storetest.User(t, db, 0)
		a := &parley.Assistant{UserID: own.ID, Name: "Desk"}
		if err := db.Write(ctx, func(ctx context.Context,
			tx *store.Tx) error {
			return tx.CreateAssistant(ctx, own.ID, a)
		}); err != nil {
			t.Fatal(err)
		}
		if id, err := db.AssistantID(ctx, own.ID, a.UUID, false); err != nil || id != a.ID {
			t.Errorf("its user's: %d, %v", id, err)
		}
		if id, err := db.AssistantID(ctx, other.ID, a.UUID, true); err != nil || id != 0 {
			t.Errorf("another user's: %d, %v", id, err)
		}
	})
}
