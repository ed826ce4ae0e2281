package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	sqlite3 "modernc.org/sqlite/lib"
)

// Backup writes a consistent copy of the SQLite database to a new file, which only its owner may read.
func (db *DB) Backup(ctx context.Context, path string) (err error) {
	if !db.SQLite() {
		return errors.New("this database is PostgreSQL: back it up with pg_dump")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite writes to an empty file
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: name a file that does not", path)
	}
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
		}
	}()
	if _, err := db.write.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return f.Sync()
}

// Copy is what Examine and Restore find in a copy of a database.
type Copy struct {
	Accounts, Calls int
	Running         int  // campaigns that go on where they were
	Older           bool // its schema is brought up to date by the next start
}

// ErrInUse is the error of a restore while a server has the database open.
var ErrInUse = errors.New("a server is using this database: stop it, and restore again")

// Examine reads a copy of a SQLite database, without changing it, and returns what it holds. The error says what is wrong where the copy
// is damaged, is not Parley's, needs another version of Parley, or has secrets that o.Secret does not open.
func Examine(ctx context.Context, o Options, file string) (c Copy, err error) {
	part, err := fetch(ctx, filepath.Dir(o.Path), file)
	if err != nil {
		return c, err
	}
	defer remove(part)
	return examine(ctx, o, part, file)
}

// Restore puts a copy in the place of the SQLite database o.Path, after examining it. The database that was there before stays beside it,
// under the name that Restore returns; "" means that there was none.
func Restore(ctx context.Context, o Options, file string) (c Copy, former string, err error) {
	dir := filepath.Dir(o.Path)
	if same(file, o.Path) {
		return c, "", fmt.Errorf("%s is the database itself: name a copy", file)
	}
	part, err := fetch(ctx, dir, file)
	if err != nil {
		return c, "", err
	}
	defer remove(part)
	if c, err = examine(ctx, o, part, file); err != nil {
		return c, "", err
	}
	if _, err := os.Stat(o.Path); err == nil {
		release, err := seize(ctx, o.Path)
		if err != nil {
			return c, "", err
		}
		defer release()
		former = o.Path + ".before-" + time.Now().UTC().Format("20060102-150405.000")
	}
	if err := swap(part, o.Path, former); err != nil {
		return c, former, fmt.Errorf("put the copy in its place: %w", err)
	}
	return c, former, syncDir(dir)
}

// swap puts part in the place of path, and keeps what was there as former, "" for nothing. Whenever it is broken off, there is a database.
func swap(part, path, former string) error {
	if former != "" {
		for _, end := range []string{"-wal", "-shm"} { // they are there where the database is damaged
			if err := os.Rename(path+end, former+end); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		if err := os.Link(path, former); err != nil {
			return err
		}
	}
	return os.Rename(part, path)
}

// fetch copies a file into the data directory, for the owner of the directory alone, and returns the name it has there.
func fetch(ctx context.Context, dir, file string) (part string, err error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return "", fmt.Errorf("%s-wal lies beside the copy, so a part of the database is in it: make the copy by 'parley backup'", file)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", unwritable(filepath.Join(dir, "parley.db"), err)
	}
	out, err := os.CreateTemp(dir, "restore-*.db") // readable by nobody else
	if err != nil {
		return "", unwritable(filepath.Join(dir, "parley.db"), err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			remove(out.Name())
			err = fmt.Errorf("copy %s: %w", file, err)
		}
	}()
	if _, err := io.Copy(out, until{ctx, in}); err != nil {
		return "", err
	}
	if err := inherit(dir, out); err != nil {
		return "", err
	}
	return out.Name(), out.Sync()
}

// until reads until the context ends.
type until struct {
	context.Context
	io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

func remove(path string) {
	for _, end := range []string{"", "-wal", "-shm"} {
		os.Remove(path + end)
	}
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// examine looks at a copy that is ours to open; name is what people call it.
func examine(ctx context.Context, o Options, part, name string) (c Copy, err error) {
	damaged := func(err error) error {
		switch sqliteCode(err) {
		case sqlite3.SQLITE_NOTADB:
			return fmt.Errorf("%s is not a SQLite database: %w", name, err)
		case sqlite3.SQLITE_CORRUPT:
			return fmt.Errorf("%s is damaged: restore another copy: %w", name, err)
		}
		return fmt.Errorf("examine %s: %w", name, err)
	}
	db, err := openSQLite(ctx, Options{Path: part, Secret: o.Secret, Version: o.Version})
	if err != nil {
		return c, damaged(err)
	}
	defer func() {
		if e := db.Close(); err == nil && e != nil {
			err = damaged(e)
		}
	}()
	var said string
	if err := db.q.NewRaw("PRAGMA quick_check(1)").Scan(ctx, &said); err != nil {
		return c, damaged(err)
	}
	if said != "ok" {
		return c, fmt.Errorf("%s is damaged: restore another copy: %s", name, said)
	}
	var tables int
	if err := db.q.NewRaw("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN (?, 'users', 'calls')",
		goose.DefaultTablename).Scan(ctx, &tables); err != nil {
		return c, damaged(err)
	}
	if tables != 3 {
		return c, fmt.Errorf("%s is a SQLite database, but not one of Parley's", name)
	}
	p, err := db.migrator(db.write.DB)
	if err != nil {
		return c, err
	}
	if err := db.refuse(ctx, p, db.write.DB); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	is, known, err := p.GetVersions(ctx)
	if err != nil {
		return c, damaged(err)
	}
	c.Older = is < known
	err = db.q.NewRaw("SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM calls), "+
		"(SELECT count(*) FROM campaigns WHERE status = 'running')").Scan(ctx, &c.Accounts, &c.Calls, &c.Running)
	if err != nil {
		return c, damaged(err)
	}
	return c, db.readable(ctx, name)
}

// readable returns an error where the secrets of the database were stored with another key. It tries one of each of three kinds that most
// accounts have.
func (db *DB) readable(ctx context.Context, name string) error {
	for _, kind := range []struct{ what, query string }{
		{webhookSecret, "SELECT sealed FROM webhook_secrets LIMIT 1"},
		{trunkSecret, "SELECT sip_password FROM trunks WHERE sip_password IS NOT NULL LIMIT 1"},
		{variablesSeal, "SELECT sealed_variables FROM assistants WHERE sealed_variables IS NOT NULL LIMIT 1"},
	} {
		var sealed []byte
		err := db.q.NewRaw(kind.query).Scan(ctx, &sealed)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			_, err = db.box.open(kind.what, sealed)
		}
		if err != nil {
			return fmt.Errorf("the secrets in %s can't be read: put the secret.key that belongs to it into the data directory, "+
				"or set PARLEY_SECRET_KEY: %w", name, err)
		}
	}
	return nil
}

// seize takes a database for itself until release, and completes its file. A database that is damaged is nobody's.
func seize(ctx context.Context, path string) (release func(), err error) {
	pool, err := sql.Open("sqlite", address(path, "_pragma=busy_timeout(0)"))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	// Out of WAL mode comes only who has the database alone.
	for _, statement := range []string{"PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE"} {
		if _, err = pool.ExecContext(ctx, statement); err != nil {
			break
		}
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		err = ErrInUse
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return func() { pool.Close() }, nil
}

// syncDir makes the names in a directory survive a power loss.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// inherit gives a file that root has made to the owner of its directory, whose server shall read it.
func inherit(dir string, f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}
