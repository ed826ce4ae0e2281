package store_test

import (
	"database/sql"
	"testing"

	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Every test of this package fails for a statement in a write transaction that reads a whole table of SQLite.
func init() { storetest.Explains = true }

func open(t *testing.T, o store.Options) *sql.DB {
	t.Helper()
	driver, name := "sqlite", o.Path+"?_pragma=busy_timeout(10000)&_pragma=synchronous(OFF)&_pragma=journal_mode(WAL)"
	if o.Postgres != "" {
		driver, name = "pgx", o.Postgres
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Each foreign key has an index: else each row that is deleted reads the whole table that names it. Users and models are
// never deleted.
func TestForeignKeysIndexed(t *testing.T) {
	db := open(t, storetest.Options(t, "sqlite"))
	rows, err := db.Query(`SELECT m.name, f."from" FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' AND f.seq = 0
		AND f."table" NOT IN ('users', 'models') AND NOT EXISTS
		(SELECT 1 FROM pragma_index_list(m.name) x JOIN pragma_index_info(x.name) y WHERE y.seqno = 0 AND y.name = f."from"
			AND (NOT x.partial OR (SELECT sql FROM sqlite_master WHERE name = x.name) LIKE '%WHERE ' || f."from" || ' IS NOT NULL%'))
		AND NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) p WHERE p.pk = 1 AND p.name = f."from")`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s.%s has no index that begins with it", table, column)
	}
}
