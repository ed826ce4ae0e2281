package store

import (
	"context"
	"time"

	"parley/internal/parley"
)

// limit is something of which an account may store so much: a row of parley.Limits, and how it is counted.
type limit struct {
	name  string // in parley.Limits
	count string // how many the user has; one ? for the user's id
	// made so often that those who make one don't wait for each other: a few more than the limit may come of it
	loose bool
}

var (
	campaignLimit = limit{"campaigns",
		"SELECT count(*) FROM campaigns WHERE user_id = ? AND deleted_at = 0", false}
	toolLimit      = limit{"tools", "SELECT count(*) FROM tools WHERE user_id = ?", false}
	assistantLimit = limit{"assistants",
		"SELECT count(*) FROM assistants WHERE user_id = ? AND deleted_at = 0", false}
	knowledgebaseLimit = limit{"knowledgebases",
		"SELECT count(*) FROM knowledgebases WHERE user_id = ? AND deleted_at = 0", false}
	documentLimit = limit{"documents", `SELECT count(*) FROM documents WHERE deleted_at = 0
		AND knowledgebase_id IN (SELECT id FROM knowledgebases WHERE user_id = ? AND deleted_at = 0)`, false}
	fileLimit = limit{"document_mb", `SELECT coalesce(sum(size), 0) FROM documents WHERE deleted_at = 0
		AND knowledgebase_id IN (SELECT id FROM knowledgebases WHERE user_id = ? AND deleted_at = 0)`, false}
	numberLimit = limit{"numbers", `SELECT (SELECT count(*) FROM numbers WHERE user_id = o.id AND type <> 'sip') +
		(SELECT count(*) FROM number_orders WHERE user_id = o.id AND NOT cancelled) FROM users o WHERE o.id = ?`, false}
	folderLimit    = limit{"folders", "SELECT count(*) FROM assistant_groups WHERE user_id = ? AND kind = 'folder'", false}
	labelLimit     = limit{"labels", "SELECT count(*) FROM assistant_groups WHERE user_id = ? AND kind = 'label'", false}
	trunkLimit     = limit{"trunks", "SELECT count(*) FROM trunks WHERE user_id = ?", false}
	leadLimit      = limit{"leads", "SELECT count(*) FROM leads WHERE user_id = ?", true}
	blacklistLimit = limit{"blacklist", "SELECT count(*) FROM blacklist WHERE user_id = ?", false}
	keyLimit       = limit{"api_keys", "SELECT count(*) FROM keys WHERE user_id = ? AND kind = 'api'", false}
	testLimit      = limit{"tests", "SELECT count(*) FROM tests WHERE user_id = ?", false}
	answerLimit    = limit{"canned_answers", "SELECT count(*) FROM canned_answers WHERE user_id = ?", false}
	filterLimit    = limit{"saved_filters", "SELECT count(*) FROM saved_filters WHERE user_id = ?", false}
	alertLimit     = limit{"alerts", "SELECT count(*) FROM alerts WHERE user_id = ?", false}
	endpointLimit  = limit{"endpoints", "SELECT count(*) FROM endpoints WHERE user_id = ?", false}
	memberLimit    = limit{"members", `SELECT (SELECT count(*) FROM members WHERE user_id = o.id) +
		(SELECT count(*) FROM invitations WHERE user_id = o.id) FROM users o WHERE o.id = ?`, false}
	callLimit = limit{"parallel_calls", "SELECT count(*) FROM calls WHERE user_id = ? AND ended_at = 0", true}
)

// kept are the limits of which the use is told.
var kept = []limit{assistantLimit, toolLimit, testLimit, knowledgebaseLimit, documentLimit, fileLimit, storedLimit, numberLimit, trunkLimit,
	campaignLimit, leadLimit, blacklistLimit, keyLimit, memberLimit, alertLimit, endpointLimit, answerLimit, filterLimit, folderLimit,
	labelLimit, callLimit}

const mega = 1 << 20

// unit is in how much of what is counted the limit is written.
func (l limit) unit() int64 {
	if l.name == fileLimit.name || l.name == storedLimit.name {
		return mega
	}
	return 1
}

// room refuses to make n more of something than the account may have. Those who make things of one user wait for each
// other.
func (tx *Tx) room(ctx context.Context, userID int64, l limit, n int64) error {
	row := parley.LimitNamed(l.name)
	if row.OfPlan() && tx.rules.Plan == nil || n == 0 {
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
	if has+n > most*l.unit() {
		return row.Refuse(most, 0)
	}
	return nil
}

// RoomForLeads says how many more leads the user's plan allows.
func (tx *Tx) RoomForLeads(ctx context.Context, userID int64) (int64, error) {
	if tx.rules.Plan == nil {
		return 1 << 40, nil
	}
	most, has, err := tx.used(ctx, userID, leadLimit)
	return max(0, most-has), err
}

// used is a limit of the user's, and how much of it is used.
func (tx *Tx) used(ctx context.Context, userID int64, l limit) (most, has int64, err error) {
	var plan string
	err = tx.q.NewRaw("SELECT plan, ("+l.count+") FROM users WHERE id = ?", userID, userID).Scan(ctx, &plan, &has)
	if err != nil {
		return 0, 0, notFound(err, "User not found")
	}
	return tx.rules.allow(plan, parley.LimitNamed(l.name)), has, nil
}

// allow is how much of something accounts of a plan may have.
func (r Rules) allow(plan string, l parley.Limit) int64 {
	if r.Plan == nil {
		return l.Most
	}
	return l.Of(r.Plan(plan))
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

// spanAt is the number of the day or minute that a time is in, and after how many seconds the next one begins.
func spanAt(s parley.LimitSpan, at parley.Time) (number int64, seconds int) {
	length := 24 * time.Hour
	if s == parley.PerMinute {
		length = time.Minute
	}
	number = int64(at) / length.Microseconds()
	left := time.Duration((number+1)*length.Microseconds()-int64(at)) * time.Microsecond
	return number, int((left + time.Second - 1) / time.Second)
}

// Meter counts one thing to a time's day or minute, for each limit that is named, and refuses it where one of them allows
// no more. A refusal is not counted, since its transaction fails.
func (tx *Tx) Meter(ctx context.Context, userID int64, at parley.Time, names ...string) error {
	var plan string
	if err := tx.q.NewRaw("SELECT plan FROM users WHERE id = ?", userID).Scan(ctx, &plan); err != nil {
		return notFound(err, "User not found")
	}
	for _, name := range names {
		row := parley.LimitNamed(name)
		if row.OfPlan() && tx.rules.Plan == nil {
			continue
		}
		n, err := tx.count(ctx, userID, row, 1, at)
		if err != nil {
			return err
		}
		if most := tx.rules.allow(plan, row); n > most {
			_, seconds := spanAt(row.Span, at)
			return row.Refuse(most, seconds)
		}
	}
	return nil
}

// count adds to what is counted in a time's day or minute, and returns the sum.
func (tx *Tx) count(ctx context.Context, userID int64, l parley.Limit, add int64, at parley.Time) (sum int64, err error) {
	number, _ := spanAt(l.Span, at)
	err = tx.q.NewRaw(`INSERT INTO day_counts (user_id, name, day, n) VALUES (?, ?, ?, ?) ON CONFLICT (user_id, name) DO UPDATE
		SET n = CASE WHEN day_counts.day >= excluded.day THEN day_counts.n ELSE 0 END + excluded.n,
		day = CASE WHEN day_counts.day >= excluded.day THEN day_counts.day ELSE excluded.day END RETURNING n`,
		userID, l.Name, number, add).Scan(ctx, &sum)
	return sum, err
}

// TakeDay takes at most n of what is left of a limit in a time's day, and returns how much that is. It refuses where
// nothing is left. What turns out not to be needed is given back by GiveDay.
func (tx *Tx) TakeDay(ctx context.Context, userID int64, name string, n int64, at parley.Time) (taken int64, err error) {
	if tx.rules.Plan == nil {
		return n, nil
	}
	if err := tx.LockUser(ctx, userID); err != nil {
		return 0, err
	}
	var plan string
	if err := tx.q.NewRaw("SELECT plan FROM users WHERE id = ?", userID).Scan(ctx, &plan); err != nil {
		return 0, notFound(err, "User not found")
	}
	row := parley.LimitNamed(name)
	has, err := tx.count(ctx, userID, row, 0, at)
	if err != nil {
		return 0, err
	}
	most := tx.rules.allow(plan, row)
	if taken = min(n, most-has); taken <= 0 {
		return 0, row.Refuse(most, 0)
	}
	_, err = tx.count(ctx, userID, row, taken, at)
	return taken, err
}

// GiveDay gives back what was taken in a time's day and not used. What was taken on a day before counts no more.
func (tx *Tx) GiveDay(ctx context.Context, userID int64, name string, n int64, at parley.Time) error {
	if tx.rules.Plan == nil || n <= 0 {
		return nil
	}
	_, err := tx.q.NewRaw("UPDATE day_counts SET n = CASE WHEN n > ? THEN n - ? ELSE 0 END WHERE user_id = ? AND name = ? AND day = ?",
		n, n, userID, name, day(at)).Exec(ctx)
	return err
}

// EnqueueTest has a made-up event delivered, as often a day as the user's plan allows: each costs the server a
// request and a row.
func (tx *Tx) EnqueueTest(ctx context.Context, userID int64, d *parley.Delivery) error {
	if err := tx.Meter(ctx, userID, parley.Now(), "webhook_tests"); err != nil {
		return err
	}
	return tx.EnqueueDelivery(ctx, userID, d)
}

// Limits are the limits of an account, in the order of the table, with how much of them is used at a time where that is
// known.
func (q Query) Limits(ctx context.Context, userID int64, at parley.Time) ([]parley.LimitUse, error) {
	u, err := q.User(ctx, userID)
	if err != nil {
		return nil, err
	}
	used := map[string]int64{}
	for _, l := range kept {
		var n int64
		if err := q.q.NewRaw(l.count, userID).Scan(ctx, &n); err != nil {
			return nil, err
		}
		used[l.name] = (n + l.unit() - 1) / l.unit()
	}
	var counts []struct {
		Name   string
		Day, N int64
	}
	if err := q.q.NewRaw("SELECT name, day, n FROM day_counts WHERE user_id = ?", userID).Scan(ctx, &counts); err != nil {
		return nil, err
	}
	for _, l := range parley.Limits {
		if l.Counted() {
			used[l.Name] = 0
		}
	}
	for _, c := range counts {
		if _, known := used[c.Name]; !known { // of a former version
			continue
		}
		if number, _ := spanAt(parley.LimitNamed(c.Name).Span, at); c.Day >= number {
			used[c.Name] = c.N
		}
	}
	list := make([]parley.LimitUse, len(parley.Limits))
	for i, l := range parley.Limits {
		list[i] = parley.LimitUse{Limit: l, Most: q.rules.allow(u.Plan, l)}
		if n, known := used[l.Name]; known {
			list[i].Used = &n
		}
	}
	return list, nil
}
