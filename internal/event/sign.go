package event

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// Keys are what signs a user's webhooks, the present key first. The first is made when it is first needed.
func Keys(ctx context.Context, db *store.DB, userID int64, now parley.Time) (keys [][]byte, err error) {
	if keys, err = db.WebhookSecrets(ctx, userID, now); err != nil || len(keys) > 0 {
		return keys, err
	}
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		keys, err = tx.EnsureWebhookSecrets(ctx, userID, now)
		return err
	})
	return keys, err
}

// sign sets the headers of the Standard Webhooks specification (https://www.standardwebhooks.com) for an attempt made
// now: a signature by each key over id, timestamp and body.
func sign(h http.Header, keys [][]byte, id string, now time.Time, body string) {
	at := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "." + body))
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", at)
	h.Set("webhook-signature", strings.Join(signatures, " "))
}
