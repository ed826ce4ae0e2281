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

// What an account stores of its own accord, and nobody else is charged for, is counted in bytes: assistants with their
// versions and drafts, tests with their runs, tools. The count is one row an account, so that a plan's limit is checked
// in a moment. Methods of Tx weigh what they change; Write adds it up as its last step, and refuses what is too much.
// Each account is counted anew once a day: what went by a cascade, or was changed by a former version, is right then.

// rowBytes is what a row is counted as beside its texts.
const rowBytes = 200

// bulk is how many bytes rows take, for a condition on them.
type bulk struct{ table, bytes, of string }

// The tables that are weighed, and which of their rows are a user's.
var (
	bulkAssistant = bulk{"assistants",
		"octet_length(system_prompt) + octet_length(initial_message) + octet_length(coalesce(sealed_variables, '')) + " +
			"octet_length(CAST(tools AS TEXT)) + octet_length(CAST(keywords AS TEXT)) + octet_length(CAST(pronunciations AS TEXT)) + " +
			"COALESCE(octet_length(CAST(post_call_json_schema AS TEXT)), 0)", "user_id = ?"}
	bulkVersion = bulk{"assistant_versions", "octet_length(fields) + octet_length(coalesce(sealed_variables, ''))",
		"assistant_id IN (SELECT id FROM assistants WHERE user_id = ?)"}
	bulkDraft = bulk{"assistant_drafts", "octet_length(sealed_changes)", "assistant_id IN (SELECT id FROM assistants WHERE user_id = ?)"}
	bulkTest  = bulk{"tests", "octet_length(script)", "user_id = ?"}
	bulkRun   = bulk{"test_runs", "octet_length(coalesce(CAST(draft AS TEXT), '')) + octet_length(coalesce(sealed_draft, ''))", "user_id = ?"}

	bulkScript = bulk{"test_scripts", "octet_length(script)", "run_id IN (SELECT id FROM test_runs WHERE user_id = ?)"}
	bulkResult = bulk{"test_results", "octet_length(script) + octet_length(coalesce(CAST(turns AS TEXT), '')) + octet_length(picture) + " +
		"octet_length(coalesce(CAST(function_calls AS TEXT), '')) + octet_length(coalesce(CAST(verdicts AS TEXT), ''))",
		"run_id IN (SELECT id FROM test_runs WHERE user_id = ?)"}
	bulkTool = bulk{"tools",
		"octet_length(description) + octet_length(endpoint) + octet_length(CAST(schema AS TEXT)) + octet_length(headers) + " +
			"COALESCE(octet_length(CAST(json_schema AS TEXT)), 0) + octet_length(filler) + octet_length(second_filler) + " +
			"coalesce(octet_length(oauth_secret), 0) + octet_length(oauth_token_url) + octet_length(oauth_scope) + " +
			"octet_length(CAST(allowed_tools AS TEXT))",
		"user_id = ?"}
	bulkListing = bulk{"tool_listings", "octet_length(CAST(tools AS TEXT)) + octet_length(error)", "user_id = ?"}

	bulks = []bulk{bulkAssistant, bulkVersion, bulkDraft, bulkTest, bulkRun, bulkScript, bulkResult, bulkTool, bulkListing}
)

// storedLimit is looked at when a transaction ends, when it is known what it has added.
var storedLimit = limit{"stored_mb",
	"SELECT coalesce((SELECT bytes FROM stored_bytes WHERE user_id = ?), 0)", true}

// weight is how many bytes the rows of a table take that a condition selects.
func (q Query) weight(ctx context.Context, b bulk, where string, args ...any) (n int64, err error) {
	err = q.q.NewRaw(fmt.Sprintf("SELECT coalesce(sum(%d + %s), 0) FROM %s WHERE %s", rowBytes, b.bytes, b.table, where),
		args...).Scan(ctx, &n)
	return n, err
}

// stored is how many bytes a user's rows take, counted.
func (q Query) stored(ctx context.Context, userID int64) (total int64, err error) {
	for _, b := range bulks {
		n, err := q.weight(ctx, b, b.of, userID)
		if err != nil {
			return 0, fmt.Errorf("count the bytes of %s of account %d: %w", b.table, userID, err)
		}
		total += n
	}
	return total, nil
}

// StoredBytes is how many bytes the user's assistants, tests and tools take, as they were last counted and changed.
func (q Query) StoredBytes(ctx context.Context, userID int64) (n int64, err error) {
	err = q.q.NewRaw(storedLimit.count, userID).Scan(ctx, &n)
	return n, err
}

// weighed is what a transaction changes of what an account stores.
type weighed struct {
	bytes  int64
	strict bool // somebody asked for it, who can be refused
}

// weigh notes by how much fn changes what the rows of a table that a condition selects take.
func (tx *Tx) weigh(ctx context.Context, userID int64, b bulk, where string, args []any, fn func() error) error {
	before, err := tx.weight(ctx, b, where, args...)
	if err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	after, err := tx.weight(ctx, b, where, args...)
	tx.weighs(userID, after-before, true)
	return err
}

// weighs notes that an account's rows take so many bytes more.
func (tx *Tx) weighs(userID, n int64, strict bool) {
	if tx.weights == nil {
		tx.weights = map[int64]weighed{}
	}
	w := tx.weights[userID]
	tx.weights[userID] = weighed{w.bytes + n, w.strict || strict}
}

// weighing adds what fn has weighed to the count of its accounts as the last step of its transaction.
func weighing(fn func(context.Context, *Tx) error) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error {
		tx.weights = nil
		if err := fn(ctx, tx); err != nil {
			return err
		}
		for userID, w := range tx.weights { // hardly ever more than one
			if err := tx.addWeight(ctx, userID, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func (tx *Tx) addWeight(ctx context.Context, userID int64, w weighed) error {
	if w.bytes == 0 {
		return nil
	}
	var bytes int64
	err := tx.q.NewRaw("UPDATE stored_bytes SET bytes = CASE WHEN bytes + ? > 0 THEN bytes + ? ELSE 0 END WHERE user_id = ? RETURNING bytes",
		w.bytes, w.bytes, userID).Scan(ctx, &bytes)
	if errors.Is(err, sql.ErrNoRows) {
		bytes, err = tx.recount(ctx, userID, parley.Now())
	}
	if err != nil || !w.strict || w.bytes < 0 || tx.rules.Plan == nil {
		return err
	}
	most, _, err := tx.used(ctx, userID, storedLimit)
	if err == nil && bytes > most*mega {
		err = parley.LimitNamed(storedLimit.name).Refuse(most, 0)
	}
	return err
}

// recount counts an account's rows.
func (tx *Tx) recount(ctx context.Context, userID int64, now parley.Time) (bytes int64, err error) {
	if bytes, err = tx.stored(ctx, userID); err != nil {
		return 0, err
	}
	_, err = tx.q.NewRaw(`INSERT INTO stored_bytes (user_id, bytes, counted_at) VALUES (?, ?, ?)
		ON CONFLICT (user_id) DO UPDATE SET bytes = excluded.bytes, counted_at = excluded.counted_at`,
		userID, bytes, now).Exec(ctx)
	return bytes, err
}

// CountStored counts the account that was counted longest ago, and not within a day: one step, that says whether there
// are more such accounts.
func (tx *Tx) CountStored(ctx context.Context, now parley.Time) (more bool, err error) {
	var ids []int64
	err = tx.q.NewRaw("SELECT user_id FROM stored_bytes WHERE counted_at < ? ORDER BY counted_at LIMIT 1",
		now.Add(-24*time.Hour)).Scan(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	_, err = tx.recount(ctx, ids[0], now)
	return true, err
}

// weightOf is how many bytes one assistant takes with all that belongs to it.
func (tx *Tx) weightOf(ctx context.Context, assistantID int64) (total int64, err error) {
	const runs = "run_id IN (SELECT id FROM test_runs WHERE assistant_id = ?)"
	for _, of := range []struct {
		bulk
		where string
	}{{bulkAssistant, "id = ?"}, {bulkVersion, "assistant_id = ?"}, {bulkDraft, "assistant_id = ?"}, {bulkTest, "assistant_id = ?"},
		{bulkRun, "assistant_id = ?"}, {bulkScript, runs}, {bulkResult, runs}} {
		n, err := tx.weight(ctx, of.bulk, of.where, assistantID)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// weightOfRuns is how many bytes runs of tests take.
func (tx *Tx) weightOfRuns(ctx context.Context, ids []int64) (total int64, err error) {
	for _, of := range []struct {
		bulk
		where string
	}{{bulkRun, "id IN (?)"}, {bulkScript, "run_id IN (?)"}, {bulkResult, "run_id IN (?)"}} {
		n, err := tx.weight(ctx, of.bulk, of.where, bun.List(ids))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
