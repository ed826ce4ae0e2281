package store

import (
	"context"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// Link is one process's way to a database that several share, in a simulation of them on SQLite: see Share.
type Link interface {
	bun.QueryHook // around each read outside of a transaction
	// Write calls commit, which performs a transaction, or returns why the database can't be reached.
	Write(ctx context.Context, commit func(context.Context) error) error
	Clock() parley.Time // the database's
}

// Share returns an open SQLite database as one of several processes has it, with a link of its own. Simulations of many nodes on simulated
// time use it in place of PostgreSQL, whose connections can't wait there. Jobs are not shared: FreeJobs takes whoever works them for alone.
// Close closes the database for all. Share panics on PostgreSQL.
func (db *DB) Share(l Link) *DB {
	if !db.sqlite {
		panic("store: Share is for SQLite")
	}
	q := db.Query
	q.q, q.link, q.totals = db.read.WithQueryHook(l), l, newTotals()
	return &DB{Query: q, read: db.read, write: db.write, jobs: db.jobs, queue: db.queue, done: db.done, closing: db.closing, once: db.once,
		path: db.path, version: db.version}
}

// Alone says whether one process has the database to itself.
func (q Query) Alone() bool { return q.sqlite && q.link == nil }
