package store_test

import (
	"context"
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
		for _, said := range [][]string{{"Hello", "One", "Two"}, {"Good day"}, {""}} { // the first words, then the customer's
			c := &parley.Conversation{UserID: u.ID, AssistantID: a.ID, Type: parley.WidgetConversation, Variables: map[string]string{}}
			write(t, db, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateConversation(ctx, c, said[0]); err != nil {
					return err
				}
				for _, text := range said[1:] {
					m := &parley.Message{ConversationID: c.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer, Content: text}
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
