package store

import (
	"context"

	"parley/internal/parley"
)

const alertNotFound = "Alert not found"

// Alert is one of the user's alerts.
func (q Query) Alert(ctx context.Context, userID, id int64) (*parley.Alert, error) {
	return q.alert(ctx, userID, id, false)
}

// AlertForUpdate is Alert, kept from others until the transaction ends.
func (tx *Tx) AlertForUpdate(ctx context.Context, userID, id int64) (*parley.Alert, error) {
	a, err := tx.alert(ctx, userID, id, true)
	return a, tx.saw(parley.AuditAlert, id, a, err)
}

func (q Query) alert(ctx context.Context, userID, id int64, lock bool) (*parley.Alert, error) {
	a := new(parley.Alert)
	s := q.q.NewSelect().Model(a).Where("id = ? AND user_id = ?", id, userID)
	if lock {
		s = q.locked(s)
	}
	return a, notFound(s.Scan(ctx), alertNotFound)
}

// Alerts are all the user's alerts, newest first.
func (q Query) Alerts(ctx context.Context, userID int64) ([]parley.Alert, error) {
	list := []parley.Alert{}
	return list, q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("id DESC").Scan(ctx)
}

// CreateAlert stores a new alert.
func (tx *Tx) CreateAlert(ctx context.Context, userID int64, a *parley.Alert) error {
	if err := tx.LockUser(ctx, userID); err != nil {
		return err
	}
	var n int
	if err := tx.q.NewRaw("SELECT count(*) FROM alerts WHERE user_id = ?", userID).Scan(ctx, &n); err != nil {
		return err
	}
	if n >= parley.MaxAlerts {
		return parley.Errorf(parley.Forbidden, "An account can have %d alerts. Delete what you no longer need.", parley.MaxAlerts)
	}
	a.ID, a.UserID, a.CreatedAt = 0, userID, parley.Now()
	a.UpdatedAt = a.CreatedAt
	_, err := tx.q.NewInsert().Model(a).Exec(ctx)
	return tx.note(userID, parley.AuditCreated, parley.AuditAlert, a.ID, a, err)
}

// SaveAlert stores a changed alert.
func (tx *Tx) SaveAlert(ctx context.Context, userID int64, a *parley.Alert) error {
	res, err := tx.q.NewUpdate().Model(a).ExcludeColumn("id", "user_id", "created_at").
		Where("id = ? AND user_id = ?", a.ID, userID).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, parley.AuditAlert, a.ID, a, one(res, err, alertNotFound))
}

// DeleteAlert removes an alert.
func (tx *Tx) DeleteAlert(ctx context.Context, userID, id int64) error {
	return tx.drop(ctx, userID, parley.AuditAlert, id, alertNotFound,
		"DELETE FROM alerts WHERE id = ? AND user_id = ? RETURNING name", id, userID)
}

// ClaimAlerts takes at most n alerts that are due, longest due first: nobody else looks at them until then.
func (tx *Tx) ClaimAlerts(ctx context.Context, n int, now, until parley.Time) (list []parley.Alert, err error) {
	err = tx.q.NewRaw(`UPDATE alerts SET due_at = ? WHERE id IN (SELECT id FROM alerts WHERE due_at > 0 AND due_at <= ?
		ORDER BY due_at LIMIT ?`+tx.skipLocked()+`) RETURNING *`, until, now, n).Scan(ctx, &list)
	return list, err
}

// LastCall is when a user's last call began, tests aside; of one assistant and type unless they are zero. 0: there is
// none.
func (q Query) LastCall(ctx context.Context, userID, assistantID int64, kind parley.CallType) (parley.Time, error) {
	var at []parley.Time
	s := q.q.NewSelect().TableExpr("calls").Column("created_at").Where("user_id = ? AND NOT test", userID)
	only(s, "assistant_id", assistantID)
	only(s, "type", kind)
	if err := s.Order("id DESC").Limit(1).Scan(ctx, &at); err != nil || len(at) == 0 {
		return 0, err
	}
	return at[0], nil
}
