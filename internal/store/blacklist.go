package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Blacklist are the numbers that none of the user's campaigns calls, newest first.
func (q Query) Blacklist(ctx context.Context, userID int64) ([]parley.BlacklistEntry, error) {
	list := []parley.BlacklistEntry{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("id DESC").Scan(ctx)
	return list, err
}

// BlacklistPage is a page of Blacklist.
func (q Query) BlacklistPage(ctx context.Context, userID int64, p Page) ([]parley.BlacklistEntry, int, error) {
	list := []parley.BlacklistEntry{}
	total, err := page(ctx, q.q.NewSelect().Model(&list).Where("user_id = ?", userID), p, "id DESC")
	return list, total, err
}

// Blacklisted says which of some numbers are on the user's blacklist.
func (q Query) Blacklisted(ctx context.Context, userID int64, numbers []string) (map[string]bool, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	var found []string
	err := q.q.NewRaw("SELECT phone_number FROM blacklist WHERE user_id = ? AND phone_number IN (?)", userID,
		bun.List(numbers)).Scan(ctx, &found)
	on := make(map[string]bool, len(found))
	for _, n := range found {
		on[n] = true
	}
	return on, err
}

// AddToBlacklist keeps the user's campaigns from calling a number. Leads that wait with it, also those that a node is
// about to call, wait no more: what was claimed meanwhile is found out when it is to be dialled.
func (tx *Tx) AddToBlacklist(ctx context.Context, userID int64, number string) (*parley.BlacklistEntry, error) {
	if err := tx.room(ctx, userID, blacklistLimit, 1); err != nil {
		return nil, err
	}
	now := parley.Now()
	e := &parley.BlacklistEntry{UserID: userID, PhoneNumber: number, CreatedAt: parley.DateTime(now)}
	_, err := tx.q.NewInsert().Model(e).Exec(ctx)
	if violates(err, "blacklist.user_id, blacklist.phone_number", "blacklist_user_id_phone_number_key") {
		return nil, parley.Fields{{Name: "phone_number",
			Messages: []string{"The phone_number is on the blacklist already."}}}.Err()
	}
	if err != nil {
		return nil, err
	}
	_, err = tx.q.NewRaw(`UPDATE leads SET `+leadBlock.set+`, due_at = 0, next_attempt_at = 0, owner = '', updated_at = ?
		WHERE user_id = ? AND phone_number = ? AND due_at > 0 AND contacts IS NULL AND `+leadBlock.from,
		now, userID, number).Exec(ctx)
	if err != nil {
		return nil, err
	}
	// A lead with further numbers goes on with those when its turn comes; what a node is about to call waits again.
	_, err = tx.q.NewRaw(`UPDATE leads SET `+leadGiveUp.set+`, due_at = ?, owner = ''
		WHERE user_id = ? AND `+leadGiveUp.from+` AND contacts IS NOT NULL AND (phone_number = ? OR CAST(contacts AS TEXT) LIKE ?)`,
		now, userID, number, `%"`+number+`"%`).Exec(ctx)
	return e, tx.note(userID, parley.AuditCreated, parley.AuditBlacklist, e.ID, nil, err)
}

// DropFromBlacklist takes a number off the user's blacklist. Leads that it stopped stay stopped until somebody resets
// them.
func (tx *Tx) DropFromBlacklist(ctx context.Context, userID, id int64) error {
	res, err := tx.q.NewRaw("DELETE FROM blacklist WHERE id = ? AND user_id = ?", id, userID).Exec(ctx)
	return tx.note(userID, parley.AuditDeleted, parley.AuditBlacklist, id, nil, one(res, err, "Blacklist entry not found"))
}
