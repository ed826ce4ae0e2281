package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/search"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// historyCalls is how many calls, and conversations of ten messages, the larger history has.
var historyCalls = 1_000_000

const (
	baseCalls       = 1000 // of the smaller history: the larger one has its rows again and again
	historyMessages = 10   // of a conversation
	historyStep     = 50_000
	historyDays     = 720
)

// benchHistory measures on both databases what a long history costs: each request on one of 1,000 calls and 10,000 messages, and on one
// that is 1,000 times as long. On SQLite a copy is made while it is asked, and put in the place of an empty database.
func benchHistory(b *bench) error {
	if historyCalls < 2*baseCalls {
		return fmt.Errorf("-calls: at least %d", 2*baseCalls)
	}
	defer os.Setenv("PARLEY_DATABASE", os.Getenv("PARLEY_DATABASE"))
	for _, engine := range []string{"sqlite", "postgres"} {
		os.Unsetenv("PARLEY_DATABASE")
		if engine == "postgres" {
			base, err := storetest.Cluster()
			if err != nil {
				return err
			}
			os.Setenv("PARLEY_DATABASE", base+"/postgres")
		}
		if err := history(b, engine); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	return nil
}

// asking is a request of the history group: of the API, or a page of the console.
type asking struct {
	path string
	page bool
	goal time.Duration // for the long history, p99
}

var historyAsks = []asking{
	{path: "/api/user/me"},
	{path: "/api/user/calls?per_page=15", goal: 20 * time.Millisecond},
	{path: "/api/user/calls?per_page=15&page=5000", goal: 200 * time.Millisecond},
	{path: "/api/user/calls?per_page=15&status=completed", goal: 20 * time.Millisecond},
	{path: "/api/user/calls?per_page=15&assistant_id=1", goal: 20 * time.Millisecond},
	{path: "/api/user/calls?per_page=15&search=w9000x", goal: 200 * time.Millisecond},
	{path: "/api/user/calls?per_page=15&search=w1x+w2x+w40x", goal: 200 * time.Millisecond},
	{path: "/api/user/calls/500", goal: 20 * time.Millisecond},
	{path: "/api/user/conversations?per_page=15", goal: 20 * time.Millisecond},
	{path: "/api/user/conversations?per_page=15&search=w1x+w2x+w40x", goal: 200 * time.Millisecond},
	{path: "/api/user/billing/ledger", goal: 20 * time.Millisecond},
	{path: "/api/user/analytics?range=30d", goal: 200 * time.Millisecond},
	{path: "/", page: true, goal: 20 * time.Millisecond},
	{path: "/analytics?range=90d", page: true, goal: 200 * time.Millisecond},
	{path: "/calls", page: true, goal: 20 * time.Millisecond},
	{path: "/conversations", page: true, goal: 20 * time.Millisecond},
	{path: "/conversations?show=needs_person", page: true, goal: 20 * time.Millisecond},
	{path: "/ledger", page: true, goal: 20 * time.Millisecond},
}

// history measures one database.
func history(b *bench, engine string) error {
	fmt.Printf(" %s\n", engine)
	p, err := b.serve(historySeed)
	if err != nil {
		return err
	}
	short, err := p.askAll(time.Second)
	if err != nil {
		return err
	}
	p.end()
	if err := b.seed(p.data, lengthen); err != nil {
		return err
	}
	if err := p.again(b); err != nil {
		return err
	}
	long, err := p.askAll(2 * time.Second)
	if err != nil {
		return err
	}
	fmt.Printf("  p50 and p99 in ms with %d calls and %d messages, with %d and %d, and how much longer the p50 is:\n", baseCalls,
		baseCalls*historyMessages, historyCalls, historyCalls*historyMessages)
	for i, a := range historyAsks {
		said := ""
		if a.goal > 0 {
			said = fmt.Sprintf("goal %.0f", ms(a.goal))
			if long[i].p99 > a.goal {
				said += ": MISSED"
			}
		}
		fmt.Printf("  %-58s %7.1f %7.1f   %7.1f %7.1f   %6.1f  %s\n", a.path, ms(short[i].p50), ms(short[i].p99),
			ms(long[i].p50), ms(long[i].p99), float64(long[i].p50)/float64(short[i].p50), said)
	}
	if err := p.export(); err != nil || engine == "postgres" {
		return err
	}
	return p.copies(b)
}

// historySeed stores the shorter history by the store's own ways.
func historySeed(ctx context.Context, db *store.DB, u *parley.User, data string) error {
	a := &parley.Assistant{}
	form.Defaults(a)
	a.Name, a.Type, a.Mode, a.Status, a.Timezone = "Bench", "inbound", "pipeline", "active", "UTC"
	a.VoiceID, a.LanguageID, a.SystemPrompt = 1001, 1, "Take the order."
	words := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.2, 8, 20_000)
	say := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "w%dx ", words.Uint64())
		}
		return b.String()
	}
	err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateAssistant(ctx, u.ID, a); err != nil {
			return err
		}
		for i := range baseCalls {
			phone := fmt.Sprintf("+1202%07d", i)
			c := &parley.Call{AssistantID: a.ID, Type: parley.CallInbound, Status: parley.CallInProgress, CustomerPhone: &phone,
				AnsweredAt: parley.DateTime(parley.Now().Add(-time.Minute)), MaxDuration: 600, AssistantRate: 50_000}
			for n := range 6 {
				c.Turns = append(c.Turns, parley.CallTurn{Speaker: []string{parley.SpeakerAssistant, parley.SpeakerCustomer}[n%2],
					Text: say(10), StartedAtMS: int64(n) * 3000})
			}
			c.End([]parley.EndedReason{parley.CustomerHangup, parley.AssistantHangup, parley.NoAnswer}[i%3], parley.Now())
			if err := tx.CreateCall(ctx, u.ID, c); err != nil {
				return err
			}
			if _, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.CallCharge, Amount: -10_000, Reference: fmt.Sprintf("bench:%d", c.ID),
				Description: "Call"}); err != nil {
				return err
			}
			talk := &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.WidgetConversation, Variables: map[string]string{}}
			if err := tx.CreateConversation(ctx, talk, say(8)); err != nil {
				return err
			}
			for n := range historyMessages - 1 {
				m := &parley.Message{ConversationID: talk.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer, Content: say(8)}
				if n%2 == 1 {
					m.Role, m.Author = parley.RoleAssistant, parley.AuthorAI
				}
				if err := tx.AddMessage(ctx, m, 0, 0); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = db.CountLeft(ctx)
	}
	return errors.Join(err, search.IndexTranscripts(ctx, db))
}

// lengthen makes the history as long as historyCalls, by SQL: what is stored again and again, spread over the past days.
func lengthen(ctx context.Context, _ *store.DB, _ *parley.User, data string) error {
	raw, postgres, err := openRaw(data, "&_pragma=cache_size(-400000)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	began := time.Now()
	apart := historyDays * 24 * time.Hour / time.Duration(historyCalls)
	first := time.Now().Add(-historyDays * 24 * time.Hour).UnixMicro()
	at := fmt.Sprintf("%d + CAST(%%s AS BIGINT) * %d", first, apart.Microseconds())
	call, message := fmt.Sprintf(at, "n"), fmt.Sprintf(at, fmt.Sprintf("((n - 1) / %d)", historyMessages))
	id := "'00000000-0000-4000-8000-' || (100000000000 + %s)"
	for _, t := range []struct {
		table, key, of string
		each           int
		set            map[string]string
	}{
		{"calls", "id", "1 + (n - 1) % " + fmt.Sprint(baseCalls), 1, map[string]string{"created_at": call, "answered_at": call, "ended_at": call,
			"updated_at": call, "ringing_at": call}},
		{"ledger", "id", "(SELECT min(id) FROM ledger WHERE kind = 'call') + (n - 1) % " + fmt.Sprint(baseCalls), 1,
			map[string]string{"created_at": call, "reference": "'bench:' || n"}},
		{"conversations", "seq", "1 + (n - 1) % " + fmt.Sprint(baseCalls), 1, map[string]string{"id": fmt.Sprintf(id, "n"), "created_at": call,
			"updated_at": call, "waits_since": "CASE WHEN n % 1000 = 1 THEN t.waits_since ELSE 0 END"}},
		{"messages", "id", "1 + (n - 1) % " + fmt.Sprint(baseCalls*historyMessages), historyMessages,
			map[string]string{"conversation_id": fmt.Sprintf(id, fmt.Sprintf("((n - 1) / %d + 1)", historyMessages)), "created_at": message}},
	} {
		if err := multiply(ctx, raw, t.table, t.key, t.of, t.each, t.set); err != nil {
			return fmt.Errorf("%s: %w", t.table, err)
		}
	}
	if err := alike(ctx, raw, postgres); err != nil {
		return err
	}
	fmt.Printf("  stored in %.0f s\n", time.Since(began).Seconds())
	return nil
}

// alike has what is derived from the rows made from what is derived from the first of them: the search in transcripts, and analytics.
func alike(ctx context.Context, raw *sql.DB, postgres bool) error {
	spans := historyDays * 4 // six hours each
	statements := []string{fmt.Sprintf(`WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d)
		INSERT INTO activity (user_id, span, pack, quarters) SELECT t.user_id, t.span - n, t.pack, t.quarters FROM s
		JOIN (SELECT * FROM activity ORDER BY span LIMIT 1) AS t ON TRUE`, spans)}
	for table, from := range map[string]string{"call_tokens": "calls", "conversation_tokens": "conversations"} {
		series := fmt.Sprintf("WITH RECURSIVE s(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM s WHERE n < %d)", baseCalls+1, historyCalls)
		if postgres {
			key := map[string]string{"calls": "id", "conversations": "seq"}[from]
			statements = append(statements, "DROP INDEX "+table+"_found", fmt.Sprintf(
				"%s INSERT INTO %s SELECT n, t.tokens FROM s JOIN %[2]s AS t ON t.id = 1 + (n - 1) %% %d", series, table, baseCalls),
				fmt.Sprintf("CREATE INDEX %s_found ON %[1]s USING gin (tokens)", table),
				fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', '%s'), (SELECT max(%[2]s) FROM %[1]s))", from, key))
			continue
		}
		statements = append(statements, fmt.Sprintf("CREATE VIRTUAL TABLE temp.of_%s USING fts5vocab('main', '%[1]s', 'instance')", table),
			fmt.Sprintf("CREATE TEMP TABLE base_%s AS SELECT doc, group_concat(term, ' ') AS tokens FROM of_%[1]s GROUP BY doc", table),
			fmt.Sprintf("CREATE UNIQUE INDEX temp.base_%s_doc ON base_%[1]s (doc)", table),
			fmt.Sprintf("%s INSERT INTO main.%s (rowid, tokens) SELECT n, t.tokens FROM s JOIN base_%[2]s AS t ON t.doc = 1 + (n - 1) %% %d",
				series, table, baseCalls))
	}
	if postgres {
		for _, table := range []string{"messages", "ledger"} {
			statements = append(statements, fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', 'id'), (SELECT max(id) FROM %[1]s))", table))
		}
		statements = append(statements, "VACUUM ANALYZE") // it gathers statistics by itself, as our SQLite does not
	}
	for _, statement := range statements {
		if _, err := raw.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.80s: %w", statement, err)
		}
	}
	return nil
}

// multiply stores a table's rows again: row n, for each n that is not there yet, like the row that has the key of, but for what is set.
// The rows that are there get the time that they would have had, as keys ascend with time.
func multiply(ctx context.Context, raw *sql.DB, table, key, of string, each int, set map[string]string) error {
	rows, err := raw.QueryContext(ctx, "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		return err
	}
	columns, err := rows.Columns()
	if err = errors.Join(err, rows.Close()); err != nil {
		return err
	}
	var have int
	if err := raw.QueryRowContext(ctx, "SELECT max("+key+") FROM "+table).Scan(&have); err != nil {
		return err
	}
	values := slices.Clone(columns)
	for i, c := range columns {
		if c == key {
			values[i] = "n"
		} else if v := set[c]; v != "" {
			values[i] = v
		} else {
			values[i] = "t." + c
		}
	}
	_, err = raw.ExecContext(ctx, fmt.Sprintf("UPDATE %[1]s SET created_at = %[3]s FROM (SELECT %[2]s AS n FROM %[1]s) AS s WHERE %[2]s = n",
		table, key, set["created_at"]))
	if err != nil {
		return err
	}
	for from := have + 1; from <= historyCalls*each; from += historyStep {
		_, err := raw.ExecContext(ctx, fmt.Sprintf(`WITH RECURSIVE s(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM s WHERE n < %d)
			INSERT INTO %s (%s) SELECT %s FROM s JOIN %[3]s AS t ON t.%[6]s = %[7]s`, from, min(from+historyStep-1, historyCalls*each), table,
			strings.Join(columns, ", "), strings.Join(values, ", "), key, of))
		if err != nil {
			return err
		}
	}
	return nil
}

// askAll measures each request on one connection.
func (p *program) askAll(lasts time.Duration) (list []result, err error) {
	jar, _ := cookiejar.New(nil)
	c := &visitor{http.Client{Jar: jar}, "http://" + p.addr}
	res, err := c.PostForm(c.base+"/signin", url.Values{"email": {"bench@example.com"}, "password": {password}})
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	at, _ := url.Parse(c.base)
	var cookies []string
	for _, k := range jar.Cookies(at) {
		cookies = append(cookies, k.Name+"="+k.Value)
	}
	for _, a := range historyAsks {
		raw := request("GET", a.path, p.token, "")
		if a.page {
			raw = []byte("GET " + a.path + " HTTP/1.1\r\nHost: " + at.Host + "\r\nCookie: " + strings.Join(cookies, "; ") + "\r\n\r\n")
		}
		got, err := load(p.addr, 1, lasts, http.StatusOK, func(int64) []byte { return raw })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.path, err)
		}
		list = append(list, got)
	}
	return list, nil
}

// again starts the program on what it had, and says how long it takes until it is ready.
func (p *program) again(b *bench) error {
	began := time.Now()
	if err := p.start(b); err != nil {
		return err
	}
	said := ""
	if time.Since(began) > time.Second {
		said = ": MISSED"
	}
	fmt.Printf("  ready %.2f s after the start (goal 1 s%s)\n", time.Since(began).Seconds(), said)
	return nil
}

// export reads a month of calls as CSV.
func (p *program) export() error {
	from, to := time.Now().AddDate(0, -2, 0), time.Now().AddDate(0, -1, 0)
	req, _ := http.NewRequest("GET", fmt.Sprintf("http://%s/api/user/calls.csv?date_from=%s&date_to=%s", p.addr, from.Format(time.DateOnly),
		to.Format(time.DateOnly)), nil)
	req.Header.Set("Authorization", "Bearer "+p.token)
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("calls.csv: %s %.200s %v", res.Status, raw, err)
	}
	lines := strings.Count(string(raw), "\n")
	fmt.Printf("  a month of calls as CSV: %d lines, %.1f MB, in %.1f s (%.0f lines a second)\n", lines, float64(len(raw))/1e6,
		time.Since(began).Seconds(), float64(lines)/time.Since(began).Seconds())
	return nil
}

// copies makes a copy while requests are answered, examines it, and has an empty data directory take it.
func (p *program) copies(b *bench) error {
	dir, err := os.MkdirTemp("", "parley-bench-copy-")
	if err != nil {
		return err
	}
	b.undo = append(b.undo, func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "copy.db")
	command := func(data string, args ...string) (time.Duration, error) {
		began := time.Now()
		cmd := exec.Command(b.binary, args...)
		cmd.Env = append(os.Environ(), "PARLEY_DATA="+data, "PARLEY_SECRET_KEY="+secret)
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("parley %s: %w: %s", args[0], err, out)
		}
		return time.Since(began), nil
	}
	raw := request("GET", "/api/user/calls?per_page=15", p.token, "")
	type backup struct {
		took time.Duration
		err  error
	}
	made := make(chan backup, 1)
	go func() {
		took, err := command(p.data, "backup", file)
		made <- backup{took, err}
	}()
	got, err := load(p.addr, 1, 3*time.Second, http.StatusOK, func(int64) []byte { return raw })
	if err != nil {
		return err
	}
	backed := <-made
	if backed.err != nil {
		return backed.err
	}
	size, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Printf("  backup while it runs: %.1f GB in %.0f s; meanwhile a list of calls takes p50 %.1f, p99 %.1f ms\n", float64(size.Size())/1e9,
		backed.took.Seconds(), ms(got.p50), ms(got.p99))
	examined, err := command(p.data, "restore", "--check", file)
	if err != nil {
		return err
	}
	p.end()
	p.data = filepath.Join(dir, "data")
	restored, err := command(p.data, "restore", file)
	if err != nil {
		return err
	}
	if err := p.again(b); err != nil {
		return err
	}
	after, err := load(p.addr, 1, time.Second, http.StatusOK, func(int64) []byte {
		return request("GET", fmt.Sprintf("/api/user/calls/%d", historyCalls), p.token, "")
	})
	if err != nil {
		return err
	}
	fmt.Printf("  restore: examined in %.0f s, in place in %.0f s; its last call is there (p50 %.1f ms)\n", examined.Seconds(),
		restored.Seconds(), ms(after.p50))
	return nil
}
