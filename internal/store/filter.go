package store

import (
	"context"

	"parley/internal/parley"
)

const filterNotFound = "Filter not found"

// SavedFilters are the user's saved filters by name; of one page unless it is "".
func (q Query) SavedFilters(ctx context.Context, userID int64, page string) ([]parley.SavedFilter, error) {
	list := []parley.SavedFilter{}
	s := q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("page", "name")
	only(s, "page", page)
	return list, s.Scan(ctx)
}

// SavedFilter is one of the user's saved filters.
func (q Query) SavedFilter(ctx context.Context, userID, id int64) (*parley.SavedFilter, error) {
	f := new(parley.SavedFilter)
	return f, notFound(q.q.NewSelect().Model(f).Where("id = ? AND user_id = ?", id, userID).Scan(ctx), filterNotFound)
}

// CreateFilter stores a new filter.
func (tx *Tx) CreateFilter(ctx context.Context, userID int64, f *parley.SavedFilter) error {
	if err := tx.room(ctx, userID, filterLimit, 1); err != nil {
		return err
	}
	f.ID, f.UserID, f.CreatedAt = 0, userID, parley.Now()
	_, err := tx.q.NewInsert().Model(f).Exec(ctx)
	return tx.note(userID, parley.AuditCreated, parley.AuditFilter, f.ID, f, filterTaken(err))
}

// SaveFilter changes a filter.
func (tx *Tx) SaveFilter(ctx context.Context, userID int64, f *parley.SavedFilter) error {
	res, err := tx.q.NewRaw("UPDATE saved_filters SET page = ?, name = ?, query = ? WHERE id = ? AND user_id = ?", f.Page, f.Name, f.Query,
		f.ID, userID).Exec(ctx)
	if err != nil {
		return filterTaken(err)
	}
	return tx.changed(userID, parley.AuditFilter, f.ID, f.Name, one(res, nil, filterNotFound), "page", "name", "query")
}

func filterTaken(err error) error {
	if violates(err, "saved_filters.user_id, saved_filters.page, saved_filters.name", "saved_filters_name") {
		return parley.Fields{{Name: "name", Messages: []string{"You already have a filter with this name."}}}.Err()
	}
	return err
}

// DeleteFilter removes a filter.
func (tx *Tx) DeleteFilter(ctx context.Context, userID, id int64) error {
	return tx.drop(ctx, userID, parley.AuditFilter, id, filterNotFound,
		"DELETE FROM saved_filters WHERE id = ? AND user_id = ? RETURNING name", id, userID)
}
