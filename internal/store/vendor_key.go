package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const vendorKeyNotFound = "There is no key of this provider."

// secretOf names what a vendor's key is sealed as: it can't be moved to another user, or another vendor.
func secretOf(k *parley.VendorKey) string { return fmt.Sprintf("vendor key %d %s", k.UserID, k.Vendor) }

// VendorSecret is a vendor's key in plain.
func (q Query) VendorSecret(k *parley.VendorKey) (string, error) {
	plain, err := q.box.open(secretOf(k), k.Sealed)
	return string(plain), err
}

// VendorRevision is the revision of the latest change of a vendor's key, by any node.
func (q Query) VendorRevision(ctx context.Context) (n int64, err error) {
	err = q.q.NewRaw("SELECT revision FROM vendor_clock WHERE id = 1").Scan(ctx, &n)
	return n, err
}

// AllVendorKeys are the keys of vendors that changed after a revision, those of the server and of all users; removed
// ones are among them.
func (q Query) AllVendorKeys(ctx context.Context, after int64) (list []parley.VendorKey, err error) {
	err = q.q.NewSelect().Model(&list).Where("revision > ?", after).Order("revision").Scan(ctx)
	return list, err
}

// AccountVoices are the voices in a user's accounts at vendors, those included that are gone.
func (q Query) AccountVoices(ctx context.Context, userID int64) (list []parley.AccountVoice, err error) {
	err = q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("number").Scan(ctx)
	return list, err
}

// nextVendorRevision makes changes of vendors' keys wait for each other, and numbers them.
func (tx *Tx) nextVendorRevision(ctx context.Context) (n int64, err error) {
	err = tx.q.NewRaw("UPDATE vendor_clock SET revision = revision + 1 WHERE id = 1 RETURNING revision").Scan(ctx, &n)
	return n, err
}

// SaveVendorKey stores a vendor's key of a user (0: of the server) in the place of a former one: the secret sealed, and
// of the rest BaseURL, Models and what a test found.
func (tx *Tx) SaveVendorKey(ctx context.Context, userID int64, k *parley.VendorKey, secret string) error {
	n, err := tx.nextVendorRevision(ctx)
	if err != nil {
		return err
	}
	k.UserID, k.Revision, k.CreatedAt, k.Hint = userID, n, parley.Now(), hint(secret)
	k.UpdatedAt = k.CreatedAt
	k.Sealed = tx.box.seal(secretOf(k), []byte(secret))
	_, err = tx.q.NewInsert().Model(k).On("CONFLICT (user_id, vendor) DO UPDATE").
		Set(`sealed = excluded.sealed, hint = excluded.hint, base_url = excluded.base_url, models = excluded.models, state = excluded.state,
			reason = excluded.reason, checked_at = excluded.checked_at, created_at = excluded.created_at,
			updated_at = excluded.updated_at, revision = excluded.revision`).Exec(ctx)
	return tx.changed(userID, parley.AuditProvider, k.Vendor, providerName(userID), err, "key")
}

// providerName tells the server's key of a vendor from an account's own in the audit log.
func providerName(userID int64) string {
	if userID == 0 {
		return "the server's"
	}
	return ""
}

// hint is what is shown of a key: its end, as long as most of it stays unknown.
func hint(secret string) string {
	const shown, atLeast = 4, 12
	if utf8.RuneCountInString(secret) < atLeast {
		return ""
	}
	return secret[len(secret)-shown:]
}

// CheckedVendorKey notes what a test of a stored key found; nothing if the key was changed meanwhile.
func (tx *Tx) CheckedVendorKey(ctx context.Context, userID int64, k *parley.VendorKey) error {
	n, err := tx.nextVendorRevision(ctx)
	if err != nil {
		return err
	}
	_, err = tx.q.NewUpdate().Model(k).Set("state = ?, reason = ?, checked_at = ?, models = ?, revision = ?",
		k.State, k.Reason, parley.Now(), k.Models, n).Where("user_id = ? AND vendor = ? AND sealed = ?", userID, k.Vendor, k.Sealed).Exec(ctx)
	return err
}

// DeleteVendorKey removes a vendor's key.
func (tx *Tx) DeleteVendorKey(ctx context.Context, userID int64, vendor string) error {
	n, err := tx.nextVendorRevision(ctx)
	if err != nil {
		return err
	}
	res, err := tx.q.NewUpdate().Model((*parley.VendorKey)(nil)).
		Set("sealed = NULL, hint = '', base_url = '', models = '', state = ?, reason = '', updated_at = ?, revision = ?",
			parley.KeyUntested, parley.Now(), n).
		Where("user_id = ? AND vendor = ? AND sealed IS NOT NULL", userID, vendor).Exec(ctx)
	if err = one(res, err, vendorKeyNotFound); err == nil {
		tx.enter(userID, parley.AuditDeleted, thing{parley.AuditProvider, vendor}, providerName(userID), []parley.AuditChange{})
	}
	return err
}

// KeepAccountVoices stores which voices a user's account at a vendor has now. One that was there before keeps its
// number, and one that is no longer there may come back to it.
func (tx *Tx) KeepAccountVoices(ctx context.Context, userID int64, vendor string, list []parley.AccountVoice) error {
	codes := make([]string, 0, len(list))
	for i := range list {
		v := &list[i]
		v.Number, v.UserID, v.Vendor, v.Gone = 0, userID, vendor, false
		codes = append(codes, v.Code)
	}
	gone := tx.q.NewUpdate().Model((*parley.AccountVoice)(nil)).Set("gone = TRUE").
		Where("user_id = ? AND vendor = ?", userID, vendor)
	if len(codes) > 0 {
		gone.Where("code NOT IN (?)", bun.List(codes))
	}
	if _, err := gone.Exec(ctx); err != nil || len(list) == 0 {
		return err
	}
	_, err := tx.q.NewInsert().Model(&list).ExcludeColumn("number").On("CONFLICT (user_id, vendor, code) DO UPDATE").
		Set(`name = excluded.name, languages = excluded.languages, gender = excluded.gender,
			accent = excluded.accent, age = excluded.age, gone = FALSE`).Returning("NULL").Exec(ctx)
	return err
}

// SetOperator says whether an account operates this server.
func (tx *Tx) SetOperator(ctx context.Context, userID int64, is bool) error {
	res, err := tx.q.NewRaw("UPDATE users SET operator = ?, updated_at = ? WHERE id = ?", is, parley.Now(), userID).Exec(ctx)
	return tx.changed(userID, parley.AuditAccount, "", "", one(res, err, "User not found"), "operator")
}

// FirstOperator makes the account with an address the server's operator, if it is the server's first, and there is no
// operator yet: servers of former versions knew none.
func (tx *Tx) FirstOperator(ctx context.Context, email string) error {
	var first parley.User
	err := tx.q.NewSelect().Model(&first).Order("id").Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil || first.Operator || first.Email != email {
		return err
	}
	any, err := tx.q.NewSelect().Model((*parley.User)(nil)).Where("operator").Exists(ctx)
	if err != nil || any {
		return err
	}
	return tx.SetOperator(ctx, first.ID, true)
}
