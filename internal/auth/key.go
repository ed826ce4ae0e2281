package auth

import (
	"cmp"
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

// KeyInput is what an API key is made of.
type KeyInput struct {
	Name     string      `json:"name" required:"true" maxLength:"255" doc:"A label."`
	Scope    parley.Role `json:"scope" enum:"owner,administrator,editor,agent,viewer,billing,auditor" doc:"The role that the key is limited to. By default it may do what its holder and its maker may."`
	MemberID int64       `json:"member_id" doc:"The member whose key it is: it ends with their membership, and may do no more than they may. By default it is the account owner's."`
}

// MakeKey has somebody make an API key in their account, which may do no more than they may. Its token is kept nowhere.
func (d *Authority) MakeKey(ctx context.Context, by *Who, in *KeyInput) (k *parley.Key, token string, err error) {
	userID, scope := by.User.ID, in.Scope
	if may := by.Role(); may != parley.RoleOwner { // whatever its holder becomes later
		scope = parley.Least(may, cmp.Or(scope, may))
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if in.MemberID != 0 {
			_, err := tx.MemberForUpdate(ctx, userID, in.MemberID)
			if store.IsNotFound(err) {
				var wrong parley.Fields
				wrong.Add("member_id", "is not a member of this account.")
				return wrong.Err()
			}
			if err != nil {
				return err
			}
		}
		k, token, err = d.newKey(ctx, tx, &parley.Key{UserID: userID, MemberID: in.MemberID, Kind: parley.APIKey, Name: in.Name,
			Scope: scope})
		return err
	})
	return k, token, err
}

// RevokeKey removes one of a user's API keys: it is refused from the next request on.
func (d *Authority) RevokeKey(ctx context.Context, userID, id int64) error {
	return d.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return tx.DeleteKey(ctx, userID, parley.APIKey, id)
	})
}

// RevokeKeys removes a user's API keys, all but one (0: all), and disconnects apps, and says how many they were.
func (d *Authority) RevokeKeys(ctx context.Context, userID, but int64) (n int64, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = tx.DeleteKeys(ctx, userID, but)
		return err
	})
	return n, err
}

// Begin begins a session of somebody's, in place of that which is ended by it (nil: none), and returns its token.
func (d *Authority) Begin(ctx context.Context, who *Who, kind parley.KeyKind, name string,
	ended *Who) (token string, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if ended != nil {
			if err := end(ctx, tx, ended); err != nil {
				return err
			}
		}
		_, token, err = d.newKey(ctx, tx, &parley.Key{UserID: who.User.ID, MemberID: who.Person(), Kind: kind, Name: name})
		return err
	})
	return token, err
}

// End ends a session.
func (d *Authority) End(ctx context.Context, who *Who) error {
	if who.Key.Kind == parley.APIKey {
		return parley.Errorf(parley.Refused, "An API key has no session to end. Delete the key instead.")
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return end(ctx, tx, who) })
}

// end removes a session, which may have ended meanwhile.
func end(ctx context.Context, tx *store.Tx, who *Who) error {
	err := tx.DeleteKey(ctx, who.User.ID, who.Key.Kind, who.Key.ID)
	if store.IsNotFound(err) {
		return nil
	}
	return err
}
