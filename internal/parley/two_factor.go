package parley

import "github.com/uptrace/bun"

// TwoFactor is a person's second factor: a secret that an authenticator app makes codes of. The person is a member of
// the account, or its owner.
type TwoFactor struct {
	bun.BaseModel `bun:"two_factors" json:"-"`

	UserID      int64  `bun:",pk"`
	MemberID    int64  `bun:",pk"` // 0: the account's owner
	Sealed      []byte `bun:"sealed_secret"`
	ConfirmedAt Time   // 0: set up, but no code was entered yet, so that it does not count
	LastStep    int64  // of the last code that was taken
	CreatedAt   Time

	RecoveryCodes int `bun:",scanonly"` // how many are left
}
