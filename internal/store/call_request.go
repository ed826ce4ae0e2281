package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// CallRequest is what a process asks of the process that has a live call.
type CallRequest struct {
	bun.BaseModel `bun:"call_requests"`

	ID        int64 `bun:",pk,autoincrement"`
	CallID    int64
	UserID    int64
	Node      string // that has the call
	Kind      string
	Body      string      // JSON
	Answer    string      // JSON; "" while there is none
	CreatedAt parley.Time // by the database's clock
	TakenAt   parley.Time
}

// CreateCallRequest stores a request.
func (tx *Tx) CreateCallRequest(ctx context.Context, r *CallRequest) error {
	_, err := tx.q.NewInsert().Model(r).Value("created_at", "?", tx.clock()).Exec(ctx)
	return err
}

// CallRequests are the requests that wait for a process, oldest first.
func (q Query) CallRequests(ctx context.Context, node string) (list []CallRequest, err error) {
	err = q.q.NewSelect().Model(&list).Where("node = ? AND taken_at = 0", node).Order("id").Scan(ctx)
	return list, err
}

// TakeCallRequest has its process begin with a request; false when it was withdrawn, or begun with before.
func (tx *Tx) TakeCallRequest(ctx context.Context, id int64) (bool, error) {
	return some(tx.q.NewRaw("UPDATE call_requests SET taken_at = ? WHERE id = ? AND taken_at = 0", tx.clock(), id).Exec(ctx))
}

// AnswerCallRequest stores the answer to a request; that of one that nobody waits for any more is dropped.
func (tx *Tx) AnswerCallRequest(ctx context.Context, id int64, answer string) error {
	_, err := tx.q.NewRaw("UPDATE call_requests SET answer = ? WHERE id = ?", answer, id).Exec(ctx)
	return err
}

// CallRequestAnswer is the answer to a request, "" while there is none.
func (q Query) CallRequestAnswer(ctx context.Context, id int64) (answer string, err error) {
	err = q.q.NewRaw("SELECT answer FROM call_requests WHERE id = ?", id).Scan(ctx, &answer)
	return answer, err
}

// DropCallRequest removes a request, with untaken only if its process has not begun with it; false when it was not
// there to be removed.
func (tx *Tx) DropCallRequest(ctx context.Context, id int64, untaken bool) (bool, error) {
	d := tx.q.NewDelete().Model((*CallRequest)(nil)).Where("id = ?", id)
	if untaken {
		d.Where("taken_at = 0")
	}
	return some(d.Exec(ctx))
}

// DropStaleCallRequests removes requests older than an age: who asked is gone.
func (tx *Tx) DropStaleCallRequests(ctx context.Context, age time.Duration) error {
	_, err := tx.q.NewRaw("DELETE FROM call_requests WHERE created_at < (SELECT ?) - ?", tx.clock(), age.Microseconds()).Exec(ctx)
	return err
}

// watched is how long the figures of a call are kept fresh after another process looked at it.
const watched = 5 * time.Second

// WatchCall notes that another process looks at a live call.
func (tx *Tx) WatchCall(ctx context.Context, id int64) error {
	_, err := tx.q.NewRaw("UPDATE calls SET watched_at = ? WHERE id = ? AND ended_at = 0", tx.clock(), id).Exec(ctx)
	return err
}

// CallToNotice is a live call that its process must do something about.
type CallToNotice struct {
	ID     int64
	Hangup bool // somebody asked for its end; else another process looks at it
}

// CallsToNotice are the live calls of a process whose end somebody asked for, or that others look at.
func (q Query) CallsToNotice(ctx context.Context, node string) (list []CallToNotice, err error) {
	err = q.q.NewRaw("SELECT id, hangup_at > 0 AS hangup FROM calls WHERE node = ? AND ended_at = 0 AND (hangup_at > 0 OR watched_at > ? - ?)",
		node, q.clock(), watched.Microseconds()).Scan(ctx, &list)
	return list, err
}
