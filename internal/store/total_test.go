package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// counts notes the statements that count.
type counts struct {
	mu   sync.Mutex
	seen []string
}

func (c *counts) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (c *counts) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	if strings.Contains(e.Query, "count(*)") || strings.Contains(e.Query, "list_changes") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen = append(c.seen, e.Query)
	}
}

func (c *counts) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// Lists of calls and of conversations by which rows of an account are in them, and what changes these rows.
var (
	long     = parley.Now().Add(-2 * time.Hour)
	yes, no  = true, false
	callList = map[string]store.CallFilter{
		"TRUE":                            {},
		"status = 'completed'":            {Status: parley.CallCompleted},
		"type = 'web'":                    {Type: parley.CallWeb},
		"customer_phone = '+12025550199'": {Phone: "+12025550199"},
		"assistant_id = 1":                {AssistantID: 1},
		"campaign_id = 5":                 {CampaignID: 5},
		"number_id = 7":                   {NumberID: 7},
		"ended_reason = 'silence'":        {Reason: "silence"},
		"ended_reason = 'failed'":         {HungUp: "failed"},
		"answerer = 'human'":              {Answerer: "human"},
		"sentiment = 'good'":              {Sentiment: "good"},
		"outcome = 'sold'":                {Outcome: "sold"},
		"slowest_ms > 900":                {SlowerThan: 900},
		"test":                            {Test: &yes},
		"NOT test":                        {Test: &no},

		fmt.Sprintf("created_at >= %d", long): {From: long},
		fmt.Sprintf("created_at < %d", long):  {To: long},
	}
	callChange = []string{"status = 'completed'", "status = 'failed'", "type = 'web'", "type = 'inbound'",
		"customer_phone = '+12025550199'", "customer_phone = NULL", "assistant_id = 1", "assistant_id = 2", "campaign_id = 5",
		"campaign_id = NULL", "number_id = 7", "number_id = 8", "ended_reason = 'silence'", "ended_reason = 'failed'", "answerer = 'human'",
		"answerer = ''", "sentiment = 'good'", "sentiment = ''", "outcome = 'sold'", "outcome = ''", "slowest_ms = 1000", "slowest_ms = 0",
		"test = TRUE", "test = FALSE", "created_at = created_at - 7200000000"}

	chatList = map[string]store.ConversationFilter{
		"TRUE":                            {},
		"type = 'widget'":                 {Type: parley.WidgetConversation},
		"assistant_id = 1":                {AssistantID: 1},
		"customer_phone = '+12025550199'": {CustomerPhone: "+12025550199"},
		"external_identifier = '7'":       {Identifier: "7"},
		"waits_since > 0":                 {Waiting: true},

		fmt.Sprintf("created_at >= %d", long): {From: long},
		fmt.Sprintf("created_at < %d", long):  {To: long},
	}
	chatChange = []string{"type = 'widget'", "type = 'test'", "assistant_id = 1", "assistant_id = 2", "customer_phone = '+12025550199'",
		"customer_phone = NULL", "external_identifier = CAST(seq AS TEXT)", "external_identifier = NULL", "waits_since = 5", "waits_since = 0",
		"created_at = created_at - 7200000000"}
)

// young fails for a query that doesn't find young rows by the key alone.
func young(t *testing.T, raw *sql.DB, engine, query string) {
	t.Helper()
	if engine != "sqlite" {
		return // which has statistics
	}
	rows, err := raw.Query("EXPLAIN QUERY PLAN " + query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var id, parent, none int
		var step string
		if err := rows.Scan(&id, &parent, &none, &step); err != nil {
			t.Fatal(err)
		}
		found = found || strings.HasSuffix(step, "id>?)") || strings.HasSuffix(step, "seq>?)")
	}
	if !found {
		t.Errorf("what is young is not found by its key: %s", query)
	}
}

// Lists say how many rows they have, whatever is remembered of them.
func TestRememberedTotals(t *testing.T) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[store.CallFilter]()) {
		tried := field.Name == "Words"
		for _, f := range callList {
			tried = tried || !reflect.ValueOf(f).FieldByIndex(field.Index).IsZero()
		}
		if !tried {
			t.Errorf("no list of calls is narrowed by %s: try it, and have its column watched by a trigger", field.Name)
		}
	}
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			watch := &counts{}
			o := storetest.Options(t, engine)
			o.Watch = watch
			db, raw := storetest.Open(t, o), open(t, o)
			store.RememberTotals(db, 10, 6)
			users := [2]int64{storetest.User(t, db, 0).ID, storetest.User(t, db, 0).ID}
			spoken(t, db, users[0])
			spoken(t, db, users[0])
			exec := func(format string, args ...any) {
				t.Helper()
				if _, err := raw.Exec(fmt.Sprintf(format, args...)); err != nil {
					t.Fatalf(format+": %v", append(args, err)...)
				}
			}
			add := func() {
				write(t, db, func(ctx context.Context, tx *store.Tx) error {
					for _, u := range users {
						err := tx.CreateCall(ctx, u, &parley.Call{AssistantID: 1, Type: parley.CallInbound, Status: parley.CallFailed, EndedAt: 5})
						if err != nil {
							return err
						}
						c := &parley.Conversation{UserID: u, AssistantID: 1, Type: parley.TestConversation, EndsAt: 5}
						if err := tx.CreateConversation(ctx, c, ""); err != nil {
							return err
						}
					}
					_, err := tx.Post(ctx, users[0], &parley.LedgerEntry{Kind: parley.Credit, Amount: 1,
						Reference: fmt.Sprint(time.Now().UnixNano())})
					return err
				})
			}
			check := func(what string) {
				t.Helper()
				is := func(table, where string, total int, err error) {
					t.Helper()
					var want int
					count := fmt.Sprintf("SELECT count(*) FROM %s WHERE user_id = %d AND %s", table, users[0], where)
					if err := raw.QueryRow(count).Scan(&want); err != nil {
						t.Fatal(err)
					}
					if err != nil || total != want {
						t.Fatalf("after %s: %d %s with %s, want %d: %v", what, total, table, where, want, err)
					}
				}
				p := store.Page{Number: 1, Size: 3}
				for where, filter := range callList {
					_, total, err := db.Calls(t.Context(), users[0], filter, p)
					is("calls", where, total, err)
				}
				for where, filter := range chatList {
					_, total, err := db.Conversations(t.Context(), users[0], filter, p)
					is("conversations", where, total, err)
				}
				_, total, err := db.Ledger(t.Context(), users[0], 0, 0, p)
				is("ledger", "TRUE", total, err)
			}
			for range 24 {
				add()
			}
			for _, table := range []string{"calls", "conversations", "ledger"} {
				exec("UPDATE %s SET created_at = created_at - 7200000000", table)
			}
			for table, changes := range map[string][]string{"calls": callChange, "conversations": chatChange} {
				for i, change := range changes[:len(changes)-1] {
					if key := map[string]string{"calls": "id", "conversations": "seq"}[table]; i%2 == 0 { // half of each account's
						exec("UPDATE %s SET %s WHERE %s %% 4 < 2", table, change, key)
					}
				}
			}
			check("the first rows")

			check("nothing, when old rows are remembered")

			// one statement, which counts what is young
			watch.taken()
			check("nothing, and everything is remembered")
			for _, q := range watch.taken() {
				if strings.Contains(q, "list_changes") {
					young(t, raw, engine, q)
				}
			}
			exec("UPDATE calls SET status = status")
			if _, total, err := db.Calls(t.Context(), users[0], store.CallFilter{}, store.Page{Number: 1, Size: 3}); err != nil || total != 24 {
				t.Errorf("%d calls: %v", total, err)
			}
			if seen := watch.taken(); len(seen) != 1 || !strings.HasSuffix(seen[0], `("id" > 47))`) {
				t.Errorf("a known list was counted by %q", seen)
			}

			undone := errors.New("undone")
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				if _, _, err := tx.EraseCalls(ctx, users[0], "+12025550199", 1); err != nil {
					return err
				}
				if _, total, err := tx.Calls(ctx, users[0], store.CallFilter{}, store.Page{Number: 1, Size: 3}); err != nil || total != 23 {
					return fmt.Errorf("%d calls where one was removed: %w", total, err)
				}
				return undone
			})
			if !errors.Is(err, undone) {
				t.Fatal(err)
			}
			exec("UPDATE calls SET outcome = '' WHERE id = 1")
			check("what was undone, and another change")

			// another process counts while a deletion is not committed
			other := storetest.Open(t, o)
			store.RememberTotals(other, 10, 6)
			calls := func() (n int) {
				t.Helper()
				_, n, err := other.Calls(t.Context(), users[0], store.CallFilter{}, store.Page{Number: 1, Size: 3})
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			deleted, counted, committed := make(chan struct{}), make(chan struct{}), make(chan error)
			go func() {
				committed <- db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					_, _, err := tx.EraseCalls(ctx, users[0], "+12025550199", 1)
					close(deleted)
					<-counted
					return err
				})
			}()
			<-deleted
			for range 3 {
				if n := calls(); n != 24 {
					t.Errorf("%d calls, of 24 of which one is being deleted", n)
				}
			}
			close(counted)
			if err := <-committed; err != nil {
				t.Fatal(err)
			}
			if n := calls(); n != 23 {
				t.Errorf("%d calls, where one of 24 was deleted", n)
			}
			check("a deletion that took its time")

			for table, changes := range map[string][]string{"calls": callChange, "conversations": chatChange} {
				key := map[string]string{"calls": "id", "conversations": "seq"}[table]
				for i, change := range changes {
					what := fmt.Sprintf("UPDATE %s SET %s WHERE %s IN (%d, %d)", table, change, key, 1+2*(i%11), 3+2*(i%11))
					exec("%s", what)
					check(what)
				}
				what := fmt.Sprintf("DELETE FROM %s WHERE %s = 3", table, key)
				exec("%s", what)
				check(what)
				for range 12 {
					add()
					check("new rows")
				}
			}

			if engine == "sqlite" {
				exec("PRAGMA foreign_keys = ON")
			}
			exec("DELETE FROM users WHERE id = %d", users[0]) // its calls and conversations with it
			var left int
			err = raw.QueryRow(fmt.Sprintf("SELECT count(*) FROM list_changes WHERE user_id = %d", users[0])).Scan(&left)
			if err != nil || left != 0 {
				t.Errorf("%d changes of an account that is gone: %v", left, err)
			}
		})
	}
}
