package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const (
	testNotFound    = "Test not found"
	testRunNotFound = "Test run not found"
	testOpen        = "state IN ('waiting', 'running')"
)

// Tests are those of one of the user's assistants, in the order in which they were made, with what became of them last.
func (q Query) Tests(ctx context.Context, userID, assistantID int64) ([]parley.Test, error) {
	list := []parley.Test{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ? AND assistant_id = ?", userID, assistantID).Order("id").Scan(ctx)
	if err != nil || len(list) == 0 {
		return list, err
	}
	return list, q.addLast(ctx, list)
}

// addLast fills in the latest runs of some tests of one assistant: of the latest, and of the latest against its draft.
func (q Query) addLast(ctx context.Context, list []parley.Test) error {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	last, run, err := q.lastResults(ctx, ids, "")
	if err != nil {
		return err
	}
	draft, draftRun, err := q.lastResults(ctx, ids, `AND run_id IN (SELECT r.id FROM test_runs r
		JOIN assistant_drafts d ON d.assistant_id = r.assistant_id AND d.updated_at = r.draft_at)`)
	if err != nil {
		return err
	}
	live, _, err := q.lastResults(ctx, ids, "AND run_id IN (SELECT r.id FROM test_runs r WHERE r.draft IS NULL AND r.draft_at = 0)")
	for i := range list {
		t := &list[i]
		if c := live[t.ID]; c != nil {
			t.LiveState = c.State()
		}
		if c := last[t.ID]; c != nil {
			id := run[t.ID]
			t.LastRunID, t.LastState = &id, c.State()
		}
		if c := draft[t.ID]; c != nil {
			id := draftRun[t.ID]
			t.DraftRunID, t.DraftState = &id, c.State()
		}
	}
	return err
}

// lastResults are, by test, what became of it in its latest run, and that run; which narrows the runs.
func (q Query) lastResults(ctx context.Context, ids []int64, which string) (map[int64]*parley.TestCounts, map[int64]int64, error) {
	var rows []struct {
		TestID, RunID int64
		State         parley.TestState
		N             int
	}
	err := q.q.NewRaw(`SELECT r.test_id, r.run_id, r.state, count(*) AS n FROM test_results r
		JOIN (SELECT test_id AS id, max(run_id) AS run FROM test_results WHERE test_id IN (?) `+which+` GROUP BY test_id) l
		ON l.id = r.test_id AND l.run = r.run_id GROUP BY r.test_id, r.run_id, r.state`, bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return nil, nil, err
	}
	counts, run := map[int64]*parley.TestCounts{}, map[int64]int64{}
	for _, r := range rows {
		if counts[r.TestID] == nil {
			counts[r.TestID] = &parley.TestCounts{}
		}
		counts[r.TestID].Count(r.State, r.N)
		run[r.TestID] = r.RunID
	}
	return counts, run, nil
}

// Test is one of an assistant's tests.
func (q Query) Test(ctx context.Context, userID, assistantID, id int64) (*parley.Test, error) {
	list := []parley.Test{{}}
	err := q.q.NewSelect().Model(&list[0]).Where("id = ? AND assistant_id = ? AND user_id = ?", id, assistantID, userID).Scan(ctx)
	if err != nil {
		return nil, notFound(err, testNotFound)
	}
	return &list[0], q.addLast(ctx, list)
}

// CreateTest stores a new test.
func (tx *Tx) CreateTest(ctx context.Context, userID int64, t *parley.Test) error {
	if err := tx.room(ctx, userID, testLimit, 1); err != nil {
		return err
	}
	t.ID, t.UserID, t.CreatedAt = 0, userID, parley.Now()
	t.UpdatedAt = t.CreatedAt
	_, err := tx.q.NewInsert().Model(t).Exec(ctx)
	tx.weighs(userID, rowBytes+int64(len(t.Script)), true)
	return tx.noteTest(parley.AuditCreated, t, err)
}

// SaveTest stores a changed script.
func (tx *Tx) SaveTest(ctx context.Context, userID int64, t *parley.Test) error {
	t.UpdatedAt = parley.Now()
	err := tx.weigh(ctx, userID, bulkTest, "id = ?", []any{t.ID}, func() error {
		res, err := tx.q.NewUpdate().Model(t).Column("name", "channel", "script", "updated_at").
			Where("id = ? AND user_id = ?", t.ID, userID).Exec(ctx)
		return one(res, err, testNotFound)
	})
	return tx.noteTest(parley.AuditChanged, t, err)
}

// DeleteTest removes a test. What became of it in runs stays with them.
func (tx *Tx) DeleteTest(ctx context.Context, userID, assistantID, id int64) error {
	return tx.weigh(ctx, userID, bulkTest, "id = ?", []any{id}, func() error {
		return tx.drop(ctx, userID, parley.AuditTest, id, testNotFound,
			"DELETE FROM tests WHERE id = ? AND assistant_id = ? AND user_id = ? RETURNING CASE WHEN customer = '' THEN name ELSE '' END", id,
			assistantID, userID)
	})
}

// noteTest notes a change of a test. One that is made of a customer's words is not named.
func (tx *Tx) noteTest(action parley.AuditAction, t *parley.Test, err error) error {
	if err != nil {
		return err
	}
	name, changes := t.Name, []parley.AuditChange{}
	if t.Customer != "" {
		name = ""
	}
	if action == parley.AuditChanged {
		changes = append(changes, parley.AuditChange{Field: "script"})
	}
	tx.enter(t.UserID, action, thing{parley.AuditTest, strconv.FormatInt(t.ID, 10)}, name, changes)
	return nil
}

// CreateTestRun stores a run with its performances, which wait from then on.
func (tx *Tx) CreateTestRun(ctx context.Context, userID int64, run *parley.TestRun, list []parley.TestResult) error {
	now := parley.Now()
	run.ID, run.UserID, run.CreatedAt, run.FinishedAt = 0, userID, now, 0
	if run.DraftAt != 0 {
		plain, err := json.Marshal(run.Changes)
		if err != nil {
			return err
		}
		run.SealedDraft = tx.box.seal(draftSeal, plain)
	}
	if _, err := tx.q.NewInsert().Model(run).Exec(ctx); err != nil {
		return err
	}
	if err := tx.addScripts(ctx, run, list); err != nil {
		return err
	}
	rows := slices.Clone(list)
	for i := range rows {
		r := &rows[i]
		r.RunID, r.UserID, r.AssistantID, r.State, r.DueAt, r.Script = run.ID, userID, run.AssistantID, parley.TestWaiting, now, ""
	}
	if _, err := tx.q.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return err
	}
	n, err := tx.weightOfRuns(ctx, []int64{run.ID})
	if err != nil {
		return err
	}
	tx.weighs(userID, n, true)
	run.TestCounts = parley.TestCounts{}
	run.Count(parley.TestWaiting, len(list))
	run.Settle()
	return nil
}

// UnfinishedTestRuns is how many runs of the user's are not finished.
func (q Query) UnfinishedTestRuns(ctx context.Context, userID int64) (n int, err error) {
	err = q.q.NewRaw("SELECT count(*) FROM test_runs WHERE user_id = ? AND finished_at = 0", userID).Scan(ctx, &n)
	return n, err
}

// ForgetTestRuns removes an assistant's runs but the latest ones.
func (tx *Tx) ForgetTestRuns(ctx context.Context, assistantID int64, keep int) error {
	var old []struct{ ID, UserID int64 }
	err := tx.q.NewRaw(`SELECT id, user_id FROM test_runs WHERE assistant_id = ? AND finished_at > 0 AND id <= coalesce((SELECT id FROM test_runs
		WHERE assistant_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?), 0)`, assistantID, assistantID, keep).Scan(ctx, &old)
	if err != nil || len(old) == 0 {
		return err
	}
	ids := make([]int64, len(old))
	for i := range old {
		ids[i] = old[i].ID
	}
	return tx.dropRuns(ctx, old[0].UserID, ids)
}

// dropRuns removes runs with all that belongs to them.
func (tx *Tx) dropRuns(ctx context.Context, userID int64, ids []int64) error {
	weight, err := tx.weightOfRuns(ctx, ids)
	if err != nil {
		return err
	}
	tx.weighs(userID, -weight, false)
	_, err = tx.q.NewRaw("DELETE FROM test_runs WHERE id IN (?)", bun.List(ids)).Exec(ctx)
	return err
}

// TestRuns are an assistant's runs, newest first, with their counts.
func (q Query) TestRuns(ctx context.Context, userID, assistantID int64, p Page) (list []parley.TestRun, total int, err error) {
	list = []parley.TestRun{}
	total, err = page(ctx, q.q.NewSelect().Model(&list).Where("user_id = ? AND assistant_id = ?", userID, assistantID), p, "id DESC")
	if err != nil {
		return nil, 0, err
	}
	return list, total, q.addCounts(ctx, list)
}

// TestRun is one of an assistant's runs, with its counts.
func (q Query) TestRun(ctx context.Context, userID, assistantID, id int64) (*parley.TestRun, error) {
	list := []parley.TestRun{{}}
	err := q.q.NewSelect().Model(&list[0]).Where("id = ? AND assistant_id = ? AND user_id = ?", id, assistantID, userID).Scan(ctx)
	if err != nil {
		return nil, notFound(err, testRunNotFound)
	}
	if run := &list[0]; run.DraftAt != 0 {
		plain, err := q.box.open(draftSeal, run.SealedDraft)
		if err == nil {
			err = json.Unmarshal(plain, &run.Changes)
		}
		if err != nil {
			return nil, fmt.Errorf("draft of test run %d: %w", id, err)
		}
	}
	return &list[0], q.addCounts(ctx, list)
}

// DraftTestRun is the newest run of an assistant's tests against its draft as it was saved at a time, with its counts,
// and how many of the assistant's tests were not in it; nil where there is none.
func (q Query) DraftTestRun(ctx context.Context, userID, assistantID int64, saved parley.Time) (run *parley.TestRun, left int, err error) {
	if saved == 0 {
		return nil, 0, nil
	}
	run, err = first[parley.TestRun](ctx, q, func(s *bun.SelectQuery) {
		s.Where("assistant_id = ? AND user_id = ? AND draft_at = ?", assistantID, userID, saved).Order("id DESC")
	})
	if err != nil || run == nil {
		return nil, 0, err
	}
	list := []parley.TestRun{*run}
	if err := q.addCounts(ctx, list); err != nil {
		return nil, 0, err
	}
	err = q.q.NewRaw(`SELECT count(*) FROM tests t WHERE t.assistant_id = ? AND NOT EXISTS
		(SELECT 1 FROM test_results r WHERE r.run_id = ? AND r.test_id = t.id)`, assistantID, run.ID).Scan(ctx, &left)
	return &list[0], left, err
}

func (q Query) addCounts(ctx context.Context, list []parley.TestRun) error {
	if len(list) == 0 {
		return nil
	}
	at, ids := map[int64]*parley.TestRun{}, make([]int64, len(list))
	for i := range list {
		at[list[i].ID], ids[i] = &list[i], list[i].ID
	}
	var rows []struct {
		RunID int64
		State parley.TestState
		N     int
	}
	err := q.q.NewRaw("SELECT run_id, state, count(*) AS n FROM test_results WHERE run_id IN (?) GROUP BY run_id, state",
		bun.List(ids)).Scan(ctx, &rows)
	for _, r := range rows {
		at[r.RunID].Count(r.State, r.N)
	}
	for i := range list {
		list[i].Settle()
	}
	return err
}

// TestResults are the performances of a run of the user's, in order; without their pictures and scripts, which are long.
func (q Query) TestResults(ctx context.Context, userID, runID int64) ([]parley.TestResult, error) {
	list := []parley.TestResult{}
	err := q.q.NewSelect().Model(&list).ExcludeColumn("picture", "script").
		Where("run_id = ? AND user_id = ?", runID, userID).Order("id").Scan(ctx)
	for i := range list {
		list[i].Complete()
	}
	return list, err
}

// TestResult is one performance of a run of the user's.
func (q Query) TestResult(ctx context.Context, userID, runID, id int64) (*parley.TestResult, error) {
	r := new(parley.TestResult)
	err := q.q.NewSelect().Model(r).ExcludeColumn("script").Where("id = ? AND run_id = ? AND user_id = ?", id, runID, userID).Scan(ctx)
	r.Complete()
	return r, notFound(err, "Test result not found")
}

// TestResultsBefore are the latest performances of the same tests before a run: of runs of the assistant as it was
// saved. What could not be performed says nothing.
func (q Query) TestResultsBefore(ctx context.Context, userID int64, run *parley.TestRun) ([]parley.TestResult, error) {
	list := []parley.TestResult{}
	err := q.q.NewSelect().Model(&list).ExcludeColumn("picture", "script", "turns", "function_calls", "verdicts").
		Where(`id IN (SELECT max(b.id) FROM test_results b JOIN test_runs r ON r.id = b.run_id AND r.draft IS NULL AND r.draft_at = 0
			WHERE b.user_id = ? AND b.run_id < ? AND b.state IN ('pass', 'fail')
			AND b.test_id IN (SELECT test_id FROM test_results WHERE run_id = ?) GROUP BY b.test_id, b.name)`, userID, run.ID, run.ID).
		Order("id").Scan(ctx)
	return list, err
}

// TestsDue says whether a performance waits to be taken.
func (q Query) TestsDue(ctx context.Context, now parley.Time) (due bool, err error) {
	err = q.q.NewRaw("SELECT EXISTS (SELECT 1 FROM test_results WHERE due_at <= ? AND "+testOpen+")", now).Scan(ctx, &due)
	return due, err
}

// ClaimTests takes performances for a process until a time. Whose user has the fewest under way comes first. Calls are
// taken where there is a telephone only.
func (tx *Tx) ClaimTests(ctx context.Context, node string, calls bool, now, until parley.Time,
	limit int) (list []parley.TestResult, err error) {
	channel, lock := "", ""
	if !calls {
		channel = " AND w.channel <> 'call'"
	}
	if !tx.sqlite {
		lock = " FOR UPDATE OF w SKIP LOCKED"
	}
	err = tx.q.NewRaw(`WITH busy AS (SELECT user_id, count(*) AS n FROM test_results WHERE `+testOpen+` AND state = 'running' AND due_at > ? GROUP BY user_id)
		UPDATE test_results SET state = 'running', node = ?, due_at = ?, tries = tries + 1 WHERE id IN (
		SELECT w.id FROM test_results w LEFT JOIN busy b ON b.user_id = w.user_id WHERE w.due_at <= ? AND w.`+testOpen+channel+`
		ORDER BY coalesce(b.n, 0), w.id LIMIT ?`+lock+`) RETURNING *`, now, node, until, now, limit).Scan(ctx, &list)
	if err != nil || len(list) == 0 {
		return list, err
	}
	return list, tx.fillScripts(ctx, list)
}

// HoldTests keeps what a process performs; it returns those that are still its.
func (tx *Tx) HoldTests(ctx context.Context, node string, ids []int64, until parley.Time) (held []int64, err error) {
	err = tx.q.NewRaw("UPDATE test_results SET due_at = ? WHERE id IN (?) AND node = ? AND state = 'running' RETURNING id",
		until, bun.List(ids), node).Scan(ctx, &held)
	return held, err
}

// ReturnTest gives a performance that was cut off back: whoever comes then takes it.
func (tx *Tx) ReturnTest(ctx context.Context, node string, id int64, due parley.Time) error {
	_, err := tx.q.NewRaw("UPDATE test_results SET state = 'waiting', due_at = ?, tries = tries - 1 WHERE id = ? AND node = ? "+
		"AND state = 'running'",
		due, id, node).Exec(ctx)
	return err
}

// FinishTest stores what became of a performance, and the end of its run with its last one. False: it was stopped, or
// another process has it.
func (tx *Tx) FinishTest(ctx context.Context, r *parley.TestResult) (bool, error) {
	var run int64 // those who finish performances of one run wait for each other
	if err := tx.locked(tx.q.NewSelect().Model((*parley.TestRun)(nil)).Column("id").Where("id = ?", r.RunID)).Scan(ctx, &run); err != nil {
		if errors.Is(err, sql.ErrNoRows) { // deleted
			err = nil
		}
		return false, err
	}
	r.FinishedAt = parley.Now()
	mine, err := some(tx.q.NewUpdate().Model(r).Column("state", "error", "verdicts", "figures", "turns", "function_calls", "picture",
		"played_call_id", "took_ms", "finished_at").Where("id = ? AND node = ? AND state = 'running'", r.ID, r.Node).Exec(ctx))
	if err != nil || !mine {
		return false, err
	}
	n, err := tx.weight(ctx, bulkResult, "id = ?", r.ID)
	if err != nil {
		return false, err
	}
	tx.weighs(r.UserID, n-rowBytes, false) // the row was counted when the run began
	return true, tx.finishRun(ctx, r.RunID)
}

func (tx *Tx) finishRun(ctx context.Context, runID int64) error {
	_, err := tx.q.NewRaw("UPDATE test_runs SET finished_at = ? WHERE id = ? AND finished_at = 0 AND NOT EXISTS (SELECT 1 FROM test_results "+
		"WHERE run_id = ? AND "+testOpen+")",
		parley.Now(), runID, runID).Exec(ctx)
	return err
}

// StopTestRun ends a run of the user's: what has not been performed will not be.
func (tx *Tx) StopTestRun(ctx context.Context, userID, assistantID, id int64) error {
	run := new(parley.TestRun)
	err := tx.locked(tx.q.NewSelect().Model(run).Where("id = ? AND assistant_id = ? AND user_id = ?", id, assistantID, userID)).Scan(ctx)
	if err != nil {
		return notFound(err, testRunNotFound)
	}
	now := parley.Now()
	stopped, err :=
		some(tx.q.NewRaw("UPDATE test_results SET state = 'stopped', finished_at = ? WHERE run_id = ? AND "+testOpen, now, id).Exec(ctx))
	if err != nil || !stopped {
		return err
	}
	_, err = tx.q.NewRaw("UPDATE test_runs SET stopped = TRUE, finished_at = ? WHERE id = ? AND finished_at = 0", now, id).Exec(ctx)
	return err
}

// DeleteTestRun removes a finished run of the user's.
func (tx *Tx) DeleteTestRun(ctx context.Context, userID, assistantID, id int64) error {
	var found bool
	err := tx.q.NewRaw("SELECT EXISTS (SELECT 1 FROM test_runs WHERE id = ? AND assistant_id = ? AND user_id = ? AND finished_at > 0)",
		id, assistantID, userID).Scan(ctx, &found)
	if err != nil || !found {
		return cmp.Or(err, error(parley.Errorf(parley.NotFound, testRunNotFound)))
	}
	return tx.dropRuns(ctx, userID, []int64{id})
}
