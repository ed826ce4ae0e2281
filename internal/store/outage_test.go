package store_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

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

// A PostgreSQL that does not answer, or only reads, is an outage.
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
	told(t, db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.SQL().NewRaw("SET TRANSACTION READ ONLY").Exec(ctx); err != nil {
			return err
		}
		return tx.CreateUser(ctx, &parley.User{Email: "a@example.com"})
	}), "can't write")
}
