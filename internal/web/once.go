package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"parley/internal/parley"
	"parley/internal/store"
)

// Answer is what a request is answered.
type Answer struct {
	Status int
	Body   []byte
}

// Once runs a user's request once a day under the Idempotency-Key that it carries: the key is claimed before the
// request runs and holds its answer afterwards, so that a repetition gets the first answer (again). A client that
// leaves changes nothing of that. asked is a hash of what is asked; told is what a failure is answered, nil where
// that says no more than that something went wrong.
//
// The key is freed by a failure that certainly changed nothing: the first transaction that run commits says so in the
// key's row, and with that the key is taken for good, whether the commit's answer is heard or not, and whether this
// process lives or not. A request that fails after that keeps its answer, or, if nobody knows how it ended, is never
// repeated. Handlers write down what they are about to do outside before they do it.
func Once(r *http.Request, db *store.DB, userID int64, asked []byte, run func(context.Context) (*Answer, error),
	told func(error) *Answer) (a *Answer, again bool, err error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 255 || !utf8.ValidString(key) {
		return nil, false, parley.Errorf(parley.Refused,
			"The Idempotency-Key header must be UTF-8 of at most 255 bytes.")
	}
	c := &claim{db, &store.FirstAnswer{UserID: userID, Key: key, Request: asked, CreatedAt: parley.Now()}}
	ctx := context.WithoutCancel(r.Context()) // from here on the key must find its end, whoever still listens
	var old *store.FirstAnswer
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		old, err = tx.ClaimAnswer(ctx, c.first)
		return err
	})
	switch {
	case err != nil:
		return nil, false, err
	case old != nil && !bytes.Equal(old.Request, asked):
		return nil, false, parley.Errorf(parley.Conflict, "The Idempotency-Key was used with another request.")
	case old != nil && old.Status == 0 && old.Touched:
		return nil, false, parley.Errorf(parley.Conflict,
			"A request with this Idempotency-Key took effect, at least in part, and has no answer yet. "+
				"Look at what it did before you use a new key.")
	case old != nil && old.Status == 0:
		return nil, false, parley.Errorf(parley.Conflict,
			"A request with this Idempotency-Key is under way or was cut off. Look whether it took effect before you use a new key.")
	case old != nil:
		return &Answer{old.Status, old.Answer}, true, nil
	}
	done := false
	defer func() {
		if !done { // it panicked
			c.free(ctx, false)
		}
	}()
	a, err = run(c.first.Under(ctx))
	done = true
	if err == nil {
		c.keep(ctx, a)
		return a, false, nil
	}
	var undone *parley.Undone
	if !c.free(ctx, errors.As(err, &undone)) {
		if a := told(err); a != nil {
			c.keep(ctx, a)
		}
	}
	return nil, false, err
}

// claim is a key that a request has.
type claim struct {
	db    *store.DB
	first *store.FirstAnswer
}

func (c *claim) free(ctx context.Context, undone bool) (freed bool) {
	err := c.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		freed, err = tx.FreeAnswer(ctx, c.first, undone)
		return err
	})
	if err != nil {
		slog.ErrorContext(ctx, "free an Idempotency-Key", "user", c.first.UserID, "error", err)
	}
	return freed && err == nil
}

func (c *claim) keep(ctx context.Context, a *Answer) {
	c.first.Status, c.first.Answer = a.Status, a.Body
	err := c.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.KeepAnswer(ctx, c.first) })
	if err != nil {
		slog.ErrorContext(ctx, "keep the answer of an Idempotency-Key", "user", c.first.UserID, "error", err)
	}
}
