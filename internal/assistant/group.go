package assistant

import (
	"context"
	"reflect"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// CreateGroup makes a folder or a label from the fields of a request body.
func (d *Studio) CreateGroup(ctx context.Context, userID int64, kind parley.GroupKind, body map[string]any) (*parley.Group, error) {
	g := &parley.Group{}
	form.Defaults(g)
	if err := form.Bind(body, g, true).Err(); err != nil {
		return nil, err
	}
	g.Kind = kind
	return g, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateGroup(ctx, userID, g) })
}

// ChangeGroup changes the fields of a folder or a label that body names.
func (d *Studio) ChangeGroup(ctx context.Context, userID int64, kind parley.GroupKind, id int64,
	body map[string]any) (g *parley.Group, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if g, err = tx.GroupForUpdate(ctx, userID, kind, id); err != nil {
			return err
		}
		old := *g
		if err := form.Bind(body, g, false).Err(); err != nil || reflect.DeepEqual(old, *g) {
			return err
		}
		return tx.SaveGroup(ctx, userID, g)
	})
	return g, err
}

// DeleteGroup removes a folder or a label; its assistants stay.
func (d *Studio) DeleteGroup(ctx context.Context, userID int64, kind parley.GroupKind, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteGroup(ctx, userID, kind, id) })
}
