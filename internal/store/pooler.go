package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// errPooled says how to mend an address behind which sessions are shared.
var errPooled = errors.New("the PostgreSQL address leads to a pooler that gives each transaction another session (PgBouncer with " +
	"pool_mode=transaction or statement). " +
	"Locks between nodes and the queue need sessions of their own: set pool_mode=session for this database, " +
	"or name PostgreSQL itself in PARLEY_DATABASE")

// ownSessions returns errPooled where a connection does not keep its session. PostgreSQL itself tells a client the very process
// that serves it; a pooler makes something up, and whether it shares sessions shows when one client begins a
// transaction while another waits.
func ownSessions(ctx context.Context, pool *sql.DB) error {
	a, err := pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("look at the connections of PostgreSQL: %w", err)
	}
	defer a.Close()
	var told uint32
	if err := a.Raw(func(c any) error { told = c.(*stdlib.Conn).Conn().PgConn().PID(); return nil }); err != nil {
		return err
	}
	first, err := backend(ctx, a)
	if err != nil || first == told {
		return err
	}
	for range 5 {
		shared, err := sharing(ctx, pool, a)
		if shared {
			return errPooled
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sharing reports whether a session that one connection has just used serves another one's transaction.
func sharing(ctx context.Context, pool *sql.DB, a *sql.Conn) (bool, error) {
	before, err := backend(ctx, a)
	if err != nil {
		return false, err
	}
	b, err := pool.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer b.Close()
	tx, err := b.BeginTx(ctx, nil)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && !away(err) { // a pooler of single statements refuses transactions
		return true, pg
	}
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	held, err := backend(ctx, tx)
	if err != nil || held == before {
		return err == nil, err
	}
	after, err := backend(ctx, a)
	return err == nil && after != before, err
}

// backend is the process that serves a connection.
func backend(ctx context.Context, c interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (pid uint32, err error) {
	err = c.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, err
}
