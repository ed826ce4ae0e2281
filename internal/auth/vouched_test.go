package auth_test

import (
	"errors"
	"testing"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

const issuer = "https://accounts.example.com"

// An identity signs in whoever joined it by the password: neither the address alone, nor another subject with it.
func TestIdentities(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		who := func(subject, email string, want error) *auth.Who {
			t.Helper()
			got, err := d.Vouched(t.Context(), "192.0.2.1", &parley.Identity{Issuer: issuer, Subject: subject, Email: email}, false)
			if want != nil && !errors.Is(err, want) || want == nil && err != nil {
				t.Fatalf("%s, %s: %+v, %v", subject, email, got, err)
			}
			return got
		}
		ana := &parley.Identity{Issuer: issuer, Subject: "ana", Email: u.Email}
		who("ana", u.Email, auth.ErrNotJoined)
		if _, err := d.JoinIdentity(t.Context(), "192.0.2.1", ana, "wrong"); err == nil {
			t.Fatal("a wrong password joins")
		}
		who("ana", u.Email, auth.ErrNotJoined)
		if got, err := d.JoinIdentity(t.Context(), "192.0.2.1", ana, "correct horse"); err != nil || got.User.ID != u.ID {
			t.Fatal(err)
		}
		for _, email := range []string{u.Email, "ana.new@example.com"} { // her address at the issuer may change
			if got := who("ana", email, nil); got.User.ID != u.ID || got.Member != nil {
				t.Errorf("%+v", got)
			}
		}
		who("heir", u.Email, auth.ErrNotJoined) // her address has passed to somebody else
		if _, err := d.Vouched(t.Context(), "", &parley.Identity{Issuer: "https://other.example", Subject: "ana", Email: "x@example.com"},
			false); err == nil {
			t.Error("another issuer's subject signs in")
		}

		m := member(t, d, u, "mo@example.com", parley.RoleAgent)
		mo := &parley.Identity{Issuer: issuer, Subject: "mo", Email: m.Email}
		if got, err := d.JoinIdentity(t.Context(), "192.0.2.1", mo, memberPassword); err != nil || got.Person() != m.ID {
			t.Fatal(err)
		}
		if got := who("mo", m.Email, nil); got.Member == nil || got.Member.ID != m.ID || got.User.ID != u.ID {
			t.Errorf("%+v", got)
		}
		mo.Subject = "mo, known anew" // in place of the former one
		if _, err := d.JoinIdentity(t.Context(), "192.0.2.1", mo, memberPassword); err != nil {
			t.Fatal(err)
		}
		who("mo", m.Email, auth.ErrNotJoined)
		who("mo, known anew", m.Email, nil)
		who("ana", u.Email, nil) // somebody else's stays
		if _, err := d.ChangeMember(t.Context(), &auth.Who{User: u}, m.ID, map[string]any{"disabled": true}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Vouched(t.Context(), "192.0.2.1", mo, false); err == nil {
			t.Error("a disabled member signs in")
		}
		if err := d.RemoveMember(t.Context(), &auth.Who{User: u}, m.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Identity(t.Context(), issuer, mo.Subject); !store.IsNotFound(err) {
			t.Errorf("a removed member's identity stays: %v", err)
		}
		if err := d.SetPassword(t.Context(), u.ID, "another horse", false); err != nil {
			t.Fatal(err)
		}
		who("ana", u.Email, auth.ErrNotJoined) // whoever knew the old password may have joined it
	})
}

// An address that somebody else has signed up with before leads nobody into their account.
func TestSignUpTakesNoAddressOver(t *testing.T) {
	d, u := authority(t, storetest.SQLite(t)) // a stranger, with a victim's address and a password of their own
	victim := &parley.Identity{Issuer: issuer, Subject: "victim", Email: u.Email}
	if who, err := d.Vouched(t.Context(), "192.0.2.1", victim, true); who != nil || !errors.Is(err, auth.ErrNotJoined) {
		t.Errorf("%+v %v", who, err)
	}
	fresh := &parley.Identity{Issuer: issuer, Subject: "fresh", Email: "fresh@example.com"}
	who, err := d.Vouched(t.Context(), "192.0.2.1", fresh, true)
	if err != nil || who.User.Plan != parley.TrialPlan {
		t.Fatalf("%+v %v", who, err)
	}
	again, err := d.Vouched(t.Context(), "192.0.2.1", fresh, true)
	if err != nil || again.User.ID != who.User.ID {
		t.Errorf("%+v %v", again, err)
	}
}

const memberPassword = "battery staple"

// member joins an account by an invitation.
func member(t *testing.T, d *auth.Authority, u *parley.User, email string, role parley.Role) *parley.Member {
	t.Helper()
	i, err := d.Invite(t.Context(), &auth.Who{User: u}, "", map[string]any{"name": "Mo", "role": string(role), "email": email})
	if err != nil {
		t.Fatal(err)
	}
	who, _, err := d.Accept(t.Context(), "192.0.2.1", i.Token, &auth.Acceptance{Password: memberPassword, Timezone: "UTC"}, parley.Session)
	if err != nil {
		t.Fatal(err)
	}
	return who.Member
}
