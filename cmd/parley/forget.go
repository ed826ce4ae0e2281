package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// sweep removes what is past its time, every ten minutes.
func (h *server) sweep(ctx context.Context) error {
	began := time.Now()
	crash.Every(ctx, 10*time.Minute, "remove what has expired", func(ctx context.Context) (err error) {
		// else nodes of a former version may still run, and can't read what is sealed
		if h.db.SQLite() || time.Since(began) > time.Hour {
			if err = sealVariables(ctx, h.db); err != nil {
				err = fmt.Errorf("encrypt the variables of assistants: %w", err)
			}
		}
		err = errors.Join(err, h.forget(ctx, h.db))
		if old := h.forgetOldCalls(ctx, h.calls); old != nil {
			err = errors.Join(err, fmt.Errorf("remove old calls: %w", old))
		}
		return err
	})
	return nil
}

// sealVariables encrypts what a former version stored in plain text, a few rows at a time.
func sealVariables(ctx context.Context, db *store.DB) error {
	const few = 100
	for {
		var n int
		err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.SealVariables(ctx, few)
			return err
		})
		if err != nil || n < few {
			return err
		}
	}
}

// forget removes what is past its time now.
func (s *Settings) forget(ctx context.Context, db *store.DB) error {
	now := parley.Now()
	steps := []func(context.Context, *store.Tx) (bool, error){
		func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.Expire(ctx, now) },
		func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ShareScripts(ctx) },
		func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.CountStored(ctx, now) },
	}
	if s.KeepConversations > 0 {
		before := now.Add(-time.Duration(s.KeepConversations) * 24 * time.Hour)
		steps = append(steps,
			func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ForgetConversations(ctx, before) },
			func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ForgetSMS(ctx, before) })
	}
	if s.KeepAudit > 0 {
		before := now.Add(-time.Duration(s.KeepAudit) * 24 * time.Hour)
		steps = append(steps, func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ForgetAudit(ctx, before) })
	}
	for _, step := range steps {
		if err := db.InSteps(ctx, step); err != nil {
			return err
		}
	}
	if err := forgetAssistants(ctx, db); err != nil {
		return err
	}
	return event.Forget(ctx, db)
}

// forgetAssistants removes deleted assistants of which nothing is left, a few at a time.
func forgetAssistants(ctx context.Context, db *store.DB) error {
	const few = 20
	for {
		ids, err := db.ForgottenAssistants(ctx, few)
		if err == nil && len(ids) > 0 {
			err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.RemoveAssistants(ctx, ids) })
		}
		if err != nil {
			return fmt.Errorf("remove deleted assistants: %w", err)
		}
		if len(ids) < few {
			return nil
		}
	}
}
