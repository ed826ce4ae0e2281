package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

//go:embed migrations
var embedded embed.FS

// migrations are all there are. They obey the rules of migrate_test.go, so that nodes of the former version go on
// meanwhile.
var migrations fs.FS = embedded

// migrating is the advisory lock of nodes that migrate one PostgreSQL.
const migrating = 727_053_001

// Migrate brings the schema up to date. Nodes that start together on one PostgreSQL take turns.
func (db *DB) Migrate(ctx context.Context) (applied int, err error) {
	pool := db.write.DB
	if !db.sqlite {
		pool = db.postgres.pool(0) // an index may take longer than any query
		defer pool.Close()
		conn, err := pool.Conn(ctx)
		if err != nil {
			return 0, fmt.Errorf("migrate the database: %w", err)
		}
		defer conn.Close() // a session that ends gives its locks back
		if err := takeTurn(ctx, conn); err != nil {
			return 0, fmt.Errorf("wait for other nodes' migration: %w", err)
		}
		defer conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", migrating)
	}
	p, err := db.migrator(pool)
	if err != nil {
		return 0, err
	}
	for try := 1; ; try++ {
		res, err := p.Up(ctx)
		applied += len(res)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "55P03" && try < 30 { // see lockTime
			slog.WarnContext(ctx, "a migration waits for a table that is in use", "error", err)
			continue
		}
		if err != nil {
			return applied, fmt.Errorf("migrate the database: %w", err)
		}
		return applied, db.migrateJobs(ctx, pool)
	}
}

// takeTurn waits for the lock of those who migrate. It asks again and again, each time in a statement of its own: one
// statement that waited would be a transaction that CREATE INDEX CONCURRENTLY waits for, and neither would ever end.
func takeTurn(ctx context.Context, conn *sql.Conn) error {
	for {
		var mine bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", migrating).Scan(&mine); err != nil ||
			mine {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Migrated says whether the schema is the one that this program knows.
func (db *DB) Migrated(ctx context.Context) (bool, error) {
	p, err := db.migrator(db.write.DB)
	if err != nil {
		return false, err
	}
	pending, err := p.HasPending(ctx)
	return !pending, err
}

func (db *DB) migrator(pool *sql.DB) (*goose.Provider, error) {
	dir, dialect := "migrations/sqlite", goose.DialectSQLite3
	if !db.SQLite() {
		dir, dialect = "migrations/postgres", goose.DialectPostgres
	}
	sub, err := fs.Sub(migrations, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, pool, sub, goose.WithDisableGlobalRegistry(true))
}
