package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// spoken stores an assistant of a user's, with only the required fields.
func spoken(t *testing.T, db *store.DB, userID int64) *parley.Assistant {
	t.Helper()
	a := &parley.Assistant{UUID: uuid.NewString(), Name: "Anna", Type: "outbound", Status: "active",
		Mode: "pipeline", Timezone: "UTC", LanguageID: 1, VoiceID: 1001}
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, userID, a) })
	return a
}

func TestCallSpend(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		today := parley.At(time.Date(2026, 3, 5, 23, 59, 0, 0, time.UTC))
		tomorrow := today.Add(2 * time.Minute)
		step := func(what string, at parley.Time, want parley.Money, fn func(ctx context.Context, tx *store.Tx) error) {
			t.Helper()
			write(t, db, fn)
			if got, err := db.Spend(t.Context(), u.ID, at); err != nil || got != want {
				t.Errorf("%s: %s, want %s: %v", what, got, want, err)
			}
		}
		add := func(at parley.Time, by parley.Money) func(context.Context, *store.Tx) error {
			return func(ctx context.Context, tx *store.Tx) error { return tx.AddSpend(ctx, u.ID, at, by) }
		}
		correct := func(at parley.Time, by parley.Money) func(context.Context, *store.Tx) error {
			return func(ctx context.Context, tx *store.Tx) error { return tx.CorrectSpend(ctx, u.ID, at, by) }
		}
		step("first", today, 100, add(today, 100))
		step("second", today, 150, add(today, 50))
		step("corrected", today, 120, correct(today, -30))
		step("a new day", tomorrow, 7, add(tomorrow, 7))
		step("the former day's call ends", tomorrow, 7, correct(today, -90))
		step("its day is forgotten", today, 0, correct(tomorrow, 0))
		step("a clock that is behind", tomorrow, 7, add(today, 1000))
		if got, err := db.Spend(t.Context(), other.ID, today); err != nil || got != 0 {
			t.Errorf("another user's spend is %s: %v", got, err)
		}
	})
}

func TestCallsOfUsers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		a := spoken(t, db, u.ID)
		phone := "+12025550199"
		var ids []int64
		for i := range 6 {
			c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallCompleted,
				EndedAt: parley.DateTime(100 + i), Node: "n"}
			switch i {
			case 1:
				c.Type, c.CustomerPhone = parley.CallInbound, &phone
			case 2:
				c.Status, c.EndedAt = parley.CallRinging, 0
			case 3:
				campaign, lead := int64(5), int64(7)
				c.CampaignID, c.LeadID, c.Attempt, c.Recording = &campaign, &lead, 2, "recordings/a.wav"
			}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, u.ID, c) })
			ids = append(ids, c.ID)
		}
		for name, c := range map[string]struct {
			f    store.CallFilter
			want []int // newest first
		}{
			"all":       {store.CallFilter{}, []int{5, 4, 3, 2, 1, 0}},
			"status":    {store.CallFilter{Status: parley.CallRinging}, []int{2}},
			"type":      {store.CallFilter{Type: parley.CallInbound}, []int{1}},
			"phone":     {store.CallFilter{Phone: phone}, []int{1}},
			"campaign":  {store.CallFilter{CampaignID: 5}, []int{3}},
			"assistant": {store.CallFilter{AssistantID: a.ID + 1}, nil},
			"from":      {store.CallFilter{From: parley.Now().Add(time.Hour)}, nil},
			"to": {store.CallFilter{To: parley.Now().Add(time.Hour), Type: parley.CallWeb,
				Status: parley.CallCompleted}, []int{5, 4, 3, 0}},
		} {
			list, total, err := db.Calls(t.Context(), u.ID, c.f, store.Page{Number: 1, Size: 10})
			var got []int
			for _, row := range list {
				got = append(got, slices.Index(ids, row.ID))
			}
			if err != nil || total != len(c.want) || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v of %d: %v", name, got, total, err)
			}
		}
		if list, total, err := db.Calls(t.Context(), u.ID, store.CallFilter{},
			store.Page{Number: 2, Size: 4}); err != nil || total != 6 || len(list) != 2 || list[0].ID != ids[1] ||
			list[0].AssistantName != "Anna" {
			t.Errorf("second page: %+v of %d: %v", list, total, err)
		}
		if _, total, err := db.Calls(t.Context(), other.ID, store.CallFilter{},
			store.Page{Number: 1, Size: 4}); err != nil || total != 0 {
			t.Errorf("another sees %d: %v", total, err)
		}
		if n, err := db.LiveCalls(t.Context(), u.ID); err != nil || n != 1 {
			t.Errorf("%d live: %v", n, err)
		}
		if c, err := db.AttemptCall(t.Context(), u.ID, 7, 2); err != nil || c.ID != ids[3] {
			t.Errorf("the attempt: %+v, %v", c, err)
		}
		// Another user's id, in everything that takes an id.
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, read := tx.Call(ctx, other.ID, ids[0])
			_, attempt := tx.AttemptCall(ctx, other.ID, 7, 2)
			_, deleted := tx.DeleteCall(ctx, other.ID, ids[0])
			_, assistant := tx.CallAssistant(ctx, other.ID, a.ID)
			for name, err := range map[string]error{"read": read, "attempt": attempt,
				"hang up": tx.HangupCall(ctx, other.ID, ids[2]), "delete": deleted, "assistant": assistant} {
				if !store.IsNotFound(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if names, n, err := tx.EraseCalls(ctx, other.ID, phone, 10); err != nil || n != 0 || names != nil {
				t.Errorf("erased %d of another's: %v", n, err)
			}
			return nil
		})
		again := &parley.Call{AssistantID: a.ID, Type: parley.CallOutbound, Status: parley.CallInitiated,
			LeadID: list7(), Attempt: 2}
		err := db.Write(t.Context(), func(ctx context.Context,
			tx *store.Tx) error {
			return tx.CreateCall(ctx, u.ID, again)
		})
		if !store.IsSecondCall(err) {
			t.Errorf("one attempt twice: %v", err)
		}
	})
}

func list7() *int64 { n := int64(7); return &n }

// A process's calls are its own; calls of a silent process are found; a report is claimed once.
func TestCallLeases(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := spoken(t, db, u.ID)
		make := func(node string) *parley.Call {
			c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallInProgress, Node: node}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, u.ID, c) })
			return c
		}
		mine, second, others := make("a"), make("a"), make("b")
		later := parley.Now().Add(time.Minute)
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			ids, err := tx.RenewCalls(ctx, "a", []int64{mine.ID, others.ID, 9999}, later)
			if !slices.Equal(ids, []int64{mine.ID}) {
				t.Errorf("renewed %v", ids)
			}
			none, wrong := tx.RenewCalls(ctx, "a", nil, later)
			if len(none) != 0 {
				t.Errorf("renewed %v", none)
			}
			return errors.Join(err, wrong)
		})
		if lost, err := db.LostCalls(t.Context(), later, 10); err != nil ||
			!slices.Equal(lost, []int64{second.ID, others.ID}) {
			t.Errorf("lost %v: %v", lost, err)
		}
		locked := func(id int64) (lost bool) {
			write(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				lost, err = tx.LockLost(ctx, id, later)
				return err
			})
			return lost
		}
		if locked(mine.ID) || !locked(second.ID) {
			t.Error("a call that lives is lost, or one that is lost is not")
		}
		if !db.SQLite() { // there one transaction writes at a time
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				mine, err := tx.LockLost(ctx, second.ID, later)
				if theirs := locked(second.ID); !mine || theirs { // a node that waited here would wait for ever
					t.Errorf("a call is closed by this node: %v, and by another: %v", mine, theirs)
				}
				return err
			})
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.HangupCall(ctx, u.ID, mine.ID) })
		if list, err := db.CallsToNotice(t.Context(), "a"); err != nil || !slices.Equal(list, []store.CallToNotice{{ID: mine.ID, Hangup: true}}) {
			t.Errorf("to hang up: %v, %v", list, err)
		}
		// A call that another process has ended is not overwritten.
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.CallForUpdate(ctx, mine.ID)
			if err != nil {
				return err
			}
			c.End(parley.NodeLost, parley.Now())
			c.ReportDue = 1
			return tx.EndCall(ctx, c)
		})
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			mine.Turns = []parley.CallTurn{{Text: "late"}}
			kept, err := tx.KeepCall(ctx, mine)
			foreign := *others
			foreign.Node = "a"
			stolen, wrong := tx.KeepCall(ctx, &foreign)
			if kept || stolen {
				t.Errorf("kept %v, another's %v", kept, stolen)
			}
			return errors.Join(err, wrong)
		})
		now := parley.Now()
		claim := func(at parley.Time) (list []parley.Call) {
			write(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				list, err = tx.ClaimReports(ctx, u.ID, 10, at, at.Add(time.Minute))
				return err
			})
			return list
		}
		first := claim(now)
		if len(first) != 1 || first[0].ID != mine.ID || first[0].ReportTries != 1 || len(claim(now)) != 0 {
			t.Errorf("claimed %+v", first)
		}
		if again := claim(now.Add(2 * time.Minute)); len(again) != 1 || again[0].ReportTries != 2 {
			t.Errorf("claimed after the lease %+v", again)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { // by the process that has lost the call
			return tx.PutOffReport(ctx, mine.ID, first[0].ReportDue, 1)
		})
		if list := claim(now.Add(150 * time.Second)); len(list) != 0 {
			t.Errorf("put off by who had lost it: %+v", list)
		}
	})
}

func TestForgetCalls(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := spoken(t, db, u.ID)
		for i := range 5 {
			c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallCompleted,
				EndedAt: parley.DateTime(10 + i), Recording: fmt.Sprintf("recordings/%d.wav", i)}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, u.ID, c) })
		}
		live := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallInProgress}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, u.ID, live) })
		calls, _, err := db.Calls(t.Context(), u.ID, store.CallFilter{}, store.Page{Number: 1, Size: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if c.Recording == "recordings/0.wav" || c.Recording == "recordings/2.wav" {
				leg := &parley.CallLeg{CallID: c.ID, Kind: parley.LegGuest}
				write(t, db, func(ctx context.Context, tx *store.Tx) error {
					if err := tx.CreateLeg(ctx, u.ID, leg); err != nil {
						return err
					}
					_, err := tx.KeepLegRecording(ctx, leg.ID, strings.Replace(c.Recording, ".", "-1.", 1))
					return err
				})
			}
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			names, err := tx.ForgetRecordings(ctx, 13, 2)
			if !slices.Equal(names, []string{"recordings/0.wav", "recordings/1.wav", "recordings/0-1.wav"}) {
				t.Errorf("recordings %v", names)
			}
			if err != nil {
				return err
			}
			names, n, err := tx.ForgetCalls(ctx, 14, 100)
			slices.Sort(names)
			if n != 4 || !slices.Equal(names, []string{"recordings/2-1.wav", "recordings/2.wav", "recordings/3.wav"}) {
				t.Errorf("%d calls, %v", n, names)
			}
			return err
		})
		if _, total, err := db.Calls(t.Context(), u.ID, store.CallFilter{},
			store.Page{Number: 1, Size: 10}); err != nil || total != 2 {
			t.Errorf("%d are left: %v", total, err)
		}
	})
}

// Processes measure one another's silence by the database's clock, wherever their own clocks stand: all that a process
// writes about its calls uses that clock.
func TestCallsByTheDatabasesClock(t *testing.T) {
	if !slices.Contains(storetest.Engines(), "postgres") {
		return
	}
	o := storetest.Options(t, "postgres")
	storetest.Open(t, o)
	conn, err := sql.Open("pgx", o.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A database whose clock is an hour ahead of the test's.
	for _, q := range []string{"CREATE SCHEMA ahead",
		"CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ " +
			"SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$"} {
		if _, err := conn.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(o.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", "ahead,pg_catalog,public")
	u.RawQuery = q.Encode()
	o.Postgres = u.String()
	db := storetest.Open(t, o)
	ours := parley.Now()
	now, err := db.Clock(t.Context())
	if err != nil || now < ours.Add(time.Hour) || now > parley.Now().Add(time.Hour) {
		t.Fatalf("the database's clock says %v, ours %v: %v", now, ours, err)
	}
	user := storetest.User(t, db, 0)
	a := spoken(t, db, user.ID)
	c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallInProgress, Node: "a"}
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateCall(ctx, user.ID, c) })
	if lost, err := db.LostCalls(t.Context(), now, 10); err != nil || len(lost) != 0 {
		t.Errorf("a call that has just begun is lost: %v, %v", lost, err)
	}
	got, err := db.Call(t.Context(), user.ID, c.ID)
	if err != nil || got.SeenAt < now || parley.Time(got.CreatedAt) > parley.Now() {
		t.Errorf("seen at %v, made at %v: %v", got.SeenAt, got.CreatedAt, err)
	}
}

// A write that was refused for its content, and one that could not be made.
func TestRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		a := spoken(t, db, u.ID)
		try := func(c *parley.Call) error {
			c.AssistantID, c.Type, c.Status = a.ID, parley.CallWeb, parley.CallInitiated
			return db.Write(t.Context(), func(ctx context.Context,
				tx *store.Tx) error {
				return tx.CreateCall(ctx, u.ID, c)
			})
		}
		torn := parley.CallTool{FunctionCall: parley.FunctionCall{Name: "x", Arguments: json.RawMessage(`{"a":`)}}
		if err := try(&parley.Call{FunctionCalls: []parley.CallTool{torn}}); !store.Refused(err) {
			t.Errorf("broken JSON: %v", err)
		}
		foreign := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateCall(ctx, 9999, &parley.Call{AssistantID: a.ID, Type: parley.CallWeb,
				Status: parley.CallInitiated})
		})
		if !store.Refused(foreign) {
			t.Errorf("a user who isn't there: %v", foreign)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		late := db.Write(gone, func(context.Context, *store.Tx) error { return nil })
		if store.Refused(late) || store.Refused(nil) || store.Refused(io.EOF) {
			t.Errorf("nobody asked the database: %v", late)
		}
	})
}
