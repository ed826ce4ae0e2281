package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// An OpenID Connect issuer vouches for people. Whom it means is its subject, once that is joined to somebody here. Until
// then it is an email address, and whoever has that here shows by their password, once, that they are the same person:
// anybody could have made an account with an address that isn't theirs, or have changed theirs to it.

// ErrNotJoined means that somebody here has the address of an identity, and is not joined to it: JoinIdentity does that.
var ErrNotJoined = errors.New("this identity is not joined to the account that has its email address")

// Vouched is the owner or the member whom an issuer vouches for, from a client's address. Where nobody has the email
// address, signup has an account made.
func (d *Authority) Vouched(ctx context.Context, from string, i *parley.Identity, signup bool) (*Who, error) {
	who, err := d.joined(ctx, i)
	if store.IsNotFound(err) {
		if people, wrong := d.people(ctx, i.Email); wrong != nil {
			err = wrong
		} else if len(people) > 0 {
			return nil, ErrNotJoined
		}
	}
	switch {
	case err == nil && who.disabled():
		return nil, parley.Errorf(parley.Forbidden, "The account of %s is disabled.", who.Email())
	case err == nil || !store.IsNotFound(err):
		return who, err
	case !signup:
		return nil, parley.Errorf(parley.Forbidden, "There is no account for %s here. Ask whoever runs this server for one.", i.Email)
	}
	return d.signUp(ctx, from, i)
}

// joined is who signs in by an identity.
func (d *Authority) joined(ctx context.Context, i *parley.Identity) (*Who, error) {
	row, err := d.DB.Identity(ctx, i.Issuer, i.Subject)
	if err != nil {
		return nil, err
	}
	who := new(Who)
	if who.User, err = d.DB.User(ctx, row.UserID); err == nil && row.MemberID != Owner {
		who.Member, err = d.DB.Member(ctx, row.UserID, row.MemberID)
	}
	return who, err
}

// signUp makes the account of somebody whom an issuer vouches for. Nobody knows its password.
func (d *Authority) signUp(ctx context.Context, from string, i *parley.Identity) (*Who, error) {
	if err := d.Logins.Ask(from, i.Email, time.Now()); err != nil {
		return nil, err
	}
	u := &parley.User{Name: i.Name, Email: i.Email, Timezone: "UTC", ZoneAssumed: true, Plan: parley.TrialPlan, SignedUpAt: parley.Now(),
		EmailProvenAt: parley.Now()}
	if u.Name == "" {
		u.Name = u.Email
	}
	var err error
	if u.PasswordHash, err = HashPassword(rand.Text()); err != nil {
		return nil, err
	}
	return &Who{User: u}, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		u.ID = 0
		if err := tx.CreateUser(ctx, u); err != nil {
			return err
		}
		return join(ctx, tx, i, u.ID, Owner)
	})
}

// JoinIdentity has an identity sign in, from now on, whoever has its address here and gives their password.
func (d *Authority) JoinIdentity(ctx context.Context, from string, i *parley.Identity, password string) (*Who, error) {
	who, err := d.Login(ctx, from, i.Email, password)
	if err != nil {
		return nil, err
	}
	return who, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.ProveEmail(ctx, who.User.ID, who.Person(), i.Email); err != nil {
			return err
		}
		return join(ctx, tx, i, who.User.ID, who.Person())
	})
}

func join(ctx context.Context, tx *store.Tx, i *parley.Identity, userID, memberID int64) error {
	row := *i
	row.UserID, row.MemberID = userID, memberID
	return tx.JoinIdentity(ctx, &row)
}
