// Package alert keeps the alerts of accounts, looks at the figures that they watch, and tells who wants to know.
//
// Each alert is looked at once a minute by one of the processes: the one that claims its row. The figures are read
// before the transaction that notes them; that transaction locks the row, judges it (parley.Alert.Judge), and writes
// the state together with the rows of what is to be told. So nothing is told twice, and nothing is lost.
package alert

import (
	"context"
	"reflect"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// Create makes an alert of a user's from the fields of a request body. The error names every field that fails.
func Create(ctx context.Context, db *store.DB, userID int64, body map[string]any) (a *parley.Alert, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		a = &parley.Alert{}
		form.Defaults(a)
		if err := lay(ctx, tx, userID, body, a, true); err != nil {
			return err
		}
		a.DueAt = due(a)
		return tx.CreateAlert(ctx, userID, a)
	})
	return a, err
}

// due is when an alert that was just changed is looked at.
func due(a *parley.Alert) parley.Time {
	if !a.Active {
		return 0
	}
	return parley.Now()
}

// Change changes the fields that body names; the whole must be valid afterwards. A body that changes nothing writes
// nothing. An alert that is raised is judged again by its new rule; one that is switched off is forgotten.
func Change(ctx context.Context, db *store.DB, userID, id int64, body map[string]any) (a *parley.Alert, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if a, err = tx.AlertForUpdate(ctx, userID, id); err != nil {
			return err
		}
		old := *a
		if err := lay(ctx, tx, userID, body, a, false); err != nil || reflect.DeepEqual(&old, a) {
			return err
		}
		a.UpdatedAt, a.DueAt = parley.Now(), due(a)
		if a.Kind != old.Kind { // a percentage is no amount
			a.Value, a.Calls, a.CheckedAt = nil, 0, 0
		}
		if !a.Active {
			a.RaisedAt, a.Value, a.Calls = 0, nil, 0
		}
		return tx.SaveAlert(ctx, userID, a)
	})
	return a, err
}

// lay lays a body over an alert.
func lay(ctx context.Context, tx *store.Tx, userID int64, body map[string]any, a *parley.Alert, whole bool) error {
	before := a.AssistantID
	fields := form.Bind(body, a, whole)
	a.Check(&fields)
	if a.AssistantID != nil && !fields.Has("assistant_id") && (before == nil || *before != *a.AssistantID) {
		if _, err := tx.Assistant(ctx, userID, *a.AssistantID); store.IsNotFound(err) {
			fields.AddText("assistant_id", "The selected assistant_id is invalid.")
		} else if err != nil {
			return err
		}
	}
	return fields.Err()
}

// Delete removes an alert.
func Delete(ctx context.Context, db *store.DB, userID, id int64) error {
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAlert(ctx, userID, id) })
}
