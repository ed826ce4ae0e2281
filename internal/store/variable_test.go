package store_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// An assistant's variables come back as they were stored, on both engines, also in a list and after a change.
func TestVariables(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, func(a *parley.Assistant) {
			a.Variables = map[string]string{"key": "s3cret",
				"who": "Zoë"}
		})
		check := func(want map[string]string) *parley.Assistant {
			t.Helper()
			got, err := db.Assistant(t.Context(), u.ID, a.ID)
			if err != nil {
				t.Fatal(err)
			}
			list, err := db.Assistants(t.Context(), u.ID, "")
			if err != nil || !maps.Equal(got.Variables, want) || got.Variables == nil ||
				!maps.Equal(list[0].Variables, want) {
				t.Errorf("variables %v, in the list %v: %v", got.Variables, list, err)
			}
			return got
		}
		old := check(a.Variables)
		changed := *old
		for _, vars := range []map[string]string{{"key": "n3w"}, {}, {"a": ""}} {
			changed.Variables = vars
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.SaveAssistant(ctx, u.ID, old,
					&changed)
			})
			check(vars)
		}
	})
}

// The database's files hold no variable in plain text: neither a new nor a changed one, nor one that a former version
// stored, once that has been sealed.
func TestVariablesAtRest(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	db := storetest.Open(t, o)
	u := storetest.User(t, db, 0)
	const first, second, former = "first-variable-in-plain", "second-variable-in-plain", "former-variable-in-plain"
	a := assistant(t, db, u.ID, func(a *parley.Assistant) { a.Variables = map[string]string{"api_key": first} })
	changed := *a
	changed.Variables = map[string]string{"api_key": second}
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveAssistant(ctx, u.ID, a, &changed) })
	files, err := filepath.Glob(o.Path + "*")
	if err != nil || len(files) < 2 { // the write-ahead log too
		t.Fatalf("files %v: %v", files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{first, second} {
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s holds %s", filepath.Base(name), secret)
			}
		}
	}

	// As a node of a former version writes it: the value counts, and is sealed when the sealing next runs.
	storetest.Exec(t, o, fmt.Sprintf(`UPDATE assistants SET variables = '{"api_key":"%s"}' WHERE id = %d`, former,
		a.ID))
	read := func() string {
		got, err := db.Assistant(t.Context(), u.ID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got.Variables["api_key"]
	}
	if got := read(); got != former {
		t.Errorf("a former version's %q", got)
	}
	for _, want := range []int{1, 0} {
		var n int
		write(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			n,
				err = tx.SealVariables(ctx, 100)
			return err
		})
		if got := read(); n != want || got != former {
			t.Errorf("sealed %d, want %d; reads %q", n, want, got)
		}
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(copied); err != nil || bytes.Contains(raw, []byte(former)) {
		t.Errorf("a copy holds the former version's variable: %v", err)
	}
}

// Only so many wordings are kept; an assistant that nothing refers to leaves nothing behind when it is deleted.
func TestPromptVersionsAreBounded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, nil)
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i := range parley.MaxVersions + 5 {
				old := *a
				a.SystemPrompt = fmt.Sprint("wording ", i)
				if err := tx.SaveAssistant(ctx, u.ID, &old, a); err != nil {
					return err
				}
			}
			return nil
		})
		list, total, err := db.PromptVersions(t.Context(), u.ID, a.ID, store.Page{Number: 1, Size: 1})
		if err != nil || total != parley.MaxVersions || list[0].Version != a.PromptVersion {
			t.Errorf("%d versions, the newest %+v: %v", total, list, err)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistant(ctx, u.ID, a.ID) })
		if _, err := db.CallAssistant(t.Context(), u.ID, a.ID); !store.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
		spoken := assistant(t, db, u.ID, nil)
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateConversation(ctx, &parley.Conversation{UserID: u.ID, AssistantID: spoken.ID,
				Type: parley.WidgetConversation, Variables: map[string]string{}}, ""); err != nil {
				return err
			}
			return tx.DeleteAssistant(ctx, u.ID, spoken.ID)
		})
		if _, err := db.CallAssistant(t.Context(), u.ID, spoken.ID); err != nil {
			t.Errorf("one with a history is gone: %v", err)
		}
		if _, err := db.Assistant(t.Context(), u.ID, spoken.ID); !store.IsNotFound(err) {
			t.Errorf("it still talks: %v", err)
		}
	})
}
