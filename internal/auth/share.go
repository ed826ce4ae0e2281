package auth

import (
	"context"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// A share link lets somebody without an account talk to the draft of an assistant for a day. Its token is a credential
// of a kind of its own, named by the assistant's id, and written so that it can stand in an address.

const (
	shareFor    = 24 * time.Hour
	sharePrefix = "share-"
)

var errShare = parley.Errorf(parley.NotFound, "This link is no longer valid. Ask the person who sent it for a new one.")

// IsShare says whether a text is the token of a share link, a valid one or not.
func IsShare(token string) bool { return strings.HasPrefix(token, sharePrefix) }

// Share makes a share link's token for one of the user's assistants. It is kept nowhere.
func (d *Authority) Share(ctx context.Context, userID, assistantID int64) (k *parley.Key, token string, err error) {
	if _, err := d.DB.Assistant(ctx, userID, assistantID); err != nil {
		return nil, "", err
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		k, token, err = d.NewKey(ctx, tx, userID, parley.ShareLink, strconv.FormatInt(assistantID, 10))
		return err
	})
	return k, sharePrefix + strings.Replace(token, "|", "-", 1), err
}

// Shared is whose assistant a share link is of, and the link's id. A link that is not valid (any more) is not found.
func (d *Authority) Shared(ctx context.Context, token string) (userID, assistantID, linkID int64, err error) {
	rest, ok := strings.CutPrefix(token, sharePrefix)
	if !ok {
		return 0, 0, 0, errShare
	}
	who, err := d.Authenticate(ctx, strings.Replace(rest, "-", "|", 1), parley.ShareLink)
	if err == ErrUnauthenticated { //nolint:errorlint // our own, never wrapped
		return 0, 0, 0, errShare
	}
	if err != nil {
		return 0, 0, 0, err
	}
	assistantID, err = strconv.ParseInt(who.Key.Name, 10, 64)
	return who.User.ID, assistantID, who.Key.ID, err
}

// ShareLives says whether a share link is still valid, by its id.
func (d *Authority) ShareLives(ctx context.Context, linkID int64) (bool, error) {
	k, u, _, err := d.DB.Credential(ctx, linkID)
	if store.IsNotFound(err) {
		return false, nil
	}
	return err == nil && k.Kind == parley.ShareLink && u.DisabledAt == 0 && parley.Now() < k.ExpiresAt, err
}

// Shares are the valid share links of one of the user's assistants, newest first.
func (d *Authority) Shares(ctx context.Context, userID, assistantID int64) ([]parley.Key, error) {
	if _, err := d.DB.Assistant(ctx, userID, assistantID); err != nil {
		return nil, err
	}
	return d.DB.KeysNamed(ctx, userID, parley.ShareLink, strconv.FormatInt(assistantID, 10), parley.Now())
}

// Unshare revokes all share links of one of the user's assistants: who uses one is refused from the next request on.
func (d *Authority) Unshare(ctx context.Context, userID, assistantID int64) error {
	if _, err := d.DB.Assistant(ctx, userID, assistantID); err != nil {
		return err
	}
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.DeleteKeysNamed(ctx, userID, parley.ShareLink, strconv.FormatInt(assistantID, 10))
	})
}
