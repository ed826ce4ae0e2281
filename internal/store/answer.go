package store

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// FirstAnswer is what a request with an Idempotency-Key was answered; Status 0 while it runs.
type FirstAnswer struct {
	bun.BaseModel `bun:"idempotency_keys"`

	UserID    int64
	Key       string
	Request   []byte // a hash of what was asked
	Status    int
	Answer    []byte
	Touched   bool // something was committed under the key
	CreatedAt parley.Time
}

type underKey struct{}

// claim is the key that a context's writes happen under.
type claim struct {
	of      *FirstAnswer
	touched atomic.Bool
}

// Under has the first write that is committed with the context say in the same transaction that the key's request
// took effect.
func (a *FirstAnswer) Under(ctx context.Context) context.Context {
	return context.WithValue(ctx, underKey{}, &claim{of: a})
}

// marked is a write that marks the key that its context is under, where there is one.
func marked(ctx context.Context, fn func(context.Context, *Tx) error) func(context.Context, *Tx) error {
	c, _ := ctx.Value(underKey{}).(*claim)
	if c == nil || c.touched.Load() {
		return fn
	}
	return func(ctx context.Context, tx *Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		_, err := tx.q.NewRaw("UPDATE idempotency_keys SET touched = TRUE WHERE user_id = ? AND key = ?",
			c.of.UserID, c.of.Key).Exec(ctx)
		tx.AfterCommit(func() { c.touched.Store(true) })
		return err
	}
}

// answerFor is how long a first answer is given again.
const answerFor = 24 * time.Hour

// ClaimAnswer takes the key for a request, or returns the request that has it.
func (tx *Tx) ClaimAnswer(ctx context.Context, a *FirstAnswer) (*FirstAnswer, error) {
	_, err := tx.q.NewDelete().Model(a).Where("user_id = ? AND key = ? AND created_at < ?", a.UserID, a.Key,
		a.CreatedAt.Add(-answerFor)).Exec(ctx)
	if err != nil {
		return nil, err
	}
	claimed, err := some(tx.q.NewInsert().Model(a).On("CONFLICT DO NOTHING").Exec(ctx))
	if err != nil || claimed {
		return nil, err
	}
	old := new(FirstAnswer)
	err = tx.q.NewSelect().Model(old).Where("user_id = ? AND key = ?", a.UserID, a.Key).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) { // freed in between
		return nil, parley.Errorf(parley.Conflict, "A request with this Idempotency-Key has just failed: send it again.")
	}
	return old, err
}

// KeepAnswer stores the answer of the request that has the key.
func (tx *Tx) KeepAnswer(ctx context.Context, a *FirstAnswer) error {
	_, err := tx.q.NewUpdate().Model(a).Column("status", "answer").Where("user_id = ? AND key = ?", a.UserID,
		a.Key).Exec(ctx)
	return err
}

// FreeAnswer gives the key back if nothing was committed under it, or if all of that is undone; false when it stays
// taken. A commit whose answer was lost counts: this waits for it.
func (tx *Tx) FreeAnswer(ctx context.Context, a *FirstAnswer, undone bool) (bool, error) {
	return some(tx.q.NewDelete().Model((*FirstAnswer)(nil)).Where("user_id = ? AND key = ? AND status = 0",
		a.UserID, a.Key).
		Where("NOT touched OR ?", undone).Exec(ctx))
}
