package parley

import "github.com/uptrace/bun"

// Identity is somebody as an OpenID Connect issuer knows them, joined to an account's owner or a member here.
type Identity struct {
	bun.BaseModel `bun:"identities" json:"-"`

	Issuer    string `bun:",pk"`
	Subject   string `bun:",pk"` // the issuer's, for ever: an address can pass to somebody else
	UserID    int64
	MemberID  int64 // 0: the account's owner
	CreatedAt Time

	Email string `bun:"-"` // what the issuer says now: lower case, and verified
	Name  string `bun:"-"`
}
