package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"parley/internal/parley"
)

// outage is the error of a request that failed since the database was away, or could not be written.
type outage struct {
	told  *parley.Error
	cause error
}

func (o *outage) Error() string { return o.told.Message + " (" + o.cause.Error() + ")" }

func (o *outage) Unwrap() []error { return []error{o.told, o.cause} }

// Ours says that the error is the server's own to mend, though it is told in words (web.Known logs it).
func (o *outage) Ours() {}

// Wait is after how many seconds the request may be made again.
func (o *outage) Wait() int { return 5 }

// Told is err as the client may read it: if the database does not answer, or can't be written, it says so, and when to ask again.
func Told(err error) error {
	message := ""
	switch {
	case err == nil:
		return nil
	case away(err):
		message = "The server can't reach its database. Try again in a few seconds."
	case full(err):
		message = "The server's disk is full: its operator has to free space. What was stored before can still be read."
	case stuck(err):
		message = "The server can't write to its database: its operator has to mend that. What was stored before can still be read."
	default:
		return err
	}
	return &outage{&parley.Error{Kind: parley.Unavailable, Message: message}, err}
}

// full says whether err means that the database's disk is full.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || sqliteCode(err) == sqlite3.SQLITE_FULL || postgresCode(err) == "53100"
}

// stuck says whether err means that nothing can be written.
func stuck(err error) bool {
	return slices.Contains([]int{sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}, sqliteCode(err)) ||
		slices.Contains([]string{"53100", "25006", "58030"}, postgresCode(err)) // full, read-only, input or output failed
}

func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func postgresCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// writable is what the last look found out.
type writable struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// looked is for how long it stands that the database can be written, or can't.
const looked = 5 * time.Second

// writableTime is how long a look may take: a client that leaves must not end it.
const writableTime = 10 * time.Second

// Writable says why nothing can be written, nil if something can. It writes, at most once in five seconds, and logs what it finds wrong.
func (db *DB) Writable(ctx context.Context) error {
	w := &db.writable
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.IsZero() && time.Since(w.at) < looked {
		return w.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writableTime)
	defer cancel()
	w.err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.q.NewRaw("UPDATE activity_left SET below = below WHERE name = 'ledger'").Exec(ctx)
		return err
	})
	w.at = time.Now()
	if w.err != nil {
		slog.ErrorContext(ctx, "the database can't be written", "error", w.err)
	}
	return w.err
}

// opened is the error of a database that could not be opened or brought up to date, with what to do where its disk is full.
func opened(path string, err error) error {
	if !full(err) {
		return err
	}
	where := "The database server's disk is full"
	if path != "" {
		where = fmt.Sprintf("The disk that holds %s is full", filepath.Dir(path))
	}
	return fmt.Errorf("%s: free space on it, for instance by moving backups and old recordings away, and start again: %w", where, err)
}
