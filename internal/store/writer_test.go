package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Who writes is known to whoever asks the database, until they have sent it or their time is over.
func TestWriters(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, stranger := storetest.User(t, db, 0), storetest.User(t, db, 0)
		c := talk(t, db, spoken(t, db, u.ID), "+12025550123", 1)
		writes := func(person int64, name string, lasts time.Duration) {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.Writes(ctx, c.ID, parley.Person{ID: person, Name: name}, lasts)
			})
		}
		writers := func(want string, besides int64) {
			t.Helper()
			if names, err := db.Writers(t.Context(), u.ID, c.ID, besides); err != nil || fmt.Sprint(names) != want {
				t.Errorf("%v write, want %s: %v", names, want, err)
			}
		}
		writes(0, "Owner", time.Minute)
		writes(7, "Mo", time.Minute)
		writes(7, "Mo", time.Minute)
		writers("[Mo Owner]", -1)
		writers("[Owner]", 7)
		if names, err := db.Writers(t.Context(), stranger.ID, c.ID, -1); err != nil || len(names) != 0 {
			t.Errorf("another account sees that %v write: %v", names, err)
		}
		writes(0, "Owner", -time.Second)
		writers("[Mo]", -1)
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.StopsWriting(ctx, c.ID, 7) })
		writers("[]", -1)
	})
}
