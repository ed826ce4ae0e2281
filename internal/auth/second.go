package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/totp"
)

// Owner is the member id of an account's owner, who is no member.
const Owner int64 = 0

// HalfSessionFor is how long a code may be entered after the password.
const HalfSessionFor = 10 * time.Minute

// recoveryCodes is how many codes stand in for the app, each once.
const recoveryCodes = 10

var (
	errNeedsCode = parley.Errorf(parley.Unauthenticated,
		"This account has two-factor sign-in: a code from the authenticator app is needed too.")
	errWrongCode = parley.Errorf(parley.Unauthenticated, "This code is wrong or has already been used.")
)

// TwoFactor is a person's second factor, nil where they have none that counts.
func (d *Authority) TwoFactor(ctx context.Context, userID, memberID int64) (*parley.TwoFactor, error) {
	f, err := d.DB.TwoFactor(ctx, userID, memberID)
	if store.IsNotFound(err) || err == nil && f.ConfirmedAt == 0 {
		return nil, nil
	}
	return f, err
}

// CheckCode checks the code that a person signs in with, after the password was right: one of the app's, or a recovery
// code. Each is taken once. It is nil for whoever has no second factor.
func (d *Authority) CheckCode(ctx context.Context, userID, memberID int64, code string) error {
	f, err := d.TwoFactor(ctx, userID, memberID)
	if err != nil || f == nil {
		return err
	}
	if code = plainCode(code); code == "" {
		return errNeedsCode
	}
	good, err := d.Logins.TryCode(fmt.Sprint(userID, " ", memberID), time.Now())
	if err != nil {
		return err
	}
	secret, err := d.DB.TwoFactorSecret(f)
	if err != nil {
		return err
	}
	step, ok := totp.Find(secret, code, time.Now(), f.LastStep)
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		used := false
		if ok {
			used, err = tx.UseCode(ctx, f, step)
		} else {
			used, err = tx.UseRecoveryCode(ctx, f, recoveryHash(code))
		}
		if err == nil && !used {
			err = errWrongCode
		}
		return err
	})
	if err == nil {
		good()
	}
	return err
}

// SetUpTwoFactor makes a second factor for a person who has none. It counts once ConfirmTwoFactor was told a code of
// it.
func (d *Authority) SetUpTwoFactor(ctx context.Context, userID, memberID int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.SetUpTwoFactor(ctx, userID, memberID, totp.NewSecret())
	})
}

// ConfirmTwoFactor has a person's second factor count from now on: they have entered a code that their app shows, and
// the password, which check tries. Every session ends but a new one in the browser, whose token is returned; so do the
// recovery codes, which are kept nowhere.
func (d *Authority) ConfirmTwoFactor(ctx context.Context, userID, memberID int64, code, password string,
	check func(password string) error) (codes []string, token string, err error) {
	f, err := d.DB.TwoFactor(ctx, userID, memberID)
	if err != nil {
		return nil, "", err
	}
	if f.ConfirmedAt != 0 {
		return nil, "", parley.Errorf(parley.Conflict, "Two-factor sign-in is already on.")
	}
	secret, err := d.DB.TwoFactorSecret(f)
	if err != nil {
		return nil, "", err
	}
	step, ok := totp.Find(secret, plainCode(code), time.Now(), 0)
	var wrong parley.Fields
	if !ok {
		wrong.AddText("code", "This code does not match. Enter the newest code, and check that your device's clock is right.")
		return nil, "", wrong.Err()
	}
	if err := notYours(check(password), "password"); err != nil {
		return nil, "", err
	}
	codes, hashes := newRecoveryCodes()
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		done, err := tx.ConfirmTwoFactor(ctx, f, step)
		if err == nil && !done {
			err = parley.Errorf(parley.Conflict, "Two-factor sign-in was set up again in the meantime. Try again.")
		}
		if err != nil {
			return err
		}
		if err := tx.SetRecoveryCodes(ctx, f, hashes); err != nil {
			return err
		}
		if err := tx.DeleteSessions(ctx, userID, memberID); err != nil {
			return err
		}
		_, token, err = d.newKey(ctx, tx, &parley.Key{UserID: userID, MemberID: memberID, Kind: parley.Console, Name: "console"})
		return err
	})
	return codes, token, err
}

// NewRecoveryCodes replaces a person's recovery codes. It takes the password, which check tries, and a code.
func (d *Authority) NewRecoveryCodes(ctx context.Context, userID, memberID int64, code, password string,
	check func(password string) error) ([]string, error) {
	f, err := d.both(ctx, userID, memberID, code, password, check)
	if err != nil {
		return nil, err
	}
	codes, hashes := newRecoveryCodes()
	return codes, d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.SetRecoveryCodes(ctx, f, hashes)
	})
}

// EndTwoFactor turns a person's second factor off. It takes the password, which check tries, and a code.
func (d *Authority) EndTwoFactor(ctx context.Context, userID, memberID int64, code, password string,
	check func(password string) error) error {
	if _, err := d.both(ctx, userID, memberID, code, password, check); err != nil {
		return err
	}
	return d.DropTwoFactor(ctx, userID, memberID)
}

// DropTwoFactor turns a person's second factor off for them: they have lost their device and their recovery codes.
func (d *Authority) DropTwoFactor(ctx context.Context, userID, memberID int64) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.DeleteTwoFactor(ctx, userID, memberID)
	})
}

// both tries the password and then a code of a person's: a code is not used up by a password that was wrong.
func (d *Authority) both(ctx context.Context, userID, memberID int64, code, password string,
	check func(password string) error) (*parley.TwoFactor, error) {
	f, err := d.TwoFactor(ctx, userID, memberID)
	if err == nil && f == nil {
		err = parley.Errorf(parley.NotFound, "Two-factor sign-in is off.")
	}
	if err != nil {
		return nil, err
	}
	if err := notYours(check(password), "password"); err != nil {
		return nil, err
	}
	err = d.CheckCode(ctx, userID, memberID, code)
	if e := (*parley.Error)(nil); errors.As(err, &e) && e.Kind == parley.Unauthenticated {
		var wrong parley.Fields
		wrong.AddText("code", e.Message)
		err = wrong.Err()
	}
	return f, err
}

// plainCode is a code without what people put into it, or apps show in it.
func plainCode(code string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "", "\u00a0", "").Replace(strings.TrimSpace(code)))
}

// newRecoveryCodes are codes of 80 random bits, as they are shown, and what is kept of them.
func newRecoveryCodes() (codes []string, hashes [][]byte) {
	for range recoveryCodes {
		raw := make([]byte, 10)
		rand.Read(raw)
		c := strings.ToLower(base32.StdEncoding.EncodeToString(raw)) // 16 characters
		codes = append(codes, c[:4]+"-"+c[4:8]+"-"+c[8:12]+"-"+c[12:])
		hashes = append(hashes, recoveryHash(c))
	}
	return codes, hashes
}

// recoveryHash is what is kept of a recovery code. It is random, so that a plain hash can't be guessed back.
func recoveryHash(code string) []byte {
	sum := sha256.Sum256([]byte(code))
	return sum[:]
}
