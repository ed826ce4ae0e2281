package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// migrating is the advisory lock of nodes that migrate one PostgreSQL.
const migrating = 727_053_001

// Migrate brings the schema up to date. Nodes that start together on one PostgreSQL take turns.
func (db *DB) Migrate(ctx context.Context) (applied int, err error) {
	if !db.sqlite {
		conn, err := db.write.Conn(ctx)
		if err != nil {
			return 0, fmt.Errorf("migrate the database: %w", err)
		}
		defer conn.Close() // a session that ends gives its locks back
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(?)", migrating); err != nil {
			return 0, fmt.Errorf("wait for other nodes' migration: %w", err)
		}
		defer conn.ExecContext(ctx, "SELECT pg_advisory_unlock(?)", migrating)
	}
	p, err := db.migrator()
	if err != nil {
		return 0, err
	}
	res, err := p.Up(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate the database: %w", err)
	}
	return len(res), db.migrateJobs(ctx)
}

// Migrated says whether the schema is the one that this program knows.
func (db *DB) Migrated(ctx context.Context) (bool, error) {
	p, err := db.migrator()
	if err != nil {
		return false, err
	}
	pending, err := p.HasPending(ctx)
	return !pending, err
}

func (db *DB) migrator() (*goose.Provider, error) {
	dir, dialect := "migrations/sqlite", goose.DialectSQLite3
	if !db.SQLite() {
		dir, dialect = "migrations/postgres", goose.DialectPostgres
	}
	sub, err := fs.Sub(migrations, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, db.write.DB, sub, goose.WithDisableGlobalRegistry(true))
}
