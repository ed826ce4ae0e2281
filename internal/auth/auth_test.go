package auth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func authority(t *testing.T, db *store.DB) (*auth.Authority, *parley.User) {
	t.Helper()
	d, u := &auth.Authority{DB: db, SessionFor: time.Hour}, storetest.User(t, db, 0)
	hash, err := auth.HashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	u.PasswordHash = hash
	save(t, db, u)
	return d, u
}

func save(t *testing.T, db *store.DB, u *parley.User) {
	t.Helper()
	if err := db.Write(t.Context(), func(ctx context.Context,
		tx *store.Tx) error {
		return tx.SaveUser(ctx, u)
	}); err != nil {
		t.Fatal(err)
	}
}

func key(t *testing.T, d *auth.Authority, u *parley.User, kind parley.KeyKind) (k *parley.Key, token string) {
	t.Helper()
	err := d.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		k, token, err = d.NewKey(ctx, tx, u.ID, kind, "k")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return k, token
}

func TestPasswords(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		for _, email := range []string{u.Email, strings.ToUpper(u.Email), "  " + u.Email + "\n"} {
			if got, err := d.Login(t.Context(), "192.0.2.1", email, "correct horse"); err != nil || got.User.ID != u.ID {
				t.Errorf("%q: %v", email, err)
			}
		}
		for _, c := range [][2]string{{u.Email, "Correct horse"}, {u.Email, ""}, {u.Email, "correct horse "},
			{"nobody@example.com", "correct horse"},
			// the hash that an unknown user's password is checked against opens nothing
			{"", ""}, {u.Email + "'", "correct horse"}, {"nobody@example.com", "decoy"}} {
			_, err := d.Login(t.Context(), "192.0.2.1", c[0], c[1])
			var e *parley.Error
			if !errors.As(err, &e) || e.Kind != parley.Unauthenticated || strings.Contains(e.Message, c[0]) &&
				c[0] != "" {
				t.Errorf("%q: %v", c, err)
			}
		}
		u.DisabledAt = parley.Now()
		save(t, db, u)
		if _, err := d.Login(t.Context(), "192.0.2.1", u.Email, "correct horse"); err == nil {
			t.Error("a disabled user signs in")
		}
	})
}

// Nobody can tell from the waiting time whether an address is known: a login with an unknown one takes a place for
// hashing, too. When every place is taken, both kinds of login wait, and both give up when their caller does.
func TestLoginHashesForUnknownUsersToo(t *testing.T) {
	d, u := authority(t, storetest.SQLite(t))
	free := auth.Occupy()
	for _, email := range []string{u.Email, "nobody@example.com"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := d.Login(ctx, "192.0.2.1", email, "x"); done <- err }()
		auth.Waiting() // the login waits for its hash
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s did not wait for a place to hash: %v", email, err)
		}
	}
	free()
	if _, err := d.Login(t.Context(), "192.0.2.1", u.Email, "correct horse"); err != nil {
		t.Error(err)
	}
	hash, err := auth.HashPassword("x")
	if err != nil || auth.Cost(hash) != auth.Cost(auth.Decoy) || auth.Cost(hash) == "" {
		t.Errorf("a hash costs %q, the decoy %q: %v", auth.Cost(hash), auth.Cost(auth.Decoy), err)
	}
}

func TestTokens(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		k, token := key(t, d, u, parley.APIKey)
		id, secret, _ := strings.Cut(token, "|")
		if id != fmt.Sprint(k.ID) || len(secret) < 40 || bytes.Contains(k.Hash, []byte(secret)) ||
			len(k.Hash) != 32 || k.ExpiresAt != 0 {
			t.Errorf("made %s, kept %x", token, k.Hash)
		}
		if _, again := key(t, d, u, parley.APIKey); strings.HasSuffix(again, secret) {
			t.Error("two keys have one secret")
		}
		who, err := d.Authenticate(t.Context(), token, parley.APIKey, parley.Session)
		if err != nil || who.User.ID != u.ID || who.Key.ID != k.ID {
			t.Errorf("%+v: %v", who, err)
		}
		if _, err := d.Authenticate(t.Context(), token, parley.Console); !errors.Is(err, auth.ErrUnauthenticated) {
			t.Errorf("as another kind: %v", err)
		}
		if _, err := d.Authenticate(t.Context(), token); !errors.Is(err, auth.ErrUnauthenticated) {
			t.Errorf("as no kind: %v", err)
		}
		for _, kind := range []parley.KeyKind{parley.Session, parley.Console} {
			if s, token := key(t, d, u, kind); s.ExpiresAt.Sub(parley.Now()) > time.Hour ||
				s.ExpiresAt.Sub(parley.Now()) < 59*time.Minute {
				t.Errorf("a %s lives until %s", kind, s.ExpiresAt)
			} else if _, err := d.Authenticate(t.Context(), token, kind); err != nil {
				t.Errorf("a fresh %s: %v", kind, err)
			}
		}
		old := &auth.Authority{DB: db}
		if _, token := key(t, old, u, parley.Session); token != "" {
			if _, err := d.Authenticate(t.Context(), token, parley.Session); !errors.Is(err, auth.ErrUnauthenticated) {
				t.Errorf("an expired session: %v", err)
			}
		}
		used, _, _, err := db.Credential(t.Context(), k.ID)
		if err != nil || parley.Now().Sub(used.LastUsedAt) > time.Minute {
			t.Errorf("last used at %s: %v", used.LastUsedAt, err)
		}
	})
}

func TestBearerToken(t *testing.T) {
	for header, want := range map[string]string{"Bearer a|b": "a|b", "bearer a": "a", "BEARER  a ": "a",
		"Bearer": "", "": "", "Bearer ": "", "Basic a": "", "a": "",
		" Bearer a": "", "Bearer\ta": "", "Bearera": "", "Bearer a b": "a b"} {
		if got := auth.BearerToken(header); got != want {
			t.Errorf("%q holds %q, want %q", header, got, want)
		}
	}
}

// A header with a good token is one that a client would write. No header makes the parser panic, and the database is
// asked only for a positive id and a secret of the proper length.
func FuzzBearer(f *testing.F) {
	secret := strings.Repeat("s", 43)
	for _, s := range []string{"Bearer 1|" + secret, "bearer 007|" + secret, "Bearer |" + secret,
		"Bearer 9223372036854775808|" + secret, "Bearer -1|" + secret, "Bearer 1|\xff",
		"Bearer +1|" + secret, "Bearer 1||" + secret, "Bearer\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		id, secret, ok := auth.ParseToken(auth.BearerToken(header))
		if !ok {
			return
		}
		if id <= 0 || len(secret) < 40 || len(secret) > 128 ||
			!strings.HasSuffix(strings.TrimSpace(header), secret) || !strings.EqualFold(header[:7], "Bearer ") {
			t.Errorf("%q holds %d and %q", header, id, secret)
		}
		if again, same, ok := auth.ParseToken(fmt.Sprintf("%d|%s", id, secret)); !ok || again != id || same != secret {
			t.Errorf("%d|%s is read as %d %s %v", id, secret, again, same, ok)
		}
	})
}

// A node of a former version, which compares the plain hash of a secret and knows no roles, refuses a limited key.
func TestLimitedKeysAreRefusedByFormerVersions(t *testing.T) {
	d, u := authority(t, storetest.SQLite(t))
	for scope, same := range map[parley.Role]bool{"": true, parley.RoleViewer: false} {
		k, token, err := d.MakeKey(t.Context(), &auth.Who{User: u}, &auth.KeyInput{Name: "k", Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		_, secret, _ := strings.Cut(token, "|")
		if sum := sha256.Sum256([]byte(secret)); bytes.Equal(sum[:], k.Hash) != same {
			t.Errorf("scope %q", scope)
		}
		if who, err := d.Authenticate(t.Context(), token, parley.APIKey); err != nil || who.Key.Scope != scope {
			t.Errorf("scope %q: %v", scope, err)
		}
	}
}

// An invitation is good for a week; an owner's new password ends no session of a member's.
func TestInvitationExpires(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		invite := func() (*parley.Invitation, string) {
			i, err := d.Invite(t.Context(), &auth.Who{User: u}, "", map[string]any{"email": "a@example.com", "name": "A", "role": "viewer"})
			if err != nil {
				t.Fatal(err)
			}
			return i.Invitation, i.Token
		}
		i, token := invite()
		if days := i.ExpiresAt.Sub(i.CreatedAt).Round(time.Minute); days != 7*24*time.Hour {
			t.Errorf("it is valid for %v", days)
		}
		age := func(by time.Duration) {
			t.Helper()
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				i.ID, i.ExpiresAt = 0, parley.Now().Add(by)
				return tx.CreateInvitation(ctx, i)
			})
			if err != nil {
				t.Fatal(err)
			}
			_, secret, _ := strings.Cut(strings.TrimPrefix(token, "invite-"), "-")
			token = fmt.Sprintf("invite-%d-%s", i.ID, secret)
		}
		accept := &auth.Acceptance{Password: "correct horse battery", Timezone: "UTC"}
		age(-time.Second)
		if _, _, err := d.Accept(t.Context(), "192.0.2.1", token, accept, parley.Session); err == nil {
			t.Error("an invitation that has expired is accepted")
		}
		if list, err := db.Invitations(t.Context(), u.ID, parley.Now()); err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
		age(time.Hour)
		_, session, err := d.Accept(t.Context(), "192.0.2.1", token, accept, parley.Session)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.SetPassword(t.Context(), u.ID, "another horse", false); err != nil {
			t.Fatal(err)
		}
		if who, err := d.Authenticate(t.Context(), session, parley.Session); err != nil || who.Name() != "A" {
			t.Errorf("%v, %v", who, err)
		}
		if err := d.Disable(t.Context(), u.ID, false); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Authenticate(t.Context(), session, parley.Session); err == nil {
			t.Error("a member of a disabled account is let in")
		}
		if _, err := d.Login(t.Context(), "192.0.2.1", "a@example.com", "correct horse battery"); err == nil {
			t.Error("a member of a disabled account signs in")
		}
	})
}
