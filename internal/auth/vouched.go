package auth

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

// Vouched is the owner or the member whose address an OpenID Connect issuer has vouched for, from a client's address.
// Where there is none, signup has an account made.
func (d *Authority) Vouched(ctx context.Context, from, email, name string, signup bool) (*Who, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	who, _, err := d.person(ctx, email)
	switch {
	case err == nil && who.disabled():
		return nil, parley.Errorf(parley.Forbidden, "The account of %s is disabled.", email)
	case err == nil || !store.IsNotFound(err):
		return who, err
	case !signup:
		return nil, parley.Errorf(parley.Forbidden, "There is no account for %s here. Ask whoever runs this server for one.", email)
	}
	if err := d.Logins.Ask(from, email, time.Now()); err != nil {
		return nil, err
	}
	u := &parley.User{Name: name, Email: email, Timezone: "UTC", Plan: parley.TrialPlan, SignedUpAt: parley.Now()}
	if u.Name == "" {
		u.Name = email
	}
	if u.PasswordHash, err = HashPassword(rand.Text()); err != nil { // nobody knows it
		return nil, err
	}
	return &Who{User: u}, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.CreateUser(ctx, u) })
}
