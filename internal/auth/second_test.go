package auth_test

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/totp"
)

// app is somebody's authenticator. It counts from the step in which it was set up: the code of the next step is good
// for half a minute at least, whenever the test began.
type app struct {
	secret []byte
	step   int64
}

func (a app) code(ahead int64) string { return totp.Code(a.secret, a.step+ahead) }

// second turns a user's second factor on with the code of now, and returns the app and the recovery codes.
func second(t *testing.T, d *auth.Authority, u *parley.User) (a app, codes []string) {
	t.Helper()
	a = app{setUp(t, d, u), totp.Step(time.Now())}
	codes, _, err := d.ConfirmTwoFactor(t.Context(), u.ID, auth.Owner, a.code(0), "right", only("right"))
	if err != nil {
		t.Fatal(err)
	}
	return a, codes
}

func setUp(t *testing.T, d *auth.Authority, u *parley.User) []byte {
	t.Helper()
	if err := d.SetUpTwoFactor(t.Context(), u.ID, auth.Owner); err != nil {
		t.Fatal(err)
	}
	f, err := d.DB.TwoFactor(t.Context(), u.ID, auth.Owner)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := d.DB.TwoFactorSecret(f)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(f.Sealed, secret) {
		t.Fatal("the secret is stored in plain")
	}
	return secret
}

// only is the check of a password.
func only(right string) func(string) error {
	return func(password string) error {
		if password != right {
			return parley.Errorf(parley.Unauthenticated, "no")
		}
		return nil
	}
}

func refusedCode(t *testing.T, d *auth.Authority, userID int64, code string) {
	t.Helper()
	err := d.CheckCode(t.Context(), userID, auth.Owner, code)
	if e := (*parley.Error)(nil); !errors.As(err, &e) || e.Kind != parley.Unauthenticated {
		t.Errorf("%q: %v", code, err)
	}
}

func TestCodesCountOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		if err := d.CheckCode(t.Context(), u.ID, auth.Owner, ""); err != nil {
			t.Fatalf("nobody has asked for a second factor: %v", err)
		}
		setUp(t, d, u)
		if err := d.CheckCode(t.Context(), u.ID, auth.Owner, ""); err != nil {
			t.Fatalf("it counts before it is confirmed: %v", err)
		}
		phone, recovery := second(t, d, u)
		refusedCode(t, d, u.ID, "")
		refusedCode(t, d, u.ID, phone.code(0)) // it has confirmed
		refusedCode(t, d, u.ID, phone.code(-1))
		refusedCode(t, d, u.ID, phone.code(+20))
		code := phone.code(1)
		if err := d.CheckCode(t.Context(), u.ID, auth.Owner, " "+code[:3]+" "+code[3:]+"\n"); err != nil {
			t.Fatal(err)
		}
		refusedCode(t, d, u.ID, code)

		if !slices.ContainsFunc(recovery, regexp.MustCompile(`^([a-z2-7]{4}-){3}[a-z2-7]{4}$`).MatchString) ||
			len(slices.Compact(slices.Sorted(slices.Values(recovery)))) != 10 {
			t.Fatalf("recovery codes %q", recovery)
		}
		if err := d.CheckCode(t.Context(), u.ID, auth.Owner, strings.ToUpper(recovery[3])); err != nil {
			t.Fatal(err)
		}
		refusedCode(t, d, u.ID, recovery[3])
		if f, err := d.TwoFactor(t.Context(), u.ID, auth.Owner); err != nil || f.RecoveryCodes != 9 {
			t.Errorf("%+v %v", f, err)
		}
		// somebody else's codes open nothing
		d2, other := authority(t, db)
		others, otherCodes := second(t, d2, other)
		refusedCode(t, d, u.ID, otherCodes[0])
		refusedCode(t, d, u.ID, others.code(1))
	})
}

// Of those who try the same code at once, one is let in.
func TestOneOfManyUsesACode(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		phone, recovery := second(t, d, u)
		for _, code := range []string{phone.code(1), recovery[0]} {
			var in atomic.Int32
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if d.CheckCode(t.Context(), u.ID, auth.Owner, code) == nil {
						in.Add(1)
					}
				})
			}
			wg.Wait()
			if in.Load() != 1 {
				t.Errorf("%d were let in with %s", in.Load(), code)
			}
		}
	})
}

func TestSecondFactorIsTurnedOnAndOff(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, u := authority(t, db)
		_, session := key(t, d, u, parley.Session)
		_, program := key(t, d, u, parley.APIKey)
		secret := setUp(t, d, u)
		confirm := func(code, password string) error {
			_, _, err := d.ConfirmTwoFactor(t.Context(), u.ID, auth.Owner, code, password, only("right"))
			return err
		}
		fails := func(err error, field string) {
			t.Helper()
			if e := (*parley.Error)(nil); !errors.As(err, &e) || e.Kind != parley.Invalid || !e.Fields.Has(field) || len(e.Fields) != 1 {
				t.Errorf("%s: %v", field, err)
			}
		}
		code := app{secret, totp.Step(time.Now())}.code(0)
		fails(confirm("000000"+code, "right"), "code")
		fails(confirm("", "right"), "code")
		fails(confirm(code, "wrong"), "password")
		if f, err := d.TwoFactor(t.Context(), u.ID, auth.Owner); f != nil || err != nil {
			t.Fatalf("%+v %v", f, err)
		}
		if again := setUp(t, d, u); bytes.Equal(again, secret) {
			t.Error("set up anew, the secret is the same")
		}
		phone, recovery := second(t, d, u)
		if _, err := d.Authenticate(t.Context(), session, parley.Session); err == nil {
			t.Error("a session from before goes on")
		}
		if _, err := d.Authenticate(t.Context(), program, parley.APIKey); err != nil {
			t.Errorf("an API key is gone: %v", err)
		}
		if kept := setUp(t, d, u); !bytes.Equal(kept, phone.secret) {
			t.Error("what counts was set up anew")
		}
		if confirm(phone.code(1), "right") == nil {
			t.Error("confirmed twice")
		}

		fresh, err := d.NewRecoveryCodes(t.Context(), u.ID, auth.Owner, recovery[0], "right", only("right"))
		if err != nil {
			t.Fatal(err)
		}
		refusedCode(t, d, u.ID, recovery[1]) // replaced
		fails(d.EndTwoFactor(t.Context(), u.ID, auth.Owner, fresh[0], "wrong", only("right")), "password")
		fails(d.EndTwoFactor(t.Context(), u.ID, auth.Owner, recovery[1], "right", only("right")), "code")
		// the wrong password did not use the code up
		if err := d.EndTwoFactor(t.Context(), u.ID, auth.Owner, fresh[0], "right", only("right")); err != nil {
			t.Fatal(err)
		}
		if err := d.CheckCode(t.Context(), u.ID, auth.Owner, ""); err != nil {
			t.Errorf("it still counts: %v", err)
		}
		if next := setUp(t, d, u); bytes.Equal(next, phone.secret) {
			t.Error("the next secret is the former one")
		}
	})
}

// Whoever knows the password can't try codes for long, and is not helped by coming from many addresses.
func TestCodesAreLimited(t *testing.T) {
	db := storetest.SQLite(t)
	d, u := authority(t, db)
	d.Logins = auth.NewLogins(auth.Rate{PerSecond: 100, Burst: 1000})
	phone, recovery := second(t, d, u)
	for _, code := range recovery { // right ones don't count
		if err := d.CheckCode(t.Context(), u.ID, auth.Owner, code); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		refusedCode(t, d, u.ID, "wrong")
	}
	err := d.CheckCode(t.Context(), u.ID, auth.Owner, phone.code(1))
	if e := (*auth.LimitError)(nil); !errors.As(err, &e) || e.RetryAfter < 200 || e.RetryAfter > 300 {
		t.Errorf("the eleventh: %v", err)
	}
}
