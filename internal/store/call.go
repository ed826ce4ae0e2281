package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const callNotFound = "Call not found"

// calls reads calls with the names that they show.
func (q Query) calls(model any) *bun.SelectQuery {
	return q.q.NewSelect().Model(model).ModelTableExpr("calls AS c").ColumnExpr("c.*").ColumnExpr(
		"a.name AS assistant_name, p.name AS campaign_name").
		Join("JOIN assistants AS a ON a.id = c.assistant_id").Join("LEFT JOIN campaigns AS p ON p.id = c.campaign_id")
}

// Call is one of the user's calls.
func (q Query) Call(ctx context.Context, userID, id int64) (*parley.Call, error) {
	c := new(parley.Call)
	err := q.calls(c).Where("c.id = ? AND c.user_id = ?", id, userID).Scan(ctx)
	return c, notFound(err, callNotFound)
}

// RecordedCall is the call with that id, whoever has it: for links to recordings, whose signature is the proof, and
// for files that a process has left behind.
func (q Query) RecordedCall(ctx context.Context, id int64) (*parley.Call, error) {
	c := new(parley.Call)
	err := q.calls(c).Where("c.id = ?", id).Scan(ctx)
	return c, notFound(err, callNotFound)
}

// CallForUpdate is the call with that id, kept from others until the transaction ends: what has a call, or ends it,
// knows no user.
func (tx *Tx) CallForUpdate(ctx context.Context, id int64) (*parley.Call, error) {
	c := new(parley.Call)
	err := tx.lock(tx.calls(c).Where("c.id = ?", id), "UPDATE OF c").Scan(ctx)
	return c, notFound(err, callNotFound)
}

// CallMinutes is how some calls went.
type CallMinutes struct {
	Calls    int64 `json:"calls"`
	Answered int64 `json:"answered"`
	Seconds  int64 `json:"seconds" doc:"Of talk."`
	Started  int64 `json:"started_minutes" doc:"Of talk."`
}

// LastCalls is how an assistant's last outgoing calls went, at most so many. Tests don't count, nor do calls that failed:
// they speak of the line.
func (q Query) LastCalls(ctx context.Context, userID, assistantID int64, most int) (m CallMinutes, err error) {
	err = q.q.NewRaw(`SELECT count(*) AS calls, count(CASE WHEN duration > 0 THEN 1 END) AS answered,
		CAST(coalesce(sum(duration), 0) AS BIGINT) AS seconds, CAST(coalesce(sum((duration + 59) / 60), 0) AS BIGINT) AS started
		FROM (SELECT duration FROM calls WHERE user_id = ? AND assistant_id = ? AND type = 'outbound' AND NOT test
			AND status IN ('completed', 'busy', 'no-answer') ORDER BY id DESC LIMIT ?) AS last`, userID, assistantID, most).Scan(ctx, &m)
	return m, err
}

// AttemptCall is the call of an attempt at a lead of the user's.
func (q Query) AttemptCall(ctx context.Context, userID, leadID int64, attempt int) (*parley.Call, error) {
	c := new(parley.Call)
	err := q.calls(c).Where("c.lead_id = ? AND c.attempt = ? AND c.user_id = ?", leadID, attempt, userID).Scan(ctx)
	return c, notFound(err, callNotFound)
}

// CallFilter narrows a list; zero values don't.
type CallFilter struct {
	Status                  parley.CallStatus
	Type                    parley.CallType
	Phone                   string // the customer's
	AssistantID, CampaignID int64
	NumberID                int64              // of ours
	Reason, HungUp          parley.EndedReason // HungUp: beside Reason, who hung up
	Answerer                string             // see parley.Call.Judge
	Sentiment, Outcome      string
	SlowerThan              int64       // milliseconds, of its slowest reply
	Test                    *bool       // tests alone, or none
	Words                   []string    // tokens of its transcript; see search.Query
	From, To                parley.Time // To is exclusive
}

// narrow is the filter as conditions, but for the words. unindexed precedes columns whose index is not to be used.
func (f *CallFilter) narrow(ids *bun.SelectQuery, userID int64, unindexed string) {
	only(ids, "status", f.Status)
	only(ids, "type", f.Type)
	only(ids, "customer_phone", f.Phone)
	only(ids, "assistant_id", f.AssistantID)
	only(ids, "campaign_id", f.CampaignID)
	only(ids, "number_id", f.NumberID)
	only(ids, "ended_reason", f.Reason)
	only(ids, "ended_reason", f.HungUp)
	only(ids, "answerer", f.Answerer)
	only(ids, "sentiment", f.Sentiment)
	only(ids, "outcome", f.Outcome)
	if f.SlowerThan > 0 {
		ids.Where("? > ?", bun.Safe(unindexed+"slowest_ms"), f.SlowerThan)
	}
	switch { // few are tests, which an index of their own finds
	case f.Test != nil && *f.Test:
		ids.Where("test")
	case f.Test != nil:
		ids.Where("id NOT IN (SELECT id FROM calls WHERE user_id = ? AND test)", userID)
	}
	inTime(ids, unindexed+"created_at", f.From, f.To)
}

// Calls is a page of the user's calls, newest first.
func (q Query) Calls(ctx context.Context, userID int64, f CallFilter, p Page) ([]parley.Call, int, error) {
	list := []parley.Call{}
	ids := q.q.NewSelect().TableExpr("calls").Where("user_id = ?", userID)
	count := q.long(userID, "calls", "id", ids, func(s *bun.SelectQuery, unindexed string) { f.narrow(s, userID, unindexed) }).total
	if len(f.Words) > 0 { // calls get into the index later, which nothing watches
		q.having(ids, "id", "call_tokens", f.Words)
		count = ids.Count
	}
	total, more, err := pageOf(ctx, ids, p, "id", count)
	if err == nil && more {
		err = q.calls(&list).Where("c.id IN (?)", ids).OrderExpr("c.id DESC").Scan(ctx)
	}
	return list, total, err
}

// CreateCall stores a call that begins, or one that was refused.
func (tx *Tx) CreateCall(ctx context.Context, userID int64, c *parley.Call) error {
	c.ID, c.UserID, c.CreatedAt = 0, userID, parley.DateTime(parley.Now())
	c.UpdatedAt, c.SeenAt = c.CreatedAt, parley.Time(c.CreatedAt)
	c.Complete()
	if c.EndedAt != 0 {
		tx.countEnd(c)
	}
	_, err := tx.q.NewInsert().Model(c).Value("seen_at", "?", tx.clock()).Exec(ctx)
	return err
}

// clock is the database's time in a query, by which processes judge one another: their own clocks may be apart. The
// processes on an SQLite are on one machine, and have one.
func (q Query) clock() any {
	switch {
	case q.link != nil:
		return q.link.Clock()
	case q.sqlite:
		return parley.Now()
	}
	return bun.Safe("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
}

// Clock is the database's time, asked of the database itself: without the database there is none.
func (q Query) Clock(ctx context.Context) (now parley.Time, err error) {
	err = q.q.NewRaw("SELECT ?", q.clock()).Scan(ctx, &now)
	return now, err
}

// OpenCalls are the user's calls that are not over, newest first: no more than a page has. Tests are left out.
func (q Query) OpenCalls(ctx context.Context, userID int64, most int) ([]parley.Call, error) {
	list := []parley.Call{}
	err := q.calls(&list).Where("c.user_id = ? AND c.ended_at = 0 AND NOT c.test", userID).OrderExpr("c.id DESC").Limit(int64(most)).Scan(ctx)
	return list, err
}

// LiveCalls is how many calls of the user's are live, tests among them.
func (q Query) LiveCalls(ctx context.Context, userID int64) (n int, err error) {
	err = q.q.NewRaw("SELECT count(*) FROM calls WHERE user_id = ? AND ended_at = 0", userID).Scan(ctx, &n)
	return n, err
}

// Lines are the user's lines, with the limits of the numbers that have some.
func (q Query) Lines(ctx context.Context, userID int64) (*parley.Lines, error) {
	var rows []struct {
		ID, NumberID int64
		TakenBy      parley.CallTaker
	}
	err := q.q.NewRaw(`SELECT id, coalesce(number_id, 0) AS number_id, taken_by FROM calls WHERE user_id = ? AND ended_at = 0 ORDER BY id`,
		userID).
		Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	l := &parley.Lines{Taken: map[int64]int{}, Most: map[int64]int{}}
	for _, r := range rows {
		switch r.TakenBy {
		case parley.TakenByAssistant:
			l.Taken[r.NumberID]++
		case parley.TakenByQueue:
			l.Queue = append(l.Queue, parley.Waiter{ID: r.ID, NumberID: r.NumberID})
		default:
			l.Aside++
		}
	}
	var routed []parley.Number
	err = q.q.NewSelect().Model(&routed).Column("id", "route").Where("user_id = ? AND route IS NOT NULL", userID).Scan(ctx)
	for _, n := range routed {
		if n.Route != nil && n.Route.Lines != nil {
			l.Most[n.ID] = int(*n.Route.Lines)
		}
	}
	return l, err
}

// TakeCall has somebody else take a live call of a process from a time on; false when it is over, or another's.
func (tx *Tx) TakeCall(ctx context.Context, c *parley.Call) (bool, error) {
	return some(tx.q.NewUpdate().Model(c).Column("taken_by", "taken_at").
		Where("id = ? AND node = ? AND ended_at = 0", c.ID, c.Node).Exec(ctx))
}

func day(t parley.Time) int64 { return int64(t) / (24 * time.Hour).Microseconds() }

// Spend is what the user's outgoing calls of a time's day (UTC) cost, with what those that are live may cost.
func (q Query) Spend(ctx context.Context, userID int64, at parley.Time) (amount parley.Money, err error) {
	err = q.q.NewRaw("SELECT coalesce((SELECT amount FROM call_spend WHERE user_id = ? AND day = ?), 0)", userID,
		day(at)).Scan(ctx, &amount)
	return amount, err
}

// AddSpend counts an amount to a time's day. A former day's count is forgotten.
func (tx *Tx) AddSpend(ctx context.Context, userID int64, at parley.Time, amount parley.Money) error {
	_, err := tx.TakeSpend(ctx, userID, at, amount)
	return err
}

// TakeSpend is AddSpend, and returns the day's sum: of two that spend at the same moment, the later one sees the other.
func (tx *Tx) TakeSpend(ctx context.Context, userID int64, at parley.Time, amount parley.Money) (total parley.Money,
	err error) {
	err = tx.q.NewRaw(`INSERT INTO call_spend (user_id, day, amount) VALUES (?, ?, ?) ON CONFLICT (user_id) DO UPDATE
		SET amount = CASE WHEN call_spend.day = excluded.day THEN call_spend.amount ELSE 0 END + excluded.amount, day = excluded.day
		WHERE call_spend.day <= excluded.day RETURNING amount`, userID, day(at), amount).Scan(ctx, &total)
	if errors.Is(err, sql.ErrNoRows) { // a later day is counted already
		err = nil
	}
	return total, err
}

// CorrectSpend corrects the count of a time's day, where that is still the day that is counted.
func (tx *Tx) CorrectSpend(ctx context.Context, userID int64, at parley.Time, by parley.Money) error {
	_, err := tx.q.NewRaw("UPDATE call_spend SET amount = amount + ? WHERE user_id = ? AND day = ?", by, userID,
		day(at)).Exec(ctx)
	return err
}

// KeepCall stores how far a live call of a process is; false when it is over, or another's.
func (tx *Tx) KeepCall(ctx context.Context, c *parley.Call) (bool, error) {
	return tx.keepCall(ctx, c, "turns", "function_calls", "input_variables", "vendor_switches", "verdicts")
}

// KeepCallState is KeepCall without what was said and done.
func (tx *Tx) KeepCallState(ctx context.Context, c *parley.Call) (bool, error) {
	return tx.keepCall(ctx, c)
}

func (tx *Tx) keepCall(ctx context.Context, c *parley.Call, texts ...string) (bool, error) {
	c.UpdatedAt = parley.DateTime(parley.Now())
	c.Complete()
	return some(tx.q.NewUpdate().Model(c).Column("status", "ringing_at", "answered_at", "answered_by",
		"media", "recording_due", "updated_at").Column(texts...).
		Where("id = ? AND node = ? AND ended_at = 0", c.ID, c.Node).Exec(ctx))
}

// EndCall stores a call that has ended.
func (tx *Tx) EndCall(ctx context.Context, c *parley.Call) error {
	c.UpdatedAt = parley.DateTime(parley.Now())
	c.Complete()
	tx.countEnd(c)
	_, err := tx.q.NewUpdate().Model(c).ExcludeColumn("id", "user_id", "assistant_id", "campaign_id", "lead_id",
		"attempt", "created_at").WherePK().Exec(ctx)
	return err
}

// RenewCalls notes, by the database's clock, that a process still has some calls, and returns those of them that are
// live. The time that is charged for is counted by the process's own clock, as the answer is.
func (tx *Tx) RenewCalls(ctx context.Context, node string, ids []int64, seen parley.Time) (live []int64, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = tx.q.NewRaw("UPDATE calls SET seen_at = ?, updated_at = ? WHERE id IN (?) AND node = ? AND ended_at = 0 RETURNING id", seen,
		parley.Now(), bun.List(ids), node).Scan(ctx, &live)
	return live, err
}

// HangupCall asks for the end of one of the user's calls, whichever process has it. The error is a Conflict where it
// is over.
func (tx *Tx) HangupCall(ctx context.Context, userID, id int64) error {
	asked, err := some(tx.q.NewRaw("UPDATE calls SET hangup_at = ? WHERE id = ? AND user_id = ? AND ended_at = 0",
		parley.Now(), id, userID).Exec(ctx))
	if err != nil || asked {
		return err
	}
	if _, err := tx.Call(ctx, userID, id); err != nil {
		return err
	}
	return parley.Errorf(parley.Conflict, "The call is over already.")
}

// LostCalls are live calls of which nothing was heard since a time of the database's clock.
func (q Query) LostCalls(ctx context.Context, since parley.Time, limit int) (ids []int64, err error) {
	err = q.q.NewRaw("SELECT id FROM calls WHERE ended_at = 0 AND seen_at < ? ORDER BY id LIMIT ?", since,
		limit).Scan(ctx, &ids)
	return ids, err
}

// LockLost keeps a call from others until the transaction ends, if nothing was heard of it since a time of the database's clock.
// False: it lives or is over, or another process is closing it just now, for which nobody waits.
func (tx *Tx) LockLost(ctx context.Context, id int64, since parley.Time) (bool, error) {
	var ids []int64
	err := tx.q.NewRaw("SELECT id FROM calls WHERE id = ? AND ended_at = 0 AND seen_at < ?"+tx.skipLocked(), id, since).Scan(ctx, &ids)
	return len(ids) > 0, err
}

// ReportsDue are the users who have calls whose report is due. The index is read one step per user who has some, not per
// call.
func (q Query) ReportsDue(ctx context.Context, now parley.Time) (users []int64, err error) {
	const next = "SELECT user_id FROM calls WHERE report_due > 0 AND user_id > %s ORDER BY user_id LIMIT 1"
	err = q.q.NewRaw(`WITH RECURSIVE due (user_id) AS (
			SELECT * FROM (`+fmt.Sprintf(next, "0")+`) AS first
			UNION ALL SELECT (`+fmt.Sprintf(next, "due.user_id")+`) FROM due WHERE due.user_id IS NOT NULL
		) SELECT user_id FROM due WHERE user_id IS NOT NULL AND EXISTS (SELECT 1 FROM calls AS c
			WHERE c.user_id = due.user_id AND c.report_due > 0 AND c.report_due <= ?)`, now).Scan(ctx, &users)
	return users, err
}

// ClaimReports takes at most n of a user's calls whose report is due, until then: a report that is not made by that time
// may be claimed by another process.
func (tx *Tx) ClaimReports(ctx context.Context, userID int64, n int, now, until parley.Time) (list []parley.Call, err error) {
	err = tx.q.NewRaw(`UPDATE calls SET report_due = ?, report_tries = report_tries + 1 WHERE id IN (SELECT id FROM calls
		WHERE user_id = ? AND report_due > 0 AND report_due <= ? ORDER BY report_due, id LIMIT ?`+tx.skipLocked()+`) RETURNING *`, until, userID, now, n).Scan(ctx, &list)
	return list, err
}

// PutOffReport has a report that was claimed until then made at another time.
func (tx *Tx) PutOffReport(ctx context.Context, id int64, claimed, due parley.Time) error {
	_, err := tx.q.NewRaw("UPDATE calls SET report_due = ? WHERE id = ? AND report_due = ?", due, id, claimed).Exec(ctx)
	return err
}

// SaveReport stores what was read out of a call: its report is made.
func (tx *Tx) SaveReport(ctx context.Context, c *parley.Call) error {
	c.ReportDue, c.UpdatedAt = 0, parley.DateTime(parley.Now())
	c.Complete()
	tx.countReport(c)
	_, err := tx.q.NewUpdate().Model(c).Column("variables", "variables_notes", "evaluation", "vendor_uses", "report_due",
		"sentiment", "outcome", "counted", "updated_at").WherePK().Exec(ctx)
	return err
}

// NoRecording says that the recording that is due of a call will not come. A report that waited for it is due at once.
func (tx *Tx) NoRecording(ctx context.Context, id int64) error {
	now := parley.Now()
	_, err := tx.q.NewRaw(`UPDATE calls SET recording_due = FALSE, report_due = CASE WHEN report_due > ? AND report_tries = 0 THEN ? ELSE report_due END
		WHERE id = ? AND recording_due`, now, now, id).Exec(ctx)
	return err
}

// KeepRecording says where a call's recording is, "" where there is none after all; false when the call is gone. A
// report that waited for it is due at once.
func (tx *Tx) KeepRecording(ctx context.Context, id int64, name string, size int64) (bool, error) {
	now := parley.Now()
	return some(tx.q.NewRaw(`UPDATE calls SET recording = ?, recording_size = ?, recording_due = FALSE, updated_at = ?,
		report_due = CASE WHEN report_due > ? AND report_tries = 0 THEN ? ELSE report_due END WHERE id = ?`, name, size, now, now, now, id).Exec(ctx))
}

// DeleteCall removes one of the user's calls with its legs and its events, and returns the names of its recordings. Its
// cost stays in the ledger. The error is a Conflict while the call is live.
func (tx *Tx) DeleteCall(ctx context.Context, userID, id int64) (recordings []string, err error) {
	recordings, n, err := tx.removeCalls(ctx, "id = ? AND user_id = ? AND ended_at > 0", id, userID)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		if _, err := tx.Call(ctx, userID, id); err != nil {
			return nil, err
		}
		return nil, parley.Errorf(parley.Conflict, "The call is live: hang up first.")
	}
	_, err = tx.q.NewRaw("DELETE FROM webhook_deliveries WHERE call_id = ? AND user_id = ?", id, userID).Exec(ctx)
	return recordings, tx.note(userID, parley.AuditDeleted, parley.AuditCall, id, nil, err)
}

// removeCalls removes the calls that a condition finds, none of which is live, with their legs. It gives the names of
// their recordings, and how many calls they were.
func (tx *Tx) removeCalls(ctx context.Context, which string, args ...any) (recordings []string, n int, err error) {
	var ids []int64
	if err := tx.q.NewRaw("SELECT id FROM calls WHERE "+which, args...).Scan(ctx, &ids); err != nil || len(ids) == 0 {
		return nil, 0, err
	}
	recordings, err = tx.dropLegs(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	var rows []parley.Call
	err = tx.q.NewRaw("DELETE FROM calls WHERE id IN (?) RETURNING id, recording", bun.List(ids)).Scan(ctx, &rows)
	return append(recordingsOf(rows), recordings...), len(rows), err
}

// EraseCalls removes at most limit of the user's calls with a customer, and gives the names of their recordings. The
// events that tell of them go with the customer's number. It is refused while there is a live one, which would be
// kept.
func (tx *Tx) EraseCalls(ctx context.Context, userID int64, phone string, limit int) (recordings []string,
	calls int, err error) {
	live, err := tx.q.NewSelect().Model((*parley.Call)(nil)).Where(
		"user_id = ? AND customer_phone = ? AND ended_at = 0", userID, phone).Exists(ctx)
	if err != nil {
		return nil, 0, err
	}
	if live {
		return nil, 0, parley.Errorf(parley.Conflict, "The customer is in a call: hang up first.")
	}
	return tx.removeCalls(ctx, "user_id = ? AND customer_phone = ? AND ended_at > 0 LIMIT ?", userID, phone, limit)
}

func recordingsOf(rows []parley.Call) (names []string) {
	for _, c := range rows {
		if c.Recording != "" {
			names = append(names, c.Recording)
		}
	}
	return names
}

// ForgetRecordings takes the recordings of at most limit calls that ended before a time from them and their legs, and
// gives their names.
func (tx *Tx) ForgetRecordings(ctx context.Context, before parley.Time, limit int) ([]string, error) {
	var rows []parley.Call
	err := tx.q.NewRaw(`SELECT id, recording FROM calls WHERE recording <> '' AND ended_at > 0 AND ended_at < ? ORDER BY ended_at LIMIT ?`,
		before, limit).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, c := range rows {
		ids[i] = c.ID
	}
	if _, err = tx.q.NewRaw("UPDATE calls SET recording = '', recording_size = 0 WHERE id IN (?)", bun.List(ids)).Exec(ctx); err != nil {
		return nil, err
	}
	var legs []parley.CallLeg
	err = tx.q.NewRaw("SELECT id, recording FROM call_legs WHERE call_id IN (?) AND recording <> ''", bun.List(ids)).Scan(ctx, &legs)
	if err == nil && len(legs) > 0 {
		_, err = tx.q.NewRaw("UPDATE call_legs SET recording = '' WHERE call_id IN (?)", bun.List(ids)).Exec(ctx)
	}
	return append(recordingsOf(rows), legRecordings(legs)...), err
}

// ForgetCalls removes at most limit calls that ended before a time, and gives how many and the names of their
// recordings.
func (tx *Tx) ForgetCalls(ctx context.Context, before parley.Time, limit int) (recordings []string, n int, err error) {
	return tx.removeCalls(ctx, "ended_at > 0 AND ended_at < ? AND report_due = 0 ORDER BY ended_at LIMIT ?", before, limit)
}
