package store

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Insufficient is the refusal of a charge that the balance doesn't cover.
var Insufficient = &parley.Error{Kind: parley.Payment, Message: "Insufficient balance"}

// funds locks the user's money for this transaction and says what there is, and how much of it is set aside for
// others than reference. Every movement begins here, so that two of them never judge the same balance.
func (tx *Tx) funds(ctx context.Context, userID int64, reference string, now parley.Time) (balance,
	reserved parley.Money, err error) {
	lock := ""
	if !tx.sqlite {
		// what the transaction has inserted for the user before holds their key: a stronger lock could deadlock
		lock = " FOR NO KEY UPDATE"
	}
	if err = tx.q.NewRaw("SELECT balance FROM users WHERE id = ?"+lock, userID).Scan(ctx, &balance); err != nil {
		return 0, 0, notFound(err, "User not found")
	}
	// A statement of its own: on PostgreSQL it sees what was committed while the lock was waited for.
	err = tx.q.NewRaw("SELECT coalesce(sum(amount), 0) FROM reservations WHERE user_id = ? AND reference <> ? AND expires_at > ?",
		userID, reference, now).Scan(ctx, &reserved)
	return balance, reserved, err
}

// Post moves e.Amount into or out of a user's balance and writes the entry. The same kind and reference a second time
// changes nothing and says so. A charge beyond what is free (balance less others' reservations) is refused with
// Insufficient.
func (tx *Tx) Post(ctx context.Context, userID int64, e *parley.LedgerEntry) (posted bool, err error) {
	return tx.post(ctx, userID, e, false)
}

// post is Post; with all, a charge takes what is set aside, too.
func (tx *Tx) post(ctx context.Context, userID int64, e *parley.LedgerEntry, all bool) (posted bool, err error) {
	if e.Amount == 0 {
		return false, nil
	}
	now := parley.Now()
	balance, reserved, err := tx.funds(ctx, userID, e.Reference, now)
	if err != nil {
		return false, err
	}
	done, err := tx.q.NewSelect().Model(e).Where("user_id = ? AND kind = ? AND reference = ?", userID, e.Kind,
		e.Reference).Exists(ctx)
	if err != nil || done {
		return false, err
	}
	if e.Amount < 0 && balance+e.Amount < reserved && !all {
		return false, Insufficient
	}
	e.UserID, e.BalanceAfter, e.CreatedAt = userID, balance+e.Amount, parley.DateTime(now)
	if _, err = tx.q.NewRaw("UPDATE users SET balance = ? WHERE id = ?", e.BalanceAfter, userID).Exec(ctx); err != nil {
		return false, err
	}
	if _, err = tx.q.NewInsert().Model(e).Exec(ctx); err != nil {
		return false, err
	}
	tx.countEntry(e)
	if e.Kind == parley.Credit {
		amount, _ := json.Marshal(e.Amount)
		tx.enter(userID, parley.AuditCreated, thing{parley.AuditCredit, e.Reference}, "",
			[]parley.AuditChange{{Field: "amount", To: amount}})
	}
	if e.Kind == parley.Credit && e.Amount > 0 { // who pays is an account like any other
		if _, err = tx.q.NewRaw("UPDATE users SET signed_up_at = 0, plan = CASE WHEN plan = ? THEN ? ELSE plan END WHERE id = ? "+
			"AND signed_up_at > 0",
			parley.TrialPlan, parley.DefaultPlan, userID).Exec(ctx); err != nil {
			return false, err
		}
	}
	if low := tx.rules.LowBalance; balance >= low && e.BalanceAfter < low {
		err = tx.balanceFell(ctx, userID, e.BalanceAfter)
	}
	return err == nil, err
}

// TakeBack has so much of a payment's credit be taken back for one reason (its refunds, or one dispute): it takes what is missing, or
// gives back what is too much. All reasons together take no more than the payment gave, and no more than the balance has, for which what
// is set aside counts too: done again when there is more, it takes the rest, and otherwise it changes nothing. only says that nothing is
// to be given back.
func (tx *Tx) TakeBack(ctx context.Context, userID int64, payment, reason string, wanted parley.Money, only bool,
	description string) (moved parley.Money, err error) {
	balance, _, err := tx.funds(ctx, userID, "", parley.Now()) // from here on nobody else moves the user's money
	if err != nil {
		return 0, err
	}
	var given, taken, mine parley.Money
	var n int64
	err = tx.q.NewRaw(`SELECT coalesce(sum(CASE WHEN reference = ? THEN amount ELSE 0 END), 0),
		coalesce(-sum(CASE WHEN reference <> ? THEN amount ELSE 0 END), 0),
		coalesce(-sum(CASE WHEN substr(reference, 1, ?) = ? THEN amount ELSE 0 END), 0),
		coalesce(sum(CASE WHEN substr(reference, 1, ?) = ? THEN 1 ELSE 0 END), 0)
		FROM ledger WHERE user_id = ? AND kind = ? AND (reference = ? OR substr(reference, 1, ?) = ?)`,
		payment, payment, len(payment+":"+reason+":"), payment+":"+reason+":", len(payment+":"+reason+":"), payment+":"+reason+":",
		userID, parley.Credit, payment, len(payment)+1, payment+":").Scan(ctx, &given, &taken, &mine, &n)
	if err != nil {
		return 0, err
	}
	moved = min(min(wanted, given-(taken-mine))-mine, balance)
	if moved < 0 && only {
		moved = 0
	}
	_, err = tx.post(ctx, userID, &parley.LedgerEntry{Kind: parley.Credit, Amount: -moved,
		Reference: payment + ":" + reason + ":" + strconv.FormatInt(n+1, 10), Description: description}, true)
	return moved, err
}

// Ledger is a page of the user's entries, newest first. from and to bound created_at where they are not 0; to is
// exclusive.
func (q Query) Ledger(ctx context.Context, userID int64, from, to parley.Time, p Page) (list []parley.LedgerEntry,
	total int, err error) {
	s := q.q.NewSelect().Model(&list).Where("user_id = ?", userID)
	total, more, err := p.of(ctx, s, "id DESC", q.long(userID, "ledger", "id", s, func(s *bun.SelectQuery, unindexed string) {
		inTime(s, unindexed+"created_at", from, to)
	}).total)
	if err == nil && more {
		err = s.Scan(ctx)
	}
	return list, total, err
}

// Reserve sets an amount aside under a reference until it is settled, released, or lapses at until. The same reference
// again renews it. An amount that is not free is refused with Insufficient.
func (tx *Tx) Reserve(ctx context.Context, userID int64, reference string, amount parley.Money,
	until parley.Time) error {
	if amount == 0 {
		return nil
	}
	now := parley.Now()
	balance, reserved, err := tx.funds(ctx, userID, reference, now)
	if err != nil {
		return err
	}
	if balance-reserved < amount {
		return Insufficient
	}
	_, err = tx.q.NewRaw(`INSERT INTO reservations (user_id, reference, amount, expires_at, created_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, reference) DO UPDATE SET amount = excluded.amount, expires_at = excluded.expires_at`,
		userID, reference, amount, until, now).Exec(ctx)
	return err
}

// Release gives back what was set aside under a reference.
func (tx *Tx) Release(ctx context.Context, userID int64, reference string) error {
	return tx.release(ctx, userID, reference)
}

// Settle takes the real price (e.Amount, negative) of what was set aside under e.Reference, and gives the rest back.
// Once.
func (tx *Tx) Settle(ctx context.Context, userID int64, e *parley.LedgerEntry) (posted bool, err error) {
	posted, err = tx.Post(ctx, userID, e)
	if err != nil {
		return false, err
	}
	return posted, tx.Release(ctx, userID, e.Reference)
}

// Free is what a user can spend now: the balance less what is set aside.
func (q Query) Free(ctx context.Context, userID int64) (free parley.Money, err error) {
	err = q.q.NewRaw(`SELECT balance - coalesce((SELECT sum(amount) FROM reservations WHERE user_id = ? AND expires_at > ?), 0)
		FROM users WHERE id = ?`, userID, parley.Now(), userID).Scan(ctx, &free)
	return free, notFound(err, "User not found")
}
