package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"parley/internal/parley"
)

// ProvenEmail says whether somebody who works in the account has shown that an address (lower case) is theirs.
func (tx *Tx) ProvenEmail(ctx context.Context, userID int64, email string) (proven bool, err error) {
	err = tx.q.NewRaw(`SELECT EXISTS (SELECT 1 FROM users WHERE id = ? AND email = ? AND email_proven_at > 0)
		OR EXISTS (SELECT 1 FROM members WHERE user_id = ? AND email = ? AND email_proven_at > 0)`, userID, email, userID, email).Scan(ctx, &proven)
	return proven, err
}

// CountMail counts an e-mail of an account to an address (lower case) on a time's day. It is false, and counts nothing, where either
// has had as many as it may.
func (tx *Tx) CountMail(ctx context.Context, userID int64, email string, account, recipient int64, at parley.Time) (may bool, err error) {
	sum := sha256.Sum256([]byte(email))
	names := []struct {
		name string
		most int64
	}{{"user:" + strconv.FormatInt(userID, 10), account}, {"to:" + hex.EncodeToString(sum[:16]), recipient}}
	for _, c := range names {
		var n int64
		err := tx.q.NewRaw(`INSERT INTO mail_counts (name, day, n) VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE
			SET n = CASE WHEN mail_counts.day >= excluded.day THEN mail_counts.n ELSE 0 END,
			day = CASE WHEN mail_counts.day >= excluded.day THEN mail_counts.day ELSE excluded.day END RETURNING n`,
			c.name, day(at)).Scan(ctx, &n) // who counts the same at the same time waits
		if err != nil || n >= c.most {
			return false, err
		}
	}
	_, err = tx.q.NewRaw("UPDATE mail_counts SET n = n + 1 WHERE name IN (?, ?)", names[0].name, names[1].name).Exec(ctx)
	if err == nil {
		_, err = tx.q.NewRaw("DELETE FROM mail_counts WHERE day < ?", day(at)).Exec(ctx)
	}
	return err == nil, err
}

// ProveEmail notes that an address (lower case) is that of the account's owner (memberID 0) or of one of its members: they have used a
// link that was sent there, or an issuer says so. It is false where they have another address by now. An account that has the address
// without having shown that gives it up.
func (tx *Tx) ProveEmail(ctx context.Context, userID, memberID int64, email string) (is bool, err error) {
	if memberID == 0 {
		u, err := tx.User(ctx, userID)
		if err != nil || u.Email != email {
			return false, err
		}
		if u.EmailProvenAt > 0 {
			return true, nil
		}
		u.EmailProvenAt = parley.Now()
		return true, tx.SaveUser(ctx, u)
	}
	m, err := tx.MemberForUpdate(ctx, userID, memberID)
	if err != nil || m.Email != email {
		return false, err
	}
	if m.EmailProvenAt > 0 {
		return true, nil
	}
	m.EmailProvenAt = parley.Now()
	return true, tx.SaveMember(ctx, m)
}
