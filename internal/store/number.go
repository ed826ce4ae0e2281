package store

import (
	"context"

	"parley"
)

const numberNotFound = "Phone number not found"

// Number is one of the user's phone numbers.
func (q Query) Number(ctx context.Context, userID, id int64) (*parley.Number, error) {
	n := new(parley.Number)
	err := q.q.NewSelect().Model(n).Where("id = ? AND user_id = ?", id, userID).Scan(ctx)
	return n, notFound(err, numberNotFound)
}

// Numbers are the user's phone numbers, newest first.
func (q Query) Numbers(ctx context.Context, userID int64) ([]parley.Number, error) {
	list := []parley.Number{}
	err := q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("id DESC").Scan(ctx)
	return list, err
}

// AnsweredNumbers says which of the user's numbers an inbound assistant answers, and which one.
func (q Query) AnsweredNumbers(ctx context.Context, userID int64) (map[int64]int64, error) {
	var rows []struct{ ID, PhoneNumberID int64 }
	err := q.q.NewSelect().Table("assistants").Column("id", "phone_number_id").
		Where("user_id = ? AND type = 'inbound' AND phone_number_id IS NOT NULL", userID).Where(alive).Scan(ctx, &rows)
	of := make(map[int64]int64, len(rows))
	for _, r := range rows {
		of[r.PhoneNumberID] = r.ID
	}
	return of, err
}

// CreateNumber stores a number that the user now owns.
func (tx *Tx) CreateNumber(ctx context.Context, userID int64, n *parley.Number) error {
	n.ID, n.UserID, n.CreatedAt = 0, userID, parley.Now()
	_, err := tx.q.NewInsert().Model(n).Exec(ctx)
	if Violates(err, "numbers.phone_number", "numbers_owned") {
		return parley.Errorf(parley.Conflict, "The phone number %s is owned already.", n.PhoneNumber)
	}
	return err
}

// DeleteNumber gives a number up at once; assistants lose it.
func (tx *Tx) DeleteNumber(ctx context.Context, userID, id int64) error {
	res, err := tx.q.NewDelete().Model((*parley.Number)(nil)).Where("id = ? AND user_id = ?", id, userID).Exec(ctx)
	return one(res, err, numberNotFound)
}
