package store

import (
	"context"

	"parley/internal/parley"
)

// Identity is the row of somebody whom an issuer knows by a subject.
func (q Query) Identity(ctx context.Context, issuer, subject string) (*parley.Identity, error) {
	i := new(parley.Identity)
	err := q.q.NewSelect().Model(i).Where("issuer = ? AND subject = ?", issuer, subject).Scan(ctx)
	return i, notFound(err, "nobody here is joined to this identity")
}

// JoinIdentity has an identity sign a person in, in place of another one of the same issuer. An identity that signs
// somebody else in stays theirs.
func (tx *Tx) JoinIdentity(ctx context.Context, i *parley.Identity) error {
	_, err := tx.q.NewDelete().Model((*parley.Identity)(nil)).
		Where("user_id = ? AND member_id = ? AND issuer = ?", i.UserID, i.MemberID, i.Issuer).Exec(ctx)
	if err != nil {
		return err
	}
	i.CreatedAt = parley.Now()
	if _, err = tx.q.NewInsert().Model(i).Exec(ctx); violates(err, "identities.issuer", "identities_pkey") {
		err = parley.Errorf(parley.Conflict, "This sign-in belongs to another account already.")
	}
	return err
}

// DeleteIdentities removes what a person signs in with at issuers.
func (tx *Tx) DeleteIdentities(ctx context.Context, userID, memberID int64) error {
	_, err := tx.q.NewDelete().Model((*parley.Identity)(nil)).Where("user_id = ? AND member_id = ?", userID, memberID).Exec(ctx)
	return err
}
