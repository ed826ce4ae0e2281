package store_test

import (
	"context"
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

// forbidden says whether err is a plan's refusal that contains words.
func forbidden(err error, words string) bool {
	var e *parley.Error
	return errors.As(err, &e) && e.Kind == parley.Forbidden && strings.Contains(e.Message, words) &&
		strings.Contains(e.Message, "operator")
}

// A plan allows an account only so many of everything that it can make. Another account's don't count, and deleting
// makes room.
func TestPlanLimits(t *testing.T) {
	plan, names := plenty(), map[string]bool{}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		plan = plenty()
		u, other := storetest.User(t, db, parley.USD), storetest.User(t, db, parley.USD)
		own := assistant(t, db, u.ID, nil)
		kb, theirs := &parley.Knowledgebase{Name: "A"}, &parley.Knowledgebase{Name: "B"}
		camp := &parley.Campaign{Name: "C", AssistantID: own.ID, Timezone: "UTC", MaxCallsInParallel: 1,
			AllowedDays: []string{}}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateKnowledgebase(ctx, u.ID, kb), tx.CreateKnowledgebase(ctx, other.ID, theirs),
				tx.CreateCampaign(ctx, u.ID, camp))
		})
		n := 0
		next := func() string { n++; return fmt.Sprintf("+1415556%04d", n) }
		document := func(id int64, size int64) func(context.Context, *store.Tx, int64) error {
			return func(ctx context.Context, tx *store.Tx, user int64) error {
				in := id
				if user == other.ID {
					in = theirs.ID
				}
				return tx.CreateDocument(ctx, user, in,
					&parley.Document{Name: "D", Type: parley.TXT, Links: []string{}, Size: size})
			}
		}
		for _, c := range []struct {
			limit, words string
			has          int // how many there are already
			make         func(ctx context.Context, tx *store.Tx, user int64) error
		}{
			{"assistants", "assistants", 1, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.CreateAssistant(ctx, user, &parley.Assistant{Name: "A", Type: "inbound", Mode: "pipeline"})
			}},
			{"tools", "tools", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.CreateTool(ctx, user, &parley.Tool{Name: strings.Repeat("a", n+1), Method: "GET",
					Schema: []parley.ToolParam{}})
			}},
			{"campaigns", "campaigns", 1, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.CreateCampaign(ctx, user,
					&parley.Campaign{Name: "C", AssistantID: own.ID, Timezone: "UTC", MaxCallsInParallel: 1,
						AllowedDays: []string{}})
			}},
			{"knowledgebases", "knowledgebases", 1, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.CreateKnowledgebase(ctx, user, &parley.Knowledgebase{Name: "K"})
			}},
			{"documents", "documents", 0, document(kb.ID, 0)},
			{"document_mb", "MB of documents", 0, document(kb.ID, 1<<20)},
			{"document_readings", "documents to be read a day", 6, document(kb.ID, 0)}, // those from above
			{"numbers", "phone numbers", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.CreateOrder(ctx, user, &parley.NumberOrder{PhoneNumber: next(), CountryCode: "US"})
			}},
			{"trunks", "SIP trunks", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				t := &parley.Trunk{Name: "T", PhoneNumber: next(), AllowedInboundIPs: []string{}}
				tx.SealPassword(t, "")
				return tx.CreateTrunk(ctx, user, t)
			}},
			{"leads", "leads", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				_, err := tx.AddLeads(ctx, user, camp.ID, []*parley.Lead{{PhoneNumber: next()}}, false)
				return err
			}},
			{"blacklist", "numbers on the blacklist", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				_, err := tx.AddToBlacklist(ctx, user, next())
				return err
			}},
			{"api_keys", "API keys", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.CreateKey(ctx, &parley.Key{UserID: user, Kind: parley.APIKey, Name: "k",
					Hash: []byte(next())})
			}},
			{"stored_mb", "MB of assistants", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.CreateTest(ctx, user, &parley.Test{AssistantID: own.ID, Name: next(), Channel: "chat", Script: strings.Repeat("x", 1000_000)})
			}},
			{"conversations", "new conversations a day", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.Meter(ctx, user, parley.Now(), "conversations")
			}},
			{"test_conversations", "free test conversations a day", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.Meter(ctx, user, parley.Now(), "test_conversations")
			}},
			{"webhook_tests", "test webhooks and alerts a day", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.EnqueueTest(ctx, user, &parley.Delivery{Event: "call.completed",
					URL: "https://example.com/" + next(), Payload: "{}"})
			}},
			{"test_messages", "free messages in test conversations a day", 0, func(ctx context.Context, tx *store.Tx, user int64) error {
				return tx.Meter(ctx, user, parley.Now(), "test_messages")
			}},
		} {
			plan = plenty()
			one := func(user int64) error {
				return db.Write(t.Context(), func(ctx context.Context,
					tx *store.Tx) error {
					return c.make(ctx, tx, user)
				})
			}
			*plan.Limits()[c.limit] = c.has + 2
			for range 2 {
				if err := one(u.ID); err != nil {
					t.Errorf("%s: within the limit: %v", c.limit, err)
				}
				n++
			}
			for range 2 { // a refused attempt is not counted
				if err := one(u.ID); !forbidden(err, fmt.Sprintf("Your plan allows %d %s", c.has+2, c.words)) {
					t.Errorf("%s: one too many: %v", c.limit, err)
				}
			}
			*plan.Limits()[c.limit] = c.has + 3
			if err := one(u.ID); err != nil {
				t.Errorf("%s: on a larger plan: %v", c.limit, err)
			}
			*plan.Limits()[c.limit] = 1
			// another account can't make one, or has some already
			if slices.Contains([]string{"leads", "campaigns", "knowledgebases", "document_readings"}, c.limit) {
				continue
			}
			n++
			if err := one(other.ID); err != nil {
				t.Errorf("%s: another account: %v", c.limit, err)
			}
		}
		if len(names) != 1 || !names[u.Plan] {
			t.Errorf("asked for plans %v", names)
		}
	}, store.Rules{Plan: func(name string) parley.Plan { names[name] = true; return plan }})
}

// plenty is a plan whose limits nothing here reaches.
func plenty() (plan parley.Plan) {
	for _, p := range plan.Limits() {
		*p = 1000
	}
	return plan
}

// The daily counts over some weeks: each day begins at zero, and a node whose clock is behind does not reopen an old
// day.
func TestDayCount(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		count := func(at time.Time) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.Meter(ctx, u.ID, parley.At(at), "test_messages")
			})
		}
		midnight := time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC)
		for range 21 {
			for i, at := range []time.Duration{0, 12 * time.Hour, 24*time.Hour - time.Microsecond} {
				if err := count(midnight.Add(at)); err != nil {
					t.Errorf("%v, number %d: %v", midnight, i, err)
				}
			}
			for _, at := range []time.Duration{23 * time.Hour, -time.Hour} {
				if err := count(midnight.Add(at)); !forbidden(err, "3 free messages in test conversations a day") {
					t.Errorf("%v, one too many: %v", midnight, err)
				}
			}
			midnight = midnight.AddDate(0, 0, 1)
		}
	}, store.Rules{Plan: func(string) parley.Plan { return parley.Plan{TestMessages: 3} }})
}

// Deleted rows do not count.
func TestPlanRoom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		first := assistant(t, db, u.ID, nil)
		create := func() error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.CreateAssistant(ctx, u.ID, &parley.Assistant{Name: "A", Type: "inbound", Mode: "pipeline"})
			})
		}
		if err := create(); !forbidden(err, "1 assistants") {
			t.Errorf("a second one: %v", err)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteAssistant(ctx, u.ID, first.ID) })
		if err := create(); err != nil {
			t.Errorf("after one was deleted: %v", err)
		}
	}, store.Rules{Plan: func(string) parley.Plan { return parley.Plan{Assistants: 1, StoredMB: 1} }})
}

// An account that signed up by itself must pay before it costs anything; its first credit makes it an ordinary account.
func TestSignedUp(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := &parley.User{Name: "N", Email: "new@example.com", PasswordHash: "-", Timezone: "UTC",
			Plan: parley.TrialPlan, SignedUpAt: parley.Now()}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateUser(ctx, u) })
		order := func() error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				// the rent is zero
				return errors.Join(tx.CreateOrder(ctx, u.ID,
					&parley.NumberOrder{PhoneNumber: "+14155550100", CountryCode: "US"}),
					tx.AskCallerID(ctx, u.ID, &parley.CallerID{PhoneNumber: "+14155550101", Code: "1"}))
			})
		}
		var e *parley.Error
		if err := order(); !errors.As(err, &e) || e.Kind != parley.Payment {
			t.Errorf("before it paid: %v", err)
		}
		credit := func(amount parley.Money, reference string) *parley.User {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Post(ctx, u.ID, &parley.LedgerEntry{Kind: parley.Credit, Amount: amount,
					Reference: reference, Description: "x"})
				return err
			})
			now, err := db.User(t.Context(), u.ID)
			if err != nil {
				t.Fatal(err)
			}
			return now
		}
		if now := credit(parley.USD, "a"); now.SignedUpAt != 0 || now.Plan != parley.DefaultPlan {
			t.Errorf("after its first credit: %+v", now)
		}
		if err := order(); err != nil {
			t.Errorf("after it paid: %v", err)
		}
		// A plan that the operator chose is kept.
		u.Plan, u.SignedUpAt = parley.TrialPlan, 0
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, u) })
		if now := credit(parley.USD, "b"); now.Plan != parley.TrialPlan {
			t.Errorf("the operator's plan became %s", now.Plan)
		}
	})
}

// Every name in a plan is a row of the table of limits, and every row that plans set is in a plan. Names are given once.
func TestTableOfLimits(t *testing.T) {
	var plan parley.Plan
	names := map[string]bool{}
	for _, l := range parley.Limits {
		if names[l.Name] {
			t.Errorf("%s is there twice", l.Name)
		}
		names[l.Name] = true
		if l.OfPlan() && plan.Limits()[l.Name] == nil {
			t.Errorf("%s has neither a value nor a plan that sets it", l.Name)
		}
		if l.Setting != "" && l.Most != 0 || l.What == "" || l.Span == "" {
			t.Errorf("%+v", l)
		}
	}
	for name := range plan.Limits() {
		if !names[name] {
			t.Errorf("plans set %s, which is not in the table of limits (limit.go)", name)
		} else if !parley.LimitNamed(name).OfPlan() {
			t.Errorf("plans set %s, and the table says otherwise", name)
		}
	}
}

// What is counted by the minute is refused until the next one, and says when that is. What is taken for a day is given
// back.
func TestCounts(t *testing.T) {
	plan := plenty()
	plan.TestMinutes = 12
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, 0)
		at := time.Date(2026, 3, 27, 10, 0, 50, 0, time.UTC)
		count := func(at time.Time) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.Meter(ctx, u.ID, parley.At(at), parley.LimitTrunkCheckRate)
			})
		}
		for range parley.LimitNamed(parley.LimitTrunkCheckRate).Most {
			if err := count(at); err != nil {
				t.Fatal(err)
			}
		}
		var late *parley.LimitError
		if err := count(at); !errors.As(err, &late) || late.RetryAfter != 10 ||
			!strings.Contains(late.Detail, "10 trunk checks per minute. Go on in 10 s.") {
			t.Errorf("one too many: %v, %+v", err, late)
		}
		if err := count(at.Add(10 * time.Second)); err != nil {
			t.Errorf("in the next minute: %v", err)
		}
		take := func(n int64, at time.Time) (taken int64, err error) {
			err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				taken, err = tx.TakeDay(ctx, u.ID, parley.LimitTestMinutes, n, parley.At(at))
				return err
			})
			return taken, err
		}
		give := func(n int64, at time.Time) {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.GiveDay(ctx, u.ID, parley.LimitTestMinutes, n, parley.At(at))
			})
		}
		for _, c := range []struct{ want, get int64 }{{10, 10}, {10, 2}, {1, 0}} {
			if got, err := take(c.want, at); got != c.get || c.get == 0 && !forbidden(err, "12 minutes of test calls a day") {
				t.Errorf("of %d there were %d left: %v", c.want, got, err)
			}
		}
		give(7, at)
		give(7, at.AddDate(0, 0, -1)) // of a day that is over
		if got, err := take(10, at); got != 7 || err != nil {
			t.Errorf("after 7 were given back, %d: %v", got, err)
		}
		if got, err := take(10, at.AddDate(0, 0, 1)); got != 10 || err != nil {
			t.Errorf("the next day %d: %v", got, err)
		}
	}, store.Rules{Plan: func(string) parley.Plan { return plan }})
}

// Reports are claimed by account: whose backlog is long holds up nobody else.
func TestReportsOfAccounts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		due := func(n int, at parley.Time) *parley.User {
			u := storetest.User(t, db, 0)
			a := spoken(t, db, u.ID)
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				for range n {
					c := &parley.Call{AssistantID: a.ID, Type: parley.CallWeb, Status: parley.CallCompleted, EndedAt: 1, ReportDue: at}
					if err := tx.CreateCall(ctx, u.ID, c); err != nil {
						return err
					}
				}
				return nil
			})
			return u
		}
		now := parley.Now()
		many, one, _ := due(40, 1), due(1, 2), due(1, now.Add(time.Hour))
		users, err := db.ReportsDue(t.Context(), now)
		if slices.Sort(users); err != nil || !slices.Equal(users, []int64{many.ID, one.ID}) {
			t.Fatalf("due are those of %v: %v", users, err)
		}
		write(t, db, func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.ClaimReports(ctx, one.ID, 8, now, now.Add(time.Minute))
			if len(list) != 1 || list[0].UserID != one.ID {
				t.Errorf("claimed %+v", list)
			}
			some, wrong := tx.ClaimReports(ctx, many.ID, 8, now, now.Add(time.Minute))
			if len(some) != 8 {
				t.Errorf("claimed %d of 40", len(some))
			}
			return errors.Join(err, wrong)
		})
		if users, err := db.ReportsDue(t.Context(), now); err != nil || !slices.Equal(users, []int64{many.ID}) {
			t.Errorf("then those of %v: %v", users, err)
		}
	})
}

// An account has so many members and open invitations, and so many sessions, of which the oldest ends for another.
func TestMembersAndSessions(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	db := storetest.Open(t, o)
	u := storetest.User(t, db, 0)
	invite := func(n int) error {
		return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.CreateInvitation(ctx, &parley.Invitation{UserID: u.ID, Email: fmt.Sprintf("m%d@example.com", n), Name: "M",
				Role: parley.RoleAgent, ExpiresAt: parley.Now().Add(time.Hour), Hash: []byte(fmt.Sprint(n))})
		})
	}
	most := int(parley.LimitNamed("members").Most)
	for n := range most {
		if err := invite(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := invite(most); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d members and invitations", most)) {
		t.Errorf("one too many: %v", err)
	}
	u = storetest.User(t, db, 0)
	m := &parley.Member{UserID: u.ID, Name: "M", Email: "member@example.com", Role: parley.RoleAgent}
	write(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateMember(ctx, m); err != nil {
			return err
		}
		for _, who := range []int64{parley.Owner, m.ID} { // a member's end nobody else's
			for n := range int(parley.LimitNamed("sessions").Most) + 3 {
				k := &parley.Key{UserID: u.ID, MemberID: who, Kind: parley.Session, Name: "s", Hash: []byte(fmt.Sprint("s", who, n))}
				if err := tx.CreateKey(ctx, k); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for who, name := range map[int64]string{parley.Owner: "sessions", m.ID: "member_sessions"} {
		var n int64
		if storetest.Query(t, o, &n, "SELECT count(*) FROM keys WHERE user_id = ? AND member_id = ? AND kind = 'session'", u.ID, who); n !=
			parley.LimitNamed(name).Most {
			t.Errorf("%d %s", n, name)
		}
	}
}
