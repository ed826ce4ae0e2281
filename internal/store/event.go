package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
	"parley/internal/telemetry"
)

const deliveryNotFound = "Webhook delivery not found"

// Deliveries that are due are found by lane: a lane is an endpoint of a user's, and what waits in one costs nothing
// to pass by, however much it is.

// lane names a user's endpoint; User reads the user back. That two of one user's endpoints share a lane by chance
// does no harm.
func lane(userID int64, url string) int64 {
	sum := sha256.Sum256([]byte(url))
	return userID<<20 | int64(binary.BigEndian.Uint32(sum[:])>>12)
}

// LaneUser is the user whose endpoint a lane is.
func LaneUser(lane int64) int64 { return lane >> 20 }

// WatchDeliveries gives a channel that has a token when deliveries were committed here since it was last read.
func (db *DB) WatchDeliveries() <-chan struct{} { return db.news }

// EnqueueDelivery has an event delivered: at once, and until its schedule is used up, from the moment that this
// transaction is committed. A nil delivery, of an event that has no endpoint, is no delivery.
func (tx *Tx) EnqueueDelivery(ctx context.Context, userID int64, d *parley.Delivery) error {
	if d == nil {
		return nil
	}
	now := parley.Now()
	d.Trace = parley.Trace(telemetry.Parent(ctx))
	tx.AfterCommit(tx.wake)
	return tx.insertDelivery(ctx, userID, d, now, now)
}

// RecordDelivery stores a delivery that was made already, with its one attempt.
func (tx *Tx) RecordDelivery(ctx context.Context, userID int64, d *parley.Delivery, a *parley.DeliveryAttempt) error {
	if err := tx.insertDelivery(ctx, userID, d, a.At, 0); err != nil {
		return err
	}
	return tx.keepAttempt(ctx, d, a)
}

// NewWebhookID makes an event's id, which no other has.
func NewWebhookID() string { return "msg_" + rand.Text() }

func (tx *Tx) insertDelivery(ctx context.Context, userID int64, d *parley.Delivery, created, due parley.Time) error {
	if d.WebhookID == "" {
		d.WebhookID = NewWebhookID()
	}
	d.ID, d.UserID, d.Lane, d.CreatedAt, d.NextAttemptAt = 0, userID, lane(userID, d.URL), created, due
	_, err := tx.q.NewInsert().Model(d).Exec(ctx)
	return err
}

// wake tells who delivers that there is something to do. It never waits.
func (q Query) wake() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// DueLanes are the lanes in which a delivery is due. The index is read one step per lane that has something pending,
// not per delivery.
func (q Query) DueLanes(ctx context.Context, now parley.Time) (lanes []int64, err error) {
	const next = "SELECT lane FROM webhook_deliveries WHERE next_attempt_at > 0 AND lane > %s ORDER BY lane LIMIT 1"
	err = q.q.NewRaw(`WITH RECURSIVE lanes (lane) AS (
			SELECT * FROM (`+fmt.Sprintf(next, "0")+`) AS first
			UNION ALL SELECT (`+fmt.Sprintf(next, "lanes.lane")+`) FROM lanes WHERE lanes.lane IS NOT NULL
		) SELECT lane FROM lanes WHERE lane IS NOT NULL AND EXISTS (SELECT 1 FROM webhook_deliveries AS d
			WHERE d.lane = lanes.lane AND d.next_attempt_at > 0 AND d.next_attempt_at <= ?)`, now).Scan(ctx, &lanes)
	return lanes, err
}

// ClaimDeliveries takes at most n due deliveries of a lane for the caller, longest due first, until then: if the
// caller has not noted an attempt by that time they are due again.
func (tx *Tx) ClaimDeliveries(ctx context.Context, lane int64, n int, now,
	until parley.Time) (list []parley.Delivery, err error) {
	err = tx.q.NewRaw(`UPDATE webhook_deliveries SET next_attempt_at = ? WHERE id IN (SELECT id FROM webhook_deliveries
		WHERE lane = ? AND next_attempt_at > 0 AND next_attempt_at <= ? ORDER BY next_attempt_at, id LIMIT ?`+tx.skipLocked()+`) RETURNING *`,
		until, lane, now, n).Scan(ctx, &list)
	return list, err
}

// NoteAttempt stores an attempt at a delivery that was claimed, and what becomes of it (see parley.Delivery.Note). An
// endpoint that is gone is disabled. A delivery that was deleted meanwhile stays so.
func (tx *Tx) NoteAttempt(ctx context.Context, claimed *parley.Delivery, a *parley.DeliveryAttempt,
	jitter float64) (*parley.Delivery, error) {
	d := new(parley.Delivery)
	err := tx.locked(tx.q.NewSelect().Model(d).Where("id = ?", claimed.ID)).Scan(ctx)
	if err != nil {
		return nil, notFound(err, deliveryNotFound)
	}
	d.Note(a, d.NextAttemptAt == claimed.NextAttemptAt, jitter)
	_, err = tx.q.NewUpdate().Model(d).Column("status", "attempts", "last_status", "last_error", "answer",
		"next_attempt_at").WherePK().Exec(ctx)
	if err != nil {
		return nil, err
	}
	return d, tx.keepAttempt(ctx, d, a)
}

func (tx *Tx) keepAttempt(ctx context.Context, d *parley.Delivery, a *parley.DeliveryAttempt) error {
	a.ID, a.DeliveryID = 0, d.ID
	if _, err := tx.q.NewInsert().Model(a).Exec(ctx); err != nil || !a.Gone() {
		return err
	}
	return tx.disableEndpoint(ctx, d.UserID, d.URL)
}

// disableEndpoint does for a URL that wants no more what its user would do: it is taken out wherever it stands, and
// what waits for it has failed. The post-call URL stays, switched off, as disable-webhook leaves it.
func (tx *Tx) disableEndpoint(ctx context.Context, userID int64, url string) error {
	for _, set := range []string{"is_webhook_active = FALSE WHERE is_webhook_active AND webhook_url = ?",
		"inbound_webhook_url = NULL WHERE inbound_webhook_url = ?",
		"conversation_ended_webhook_url = NULL WHERE conversation_ended_webhook_url = ?"} {
		if _, err := tx.q.NewRaw("UPDATE assistants SET updated_at = ?, "+set+" AND user_id = ?", parley.Now(), url,
			userID).Exec(ctx); err != nil {
			return err
		}
	}
	if _, err := tx.q.NewRaw("UPDATE users SET webhook_url = '' WHERE id = ? AND webhook_url = ?", userID,
		url).Exec(ctx); err != nil {
		return err
	}
	_, err := tx.q.NewRaw(`UPDATE webhook_deliveries SET status = ?, last_error = ?, next_attempt_at = 0
		WHERE lane = ? AND next_attempt_at > 0 AND url = ? AND user_id = ?`, parley.DeliveryFailed,
		"The endpoint was disabled: it answered another event with 410 Gone.", lane(userID, url), url, userID).Exec(ctx)
	return err
}

// SetWebhookURL says where the account's own events go, "" for nowhere.
func (tx *Tx) SetWebhookURL(ctx context.Context, userID int64, url string) error {
	res, err := tx.q.NewRaw("UPDATE users SET webhook_url = ?, updated_at = ? WHERE id = ?", url, parley.Now(),
		userID).Exec(ctx)
	return tx.changed(userID, parley.AuditWebhook, "", "", one(res, err, "User not found"), "url")
}

// Delivery is one of the user's deliveries, with its payload.
func (q Query) Delivery(ctx context.Context, userID, id int64) (*parley.Delivery, error) {
	d := new(parley.Delivery)
	err := q.q.NewSelect().Model(d).Where("id = ? AND user_id = ?", id, userID).Scan(ctx)
	return d, notFound(err, deliveryNotFound)
}

// DeliveryLog is every attempt at a delivery, in order.
func (q Query) DeliveryLog(ctx context.Context, userID, id int64) ([]parley.DeliveryAttempt, error) {
	list := []parley.DeliveryAttempt{}
	err := q.q.NewSelect().Model(&list).Where("delivery_id = ?", id).
		Where("EXISTS (SELECT 1 FROM webhook_deliveries WHERE id = ? AND user_id = ?)", id,
			userID).Order("id").Scan(ctx)
	return list, err
}

// Deliveries is a page of the user's deliveries, newest first, without their payloads; of one event or status unless
// they are "".
func (q Query) Deliveries(ctx context.Context, userID int64, event parley.EventKind, status parley.DeliveryStatus,
	p Page) ([]parley.Delivery, int, error) {
	list := []parley.Delivery{}
	s := q.q.NewSelect().Model(&list).ExcludeColumn("payload", "answer").Where("user_id = ?", userID)
	only(s, "event", event)
	only(s, "status", status)
	total, err := page(ctx, s, p, "id DESC")
	return list, total, err
}

// CallDeliveries are those that tell of one of the user's calls, newest first, without their payloads.
func (q Query) CallDeliveries(ctx context.Context, userID, callID int64) ([]parley.Delivery, error) {
	list := []parley.Delivery{}
	err := q.q.NewSelect().Model(&list).ExcludeColumn("payload", "answer").Where("user_id = ? AND call_id = ?",
		userID, callID).Order("id DESC").Scan(ctx)
	return list, err
}

// ResendDelivery has a delivery made anew, at once and with its whole schedule, under its own id and with its own body, as
// often as the account may: each costs the server requests.
func (tx *Tx) ResendDelivery(ctx context.Context, userID, id int64) (*parley.Delivery, error) {
	d := new(parley.Delivery)
	err := tx.locked(tx.q.NewSelect().Model(d).Where("id = ? AND user_id = ?", id, userID)).Scan(ctx)
	if err != nil {
		return nil, notFound(err, deliveryNotFound)
	}
	if err := tx.Meter(ctx, userID, parley.Now(), parley.LimitResendRate, parley.LimitResends); err != nil {
		return nil, err
	}
	d.Status, d.NextAttemptAt, d.Earlier = parley.DeliveryPending, parley.Now(), d.Attempts
	tx.AfterCommit(tx.wake)
	_, err = tx.q.NewUpdate().Model(d).Column("status", "next_attempt_at", "earlier").WherePK().Exec(ctx)
	return d, err
}

// WebhookResponse is what the endpoint answered to a call's post-call event (to the inbound one where that was the
// only one), nil when nothing did yet.
func (q Query) WebhookResponse(ctx context.Context, userID, callID int64) (*parley.WebhookResponse, error) {
	of, err := q.WebhookResponses(ctx, userID, []int64{callID})
	return of[callID], err
}

// WebhookResponses are what the endpoints answered to the post-call events of some of the user's calls, by call (see
// WebhookResponse).
func (q Query) WebhookResponses(ctx context.Context, userID int64, ids []int64) (map[int64]*parley.WebhookResponse,
	error) {
	of := make(map[int64]*parley.WebhookResponse, len(ids))
	if len(ids) == 0 {
		return of, nil
	}
	var list []parley.Delivery
	err := q.q.NewSelect().Model(&list).Column("call_id", "last_status",
		"answer").Where("call_id IN (?) AND user_id = ?", bun.List(ids), userID).
		Where("last_status IS NOT NULL AND event IN (?, ?)", parley.EventCallCompleted,
			parley.EventCallInboundCompleted).
		OrderExpr("event, id DESC").Scan(ctx)
	for _, d := range list {
		if of[*d.CallID] == nil {
			of[*d.CallID] = &parley.WebhookResponse{Status: *d.LastStatus, Body: d.Answer}
		}
	}
	return of, err
}

// ForgetDeliveries removes at most limit deliveries that were made, or given up, and begun before a time.
func (tx *Tx) ForgetDeliveries(ctx context.Context, before parley.Time, limit int) (int, error) {
	return count(tx.q.NewRaw(`DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries
		WHERE next_attempt_at = 0 AND created_at < ? ORDER BY created_at LIMIT ?)`, before, limit).Exec(ctx))
}

// balanceFell tells the account's endpoint, where it has one, that a charge took the balance below the threshold.
func (tx *Tx) balanceFell(ctx context.Context, userID int64, balance parley.Money) error {
	u, err := tx.User(ctx, userID)
	if err != nil || u.WebhookURL == "" {
		return err
	}
	return tx.EnqueueDelivery(ctx, userID, parley.BalanceLow{TotalBalance: balance, Threshold: tx.rules.LowBalance,
		CreatedAt: parley.Now()}.Delivery(u.WebhookURL))
}

const (
	// SecretOverlap is how long a webhook secret that was replaced signs along.
	SecretOverlap = 24 * time.Hour
	// maxSecrets bounds the signatures on a request, whatever is rotated how often.
	maxSecrets = 10

	webhookSecret = "webhook secret"
)

type webhookSecretRow struct {
	bun.BaseModel `bun:"webhook_secrets"`

	ID        int64 `bun:",pk,autoincrement"`
	UserID    int64
	Sealed    []byte
	EndsAt    parley.Time
	CreatedAt parley.Time
}

// WebhookSecrets are the secrets that sign a user's webhooks now, the present one first; none before the first is
// made. They are keys of 32 bytes (WebhookSecretText writes one as the user knows it).
func (q Query) WebhookSecrets(ctx context.Context, userID int64, now parley.Time) (keys [][]byte, err error) {
	var rows []webhookSecretRow
	err = q.q.NewSelect().Model(&rows).Where("user_id = ? AND (ends_at = 0 OR ends_at > ?)", userID,
		now).Order("id DESC").Limit(maxSecrets).Scan(ctx)
	for _, r := range rows {
		key, err := q.box.open(webhookSecret, r.Sealed)
		if err != nil {
			return nil, fmt.Errorf("webhook secret of user %d: %w", userID, err)
		}
		keys = append(keys, key)
	}
	return keys, err
}

// EnsureWebhookSecrets is WebhookSecrets, and makes the first one where there is none.
func (tx *Tx) EnsureWebhookSecrets(ctx context.Context, userID int64, now parley.Time) ([][]byte, error) {
	if err := tx.LockUser(ctx, userID); err != nil {
		return nil, err
	}
	keys, err := tx.WebhookSecrets(ctx, userID, now)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	key, err := tx.makeWebhookSecret(ctx, userID, now)
	return [][]byte{key}, err
}

// RotateWebhookSecret makes a new secret the present one. Those before it end with their overlap.
func (tx *Tx) RotateWebhookSecret(ctx context.Context, userID int64, now parley.Time) ([]byte, error) {
	if err := tx.LockUser(ctx, userID); err != nil {
		return nil, err
	}
	if _, err := tx.q.NewRaw("DELETE FROM webhook_secrets WHERE user_id = ? AND ends_at > 0 AND ends_at <= ?",
		userID, now).Exec(ctx); err != nil {
		return nil, err
	}
	_, err := tx.q.NewRaw("UPDATE webhook_secrets SET ends_at = ? WHERE user_id = ? AND ends_at = 0",
		now.Add(SecretOverlap), userID).Exec(ctx)
	if err != nil {
		return nil, err
	}
	return tx.makeWebhookSecret(ctx, userID, now)
}

func (tx *Tx) makeWebhookSecret(ctx context.Context, userID int64, now parley.Time) ([]byte, error) {
	key := make([]byte, 32)
	rand.Read(key)
	_, err := tx.q.NewInsert().Model(&webhookSecretRow{UserID: userID, Sealed: tx.box.seal(webhookSecret, key),
		CreatedAt: now}).Exec(ctx)
	return key, tx.note(userID, parley.AuditCreated, parley.AuditWebhookSecret, "", nil, err)
}

// WebhookSecretText is a secret as the user is shown it, in the form of the Standard Webhooks specification.
func WebhookSecretText(key []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(key) }
