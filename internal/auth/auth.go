// Package auth says who is asking (passwords, API keys and sessions), and how often they may ask.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"

	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

// ErrUnauthenticated is the one answer to every credential that is not good, whatever is wrong with it.
var ErrUnauthenticated = &parley.Error{Kind: parley.Unauthenticated, Message: "Unauthenticated."}

// errCredentials is the one answer to every login that fails.
var errCredentials = &parley.Error{Kind: parley.Unauthenticated, Message: "The email address or the password is wrong."}

// Authority checks credentials against the database.
type Authority struct {
	DB         *store.DB
	SessionFor time.Duration // how long a session lives
	Logins     *Logins       // how often passwords are tried; nil: as often as they are
	Mail       *mail.Sender  // sends links to members; nil: they are handed on by the account's owner
	Invites    *Limiter      // how often an account has an invitation sent; nil with Mail
}

// Who is an authenticated caller.
type Who struct {
	User   *parley.User   // the account
	Member *parley.Member // who works in it; nil: its first owner, who is the account itself
	Key    *parley.Key    // nil after a password
}

// Name is the caller's own.
func (w *Who) Name() string {
	if w.Member != nil {
		return w.Member.Name
	}
	return w.User.Name
}

// Email is the address that the caller signs in with.
func (w *Who) Email() string {
	if w.Member != nil {
		return w.Member.Email
	}
	return w.User.Email
}

// Timezone is the caller's.
func (w *Who) Timezone() string {
	if w.Member != nil {
		return w.Member.Timezone
	}
	return w.User.Timezone
}

// Zone is Timezone, loaded.
func (w *Who) Zone() *time.Location { return (&parley.User{Timezone: w.Timezone()}).Zone() }

// Role is what the caller may do: what their own role and their credential's both allow.
func (w *Who) Role() parley.Role {
	role := parley.RoleOwner
	if w.Member != nil {
		role = w.Member.Role
	}
	if w.Key != nil && w.Key.Scope != "" {
		role = parley.Least(role, w.Key.Scope)
	}
	return role
}

// May refuses what needs a role that the caller doesn't have.
func (w *Who) May(least parley.Role) error {
	if w.Role().Includes(least) {
		return nil
	}
	return w.Lacks(least)
}

// MayRead refuses to show what needs a role that the caller doesn't have, and may not read either.
func (w *Who) MayRead(least parley.Role) error {
	if w.Role().Reads(least) {
		return nil
	}
	return w.Lacks(least)
}

// Lacks is the refusal of what needs a role that the caller doesn't have.
func (w *Who) Lacks(least parley.Role) error {
	role := w.Role()
	whose := "You have"
	if w.Key != nil && w.Key.Scope != "" {
		whose = "This API key has"
	}
	return parley.Errorf(parley.Forbidden, "You need the role %s for this. %s the role %s.", least.Needed(), whose, role)
}

// MayChangeSelf refuses a caller with a key that is limited to a role: it may not change whose it is.
func (w *Who) MayChangeSelf() error {
	if w.Key == nil || w.Key.Scope == "" {
		return nil
	}
	return parley.Errorf(parley.Forbidden, "This API key has the role %s. You can't change an account or sign in with it.", w.Key.Scope)
}

// Person is the caller among those who work in the account: a member's id, or parley.Owner.
func (w *Who) Person() int64 {
	if w.Member != nil {
		return w.Member.ID
	}
	return parley.Owner
}

// Author is the caller as the history of what they change names them.
func (w *Who) Author() string {
	name := cmp.Or(w.Name(), w.Email())
	switch w.Key.Kind {
	case parley.APIKey:
		name += " (API key “" + w.Key.Name + "”)"
	case parley.OAuthAccess:
		name += " (app “" + w.Key.Name + "”)"
	}
	return name
}

// Writer is the caller as the messages that they write name them.
func (w *Who) Writer() parley.Person { return parley.Person{ID: w.Person(), Name: w.Author()} }

// Actor is the caller as the audit log names them, from a client's address.
func (w *Who) Actor(address string) store.Actor {
	a := store.Actor{UserID: w.User.ID, Who: "owner", Name: w.Author(), Address: address}
	switch {
	case w.Key.Kind == parley.APIKey:
		a.Who = "key:" + strconv.FormatInt(w.Key.ID, 10)
	case w.Key.Kind == parley.OAuthAccess: // for as long as it is granted
		a.Who = "key:" + strconv.FormatInt(w.Key.GrantID, 10)
	case w.Member != nil:
		a.Who = "member:" + strconv.FormatInt(w.Member.ID, 10)
	}
	return a
}

// argon2id with 19 MiB, 2 passes: the second of OWASP's equivalent choices, about 20 ms here.
var params = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// hashing bounds how many passwords are hashed at once: each takes 19 MiB and a core.
var hashing = make(chan struct{}, 2)

// HashPassword is the argon2id hash that is stored.
func HashPassword(password string) (string, error) {
	hashing <- struct{}{}
	defer func() { <-hashing }()
	return argon2id.CreateHash(password, params)
}

// decoy is verified when there is no such user, so that both take the same time.
var decoy, _ = argon2id.CreateHash("decoy", params)

// Login checks an email address and a password that somebody tries from a client address.
func (d *Authority) Login(ctx context.Context, from, email, password string) (*Who, error) {
	good, err := d.Logins.Try(from, email, time.Now())
	if err != nil {
		return nil, err
	}
	people, err := d.people(ctx, strings.ToLower(strings.TrimSpace(email)))
	if err != nil {
		return nil, err
	}
	select {
	case hashing <- struct{}{}:
		defer func() { <-hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if len(people) == 0 {
		_, _ = argon2id.ComparePasswordAndHash(password, decoy)
	}
	for _, who := range people {
		if match, err := argon2id.ComparePasswordAndHash(password, who.hash()); err == nil && match && !who.disabled() {
			good()
			return who, nil
		}
	}
	return nil, errCredentials
}

// people are those who sign in with an address: one person who has proven it, and others who have not, whom their passwords tell apart.
func (d *Authority) people(ctx context.Context, email string) (list []*Who, err error) {
	u, err := d.DB.UserByEmail(ctx, email)
	if err == nil {
		list = append(list, &Who{User: u})
	} else if !store.IsNotFound(err) {
		return nil, err
	}
	members, err := d.DB.MembersByEmail(ctx, email)
	if err != nil {
		return nil, err
	}
	for i := range members {
		u, err := d.DB.User(ctx, members[i].UserID)
		if err != nil {
			return nil, err
		}
		list = append(list, &Who{User: u, Member: &members[i]})
	}
	return list, nil
}

// hash is that of the caller's password.
func (w *Who) hash() string {
	if w.Member != nil {
		return w.Member.PasswordHash
	}
	return w.User.PasswordHash
}

// disabled says whether the account, or the member in it, is refused.
func (w *Who) disabled() bool {
	return w.User.DisabledAt != 0 || w.Member != nil && w.Member.DisabledAt != 0
}

// NewKey makes a credential of an account's owner in a transaction and returns its token, `ID|SECRET`, which is kept
// nowhere.
func (d *Authority) NewKey(ctx context.Context, tx *store.Tx, userID int64, kind parley.KeyKind,
	name string) (*parley.Key, string, error) {
	return d.newKey(ctx, tx, &parley.Key{UserID: userID, Kind: kind, Name: name})
}

func (d *Authority) newKey(ctx context.Context, tx *store.Tx, k *parley.Key) (*parley.Key, string, error) {
	secret, _ := newSecret()
	k.ID, k.Hash = 0, hashOf(k, secret)
	switch k.Kind {
	case parley.APIKey:
	case parley.ShareLink:
		k.ExpiresAt = parley.Now().Add(shareFor)
	case parley.ResetLink:
		k.ExpiresAt = parley.Now().Add(resetFor)
	case parley.ConfirmLink:
		k.ExpiresAt = parley.Now().Add(confirmFor)
	case parley.HalfSession:
		k.ExpiresAt = parley.Now().Add(HalfSessionFor)
	case parley.OAuthAccess:
		k.ExpiresAt = parley.Now().Add(AccessFor)
	default:
		k.ExpiresAt = parley.Now().Add(d.SessionFor)
	}
	if err := tx.CreateKey(ctx, k); err != nil {
		return nil, "", err
	}
	return k, strconv.FormatInt(k.ID, 10) + "|" + secret, nil
}

// hashOf is what is stored of a credential's secret. A credential that may not do everything has its limits in it, so
// that nodes of former versions, which know of no limits, refuse it.
func hashOf(k *parley.Key, secret string) []byte {
	if k.MemberID != 0 || k.Scope != "" {
		secret += fmt.Sprintf("|%d|%s", k.MemberID, k.Scope)
	}
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// BearerToken is the token of an Authorization header, "" where there is none of that form (RFC 6750, section 2.1).
func BearerToken(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// parseToken splits `ID|SECRET`.
func parseToken(token string) (id int64, secret string, ok bool) {
	left, secret, ok := strings.Cut(token, "|")
	if !ok || len(secret) < 40 || len(secret) > 128 || len(left) > 19 {
		return 0, "", false
	}
	n, err := strconv.ParseUint(left, 10, 63)
	return int64(n), secret, err == nil && n > 0
}

// Authenticate finds out whose token it is; some of kinds only.
func (d *Authority) Authenticate(ctx context.Context, token string, kinds ...parley.KeyKind) (*Who, error) {
	id, secret, ok := parseToken(token)
	if !ok {
		return nil, ErrUnauthenticated
	}
	k, u, m, err := d.DB.Credential(ctx, id)
	if store.IsNotFound(err) {
		return nil, ErrUnauthenticated
	}
	if err != nil {
		return nil, err
	}
	now := parley.Now()
	who := &Who{User: u, Member: m, Key: k}
	good := subtle.ConstantTimeCompare(hashOf(k, secret), k.Hash) == 1
	if !good || !slices.Contains(kinds, k.Kind) || !who.counts(now) {
		return nil, ErrUnauthenticated
	}
	// To the minute is exact enough, and spares a write per request.
	if now.Sub(k.LastUsedAt) > time.Minute {
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.KeyUsed(ctx, k, now) })
		if err != nil {
			slog.WarnContext(ctx, "note the use of a key", "key", k.ID, "error", err)
		}
	}
	return who, nil
}

// counts says whether a credential of somebody's is neither past its time nor that of somebody who is disabled.
func (w *Who) counts(now parley.Time) bool {
	return !w.disabled() && (w.Key.ExpiresAt == 0 || now < w.Key.ExpiresAt)
}

// Stands says whether a credential still counts and has a role: what it began may go on.
func (d *Authority) Stands(ctx context.Context, keyID int64, least parley.Role) (bool, error) {
	k, u, m, err := d.DB.Credential(ctx, keyID)
	if store.IsNotFound(err) {
		return false, nil
	}
	who := &Who{User: u, Member: m, Key: k}
	return err == nil && who.counts(parley.Now()) && who.Role().Includes(least), err
}
