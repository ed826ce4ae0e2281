package store

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// testScript is the script of a test as it was when a run began: one row for all its performances in the run.
type testScript struct {
	bun.BaseModel `bun:"test_scripts"`

	ID     int64 `bun:",pk,autoincrement"`
	RunID  int64
	TestID *int64
	Script string
}

// addScripts stores the scripts of a run's performances, each once, and has the performances name them.
func (tx *Tx) addScripts(ctx context.Context, run *parley.TestRun, list []parley.TestResult) error {
	type key struct {
		test   int64
		script string
	}
	var rows []testScript
	at := map[key]int{}
	of := make([]int, len(list))
	for i := range list {
		k := key{0, list[i].Script}
		if list[i].TestID != nil {
			k.test = *list[i].TestID
		}
		n, known := at[k]
		if !known {
			n = len(rows)
			at[k] = n
			rows = append(rows, testScript{RunID: run.ID, TestID: list[i].TestID, Script: list[i].Script})
		}
		of[i] = n
	}
	if _, err := tx.q.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return err
	}
	for i := range list {
		list[i].ScriptID = &rows[of[i]].ID
	}
	return nil
}

// fillScripts reads the scripts of performances that name them.
func (q Query) fillScripts(ctx context.Context, list []parley.TestResult) error {
	var ids []int64
	for i := range list {
		if id := list[i].ScriptID; id != nil {
			ids = append(ids, *id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []testScript
	if err := q.q.NewSelect().Model(&rows).Where("id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
		return fmt.Errorf("read the scripts of tests: %w", err)
	}
	of := map[int64]string{}
	for _, r := range rows {
		of[r.ID] = r.Script
	}
	for i := range list {
		if id := list[i].ScriptID; id != nil {
			list[i].Script = of[*id]
		}
	}
	return nil
}

// ShareScripts moves the scripts that a former version stored with each performance of a run to rows of their own: of
// one finished run, and says whether there may be more.
func (tx *Tx) ShareScripts(ctx context.Context) (more bool, err error) {
	var runs []parley.TestRun
	err = tx.q.NewRaw(
		`SELECT id, user_id FROM test_runs WHERE finished_at > 0 AND id IN (SELECT run_id FROM test_results WHERE script <> '') LIMIT 1`).
		Scan(ctx, &runs)
	if err != nil || len(runs) == 0 {
		return false, err
	}
	run := &runs[0]
	var list []parley.TestResult
	err = tx.q.NewSelect().Model(&list).Column("id", "test_id", "script").Where("run_id = ? AND script <> ''", run.ID).Order("id").Scan(ctx)
	if err != nil {
		return false, err
	}
	before, err := tx.weightOfRuns(ctx, []int64{run.ID})
	if err != nil {
		return false, err
	}
	if err := tx.addScripts(ctx, run, list); err != nil {
		return false, err
	}
	for i := range list {
		if _, err := tx.q.NewRaw("UPDATE test_results SET script = '', script_id = ? WHERE id = ?", *list[i].ScriptID, list[i].ID).
			Exec(ctx); err != nil {
			return false, err
		}
	}
	after, err := tx.weightOfRuns(ctx, []int64{run.ID})
	tx.weighs(run.UserID, after-before, false)
	return true, err
}
