package store

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Credential is the key with that id, its account, and the member whose it is (nil: the account's owner's), in one
// query: it is asked on every request.
func (q Query) Credential(ctx context.Context, id int64) (*parley.Key, *parley.User, *parley.Member, error) {
	k, u, m := new(parley.Key), new(parley.User), new(parley.Member)
	err := q.q.NewRaw(`SELECT k.id, k.user_id, k.kind, k.name, k.hash, k.last_used_at, k.expires_at, k.created_at, k.member_id, k.scope, k.grant_id,
		u.name, u.email, u.timezone, u.plan, u.balance, u.webhook_url, u.created_at, u.disabled_at, u.signed_up_at, u.operator, u.email_proven_at, COALESCE(u.country, ''),
		COALESCE(m.id, 0), COALESCE(m.name, ''), COALESCE(m.email, ''), COALESCE(m.role, ''), COALESCE(m.language, ''),
		COALESCE(m.timezone, ''), COALESCE(m.disabled_at, 0), COALESCE(m.email_proven_at, 0)
		FROM keys k JOIN users u ON u.id = k.user_id LEFT JOIN members m ON m.id = k.member_id AND m.user_id = k.user_id
		WHERE k.id = ?`, id).Scan(ctx,
		&k.ID, &k.UserID, &k.Kind, &k.Name, &k.Hash, &k.LastUsedAt, &k.ExpiresAt, &k.CreatedAt, &k.MemberID, &k.Scope, &k.GrantID,
		&u.Name, &u.Email, &u.Timezone, &u.Plan, &u.Balance, &u.WebhookURL, &u.CreatedAt, &u.DisabledAt, &u.SignedUpAt, &u.Operator,
		&u.EmailProvenAt, &u.Country,
		&m.ID, &m.Name, &m.Email, &m.Role, &m.Language, &m.Timezone, &m.DisabledAt, &m.EmailProvenAt)
	u.ID = k.UserID
	if m.UserID = k.UserID; err == nil && k.MemberID == 0 {
		return k, u, nil, nil
	}
	if err == nil && m.ID == 0 { // the member is gone
		err = sql.ErrNoRows
	}
	return k, u, m, notFound(err, "Unauthenticated.")
}

// Keys are the user's API keys, newest first.
func (q Query) Keys(ctx context.Context, userID int64) ([]parley.Key, error) {
	list := []parley.Key{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ? AND kind = ?", userID,
		parley.APIKey).Order("id DESC").Scan(ctx)
	return list, err
}

// KeysNamed are the user's credentials of a kind that have a name and have not expired, newest first.
func (q Query) KeysNamed(ctx context.Context, userID int64, kind parley.KeyKind, name string, now parley.Time) ([]parley.Key, error) {
	list := []parley.Key{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ? AND kind = ? AND name = ? AND expires_at > ?", userID, kind,
		name, now).Order("id DESC").Scan(ctx)
	return list, err
}

// DeleteKeysNamed revokes the user's credentials of a kind that have a name.
func (tx *Tx) DeleteKeysNamed(ctx context.Context, userID int64, kind parley.KeyKind, name string) error {
	_, err := tx.q.NewDelete().Model((*parley.Key)(nil)).Where("user_id = ? AND kind = ? AND name = ?", userID, kind,
		name).Exec(ctx)
	return tx.noteKey(parley.AuditDeleted, &parley.Key{UserID: userID, Kind: kind, Name: name}, err)
}

// CreateKey stores a credential.
func (tx *Tx) CreateKey(ctx context.Context, k *parley.Key) error {
	if k.Kind == parley.APIKey {
		if err := tx.room(ctx, k.UserID, keyLimit, 1); err != nil {
			return err
		}
	}
	if k.Kind != parley.APIKey { // a program that signs in for each of its requests leaves no rows without end
		most := parley.MaxSessions
		if k.MemberID != parley.Owner {
			most = parley.MaxMemberSessions
		}
		_, err := tx.q.NewRaw(`DELETE FROM keys WHERE user_id = ? AND member_id = ? AND kind = ? AND id <= (SELECT id FROM keys
			WHERE user_id = ? AND member_id = ? AND kind = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`, k.UserID, k.MemberID, k.Kind,
			k.UserID, k.MemberID, k.Kind, most-1).Exec(ctx)
		if err != nil {
			return err
		}
	}
	k.CreatedAt = parley.Now()
	_, err := tx.q.NewInsert().Model(k).Exec(ctx)
	return tx.noteKey(parley.AuditCreated, k, err)
}

// noteKey notes a change of a credential. Sessions, and links that confirm addresses, come and go unnoted.
func (tx *Tx) noteKey(action parley.AuditAction, k *parley.Key, err error) error {
	if err != nil {
		return err
	}
	switch k.Kind {
	case parley.Session, parley.Console, parley.HalfSession, parley.ConfirmLink, parley.OAuthAccess:
		return nil
	case parley.APIKey, parley.OAuthCode, parley.OAuthGrant:
		return tx.note(k.UserID, action, parley.AuditKey, k.ID, k, nil)
	case parley.ShareLink: // its name is the assistant's id
		return tx.note(k.UserID, action, parley.AuditShareLink, k.Name, nil, nil)
	}
	return tx.changed(k.UserID, parley.AuditMember, k.MemberID, "", nil, string(k.Kind)+"_link") // a link for a member
}

// DeleteKey revokes a credential of that kind; it is refused from the next request on.
func (tx *Tx) DeleteKey(ctx context.Context, userID int64, kind parley.KeyKind, id int64) error {
	k := &parley.Key{ID: id, UserID: userID, Kind: kind}
	err := tx.q.NewRaw("DELETE FROM keys WHERE id = ? AND user_id = ? AND kind = ? RETURNING name", id, userID, kind).Scan(ctx, &k.Name)
	return tx.noteKey(parley.AuditDeleted, k, notFound(err, "API key not found."))
}

// Grants are what the user let apps do by OAuth, newest first.
func (q Query) Grants(ctx context.Context, userID int64, now parley.Time) ([]parley.Key, error) {
	list := []parley.Key{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ? AND kind = ? AND expires_at > ?", userID, parley.OAuthGrant, now).
		Order("id DESC").Scan(ctx)
	return list, err
}

// SwapKey puts a credential in place of what it was, and ends the access tokens that were made of it; false where it is no longer that.
func (tx *Tx) SwapKey(ctx context.Context, was, is *parley.Key) (bool, error) {
	n, err := count(tx.q.NewRaw(`UPDATE keys SET kind = ?, hash = ?, expires_at = ?, last_used_at = ?
		WHERE id = ? AND user_id = ? AND kind = ? AND hash = ?`, is.Kind, is.Hash, is.ExpiresAt, parley.Now(),
		was.ID, was.UserID, was.Kind, was.Hash).Exec(ctx))
	if err != nil || n == 0 {
		return false, err
	}
	_, err = tx.q.NewRaw("DELETE FROM keys WHERE user_id = ? AND kind = ? AND grant_id = ?", was.UserID, parley.OAuthAccess, was.ID).Exec(ctx)
	return true, err
}

// DeleteGrant ends what an app was granted, or a code that it has not exchanged, with the access tokens that were made of it.
func (tx *Tx) DeleteGrant(ctx context.Context, userID, id int64) error {
	k := &parley.Key{ID: id, UserID: userID, Kind: parley.OAuthGrant}
	err := tx.q.NewRaw("DELETE FROM keys WHERE id = ? AND user_id = ? AND kind IN (?, ?) RETURNING name", id, userID,
		parley.OAuthGrant, parley.OAuthCode).Scan(ctx, &k.Name)
	if err != nil {
		return notFound(err, "Connected app not found.")
	}
	_, err = tx.q.NewRaw("DELETE FROM keys WHERE user_id = ? AND kind = ? AND grant_id = ?", userID, parley.OAuthAccess, id).Exec(ctx)
	return tx.noteKey(parley.AuditDeleted, k, err)
}

// DeleteKeys revokes the user's API keys, all but one (0: all), and what apps were granted, and says how many they were.
func (tx *Tx) DeleteKeys(ctx context.Context, userID, but int64) (n int64, err error) {
	var list []parley.Key
	err = tx.q.NewRaw("DELETE FROM keys WHERE user_id = ? AND kind IN (?) AND id <> ? RETURNING id, user_id, kind, name", userID,
		bun.List([]parley.KeyKind{parley.APIKey, parley.OAuthGrant, parley.OAuthCode, parley.OAuthAccess}), but).Scan(ctx, &list)
	for i := range list {
		if k := &list[i]; k.Kind == parley.APIKey || k.Kind == parley.OAuthGrant {
			n++
			err = tx.noteKey(parley.AuditDeleted, k, err)
		}
	}
	return n, err
}

// DeleteSessions revokes all sessions and links of an account's owner (0) or of one of its members: after a change of password, or
// when they are disabled.
func (tx *Tx) DeleteSessions(ctx context.Context, userID, memberID int64) error {
	return tx.DeleteCredentials(ctx, userID, memberID, parley.Session, parley.Console, parley.HalfSession, parley.ResetLink,
		parley.ConfirmLink)
}

// DeleteCredentials revokes a person's credentials of some kinds.
func (tx *Tx) DeleteCredentials(ctx context.Context, userID, memberID int64, kinds ...parley.KeyKind) error {
	_, err := tx.q.NewDelete().Model((*parley.Key)(nil)).Where("user_id = ? AND member_id = ?", userID, memberID).
		Where("kind IN (?)", bun.List(kinds)).Exec(ctx)
	return err
}

// KeyUsed notes when a credential was last used, and the member whose it is last seen.
func (tx *Tx) KeyUsed(ctx context.Context, k *parley.Key, at parley.Time) error {
	_, err := tx.q.NewUpdate().Model((*parley.Key)(nil)).Set("last_used_at = ?", at).Where("id = ?", k.ID).Exec(ctx)
	if err == nil && k.MemberID != 0 {
		_, err = tx.q.NewUpdate().Model((*parley.Member)(nil)).Set("last_seen_at = ?", at).
			Where("id = ? AND user_id = ?", k.MemberID, k.UserID).Exec(ctx)
	}
	return err
}

// Expire removes what is past its time: sessions, first answers, lapsed reservations, counts of former days. One step
// of it, that says whether there is more.
func (tx *Tx) Expire(ctx context.Context, now parley.Time) (more bool, err error) {
	for statement, before := range map[string]parley.Time{
		"DELETE FROM keys WHERE id IN (SELECT id FROM keys WHERE expires_at > 0 AND expires_at < ? LIMIT ?)": now,
		"DELETE FROM invitations WHERE id IN (SELECT id FROM invitations WHERE expires_at < ? LIMIT ?)":      now,
		"DELETE FROM reservations WHERE id IN (SELECT id FROM reservations WHERE expires_at < ? LIMIT ?)":    now,
		"DELETE FROM idempotency_keys WHERE (user_id, key) IN (SELECT user_id, key FROM idempotency_keys " +
			"WHERE created_at < ? LIMIT ?)": now.Add(-answerFor),
	} {
		n, err := count(tx.q.NewRaw(statement, before, Step).Exec(ctx))
		if err != nil {
			return false, err
		}
		more = more || n == Step
	}
	// a row for each account that has visitors
	_, err = tx.q.NewDelete().Table("public_spend").Where("day < ?", day(now)-1).Exec(ctx)
	return more, err
}
