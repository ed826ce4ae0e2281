package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"

	"parley/internal/parley"
	"parley/internal/web"
)

// once runs a handler and sends its answer. On operations that honour it, a request with an Idempotency-Key runs once
// a day (web.Once).
func (a *API) once(r *request, o *op, body []byte, h func(context.Context) (int, any, error)) error {
	// a form's handler comes back when it has read it
	if !o.Idempotent || r.Header.Get("Idempotency-Key") == "" || r.Who == nil || r.Form != nil {
		status, out, err := h(r.Context())
		if err == nil {
			send(r.W, status, out)
		}
		return err
	}
	sum := sha256.New()
	io.WriteString(sum, o.Name+"\n"+r.URL.Path+"\n")
	sum.Write(body)
	run := func(ctx context.Context) (*web.Answer, error) {
		status, out, err := h(ctx)
		if err != nil {
			return nil, err
		}
		b := new(bytes.Buffer)
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(out); err != nil {
			return nil, err
		}
		return &web.Answer{Status: status, Body: b.Bytes()}, nil
	}
	told := func(err error) *web.Answer {
		var known *parley.Error
		if !errors.As(err, &known) {
			return nil
		}
		b, err := json.Marshal(o.Family.shape(known))
		if err != nil {
			return nil
		}
		return &web.Answer{Status: web.Status(known.Kind), Body: b}
	}
	answer, again, err := web.Once(r.Request, a.DB, r.UserID(), sum.Sum(nil), run, told)
	if err != nil {
		return err
	}
	if again {
		r.W.Header().Set("Idempotent-Replayed", "true")
	}
	write(r.W, answer.Status, answer.Body)
	return nil
}

// unsettled is the answer to a request of which nobody knows whether it took effect: the one that was to act did not
// answer.
type unsettled struct {
	status int
	body   any
}

func (u *unsettled) Error() string { return "whether the request took effect is not known" }
