package auth

import (
	"context"
	"errors"
	"strings"

	"parley/internal/parley"
	"parley/internal/store"
)

// Create makes an account with what it has to start with.
func (d *Authority) Create(ctx context.Context, u *parley.User, password string, opening parley.Money) (err error) {
	if u.PasswordHash, err = HashPassword(password); err != nil {
		return err
	}
	return d.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return create(ctx, tx, u, opening, "Opening balance")
	})
}

func create(ctx context.Context, tx *store.Tx, u *parley.User, opening parley.Money, description string) error {
	u.EmailProvenAt = parley.Now() // the operator's word
	if err := tx.CreateUser(ctx, u); err != nil {
		return err
	}
	_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: opening, Reference: "start",
		Description: description})
	return err
}

// First makes a server's first account, with a key, where there is none yet: token is "" where there is one.
func (d *Authority) First(ctx context.Context, u *parley.User, password string, opening parley.Money) (token string,
	err error) {
	if u.PasswordHash, err = HashPassword(password); err != nil {
		return "", err
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		token = ""
		if any, err := tx.AnyUser(ctx); err != nil || any {
			return err
		}
		if err := create(ctx, tx, u, opening, "To start with"); err != nil {
			return err
		}
		_, token, err = d.NewKey(ctx, tx, u.ID, parley.APIKey, "first key")
		return err
	})
	return token, err
}

// Register makes the account of somebody who signs up, and begins a session of theirs. allow, which may count, is
// asked last.
func (d *Authority) Register(ctx context.Context, u *parley.User, password string,
	allow func() error) (token string, err error) {
	if why := WeakPassword(password, u.Name, u.Email); why != "" {
		var wrong parley.Fields
		wrong.Add("password", "%s", why)
		return "", wrong.Err()
	}
	if err := allow(); err != nil {
		return "", err
	}
	if u.PasswordHash, err = HashPassword(password); err != nil {
		return "", err
	}
	u.Email, u.Plan, u.SignedUpAt = strings.ToLower(u.Email), parley.TrialPlan, parley.Now()
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if err := tx.CreateUser(ctx, u); err != nil {
			return err
		}
		_, token, err = d.NewKey(ctx, tx, u.ID, parley.Session, "session")
		return err
	})
	return token, err
}

// ChangePassword changes the password of somebody who knows the present one: check tries it. Every session of theirs
// ends but a new one in the browser, whose token is returned; API keys stay, unless an account's owner revokes them too.
func (d *Authority) ChangePassword(ctx context.Context, who *Who, current, next string, revoke bool,
	check func(password string) error) (token string, err error) {
	var wrong parley.Fields
	if current == "" {
		wrong.Add("current", "is required.")
	}
	if why := WeakPassword(next, who.Name(), who.Email()); why != "" {
		wrong.Add("password", "%s", why)
	}
	if err := wrong.Err(); err != nil {
		return "", err
	}
	if err := notYours(check(current), "current"); err != nil {
		return "", err
	}
	hash, err := HashPassword(next)
	if err != nil {
		return "", err
	}
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if who.Member != nil {
			err = setMemberPassword(ctx, tx, who.Member, hash)
		} else {
			err = setPassword(ctx, tx, who.User.ID, hash, revoke)
		}
		if err != nil {
			return err
		}
		_, token, err = d.newKey(ctx, tx, &parley.Key{UserID: who.User.ID, MemberID: who.Person(), Kind: parley.Console, Name: "console"})
		return err
	})
	return token, err
}

// SetPassword gives a user a new password. Every session ends; API keys stay, unless they are revoked too.
func (d *Authority) SetPassword(ctx context.Context, userID int64, password string, revoke bool) error {
	hash, err := HashPassword(password)
	if err != nil {
		return err
	}
	return d.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return setPassword(ctx, tx, userID, hash, revoke)
	})
}

func setPassword(ctx context.Context, tx *store.Tx, userID int64, hash string, revoke bool) error {
	u, err := tx.User(ctx, userID)
	if err != nil {
		return err
	}
	u.PasswordHash = hash
	if err := tx.SaveUser(ctx, u); err != nil {
		return err
	}
	if revoke {
		if _, err := tx.DeleteKeys(ctx, userID, 0); err != nil {
			return err
		}
	}
	return endSignIns(ctx, tx, userID, Owner)
}

// endSignIns ends what somebody who knew the former password can have left behind: sessions, and an identity of theirs
// that signs in by itself.
func endSignIns(ctx context.Context, tx *store.Tx, userID, memberID int64) error {
	if err := tx.DeleteIdentities(ctx, userID, memberID); err != nil {
		return err
	}
	return tx.DeleteSessions(ctx, userID, memberID)
}

// notYours puts a password that is not the user's beside its field.
func notYours(err error, field string) error {
	var e *parley.Error
	if !errors.As(err, &e) || e.Kind != parley.Unauthenticated {
		return err
	}
	var wrong parley.Fields
	wrong.AddText(field, "This is not your password.")
	return wrong.Err()
}

// Disable refuses a user's credentials from now on, or (undo) lets them in again. Sessions end either way.
func (d *Authority) Disable(ctx context.Context, userID int64, undo bool) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err := tx.User(ctx, userID)
		if err != nil {
			return err
		}
		u.DisabledAt = parley.Now()
		if undo {
			u.DisabledAt = 0
		}
		if err := tx.SaveUser(ctx, u); err != nil {
			return err
		}
		return tx.DeleteSessions(ctx, u.ID, 0)
	})
}

// SetOperator says whether an account operates this server.
func (d *Authority) SetOperator(ctx context.Context, userID int64, is bool) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.SetOperator(ctx, userID, is) })
}

// FirstOperator makes the server's first account, if it has this address, its operator where there is none.
func (d *Authority) FirstOperator(ctx context.Context, email string) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.FirstOperator(ctx, email) })
}

// SetPlan gives a user a plan. By doing so the operator vouches for the account.
func (d *Authority) SetPlan(ctx context.Context, userID int64, plan string) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err := tx.User(ctx, userID)
		if err != nil {
			return err
		}
		u.Plan = plan
		if err := tx.ByOperator(ctx, userID); err != nil {
			return err
		}
		return tx.SaveUser(ctx, u)
	})
}

// Credit gives a user money by a reference, once (given): the same one a second time gives nothing.
func (d *Authority) Credit(ctx context.Context, userID int64, amount parley.Money,
	reference string) (after *parley.User, given bool, err error) {
	err = d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		given, err = tx.Post(ctx, userID, &parley.LedgerEntry{Kind: parley.Credit, Amount: amount,
			Reference: reference, Description: "Credit by the operator"})
		if err != nil {
			return err
		}
		after, err = tx.User(ctx, userID)
		return err
	})
	return after, given, err
}
