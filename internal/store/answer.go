package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"parley"
)

// FirstAnswer is what a request with an Idempotency-Key was answered; Status 0 while it runs.
type FirstAnswer struct {
	bun.BaseModel `bun:"idempotency_keys"`

	UserID    int64
	Key       string
	Request   []byte // a hash of what was asked
	Status    int
	Answer    []byte
	CreatedAt parley.Time
}

// answerFor is how long a first answer is given again.
const answerFor = 24 * time.Hour

// ClaimAnswer takes the key for a request, or returns the request that has it.
func (tx *Tx) ClaimAnswer(ctx context.Context, a *FirstAnswer) (*FirstAnswer, error) {
	_, err := tx.q.NewDelete().Model(a).Where("user_id = ? AND key = ? AND created_at < ?", a.UserID, a.Key, a.CreatedAt.Add(-answerFor)).Exec(ctx)
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
	_, err := tx.q.NewUpdate().Model(a).Column("status", "answer").Where("user_id = ? AND key = ?", a.UserID, a.Key).Exec(ctx)
	return err
}

// FreeAnswer gives the key back: the request changed nothing.
func (tx *Tx) FreeAnswer(ctx context.Context, a *FirstAnswer) error {
	_, err := tx.q.NewDelete().Model((*FirstAnswer)(nil)).Where("user_id = ? AND key = ? AND status = 0", a.UserID, a.Key).Exec(ctx)
	return err
}
