package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Every statement that runs in a write transaction finds its rows by an index: with 100,000 rows in every table (PARLEY_QUALITY=all;
// else 5,000) neither engine reads one as a whole. The statements are those that all methods of Tx really run, and those of the tests
// before this one. SQLite is not given the rows: without statistics it plans by the schema alone.
func TestWritePlans(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Options(t, engine)
			db := storetest.Open(t, o)
			raw := open(t, o)
			began := time.Now()
			rows := 5000
			if os.Getenv("PARLEY_QUALITY") == "all" {
				rows = 100_000 // takes two minutes
			}
			fill(t, raw, engine, 1, 1000)
			walk(t, db)
			t.Logf("walked after %v", time.Since(began))
			if engine == "postgres" {
				fill(t, raw, engine, 1001, rows)
				t.Logf("filled after %v", time.Since(began))
			} else if err := raw.QueryRow("SELECT 1 FROM sqlite_master WHERE name LIKE 'sqlite_stat%'").Scan(new(int)); err != sql.ErrNoRows {
				t.Errorf("SQLite has statistics: %v", err)
			}
			list := storetest.Statements(engine)
			for _, query := range list {
				if query == "DELETE FROM activity" { // CountAgain counts everything anew
					continue
				}
				for _, scan := range storetest.Scans(t, raw, engine, query) {
					t.Errorf("%s: %.700s", scan, strings.Join(strings.Fields(query), " "))
				}
			}
			if len(list) < 150 {
				t.Errorf("only %d statements were seen", len(list))
			}
			t.Logf("%d statements, in %v", len(list), time.Since(began))
		})
	}
}

// column is one of a table's.
type column struct {
	table, name, kind string
	null, unique      bool
	parent            string // the table that it names a row of
}

// fill puts rows into each table. A user has a thousandth of each other table's; what may be NULL is, unless it names a
// row of another table.
func fill(t *testing.T, db *sql.DB, engine string, from, to int) {
	t.Helper()
	series := fmt.Sprintf("WITH RECURSIVE s (i) AS (SELECT CAST(%d AS BIGINT) UNION ALL SELECT i + 1 FROM s WHERE i < %d) ", from, to)
	exec := func(query string) {
		if _, err := db.Exec(query); err != nil {
			t.Errorf("%.500s: %v", query, err)
		}
	}
	db.SetMaxOpenConns(1)
	if engine == "postgres" {
		exec("SET session_replication_role = replica") // no checks of foreign keys
	}
	for table, list := range columns(t, db, engine) {
		var names, values []string
		for _, c := range list {
			if v := c.value(engine); v != "" {
				names, values = append(names, `"`+c.name+`"`), append(values, v)
			}
		}
		insert := fmt.Sprintf("INSERT INTO %s (%s) ", table, strings.Join(names, ", "))
		if engine == "postgres" {
			insert += "OVERRIDING SYSTEM VALUE "
		}
		exec(insert + series + "SELECT " + strings.Join(values, ", ") + " FROM s")
	}
	if engine == "postgres" {
		exec("SET session_replication_role = origin")
		exec("ANALYZE")
		exec("SET enable_seqscan = off") // whatever the rows are, a plan has one only where no index serves
	}
}

func columns(t *testing.T, db *sql.DB, engine string) map[string][]column {
	t.Helper()
	query := `SELECT m.name, c.name, lower(c.type), c."notnull" = 0 AND c.pk = 0, EXISTS (SELECT 1 FROM pragma_index_list(m.name) x
		JOIN pragma_index_info(x.name) y WHERE x."unique" AND y.name = c.name) OR c.pk > 0,
		coalesce((SELECT f."table" FROM pragma_foreign_key_list(m.name) f WHERE f."from" = c.name), '')
		FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.sql NOT LIKE '%VIRTUAL%'`
	if engine == "postgres" {
		query = `SELECT c.table_name, c.column_name, c.data_type, c.is_nullable = 'YES', EXISTS (SELECT 1 FROM pg_index x JOIN pg_attribute a
			ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey) WHERE x.indrelid = c.table_name::regclass AND x.indisunique AND a.attname = c.column_name),
			coalesce((SELECT f.confrelid::regclass::text FROM pg_constraint f JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]
			WHERE f.contype = 'f' AND f.conrelid = c.table_name::regclass AND a.attname = c.column_name LIMIT 1), '')
			FROM information_schema.columns c JOIN information_schema.tables t ON t.table_name = c.table_name AND t.table_schema = c.table_schema
			WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'`
	}
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	of := map[string][]column{}
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name, &c.kind, &c.null, &c.unique, &c.parent); err != nil {
			t.Fatal(err)
		}
		if c.table == "goose_db_version" || c.table == "vendor_clock" || strings.HasPrefix(c.table, "river_") ||
			strings.HasPrefix(c.table, "sqlite_") || strings.Contains(c.table, "_tokens") {
			continue
		}
		of[c.table] = append(of[c.table], c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return of
}

// value is an expression of the number of the row, i; "" leaves the column out.
func (c *column) value(engine string) string {
	text := func(s string) string {
		if !c.unique {
			return "'" + s + "'"
		}
		return "'" + s + "' || i"
	}
	switch {
	case c.name == "user_id" && !alone[c.table]:
		return "1 + i % 1000"
	case c.name == "id" && (c.kind == "integer" || c.kind == "bigint"), c.parent != "" && (c.kind == "integer" || c.kind == "bigint"):
		return "i"
	case c.null:
		return ""
	case c.kind == "boolean":
		return "FALSE"
	case c.name == "deleted_at" || c.name == "disabled_at":
		return "0"
	case strings.HasSuffix(c.name, "_at") || strings.HasSuffix(c.name, "_due"):
		return "1750000000000000 + i * 1000000"
	case c.kind == "blob":
		return "CAST('b' || i AS BLOB)"
	case c.kind == "bytea":
		return "convert_to('b' || i, 'UTF8')"
	case c.kind == "text", strings.HasPrefix(c.kind, "character"):
		return text("x")
	case strings.HasPrefix(c.kind, "json"):
		return "'[]'"
	}
	return "i"
}

// alone are tables with one row a user.
var alone = map[string]bool{"stored_bytes": true, "call_spend": true, "public_spend": true}

// walk calls every method of a transaction, each in a transaction of its own that is rolled back. What it returns is of
// no interest: its statements are. What can be read outside of transactions, too, is seen where a method does so.
func walk(t *testing.T, db *store.DB) {
	t.Helper()
	undone := parley.Errorf(parley.Conflict, "undone")
	of, reads := reflect.TypeFor[*store.Tx](), reflect.TypeFor[store.Query]()
	for i := range of.NumMethod() {
		m := of.Method(i)
		if _, read := reads.MethodByName(m.Name); read || slices.Contains([]string{"AfterCommit", "Enqueue", "Sign"}, m.Name) {
			continue
		}
		for _, variant := range []bool{false, true} {
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				args := []reflect.Value{reflect.ValueOf(tx)}
				for j := 1; j < m.Type.NumIn(); j++ {
					args = append(args, argument(ctx, m.Type.In(j), variant))
				}
				defer func() {
					err = undone
					if p := recover(); p != nil && testing.Verbose() {
						t.Logf("%s: %v", m.Name, p) // of an argument that makes no sense; what it ran before counts
					}
				}()
				if m.Type.IsVariadic() {
					m.Func.CallSlice(args)
				} else {
					m.Func.Call(args)
				}
				return undone
			})
			if err == nil {
				t.Errorf("%s was not undone", m.Name)
			}
		}
	}
}

// argument is a value of a type: of the first row where it is an id.
func argument(ctx context.Context, of reflect.Type, filled bool) reflect.Value {
	v := reflect.New(of).Elem()
	switch {
	case of == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(ctx)
	case of == reflect.TypeFor[store.Page]():
		return reflect.ValueOf(store.Page{Number: 1, Size: 10})
	case of == reflect.TypeFor[parley.Time]():
		v.SetInt(1750000001000000)
		return v
	}
	switch of.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.String:
		v.SetString("x2")
	case reflect.Bool:
		v.SetBool(filled)
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		fillStruct(ctx, v.Elem(), filled)
	case reflect.Struct:
		fillStruct(ctx, v, filled)
	case reflect.Slice:
		v = reflect.MakeSlice(of, 1, 1)
		v.Index(0).Set(argument(ctx, of.Elem(), filled))
	case reflect.Map:
		v = reflect.MakeMap(of)
	case reflect.Func:
		v.Set(reflect.MakeFunc(of, func([]reflect.Value) (out []reflect.Value) {
			for i := range of.NumOut() {
				out = append(out, reflect.Zero(of.Out(i)))
			}
			return out
		}))
	}
	return v
}

// fillStruct gives ids of the first row to a thing's fields; all that name one if filled, else those that must.
func fillStruct(ctx context.Context, v reflect.Value, filled bool) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if !f.CanSet() {
			continue
		}
		switch {
		case f.Kind() == reflect.Int64 && f.Type() == reflect.TypeFor[int64]() && strings.HasSuffix(name, "ID"):
			f.SetInt(2)
		case filled && f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Int64 && strings.HasSuffix(name, "ID"):
			f.Set(argument(ctx, f.Type(), filled))
			f.Elem().SetInt(2)
		case f.Kind() == reflect.String && f.Type() == reflect.TypeFor[string]():
			f.SetString("x2")
		case filled && f.Type() == reflect.TypeFor[[]int64]():
			f.Set(reflect.ValueOf([]int64{2, 3}))
		}
	}
}
