package chat

import (
	"context"
	"strings"
	"unicode/utf8"

	"parley/internal/form"
	"parley/internal/parley"
	"parley/internal/store"
)

// AddNote stores a note about one of the user's conversations, in its author's words.
func (c *Chat) AddNote(ctx context.Context, userID int64, id, author, text string) (*parley.Note, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if n := utf8.RuneCountInString(text); n == 0 || n > maxWritten {
		return nil, parley.Errorf(parley.Invalid, "A note must have 1 to %d characters.", maxWritten)
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

const maxWritten = 2000

// DeleteNote removes a note.
func (c *Chat) DeleteNote(ctx context.Context, userID int64, id string, note int64) error {
	return c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteNote(ctx, userID, id, note) })
}

// AddAnswer makes a canned answer of the user's.
func (c *Chat) AddAnswer(ctx context.Context, userID int64, body map[string]any) (*parley.CannedAnswer, error) {
	return c.saveAnswer(ctx, userID, body,
		func(context.Context, *store.Tx) (*parley.CannedAnswer, error) { return &parley.CannedAnswer{}, nil })
}

// ChangeAnswer changes a canned answer to what body says.
func (c *Chat) ChangeAnswer(ctx context.Context, userID, id int64, body map[string]any) (*parley.CannedAnswer, error) {
	return c.saveAnswer(ctx, userID, body, func(ctx context.Context, tx *store.Tx) (*parley.CannedAnswer, error) {
		return tx.CannedAnswer(ctx, userID, id)
	})
}

func (c *Chat) saveAnswer(ctx context.Context, userID int64, body map[string]any,
	find func(context.Context, *store.Tx) (*parley.CannedAnswer, error)) (a *parley.CannedAnswer, err error) {
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if a, err = find(ctx, tx); err != nil {
			return err
		}
		var in parley.CannedAnswerInput
		if err := form.Bind(body, &in, true).Err(); err != nil {
			return err
		}
		a.Name, a.Content = strings.ToLower(in.Name), strings.ReplaceAll(in.Content, "\r\n", "\n")
		return tx.SaveCannedAnswer(ctx, userID, a)
	})
	if store.IsSecondAnswer(err) {
		var wrong parley.Fields
		wrong.AddText("name", "There is already a canned answer with this name.")
		err = wrong.Err()
	}
	return a, err
}

// DeleteAnswer removes a canned answer.
func (c *Chat) DeleteAnswer(ctx context.Context, userID, id int64) error {
	return c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteCannedAnswer(ctx, userID, id) })
}
