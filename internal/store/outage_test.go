package store_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// told is what whoever made a request reads of err.
func told(t *testing.T, err error, want string) {
	t.Helper()
	err = store.Told(err)
	e, ok := errors.AsType[*parley.Error](err)
	var later interface{ Wait() int }
	if !ok || e.Kind != parley.Unavailable || !strings.Contains(e.Message, want) || !errors.As(err, &later) || later.Wait() != 5 {
		t.Errorf("told %v", err)
	}
}

// A database that can't be written says so, in a full disk's own words where it is one, until it can be written again.
func TestNotWritable(t *testing.T) {
	db := storetest.SQLite(t)
	grow := func(ctx context.Context, tx *store.Tx) error {
		return tx.CreateUser(ctx, &parley.User{Email: "a@example.com", Name: strings.Repeat("x", 1<<20)})
	}
	if err := db.Writable(t.Context()); err != nil {
		t.Errorf("at first: %v", err)
	}
	store.Pragma(t, db, "max_page_count = 1") // no further page
	told(t, db.Write(t.Context(), grow), "disk is full")
	store.Pragma(t, db, "max_page_count = 1000000")
	store.Pragma(t, db, "query_only = 1")
	told(t, db.Write(t.Context(), grow), "can't write")
	if err := db.Writable(t.Context()); err != nil {
		t.Errorf("looked again at once: %v", err)
	}
	store.LookAgain(db)
	if err := db.Writable(t.Context()); err == nil {
		t.Error("it counts as writable")
	}
	store.Pragma(t, db, "query_only = 0")
	left, leave := context.WithCancel(t.Context())
	leave()
	store.LookAgain(db)
	if err := db.Writable(left); err != nil {
		t.Errorf("somebody asks and leaves: %v", err)
	}
	store.LookAgain(db)
	if err := db.Writable(t.Context()); err != nil {
		t.Errorf("in the end: %v", err)
	}
	other := parley.Errorf(parley.NotFound, "Not found.")
	if err := store.Told(other); err != error(other) {
		t.Errorf("another error is told as %v", err)
	}
	if err := store.Opened("/data/parley.db", syscall.ENOSPC); !strings.Contains(err.Error(), "/data is full: free space on it") {
		t.Errorf("at the start: %v", err)
	}
}

// closed is the error of a connection that was found closed before anything was sent over it.
type closed struct{}

func (closed) Error() string { return "conn closed" }

func (closed) SafeToRetry() bool { return true }

// What a client reads of each error of either database and of the disk; the codes are PostgreSQL's.
func TestToldErrors(t *testing.T) {
	unknown, err := pgconn.ParseConfig("postgres://parley@db.invalid/parley")
	if err != nil {
		t.Fatal(err)
	}
	unknown.LookupFunc = func(context.Context, string) ([]string, error) {
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	_, nameless := pgconn.ConnectConfig(t.Context(), unknown)
	for want, errs := range map[string][]error{
		"can't reach its database": {nameless, driver.ErrBadConn, closed{}},
		"too busy to answer":       {},
		"disk is full":             {&fs.PathError{Op: "write", Path: "/data/blobs/1", Err: syscall.ENOSPC}, syscall.EDQUOT},
		"can't write":              {syscall.EROFS, &fs.PathError{Op: "write", Err: syscall.EFBIG}, syscall.EIO},
		"files and connections":    {&fs.PathError{Op: "open", Path: "/data/blobs/1", Err: syscall.EMFILE}, syscall.ENFILE},
	} {
		for _, code := range map[string][]string{
			"can't reach its database": {"57P01", "57P02", "57P03", "53300", "08006"},
			"too busy to answer":       {"57014", "55P03", "25P03", "40001", "40P01", "53000", "53200", "53400"},
			"disk is full":             {"53100"},
			"can't write":              {"25006", "58030"},
		}[want] {
			errs = append(errs, &pgconn.PgError{Code: code, Message: code})
		}
		for _, err := range errs {
			told(t, fmt.Errorf("save: %w", err), want)
		}
	}
	for _, err := range []error{&pgconn.PgError{Code: "23505"}, io.ErrUnexpectedEOF, context.Canceled, syscall.ECONNREFUSED, fs.ErrNotExist} {
		if got := store.Told(err); got != err { //nolint:errorlint // the same
			t.Errorf("%v is told as %v", err, got)
		}
	}
}

// A SQLite whose lock another process keeps is busy, not broken.
func TestLocked(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	db := storetest.Open(t, o)
	store.Pragma(t, db, "busy_timeout = 1")
	other, err := sql.Open("sqlite", o.Path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	told(t, db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.CreateUser(ctx, &parley.User{Email: "a@example.com"})
	}), "too busy to answer")
}

// A PostgreSQL that does not answer, ends its connections without a word, or only reads, is an outage.
func TestOutage(t *testing.T) {
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	p := storetest.NewProxy(t, storetest.Options(t, "postgres"))
	p.Options.Answer = 500 * time.Millisecond
	db := storetest.Open(t, p.Options)
	thaw := p.Freeze()
	_, err := db.User(t.Context(), 1)
	told(t, err, "can't reach its database")
	thaw()
	p.LoseCommit()
	err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.CreateUser(ctx, &parley.User{Email: "b@example.com"})
	})
	if err == nil || store.Told(err) != err { //nolint:errorlint // the same
		t.Errorf("nobody may be asked to do again what may have been done: %v", store.Told(err))
	}
	told(t, db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.SQL().NewRaw("SET TRANSACTION READ ONLY").Exec(ctx); err != nil {
			return err
		}
		return tx.CreateUser(ctx, &parley.User{Email: "a@example.com"})
	}), "can't write")
}
