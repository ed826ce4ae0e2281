package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley"
)

// Credential is the key with that id and its owner, in one query: it is asked on every request.
func (q Query) Credential(ctx context.Context, id int64) (*parley.Key, *parley.User, error) {
	k, u := new(parley.Key), new(parley.User)
	err := q.q.NewRaw(`SELECT k.id, k.user_id, k.kind, k.name, k.hash, k.last_used_at, k.expires_at, k.created_at,
		u.name, u.email, u.timezone, u.plan, u.balance, u.webhook_url, u.created_at, u.disabled_at
		FROM keys k JOIN users u ON u.id = k.user_id WHERE k.id = ?`, id).Scan(ctx,
		&k.ID, &k.UserID, &k.Kind, &k.Name, &k.Hash, &k.LastUsedAt, &k.ExpiresAt, &k.CreatedAt,
		&u.Name, &u.Email, &u.Timezone, &u.Plan, &u.Balance, &u.WebhookURL, &u.CreatedAt, &u.DisabledAt)
	u.ID = k.UserID
	return k, u, notFound(err, "Unauthenticated.")
}

// Keys are the user's API keys, newest first.
func (q Query) Keys(ctx context.Context, userID int64) ([]parley.Key, error) {
	list := []parley.Key{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ? AND kind = ?", userID, parley.APIKey).Order("id DESC").Scan(ctx)
	return list, err
}

// CreateKey stores a credential.
func (tx *Tx) CreateKey(ctx context.Context, k *parley.Key) error {
	k.CreatedAt = parley.Now()
	_, err := tx.q.NewInsert().Model(k).Exec(ctx)
	return err
}

// DeleteKey revokes a credential of that kind; it is refused from the next request on.
func (tx *Tx) DeleteKey(ctx context.Context, userID int64, kind parley.KeyKind, id int64) error {
	res, err := tx.q.NewDelete().Model((*parley.Key)(nil)).Where("id = ? AND user_id = ? AND kind = ?", id, userID, kind).Exec(ctx)
	return one(res, err, "API key not found.")
}

// DeleteSessions revokes all the user's sessions: after a change of password, or when the account is disabled.
func (tx *Tx) DeleteSessions(ctx context.Context, userID int64) error {
	_, err := tx.q.NewDelete().Model((*parley.Key)(nil)).Where("user_id = ?", userID).
		Where("kind IN (?)", bun.List([]parley.KeyKind{parley.Session, parley.Console})).Exec(ctx)
	return err
}

// KeyUsed notes when a credential was last used.
func (tx *Tx) KeyUsed(ctx context.Context, id int64, at parley.Time) error {
	_, err := tx.q.NewUpdate().Model((*parley.Key)(nil)).Set("last_used_at = ?", at).Where("id = ?", id).Exec(ctx)
	return err
}

// Expire removes what is past its time: sessions, first answers, lapsed reservations.
func (tx *Tx) Expire(ctx context.Context, now parley.Time) error {
	if _, err := tx.q.NewDelete().Model((*parley.Key)(nil)).Where("expires_at > 0 AND expires_at < ?", now).Exec(ctx); err != nil {
		return err
	}
	if _, err := tx.q.NewDelete().Table("idempotency_keys").Where("created_at < ?", now.Add(-answerFor)).Exec(ctx); err != nil {
		return err
	}
	_, err := tx.q.NewDelete().Table("reservations").Where("expires_at < ?", now).Exec(ctx)
	return err
}
