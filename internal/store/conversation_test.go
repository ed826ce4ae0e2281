package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestLastMessages(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, parley.USD)
		a := assistant(t, db, u.ID, nil)
		var ids []string
		// the initial message, then the customer's
		for _, said := range [][]string{{"Hello", "One", "Two"}, {"Good day"}, {""}} {
			c := &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.WidgetConversation,
				Variables: map[string]string{}}
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateConversation(ctx, c, said[0]); err != nil {
					return err
				}
				for _, text := range said[1:] {
					m := &parley.Message{ConversationID: c.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer,
						Content: text}
					if err := tx.AddMessage(ctx, m, 0, parley.Now()); err != nil {
						return err
					}
				}
				return nil
			})
			ids = append(ids, c.ID)
		}
		last, err := db.LastMessages(t.Context(), append(ids, "no-such-conversation"))
		if err != nil || len(last) != 2 || last[ids[0]].Content != "Two" || last[ids[1]].Content != "Good day" {
			t.Errorf("%+v, %v", last, err)
		}
		if last, err := db.LastMessages(t.Context(), nil); err != nil || len(last) != 0 {
			t.Errorf("of none: %v, %v", last, err)
		}
	})
}

// A variable that a customer sets replaces what they set before, but never what the assistant's owner set; each value
// keeps its source.
func TestAddVariables(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u := storetest.User(t, db, parley.USD)
		a := assistant(t, db, u.ID, nil)
		c := &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.WhatsAppConversation,
			Variables: map[string]string{"customer_name": "eve"}, VisitorNames: "customer_name"}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateConversation(ctx, c, "") })
		for i, step := range []struct {
			vars           map[string]string
			visitors       []string
			owner, visitor string
		}{
			{map[string]string{"customer_name": "Eve"}, []string{"customer_name"}, "map[]", "map[customer_name:Eve]"},
			{map[string]string{"plan": "gold"}, nil, "map[plan:gold]", "map[customer_name:Eve]"},
			{map[string]string{"customer_name": "Ana"}, nil, "map[customer_name:Ana plan:gold]", "map[]"},
			{map[string]string{"customer_name": "Eve", "plan": "free", "mood": "good"},
				[]string{"customer_name", "plan", "mood"}, "map[customer_name:Ana plan:gold]", "map[mood:good]"},
		} {
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.AddVariables(ctx, c, step.vars, step.visitors)
			})
			got, err := db.Conversation(t.Context(), u.ID, c.ID)
			if err != nil {
				t.Fatal(err)
			}
			many := map[string]string{}
			for j := range parley.MaxVariables + 1 {
				many[fmt.Sprint("v", i, "_", j)] = ""
			}
			err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				copied := *c
				return tx.AddVariables(ctx, &copied, many, nil)
			})
			if err == nil || !strings.Contains(err.Error(), "must not have more than 200 entries") {
				t.Errorf("they grow without end: %v", err)
			}
			if owner, visitor := got.GivenBy(); fmt.Sprint(owner) != step.owner || fmt.Sprint(visitor) != step.visitor {
				t.Errorf("step %d: the owner's %v, the customer's %v", i, owner, visitor)
			}
		}
	})
}

// A conversation needs a person while a customer's message in it is unanswered and the assistant will not answer it.
func TestWhatNeedsAPerson(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		u, other := storetest.User(t, db, parley.USD), storetest.User(t, db, parley.USD)
		a := assistant(t, db, u.ID, nil)
		member, owner := int64(7), parley.Owner
		var c *parley.Conversation
		var asked *parley.Message
		said := func(author string, turn int64, pending bool) {
			t.Helper()
			m := &parley.Message{ConversationID: c.ID, Role: parley.RoleAssistant, Author: author, Content: "x", Turn: turn,
				Pending: pending}
			if author == parley.AuthorCustomer {
				m.Role, asked = parley.RoleUser, m
			}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { m.ID = 0; return tx.AddMessage(ctx, m, 0, 0) })
		}
		settle := func(answered bool, failure ...string) {
			t.Helper()
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				var why *string
				if len(failure) > 0 {
					why = &failure[0]
				}
				_, err := tx.SettleMessage(ctx, asked, 0, why, answered)
				return err
			})
		}
		off := func(who *int64) {
			t.Helper()
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.TurnOffAI(ctx, u.ID, c.ID, who) })
		}
		steps := map[string]struct {
			do    func()
			waits bool
			taken *int64
		}{
			"nothing is said":            {func() {}, false, nil},
			"the assistant will answer":  {func() { said("customer", 0, true) }, false, nil},
			"the assistant has answered": {func() { said("customer", 0, true); said("ai", asked.ID, false); settle(true) }, false, nil},
			"nobody will answer":         {func() { said("customer", 0, false) }, true, nil},
			"the reply failed":           {func() { said("customer", 0, true); settle(false, "down") }, true, nil},
			"with an apology":            {func() { said("customer", 0, true); said("ai", asked.ID, false); settle(false, "down") }, true, nil},
			"the next reply did not fail": {func() {
				said("customer", 0, true)
				settle(false, "down")
				said("customer", 0, true)
				said("ai", asked.ID, false)
				settle(true)
			}, false, nil},
			"taken over in the middle": {func() { said("customer", 0, true); off(&owner); settle(false) }, true, &owner},
			"and answered before that is noted": {func() {
				said("customer", 0, true)
				off(&owner)
				said("human", 0, false)
				settle(false)
			}, false, &owner},
			"handed over, not taken": {func() { off(nil); said("customer", 0, false) }, true, nil},
			"taken over after a reply": {func() { said("customer", 0, true); said("ai", asked.ID, false); settle(true); off(&member) },
				false, &member},
			"a person has answered": {func() { off(nil); said("customer", 0, false); said("human", 0, false) }, false, nil},
			"taken over, unanswered of old": {func() {
				off(nil)
				said("customer", 0, false)
				must(t, db, u.ID, c.ID, (*store.Tx).TurnOnAI)
				off(&member)
			}, true, &member},
			"handed back": {func() { off(&owner); said("customer", 0, false); must(t, db, u.ID, c.ID, (*store.Tx).TurnOnAI) }, false,
				nil},
			"nothing left to do": {func() { off(&owner); said("customer", 0, false); must(t, db, u.ID, c.ID, (*store.Tx).Attended) },
				false, &owner},
			"who answers has taken it":                  {func() { off(nil); assign(t, db, c.ID, 7); said("customer", 0, false) }, true, &member},
			"who answers beside the assistant does not": {func() { assign(t, db, c.ID, 7) }, false, nil},
			"who has taken it keeps it":                 {func() { off(&owner); assign(t, db, c.ID, 7) }, false, &owner},
		}
		want, newest := store.Attention{}, parley.Time(0)
		for name, step := range steps {
			c = &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.WidgetConversation, Variables: map[string]string{}}
			write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateConversation(ctx, c, "Hello") })
			before := parley.Now()
			step.do()
			got, err := db.Conversation(t.Context(), u.ID, c.ID)
			if err != nil {
				t.Fatal(err)
			}
			if (got.WaitsSince != 0) != step.waits || step.waits && (got.WaitsSince < before || got.WaitsSince > parley.Now()) {
				t.Errorf("%s: it waits since %v", name, got.WaitsSince)
			}
			if (got.Assignee == nil) != (step.taken == nil) || got.Assignee != nil && *got.Assignee != *step.taken {
				t.Errorf("%s: %v has it", name, got.Assignee)
			}
			if step.waits {
				want.Waiting++
				newest = max(newest, got.WaitsSince)
			}
			if step.waits && step.taken == nil {
				want.Unassigned++
			}
			if step.taken != nil && *step.taken == member {
				want.Mine++
			}
		}
		// the owner writes a test chat: nobody waits in it
		c = &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.TestConversation, Variables: map[string]string{}}
		write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateConversation(ctx, c, "") })
		said("customer", 0, true)
		settle(false, "down")
		said("customer", 0, false)
		off(&owner)

		n, err := db.Attention(t.Context(), u.ID, member)
		if n.Newest < newest || newest == 0 {
			t.Errorf("the newest waits since %v, want %v", n.Newest, newest)
		}
		if n.Newest = 0; err != nil || n != want {
			t.Errorf("%+v, want %+v %v", n, want, err)
		}
		if n, err := db.Attention(t.Context(), other.ID, owner); err != nil || n != (store.Attention{}) {
			t.Errorf("another user's: %+v %v", n, err)
		}
		for part, number := range map[string]int{store.NeedsPerson: want.Waiting, store.Unassigned: want.Unassigned, store.Mine: want.Mine} {
			f := store.ConversationFilter{Type: parley.WidgetConversation}
			f.Narrow(part, member)
			list, total, err := db.Conversations(t.Context(), u.ID, f, store.Page{Number: 1, Size: 100})
			if err != nil || total != number || len(list) != number {
				t.Errorf("%s: %d of %d, want %d %v", part, len(list), total, number, err)
			}
			for i := 1; i < len(list) && part != store.Mine; i++ {
				if list[i].WaitsSince < list[i-1].WaitsSince {
					t.Errorf("%s: what has waited longest is not first", part)
				}
			}
			f.AssistantID = a.ID + 1
			if _, total, err := db.Conversations(t.Context(), u.ID, f, store.Page{Number: 1, Size: 5}); err != nil || total != 0 {
				t.Errorf("%s, of no assistant: %d %v", part, total, err)
			}
		}
		for _, do := range []func(*store.Tx, context.Context, int64, string) error{(*store.Tx).TurnOnAI, (*store.Tx).Attended} {
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return do(tx, ctx, other.ID, c.ID) })
			if !store.IsNotFound(err) {
				t.Errorf("another user's conversation: %v", err)
			}
		}
	})
}

func must(t *testing.T, db *store.DB, userID int64, id string, do func(*store.Tx, context.Context, int64, string) error) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return do(tx, ctx, userID, id) })
}

func assign(t *testing.T, db *store.DB, id string, who int64) {
	t.Helper()
	write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.Assign(ctx, id, who) })
}

// A conversation takes so many messages, and is read with its newest ones. Replies of assistants always have room, and so has a
// conversation of a channel, of which a customer has one for good.
func TestFullConversation(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Options(t, engine)
			db := storetest.Open(t, o)
			u := storetest.User(t, db, parley.USD)
			a := assistant(t, db, u.ID, nil)
			phone := "+4930123456"
			begun := func(identifier *string) *parley.Conversation {
				c := &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.WidgetConversation, Variables: map[string]string{},
					ExternalIdentifier: identifier}
				write(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.CreateConversation(ctx, c, "Hello") })
				return c
			}
			says := func(c *parley.Conversation, author string, n int) error {
				return db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					for i := range n {
						err := tx.AddMessage(ctx, &parley.Message{ConversationID: c.ID, Role: parley.RoleUser, Author: author,
							Content: fmt.Sprint("message ", i)}, 0, parley.Now())
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			c, ofChannel := begun(nil), begun(&phone)
			if err := says(c, parley.AuthorCustomer, 5003); err != nil {
				t.Fatal(err)
			}
			list, err := db.Messages(t.Context(), c.ID)
			if err != nil || len(list) != 5000 || list[0].Content != "message 3" || list[4999].Content != "message 5002" {
				t.Errorf("%d messages are read from %q on: %v", len(list), list[0].Content, err)
			}
			news, err := db.MessagesAfter(t.Context(), c.ID, list[0].ID-4)
			if err != nil || len(news) != 5000 || news[0].Content != "message 0" {
				t.Errorf("%d new messages are read from %q on: %v", len(news), news[0].Content, err)
			}
			storetest.Exec(t, o, fmt.Sprint("UPDATE conversations SET message_count = ", parley.MaxMessages-1))
			for _, author := range []string{parley.AuthorCustomer, parley.AuthorHuman} {
				if err := says(c, author, 2); err == nil || !strings.Contains(err.Error(), "A conversation can have 10000 messages. Start a new one.") {
					t.Errorf("one too many of %s: %v", author, err)
				}
				if err := says(ofChannel, author, 2); err != nil {
					t.Errorf("of a channel: %v", err)
				}
			}
			if err := says(c, parley.AuthorCustomer, 1); err != nil {
				t.Errorf("the last one: %v", err)
			}
			if err := says(c, parley.AuthorAI, 2); err != nil {
				t.Errorf("replies: %v", err)
			}
			if err := says(&parley.Conversation{ID: "no-such"}, parley.AuthorCustomer, 1); !store.IsNotFound(err) {
				t.Errorf("in none: %v", err)
			}
		})
	}
}
