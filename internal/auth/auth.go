// Package auth says who is asking (passwords, API keys and sessions), and how often they may ask.
package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"

	"parley"
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
}

// Who is an authenticated caller.
type Who struct {
	User *parley.User
	Key  *parley.Key
}

// Person is the caller among those who may take a conversation.
func (w *Who) Person() int64 { return parley.Owner }

// Author is the caller as the history of what they change names them.
func (w *Who) Author() string {
	name := cmp.Or(w.User.Name, w.User.Email)
	if w.Key.Kind == parley.APIKey {
		name += ", API key " + w.Key.Name
	}
	return name
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
func (d *Authority) Login(ctx context.Context, from, email, password string) (*parley.User, error) {
	good, err := d.Logins.Try(from, email, time.Now())
	if err != nil {
		return nil, err
	}
	u, err := d.DB.UserByEmail(ctx, strings.ToLower(strings.TrimSpace(email)))
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	hash := decoy
	if err == nil {
		hash = u.PasswordHash
	}
	select {
	case hashing <- struct{}{}:
		defer func() { <-hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	match, verr := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil || verr != nil || !match || u.DisabledAt != 0 {
		return nil, errCredentials
	}
	good()
	return u, nil
}

// NewKey makes a credential in a transaction and returns its token, `ID|SECRET`, which is kept nowhere.
func (d *Authority) NewKey(ctx context.Context, tx *store.Tx, userID int64, kind parley.KeyKind,
	name string) (*parley.Key, string, error) {
	raw := make([]byte, 32)
	rand.Read(raw)
	secret := base64.RawURLEncoding.EncodeToString(raw) // 43 characters
	sum := sha256.Sum256([]byte(secret))
	k := &parley.Key{UserID: userID, Kind: kind, Name: name, Hash: sum[:]}
	switch kind {
	case parley.APIKey:
	case parley.ShareLink:
		k.ExpiresAt = parley.Now().Add(shareFor)
	case parley.HalfSession:
		k.ExpiresAt = parley.Now().Add(HalfSessionFor)
	default:
		k.ExpiresAt = parley.Now().Add(d.SessionFor)
	}
	if err := tx.CreateKey(ctx, k); err != nil {
		return nil, "", err
	}
	return k, strconv.FormatInt(k.ID, 10) + "|" + secret, nil
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
	k, u, err := d.DB.Credential(ctx, id)
	if store.IsNotFound(err) {
		return nil, ErrUnauthenticated
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(secret))
	now := parley.Now()
	good := subtle.ConstantTimeCompare(sum[:], k.Hash) == 1
	if !good || !slices.Contains(kinds, k.Kind) || u.DisabledAt != 0 || k.ExpiresAt != 0 && now >= k.ExpiresAt {
		return nil, ErrUnauthenticated
	}
	// To the minute is exact enough, and spares a write per request.
	if now.Sub(k.LastUsedAt) > time.Minute {
		err := d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.KeyUsed(ctx, k.ID, now) })
		if err != nil {
			slog.WarnContext(ctx, "note the use of a key", "key", k.ID, "error", err)
		}
	}
	return &Who{User: u, Key: k}, nil
}
