package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley"
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
			for j := range parley.MostVariables + 1 {
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
