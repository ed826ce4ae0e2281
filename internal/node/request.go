package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
)

// Requests are what processes ask of each other. Who asks leaves a row for the process that it asks. That one looks for such
// rows a few times a second, does each once, and answers in the row. Who asked waits for the answer, and withdraws a
// request that nobody begins with.
type Requests struct {
	DB   *store.DB
	In   store.Requests
	Node string        // this process
	Look time.Duration // between two looks; 0 is a quarter of a second
	// Fulfil does what another process asks, and returns the value of its answer. An error that is a parley.Error is the asker's
	// to know.
	Fulfil func(ctx context.Context, q *store.Request) (any, error)
	// Idle says that there can be no requests for this process now; nil: there always can.
	Idle func() bool

	Deaf, Unclear *parley.Error // the other process does not begin; it has begun, and does not say in time what came of it
	Failed        string        // what the asker is told of an error that is this process's own
}

const (
	lookForRequests = 250 * time.Millisecond
	lookForAnswer   = 50 * time.Millisecond
	takeTime        = 5 * time.Second  // until the other process must have begun
	answerTime      = 30 * time.Second // until it must have answered
	staleRequest    = time.Minute
)

// reply is an answer as its row has it.
type reply struct {
	Value   json.RawMessage `json:",omitempty"`
	Kind    parley.Kind     `json:",omitempty"` // of the error, with Refusal
	Refusal string          `json:",omitempty"` // "": there was no error
	Code    string          `json:",omitempty"`
	Fields  []parley.Field  `json:",omitempty"`
	Wait    int             `json:",omitempty"` // after how many seconds one may try again; 0: it doesn't say
}

// later is a refusal that another node told, with the time after which one may try again (auth.LimitError).
type later struct {
	refused *parley.Error
	wait    int
}

func (l *later) Error() string { return l.refused.Error() }

// Wait is how many seconds that is.
func (l *later) Wait() int { return l.wait }

// Unwrap is the refusal.
func (l *later) Unwrap() error { return l.refused }

// answered is a refusal that the other process told.
type answered struct{ error }

// Unwrap is the refusal.
func (a *answered) Unwrap() error { return a.error }

// Answered reports whether an error of Ask is the other process's own refusal: whatever was asked for was not done there.
func Answered(err error) bool { return errors.As(err, new(*answered)) }

// Ask has another process do something. body and answer are values of the request's kind, which are told as JSON.
func (r *Requests) Ask(ctx context.Context, q store.Request, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	q.Body = string(text)
	if err := r.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		q.ID = 0
		return tx.CreateRequest(ctx, r.In, &q)
	}); err != nil {
		return err
	}
	got, err := r.await(ctx, q.ID)
	if err != nil {
		return err
	}
	var is reply
	if err := json.Unmarshal([]byte(got), &is); err != nil {
		return fmt.Errorf("read what node %s answers: %w", q.Node, err)
	}
	if is.Refusal != "" {
		refused := &parley.Error{Kind: is.Kind, Message: is.Refusal, Code: is.Code, Fields: is.Fields}
		if is.Wait > 0 {
			return &answered{&later{refused, is.Wait}}
		}
		return &answered{refused}
	}
	return json.Unmarshal(is.Value, answer)
}

// await waits for the answer to a request, and removes its row.
func (r *Requests) await(ctx context.Context, id int64) (answer string, err error) {
	look := time.NewTicker(lookForAnswer)
	defer look.Stop()
	late, gone := time.NewTimer(takeTime), time.NewTimer(answerTime)
	defer late.Stop()
	defer gone.Stop()
	for {
		select {
		case <-look.C:
			if answer, err = r.DB.RequestAnswer(ctx, r.In, id); answer != "" || err != nil {
				_, dropped := r.drop(ctx, id, false)
				return answer, errors.Join(err, dropped)
			}
		case <-late.C:
			switch withdrawn, err := r.drop(ctx, id, true); {
			case err != nil:
				return "", err
			case withdrawn:
				return "", r.Deaf
			}
		case <-gone.C:
			_, err := r.drop(ctx, id, false)
			return "", errors.Join(err, r.Unclear)
		case <-ctx.Done():
			_, _ = r.drop(ctx, id, true) // else it is swept
			return "", context.Cause(ctx)
		}
	}
}

func (r *Requests) drop(ctx context.Context, id int64, untaken bool) (dropped bool, err error) {
	err = r.write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) (err error) {
		dropped, err = tx.DropRequest(ctx, r.In, id, untaken)
		return err
	})
	return dropped, err
}

func (r *Requests) write(ctx context.Context, fn func(context.Context, *store.Tx) error) error {
	return crash.Run(func() error { return r.DB.Write(ctx, fn) })
}

// Attend does what other processes ask of this one, until ctx ends; then it finishes what it has begun.
func (r *Requests) Attend(ctx context.Context) {
	var begun sync.WaitGroup
	defer begun.Wait()
	look := r.Look
	if look == 0 {
		look = lookForRequests
	}
	var forgot time.Time
	crash.Every(ctx, look, "look for what other nodes ask", func(ctx context.Context) error {
		if time.Since(forgot) >= staleRequest {
			if err := r.forget(ctx); err != nil {
				return err
			}
			forgot = time.Now()
		}
		if r.Idle != nil && r.Idle() {
			return nil
		}
		list, err := r.DB.Requests(ctx, r.In, r.Node)
		if err != nil {
			return err
		}
		for i := range list {
			q, mine := &list[i], false
			err := r.write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
				mine, err = tx.TakeRequest(ctx, r.In, q.ID)
				return err
			})
			if err != nil {
				return err
			}
			if mine { // else it was withdrawn
				crash.Go(&begun, func() { r.answer(context.WithoutCancel(ctx), q) },
					crash.Log("what another node asks", "kind", q.Kind, "call", q.CallID))
			}
		}
		return nil
	})
}

// answer does a request, and answers it.
func (r *Requests) answer(ctx context.Context, q *store.Request) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var is reply
	err := crash.Run(func() error {
		value, err := r.Fulfil(ctx, q)
		if err != nil {
			return err
		}
		is.Value, err = json.Marshal(value)
		return err
	})
	var known *parley.Error
	var wait interface{ Wait() int }
	if errors.As(err, &wait) {
		is.Wait = wait.Wait()
	}
	switch {
	case errors.As(err, &known):
		is.Kind, is.Refusal, is.Code, is.Fields, err = known.Kind, known.Message, known.Code, known.Fields, nil // the asker's to know
	case err != nil:
		is.Refusal = r.Failed
	}
	text, failed := json.Marshal(is)
	if failed == nil {
		failed = r.write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.AnswerRequest(ctx, r.In, q.ID, string(text)) })
	}
	if err = errors.Join(err, failed); err != nil {
		slog.Error("do what another node asks", "kind", q.Kind, "call", q.CallID, "error", err)
	}
}

// forget removes requests whose asker is gone.
func (r *Requests) forget(ctx context.Context) error {
	return r.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DropStaleRequests(ctx, r.In, staleRequest) })
}
