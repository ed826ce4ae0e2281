package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// talk stores a conversation of n messages.
func talk(t *testing.T, db *store.DB, a *parley.Assistant, phone string, n int) *parley.Conversation {
	t.Helper()
	c := &parley.Conversation{UserID: a.UserID, AssistantID: a.ID, Type: parley.TestConversation,
		Variables: map[string]string{}, CustomerPhone: &phone}
	write(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateConversation(ctx, c, ""); err != nil {
			return err
		}
		for i := range n {
			if err := tx.AddMessage(ctx, &parley.Message{ConversationID: c.ID, Role: parley.RoleUser,
				Content: fmt.Sprint(i)}, 0, 0); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

// steps runs a removal step by step. It returns how many steps there were, and how many messages of some conversations
// the largest step took.
func steps(t *testing.T, db *store.DB, left func() int, step func(context.Context, *store.Tx) (bool, error)) (n,
	largest int) {
	t.Helper()
	before := left()
	err := db.InSteps(t.Context(), func(ctx context.Context, tx *store.Tx) (bool, error) {
		tx.AfterCommit(func() {
			now := left()
			n, largest, before = n+1, max(largest, before-now), now
		})
		return step(ctx, tx)
	})
	if err != nil {
		t.Error(err)
	}
	return n, largest
}

// A large removal runs in steps that block nobody, and leaves other rows alone.
func TestRemovingInSteps(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, 0), storetest.User(t, db, 0)
		mine, theirs := spoken(t, db, u.ID), spoken(t, db, other.ID)
		const phone = "+12025550123"
		long, kept := talk(t, db, mine, phone, 2*store.Step+1), talk(t, db, theirs, phone, 3)
		short := make([]*parley.Conversation, store.Step/10+1)
		for i := range short {
			short[i] = talk(t, db, mine, phone, 1)
		}
		for i := range store.Step + 1 {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.CreateSMS(ctx, u.ID, &parley.SMS{From: "+12025550100", To: phone, Status: parley.SMSSent,
					SID: fmt.Sprint(db.SQLite(), i)})
			})
		}
		left := func() (n int) {
			for _, c := range append(short, long) {
				list, err := db.Messages(t.Context(), c.ID)
				if err != nil {
					t.Fatal(err)
				}
				n += len(list)
			}
			return n
		}
		n, largest := steps(t, db, left, func(ctx context.Context, tx *store.Tx) (bool, error) {
			_, more, err := tx.EraseCustomer(ctx, u.ID, phone)
			_, moreSMS, err2 := tx.EraseSMS(ctx, u.ID, phone)
			return more || moreSMS, errors.Join(err, err2)
		})
		if left() != 0 || n < 4 || largest > store.Step {
			t.Errorf("%d messages are left after %d steps, the largest of %d", left(), n, largest)
		}
		for _, c := range append(short, long) {
			if _, err := db.Conversation(t.Context(), u.ID, c.ID); !store.IsNotFound(err) {
				t.Fatalf("%s is left: %v", c.ID, err)
			}
		}
		if _, total, err := db.SMSPage(t.Context(), u.ID, store.SMSFilter{},
			store.Page{Number: 1, Size: 1}); err != nil || total != 0 {
			t.Errorf("%d text messages are left: %v", total, err)
		}
		if list, err := db.Messages(t.Context(), kept.ID); err != nil || len(list) != 3 {
			t.Errorf("of another's %d are left: %v", len(list), err)
		}
		// By age.
		old := talk(t, db, mine, phone, store.Step+1)
		long, short = old, nil
		n, largest = steps(t, db, left, func(ctx context.Context, tx *store.Tx) (bool, error) {
			return tx.ForgetConversations(ctx, parley.Now()+1)
		})
		if _, err := db.Conversation(t.Context(), u.ID, old.ID); !store.IsNotFound(err) || n < 2 ||
			largest > store.Step {
			t.Errorf("%v after %d steps, the largest of %d", err, n, largest)
		}
	})
}

// An interrupted step does not end the removal: the next call goes on.
func TestStepsEnd(t *testing.T) {
	db := storetest.SQLite(t)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := db.InSteps(ctx, func(context.Context, *store.Tx) (bool, error) {
		if n++; n == 3 {
			cancel()
		}
		return true, nil
	})
	if !errors.Is(err, context.Canceled) || n != 3 {
		t.Errorf("%d steps: %v", n, err)
	}
	broken := errors.New("broken")
	if err := db.InSteps(t.Context(), func(context.Context, *store.Tx) (bool, error) {
		return true,
			broken
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// Claims and leases end when they should, by the test's own clock.
func TestClaimsLapse(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Options(t, engine)
			synctest.Test(t, func(t *testing.T) { claimsLapse(t, storetest.Open(t, o)) })
		})
	}
}

func claimsLapse(t *testing.T, db *store.DB) {
	u := storetest.User(t, db, 0)
	a := spoken(t, db, u.ID)
	campaign := &parley.Campaign{Name: "c", AssistantID: a.ID, AllowedDays: []string{}}
	d := &parley.Delivery{Event: parley.EventBalanceLow, URL: "https://example.com", Status: parley.DeliveryPending,
		Payload: "{}"}
	sms := &parley.SMS{From: "+12025550100", To: "+12025550123", Status: parley.SMSQueued}
	k, doc := &parley.Knowledgebase{Name: "k"}, &parley.Document{Name: "d"}
	write(t, db, func(ctx context.Context, tx *store.Tx) error {
		err := errors.Join(tx.CreateCampaign(ctx, u.ID, campaign), tx.EnqueueDelivery(ctx, u.ID, d),
			tx.CreateSMS(ctx, u.ID, sms), tx.CreateKnowledgebase(ctx, u.ID, k))
		if err == nil {
			_, err = tx.AddLeads(ctx, u.ID, campaign.ID, []*parley.Lead{{PhoneNumber: "+12025550123"}}, false)
		}
		return errors.Join(err, tx.CreateDocument(ctx, u.ID, k.ID, doc))
	})
	// Each call says whether it got the claim.
	claims := map[string]func(ctx context.Context, tx *store.Tx, now, until parley.Time) (bool, error){
		"lead": func(ctx context.Context, tx *store.Tx, now, until parley.Time) (bool, error) {
			list, err := tx.ClaimLeads(ctx, campaign.ID, 5, uuid.NewString(), now, until)
			return len(list) == 1, err
		},
		"delivery": func(ctx context.Context, tx *store.Tx, now, until parley.Time) (bool, error) {
			list, err := tx.ClaimDeliveries(ctx, d.Lane, 5, now, until)
			return len(list) == 1, err
		},
		"sms": func(ctx context.Context, tx *store.Tx, now, until parley.Time) (bool, error) {
			_, mine, err := tx.ClaimSMS(ctx, sms.ID, until.Sub(now))
			return mine, err
		},
		"document": func(ctx context.Context, tx *store.Tx, now, until parley.Time) (bool, error) {
			got, err := tx.LeaseDocument(ctx, doc.ID, doc.Run, until.Sub(now))
			return got != nil, err
		},
	}
	claim := func(when string, want bool) {
		t.Helper()
		for what, take := range claims {
			var mine bool
			now := parley.Now()
			write(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				mine, err = take(ctx, tx, now, now.Add(30*time.Second))
				return err
			})
			if mine != want {
				t.Errorf("%s: a %s is claimed: %v", when, what, mine)
			}
		}
	}
	claim("at first", true)
	claim("at once again", false)
	time.Sleep(29 * time.Second)
	claim("a second before the end", false)
	if lapsed, err := db.LapsedDocuments(t.Context(), parley.Now(), 10); err != nil || len(lapsed) != 0 {
		t.Errorf("a document has lapsed early: %v, %v", lapsed, err)
	}
	time.Sleep(2 * time.Second)
	if lapsed, err := db.LapsedDocuments(t.Context(), parley.Now(), 10); err != nil || len(lapsed) != 1 {
		t.Errorf("a document has not lapsed: %v, %v", lapsed, err)
	}
	claim("afterwards", true)
	claim("and again", false)
	time.Sleep(60 * 24 * time.Hour)
	claim("two months later", true)
}
