package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// CreateLeg stores somebody who is called into one of the user's live calls.
func (tx *Tx) CreateLeg(ctx context.Context, userID int64, l *parley.CallLeg) error {
	l.ID, l.UserID, l.CreatedAt = 0, userID, parley.DateTime(parley.Now())
	if l.Turns == nil {
		l.Turns = []parley.CallTurn{}
	}
	_, err := tx.q.NewInsert().Model(l).Exec(ctx)
	return err
}

// KeepLeg stores how far an open leg is; of one that has ended, nothing.
func (tx *Tx) KeepLeg(ctx context.Context, l *parley.CallLeg) error {
	_, err := tx.q.NewUpdate().Model(l).Column("status", "mode", "summary", "answered_at", "joined_at").
		Where("id = ? AND ended_at = 0", l.ID).Exec(ctx)
	return err
}

// EndLeg stores a leg that has ended; false if it had ended before.
func (tx *Tx) EndLeg(ctx context.Context, l *parley.CallLeg) (bool, error) {
	if l.Turns == nil {
		l.Turns = []parley.CallTurn{}
	}
	return some(tx.q.NewUpdate().Model(l).Column("status", "mode", "ended_reason", "summary", "turns", "cost", "answered_at",
		"joined_at", "ended_at").Where("id = ? AND ended_at = 0", l.ID).Exec(ctx))
}

// KeepLegRecording says where a leg's recording is; false when the leg is gone.
func (tx *Tx) KeepLegRecording(ctx context.Context, id int64, name string) (bool, error) {
	return some(tx.q.NewRaw("UPDATE call_legs SET recording = ? WHERE id = ?", name, id).Exec(ctx))
}

// dropLegs removes the legs of calls that are removed, and gives the names of their recordings.
func (tx *Tx) dropLegs(ctx context.Context, calls []int64) (recordings []string, err error) {
	var rows []parley.CallLeg
	err = tx.q.NewRaw("DELETE FROM call_legs WHERE call_id IN (?) RETURNING id, recording", bun.List(calls)).Scan(ctx, &rows)
	return legRecordings(rows), err
}

func legRecordings(rows []parley.CallLeg) (names []string) {
	for _, l := range rows {
		if l.Recording != "" {
			names = append(names, l.Recording)
		}
	}
	return names
}

// CallLegs are those who were called into one of the user's calls, in order.
func (q Query) CallLegs(ctx context.Context, userID, callID int64) ([]parley.CallLeg, error) {
	list := []parley.CallLeg{}
	err := q.q.NewSelect().Model(&list).Where("call_id = ? AND user_id = ?", callID, userID).Order("id").Scan(ctx)
	return list, err
}

// OpenLegs are those who take part in the user's calls that are not over, or are being called, by call and in order.
func (q Query) OpenLegs(ctx context.Context, userID int64) (map[int64][]parley.CallLeg, error) {
	var list []parley.CallLeg
	err := q.q.NewSelect().Model(&list).Where("call_id IN (SELECT id FROM calls WHERE user_id = ? AND ended_at = 0) AND ended_at = 0",
		userID).Order("id").Scan(ctx)
	legs := map[int64][]parley.CallLeg{}
	for _, l := range list {
		legs[l.CallID] = append(legs[l.CallID], l)
	}
	return legs, err
}

// CallLeg is one of them.
func (q Query) CallLeg(ctx context.Context, userID, callID, id int64) (*parley.CallLeg, error) {
	l := new(parley.CallLeg)
	err := q.q.NewSelect().Model(l).Where("id = ? AND call_id = ? AND user_id = ?", id, callID, userID).Scan(ctx)
	return l, notFound(err, "Leg not found")
}
