package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func write(t *testing.T, db *store.DB, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	if err := db.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func assistant(t *testing.T, db *store.DB, userID int64, change func(*parley.Assistant)) *parley.Assistant {
	t.Helper()
	a := &parley.Assistant{}
	form.Defaults(a)
	a.Name, a.Type, a.Mode, a.Timezone, a.SystemPrompt, a.VoiceID, a.LanguageID = "Desk", "inbound", "pipeline",
		"UTC", "Be kind.", 1, 1
	if change != nil {
		change(a)
	}
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, userID, a) })
	return a
}

func TestAssistantRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, u, other := t.Context(), storetest.User(t, db, 0), storetest.User(t, db, 0)
		tool := &parley.Tool{Name: "look_up", Description: "Looks up.", Endpoint: "https://example.com",
			Method: "GET", Timeout: 10,
			Headers: []parley.ToolHeader{{Name: "X-Key", Value: "s3cret"}}, Schema: []parley.ToolParam{},
			JSONSchema: parley.JSONSchema(`{"type":"object","title":"Größe"}`),
			Filler:     "Let me look.", SecondFill: "It is large."}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, u.ID, tool) })
		words := int64(3)
		made := assistant(t, db, u.ID, func(a *parley.Assistant) {
			a.Variables = map[string]string{"name": "Zoë"}
			a.ToolIDs = []int64{tool.ID}
			a.Tools = []parley.AssistantTool{{Type: "end_call"}}
			a.MinInterruptWords = &words
			a.FillerConfig.Neutral = []string{"Hm."}
			a.Fillers = true
			a.PostCallJSONSchema = parley.JSONSchema(`{"type":"object","title":"Größe"}`)
		})
		got, err := db.Assistant(ctx, u.ID, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		made.MidCallTools = []parley.Tool{*tool}
		if again := assistant(t, db, u.ID, nil); again.PostCallJSONSchema != nil {
			t.Errorf("what is found out is %s", again.PostCallJSONSchema)
		}
		if d := cmp.Diff(made, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Sealed" },
			cmp.Ignore())); d != "" {
			t.Error(d)
		}
		if _, err := db.Assistant(ctx, other.ID, made.ID); !store.IsNotFound(err) {
			t.Errorf("another user reads it: %v", err)
		}
		err = db.Write(ctx, func(ctx context.Context,
			tx *store.Tx) error {
			return tx.DeleteAssistant(ctx, other.ID, made.ID)
		})
		if !store.IsNotFound(err) {
			t.Errorf("another user deletes it: %v", err)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, u.ID, tool.ID) })
		if got, _ = db.Assistant(ctx, u.ID, made.ID); len(got.ToolIDs) != 0 {
			t.Error("a deleted tool is still attached")
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistant(ctx, u.ID, made.ID) })
		if _, err := db.Assistant(ctx, u.ID, made.ID); !store.IsNotFound(err) {
			t.Errorf("a deleted assistant is read: %v", err)
		}
	})
}

func TestPromptVersions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, u, other := t.Context(), storetest.User(t, db, 0), storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, nil)
		save := func(change func(*parley.Assistant)) {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				old, err := tx.AssistantForUpdate(ctx, u.ID, a.ID)
				if err != nil {
					return err
				}
				next := *old
				change(&next)
				return tx.SaveAssistant(ctx, u.ID, old, &next)
			})
		}
		save(func(a *parley.Assistant) { a.SystemPrompt = "Be brief." })
		save(func(a *parley.Assistant) { a.Name = "Front desk" }) // makes no new version
		list, total, err := db.PromptVersions(ctx, u.ID, a.ID, store.Page{Number: 1, Size: 10})
		if err != nil || total != 2 || list[0].SystemPrompt != "Be brief." || list[1].Version != 1 {
			t.Fatalf("%v %d %+v", err, total, list)
		}
		if _, err := db.PromptVersion(ctx, other.ID, a.ID, 1); !store.IsNotFound(err) {
			t.Errorf("another user reads a version: %v", err)
		}
	})
}

func TestOneInboundAssistantPerNumber(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		n := &parley.Number{PhoneNumber: "+12025550123", CountryCode: "US", Type: parley.NumberNormal}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateNumber(ctx, u.ID, n) })
		assistant(t, db, u.ID, func(a *parley.Assistant) { a.PhoneNumberID = &n.ID })
		assistant(t, db, u.ID, func(a *parley.Assistant) { a.PhoneNumberID, a.Type = &n.ID, "outbound" })
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				a := &parley.Assistant{PhoneNumberID: &n.ID, Type: "inbound", Mode: "pipeline"}
				form.Defaults(&a.FillerConfig)
				err := db.Write(t.Context(), func(ctx context.Context,
					tx *store.Tx) error {
					return tx.CreateAssistant(ctx, u.ID, a)
				})
				var e *parley.Error
				if !errors.As(err, &e) || !e.Fields.Has("phone_number_id") {
					t.Errorf("a second inbound assistant got the number: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// Writes that fail, panic or are cancelled leave nothing behind, and do no harm to other writes that are committed with
// them.
func TestWriteIsolation(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, boom := t.Context(), errors.New("boom")
		model := func(code string) []parley.Model {
			return []parley.Model{{Kind: parley.LLM, Code: code, Name: code, Provider: "x"}}
		}
		var wg sync.WaitGroup
		after := make(chan string, 100)
		for i := range 60 {
			name := string(rune('a'+i%26)) + string(rune('a'+i/26))
			wg.Go(func() {
				defer func() { recover() }()
				err := db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
					if err := tx.KeepModels(ctx, model(name)); err != nil {
						return err
					}
					tx.AfterCommit(func() { after <- name })
					switch i % 3 {
					case 1:
						return boom
					case 2:
						panic("boom")
					}
					return nil
				})
				if i%3 == 0 && err != nil || i%3 == 1 && err != boom {
					t.Errorf("write %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if len(after) != 20 {
			t.Errorf("%d writes were followed up, not 20", len(after))
		}
		kept, err := db.Models(ctx)
		if err != nil || len(kept) != 20 {
			t.Errorf("%d writes are kept, not 20: %v", len(kept), err)
		}
		for i := range 60 {
			name := string(rune('a'+i%26)) + string(rune('a'+i/26))
			if there := slices.ContainsFunc(kept, func(m parley.Model) bool { return m.Code == name }); there != (i%3 == 0) {
				t.Errorf("after write %d: %v", i, there)
			}
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if err := db.Write(cancelled, func(ctx context.Context,
			tx *store.Tx) error {
			return tx.KeepModels(ctx, model("late"))
		}); err == nil {
			t.Error("a cancelled write was done")
		}
	})
}

func TestLedgerRaces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 100*parley.USD)
		var wg sync.WaitGroup
		var mu sync.Mutex
		charged := 0
		for i := range 160 { // 80 references, each twice, a dollar and a half each: 66 fit
			wg.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					posted, err := tx.Post(ctx, u.ID,
						&parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -1_500_000,
							Reference: "m" + string(rune('A'+i%80)), Description: "test"})
					if posted {
						tx.AfterCommit(func() { mu.Lock(); charged++; mu.Unlock() })
					}
					return err
				})
				if err != nil && err != error(store.Insufficient) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := db.User(t.Context(), u.ID)
		if err != nil || charged != 66 || got.Balance != parley.USD {
			t.Errorf("%d charges left %v: %v", charged, got.Balance, err)
		}
		list, total, err := db.Ledger(t.Context(), u.ID, 0, 0, store.Page{Number: 1, Size: 1})
		if err != nil || total != 67 || list[0].BalanceAfter != got.Balance {
			t.Errorf("the ledger has %d entries, the last %+v: %v", total, list, err)
		}
	})
}

// Both engines have the same migrations, and the same tables and columns after them.
func TestParity(t *testing.T) {
	names := func(engine string) (list []string) {
		files, err := fs.ReadDir(os.DirFS("migrations"), engine)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			list = append(list, f.Name())
		}
		return list
	}
	if d := cmp.Diff(names("sqlite"), names("postgres")); d != "" {
		t.Error(d)
	}
	column := regexp.MustCompile(`(?m)^  ([a-z_0-9]+) |^CREATE [A-Z ]+ ([a-z_]+) .*$`)
	for _, n := range names("sqlite") {
		shape := func(engine string) []string {
			text, err := os.ReadFile("migrations/" + engine + "/" + n)
			if err != nil {
				t.Fatal(err)
			}
			both, _, _ := strings.Cut(string(text), "-- This engine only.")
			// PostgreSQL builds these without blocking anybody's writes
			return column.FindAllString(strings.ReplaceAll(both, " CONCURRENTLY", ""), -1)
		}
		if d := cmp.Diff(shape("sqlite"), shape("postgres")); d != "" {
			t.Errorf("%s: %s", n, d)
		}
	}
}

func TestMigrateTwiceAndTogether(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Empty(t, engine)
			var wg sync.WaitGroup
			for range 3 {
				db, err := store.Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				migrate := func() {
					if _, err := db.Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if engine == "postgres" { // several nodes; a SQLite file is migrated by one process
					wg.Go(migrate)
				} else {
					migrate()
				}
			}
			wg.Wait()
			db, err := store.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if ok, err := db.Migrated(t.Context()); err != nil || !ok {
				t.Errorf("migrated: %v %v", ok, err)
			}
		})
	}
}

func TestSecretsAreSealed(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	db := storetest.Open(t, o)
	u := storetest.User(t, db, 0)
	tool := &parley.Tool{Name: "a", Headers: []parley.ToolHeader{{Name: "Authorization",
		Value: "Bearer very-secret-value"}}, Schema: []parley.ToolParam{}}
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, u.ID, tool) })
	copyTo := t.TempDir() + "/copy.db"
	if err := db.Backup(t.Context(), copyTo); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(copyTo)
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile("very-secret-value").Match(raw) {
		t.Error("the header's value stands in the file")
	}
	if err := db.Backup(t.Context(), copyTo); err == nil {
		t.Error("a backup overwrote a file")
	}
	o.Path, o.Secret = copyTo, []byte("ffffffffffffffffffffffffffffffff")
	wrong := storetest.Open(t, o)
	if _, err := wrong.Tool(t.Context(), u.ID, tool.ID); err == nil {
		t.Error("another key opens it")
	}
}
