package store

import (
	"context"

	"parley/internal/parley"
)

// User is one account.
func (q Query) User(ctx context.Context, id int64) (*parley.User, error) {
	u := new(parley.User)
	err := q.q.NewSelect().Model(u).Where("id = ?", id).Scan(ctx)
	return u, notFound(err, "User not found")
}

// UserByEmail is the account with that address (lower case), also when it is disabled.
func (q Query) UserByEmail(ctx context.Context, email string) (*parley.User, error) {
	u := new(parley.User)
	err := q.q.NewSelect().Model(u).Where("email = ?", email).Scan(ctx)
	return u, notFound(err, "no user has the email address "+email)
}

// Users are all accounts, oldest first: the operator's list.
func (q Query) Users(ctx context.Context) (list []parley.User, err error) {
	err = q.q.NewSelect().Model(&list).Order("id").Scan(ctx)
	return list, err
}

// AnyUser says whether there is an account yet.
func (q Query) AnyUser(ctx context.Context) (bool, error) {
	return q.q.NewSelect().Model((*parley.User)(nil)).Exists(ctx)
}

// User is an account.
func (tx *Tx) User(ctx context.Context, id int64) (*parley.User, error) {
	u, err := tx.Query.User(ctx, id)
	return u, tx.saw(parley.AuditAccount, "", u, err)
}

// CreateUser stores a new account and gives it its id. Its balance starts at 0: money comes by Post.
func (tx *Tx) CreateUser(ctx context.Context, u *parley.User) error {
	if err := tx.emailFree(ctx, u.Email, u.EmailProvenAt > 0, 0); err != nil {
		return err
	}
	u.CreatedAt = parley.Now()
	u.UpdatedAt = u.CreatedAt
	u.Balance = 0
	if u.Country == "" {
		u.Country = parley.ZoneCountry(u.Timezone)
	}
	_, err := tx.q.NewInsert().Model(u).Exec(ctx)
	return tx.note(u.ID, parley.AuditCreated, parley.AuditAccount, "", u, emailOnce(err))
}

var errEmailTaken = parley.Fields{{Name: "email", Messages: []string{"The email has already been taken."}}}.Err()

func emailOnce(err error) error {
	if violates(err, "users.email", "users_email_key", "members.email", "members_email_key") {
		return errEmailTaken
	}
	return err
}

// SaveUser stores what an operator or the user may change: everything but the balance, and who operates the server.
func (tx *Tx) SaveUser(ctx context.Context, u *parley.User) error {
	if err := tx.emailFree(ctx, u.Email, u.EmailProvenAt > 0, u.ID); err != nil {
		return err
	}
	u.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(u).ExcludeColumn("id", "balance", "created_at",
		"signed_up_at", "operator").WherePK().Exec(ctx)
	return tx.note(u.ID, parley.AuditChanged, parley.AuditAccount, "", u, one(res, emailOnce(err), "User not found"))
}

// SettleZone gives an account a time zone, and a country if it has none, if nobody has chosen its zone.
func (tx *Tx) SettleZone(ctx context.Context, userID int64, zone string) (bool, error) {
	return some(tx.q.NewRaw(`UPDATE users SET timezone = ?, country = CASE WHEN country = '' THEN ? ELSE country END, zone_assumed = FALSE
		WHERE id = ? AND zone_assumed`, zone, parley.ZoneCountry(zone), userID).Exec(ctx))
}

// ByOperator notes that the operator has looked at an account: it is no longer one that only made itself.
func (tx *Tx) ByOperator(ctx context.Context, userID int64) error {
	_, err := tx.q.NewRaw("UPDATE users SET signed_up_at = 0 WHERE id = ?", userID).Exec(ctx)
	return err
}

// LockUser makes transactions that count a user's things before they add one wait for each other.
func (tx *Tx) LockUser(ctx context.Context, userID int64) error {
	if tx.sqlite {
		return nil
	}
	_, err := tx.q.NewRaw("SELECT 1 FROM users WHERE id = ? FOR UPDATE", userID).Exec(ctx)
	return err
}
