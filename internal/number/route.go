package number

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

// SetRoute says who takes a number's calls, and whose are turned away; nil: its assistant takes all of them. A caller
// id takes no calls.
func (d *Pool) SetRoute(ctx context.Context, userID, id int64, r *parley.NumberRoute) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return setRoute(ctx, tx, userID, id, r) })
}

func setRoute(ctx context.Context, tx *store.Tx, userID, id int64, r *parley.NumberRoute) error {
	if r != nil {
		wrong := r.Tidy()
		if err := wrong.Err(); err != nil {
			return err
		}
	}
	n, err := tx.NumberForUpdate(ctx, userID, id)
	if err != nil {
		return err
	}
	if n.Type == parley.NumberCallerID && r != nil {
		return parley.Errorf(parley.Conflict, "A caller ID is only shown on outgoing calls: it can't receive calls.")
	}
	if r != nil && r.OtherwiseAssistantID != nil {
		a, err := tx.Assistant(ctx, userID, *r.OtherwiseAssistantID)
		if store.IsNotFound(err) || err == nil && a.Type != "inbound" {
			return parley.Fields{{Name: "otherwise_assistant_id",
				Messages: []string{"Choose one of your inbound assistants."}}}.Err()
		}
		if err != nil {
			return err
		}
	}
	if r != nil && r.Timezone == "" {
		u, err := tx.User(ctx, userID)
		if err != nil {
			return err
		}
		r.Timezone = u.Timezone
	}
	return tx.SaveRoute(ctx, userID, id, r)
}

// Change names a number, sets its route unless r is nil, and does what else belongs to the change unless that is nil: all
// of it or nothing.
func (d *Pool) Change(ctx context.Context, userID, id int64, nickname *string, r *parley.NumberRoute,
	also func(context.Context, *store.Tx) error) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := rename(ctx, tx, userID, id, nickname); err != nil {
			return err
		}
		if r != nil {
			if err := setRoute(ctx, tx, userID, id, r); err != nil {
				return err
			}
		}
		if also == nil {
			return nil
		}
		return also(ctx, tx)
	})
}
