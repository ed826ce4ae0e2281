package chat

import (
	"context"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/internal/store"
)

// AddNote stores a note about one of the user's conversations, in its author's words.
func (c *Chat) AddNote(ctx context.Context, userID int64, id, author, text string) (*parley.Note, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if n := utf8.RuneCountInString(text); n == 0 || n > mostWritten {
		return nil, parley.Errorf(parley.Invalid, "A note has between 1 and %d characters.", mostWritten)
	}
	n := &parley.Note{ConversationID: id, Author: author, Content: text}
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Conversation(ctx, userID, id); err != nil {
			return err
		}
		if _, err := tx.ConversationForUpdate(ctx, id); err != nil {
			return err
		}
		return tx.AddNote(ctx, n)
	})
	return n, err
}

const mostWritten = 2000

// DeleteNote removes a note.
func (c *Chat) DeleteNote(ctx context.Context, userID int64, id string, note int64) error {
	return c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteNote(ctx, userID, id, note) })
}

// SaveAnswer stores a canned answer of the user's, whose form was judged: a new one where it has no id.
func (c *Chat) SaveAnswer(ctx context.Context, userID int64, a *parley.CannedAnswer) error {
	made := a.ID == 0
	a.Name = strings.ToLower(a.Name)
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if made {
			a.ID = 0
		}
		return tx.SaveCannedAnswer(ctx, userID, a)
	})
	if store.Violates(err, "canned_answers.user_id, canned_answers.name", "canned_answers_name") {
		var wrong parley.Fields
		wrong.AddText("name", "There is a canned answer with this name.")
		return wrong.Err()
	}
	return err
}

// DeleteAnswer removes a canned answer.
func (c *Chat) DeleteAnswer(ctx context.Context, userID, id int64) error {
	return c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteCannedAnswer(ctx, userID, id) })
}
