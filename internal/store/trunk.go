package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley"
)

const (
	trunkNotFound = "SIP trunk not found"
	trunkSecret   = "sip password"
)

func (q Query) trunks(model any, userID int64) *bun.SelectQuery {
	return q.anyTrunks(model).Where("t.user_id = ?", userID)
}

func (q Query) anyTrunks(model any) *bun.SelectQuery {
	return q.q.NewSelect().Model(model).ModelTableExpr("trunks AS t").ColumnExpr("t.*, n.phone_number").
		ColumnExpr("EXISTS (SELECT 1 FROM numbers AS r WHERE r.phone_number = n.phone_number AND r.type <> 'caller_id' AND r.type = 'normal') AS rented").
		Join("JOIN numbers AS n ON n.id = t.phone_number_id")
}

// Trunk is one of the user's SIP trunks.
func (q Query) Trunk(ctx context.Context, userID, id int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := q.trunks(t, userID).Where("t.id = ?", id).Scan(ctx)
	return t, notFound(err, trunkNotFound)
}

// TrunkForUpdate is Trunk, kept from others until the transaction ends.
func (tx *Tx) TrunkForUpdate(ctx context.Context, userID, id int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := tx.lock(tx.trunks(t, userID).Where("t.id = ?", id), "UPDATE OF t").Scan(ctx)
	return t, tx.saw(parley.AuditTrunk, id, t, notFound(err, trunkNotFound))
}

// NumberTrunk is the trunk of one of the user's numbers.
func (q Query) NumberTrunk(ctx context.Context, userID, numberID int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := q.trunks(t, userID).Where("t.phone_number_id = ?", numberID).Scan(ctx)
	return t, notFound(err, trunkNotFound)
}

// Trunks are the user's SIP trunks, newest first.
func (q Query) Trunks(ctx context.Context, userID int64) ([]parley.Trunk, error) {
	list := []parley.Trunk{}
	err := q.trunks(&list, userID).OrderExpr("t.id DESC").Scan(ctx)
	return list, err
}

// AnyTrunk is the trunk with that id, whoever owns it: a call that comes over it names no user.
func (q Query) AnyTrunk(ctx context.Context, id int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := q.anyTrunks(t).Where("t.id = ?", id).Scan(ctx)
	return t, notFound(err, trunkNotFound)
}

// AllTrunks are the trunks of all users: the server has one telephone line, which registers with them and lets their
// calls in.
func (q Query) AllTrunks(ctx context.Context) ([]parley.Trunk, error) {
	list := []parley.Trunk{}
	err := q.anyTrunks(&list).OrderExpr("t.id").Scan(ctx)
	return list, err
}

// TrunkPassword is a trunk's password in plain, "" for none.
func (q Query) TrunkPassword(t *parley.Trunk) (string, error) {
	if len(t.Sealed) == 0 {
		return "", nil
	}
	plain, err := q.box.open(trunkSecret, t.Sealed)
	return string(plain), err
}

// SealPassword gives a trunk a password; "" takes it away.
func (q Query) SealPassword(t *parley.Trunk, password string) {
	if t.Sealed = nil; password != "" {
		t.Sealed = q.box.seal(trunkSecret, []byte(password))
	}
}

// CreateTrunk stores a new trunk, and its number as an owned number of type sip. The error is a Conflict where the
// number is on this server already.
func (tx *Tx) CreateTrunk(ctx context.Context, userID int64, t *parley.Trunk) error {
	if err := tx.room(ctx, userID, trunkLimit, 1); err != nil {
		return err
	}
	n := &parley.Number{PhoneNumber: t.PhoneNumber, CountryCode: parley.PhoneCountry(t.PhoneNumber),
		Type: parley.NumberSIP}
	if err := tx.free(ctx, t.PhoneNumber); err != nil {
		return err
	}
	if err := tx.createNumber(ctx, userID, n); err != nil {
		return err
	}
	t.ID, t.UserID, t.PhoneNumberID, t.CreatedAt = 0, userID, n.ID, parley.Now()
	t.UpdatedAt = t.CreatedAt
	if t.Codecs == nil {
		t.Codecs = []string{}
	}
	if t.SIPHeaders == nil {
		t.SIPHeaders = map[string]string{}
	}
	_, err := tx.q.NewInsert().Model(t).Exec(ctx)
	return tx.note(userID, parley.AuditCreated, parley.AuditTrunk, t.ID, t, err)
}

// SaveTrunk stores a changed trunk, and its number where that has changed.
func (tx *Tx) SaveTrunk(ctx context.Context, userID int64, old, t *parley.Trunk) error {
	if old.PhoneNumber != t.PhoneNumber {
		n, err := tx.NumberForUpdate(ctx, userID, t.PhoneNumberID)
		if err != nil {
			return err
		}
		if err := tx.free(ctx, t.PhoneNumber); err != nil {
			return err
		}
		n.PhoneNumber, n.CountryCode = t.PhoneNumber, parley.PhoneCountry(t.PhoneNumber)
		if err := tx.saveNumber(ctx, userID, n); err != nil {
			return err
		}
	}
	t.UpdatedAt = parley.Now()
	res, err := tx.q.NewUpdate().Model(t).ExcludeColumn("id", "user_id", "phone_number_id", "created_at").
		Where("id = ? AND user_id = ?", t.ID, userID).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, parley.AuditTrunk, t.ID, t, one(res, err, trunkNotFound))
}

// free refuses a number that somebody has or buys. A new number is nobody's before it is stored, so that who is
// asking does not matter.
func (tx *Tx) free(ctx context.Context, number string) error {
	taken, err := tx.TakenNumbers(ctx, []string{number})
	if err != nil {
		return err
	}
	owned, err := tx.OthersNumber(ctx, 0, []string{number})
	if err == nil && (owned || taken[number]) {
		return alreadyOwned(number)
	}
	return err
}

// DeleteTrunk removes a trunk and its number.
func (tx *Tx) DeleteTrunk(ctx context.Context, userID, id int64) error {
	t, err := tx.TrunkForUpdate(ctx, userID, id)
	if err != nil {
		return err
	}
	res, err := tx.q.NewRaw("DELETE FROM numbers WHERE id = ? AND user_id = ?", t.PhoneNumberID, userID).Exec(ctx) // the trunk goes with it
	return tx.note(userID, parley.AuditDeleted, parley.AuditTrunk, id, nil, one(res, err, numberNotFound))
}

// BeginTrial notes that a user's test call over a trunk begins, which is over at until at the latest. It is false if
// another one is under way.
func (tx *Tx) BeginTrial(ctx context.Context, userID int64, now, until parley.Time) (bool, error) {
	r, err := tx.q.NewRaw("UPDATE users SET trying_until = ? WHERE id = ? AND trying_until <= ?", until, userID, now).Exec(ctx)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// EndTrial notes that the test call that began with until is over.
func (tx *Tx) EndTrial(ctx context.Context, userID int64, until parley.Time) error {
	_, err := tx.q.NewRaw("UPDATE users SET trying_until = 0 WHERE id = ? AND trying_until = ?", userID, until).Exec(ctx)
	return err
}
