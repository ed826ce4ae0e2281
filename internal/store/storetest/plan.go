package storetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"parley/internal/store"
)

// On SQLite a write transaction holds up everybody's writes, so a statement in one that reads a whole table is a fault.
// Each test of a package that sets Explains is also one of its statements: those that ran in write transactions are
// collected, and explained once in a process. SQLite keeps no statistics here, so it plans alike for an empty table and a
// full one.

// scanned are plans that read a table, by what SQLite says of them, and why they may.
var scanned = map[string]string{
	`\bvoicemail_recordings\b`: "it has a row for each assistant with a recorded message, " +
		"and is looked through once an hour",
	`\b(whatsapp_senders|whatsapp_templates)\b`: "it has what the operator's WhatsApp account has, " +
		"and is compared with that as a whole",
	`\b(models|settings|account_voices|vendor_clock|number_offers|goose_db_version)\b`: "it has a row for what the operator configured, " +
		"or is emptied by the hour",
}

// Explains has each test with a SQLite database fail for statements in its write transactions that read a whole table.
var Explains bool

// statements are those that ran in write transactions of this process's tests, one of each shape.
var statements = struct {
	mu   sync.Mutex
	seen map[string]bool     // by engine and shape
	all  map[string][]string // by engine
	new  []string            // of SQLite: that no test has explained
}{seen: map[string]bool{}, all: map[string][]string{}}

// Statements are the statements that ran in write transactions of this process's tests on an engine, one of each shape.
func Statements(engine string) []string {
	statements.mu.Lock()
	defer statements.mu.Unlock()
	return slices.Clone(statements.all[engine])
}

var (
	literals = regexp.MustCompile(`X?'(?:[^']|'')*'(?:::\w+)?|\b\d+(?:\.\d+)?\b`)
	lists    = regexp.MustCompile(`\(\?(?:, \?)+\)`)
	rows     = regexp.MustCompile(`\(\?\)(?:, \(\?\))+`)
	planned  = regexp.MustCompile(`^(SELECT|UPDATE|DELETE|WITH|INSERT)\b`)
)

// shape is a statement without its values.
func shape(query string) string {
	return rows.ReplaceAllString(lists.ReplaceAllString(literals.ReplaceAllString(query, "?"), "(?)"), "(?)")
}

// collector watches the statements of write transactions.
type collector struct {
	engine string
	also   bun.QueryHook
}

// BeforeQuery implements bun.QueryHook.
func (c collector) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	if c.also != nil {
		ctx = c.also.BeforeQuery(ctx, e)
	}
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (c collector) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if c.also != nil {
		c.also.AfterQuery(ctx, e)
	}
	if !store.Writing(ctx) || !planned.MatchString(e.Query) || len(e.Query) > 8<<10 || e.Err != nil {
		return
	}
	if strings.HasPrefix(e.Query, "INSERT") && !strings.Contains(e.Query, "SELECT") {
		return
	}
	s := c.engine + shape(e.Query)
	statements.mu.Lock()
	defer statements.mu.Unlock()
	if !statements.seen[s] && !byTest() {
		statements.seen[s] = true
		statements.all[c.engine] = append(statements.all[c.engine], e.Query)
		if c.engine == "sqlite" {
			statements.new = append(statements.new, e.Query)
		}
	}
}

// byTest says whether the statement that has just run stands in a test, not in the program.
func byTest() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "parley/") && !strings.Contains(f.Function, "/storetest.") {
			return strings.HasSuffix(f.File, "_test.go")
		}
		if !more {
			return false
		}
	}
}

// explain asks SQLite how it performs what no test of this process has explained yet.
func explain(t testing.TB, path string) {
	t.Helper()
	statements.mu.Lock()
	list := statements.new
	statements.new = nil
	statements.mu.Unlock()
	if len(list) == 0 {
		return
	}
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range list {
		for _, scan := range Scans(t, db, "sqlite", query) {
			t.Errorf("a statement in a write transaction reads a whole table: %s, in: %.600s", scan, strings.Join(strings.Fields(query), " "))
		}
	}
}

// Scans are the tables that a statement reads as a whole, as the engine says it.
func Scans(t testing.TB, db *sql.DB, engine, query string) []string {
	t.Helper()
	if first.MatchString(query) {
		return nil
	}
	found, err := sqliteScans(db, query)
	if engine == "postgres" {
		found, err = postgresScans(db, query)
	}
	if err != nil {
		t.Errorf("explain %.300s: %v", query, err)
	}
	return slices.DeleteFunc(found, func(scan string) bool {
		for allowed := range scanned {
			if regexp.MustCompile(allowed).MatchString(scan) {
				return true
			}
		}
		return false
	})
}

var (
	first = regexp.MustCompile(`^SELECT [^?]* FROM "\w+" AS "\w+" ORDER BY "id" LIMIT 1$`) // the row with the lowest id
	scan  = regexp.MustCompile(`^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?`)
	named = regexp.MustCompile(`(?i)(?:FROM|JOIN|UPDATE|,)\s+"?(\w+)"?\s+(?:AS\s+)?"?(\w+)"?`)
)

// sqliteScans reads the plan of SQLite. An index of few rows may be read as a whole, which is what it is for.
func sqliteScans(db *sql.DB, query string) (found []string, err error) {
	plan, err := db.Query("EXPLAIN QUERY PLAN " + query)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	var steps []string
	for plan.Next() {
		var id, parent, unused int
		var detail string
		if err := plan.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		steps = append(steps, detail)
	}
	if err := plan.Err(); err != nil {
		return nil, err
	}
	for _, detail := range steps {
		m := scan.FindStringSubmatch(detail)
		if m == nil || strings.Contains(detail, "VIRTUAL TABLE INDEX 0:=") { // full text, by a row's number
			continue
		}
		var text sql.NullString
		if m[2] != "" {
			if err := db.QueryRow("SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?", m[2]).Scan(&text); err == nil &&
				strings.Contains(text.String, "WHERE") {
				continue
			}
		}
		table, is := m[1], 0
		for _, n := range named.FindAllStringSubmatch(query, -1) {
			if n[2] == table {
				table = n[1]
			}
		}
		if db.QueryRow("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", table).Scan(&is); is > 0 {
			found = append(found, strings.Replace(detail, m[1], table, 1))
		}
	}
	return found, nil
}

// node is a step of PostgreSQL's plan.
type node struct {
	Type  string  `json:"Node Type"`
	Table string  `json:"Relation Name"`
	Index string  `json:"Index Name"`
	Cond  string  `json:"Index Cond"`
	Rows  float64 `json:"Plan Rows"`
	Plans []node
}

func postgresScans(db *sql.DB, query string) (found []string, err error) {
	var raw string
	if err := db.QueryRow("EXPLAIN (FORMAT JSON) " + query).Scan(&raw); err != nil {
		return nil, err
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(raw), &plans); err != nil {
		return nil, err
	}
	var look func(n node)
	look = func(n node) {
		if n.Type == "Seq Scan" {
			found = append(found, fmt.Sprintf("Seq Scan on %s", n.Table))
		}
		for _, below := range n.Plans {
			look(below)
		}
	}
	for _, p := range plans {
		look(p.Plan)
	}
	return found, nil
}
