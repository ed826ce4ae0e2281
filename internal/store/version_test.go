package store_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// changed saves an assistant with a change, in the name of an author.
func changed(t *testing.T, db *store.DB, a *parley.Assistant, by, note string, change func(*parley.Assistant)) {
	t.Helper()
	err := db.Write(store.By(t.Context(), store.Actor{Name: by}), func(ctx context.Context, tx *store.Tx) error {
		old, err := tx.AssistantForUpdate(ctx, a.UserID, a.ID)
		if err != nil {
			return err
		}
		next := *old
		change(&next)
		tx.Sign(note)
		return tx.SaveAssistant(ctx, a.UserID, old, &next)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestVersionsOfWholeAssistants(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, u, other := t.Context(), storetest.User(t, db, 0), storetest.User(t, db, 0)
		const secret = "key-of-the-tool-4711"
		a := assistant(t, db, u.ID, func(a *parley.Assistant) { a.Variables = map[string]string{"key": secret} })
		changed(t, db, a, "Ana", "Shorter.", func(a *parley.Assistant) { a.SystemPrompt, a.Record = "Be brief.", true })
		changed(t, db, a, "", "", func(a *parley.Assistant) { a.Name = "Front desk" })

		list, total, err := db.AssistantVersions(ctx, u.ID, a.ID, store.Page{Number: 1, Size: 2})
		if err != nil || total != 3 || len(list) != 2 || list[0].Version != 3 || list[0].PromptVersion != 2 ||
			!slices.Equal(list[0].Changed, []string{"name"}) || list[1].Author != "Ana" || list[1].Note != "Shorter." ||
			!slices.Equal(list[1].Changed, []string{"system_prompt", "record"}) {
			t.Fatalf("%v %d %+v", err, total, list)
		}
		first, err := db.AssistantVersion(ctx, u.ID, a.ID, 1)
		if err != nil || !first.Whole || string(first.Settings["system_prompt"]) != `"Be kind."` ||
			string(first.Settings["record"]) != "false" || string(first.Settings["variables"]) != `{"key":"`+secret+`"}` {
			t.Fatalf("%v %s", err, first.Settings)
		}
		if newest, err := db.NewestVersion(ctx, u.ID, a.ID); err != nil || newest.Version != 3 {
			t.Errorf("the newest is %+v, %v", newest, err)
		}
		if bytes.Contains([]byte(first.Plain), []byte(secret)) || bytes.Contains(first.Sealed, []byte(secret)) {
			t.Error("variables are stored in the clear")
		}
		for _, v := range []int{0, -1, 4} {
			if _, err := db.AssistantVersion(ctx, u.ID, a.ID, v); !store.IsNotFound(err) {
				t.Errorf("version %d: %v", v, err)
			}
		}
		if _, err := db.AssistantVersion(ctx, other.ID, a.ID, 1); !store.IsNotFound(err) {
			t.Errorf("another user reads a version: %v", err)
		}
		if list, total, err := db.AssistantVersions(ctx, other.ID, a.ID, store.Page{Number: 1, Size: 2}); err != nil || total != 0 ||
			len(list) != 0 {
			t.Errorf("another user lists %d versions: %v", total, err)
		}
	})
}

// A live state that no version holds, because a node of the former version wrote it or it is older than versions, is
// kept as a version before the next change.
func TestWhatIsLiveWithoutAVersionGetsOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, u := t.Context(), storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, nil)
		write(t, db, func(ctx context.Context, tx *store.Tx) error { // as a former version's node
			_, err := tx.SQL().
				NewRaw("UPDATE assistants SET name = 'Elsewhere', system_prompt = 'Theirs.', prompt_version = 2, updated_at = ? WHERE id = ?",
					parley.Now(), a.ID).Exec(ctx)
			return err
		})
		changed(t, db, a, "Ana", "", func(a *parley.Assistant) { a.Name = "Mine" })
		list, _, err := db.AssistantVersions(ctx, u.ID, a.ID, store.Page{Number: 1, Size: 10})
		if err != nil || list[0].Author != "Ana" || !slices.Equal(list[0].Changed, []string{"name"}) {
			t.Fatalf("%v %+v", err, list)
		}
		before, err := db.AssistantVersion(ctx, u.ID, a.ID, list[1].Version)
		if err != nil || string(before.Settings["name"]) != `"Elsewhere"` || before.Author != "" {
			t.Errorf("%v %s", err, before.Settings["name"])
		}
		if p, err := db.PromptVersion(ctx, u.ID, a.ID, 2); err != nil || p.SystemPrompt != "Theirs." {
			t.Errorf("the wording in between: %+v, %v", p, err)
		}
	})
}

// Many changes of other fields don't remove any wording of the prompt.
func TestVersionsAreBounded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, nil)
		for i := range 4 {
			changed(t, db, a, "", "", func(a *parley.Assistant) { a.SystemPrompt = fmt.Sprint("wording ", i) })
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			now, err := tx.AssistantForUpdate(ctx, u.ID, a.ID)
			for i := 0; err == nil && i < parley.MaxVersions+5; i++ {
				old := *now
				now.Name = fmt.Sprint("Desk ", i)
				err = tx.SaveAssistant(ctx, u.ID, &old, now)
			}
			return err
		})
		_, total, err := db.AssistantVersions(t.Context(), u.ID, a.ID, store.Page{Number: 1, Size: 1})
		if err != nil || total != parley.MaxVersions+5 {
			t.Errorf("%d versions: %v", total, err)
		}
		_, total, err = db.PromptVersions(t.Context(), u.ID, a.ID, store.Page{Number: 1, Size: 1})
		if err != nil || total != 5 {
			t.Errorf("%d wordings: %v", total, err)
		}
	})
}

func TestAssistantDraftRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, u, other := t.Context(), storetest.User(t, db, 0), storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, nil)
		if _, err := db.AssistantDraft(ctx, u.ID, a.ID); !store.IsNotFound(err) {
			t.Fatal(err)
		}
		d := &parley.AssistantDraft{AssistantID: a.ID, Author: "Ana", Base: a.UpdatedAt,
			Changes: parley.Settings{"name": []byte(`"Front"`), "variables": []byte(`{"k":"hidden-4711"}`)}}
		for range 2 { // the second one replaces the first
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveAssistantDraft(ctx, u.ID, d) })
			got, err := db.AssistantDraft(ctx, u.ID, a.ID)
			if err != nil || string(got.Changes["name"]) != string(d.Changes["name"]) || got.Author != d.Author || got.Base != d.Base ||
				bytes.Contains(got.Sealed, []byte("hidden-4711")) {
				t.Fatalf("%+v, %v", got, err)
			}
			d.Author, d.Changes = "Ben", parley.Settings{"name": []byte(`"Back"`)}
		}
		if _, err := db.AssistantDraft(ctx, other.ID, a.ID); !store.IsNotFound(err) {
			t.Errorf("another user reads it: %v", err)
		}
		drop := func(userID int64) error {
			return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistantDraft(ctx, userID, a.ID) })
		}
		if err := drop(other.ID); !store.IsNotFound(err) {
			t.Errorf("another user drops it: %v", err)
		}
		if err := drop(u.ID); err != nil {
			t.Error(err)
		}
		if err := drop(u.ID); !store.IsNotFound(err) {
			t.Errorf("dropped twice: %v", err)
		}
	})
}
