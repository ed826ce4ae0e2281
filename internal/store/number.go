package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
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

// Answerer is the inbound assistant that answers a number, or would if it were active.
type Answerer struct {
	ID            int64
	Name, Status  string
	PhoneNumberID int64
}

// Answerers are the inbound assistants of the user's numbers, by the numbers' ids.
func (q Query) Answerers(ctx context.Context, userID int64) (map[int64]Answerer, error) {
	var rows []Answerer
	err := q.q.NewSelect().Table("assistants").Column("id", "name", "status", "phone_number_id").
		Where("user_id = ? AND type = 'inbound' AND phone_number_id IS NOT NULL", userID).Where(alive).Scan(ctx, &rows)
	of := make(map[int64]Answerer, len(rows))
	for _, r := range rows {
		of[r.PhoneNumberID] = r
	}
	return of, err
}

// AnsweredNumbers says which of the user's numbers an inbound assistant answers, and which one.
func (q Query) AnsweredNumbers(ctx context.Context, userID int64) (map[int64]int64, error) {
	all, err := q.Answerers(ctx, userID)
	of := make(map[int64]int64, len(all))
	for number, a := range all {
		of[number] = a.ID
	}
	return of, err
}

// CreateNumber stores a number that the user now owns.
func (tx *Tx) CreateNumber(ctx context.Context, userID int64, n *parley.Number) error {
	err := tx.createNumber(ctx, userID, n)
	return tx.note(userID, parley.AuditCreated, parley.AuditNumber, n.ID, n, err)
}

func (tx *Tx) createNumber(ctx context.Context, userID int64, n *parley.Number) error {
	n.ID, n.UserID, n.CreatedAt = 0, userID, parley.Now()
	_, err := tx.q.NewInsert().Model(n).Exec(ctx)
	return numberOwned(err, n.PhoneNumber)
}

// NumberForUpdate is Number, kept from others until the transaction ends.
func (tx *Tx) NumberForUpdate(ctx context.Context, userID, id int64) (*parley.Number, error) {
	n := new(parley.Number)
	err := tx.locked(tx.q.NewSelect().Model(n).Where("id = ? AND user_id = ?", id, userID)).Scan(ctx)
	return n, tx.saw(parley.AuditNumber, id, n, notFound(err, numberNotFound))
}

// SaveNumber stores what may change about a number.
func (tx *Tx) SaveNumber(ctx context.Context, userID int64, n *parley.Number) error {
	return tx.note(userID, parley.AuditChanged, parley.AuditNumber, n.ID, n, tx.saveNumber(ctx, userID, n))
}

func (tx *Tx) saveNumber(ctx context.Context, userID int64, n *parley.Number) error {
	res, err := tx.q.NewUpdate().Model(n).Column("phone_number", "nickname", "country_code", "paid_until",
		"released_at").
		Where("id = ? AND user_id = ?", n.ID, userID).Exec(ctx)
	return one(res, numberOwned(err, n.PhoneNumber), numberNotFound)
}

// SaveRoute stores who takes a number's calls; nil: its assistant, all of them.
func (tx *Tx) SaveRoute(ctx context.Context, userID, id int64, r *parley.NumberRoute) error {
	var number string
	err := tx.q.NewUpdate().Model(&parley.Number{Route: r}).Column("route").Where("id = ? AND user_id = ?", id,
		userID).Returning("phone_number").Scan(ctx, &number)
	return tx.changed(userID, parley.AuditNumber, id, number, notFound(err, numberNotFound), "route")
}

func numberOwned(err error, number string) error {
	if violates(err, "numbers.phone_number", "numbers_owned") {
		return alreadyOwned(number)
	}
	return err
}

func alreadyOwned(number string) error {
	return parley.Errorf(parley.Conflict, "The phone number %s is owned already.", number)
}

// RentedNumber is the number rented from the carrier with that E.164, whoever has it: what a message or a call came to.
func (q Query) RentedNumber(ctx context.Context, e164 string) (*parley.Number, error) {
	n := new(parley.Number)
	err := q.q.NewSelect().Model(n).Where("phone_number = ? AND type = ?", e164, parley.NumberNormal).Scan(ctx)
	return n, notFound(err, numberNotFound)
}

// NumbersDue are the rented numbers whose paid period is over, by id, from the one behind after.
func (q Query) NumbersDue(ctx context.Context, now parley.Time, after int64, limit int) (list []parley.Number,
	err error) {
	err = q.q.NewSelect().Model(&list).Where("type = ? AND paid_until <= ? AND id > ?", parley.NumberNormal, now,
		after).Order("id").Limit(int64(limit)).Scan(ctx)
	return list, err
}

// NumberOwner is the inbound assistant that has one of the user's numbers, active or not; nil when none has.
func (q Query) NumberOwner(ctx context.Context, userID, numberID int64) (*parley.Assistant, error) {
	a, err := q.assistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery {
		return s.Where("user_id = ? AND phone_number_id = ? AND type = 'inbound'", userID, numberID)
	})
	if IsNotFound(err) {
		return nil, nil
	}
	return a, err
}

// NumberAssistant is the active inbound assistant that answers one of the user's numbers, nil when none does.
func (q Query) NumberAssistant(ctx context.Context, userID, numberID int64) (*parley.Assistant, error) {
	a, err := q.assistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery {
		return s.Where("user_id = ? AND phone_number_id = ? AND type = 'inbound' AND status = 'active'", userID,
			numberID)
	})
	if IsNotFound(err) {
		return nil, nil
	}
	return a, err
}

// TakenNumbers says which of some numbers nobody can rent here: they are rented, or being bought. That a trunk has
// one says nothing: whoever made the trunk has written it down, and the carrier rents out its own.
func (q Query) TakenNumbers(ctx context.Context, numbers []string) (map[string]bool, error) {
	taken := map[string]bool{}
	if len(numbers) == 0 {
		return taken, nil
	}
	var found []string
	err := q.q.NewRaw(`SELECT phone_number FROM numbers WHERE type <> 'caller_id' AND type = 'normal' AND phone_number IN (?)
		UNION SELECT phone_number FROM number_orders WHERE phone_number IN (?)`, bun.List(numbers), bun.List(numbers)).Scan(ctx, &found)
	for _, n := range found {
		taken[n] = true
	}
	return taken, err
}

// OfferNumbers keeps what a search showed a user, and forgets what was shown before a time.
func (tx *Tx) OfferNumbers(ctx context.Context, userID int64, list []parley.NumberOffer, forget parley.Time) error {
	if _, err := tx.q.NewDelete().Model((*parley.NumberOffer)(nil)).Where("created_at < ?",
		forget).Exec(ctx); err != nil || len(list) == 0 {
		return err
	}
	for i := range list {
		list[i].UserID = userID
	}
	_, err := tx.q.NewInsert().Model(&list).On("CONFLICT (user_id, phone_number) DO UPDATE").Set(
		"rent = EXCLUDED.rent").
		Set("sms_capable = EXCLUDED.sms_capable").Set("created_at = EXCLUDED.created_at").Exec(ctx)
	return err
}

// NumberOffer is what a search showed the user of a number, since a time.
func (q Query) NumberOffer(ctx context.Context, userID int64, number string,
	since parley.Time) (*parley.NumberOffer, error) {
	o := new(parley.NumberOffer)
	err := q.q.NewSelect().Model(o).Where("user_id = ? AND phone_number = ? AND created_at >= ?", userID, number,
		since).Scan(ctx)
	return o, notFound(err, numberNotFound)
}

// CreateOrder stores a purchase under way. The error is a Conflict where somebody else buys the number, or has it.
func (tx *Tx) CreateOrder(ctx context.Context, userID int64, o *parley.NumberOrder) error {
	if err := tx.paidFor(ctx, userID); err != nil {
		return err
	}
	if err := tx.room(ctx, userID, numberLimit, 1); err != nil {
		return err
	}
	o.ID, o.UserID, o.CreatedAt = 0, userID, parley.Now()
	_, err := tx.q.NewInsert().Model(o).Exec(ctx)
	if violates(err, "number_orders.phone_number", "number_orders_phone") {
		return parley.Errorf(parley.Conflict, "The phone number %s is being bought.", o.PhoneNumber)
	}
	if err != nil {
		return err
	}
	// Asked once the order stands: it has waited for whoever was buying the number, and who may have it now.
	owned, err := tx.q.NewSelect().Model((*parley.Number)(nil)).Where("phone_number = ? AND type = ?",
		o.PhoneNumber, parley.NumberNormal).Exists(ctx)
	if err == nil && owned {
		return alreadyOwned(o.PhoneNumber)
	}
	return tx.note(userID, parley.AuditCreated, parley.AuditOrder, o.ID, o, err)
}

// Order is a purchase under way; nil when it has ended.
func (q Query) Order(ctx context.Context, userID, id int64) (*parley.NumberOrder, error) {
	return first[parley.NumberOrder](ctx, q, func(s *bun.SelectQuery) { s.Where("id = ? AND user_id = ?", id, userID) })
}

// CancelOrder notes that the buyer was told of a failure, unless the purchase has ended.
func (tx *Tx) CancelOrder(ctx context.Context, userID, id int64) error {
	there, err := some(tx.q.NewRaw("UPDATE number_orders SET cancelled = TRUE, cancelled_at = ? WHERE id = ? AND user_id = ?",
		parley.Now(), id, userID).Exec(ctx))
	if !there {
		return err
	}
	return tx.note(userID, parley.AuditDeleted, parley.AuditOrder, id, nil, err)
}

// StrandedOrders are purchases that somebody began before a time and has not ended, and those that were cancelled
// before another.
func (q Query) StrandedOrders(ctx context.Context, began, cancelled parley.Time, limit int) (orders []parley.NumberOrder,
	err error) {
	err = q.q.NewSelect().Model(&orders).Where("NOT cancelled AND created_at < ? OR cancelled AND cancelled_at < ?", began,
		cancelled).Order("id").Limit(int64(limit)).Scan(ctx)
	return orders, err
}

// EndOrder removes a purchase; false when another has ended it, or, unless cancelled, when it was cancelled.
func (tx *Tx) EndOrder(ctx context.Context, userID, id int64, cancelled bool) (bool, error) {
	return some(tx.q.NewRaw("DELETE FROM number_orders WHERE id = ? AND user_id = ? AND cancelled = ?", id, userID,
		cancelled).Exec(ctx))
}

// DeleteNumber gives a number up at once; assistants lose it, and a trunk that has it beside its own.
func (tx *Tx) DeleteNumber(ctx context.Context, userID, id int64) error {
	n, err := tx.Number(ctx, userID, id)
	if err != nil {
		return err
	}
	if n.TrunkID != nil {
		t, err := tx.TrunkForUpdate(ctx, userID, *n.TrunkID)
		if err != nil {
			return err
		}
		left := &parley.Trunk{Numbers: t.Without(n.PhoneNumber)}
		if _, err := tx.q.NewUpdate().Model(left).Column("numbers").Where("id = ?", t.ID).Exec(ctx); err != nil {
			return err
		}
	}
	return tx.drop(ctx, userID, parley.AuditNumber, id, numberNotFound,
		"DELETE FROM numbers WHERE id = ? AND user_id = ? RETURNING phone_number", id, userID)
}

// AskCallerID stores a number that is to be verified, in place of an older try.
func (tx *Tx) AskCallerID(ctx context.Context, userID int64, c *parley.CallerID) error {
	if err := tx.paidFor(ctx, userID); err != nil {
		return err
	}
	if err := tx.room(ctx, userID, numberLimit, 1); err != nil {
		return err
	}
	c.ID, c.UserID, c.CreatedAt = 0, userID, parley.Now()
	c.Sealed = tx.box.seal("caller id code", []byte(c.Code))
	_, err := tx.q.NewDelete().Model(c).Where("user_id = ? AND phone_number = ? OR expires_at < ?", userID,
		c.PhoneNumber, c.CreatedAt).Exec(ctx)
	if err == nil {
		_, err = tx.q.NewInsert().Model(c).Exec(ctx)
	}
	return tx.note(userID, parley.AuditCreated, parley.AuditCallerID, c.ID, c, err)
}

// CallerID is a number that the user has to verify, with its code.
func (q Query) CallerID(ctx context.Context, userID, id int64) (*parley.CallerID, error) {
	return q.callerID(ctx, userID, id, false)
}

// CallerIDForUpdate is CallerID, kept from others until the transaction ends.
func (tx *Tx) CallerIDForUpdate(ctx context.Context, userID, id int64) (*parley.CallerID, error) {
	return tx.callerID(ctx, userID, id, true)
}

func (q Query) callerID(ctx context.Context, userID, id int64, lock bool) (*parley.CallerID, error) {
	c := new(parley.CallerID)
	s := q.q.NewSelect().Model(c).Where("id = ? AND user_id = ?", id, userID)
	if lock {
		s = q.locked(s)
	}
	if err := s.Scan(ctx); err != nil {
		return nil, notFound(err, "Caller ID not found")
	}
	code, err := q.box.open("caller id code", c.Sealed)
	c.Code = string(code)
	return c, err
}

// CallerIDTried counts a wrong code.
func (tx *Tx) CallerIDTried(ctx context.Context, userID, id int64) error {
	_, err := tx.q.NewRaw("UPDATE caller_ids SET tries = tries + 1 WHERE id = ? AND user_id = ?", id, userID).Exec(ctx)
	return err
}

// DropCallerID forgets a number that was to be verified.
func (tx *Tx) DropCallerID(ctx context.Context, userID, id int64) error {
	_, err := tx.q.NewRaw("DELETE FROM caller_ids WHERE id = ? AND user_id = ?", id, userID).Exec(ctx)
	return err
}

// ProvedNumber says whether a number is proved to be the user's: they rent it, or have verified it as a caller id.
func (q Query) ProvedNumber(ctx context.Context, userID int64, e164 string) (bool, error) {
	return q.q.NewSelect().Model((*parley.Number)(nil)).Where("user_id = ? AND phone_number = ? AND type <> ?",
		userID, e164, parley.NumberSIP).Exists(ctx)
}

// OthersNumber says whether one of some numbers is another user's, who rents it or has it on a trunk.
func (q Query) OthersNumber(ctx context.Context, userID int64, numbers []string) (bool, error) {
	if len(numbers) == 0 {
		return false, nil
	}
	return q.q.NewSelect().Model((*parley.Number)(nil)).Where(
		"type <> 'caller_id' AND phone_number IN (?) AND user_id <> ?", bun.List(numbers), userID).Exists(ctx)
}
