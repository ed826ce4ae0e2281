// Package filter keeps filters of lists that accounts have saved under names.
package filter

import (
	"context"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// Save stores a filter of a user's. The error names every field that fails.
func Save(ctx context.Context, db *store.DB, userID int64, body map[string]any) (*parley.SavedFilter, error) {
	f := &parley.SavedFilter{}
	if err := form.Bind(body, f, true).Err(); err != nil {
		return nil, err
	}
	return f, db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateFilter(ctx, userID, f) })
}

// Change lays a body over a filter of a user's and stores it. The error names every field that fails.
func Change(ctx context.Context, db *store.DB, userID, id int64, body map[string]any) (f *parley.SavedFilter, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if f, err = tx.SavedFilter(ctx, userID, id); err != nil {
			return err
		}
		if err := form.Bind(body, f, false).Err(); err != nil {
			return err
		}
		return tx.SaveFilter(ctx, userID, f)
	})
	return f, err
}

// Delete removes a filter.
func Delete(ctx context.Context, db *store.DB, userID, id int64) error {
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteFilter(ctx, userID, id) })
}
