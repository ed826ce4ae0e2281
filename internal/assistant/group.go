package assistant

import (
	"context"
	"reflect"
	"slices"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// CreateGroup makes a folder or a label from the fields of a request body.
func (d *Studio) CreateGroup(ctx context.Context, userID int64, kind parley.GroupKind, body map[string]any) (*parley.Group, error) {
	g := &parley.Group{}
	form.Defaults(g)
	fields := form.Bind(body, g, true)
	g.Kind = kind
	if err := groupFields(ctx, d.DB.Query, userID, g, fields); err != nil {
		return nil, err
	}
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
		err := groupFields(ctx, tx.Query, userID, g, form.Bind(body, g, false))
		if err != nil || reflect.DeepEqual(old, *g) {
			return err
		}
		return tx.SaveGroup(ctx, userID, g)
	})
	return g, err
}

// groupFields returns the error of the fields that fail. Where any does, a name that is taken is among them; of a group whose fields are
// right the database says so.
func groupFields(ctx context.Context, q store.Query, userID int64, g *parley.Group, fields parley.Fields) error {
	if len(fields) == 0 || fields.Has("name") {
		return fields.Err()
	}
	others, err := q.GroupsByName(ctx, userID, g.Kind)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(o parley.Group) bool { return o.Name == g.Name && o.ID != g.ID }) {
		fields.AddText("name", "The name has already been taken.")
	}
	return fields.Err()
}

// DeleteGroup removes a folder or a label; its assistants stay.
func (d *Studio) DeleteGroup(ctx context.Context, userID int64, kind parley.GroupKind, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteGroup(ctx, userID, kind, id) })
}
