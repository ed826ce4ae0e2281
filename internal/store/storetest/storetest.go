// Package storetest gives tests a fresh, migrated database: a SQLite file in a temp directory, or a database of its
// own in a real PostgreSQL that the test process starts and that ends with it.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"parley/internal/parley"
	"parley/internal/store"
)

// Secret is the key that test databases encrypt with.
var Secret = []byte("0123456789abcdef0123456789abcdef")

// Engines are the databases that Each runs on. PARLEY_TEST_POSTGRES=off leaves PostgreSQL out (make check); make test
// never does.
func Engines() []string {
	if os.Getenv("PARLEY_TEST_POSTGRES") == "off" {
		return []string{"sqlite"}
	}
	return []string{"sqlite", "postgres"}
}

// Each runs a test once on each engine, under these rules or under none.
func Each(t *testing.T, test func(t *testing.T, db *store.DB), rules ...store.Rules) {
	t.Helper()
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) { test(t, Open(t, Options(t, engine, rules...))) })
	}
}

// SQLite is a fresh SQLite database.
func SQLite(t testing.TB, rules ...store.Rules) *store.DB {
	t.Helper()
	return Open(t, Options(t, "sqlite", rules...))
}

// Options name a fresh, migrated database of an engine, under these rules or under none: a copy of one that this
// process migrated once.
func Options(t testing.TB, engine string, rules ...store.Rules) (o store.Options) {
	t.Helper()
	if engine == "postgres" {
		if err := migrated.postgres(); err != nil {
			t.Fatal(err)
		}
		o = store.Options{Postgres: create(t, template), Secret: Secret}
	} else {
		file, err := migrated.sqlite()
		if err != nil {
			t.Fatal(err)
		}
		o = Empty(t, engine)
		if err := os.WriteFile(o.Path, file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rules {
		o.Rules = r
	}
	return o
}

// Empty names a fresh, empty database of an engine.
func Empty(t testing.TB, engine string) store.Options {
	t.Helper()
	if engine == "postgres" {
		return store.Options{Postgres: Postgres(t), Secret: Secret}
	}
	return store.Options{Path: filepath.Join(t.TempDir(), "parley.db"), Secret: Secret}
}

// template is the database that PostgreSQL copies; nobody may be connected to it then.
const template = "migrated"

// migrated makes, once in a process, what Options copies: a SQLite file's bytes, and the template of PostgreSQL.
var migrated = struct {
	sqlite   func() ([]byte, error)
	postgres func() error
}{
	sqlite: sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "parley-test-sqlite-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		o := store.Options{Path: filepath.Join(dir, "parley.db"), Secret: Secret}
		if err := migrate(o); err != nil {
			return nil, err
		}
		return os.ReadFile(o.Path)
	}),
	postgres: sync.OnceValue(func() error {
		base, err := cluster()
		if err != nil {
			return fmt.Errorf("start PostgreSQL (make test installs it): %w", err)
		}
		admin, err := sql.Open("pgx", base+"/postgres")
		if err != nil {
			return err
		}
		defer admin.Close()
		if _, err := admin.Exec("CREATE DATABASE " + template + " TEMPLATE template0"); err != nil {
			return err
		}
		return migrate(store.Options{Postgres: base + "/" + template, Secret: Secret})
	}),
}

func migrate(o store.Options) error {
	db, err := store.Open(context.Background(), o)
	if err != nil {
		return err
	}
	_, err = db.Migrate(context.Background())
	return errors.Join(err, db.Close())
}

// Open opens and migrates a database and closes it with the test.
func Open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	if o.Postgres == "" {
		o.Watch = collector{"sqlite", &auditor{t: t, also: o.Watch}}
	} else {
		o.Watch = collector{"postgres", o.Watch}
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		if o.Postgres == "" && Explains {
			explain(t, o.Path)
		}
	})
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// Exec does to a database what no method of the store does.
func Exec(t testing.TB, o store.Options, query string, args ...any) {
	t.Helper()
	driver, at := "sqlite", o.Path+"?_pragma=busy_timeout(10000)"
	if o.Postgres != "" {
		driver, at = "pgx", o.Postgres
	}
	db, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// Query reads from a SQLite database what no method of the store does.
func Query(t testing.TB, o store.Options, dst any, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", o.Path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query, args...).Scan(dst); err != nil {
		t.Fatal(err)
	}
}

// Break has what a statement does to a SQLite database fail, such as "UPDATE OF pending ON messages", until it is
// mended.
func Break(t testing.TB, o store.Options, statement string) (mend func()) {
	t.Helper()
	Exec(t, o, "CREATE TRIGGER broken BEFORE "+statement+" BEGIN SELECT RAISE(ABORT, 'broken for a test'); END")
	return func() { Exec(t, o, "DROP TRIGGER broken") }
}

// User stores a user with a balance.
func User(t testing.TB, db *store.DB, balance parley.Money) *parley.User {
	t.Helper()
	u := &parley.User{Name: "Ana", Email: fmt.Sprintf("user%d@example.com", serial.Add(1)), PasswordHash: "-",
		Timezone: "UTC", Plan: "default", EmailProvenAt: parley.Now()}
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateUser(ctx, u); err != nil {
			return err
		}
		_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: balance, Reference: "start",
			Description: "test"})
		u.Balance = balance
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var (
	serial  atomic.Int64
	cluster = sync.OnceValues(start)
)

// Postgres is the address of a new, empty database in this process's PostgreSQL.
func Postgres(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

// create makes a database, a copy of another, that is dropped with the test.
func create(t testing.TB, from string) string {
	t.Helper()
	base, err := cluster()
	if err != nil {
		t.Fatalf("start PostgreSQL (make test installs it): %v", err)
	}
	admin, err := sql.Open("pgx", base+"/postgres")
	if err != nil {
		t.Fatal(err)
	}
	name := "t" + strconv.FormatInt(serial.Add(1), 10)
	if _, err := admin.Exec("CREATE DATABASE " + name + " TEMPLATE " + from + ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		admin.Close()
	})
	return base + "/" + name
}

const clusterPrefix = "parley-test-postgres-"

// start makes a cluster in a temp directory and runs a server on it that dies with this process.
func start() (string, error) {
	bin, err := postgresBin()
	if err != nil {
		return "", err
	}
	sweep()
	dir, err := os.MkdirTemp(clusterDir(), fmt.Sprintf("%s%d-", clusterPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	var cred *syscall.Credential // PostgreSQL refuses to run as root
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return "", err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return "", err
		}
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", dir+"/data", "-U", "parley", "-A", "trust", "-E",
		"UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", dir+"/data", "-p", port, "-k", dir, "-c",
		"listen_addresses=127.0.0.1",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=400", "-c", "shared_buffers=64MB")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Pdeathsig: syscall.SIGQUIT}
	started := make(chan error)
	go func() {
		// The death signal is bound to the thread that started the child: this goroutine keeps it for the process's
		// life.
		runtime.LockOSThread()
		started <- cmd.Start()
		cmd.Wait()
	}()
	if err := <-started; err != nil {
		return "", err
	}
	base := "postgres://parley@127.0.0.1:" + port
	db, err := sql.Open("pgx", base+"/postgres")
	if err != nil {
		return "", err
	}
	defer db.Close()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if err = db.Ping(); err == nil {
			return base, nil
		}
		if time.Now().After(deadline) {
			f, _ := os.Open(log.Name())
			text, _ := io.ReadAll(f)
			return "", fmt.Errorf("PostgreSQL did not come up: %v\n%s", err, text)
		}
		runtime.Gosched()
	}
}

// clusterDir is memory where there is plenty: making and dropping a database writes hundreds of small files.
func clusterDir() string {
	const memory, enough = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) > enough {
		return memory
	}
	return os.TempDir()
}

// sweep removes the clusters of processes that are gone.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(clusterDir(), clusterPrefix+"*"))
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), clusterPrefix), "-")
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			os.RemoveAll(dir)
		}
	}
}

func postgresBin() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian keeps it off the PATH
	if len(dirs) == 0 {
		return "", fmt.Errorf("no initdb found: apt-get install postgresql")
	}
	return filepath.Dir(slices.Max(dirs)), nil
}
