package store

import (
	"testing"
	"time"
)

// Away is an error of a database that does not answer.
var Away = gone

// Show is a setting of PostgreSQL's on a connection of db's.
func Show(t *testing.T, db *DB, name string) (value string) {
	t.Helper()
	if err := db.q.NewRaw("SHOW "+name).Scan(t.Context(), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// AwaitLock waits until somebody waits for a lock.
func AwaitLock(t *testing.T, db *DB) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var n int
		if err := db.q.NewRaw("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").Scan(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for a lock")
		}
	}
}
