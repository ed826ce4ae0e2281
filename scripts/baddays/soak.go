package main

import (
	"bufio"
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

const (
	// agedBy makes a row older than anything that is kept for a time: retention is a day here, deliveries of webhooks are kept for thirty.
	agedBy = 40 * 24 * time.Hour
	// settledFor is how long a row must have been left alone before it is aged: all its times are older.
	settledFor = 2 * time.Minute
	// sampleEvery is how often the program is looked at; sweepEvery how often it removes what has expired.
	sampleEvery = 10 * time.Second
	sweepEvery  = 10 * time.Minute
	// minSweeps are those that must lie in the middle, and at the end, or tables are not judged.
	minSweeps = 1
)

// aged are the tables whose rows tell of something that happened. What people have made, and money, does not get older.
var aged = []string{"conversations", "messages", "calls", "call_legs", "call_requests", "sms", "sms_inbound", "webhook_deliveries",
	"idempotency_keys", "reservations", "background_tools", "number_offers", "sandbox_outbox", "audit", "node_requests"}

// kept are the tables that grow with use, and why they may.
var kept = map[string]string{
	"ledger": "each charge is kept for ever",
	"words":  "a word is kept for as long as a knowledgebase",
}

// measure is one thing that must stay flat.
type measure struct {
	name    string
	unit    float64 // that one of the table is
	share   float64 // it may have grown by
	and     float64 // and this
	highest bool    // compared by its highest value, not by its median: it rises until the next sweep
}

var process = []measure{
	{name: "goroutines", unit: 1, share: 0.1, and: 15},
	{name: "open files", unit: 1, share: 0.1, and: 15},
	{name: "live heap, MB", unit: 1 << 20, share: 0.1, and: 3 << 20},
	{name: "resident memory, MB", unit: 1 << 20, share: 0.1, and: 12 << 20},
}

// sample is the program at one moment, by the names of the measures, and of the tables.
type sample map[string]float64

// soaked looks at the program while clients work, has its rows grow old, and compares the middle of the time with its end.
func soaked(d *doing) error {
	db, err := d.open()
	if err != nil {
		return err
	}
	defer db.Close()
	columns, err := d.columns(db)
	if err != nil {
		return err
	}
	var samples []sample
	began := time.Now()
	for next := began; time.Since(began) < d.lasts; {
		next = next.Add(sampleEvery)
		time.Sleep(time.Until(next))
		for _, table := range aged {
			if err := age(db, table, columns[table], d.road != nil); err != nil {
				return fmt.Errorf("age %s: %w", table, err)
			}
		}
		if err := ageJobs(db, d.road != nil); err != nil {
			return fmt.Errorf("age jobs: %w", err)
		}
		s, err := d.look(db, slices.Collect(maps.Keys(columns)))
		if err != nil {
			return err
		}
		samples = append(samples, s)
		if len(samples)%30 == 0 {
			fmt.Printf("  after %v: %.0f goroutines, %.0f open files, %.1f MB live, %.1f MB resident, %.0f rows\n",
				time.Since(began).Round(time.Second), s["goroutines"], s["open files"], s["live heap, MB"]/(1<<20),
				s["resident memory, MB"]/(1<<20), s["all rows"])
		}
	}
	d.compare(samples)
	return nil
}

// open is the program's database beside it.
func (w *world) open() (*sql.DB, error) {
	if w.road != nil {
		return sql.Open("pgx", w.postgres)
	}
	return sql.Open("sqlite", "file:"+filepath.Join(w.data, "parley.db")+"?_pragma=busy_timeout(20000)")
}

// columns are the times that the tables have, by the name of the table.
func (w *world) columns(db *sql.DB) (map[string][]string, error) {
	query := `SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`
	if w.road != nil {
		query = `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'`
	}
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	of := map[string][]string{}
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return nil, err
		}
		of[table] = append(of[table], column)
	}
	for table, all := range of {
		of[table] = slices.DeleteFunc(all, func(c string) bool { return !strings.HasSuffix(c, "_at") && !strings.HasSuffix(c, "_until") })
	}
	return of, rows.Err()
}

// age makes a table's rows old that nothing has touched for a while.
func age(db *sql.DB, table string, times []string, postgres bool) error {
	if len(times) == 0 {
		return fmt.Errorf("it has no times")
	}
	var set, past []string
	for _, c := range times {
		set = append(set, fmt.Sprintf("%s = CASE WHEN %[1]s > %[2]d THEN %[1]s - %[2]d ELSE %[1]s END", c, agedBy.Microseconds()))
		if c != "ends_at" { // when silence will have ended a conversation
			past = append(past, "coalesce("+c+", 0)")
		}
	}
	newest, now := "max(0, "+strings.Join(past, ", ")+")", time.Now()
	if postgres {
		newest = "greatest(0, " + strings.Join(past, ", ") + ")"
	}
	rows := fmt.Sprintf("%s BETWEEN %d AND %d", newest, now.Add(-agedBy/2).UnixMicro(), now.Add(-settledFor).UnixMicro())
	if postgres { // what the program changes at this moment is left for the next time
		rows = fmt.Sprintf("ctid IN (SELECT ctid FROM %s WHERE %s FOR UPDATE SKIP LOCKED)", table, rows)
	}
	_, err := db.Exec(fmt.Sprintf("UPDATE %s SET %s WHERE %s", table, strings.Join(set, ", "), rows))
	return err
}

// ageJobs makes jobs old: those that are done, and those that wait for their time, which has come then.
func ageJobs(db *sql.DB, postgres bool) error {
	layout := "2006-01-02 15:04:05.000" // as SQLite has it, in UTC
	if postgres {
		layout += "+00"
	}
	ago := func(d time.Duration) string { return time.Now().UTC().Add(-d).Format(layout) }
	for state, column := range map[string]string{"completed": "finalized_at", "scheduled": "scheduled_at"} {
		if _, err := db.Exec(fmt.Sprintf("UPDATE river_job SET %s = '%s' WHERE state = '%s' AND created_at < '%s' AND %[1]s > '%[5]s'",
			column, ago(agedBy), state, ago(settledFor), ago(agedBy/2))); err != nil {
			return err
		}
	}
	return nil
}

// look measures the program once.
func (d *doing) look(db *sql.DB, tables []string) (sample, error) {
	res, err := client.Get("http://" + d.addr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	s := sample{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if of := map[string]string{"go_goroutines": "goroutines", "process_open_fds": "open files", "go_memstats_next_gc_bytes": "live heap, MB",
			"process_resident_memory_bytes": "resident memory, MB"}[name]; of != "" {
			if s[of], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, fmt.Errorf("/metrics: %s: %w", name, err)
			}
		}
	}
	if len(s) != len(process) {
		return nil, fmt.Errorf("/metrics has %d of %d measures", len(s), len(process))
	}
	s["live heap, MB"] /= 2 // the next collection comes when it has doubled
	for _, table := range tables {
		var n float64
		if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
			return nil, fmt.Errorf("count %s: %w", table, err)
		}
		s["table "+table] = n
		s["all rows"] += n
	}
	err = filepath.WalkDir(d.data, func(_ string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // it went meanwhile
			return nil
		}
		if err == nil && !e.IsDir() {
			s["files of the data directory"]++
		}
		return err
	})
	return s, err
}

// compare holds the last part of the time against the middle, and says what has grown.
func (d *doing) compare(samples []sample) {
	quarter := len(samples) / 4
	if quarter == 0 {
		d.wrong = append(d.wrong, "too short: there is nothing to compare")
		return
	}
	half := (len(samples) - quarter) / 2
	middle, end := samples[quarter:quarter+half], samples[quarter+half:]
	d.note("%-34s %12s %12s %12s", "", "at first", "middle", "end")
	measures := slices.Clone(process)
	if time.Duration(half)*sampleEvery >= minSweeps*sweepEvery {
		names := slices.Sorted(maps.Keys(samples[len(samples)-1]))
		for _, name := range names {
			if strings.HasPrefix(name, "table ") || strings.HasPrefix(name, "files ") {
				measures = append(measures, measure{name: name, unit: 1, share: 0.2, and: 100, highest: true})
			}
		}
	} else {
		d.note("tables are not judged: a sweep comes every %v, and %d of them must lie in the middle and at the end", sweepEvery, minSweeps)
	}
	for _, m := range measures {
		was, is := m.of(middle), m.of(end)
		why := kept[strings.TrimPrefix(m.name, "table ")]
		grown := is > was*(1+m.share)+m.and
		if !strings.HasPrefix(m.name, "table ") || grown || is > 1000 {
			d.note("%-34s %12.1f %12.1f %12.1f  %s", m.name, samples[0][m.name]/m.unit, was/m.unit, is/m.unit, why)
		}
		if grown && why == "" {
			d.wrong = append(d.wrong, fmt.Sprintf("%s grew from %.1f to %.1f", m.name, was/m.unit, is/m.unit))
		}
	}
}

// of is the measure of some samples.
func (m measure) of(samples []sample) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, s[m.name])
	}
	slices.Sort(all)
	if m.highest {
		return all[len(all)-1]
	}
	return all[len(all)/2]
}

// judgeLedger compares what was charged with what the far ends counted.
func judgeLedger(w *world, l *load, money *account) (wrong []string, err error) {
	of := map[string]int{}
	for reference := range money.by {
		kind, _, _ := strings.Cut(reference, ":")
		of[kind]++
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	talked, untold := 0, 0
	for _, n := range w.talked {
		talked += n
	}
	for reference := range money.by {
		id, err := strconv.ParseInt(strings.TrimPrefix(reference, "call:"), 10, 64)
		if err == nil && w.told[id] == 0 {
			untold++
		}
	}
	for _, c := range []struct {
		what          string
		charged, seen int
	}{
		{"replies to messages", of["message"], len(l.replied)},
		{"text messages", of["sms"], len(w.carrier.Messages())},
		{"answered calls", of["call"], talked},
	} {
		if c.charged != c.seen {
			wrong = append(wrong, fmt.Sprintf("%d %s were charged, and the far ends counted %d", c.charged, c.what, c.seen))
		}
	}
	if untold > 0 {
		wrong = append(wrong, fmt.Sprintf("%d calls were charged, and no webhook told of them", untold))
	}
	fmt.Printf("  charged: %d replies, %d text messages, %d calls\n", of["message"], of["sms"], of["call"])
	return wrong, nil
}
