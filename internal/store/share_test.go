package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/uptrace/bun"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// way is a link that is always whole.
type way struct{ writes int }

func (*way) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }
func (*way) AfterQuery(context.Context, *bun.QueryEvent)                        {}
func (*way) Clock() parley.Time                                                 { return 77 }
func (w *way) Write(ctx context.Context, commit func(context.Context) error) error {
	w.writes++
	return commit(ctx)
}

// A shared SQLite is written through the link, has its clock, and is closed for all by whoever closes it, once. PostgreSQL is not shared.
func TestShare(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if !db.SQLite() {
			defer func() {
				if recover() == nil {
					t.Error("a PostgreSQL is shared")
				}
			}()
			db.Share(new(way))
			return
		}
		w := new(way)
		other := db.Share(w)
		u := storetest.User(t, other, 0)
		if _, err := db.User(t.Context(), u.ID); err != nil || w.writes == 0 {
			t.Errorf("%d writes through the link: %v", w.writes, err)
		}
		if now, err := other.Clock(t.Context()); now != 77 || err != nil || other.Alone() || !db.Alone() {
			t.Errorf("the clock says %d: %v; alone: %v, %v", now, err, other.Alone(), db.Alone())
		}
		if err := errors.Join(other.Close(), db.Close(), other.Close()); err != nil {
			t.Error(err)
		}
		if err := db.Write(t.Context(), func(context.Context, *store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
			t.Errorf("written after it was closed: %v", err)
		}
	})
}
