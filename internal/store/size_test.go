package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// noise is a text of n letters that no database packs.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return string(b)
}

// run stores a run of n performances of a script.
func run(t *testing.T, db *store.DB, a *parley.Assistant, test int64, script string, n int) *parley.TestRun {
	t.Helper()
	made := &parley.TestRun{AssistantID: a.ID}
	list := make([]parley.TestResult, n)
	for i := range list {
		list[i] = parley.TestResult{TestID: &test, Name: fmt.Sprint(i), Channel: "chat", Script: script, Place: i}
	}
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTestRun(ctx, a.UserID, made, list) })
	return made
}

// finish performs all that waits.
func finish(t *testing.T, db *store.DB, script string) (n int) {
	t.Helper()
	for {
		var list []parley.TestResult
		write(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			now := parley.Now()
			list, err = tx.ClaimTests(ctx, "node", true, now, now.Add(time.Minute), 50)
			return err
		})
		if len(list) == 0 {
			return n
		}
		for i := range list {
			r := &list[i]
			if r.Script != script {
				t.Errorf("performance %d has the script %.40q", r.Place, r.Script)
			}
			r.State, r.Picture, r.Turns = parley.TestFailed, "<svg/>", []parley.CallTurn{{Speaker: "caller", Text: "hello"}}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { _, err := tx.FinishTest(ctx, r); return err })
			n++
		}
	}
}

// Whatever an account makes, changes and deletes, its count of bytes is what counting its rows gives.
func TestStoredBytes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		last, step := int64(0), 0
		check := func(what string, grows int64) {
			t.Helper()
			kept, err := db.StoredBytes(t.Context(), u.ID)
			if err != nil {
				t.Fatal(err)
			}
			counted, err := store.CountedBytes(t.Context(), db, u.ID)
			if err != nil || kept != counted {
				t.Errorf("%s: %d bytes are kept, and the rows have %d, %v", what, kept, counted, err)
			}
			if d := kept - last; grows > 0 && (d < grows || d > grows+8000) || grows < 0 && (d > grows+100 || d < grows-8000) {
				t.Errorf("%s: the count grew by %d, want about %d", what, d, grows)
			}
			last, step = kept, step+1
		}
		do := func(fn func(ctx context.Context, tx *store.Tx) error) { t.Helper(); write(t, db, fn) }
		a := assistant(t, db, u.ID, func(a *parley.Assistant) { a.SystemPrompt = noise(20_000) })
		check("an assistant and its version", 40_000)
		changed(t, db, a, "Ana", "", func(a *parley.Assistant) { a.SystemPrompt = noise(50_000) })
		check("a longer prompt", 30_000+50_000)
		d := &parley.AssistantDraft{AssistantID: a.ID, Changes: parley.Settings{"name": []byte(`"` + noise(30_000) + `"`)}}
		do(func(ctx context.Context, tx *store.Tx) error { return tx.SaveAssistantDraft(ctx, u.ID, d) })
		check("a draft", 30_000)
		d.Changes["name"] = []byte(`"B"`)
		do(func(ctx context.Context, tx *store.Tx) error { return tx.SaveAssistantDraft(ctx, u.ID, d) })
		check("a shorter draft", -30_000)
		tool := &parley.Tool{Name: "look", Method: "GET", Description: noise(9000), Schema: []parley.ToolParam{}}
		do(func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, u.ID, tool) })
		check("a tool", 9000)
		tool.Description = ""
		do(func(ctx context.Context, tx *store.Tx) error { return tx.SaveTool(ctx, u.ID, tool) })
		check("a shorter tool", -9000)
		test := &parley.Test{AssistantID: a.ID, Name: "T", Channel: "chat", Script: noise(60_000)}
		do(func(ctx context.Context, tx *store.Tx) error { return tx.CreateTest(ctx, u.ID, test) })
		check("a test", 60_000)
		first := run(t, db, a, test.ID, test.Script, 50)
		check("a run of 50 performances has the script once", 60_000+50*200)
		if n := finish(t, db, test.Script); n != 50 {
			t.Errorf("%d were performed", n)
		}
		check("what became of them", 0)
		run(t, db, a, test.ID, test.Script, 3)
		finish(t, db, test.Script)
		check("another run", 60_000)
		do(func(ctx context.Context, tx *store.Tx) error { return tx.ForgetTestRuns(ctx, a.ID, 1) })
		check("the older run is forgotten", 0)
		if _, err := db.TestRun(t.Context(), u.ID, a.ID, first.ID); !store.IsNotFound(err) {
			t.Errorf("the older run: %v", err)
		}
		do(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTest(ctx, u.ID, a.ID, test.ID) })
		check("a test is deleted", -60_000)
		do(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistant(ctx, u.ID, a.ID) })
		check("the assistant is deleted", 0)
		do(func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTool(ctx, u.ID, tool.ID) })
		check("the tool is deleted", 0)
		if last != 0 {
			t.Errorf("nothing is left, and %d bytes are", last)
		}
		if n, err := db.StoredBytes(t.Context(), other.ID); n != 0 || err != nil {
			t.Errorf("another account has %d bytes, %v", n, err)
		}
	})
}

// A count that is wrong, since a former version changed rows, is right after a day.
func TestStoredBytesAreCountedDaily(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		assistant(t, db, u.ID, nil)
		right, err := db.StoredBytes(t.Context(), u.ID)
		if err != nil || right == 0 {
			t.Fatal(right, err)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SQL().NewRaw("UPDATE stored_bytes SET bytes = 5 WHERE user_id = ?", u.ID).Exec(ctx)
			return err
		})
		count := func(at parley.Time) {
			if err := db.InSteps(t.Context(), func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.CountStored(ctx, at) }); err != nil {
				t.Fatal(err)
			}
		}
		count(parley.Now())
		if n, _ := db.StoredBytes(t.Context(), u.ID); n != 5 {
			t.Errorf("counted again at once: %d", n)
		}
		count(parley.Now().Add(25 * time.Hour))
		if n, _ := db.StoredBytes(t.Context(), u.ID); n != right {
			t.Errorf("after a day it is %d, want %d", n, right)
		}
	})
}

// Rows of the former version, which had the script with each performance, are performed and shown as they are, and
// share one script once their run is over.
func TestFormerScripts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, nil)
		script := noise(10_000)
		former := func() *parley.TestRun {
			made := run(t, db, a, 7, script, 20)
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.SQL().NewRaw("UPDATE test_results SET script = ?, script_id = NULL WHERE run_id = ?", script, made.ID).Exec(ctx)
				if err == nil {
					_, err = tx.SQL().NewRaw("DELETE FROM test_scripts WHERE run_id = ?", made.ID).Exec(ctx)
				}
				return err
			})
			return made
		}
		share := func() {
			if err := db.InSteps(t.Context(), func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.ShareScripts(ctx) }); err != nil {
				t.Fatal(err)
			}
		}
		one := former()
		share()
		before, err := store.CountedBytes(t.Context(), db, u.ID)
		if err != nil || before < 20*10_000 {
			t.Fatalf("a run that goes on was changed: %d bytes, %v", before, err)
		}
		if n := finish(t, db, script); n != 20 {
			t.Errorf("%d were performed", n)
		}
		two := former()
		share()
		if n := finish(t, db, script); n != 20 {
			t.Errorf("%d were performed", n)
		}
		share()
		after, err := store.CountedBytes(t.Context(), db, u.ID)
		if err != nil || after > 2*10_000+50_000 {
			t.Errorf("two runs of 20 take %d bytes, %v", after, err)
		}
		for _, r := range []*parley.TestRun{one, two} {
			if list, err := db.TestResults(t.Context(), u.ID, r.ID); err != nil || len(list) != 20 || list[0].State != parley.TestFailed {
				t.Errorf("%d results, %v", len(list), err)
			}
		}
	})
}

// Versions of an assistant go when they take too much, the oldest first. The newest stays.
func TestVersionBytes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := assistant(t, db, u.ID, nil)
		for i := range 12 {
			changed(t, db, a, "Ana", "", func(a *parley.Assistant) { a.SystemPrompt = fmt.Sprint(i) + strings.Repeat("x", 1<<20) })
		}
		list, total, err := db.AssistantVersions(t.Context(), u.ID, a.ID, store.Page{Number: 1, Size: 50})
		if err != nil || total != 9 || list[0].Version != 13 || list[8].Version != 5 {
			t.Errorf("%d versions are kept, %v", total, err)
		}
		changed(t, db, a, "Ana", "", func(a *parley.Assistant) { a.SystemPrompt = strings.Repeat("y", 20<<20) })
		if _, total, err := db.AssistantVersions(t.Context(), u.ID, a.ID, store.Page{Number: 1, Size: 50}); err != nil || total != 1 {
			t.Errorf("beside one that is longer than all may be there are %d, %v", total, err)
		}
	})
}

// A deleted assistant is gone with all that belonged to it as soon as nothing names it: a campaign that is deleted and
// empty does not.
func TestDeletedAssistantsGo(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a, talked := assistant(t, db, u.ID, nil), assistant(t, db, u.ID, nil)
		for _, one := range []*parley.Assistant{a, talked} {
			test := &parley.Test{AssistantID: one.ID, Name: "T", Channel: "chat", Script: "x"}
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				return errors.Join(tx.CreateTest(ctx, u.ID, test),
					tx.SaveAssistantDraft(ctx, u.ID, &parley.AssistantDraft{AssistantID: one.ID, Changes: parley.Settings{}}))
			})
			run(t, db, one, test.ID, "x", 2)
		}
		camp := &parley.Campaign{Name: "C", AssistantID: a.ID, Timezone: "UTC", MaxCallsInParallel: 1, AllowedDays: []string{}}
		talk := &parley.Conversation{UserID: u.ID, AssistantID: talked.ID, Type: "api", Variables: map[string]string{}}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateCampaign(ctx, u.ID, camp), tx.CreateConversation(ctx, talk, ""))
		})
		remove := func() (ids []int64) {
			ids, err := db.ForgottenAssistants(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.RemoveAssistants(ctx, []int64{a.ID, talked.ID})
			})
			return ids
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.DeleteAssistant(ctx, u.ID, a.ID), tx.DeleteAssistant(ctx, u.ID, talked.ID))
		})
		if n, err := store.CountedBytes(t.Context(), db, u.ID); err != nil || n > 4000 {
			t.Errorf("two deleted assistants take %d bytes, %v", n, err)
		}
		if ids := remove(); len(ids) != 0 {
			t.Errorf("those with a campaign and a conversation are removed: %v", ids)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteCampaign(ctx, u.ID, camp.ID) })
		if ids := remove(); len(ids) != 0 {
			t.Errorf("one whose campaign has leads is removed: %v", ids)
		}
		if err := db.InSteps(t.Context(),
			func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.EmptyCampaigns(ctx, 10) }); err != nil {
			t.Fatal(err)
		}
		if ids := remove(); len(ids) != 1 || ids[0] != a.ID {
			t.Errorf("removed: %v", ids)
		}
		if _, err := db.CallAssistant(t.Context(), u.ID, a.ID); !store.IsNotFound(err) {
			t.Errorf("the one whose campaign is gone: %v", err)
		}
		if _, err := db.CallAssistant(t.Context(), u.ID, talked.ID); err != nil {
			t.Errorf("the one with a conversation: %v", err)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteConversation(ctx, u.ID, talk.ID) })
		if ids := remove(); len(ids) != 1 {
			t.Errorf("removed: %v", ids)
		}
		if n, err := db.StoredBytes(t.Context(), u.ID); n != 0 || err != nil {
			t.Errorf("nothing is left, and %d bytes are, %v", n, err)
		}
	})
}

// Whose user has the fewest performances under way comes first; calls wait for a telephone; nobody takes what another
// has.
func TestClaimTests(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		busy, idle := storetest.User(t, db, 0), storetest.User(t, db, 0)
		many, few := assistant(t, db, busy.ID, nil), assistant(t, db, idle.ID, nil)
		run(t, db, many, 1, "x", 10)
		claim := func(n int, calls bool) (of []int64) {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				now := parley.Now()
				list, err := tx.ClaimTests(ctx, "node", calls, now, now.Add(time.Minute), n)
				of = nil
				for i := range list {
					of = append(of, list[i].UserID)
				}
				return err
			})
			return of
		}
		if of := claim(3, true); len(of) != 3 {
			t.Errorf("the first claim took %v", of)
		}
		run(t, db, few, 2, "x", 2)
		if of := claim(2, true); len(of) != 2 || of[0] != idle.ID || of[1] != idle.ID {
			t.Errorf("the second claim took those of %v, want two of %d", of, idle.ID)
		}
		if of := claim(20, true); len(of) != 7 {
			t.Errorf("%d were left", len(of))
		}
		made := &parley.TestRun{AssistantID: few.ID}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateTestRun(ctx, idle.ID, made, []parley.TestResult{{Name: "call", Channel: "call", Script: "y"}})
		})
		if of := claim(5, false); len(of) != 0 {
			t.Errorf("a call was taken without a telephone: %v", of)
		}
		if of := claim(5, true); len(of) != 1 {
			t.Errorf("the call was not taken: %v", of)
		}
	})
}
