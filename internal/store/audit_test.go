package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// by writes in somebody's name.
func by(t *testing.T, db *store.DB, a store.Actor, fn func(context.Context, *store.Tx) error) error {
	t.Helper()
	return db.Write(store.By(t.Context(), a), fn)
}

func entries(t *testing.T, db *store.DB, userID int64, f store.AuditFilter) []parley.AuditEntry {
	t.Helper()
	list, total, err := db.Audit(t.Context(), userID, f, store.Page{Number: 1, Size: 100})
	if err != nil || total != len(list) {
		t.Fatalf("%d of %d entries: %v", len(list), total, err)
	}
	return list
}

// An entry stands exactly if its change does, and says what changed without its secrets.
func TestAuditOfChanges(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		ana := store.Actor{UserID: u.ID, Who: "owner", Name: "Ana", Address: "192.0.2.7"}
		tool := &parley.Tool{Name: "look_up", Description: "Looks up.", Endpoint: "https://example.com/?key=s3cret", Method: "GET",
			Timeout: 5, Headers: []parley.ToolHeader{{Name: "X-Key", Value: "s3cret"}}}
		create := func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, u.ID, tool) }
		if err := by(t, db, ana, create); err != nil {
			t.Fatal(err)
		}
		save := func(name string) func(ctx context.Context, tx *store.Tx) error {
			return func(ctx context.Context, tx *store.Tx) error {
				now, err := tx.ToolForUpdate(ctx, u.ID, tool.ID)
				if err != nil {
					return err
				}
				now.Name, now.Timeout, now.Endpoint = name, now.Timeout+2, now.Endpoint+"2"
				now.Headers = []parley.ToolHeader{{Name: "X-Key", Value: "s3cret2"}}
				return tx.SaveTool(ctx, u.ID, now)
			}
		}
		if err := by(t, db, ana, save("find")); err != nil {
			t.Fatal(err)
		}
		list := entries(t, db, u.ID, store.AuditFilter{})
		if len(list) != 2 || list[1].Action != parley.AuditCreated || list[1].Kind != parley.AuditTool || list[1].Name != "look_up" {
			t.Fatalf("%+v", list)
		}
		e := list[0]
		if e.Who != "owner" || e.WhoName != "Ana" || e.Address != "192.0.2.7" || e.Action != parley.AuditChanged || e.Name != "find" ||
			time.Since(e.CreatedAt.Time()).Abs() > time.Minute {
			t.Errorf("%+v", e)
		}
		changes, _ := json.Marshal(e.Changes)
		want := `[{"field":"endpoint"},{"field":"headers"},{"field":"name","from":"look_up","to":"find"},{"field":"timeout","from":5,"to":7}]`
		if string(changes) != want {
			t.Errorf("changes %s, want %s", changes, want)
		}
		if all, _ := json.Marshal(list); strings.Contains(string(all), "s3cret") {
			t.Errorf("a secret is in the log: %s", all)
		}

		failed := errors.New("failed")
		err := by(t, db, ana, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(save("lost")(ctx, tx), failed)
		})
		if !errors.Is(err, failed) || len(entries(t, db, u.ID, store.AuditFilter{})) != 2 {
			t.Errorf("what was rolled back has an entry (%v)", err)
		}
		write(t, db, save("server")) // nobody's
		missing := func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, u.ID, 999) }
		if err := by(t, db, ana, missing); !store.IsNotFound(err) || len(entries(t, db, u.ID, store.AuditFilter{})) != 2 {
			t.Errorf("an entry of nobody's change, or of none (%v)", err)
		}
		if err := by(t, db, ana, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, u.ID, tool.ID) }); err != nil {
			t.Fatal(err)
		}
		if e := entries(t, db, u.ID, store.AuditFilter{})[0]; e.Action != parley.AuditDeleted || e.Name != "server" || len(e.Changes) != 0 {
			t.Errorf("%+v", e)
		}
	})
}

func TestAuditFilters(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		n := 0
		add := func(userID int64, who, name string, kind parley.AuditKind) {
			t.Helper()
			n++
			err := by(t, db, store.Actor{UserID: userID, Who: who, Name: name}, func(ctx context.Context, tx *store.Tx) error {
				if kind == parley.AuditKnowledge {
					return tx.CreateKnowledgebase(ctx, userID, &parley.Knowledgebase{Name: "Shop"})
				}
				return tx.CreateTool(ctx, userID, &parley.Tool{Name: "tool_" + strings.Repeat("x", n)})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		add(u.ID, "owner", "Ana", parley.AuditTool)
		add(u.ID, "key:7", "Ana, API key laptop", parley.AuditTool)
		between := entries(t, db, u.ID, store.AuditFilter{})[0].CreatedAt.Add(time.Microsecond)
		for parley.Now() < between { //nolint:revive // the clock goes on
		}
		add(u.ID, "owner", "Ana Lima", parley.AuditKnowledge)
		add(other.ID, "owner", "Bo", parley.AuditTool)
		for _, c := range []struct {
			f    store.AuditFilter
			want int
		}{
			{store.AuditFilter{}, 3}, {store.AuditFilter{Who: "owner"}, 2}, {store.AuditFilter{Kind: parley.AuditTool}, 2},
			{store.AuditFilter{From: between}, 1}, {store.AuditFilter{To: between}, 2},
			{store.AuditFilter{Who: "key:7", Kind: parley.AuditKnowledge}, 0},
		} {
			if list := entries(t, db, u.ID, c.f); len(list) != c.want {
				t.Errorf("%+v: %d, want %d", c.f, len(list), c.want)
			}
		}
		rows, total, err := db.Audit(t.Context(), u.ID, store.AuditFilter{}, store.Page{Number: 2, Size: 2})
		if err != nil || total != 3 || len(rows) != 1 || rows[0].WhoName != "Ana" {
			t.Errorf("the second page: %d, %+v %v", total, rows, err)
		}
		names, err := db.AuditNames(t.Context(), u.ID)
		if err != nil || len(names) != 2 || names[0].WhoName != "Ana Lima" || names[1].Who != "key:7" {
			t.Errorf("names %+v %v", names, err)
		}

		err = db.InSteps(t.Context(), func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ForgetAudit(ctx, between) })
		if err != nil {
			t.Fatal(err)
		}
		if list := entries(t, db, u.ID, store.AuditFilter{}); len(list) != 1 || list[0].Kind != parley.AuditKnowledge {
			t.Errorf("left are %+v", list)
		}
	})
}

// Each table of the schema is watched by the tests, or said not to be.
func TestAuditedTables(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	storetest.Open(t, o)
	var all string
	storetest.Query(t, o, &all, `SELECT group_concat(name, ' ') FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
		AND name NOT LIKE 'river_%' AND name NOT LIKE 'goose_%' AND name NOT LIKE '%_tokens%'`)
	tables := strings.Fields(all)
	known := slices.Clone(storetest.Audited)
	for _, names := range storetest.Unaudited {
		known = append(known, strings.Fields(names)...)
	}
	slices.Sort(known)
	for _, name := range tables {
		if _, ok := slices.BinarySearch(known, name); !ok {
			t.Errorf("say in storetest/audit.go whether somebody's changes of the table %s are in the audit log", name)
		}
	}
	for _, name := range known {
		if !slices.Contains(tables, name) {
			t.Errorf("there is no table %s", name)
		}
	}
}

// Changes are counted a hundred at once, and what is refused does not make room for others.
func TestAuditLots(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	db := storetest.Open(t, o)
	u := storetest.User(t, db, 0)
	ana := store.Actor{UserID: u.ID, Who: "owner", Name: "Ana"}
	n := 0
	create := func(ctx context.Context, tx *store.Tx) error {
		n++
		return tx.CreateTool(ctx, u.ID, &parley.Tool{Name: fmt.Sprint("t", n), Endpoint: "https://example.com/", Method: "GET", Timeout: 5})
	}
	counted := func() (sum int) {
		storetest.Query(t, o, &sum, "SELECT coalesce(sum(n), 0) FROM day_counts WHERE name = 'changes'")
		return sum
	}
	for range 99 {
		if err := by(t, db, ana, create); err != nil {
			t.Fatal(err)
		}
	}
	if got := counted(); got != 0 {
		t.Errorf("%d were counted one by one", got)
	}
	if err := by(t, db, ana, create); err != nil || counted() != 100 {
		t.Fatalf("%d were counted, %v", counted(), err)
	}
	storetest.Exec(t, o, fmt.Sprintf("UPDATE day_counts SET n = %d, day = day + 1 WHERE name = 'changes'", parley.LimitNamed("changes").Most))
	for range 99 {
		if err := by(t, db, ana, create); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := by(t, db, ana, create); err == nil {
			t.Error("a change beyond the limit was not refused")
		}
	}
}

// An account's changes are counted by the day. Beyond the limit things are deleted, and people shut out, until twice as many; the
// operator and the server have none.
func TestAuditLimit(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Options(t, engine)
			db := storetest.Open(t, o)
			store.CountEachChange(db)
			u := storetest.User(t, db, 0)
			ana := store.Actor{UserID: u.ID, Who: "owner", Name: "Ana"}
			var made []int64
			create := func(ctx context.Context, tx *store.Tx) error {
				tool := &parley.Tool{Name: fmt.Sprint("t", len(made)), Endpoint: "https://example.com/", Method: "GET", Timeout: 5}
				err := tx.CreateTool(ctx, u.ID, tool)
				made = append(made, tool.ID)
				return err
			}
			remove := func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, u.ID, made[0]) }
			key := func(ctx context.Context, tx *store.Tx) error {
				return tx.CreateKey(ctx, &parley.Key{UserID: u.ID, Kind: parley.APIKey, Name: "k", Hash: []byte("h")})
			}
			if err := by(t, db, ana, create); err != nil {
				t.Fatal(err)
			}
			most := parley.LimitNamed("changes").Most
			counted := func(n int64) { // as of tomorrow, so that midnight changes nothing
				storetest.Exec(t, o, fmt.Sprintf("UPDATE day_counts SET n = %d, day = day + 1 WHERE name = 'changes'", n))
			}
			refused := func(what string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), "100000 changes in the audit log a day (UTC)") {
					t.Errorf("%s: %v", what, err)
				}
			}
			counted(most - 1)
			if err := by(t, db, ana, create); err != nil {
				t.Errorf("the last one: %v", err)
			}
			there := len(entries(t, db, u.ID, store.AuditFilter{}))
			refused("one more", by(t, db, ana, create))
			if now := len(entries(t, db, u.ID, store.AuditFilter{})); now != there {
				t.Errorf("%d entries, not %d", now, there)
			}
			if err := by(t, db, store.Operator, create); err != nil {
				t.Errorf("the operator: %v", err)
			}
			write(t, db, create) // the server's own
			for what, fn := range map[string]func(context.Context, *store.Tx) error{"a deletion": remove, "a key": key} {
				if err := by(t, db, ana, fn); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			counted(2 * most)
			made = made[1:]
			refused("a deletion beyond all", by(t, db, ana, remove))
		})
	}
}
