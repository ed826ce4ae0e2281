package store

import (
	"context"
	"testing"
	"time"

	"parley/internal/parley"
)

// MoveLead moves a lead by an event, in the way in which many leads are moved at once.
func MoveLead(ctx context.Context, tx *Tx, id int64, e parley.LeadEvent) error {
	m := moveOf(e)
	_, err := tx.q.NewRaw("UPDATE leads SET "+m.set+" WHERE id = ? AND "+m.from, id).Exec(ctx)
	return err
}

// Away is an error from a database that does not answer.
var Away = gone

// Show is a PostgreSQL setting on a connection of db's.
func Show(t *testing.T, db *DB, name string) (value string) {
	t.Helper()
	if err := db.q.NewRaw("SHOW "+name).Scan(t.Context(), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// AwaitLock waits until some connection waits for a lock.
func AwaitLock(t *testing.T, db *DB) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var n int
		if err := db.q.NewRaw("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").
			Scan(t.Context(), &n); err != nil {
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

// CountedBytes is how many bytes the user's rows take, counted.
func CountedBytes(ctx context.Context, db *DB, userID int64) (int64, error) {
	return db.stored(ctx, userID)
}

// ForgetCountries makes accounts as they were before there were countries.
func ForgetCountries(t *testing.T, db *DB, users ...int64) {
	t.Helper()
	for _, id := range users {
		if _, err := db.write.NewRaw("UPDATE users SET country = NULL WHERE id = ?", id).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Pragma sets something of the connection that writes to SQLite.
func Pragma(t *testing.T, db *DB, set string) {
	t.Helper()
	if _, err := db.write.ExecContext(t.Context(), "PRAGMA "+set); err != nil {
		t.Fatal(err)
	}
}

// Opened is the error of a database that could not be opened, as it is told at the start.
var Opened = opened

// LookAgain has the next Writable look.
func LookAgain(db *DB) { db.writable.at = time.Time{} }

// Led says whether a process leads the queue: it begins what happens at intervals.
func Led(t *testing.T, db *DB) bool {
	t.Helper()
	var n int
	if err := db.q.NewRaw("SELECT count(*) FROM river_leader").Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// Swap puts a file in the place of a database.
var Swap = swap

// RememberTotals has db remember how long lists are from that many rows on, with that many young ones.
func RememberTotals(db *DB, rows, young int64) { db.totals.minRows, db.totals.maxYoung = rows, young }

// CountEachChange has db count changes in the audit log one by one.
func CountEachChange(db *DB) { db.tally.lot = 1 }
