package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"unicode/utf8"

	"parley"
	"parley/internal/store"
)

// once runs a handler and sends its answer. On operations that honour it, a request with an Idempotency-Key runs once a day: the key is
// claimed before the handler runs and holds its answer afterwards, so that a repetition gets the first answer. A client that leaves changes
// nothing of that.
//
// The key is freed by a failure that certainly changed nothing: the first transaction that the handler commits says so in the key's row, and
// with that the key is taken for good, whether the commit's answer is heard or not, and whether this process lives or not. What failed
// after that keeps its answer, or, where nobody knows what it came to, is never repeated. The handlers write down what they are about to do
// before they do it outside.
func (a *API) once(r *request, o *op, body []byte, h func(context.Context) (int, any, error)) error {
	key := r.Header.Get("Idempotency-Key")
	if !o.Idempotent || key == "" || r.Who == nil || r.Form != nil { // a form's handler comes back when it has read it
		status, out, err := h(r.Context())
		if err == nil {
			send(r.W, status, out)
		}
		return err
	}
	if len(key) > 255 || !utf8.ValidString(key) {
		return parley.Errorf(parley.Refused, "The Idempotency-Key header must be UTF-8 of at most 255 bytes.")
	}
	sum := sha256.New()
	io.WriteString(sum, o.Name+"\n"+r.URL.Path+"\n")
	sum.Write(body)
	first := &store.FirstAnswer{UserID: r.UserID(), Key: key, Request: sum.Sum(nil), CreatedAt: parley.Now()}
	ctx := context.WithoutCancel(r.Context()) // from here on the key must find its end, whoever still listens
	var old *store.FirstAnswer
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		old, err = tx.ClaimAnswer(ctx, first)
		return err
	})
	switch {
	case err != nil:
		return err
	case old != nil && !bytes.Equal(old.Request, first.Request):
		return parley.Errorf(parley.Conflict, "The Idempotency-Key was used with another request.")
	case old != nil && old.Status == 0 && old.Touched:
		return parley.Errorf(parley.Conflict, "A request with this Idempotency-Key took effect, at least in part, and has no answer yet. Look at what it did before you use a new key.")
	case old != nil && old.Status == 0:
		return parley.Errorf(parley.Conflict, "A request with this Idempotency-Key is under way or was cut off. Look whether it took effect before you use a new key.")
	case old != nil:
		r.W.Header().Set("Idempotent-Replayed", "true")
		write(r.W, old.Status, old.Answer)
		return nil
	}
	done := false
	defer func() {
		if !done { // it panicked
			a.free(ctx, first, false)
		}
	}()
	status, out, err := h(first.Under(ctx))
	done = true
	if err != nil {
		return a.failed(ctx, o, first, err)
	}
	b := new(bytes.Buffer)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return err
	}
	a.keep(ctx, first, status, b.Bytes())
	write(r.W, status, b.Bytes())
	return nil
}

// failed frees the key of a request that failed, or keeps it with what the request is answered, where that says more than that something
// went wrong.
func (a *API) failed(ctx context.Context, o *op, first *store.FirstAnswer, err error) error {
	var undone *parley.Undone
	if a.free(ctx, first, errors.As(err, &undone)) {
		return err
	}
	var known *parley.Error
	if !errors.As(err, &known) {
		return err
	}
	if b, broken := json.Marshal(o.Family.shape(known)); broken == nil {
		a.keep(ctx, first, statusOf[known.Kind], b)
	}
	return err
}

func (a *API) free(ctx context.Context, first *store.FirstAnswer, undone bool) (freed bool) {
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		freed, err = tx.FreeAnswer(ctx, first, undone)
		return err
	})
	if err != nil {
		slog.ErrorContext(ctx, "free an Idempotency-Key", "user", first.UserID, "error", err)
	}
	return freed && err == nil
}

func (a *API) keep(ctx context.Context, first *store.FirstAnswer, status int, answer []byte) {
	first.Status, first.Answer = status, answer
	err := a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.KeepAnswer(ctx, first) })
	if err != nil {
		slog.ErrorContext(ctx, "keep the answer of an Idempotency-Key", "user", first.UserID, "error", err)
	}
}

// unsettled is the answer to a request of which nobody knows whether it took effect: the one that was to act did not answer.
type unsettled struct {
	status int
	body   any
}

func (u *unsettled) Error() string { return "whether the request took effect is not known" }
