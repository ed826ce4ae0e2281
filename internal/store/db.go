// Package store is the database: SQLite inside, or PostgreSQL when one machine is not enough. SQL lives here and
// nowhere else, one file per aggregate, one method body for both engines. Every method that reads or writes a user's
// things takes the user's id first, and returns parley.NotFound both for a thing that doesn't exist and for another
// user's.
//
// # Durability
//
// SQLite runs in WAL mode with synchronous=FULL: every commit is synced to disk before it is acknowledged, so neither a
// killed process nor a power loss takes back what was answered (NORMAL, the usual choice, would lose the last commits
// at a power loss). The cost of that sync is shared: writes that wait for each other commit together (see write.go).
// PostgreSQL keeps its own default, synchronous_commit = on, which says the same.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"parley/internal/parley"
)

// Query holds what can be read: a DB and a Tx both embed it, so that a question is asked in the same words inside and
// outside a transaction.
type Query struct {
	q      bun.IDB
	sqlite bool
	box    box

	news  chan struct{} // has a token when deliveries were committed
	rules Rules
	link  Link // of a simulated process; nil otherwise

	totals *totals // of long lists; nil in a transaction
	tally  *tally  // of changes in the audit log
}

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	Query
	read  *bun.DB // on SQLite a pool that can't write
	write *bun.DB // on SQLite one connection, the only writer of this process
	jobs  *river.Client[*sql.Tx]
	queue *line // SQLite: writes that wait to be committed together
	asked atomic.Int64
	done  chan struct{}

	closing chan struct{} // closed when Close begins
	once    *sync.Once    // of closing it; Share's have the same

	writable writable

	path     string    // of SQLite's file
	version  string    // of this program
	postgres *patience // PostgreSQL's address and bounds, for what needs connections of its own
}

// Options say where the database is.
type Options struct {
	Path     string // SQLite file
	Postgres string // postgres://…; Path is then ignored
	Secret   []byte // 32 bytes that encrypt secrets at rest
	Version  string // of this program, as an older one is told it; "" is unknown

	Wait   time.Duration // how long Open waits for a PostgreSQL that does not answer yet
	Answer time.Duration // how long PostgreSQL may take to answer; 0 is 40 s

	Watch bun.QueryHook // sees every query; nil for none
	Rules Rules
}

// Rules are what an operator allows accounts. The zero value limits nothing and warns of nothing.
type Rules struct {
	LowBalance   parley.Money                  // an account whose balance falls below it is told so, once per fall
	PublicBudget parley.Money                  // what visitors may spend of an account's money in a day (UTC); 0: no limit
	Plan         func(name string) parley.Plan // what accounts of a plan may have; nil: as much as they like
}

// Open connects, without changing anything in the database: call Migrate before use.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Postgres != "" {
		db, err := openPostgres(ctx, o)
		return db, opened("", err)
	}
	db, err := openSQLite(ctx, o)
	return db, opened(o.Path, err)
}

func openSQLite(ctx context.Context, o Options) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, unwritable(o.Path, err)
	}
	if o.Path != "" { // without one, SQLite keeps the database in a temporary file
		f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would not say what is wrong
		if err != nil {
			return nil, unwritable(o.Path, err)
		}
		f.Close()
	}
	open := func(pragmas string, conns int) (*bun.DB, error) {
		pool, err := sql.Open("sqlite", address(o.Path, "_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)"+
			"&_pragma=synchronous(FULL)&_pragma=cache_size(-16000)&_pragma=temp_store(MEMORY)&_txlock=immediate"+pragmas))
		if err != nil {
			return nil, err
		}
		pool.SetMaxOpenConns(conns)
		pool.SetMaxIdleConns(conns)
		db := bun.NewDB(pool, literal{sqlitedialect.New()}, bun.WithDiscardUnknownColumns())
		if err := db.PingContext(ctx); err != nil {
			pool.Close()
			return nil, fmt.Errorf("open %s: %w", o.Path, err)
		}
		return db, nil
	}
	write, err := open("", 1)
	if err != nil {
		return nil, err
	}
	read, err := open("&_pragma=query_only(1)", max(4, 2*runtime.NumCPU()))
	if err != nil {
		write.Close()
		return nil, err
	}
	os.Chmod(o.Path, 0o600) // it holds people's words; a failure leaves the directory's 0700
	return newDB(read, write, nil, o)
}

// address is a file's, as the driver takes it.
func address(path, options string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + options
}

// unwritable is the error of a database file that can't be made or written.
func unwritable(path string, err error) error {
	return fmt.Errorf("the data directory %s must be a directory that this user can write to; choose another with --data or PARLEY_DATA: %w",
		filepath.Dir(path), err)
}

func newDB(read, write *bun.DB, postgres *patience, o Options) (*DB, error) {
	b, err := newBox(o.Secret)
	if err != nil {
		return nil, err
	}
	if o.Watch != nil {
		read, write = read.WithQueryHook(o.Watch), write.WithQueryHook(o.Watch)
	}
	db := &DB{Query: Query{q: read, sqlite: postgres == nil, box: b, news: make(chan struct{}, 1), rules: o.Rules,
		totals: newTotals(), tally: newTally()},
		read: read, write: write, postgres: postgres, path: o.Path, version: o.Version}
	if db.jobs, err = inserter(write.DB, db.sqlite); err != nil {
		return nil, err
	}
	if db.sqlite {
		db.write = write.WithQueryHook(asked{&db.asked})
		db.queue, db.done, db.closing, db.once = newLine(), make(chan struct{}), make(chan struct{}), new(sync.Once)
		go db.commitTogether()
	}
	return db, nil
}

// ErrClosed is what those hear who write after Close.
var ErrClosed = errors.New("the database is closed")

// Close waits for the writes under way and disconnects.
func (db *DB) Close() error {
	if db.queue != nil {
		db.once.Do(func() { close(db.closing) })
		<-db.done
		return errors.Join(db.read.Close(), db.write.Close())
	}
	return db.write.Close()
}

// SQL is what package search asks with: its tables are its own, and written and read by nobody else. Every other
// question has a method here.
func (q Query) SQL() bun.IDB { return q.q }

// SQLite says which engine it is.
func (q Query) SQLite() bool { return q.sqlite }

// long narrows a user's rows, and returns them as a list that is counted as total.go says, by its table and key. narrow
// is called twice; what it is given precedes the columns whose index would find more than the young rows.
func (q Query) long(userID int64, table, key string, rows *bun.SelectQuery, narrow func(s *bun.SelectQuery, unindexed string)) longList {
	l := longList{db: q.q, clock: q.clock, totals: q.totals, userID: userID, table: table, key: key, rows: rows, fresh: rows.Clone()}
	narrow(rows, "")
	narrow(l.fresh, "+")
	return l
}

// Ping says whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	var one int
	return db.q.NewRaw("SELECT 1").Scan(ctx, &one)
}

// locked keeps the rows that are read from others until the transaction ends. SQLite has one writer and needs no
// clause for it.
func (q Query) locked(s *bun.SelectQuery) *bun.SelectQuery { return q.lock(s, "UPDATE") }

// lock is locked in another way than the usual one: of one table of a join, or together with other readers.
func (q Query) lock(s *bun.SelectQuery, how string) *bun.SelectQuery {
	if q.sqlite {
		return s
	}
	return s.For(how)
}

// skipLocked ends a subquery that takes rows, and passes over those that another takes.
func (q Query) skipLocked() string {
	if q.sqlite {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

// stay ends a query for rows that nobody may delete before the transaction ends.
func (q Query) stay() string {
	if q.sqlite {
		return "" // there one transaction writes at a time
	}
	return " FOR KEY SHARE"
}

// Backup writes a consistent copy of a SQLite database to a file that does not exist yet, also while a server runs on
// notFound turns "no rows" into the product's word; text is what the contract says, such as "Assistant not found".
func notFound(err error, text string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return parley.Errorf(parley.NotFound, "%s", text)
	}
	return err
}

// count is how many rows a statement changed.
func count(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// some says whether a statement changed anything.
func some(res sql.Result, err error) (bool, error) {
	n, err := count(res, err)
	return n > 0, err
}

// one turns "nothing was changed" into not found.
func one(res sql.Result, err error, text string) error {
	if n, err := count(res, err); err != nil || n > 0 {
		return err
	}
	return parley.Errorf(parley.NotFound, "%s", text)
}

// first is the first row of a query, nil when there is none.
func first[T any](ctx context.Context, q Query, which func(*bun.SelectQuery)) (*T, error) {
	var list []T
	s := q.q.NewSelect().Model(&list).Limit(1)
	which(s)
	if err := s.Scan(ctx); err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// violates says whether err is a unique or foreign-key rule of the schema that was broken, by the name of its index
// or by "table.column" (SQLite names a plain unique index by its columns).
func violates(err error, names ...string) bool {
	var text string
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "23503"):
		text = pg.ConstraintName
	case errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_CONSTRAINT:
		text = lite.Error()
	default:
		return false
	}
	for _, n := range names {
		if strings.Contains(text, n) {
			return true
		}
	}
	return false
}

// IsNotFound says whether err means that there is no such thing for this user.
func IsNotFound(err error) bool {
	var e *parley.Error
	return errors.As(err, &e) && e.Kind == parley.NotFound
}
