package auth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// How long what apps are given by OAuth lives.
const (
	AccessFor = time.Hour
	codeFor   = 2 * time.Minute
	grantFor  = 30 * 24 * time.Hour // without being used
)

// maxGrants is how many apps an account may let in.
const maxGrants = 100

// half is how long each of the two secrets in the token of a code or grant is. The first is the same for the grant's life: by it an
// earlier token is known for what it is. The second is another one after each use.
const half = 43

// AppTokens are what an app gets for a code, or for its refresh token.
type AppTokens struct{ Access, Refresh string }

// grantHash is what is stored of both secrets. to is what the second is bound to: it is refused from anybody else.
func grantHash(k *parley.Key, secret, to string) []byte {
	return slices.Concat(hashOf(k, secret[:half]), hashOf(k, secret[half:]+"|"+to))
}

// GrantCode lets an app into somebody's account, with a role at most ("": theirs), under a name. The app exchanges the code, bound to
// what it asked with, for tokens.
func (d *Authority) GrantCode(ctx context.Context, by *Who, scope parley.Role, name, to string) (code string, err error) {
	if may := by.Role(); scope != "" && !may.Covers(scope) {
		scope = parley.Least(may, scope)
	}
	scope = cmp.Or(scope, by.Key.Scope)
	list, err := d.DB.Grants(ctx, by.User.ID, parley.Now())
	if err == nil && len(list) >= maxGrants {
		err = parley.Errorf(parley.Refused,
			"%d apps are connected, which is as many as there may be. Disconnect one under API keys first.", maxGrants)
	}
	if err != nil {
		return "", err
	}
	first, _ := newSecret()
	second, _ := newSecret()
	k := &parley.Key{UserID: by.User.ID, MemberID: by.Person(), Kind: parley.OAuthCode, Name: name, Scope: scope,
		ExpiresAt: parley.Now().Add(codeFor)}
	k.Hash = grantHash(k, first+second, to)
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		k.ID = 0
		return tx.CreateKey(ctx, k)
	})
	return strconv.FormatInt(k.ID, 10) + "|" + first + second, err
}

// ExchangeCode gives an app tokens for a code, once. A code that comes a second time, or is bound to something else, ends the grant.
func (d *Authority) ExchangeCode(ctx context.Context, code, to, app string) (*AppTokens, error) {
	return d.exchange(ctx, parley.OAuthCode, code, to, app)
}

// RefreshGrant gives an app new tokens for its refresh token. One that was used before ends the grant: somebody has a copy.
func (d *Authority) RefreshGrant(ctx context.Context, token, app string) (*AppTokens, error) {
	return d.exchange(ctx, parley.OAuthGrant, token, app, app)
}

func (d *Authority) exchange(ctx context.Context, kind parley.KeyKind, token, to, app string) (*AppTokens, error) {
	k, secret, err := d.grant(ctx, token)
	if err != nil {
		return nil, err
	}
	if k.Kind != kind || subtle.ConstantTimeCompare(grantHash(k, secret, to), k.Hash) != 1 {
		return nil, d.ended(ctx, k)
	}
	second, _ := newSecret()
	is := *k
	is.Kind, is.ExpiresAt = parley.OAuthGrant, parley.Now().Add(grantFor)
	is.Hash = grantHash(&is, secret[:half]+second, app)
	out := &AppTokens{Refresh: strconv.FormatInt(k.ID, 10) + "|" + secret[:half] + second}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		ok, err := tx.SwapKey(ctx, k, &is)
		if err == nil && !ok { // another request was first with the same token
			err = errUsed
		}
		if err != nil {
			return err
		}
		_, out.Access, err = d.newKey(ctx, tx, &parley.Key{UserID: k.UserID, MemberID: k.MemberID, Kind: parley.OAuthAccess, Name: k.Name,
			Scope: k.Scope, GrantID: k.ID})
		return err
	})
	if errors.Is(err, errUsed) {
		return nil, d.ended(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

var errUsed = errors.New("the token was used a moment ago")

// grant is the code or grant that a token is of, now or formerly.
func (d *Authority) grant(ctx context.Context, token string) (k *parley.Key, secret string, err error) {
	id, secret, ok := parseToken(token)
	if !ok || len(secret) != 2*half {
		return nil, "", ErrUnauthenticated
	}
	k, u, m, err := d.DB.Credential(ctx, id)
	if store.IsNotFound(err) {
		return nil, "", ErrUnauthenticated
	}
	if err != nil {
		return nil, "", err
	}
	mine := k.Kind == parley.OAuthCode || k.Kind == parley.OAuthGrant
	if !mine || subtle.ConstantTimeCompare(hashOf(k, secret[:half]), k.Hash[:len(k.Hash)/2]) != 1 ||
		!(&Who{User: u, Member: m, Key: k}).counts(parley.Now()) {
		return nil, "", ErrUnauthenticated
	}
	return k, secret, nil
}

// ended ends a grant whose token is in the wrong hands, and refuses who sent it.
func (d *Authority) ended(ctx context.Context, k *parley.Key) error {
	if err := d.RevokeGrant(ctx, k.UserID, k.ID); err != nil && !store.IsNotFound(err) {
		return err
	}
	return ErrUnauthenticated
}

// RevokeGrant ends what an app was granted: its tokens are refused from the next request on.
func (d *Authority) RevokeGrant(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteGrant(ctx, userID, id) })
}

// RevokeAppToken ends the grant of an app that gives its refresh or access token back. A token that is of nobody is no error.
func (d *Authority) RevokeAppToken(ctx context.Context, token string) error {
	if k, _, err := d.grant(ctx, token); err == nil {
		err = d.RevokeGrant(ctx, k.UserID, k.ID)
		if store.IsNotFound(err) {
			return nil
		}
		return err
	}
	who, err := d.Authenticate(ctx, strings.TrimSpace(token), parley.OAuthAccess)
	if err == nil {
		err = d.RevokeGrant(ctx, who.User.ID, who.Key.GrantID)
	}
	if err == ErrUnauthenticated || store.IsNotFound(err) { //nolint:errorlint // it is our own
		return nil
	}
	return err
}
