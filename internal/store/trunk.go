package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"parley/internal/parley"
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
		ColumnExpr("EXISTS (SELECT 1 FROM numbers AS r WHERE r.phone_number = n.phone_number AND r.type <> 'caller_id' " +
			"AND r.type = 'normal') AS rented").
		Join("JOIN numbers AS n ON n.id = t.phone_number_id")
}

// Trunk is one of the user's SIP trunks.
func (q Query) Trunk(ctx context.Context, userID, id int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := q.trunks(t, userID).Where("t.id = ?", id).Scan(ctx)
	t.FromStore()
	return t, notFound(err, trunkNotFound)
}

// TrunkForUpdate is Trunk, kept from others until the transaction ends.
func (tx *Tx) TrunkForUpdate(ctx context.Context, userID, id int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := tx.lock(tx.trunks(t, userID).Where("t.id = ?", id), "UPDATE OF t").Scan(ctx)
	t.FromStore()
	return t, tx.saw(parley.AuditTrunk, id, t, notFound(err, trunkNotFound))
}

// NumberTrunk is the trunk of one of the user's numbers.
func (q Query) NumberTrunk(ctx context.Context, userID, numberID int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := q.trunks(t, userID).Where("t.phone_number_id = ? OR t.id = (SELECT trunk_id FROM numbers WHERE id = ?)", numberID,
		numberID).Scan(ctx)
	t.FromStore()
	return t, notFound(err, trunkNotFound)
}

// TrunkNumber is the number of a trunk that was called: one beside its own, or its own.
func (q Query) TrunkNumber(ctx context.Context, t *parley.Trunk, called string) (*parley.Number, error) {
	n := new(parley.Number)
	err := q.q.NewSelect().Model(n).Where("trunk_id = ? AND user_id = ? AND phone_number = ?", t.ID, t.UserID, called).Scan(ctx)
	if err = notFound(err, numberNotFound); IsNotFound(err) {
		return q.Number(ctx, t.UserID, t.PhoneNumberID)
	}
	return n, err
}

// FurtherNumbers are the numbers of all trunks beside their own, by trunk, without those that the carrier rents out.
func (q Query) FurtherNumbers(ctx context.Context) (map[int64][]string, error) {
	var rows []struct {
		TrunkID     int64
		PhoneNumber string
	}
	err := q.q.NewRaw(`SELECT trunk_id, phone_number FROM numbers AS n WHERE trunk_id IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM numbers AS r WHERE r.phone_number = n.phone_number AND r.type = 'normal') ORDER BY n.id`).Scan(ctx, &rows)
	of := map[int64][]string{}
	for _, r := range rows {
		of[r.TrunkID] = append(of[r.TrunkID], r.PhoneNumber)
	}
	return of, err
}

// Trunks are the user's SIP trunks, newest first.
func (q Query) Trunks(ctx context.Context, userID int64) ([]parley.Trunk, error) {
	list := []parley.Trunk{}
	err := q.trunks(&list, userID).OrderExpr("t.id DESC").Scan(ctx)
	for i := range list {
		list[i].FromStore()
	}
	return list, err
}

// AnyTrunk is the trunk with that id, whoever owns it: a call that comes over it names no user.
func (q Query) AnyTrunk(ctx context.Context, id int64) (*parley.Trunk, error) {
	t := new(parley.Trunk)
	err := q.anyTrunks(t).Where("t.id = ?", id).Scan(ctx)
	t.FromStore()
	return t, notFound(err, trunkNotFound)
}

// AllTrunks are the trunks of all users: the server has one telephone line, which registers with them and lets their
// calls in.
func (q Query) AllTrunks(ctx context.Context) ([]parley.Trunk, error) {
	list := []parley.Trunk{}
	err := q.anyTrunks(&list).OrderExpr("t.id").Scan(ctx)
	for i := range list {
		list[i].FromStore()
	}
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
	t.PasswordSet = password != ""
}

// CreateTrunk stores a new trunk, and its number as an owned number of type sip. The error is a Conflict where the
// number is on this server already.
func (tx *Tx) CreateTrunk(ctx context.Context, userID int64, t *parley.Trunk) error {
	if err := tx.room(ctx, userID, trunkLimit, 1); err != nil {
		return err
	}
	n := &parley.Number{PhoneNumber: t.PhoneNumber, CountryCode: t.CountryCode, Type: parley.NumberSIP}
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
	t.Proxy = (*string)(t.OutboundProxy)
	if t.SIPHeaders == nil {
		t.SIPHeaders = map[string]string{}
	}
	_, err := tx.q.NewInsert().Model(t).Exec(ctx)
	if err == nil {
		err = tx.addFurther(ctx, userID, t, t.Further())
	}
	return tx.note(userID, parley.AuditCreated, parley.AuditTrunk, t.ID, t, err)
}

// SaveTrunk stores a changed trunk, and its number where that has changed.
func (tx *Tx) SaveTrunk(ctx context.Context, userID int64, old, t *parley.Trunk) error {
	more, err := tx.dropFurther(ctx, userID, old, t) // first: its main number may be one of them
	if err != nil {
		return err
	}
	if old.PhoneNumber != t.PhoneNumber || old.CountryCode != t.CountryCode {
		n, err := tx.NumberForUpdate(ctx, userID, t.PhoneNumberID)
		if err != nil {
			return err
		}
		if old.PhoneNumber != t.PhoneNumber {
			if err := tx.free(ctx, t.PhoneNumber); err != nil {
				return err
			}
		}
		n.PhoneNumber, n.CountryCode = t.PhoneNumber, t.CountryCode
		if err := tx.saveNumber(ctx, userID, n); err != nil {
			return err
		}
	}
	if err := tx.addFurther(ctx, userID, t, more); err != nil {
		return err
	}
	t.UpdatedAt, t.Proxy = parley.Now(), (*string)(t.OutboundProxy)
	res, err := tx.q.NewUpdate().Model(t).ExcludeColumn("id", "user_id", "phone_number_id", "created_at").
		Where("id = ? AND user_id = ?", t.ID, userID).Exec(ctx)
	return tx.note(userID, parley.AuditChanged, parley.AuditTrunk, t.ID, t, one(res, err, trunkNotFound))
}

// dropFurther deletes the numbers beside its own that a trunk no longer has, and returns those that it has in addition.
func (tx *Tx) dropFurther(ctx context.Context, userID int64, old, t *parley.Trunk) (more []string, err error) {
	was, is := old.Further(), t.Further()
	have := map[string]bool{}
	for _, number := range was {
		have[number] = true
	}
	for _, number := range is {
		if !have[number] {
			more = append(more, number)
		}
		delete(have, number)
	}
	if gone := slices.Collect(maps.Keys(have)); len(gone) > 0 {
		_, err := tx.q.NewRaw("DELETE FROM numbers WHERE trunk_id = ? AND user_id = ? AND phone_number IN (?)", t.ID, userID,
			bun.List(gone)).Exec(ctx)
		if err != nil {
			return nil, err
		}
	}
	return more, nil
}

// addFurther gives a trunk numbers beside its own.
func (tx *Tx) addFurther(ctx context.Context, userID int64, t *parley.Trunk, list []string) error {
	if len(list) == 0 {
		return nil
	}
	if err := tx.free(ctx, list...); err != nil {
		return err
	}
	rows := make([]parley.Number, len(list))
	for i, number := range list {
		rows[i] = parley.Number{UserID: userID, PhoneNumber: number, CountryCode: parley.PhoneCountry(number),
			Type: parley.NumberSIP, TrunkID: &t.ID, CreatedAt: parley.Now()}
	}
	_, err := tx.q.NewInsert().Model(&rows).Exec(ctx)
	return numberOwned(err, list[0])
}

// free refuses numbers that somebody has or buys. A new number is nobody's before it is stored, so that who is
// asking does not matter. Extensions are no numbers: anybody may have them.
func (tx *Tx) free(ctx context.Context, list ...string) error {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !strings.HasPrefix(s, "+") })
	if len(list) == 0 {
		return nil
	}
	var taken []string
	err := tx.q.NewRaw(`SELECT phone_number FROM numbers WHERE type <> 'caller_id' AND phone_number IN (?)
		UNION SELECT phone_number FROM number_orders WHERE phone_number IN (?)`, bun.List(list), bun.List(list)).Scan(ctx, &taken)
	if err == nil && len(taken) > 0 {
		return alreadyOwned(slices.Min(taken))
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
