package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"
	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Tx is a transaction under way.
type Tx struct {
	Query
	sql   bun.Tx
	jobs  *river.Client[*sql.Tx]
	after []func()

	reason string // of changes of assistants; see Sign

	actor *Actor // who makes the changes, nil for nobody
	seen  map[thing]parley.AuditView
	noted []parley.AuditEntry // that are added at the end

	counted []counted         // activity that is added at the end
	weights map[int64]weighed // by account: what is added to its bytes at the end
}

func (tx *Tx) use(btx bun.Tx) { tx.sql, tx.q, tx.totals = btx, btx, nil }

// AfterCommit asks for fn to be called once the transaction is committed, in the goroutine that called Write.
func (tx *Tx) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// Write runs fn in a transaction: everything it wrote is there when Write returns nil, and nothing of it otherwise.
// fn gets a context that is not cancelled with ctx, because a write that has begun is cheaper to finish than to tear;
// it must not wait for anything but the database, and may run twice (PostgreSQL retries what lost a race). A deadline
// of ctx bounds it all the same, and without one PostgreSQL has a minute: a host that is gone answers nothing.
// Whether a write that ran out of time was committed is not known.
func (db *DB) Write(ctx context.Context, fn func(context.Context, *Tx) error) error {
	fn = counting(audited(marked(ctx, weighing(fn))))
	ctx = context.WithValue(ctx, writingKey{}, true)
	switch {
	case db.link != nil:
		return db.link.Write(ctx, func(ctx context.Context) error { return db.writeSQLite(ctx, fn) })
	case db.queue != nil:
		return db.writeSQLite(ctx, fn)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	end := time.Now().Add(writeTime)
	if own, ok := ctx.Deadline(); ok && own.Before(end) {
		end = own
	}
	bound, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	tx := &Tx{Query: db.Query, jobs: db.jobs}
	_, err := backoff.Retry(ctx, func() (any, error) {
		tx.after, tx.reason = nil, ""
		done := false
		err := db.write.RunInTx(bound, nil, func(ctx context.Context, btx bun.Tx) error {
			tx.use(btx)
			err := fn(ctx, tx)
			done = err == nil
			return err
		})
		var pg *pgconn.PgError
		if done && err != nil && !errors.As(err, &pg) && bound.Err() == nil {
			err = &unsure{err} // the commit was sent, and nobody knows what came of it
		}
		if errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01") {
			return nil, err // serialization failure, deadlock: the loser tries again
		}
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		return nil, nil
	}, backoff.WithMaxTries(5))
	if err == nil {
		tx.committed()
	} else if bound.Err() != nil && !away(err) {
		err = gone(err)
	}
	return err
}

// InSteps writes in short transactions until fn says that nothing is left to be done: what removes or changes much
// must not hold up everybody's writes. Each step stands by itself; one that is cut off goes on with the next call.
func (db *DB) InSteps(ctx context.Context, fn func(context.Context, *Tx) (more bool, err error)) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
			more, err = fn(ctx, tx)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) committed() {
	for _, fn := range tx.after {
		fn()
	}
}

// pending is a write that waits for its turn on SQLite's one connection.
type pending struct {
	ctx     context.Context
	account int64 // whose write it is; 0: the server's own
	fn      func(context.Context, *Tx) error
	tx      *Tx
	err     error
	panic   any
	done    chan struct{}
}

func (db *DB) writeSQLite(ctx context.Context, fn func(context.Context, *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &pending{ctx: ctx, fn: fn, tx: &Tx{Query: db.Query, jobs: db.jobs}, done: make(chan struct{})}
	if a := ActorOf(ctx); a != nil {
		p.account = a.UserID
	}
	if !db.queue.join(p) {
		return ErrClosed
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if db.queue.leave(p) {
			return ctx.Err()
		}
		<-p.done
	}
	if p.panic != nil {
		panic(p.panic)
	}
	if p.err == nil {
		p.tx.committed()
	}
	return p.err
}

// What is committed together is bounded, since the first of a batch waits for the last.
const (
	maxTogether      = 64
	maxBytesTogether = 1 << 20 // of statements; a longer write is committed by itself, or as the last one
)

// commitTogether is the one writer: it takes the writes that wait, runs each in a savepoint of one transaction, and
// commits them with one sync. A write that fails is rolled back alone. Without this every write would pay a sync of
// its own and 32 clients would share 1 / sync-time writes a second.
func (db *DB) commitTogether() {
	defer close(db.done)
	defer func() {
		for _, p := range db.queue.close() {
			p.err = ErrClosed
			close(p.done)
		}
	}()
	for {
		select {
		case <-db.closing:
			return
		case <-db.queue.more:
		}
		for first := db.queue.next(); first != nil; first = db.queue.next() {
			for _, p := range db.commit(first) {
				close(p.done)
			}
			select {
			case <-db.closing:
				return
			default:
			}
		}
	}
}

// commit runs a write, and those that wait then, in one transaction. It returns them.
func (db *DB) commit(first *pending) (batch []*pending) {
	ctx := context.Background()
	batch = append(batch, first)
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		first.err = fmt.Errorf("begin: %w", err)
		return batch
	}
	db.asked.Store(0)
	for p := first; ; {
		if err = p.run(tx); err != nil {
			break
		}
		if len(batch) == maxTogether || db.asked.Load() > maxBytesTogether {
			break
		}
		if p = db.queue.next(); p == nil {
			break
		}
		batch = append(batch, p)
	}
	if err == nil {
		err = tx.Commit()
	} else {
		tx.Rollback()
	}
	if err != nil { // the transaction itself broke (disk full, I/O error): nothing in it stands
		for _, p := range batch {
			if p.err == nil {
				p.err = fmt.Errorf("commit: %w", err)
			}
		}
	}
	return batch
}

// asked counts the bytes of the statements that the one writer runs.
type asked struct{ *atomic.Int64 }

// BeforeQuery implements bun.QueryHook.
func (a asked) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	a.Add(int64(len(e.Query)))
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (asked) AfterQuery(context.Context, *bun.QueryEvent) {}

type writingKey struct{}

// Writing says whether a context is that of a write transaction: whoever watches statements asks it.
func Writing(ctx context.Context) bool { return ctx.Value(writingKey{}) != nil }

// run executes one write inside a savepoint. It returns an error only when the whole transaction is lost; the write's
// own outcome is in p.err.
func (p *pending) run(tx bun.Tx) error {
	if p.err = p.ctx.Err(); p.err != nil {
		return nil
	}
	ctx := context.WithoutCancel(p.ctx)
	if _, err := tx.ExecContext(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	p.tx.use(tx)
	func() {
		defer func() { p.panic = recover() }()
		p.err = p.fn(ctx, p.tx)
	}()
	if p.err == nil && p.panic == nil {
		_, err := tx.ExecContext(ctx, "RELEASE one")
		return err
	}
	if _, err := tx.ExecContext(ctx, "ROLLBACK TO one"); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "RELEASE one")
	return err
}
