package store

import (
	"context"

	"parley"
)

// limit is something that a plan limits.
type limit struct {
	name  string // in the prices file
	words string // for people
	count string // how many the user has; one ? for the user's id
	// made so often that those who make one don't wait for each other: a few more than the limit may come of it
	loose bool
}

var (
	campaignLimit = limit{"campaigns", "campaigns",
		"SELECT count(*) FROM campaigns WHERE user_id = ? AND deleted_at = 0", false}
	toolLimit      = limit{"tools", "tools", "SELECT count(*) FROM tools WHERE user_id = ?", false}
	assistantLimit = limit{"assistants", "assistants",
		"SELECT count(*) FROM assistants WHERE user_id = ? AND deleted_at = 0", false}
	knowledgebaseLimit = limit{"knowledgebases", "knowledgebases",
		"SELECT count(*) FROM knowledgebases WHERE user_id = ? AND deleted_at = 0", false}
	documentLimit = limit{"documents", "documents", `SELECT count(*) FROM documents WHERE deleted_at = 0
		AND knowledgebase_id IN (SELECT id FROM knowledgebases WHERE user_id = ? AND deleted_at = 0)`, false}
	fileLimit = limit{"document_mb", "MB of documents", `SELECT coalesce(sum(size), 0) FROM documents WHERE deleted_at = 0
		AND knowledgebase_id IN (SELECT id FROM knowledgebases WHERE user_id = ? AND deleted_at = 0)`, false}
	numberLimit = limit{"numbers", "phone numbers", `SELECT (SELECT count(*) FROM numbers WHERE user_id = o.id AND type <> 'sip') +
		(SELECT count(*) FROM number_orders WHERE user_id = o.id AND NOT cancelled) FROM users o WHERE o.id = ?`, false}
	trunkLimit     = limit{"trunks", "SIP trunks", "SELECT count(*) FROM trunks WHERE user_id = ?", false}
	leadLimit      = limit{"leads", "leads", "SELECT count(*) FROM leads WHERE user_id = ?", true}
	blacklistLimit = limit{"blacklist", "numbers on the blacklist",
		"SELECT count(*) FROM blacklist WHERE user_id = ?", false}
	keyLimit = limit{"api_keys", "API keys", "SELECT count(*) FROM keys WHERE user_id = ? AND kind = 'api'",
		false}
)

const mega = 1 << 20

// room refuses to make n more of something than the account's plan allows. Those who make things of one user wait for
// each other.
func (tx *Tx) room(ctx context.Context, userID int64, l limit, n int64) error {
	if tx.rules.Plan == nil || n == 0 {
		return nil
	}
	if !l.loose {
		if err := tx.LockUser(ctx, userID); err != nil {
			return err
		}
	}
	most, has, err := tx.used(ctx, userID, l)
	if err != nil {
		return err
	}
	unit := int64(1)
	if l.name == fileLimit.name {
		unit = mega
	}
	if has+n > most*unit {
		return tx.beyond(most, l)
	}
	return nil
}

// beyond is the refusal of what a plan does not allow.
func (tx *Tx) beyond(most int64, l limit) error {
	return parley.Errorf(parley.Forbidden, "Your plan allows %d %s. Delete what you no longer need, or ask the operator of this server for a larger plan.", most, l.words)
}

// RoomForLeads says how many more leads the user's plan allows.
func (tx *Tx) RoomForLeads(ctx context.Context, userID int64) (int64, error) {
	if tx.rules.Plan == nil {
		return 1 << 40, nil
	}
	most, has, err := tx.used(ctx, userID, leadLimit)
	return max(0, most-has), err
}

// used is a limit of the user's plan, and how much of it is used.
func (tx *Tx) used(ctx context.Context, userID int64, l limit) (most, has int64, err error) {
	var plan string
	err = tx.q.NewRaw("SELECT plan, ("+l.count+") FROM users WHERE id = ?", userID, userID).Scan(ctx, &plan, &has)
	if err != nil {
		return 0, 0, notFound(err, "User not found")
	}
	return tx.allows(plan, l.name), has, nil
}

// allows is a limit of a plan.
func (tx *Tx) allows(plan, limit string) int64 {
	p := tx.rules.Plan(plan)
	return int64(*p.Limits()[limit])
}

// paidFor refuses what costs the operator something to accounts that made themselves and have had no credit yet.
func (tx *Tx) paidFor(ctx context.Context, userID int64) error {
	var signedUp parley.Time
	err := tx.q.NewRaw("SELECT signed_up_at FROM users WHERE id = ?", userID).Scan(ctx, &signedUp)
	if err == nil && signedUp > 0 {
		err = parley.Errorf(parley.Payment, "This account has had no credit yet: add some before you rent or verify phone numbers.")
	}
	return notFound(err, "User not found")
}

// CountDay counts something to a time's day, and refuses it where the plan allows no more. A refusal is not counted,
// since its transaction fails.
func (tx *Tx) CountDay(ctx context.Context, userID int64, name, words string, at parley.Time) error {
	if tx.rules.Plan == nil {
		return nil
	}
	var plan string
	if err := tx.q.NewRaw("SELECT plan FROM users WHERE id = ?", userID).Scan(ctx, &plan); err != nil {
		return notFound(err, "User not found")
	}
	var n int64
	err := tx.q.NewRaw(`INSERT INTO day_counts (user_id, name, day, n) VALUES (?, ?, ?, 1) ON CONFLICT (user_id, name) DO UPDATE
		SET n = CASE WHEN day_counts.day >= excluded.day THEN day_counts.n ELSE 0 END + 1,
		day = CASE WHEN day_counts.day >= excluded.day THEN day_counts.day ELSE excluded.day END RETURNING n`,
		userID, name, day(at)).Scan(ctx, &n)
	if most := tx.allows(plan, name); err == nil && n > most {
		err = parley.Errorf(parley.Forbidden, "Your plan allows %d %s a day (UTC). Go on tomorrow, or ask the operator of this server for a larger plan.", most, words)
	}
	return err
}

// EnqueueTest has a made-up event delivered, as often a day as the user's plan allows: each costs the server a
// request and a row.
func (tx *Tx) EnqueueTest(ctx context.Context, userID int64, d *parley.Delivery) error {
	if err := tx.CountDay(ctx, userID, "webhook_tests", "test webhooks", parley.Now()); err != nil {
		return err
	}
	return tx.EnqueueDelivery(ctx, userID, d)
}
