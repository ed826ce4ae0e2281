package call

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

// The process that has a call is the only one that can do something with it. Another process that is asked to leaves a
// row for it (store.CallRequest). The owner looks for such rows a few times a second, does each once, and answers in
// the row. Who asked waits for the answer, and withdraws a request that nobody begins with.

const (
	lookForRequests = 250 * time.Millisecond
	lookForAnswer   = 50 * time.Millisecond
	takeTime        = 5 * time.Second  // until the owner must have begun
	answerTime      = 30 * time.Second // until it must have answered
	staleRequest    = time.Minute
)

var (
	errDeaf    = parley.Errorf(parley.Unavailable, "The node of the server that has this call does not answer. Nothing was done: try again in a moment.")
	errUnclear = parley.Errorf(parley.Unavailable,
		"The node of the server that has this call did not say in time whether it was done: look at the call before you try again.")
)

// The kinds of requests, with their bodies.
const (
	askInvite    = "invite"    // Invitation
	askAttend    = "attend"    // Browser
	askMode      = "mode"      // aboutLeg
	askHangup    = "hangup"    // aboutLeg
	askReconnect = "reconnect" // BrowserChange
	askWhisper   = "whisper"   // string
)

type aboutLeg struct {
	Leg  int64
	Mode parley.LegMode
}

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

// elsewhere says that a call is on another node.
type elsewhere struct{ node string }

func (e *elsewhere) Error() string { return "the call is on node " + e.node }

// ask has the process that has a call do something with it. err is why this one can't: any other error than elsewhere is
// returned as it is.
func (d *Center) ask(ctx context.Context, err error, userID, id int64, kind string, body, answer any) error {
	var e *elsewhere
	if !errors.As(err, &e) {
		return err
	}
	q := &store.CallRequest{CallID: id, UserID: userID, Node: e.node, Kind: kind}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	q.Body = string(text)
	if err := d.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		q.ID = 0
		return tx.CreateCallRequest(ctx, q)
	}); err != nil {
		return err
	}
	got, err := d.await(ctx, q.ID)
	if err != nil {
		return err
	}
	var r reply
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		return fmt.Errorf("read what node %s answers: %w", q.Node, err)
	}
	if r.Refusal != "" {
		refused := &parley.Error{Kind: r.Kind, Message: r.Refusal, Code: r.Code, Fields: r.Fields}
		if r.Wait > 0 {
			return &later{refused, r.Wait}
		}
		return refused
	}
	return json.Unmarshal(r.Value, answer)
}

// await waits for the answer to a request, and removes its row.
func (d *Center) await(ctx context.Context, id int64) (answer string, err error) {
	look := time.NewTicker(lookForAnswer)
	defer look.Stop()
	late, gone := time.NewTimer(takeTime), time.NewTimer(answerTime)
	defer late.Stop()
	defer gone.Stop()
	for {
		select {
		case <-look.C:
			if answer, err = d.DB.CallRequestAnswer(ctx, id); answer != "" || err != nil {
				_, dropped := d.drop(ctx, id, false)
				return answer, errors.Join(err, dropped)
			}
		case <-late.C:
			if withdrawn, err := d.drop(ctx, id, true); withdrawn || err != nil {
				return "", errors.Join(err, errDeaf)
			}
		case <-gone.C:
			_, err := d.drop(ctx, id, false)
			return "", errors.Join(err, errUnclear)
		case <-ctx.Done():
			_, _ = d.drop(ctx, id, true) // else it is swept
			return "", context.Cause(ctx)
		}
	}
}

func (d *Center) drop(ctx context.Context, id int64, untaken bool) (dropped bool, err error) {
	err = d.write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) (err error) {
		dropped, err = tx.DropCallRequest(ctx, id, untaken)
		return err
	})
	return dropped, err
}

// attendRequests does what other processes ask about this one's calls, until ctx ends; then it finishes what it has
// begun.
func (d *Center) attendRequests(ctx context.Context) {
	var begun sync.WaitGroup
	defer begun.Wait()
	every(ctx, min(lookForRequests, d.Beat), func(ctx context.Context) error {
		if len(d.all()) == 0 {
			return nil
		}
		list, err := d.DB.CallRequests(ctx, d.node)
		if err != nil {
			return err
		}
		for i := range list {
			q, mine := &list[i], false
			err := d.write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
				mine, err = tx.TakeCallRequest(ctx, q.ID)
				return err
			})
			if err != nil {
				return err
			}
			if mine { // else it was withdrawn
				crash.Go(&begun, func() { d.answer(context.WithoutCancel(ctx), q) },
					crash.Log("what another node asks about a call", "call", q.CallID))
			}
		}
		return nil
	})
}

// answer does a request, and answers it.
func (d *Center) answer(ctx context.Context, q *store.CallRequest) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var r reply
	err := crash.Run(func() error {
		value, err := d.fulfil(ctx, q)
		if err != nil {
			return err
		}
		r.Value, err = json.Marshal(value)
		return err
	})
	var known *parley.Error
	var wait interface{ Wait() int }
	if errors.As(err, &wait) {
		r.Wait = wait.Wait()
	}
	switch {
	case errors.As(err, &known):
		r.Kind, r.Refusal, r.Code, r.Fields, err = known.Kind, known.Message, known.Code, known.Fields, nil // the asker's to know
	case err != nil:
		r.Refusal = "Something went wrong on the node of the server that has this call. Its operator can find the reason in the log."
	}
	text, failed := json.Marshal(r)
	if failed == nil {
		failed = d.write(ctx, func(ctx context.Context, tx *store.Tx) error {
			return tx.AnswerCallRequest(ctx, q.ID, string(text))
		})
	}
	if err = errors.Join(err, failed); err != nil {
		slog.Error("do what another node asks about a call", "call", q.CallID, "kind", q.Kind, "error", err)
	}
}

// fulfil does what a request asks for.
func (d *Center) fulfil(ctx context.Context, q *store.CallRequest) (any, error) {
	read := func(body any) error { return json.Unmarshal([]byte(q.Body), body) }
	var a aboutLeg
	switch q.Kind {
	case askInvite:
		var i Invitation
		if err := read(&i); err != nil {
			return nil, err
		}
		return d.Invite(ctx, q.UserID, q.CallID, i)
	case askAttend:
		var b Browser
		if err := read(&b); err != nil {
			return nil, err
		}
		return d.Attend(ctx, q.UserID, q.CallID, b)
	case askReconnect:
		var change BrowserChange
		if err := read(&change); err != nil {
			return nil, err
		}
		return d.Reconnect(ctx, q.UserID, q.CallID, change)
	case askMode:
		if err := read(&a); err != nil {
			return nil, err
		}
		return d.ChangeLeg(ctx, q.UserID, q.CallID, a.Leg, a.Mode)
	case askHangup:
		if err := read(&a); err != nil {
			return nil, err
		}
		return nil, d.HangupLeg(ctx, q.UserID, q.CallID, a.Leg)
	case askWhisper:
		var text string
		if err := read(&text); err != nil {
			return nil, err
		}
		return nil, d.Whisper(ctx, q.UserID, q.CallID, text)
	}
	return nil, parley.Errorf(parley.Unavailable, "The node of the server that has this call can't do that: it runs an older version.")
}

// forgetRequests removes requests whose asker is gone.
func (d *Center) forgetRequests(ctx context.Context) error {
	return d.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DropStaleCallRequests(ctx, staleRequest) })
}
