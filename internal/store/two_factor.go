package store

import (
	"context"
	"fmt"

	"parley/internal/parley"
)

const twoFactorNotFound = "There is no second factor."

// secondOf names what a person's second factor is sealed as: it can't be moved to another person.
func secondOf(userID, memberID int64) string {
	return fmt.Sprintf("two-factor %d %d", userID, memberID)
}

// TwoFactor is a person's second factor, also one that is not confirmed yet.
func (q Query) TwoFactor(ctx context.Context, userID, memberID int64) (*parley.TwoFactor, error) {
	f := new(parley.TwoFactor)
	err := q.q.NewSelect().Model(f).ColumnExpr("two_factor.*").
		ColumnExpr(`(SELECT count(*) FROM recovery_codes c WHERE c.user_id = two_factor.user_id
			AND c.member_id = two_factor.member_id) AS recovery_codes`).
		Where("user_id = ? AND member_id = ?", userID, memberID).Scan(ctx)
	return f, notFound(err, twoFactorNotFound)
}

// TwoFactorSecret is the secret of a second factor in plain.
func (q Query) TwoFactorSecret(f *parley.TwoFactor) ([]byte, error) {
	return q.box.open(secondOf(f.UserID, f.MemberID), f.Sealed)
}

// SetUpTwoFactor stores a second factor that is to be confirmed. It takes the place of another one that never was; one
// that counts stays.
func (tx *Tx) SetUpTwoFactor(ctx context.Context, userID, memberID int64, secret []byte) error {
	f := &parley.TwoFactor{UserID: userID, MemberID: memberID, Sealed: tx.box.seal(secondOf(userID, memberID), secret),
		CreatedAt: parley.Now()}
	_, err := tx.q.NewInsert().Model(f).On("CONFLICT (user_id, member_id) DO UPDATE").
		Set("sealed_secret = excluded.sealed_secret, created_at = excluded.created_at").
		Where("two_factor.confirmed_at = 0").Exec(ctx)
	return tx.note(userID, parley.AuditCreated, parley.AuditTwoFactor, person(memberID), nil, err)
}

// ConfirmTwoFactor has a second factor count from now on. false: it does already, or was set up anew meanwhile.
func (tx *Tx) ConfirmTwoFactor(ctx context.Context, f *parley.TwoFactor, step int64) (bool, error) {
	done, err := some(tx.q.NewUpdate().Model(f).Set("confirmed_at = ?, last_step = ?", parley.Now(), step).WherePK().
		Where("confirmed_at = 0 AND sealed_secret = ?", f.Sealed).Exec(ctx))
	if !done {
		return false, err
	}
	return true, tx.changed(f.UserID, parley.AuditTwoFactor, person(f.MemberID), "", err, "confirmed_at")
}

// UseCode notes that the code of a step is used. false: it was already, or a later one.
func (tx *Tx) UseCode(ctx context.Context, f *parley.TwoFactor, step int64) (bool, error) {
	return some(tx.q.NewUpdate().Model(f).Set("last_step = ?", step).WherePK().
		Where("last_step < ? AND confirmed_at > 0 AND sealed_secret = ?", step, f.Sealed).Exec(ctx))
}

// recoveryCode is a row of what stands in for a code once.
type recoveryCode struct {
	UserID, MemberID int64
	Hash             []byte
}

// SetRecoveryCodes gives a person recovery codes, by their hashes, in the place of those that are left.
func (tx *Tx) SetRecoveryCodes(ctx context.Context, f *parley.TwoFactor, hashes [][]byte) error {
	_, err := tx.q.NewDelete().Model((*recoveryCode)(nil)).Where("user_id = ? AND member_id = ?", f.UserID, f.MemberID).
		Exec(ctx)
	if err != nil {
		return err
	}
	list := make([]recoveryCode, len(hashes))
	for i, hash := range hashes {
		list[i] = recoveryCode{f.UserID, f.MemberID, hash}
	}
	_, err = tx.q.NewInsert().Model(&list).Exec(ctx)
	return tx.changed(f.UserID, parley.AuditTwoFactor, person(f.MemberID), "", err, "recovery_codes")
}

// UseRecoveryCode removes a recovery code. false: there is no such code any more.
func (tx *Tx) UseRecoveryCode(ctx context.Context, f *parley.TwoFactor, hash []byte) (bool, error) {
	return some(tx.q.NewDelete().Model((*recoveryCode)(nil)).
		Where("user_id = ? AND member_id = ? AND hash = ?", f.UserID, f.MemberID, hash).Exec(ctx))
}

// DeleteTwoFactor removes a person's second factor and its recovery codes.
func (tx *Tx) DeleteTwoFactor(ctx context.Context, userID, memberID int64) error {
	res, err := tx.q.NewDelete().Model((*parley.TwoFactor)(nil)).Where("user_id = ? AND member_id = ?", userID, memberID).
		Exec(ctx)
	return tx.note(userID, parley.AuditDeleted, parley.AuditTwoFactor, person(memberID), nil, one(res, err, twoFactorNotFound))
}
