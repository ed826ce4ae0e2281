package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// backedUp is a database with one account and a secret, which is open, and a copy of it.
func backedUp(t *testing.T) (db *store.DB, o store.Options, u *parley.User, file string) {
	t.Helper()
	o = storetest.Options(t, "sqlite")
	db = storetest.Open(t, o)
	u = storetest.User(t, db, 0)
	a := &parley.Assistant{Name: "Desk", Variables: map[string]string{"key": "a secret"}}
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, u.ID, a) })
	file = filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	return db, o, u, file
}

// names are the files of a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// A copy takes the place of what was written since, which is kept; while anybody has the database open, nothing is changed.
func TestRestore(t *testing.T) {
	db, o, u, file := backedUp(t)
	late := storetest.User(t, db, 0)
	if _, _, err := store.Restore(t.Context(), o, file); !errors.Is(err, store.ErrInUse) {
		t.Fatalf("while the database is open: %v", err)
	}
	if _, err := db.User(t.Context(), late.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, former, err := store.Restore(t.Context(), o, file)
	if err != nil {
		t.Fatal(err)
	}
	if c != (store.Copy{Accounts: 1}) {
		t.Errorf("the copy is said to hold %+v", c)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the copy was changed: %v", err)
	}
	if info, err := os.Stat(o.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the database: %v %v", info, err)
	}
	if list := names(t, filepath.Dir(o.Path)); len(list) != 2 {
		t.Errorf("the directory holds %v", list)
	}
	for path, there := range map[string]bool{o.Path: false, former: true} {
		o.Path = path
		db := storetest.Open(t, o)
		if _, err := db.User(t.Context(), u.ID); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := db.User(t.Context(), late.ID); (err == nil) != there {
			t.Errorf("%s: what came after the copy: %v", path, err)
		}
	}
}

// What can't be restored is refused in words, and leaves everything as it was.
func TestRestoreRefuses(t *testing.T) {
	db, o, _, file := backedUp(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	files := names(t, filepath.Dir(o.Path))
	changed := func(statement string) []byte {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		pool, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(statement); err != nil {
			t.Fatal(err)
		}
		pool.Close()
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	garbled := bytes.Clone(good)
	for i := 4096 * 2; i < len(garbled); i += 4096 * 3 {
		copy(garbled[i:], "garbled garbled garbled")
	}
	for name, c := range map[string]struct {
		raw  []byte
		key  string
		want string
	}{
		"text":    {raw: []byte(strings.Repeat("not a database ", 1000)), want: "not a SQLite database"},
		"empty":   {want: "not one of Parley's"},
		"half":    {raw: good[:len(good)/2], want: "damaged"},
		"garbled": {raw: garbled, want: "damaged"},
		// only a check of the whole file finds that two tables share a page
		"crossed": {raw: changed(`PRAGMA writable_schema = 1; UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master
			WHERE name = 'alerts') WHERE name = 'audit'`), want: "damaged"},
		"another's":    {raw: changed("DROP TABLE calls"), want: "not one of Parley's"},
		"newer":        {raw: changed("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)"), want: "newer version"},
		"another key":  {raw: good, key: "ffffffffffffffffffffffffffffffff", want: "put the secret.key that belongs to it"},
		"the database": {want: "is the database itself"},
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, c.raw, 0o600); err != nil {
			t.Fatal(err)
		}
		o := o
		if c.key != "" {
			o.Secret = []byte(c.key)
		}
		if name == "the database" {
			path = o.Path
		} else if _, err := store.Examine(t.Context(), o, path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, examined: %v", name, err)
		}
		if _, _, err := store.Restore(t.Context(), o, path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now, err := os.ReadFile(o.Path); err != nil || !bytes.Equal(was, now) {
		t.Errorf("the database was changed: %v", err)
	}
	if now := names(t, filepath.Dir(o.Path)); len(now) != len(files) {
		t.Errorf("the directory holds %v, and held %v", now, files)
	}
}

// A database that is damaged is replaced too, and on a new machine there is none.
func TestRestoreOverDamage(t *testing.T) {
	db, o, u, file := backedUp(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		if err := os.Remove(o.Path); err != nil {
			t.Fatal(err)
		}
		if there {
			if err := os.WriteFile(o.Path, []byte(strings.Repeat("damaged ", 10000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, former, err := store.Restore(t.Context(), o, file)
		if err != nil || (former != "") != there {
			t.Fatalf("restore: %q, %v", former, err)
		}
		db := storetest.Open(t, o)
		if _, err := db.User(t.Context(), u.ID); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A restore that is broken off between its steps leaves the former database where it is.
func TestSwap(t *testing.T) {
	dir := t.TempDir()
	path, former, part := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "part")
	for _, end := range []string{"", "-wal"} {
		if err := os.WriteFile(path+end, []byte("old"+end), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Swap(part, path, former); err == nil {
		t.Fatal("what is not there was put in place")
	}
	for _, file := range []string{path, former} {
		if raw, err := os.ReadFile(file); err != nil || string(raw) != "old" {
			t.Errorf("%s holds %q: %v", file, raw, err)
		}
	}
	if err := os.Remove(former); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Swap(part, path, former); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path: "new", former: "old", former + "-wal": "old-wal"} {
		if raw, err := os.ReadFile(file); err != nil || string(raw) != want {
			t.Errorf("%s holds %q: %v", file, raw, err)
		}
	}
}
