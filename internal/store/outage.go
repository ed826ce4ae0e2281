package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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

// unsure is the error of a write whose commit was sent over a connection that broke: nobody is asked to make the request again.
type unsure struct{ error }

func (e *unsure) Unwrap() error { return e.error }

// Told is err as the client may read it: if the database does not answer, or can't be written, it says so, and when to ask again.
func Told(err error) error {
	message := ""
	var commit *unsure
	switch {
	case err == nil || errors.As(err, &commit):
		return err
	case away(err):
		message = "The server can't reach its database. Try again in a few seconds."
	case slow(err):
		message = "The server's database is too busy to answer in time. Try again in a few seconds."
	case full(err):
		message = "The server's disk is full: its operator has to free space. What was stored before can still be read."
	case outOfFiles(err):
		message = "The server has as many files and connections open as it may. Try again in a few seconds."
	case stuck(err):
		message = "The server can't write to its database: its operator has to mend that. What was stored before can still be read."
	default:
		return err
	}
	return &outage{&parley.Error{Kind: parley.Unavailable, Message: message}, err}
}

// full says whether err means that the disk of the database, or of uploads, is full.
func full(err error) bool {
	return isOne(err, syscall.ENOSPC, syscall.EDQUOT) || sqliteCode(err) == sqlite3.SQLITE_FULL || postgresCode(err) == "53100"
}

// stuck says whether err means that nothing can be written.
func stuck(err error) bool {
	return slices.Contains([]int{sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}, sqliteCode(err)) ||
		slices.Contains([]string{"25006", "58030"}, postgresCode(err)) || // read-only, input or output failed
		isOne(err, syscall.EROFS, syscall.EFBIG, syscall.EIO)
}

// slow says whether err means that the database took too long, or gave way to other work: of SQLite that another process held its
// lock, of PostgreSQL its classes 40, 53 and 57 (https://www.postgresql.org/docs/current/errcodes-appendix.html).
func slow(err error) bool {
	return sqliteCode(err) == sqlite3.SQLITE_BUSY || slices.Contains([]string{
		"57014", "55P03", "25P03", // a statement, a lock, a transaction took too long
		"40001", "40P01", // lost the race as often as it is tried
		"53000", "53200", "53400", // out of something, of memory, of what is configured
	}, postgresCode(err))
}

// outOfFiles says whether err means that this process, or the machine, can open nothing more.
func outOfFiles(err error) bool { return isOne(err, syscall.EMFILE, syscall.ENFILE) }

func isOne(err error, of ...syscall.Errno) bool {
	e, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(of, e)
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
// A value that does not change would reach no disk: SQLite compares it first.
func (db *DB) Writable(ctx context.Context) error {
	w := &db.writable
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.IsZero() && time.Since(w.at) < looked {
		return w.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writableTime)
	defer cancel()
	w.err = db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
		for _, by := range []int{1, -1} {
			_, failed := tx.q.NewRaw("UPDATE activity_left SET below = below + ? WHERE name = 'ledger'", by).Exec(ctx)
			err = errors.Join(err, failed)
		}
		return err
	})
	if w.err == nil && db.sqlite && db.path != "" {
		w.err = room(filepath.Dir(db.path))
	}
	w.at = time.Now()
	if w.err != nil {
		slog.ErrorContext(ctx, "the database can't be written", "error", w.err)
	}
	return w.err
}

// roomFor is what a disk must have room for, in bytes, to count as writable: SQLite can reuse its write-ahead log for a while on a disk
// that is full, and uploads and recordings can't.
const roomFor = 256 << 10

// room says why a file of roomFor can't be written to a directory.
func room(dir string) error {
	f, err := os.Create(filepath.Join(dir, ".room")) // one name: what a killed process leaves is taken again
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, roomFor))
	return errors.Join(err, f.Close())
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
