package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// KeepRefusals stores refusals of calls over trunks, and drops the oldest of each trunk that are too many. Those of a trunk
// that is gone are dropped.
func (tx *Tx) KeepRefusals(ctx context.Context, list []parley.TrunkRefusal) error {
	ids := make([]int64, 0, len(list))
	for _, r := range list {
		ids = append(ids, r.TrunkID)
	}
	if len(ids) == 0 {
		return nil
	}
	var owners []struct{ ID, UserID int64 }
	if err := tx.q.NewRaw("SELECT id, user_id FROM trunks WHERE id IN (?)"+tx.stay(), bun.List(ids)).Scan(ctx, &owners); err != nil {
		return err
	}
	of := map[int64]int64{}
	for _, o := range owners {
		of[o.ID] = o.UserID
	}
	var rows []parley.TrunkRefusal
	for _, r := range list {
		if r.UserID = of[r.TrunkID]; r.UserID != 0 {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if _, err := tx.q.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return err
	}
	_, err := tx.q.NewRaw(`DELETE FROM trunk_refusals WHERE trunk_id IN (?) AND id NOT IN (SELECT id FROM (
		SELECT id, row_number() OVER (PARTITION BY trunk_id, known ORDER BY id DESC) AS n FROM (
		SELECT id, trunk_id, known, row_number() OVER (PARTITION BY trunk_id, known, place ORDER BY id DESC) AS of_place
		FROM trunk_refusals WHERE trunk_id IN (?)) AS p WHERE known OR of_place <= ?) AS r WHERE n <= ?)`,
		bun.List(ids), bun.List(ids), parley.MaxRefusalsOfPlace, parley.MaxRefusals).Exec(ctx)
	return err
}

// TrunkRefusals are the calls that were refused of late over one of the user's trunks, the last one first.
func (q Query) TrunkRefusals(ctx context.Context, userID, trunkID int64) ([]parley.TrunkRefusal, error) {
	if _, err := q.Trunk(ctx, userID, trunkID); err != nil {
		return nil, err
	}
	list := []parley.TrunkRefusal{}
	err := q.q.NewSelect().Model(&list).Where("trunk_id = ? AND user_id = ?", trunkID, userID).OrderExpr("id DESC").Scan(ctx)
	return list, err
}

// EraseRefusals removes the user's refused calls of a caller.
func (tx *Tx) EraseRefusals(ctx context.Context, userID int64, caller string) error {
	_, err := tx.q.NewRaw("DELETE FROM trunk_refusals WHERE user_id = ? AND caller = ?", userID, caller).Exec(ctx)
	return err
}

// ForgetRefusals removes refused calls from before a time.
func (tx *Tx) ForgetRefusals(ctx context.Context, before parley.Time) error {
	_, err := tx.q.NewRaw("DELETE FROM trunk_refusals WHERE at < ?", before).Exec(ctx)
	return err
}
