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

	"parley/internal/parley"
)

//go:embed migrations
var embedded embed.FS

// migrations are all there are. They obey the rules of migrate_test.go, so that nodes of the former version go on
// meanwhile.
var migrations fs.FS = embedded

// baseline is the schema that the first migration makes at once: those that led to it were squashed. A database between 0
// and it must be updated by the last program that still had them.
const (
	baseline        = 260
	baselineProgram = "commit 16c848c of 26 November 2026"
)

// migrating is the advisory lock of nodes that migrate one PostgreSQL.
const migrating = 727_053_001

// Migrate brings the schema up to date. Nodes that start together on one PostgreSQL take turns. A schema that a newer
// program made is ErrNewer; one that is older than the baseline is ErrOlder.
func (db *DB) Migrate(ctx context.Context) (applied int, err error) {
	defer func() { err = opened(db.path, err) }()
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
	if err := db.refuse(ctx, p, pool); err != nil {
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
		if applied > 0 {
			if err := db.sign(ctx, pool); err != nil {
				return applied, err
			}
		}
		if err := fillCountries(ctx, pool, db.sqlite); err != nil {
			return applied, fmt.Errorf("fill in the countries of accounts: %w", err)
		}
		return applied, db.migrateJobs(ctx, pool)
	}
}

var (
	// ErrNewer is the error of a database whose schema a newer program made.
	ErrNewer = errors.New("a newer version of Parley has updated this database")
	// ErrOlder is the error of a database whose schema is older than any that this program can update.
	ErrOlder = errors.New("this database is of a version of Parley that is too old to be updated in one step")
)

// refuse returns an error for a database whose schema is newer than this program, or older than the baseline.
func (db *DB) refuse(ctx context.Context, p *goose.Provider, pool *sql.DB) error {
	is, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the database's schema: %w", err)
	}
	if is > 0 && is < baseline {
		return fmt.Errorf("%w: its schema is %d, and this program updates schemas from %d on. "+
			"Back it up, start Parley of %s on it once, then this program",
			ErrOlder, is, baseline, baselineProgram)
	}
	if is <= known {
		return nil
	}
	install := "the version that last ran on it, or a newer one"
	var signed string // a database that was made before there were signatures has none
	err = pool.QueryRowContext(ctx, "SELECT value FROM settings WHERE name = 'program'").Scan(&signed)
	if err == nil && signed != "" {
		install = "Parley " + signed + ", or a newer version"
	} else if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read which version made the database's schema: %w", err)
	}
	return fmt.Errorf("%w: its schema is %d, and this program knows schemas up to %d. "+
		"Install %s, or restore the backup that was made before the update",
		ErrNewer, is, known, install)
}

// sign notes which program has updated the schema.
func (db *DB) sign(ctx context.Context, pool *sql.DB) error {
	mark := "?"
	if !db.sqlite {
		mark = "$1"
	}
	_, err := pool.ExecContext(ctx, "INSERT INTO settings (name, value) VALUES ('program', "+mark+
		") ON CONFLICT (name) DO UPDATE SET value = excluded.value", db.version)
	if err != nil {
		return fmt.Errorf("note which version updated the schema: %w", err)
	}
	return nil
}

// fillCountries gives accounts that have no country yet, not even none, the one of their time zone: those from before
// there were countries, and those that nodes of a former version made.
func fillCountries(ctx context.Context, pool *sql.DB, sqlite bool) error {
	rows, err := pool.QueryContext(ctx, "SELECT DISTINCT timezone FROM users WHERE country IS NULL")
	if err != nil {
		return err
	}
	defer rows.Close()
	var zones []string
	for rows.Next() {
		var zone string
		if err := rows.Scan(&zone); err != nil {
			return err
		}
		zones = append(zones, zone)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	update := "UPDATE users SET country = $1 WHERE timezone = $2 AND country IS NULL"
	if sqlite {
		update = "UPDATE users SET country = ? WHERE timezone = ? AND country IS NULL"
	}
	for _, zone := range zones {
		if _, err := pool.ExecContext(ctx, update, parley.ZoneCountry(zone), zone); err != nil {
			return err
		}
	}
	return nil
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

// Migrated says whether the schema is the one that this program knows. A newer one is ErrNewer, one before the baseline ErrOlder.
func (db *DB) Migrated(ctx context.Context) (bool, error) {
	p, err := db.migrator(db.write.DB)
	if err != nil {
		return false, err
	}
	if err := db.refuse(ctx, p, db.write.DB); err != nil {
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
