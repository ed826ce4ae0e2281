package store

import (
	"context"
	"database/sql"
	"errors"

	"parley/internal/parley"
)

// PublicBudgetSpent is what visitors are told when their part of an account's money is used up for the day.
var PublicBudgetSpent = &parley.Error{Kind: parley.Payment,
	Message: "This assistant has reached its limit for today. Please try again tomorrow."}

// PublicSpend is what a user's public channels cost at a time's day, with what is set aside for what is under way,
// and what they may.
func (q Query) PublicSpend(ctx context.Context, userID int64, at parley.Time) (spent, budget parley.Money, err error) {
	err = q.q.NewRaw("SELECT coalesce((SELECT amount FROM public_spend WHERE user_id = ? AND day = ?), 0)", userID,
		day(at)).Scan(ctx, &spent)
	return spent, q.rules.PublicBudget, err
}

// ReservePublic is Reserve for what a stranger causes: it counts against the account's budget for the day, which is
// warned of when four fifths are gone, and refuses beyond it. The user's money is locked, so that of two who come
// together the second sees the first.
func (tx *Tx) ReservePublic(ctx context.Context, userID int64, reference string, amount parley.Money,
	until parley.Time) error {
	if err := tx.Reserve(ctx, userID, reference, amount, until); err != nil || amount == 0 {
		return err
	}
	now := parley.Now()
	first, err := some(tx.q.NewRaw("UPDATE reservations SET public_day = ? WHERE user_id = ? AND reference = ? AND public_day = 0",
		day(now), userID, reference).Exec(ctx))
	if err != nil || !first { // renewed: it is counted
		return err
	}
	var spent parley.Money
	var warned bool
	err = tx.q.NewRaw(`INSERT INTO public_spend (user_id, day, amount) VALUES (?, ?, ?)
		ON CONFLICT (user_id, day) DO UPDATE SET amount = public_spend.amount + excluded.amount RETURNING amount, warned`,
		userID, day(now), amount).Scan(ctx, &spent, &warned)
	switch {
	case err != nil || tx.rules.PublicBudget == 0:
		return err
	case spent > tx.rules.PublicBudget:
		return PublicBudgetSpent
	case !warned && spent >= tx.rules.PublicBudget/5*4:
		return tx.warnPublic(ctx, userID, spent, now)
	}
	return nil
}

// warnPublic tells the account's endpoint, where it has one, once a day that the budget will soon be gone.
func (tx *Tx) warnPublic(ctx context.Context, userID int64, spent parley.Money, now parley.Time) error {
	if _, err := tx.q.NewRaw("UPDATE public_spend SET warned = TRUE WHERE user_id = ? AND day = ?", userID,
		day(now)).Exec(ctx); err != nil {
		return err
	}
	u, err := tx.User(ctx, userID)
	if err != nil || u.WebhookURL == "" {
		return err
	}
	return tx.EnqueueDelivery(ctx, userID, parley.PublicBudgetLow{Spent: spent, Budget: tx.rules.PublicBudget,
		CreatedAt: now}.Delivery(u.WebhookURL))
}

// release removes a reservation. One that counted against the public budget leaves there what was really charged
// under its reference.
func (tx *Tx) release(ctx context.Context, userID int64, reference string) error {
	var amount parley.Money
	var counted int64
	err := tx.q.NewRaw("DELETE FROM reservations WHERE user_id = ? AND reference = ? RETURNING amount, public_day",
		userID, reference).Scan(ctx, &amount, &counted)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil || counted == 0 {
		return err
	}
	_, err = tx.q.NewRaw(`UPDATE public_spend SET amount = amount - ? - coalesce((SELECT sum(amount) FROM ledger
		WHERE user_id = ? AND kind IN (?, ?, ?) AND reference = ?), 0) WHERE user_id = ? AND day = ?`,
		amount, userID, parley.MessageCharge, parley.CallCharge, parley.CarrierCharge, reference, userID,
		counted).Exec(ctx)
	return err
}
