package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Requests are what processes ask of each other: a table.
type Requests string

const (
	CallRequests Requests = "call_requests" // of the process that has a live call; they go with the call
	NodeRequests Requests = "node_requests" // of a process, whatever calls it has
)

// Request is what one process asks of another.
type Request struct {
	bun.BaseModel

	ID        int64 `bun:",pk,autoincrement"`
	CallID    int64 // 0 in NodeRequests
	UserID    int64
	Node      string // that is asked
	Kind      string
	Body      string      // JSON
	Answer    string      // JSON; "" while there is none
	CreatedAt parley.Time // by the database's clock
	TakenAt   parley.Time
}

// CreateRequest stores a request.
func (tx *Tx) CreateRequest(ctx context.Context, in Requests, r *Request) error {
	_, err := tx.q.NewInsert().Model(r).ModelTableExpr("?", bun.Ident(in)).Value("created_at", "?", tx.clock()).Exec(ctx)
	return err
}

// Requests are those that wait for a process, oldest first.
func (q Query) Requests(ctx context.Context, in Requests, node string) (list []Request, err error) {
	err = q.q.NewSelect().Model(&list).ModelTableExpr("? AS ?TableAlias", bun.Ident(in)).Where("node = ? AND taken_at = 0", node).
		Order("id").Scan(ctx)
	return list, err
}

// TakeRequest has its process begin with a request; false when it was withdrawn, or begun with before.
func (tx *Tx) TakeRequest(ctx context.Context, in Requests, id int64) (bool, error) {
	return some(tx.q.NewRaw("UPDATE ? SET taken_at = ? WHERE id = ? AND taken_at = 0", bun.Ident(in), tx.clock(), id).Exec(ctx))
}

// AnswerRequest stores the answer to a request; that of one that nobody waits for any more is dropped.
func (tx *Tx) AnswerRequest(ctx context.Context, in Requests, id int64, answer string) error {
	_, err := tx.q.NewRaw("UPDATE ? SET answer = ? WHERE id = ?", bun.Ident(in), answer, id).Exec(ctx)
	return err
}

// RequestAnswer is the answer to a request, "" while there is none.
func (q Query) RequestAnswer(ctx context.Context, in Requests, id int64) (answer string, err error) {
	err = q.q.NewRaw("SELECT answer FROM ? WHERE id = ?", bun.Ident(in), id).Scan(ctx, &answer)
	return answer, err
}

// DropRequest removes a request, with untaken only if its process has not begun with it; false when it was not
// there to be removed.
func (tx *Tx) DropRequest(ctx context.Context, in Requests, id int64, untaken bool) (bool, error) {
	return some(tx.q.NewRaw("DELETE FROM ? WHERE id = ? AND (taken_at = 0 OR ?)", bun.Ident(in), id, !untaken).Exec(ctx))
}

// DropStaleRequests removes requests older than an age: who asked is gone.
func (tx *Tx) DropStaleRequests(ctx context.Context, in Requests, age time.Duration) error {
	_, err := tx.q.NewRaw("DELETE FROM ? WHERE created_at < (SELECT ?) - ?", bun.Ident(in), tx.clock(), age.Microseconds()).Exec(ctx)
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
