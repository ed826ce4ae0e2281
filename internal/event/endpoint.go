package event

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

// Rotate makes a new key that signs a user's webhooks. The former one signs along for a day.
func Rotate(ctx context.Context, db *store.DB, userID int64) (key []byte, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		key, err = tx.RotateWebhookSecret(ctx, userID, parley.Now())
		return err
	})
	return key, err
}

// SetEndpoint has the account's own events sent to a URL; nil: nowhere.
func SetEndpoint(ctx context.Context, db *store.DB, userID int64, url *string) error {
	to := ""
	if url != nil {
		to = *url
	}
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.SetWebhookURL(ctx, userID, to) })
}

// Resend has a delivery sent again: at once, and with its whole schedule.
func Resend(ctx context.Context, db *store.DB, userID, id int64) (d *parley.Delivery, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		d, err = tx.ResendDelivery(ctx, userID, id)
		return err
	})
	return d, err
}

// Try sends a made-up event of a kind (see Sample) to an assistant's endpoint.
func Try(ctx context.Context, db *store.DB, a *parley.Assistant, kind parley.EventKind) (*parley.Delivery, error) {
	d := Sample(a, kind)
	if d == nil {
		return nil, parley.Errorf(parley.Invalid, "The assistant has no webhook URL for this event.")
	}
	return d, db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueTest(ctx, a.UserID, d) })
}
