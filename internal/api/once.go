package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"unicode/utf8"

	"parley"
	"parley/internal/store"
)

// once runs a handler and sends its answer. On operations that honour it, a request with an Idempotency-Key runs once a day: the key is
// claimed before the handler runs and holds its answer afterwards, so that a repetition gets the first answer. A client that leaves changes
// nothing of that. A request that failed changed nothing and frees its key. One whose process died in the middle keeps it: whether it took
// effect is not known, so it is not repeated; nor is one whose answer says just that (unsettled).
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
	case old != nil && old.Status == 0:
		return parley.Errorf(parley.Conflict, "A request with this Idempotency-Key is under way or was cut off. Look whether it took effect before you use a new key.")
	case old != nil:
		r.W.Header().Set("Idempotent-Replayed", "true")
		write(r.W, old.Status, old.Answer)
		return nil
	}
	done := false
	defer func() { // also when the handler panics: nothing of it was committed then
		if !done {
			a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.FreeAnswer(ctx, first) })
		}
	}()
	status, out, err := h(ctx)
	if err != nil {
		return err
	}
	b := new(bytes.Buffer)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return err
	}
	done = true // it took effect: from here on the key is never freed
	first.Status, first.Answer = status, b.Bytes()
	err = a.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.KeepAnswer(ctx, first) })
	write(r.W, status, b.Bytes())
	if err != nil {
		slog.ErrorContext(ctx, "keep the answer of an Idempotency-Key", "user", first.UserID, "error", err)
	}
	return nil
}

// unsettled is the answer to a request of which nobody knows whether it took effect: the one that was to act did not answer.
type unsettled struct {
	status int
	body   any
}

func (u *unsettled) Error() string { return "whether the request took effect is not known" }
