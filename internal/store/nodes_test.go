package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func all(string) bool { return true }

// Nodes that start together wait for an index that one of them builds, and none of them waits for ever.
func TestNodesBuildAnIndexTogether(t *testing.T) {
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	store.WithMigrations(t, all, map[string]string{
		"postgres/9000_index.sql": "-- +goose NO TRANSACTION\nDROP INDEX CONCURRENTLY IF EXISTS probe;\n" +
			"CREATE INDEX CONCURRENTLY probe ON users (name);"})
	o := storetest.Empty(t, "postgres")
	var wg sync.WaitGroup
	for range 3 {
		db, err := store.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		wg.Go(func() {
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	within(t, 60*time.Second, "migrating", func() error { wg.Wait(); return nil })
}

// A migration that waits for a table in use blocks others for no more than a moment, and goes on when the table is
// free.
func TestMigrationStepsBack(t *testing.T) {
	if len(storetest.Engines()) == 1 {
		t.Skip("PostgreSQL is left out")
	}
	o := storetest.Empty(t, "postgres")
	db := storetest.Open(t, o)
	u := storetest.User(t, db, parley.USD)
	store.WithMigrations(t, all, map[string]string{
		"postgres/9000_column.sql": "ALTER TABLE users ADD COLUMN probe BIGINT;"})
	reading, read, migrated := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { // a long report on a node that does not know of the migration
		db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			tx.User(ctx, u.ID)
			close(reading)
			<-read
			return nil
		})
	})
	<-reading
	node, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	go func() {
		_, err := node.Migrate(t.Context())
		migrated <- err
	}()
	store.AwaitLock(t, db)
	if err := within(t, 20*time.Second, "another's read",
		func() error { _, err := db.User(t.Context(), u.ID); return err }); err != nil {
		t.Error(err)
	}
	close(read)
	if err := within(t, 30*time.Second, "the migration", func() error { return <-migrated }); err != nil {
		t.Error(err)
	}
}

// An older program refuses a database that a newer one has updated, before it changes anything, and names the version to
// install.
func TestOlderProgramRefused(t *testing.T) {
	for _, engine := range storetest.Engines() {
		for _, c := range []struct{ version, want string }{
			{"v2.3.0", "Install Parley v2.3.0, or a newer version"},
			{"", "Install the version that last ran on it"},
		} {
			t.Run(engine+c.version, func(t *testing.T) {
				o := storetest.Empty(t, engine)
				o.Version = c.version
				store.WithMigrations(t, all, map[string]string{engine + "/9000_newer.sql": "ALTER TABLE users ADD COLUMN probe BIGINT;"})
				storetest.Open(t, o)
				store.WithMigrations(t, all, nil)
				o.Version = "v1.0.0"
				db, err := store.Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				for range 2 { // also the second time: the first start has changed nothing
					if _, err = db.Migrate(t.Context()); !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), c.want) {
						t.Errorf("migrating: %v", err)
					}
				}
				if _, err := db.Migrated(t.Context()); !errors.Is(err, store.ErrNewer) {
					t.Errorf("asked for its state: %v", err)
				}
			})
		}
	}
}

// A database from before the baseline is refused before anything is changed, and the error names the program to start first.
func TestOlderDatabaseRefused(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Empty(t, engine)
			store.WithMigrations(t, func(string) bool { return false }, map[string]string{engine + "/0251_old.sql": `CREATE TABLE settings (name TEXT PRIMARY KEY,
				value TEXT NOT NULL);CREATE TABLE users (timezone TEXT, country TEXT);`})
			storetest.Open(t, o)
			store.WithMigrations(t, all, nil)
			db, err := store.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for range 2 {
				if _, err := db.Migrate(t.Context()); !errors.Is(err, store.ErrOlder) || !strings.Contains(err.Error(), "its schema is 251") ||
					!strings.Contains(err.Error(), "start Parley of commit 16c848c") {
					t.Errorf("migrating: %v", err)
				}
			}
			if _, err := db.Migrated(t.Context()); !errors.Is(err, store.ErrOlder) {
				t.Errorf("asked for its state: %v", err)
			}
		})
	}
}
