package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// limitFiles bounds the bytes of files that this process writes, which SQLite and uploads meet as they meet a broken disk.
func limitFiles(t *testing.T, bytes uint64) (free func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	free = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(free)
	return free
}

// A database whose files can't grow is not writable, and is again when they can: what is looked at reaches the disk.
func TestNoRoomForTheLog(t *testing.T) {
	db := storetest.SQLite(t)
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.CreateUser(ctx, &parley.User{Email: "large@example.com", Name: strings.Repeat("x", 1<<20)})
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Writable(t.Context()); err != nil {
		t.Fatal(err)
	}
	free := limitFiles(t, 512<<10) // less than the log has: a file beside it still fits
	store.LookAgain(db)
	told(t, db.Writable(t.Context()), "can't write")
	told(t, db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.CreateUser(ctx, &parley.User{Email: "a@example.com"})
	}), "can't write")
	free()
	store.LookAgain(db)
	if err := db.Writable(t.Context()); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

// A database beside which there is no room for uploads is not writable, though SQLite could go on for a while.
func TestNoRoomForUploads(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	db := storetest.Open(t, o)
	free := limitFiles(t, 200<<10)
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.CreateUser(ctx, &parley.User{Email: "a@example.com"})
	}); err != nil {
		t.Fatal(err)
	}
	told(t, db.Writable(t.Context()), "can't write")
	free()
	store.LookAgain(db)
	if err := db.Writable(t.Context()); err != nil {
		t.Errorf("in the end: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Path), ".room-*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
