package store

import (
	"context"

	"parley/internal/parley"
)

// Notes are a conversation's notes, oldest first.
func (q Query) Notes(ctx context.Context, conversationID string) ([]parley.Note, error) {
	list := []parley.Note{}
	return list, q.q.NewSelect().Model(&list).Where("conversation_id = ?", conversationID).Order("id").Scan(ctx)
}

// AddNote stores a note of a conversation, which must be locked.
func (tx *Tx) AddNote(ctx context.Context, n *parley.Note) error {
	var there int
	if err := tx.q.NewRaw("SELECT count(*) FROM conversation_notes WHERE conversation_id = ?", n.ConversationID).
		Scan(ctx, &there); err != nil {
		return err
	}
	if there >= parley.MaxNotes {
		return parley.LimitNamed("notes").Refuse(parley.MaxNotes, 0)
	}
	n.ID, n.CreatedAt = 0, parley.DateTime(parley.Now())
	_, err := tx.q.NewInsert().Model(n).Exec(ctx)
	return err
}

// DeleteNote removes a note of one of the user's conversations.
func (tx *Tx) DeleteNote(ctx context.Context, userID int64, conversationID string, id int64) error {
	res, err := tx.q.NewDelete().Model((*parley.Note)(nil)).
		Where("id = ? AND conversation_id IN (SELECT id FROM conversations WHERE id = ? AND user_id = ?)",
			id, conversationID, userID).Exec(ctx)
	return one(res, err, "Note not found")
}

const cannedNotFound = "Canned answer not found"

// CannedAnswers are the user's canned answers, by name.
func (q Query) CannedAnswers(ctx context.Context, userID int64) ([]parley.CannedAnswer, error) {
	list := []parley.CannedAnswer{}
	return list, q.q.NewSelect().Model(&list).Where("user_id = ?", userID).Order("name").Scan(ctx)
}

// CannedAnswer is one of them.
func (q Query) CannedAnswer(ctx context.Context, userID, id int64) (*parley.CannedAnswer, error) {
	a := new(parley.CannedAnswer)
	return a, notFound(q.q.NewSelect().Model(a).Where("id = ? AND user_id = ?", id, userID).Scan(ctx), cannedNotFound)
}

// SaveCannedAnswer stores a canned answer, a new one where it has no id.
func (tx *Tx) SaveCannedAnswer(ctx context.Context, userID int64, a *parley.CannedAnswer) error {
	if err := tx.LockUser(ctx, userID); err != nil {
		return err
	}
	a.UpdatedAt = parley.DateTime(parley.Now())
	if a.ID != 0 {
		res, err := tx.q.NewUpdate().Model(a).Column("name", "content", "updated_at").Where("id = ? AND user_id = ?", a.ID, userID).Exec(ctx)
		return tx.note(userID, parley.AuditChanged, parley.AuditCanned, a.ID, a, one(res, err, cannedNotFound))
	}
	if err := tx.room(ctx, userID, answerLimit, 1); err != nil {
		return err
	}
	a.UserID, a.CreatedAt = userID, a.UpdatedAt
	_, err := tx.q.NewInsert().Model(a).Exec(ctx)
	return tx.note(userID, parley.AuditCreated, parley.AuditCanned, a.ID, a, err)
}

// DeleteCannedAnswer removes a canned answer.
func (tx *Tx) DeleteCannedAnswer(ctx context.Context, userID, id int64) error {
	return tx.drop(ctx, userID, parley.AuditCanned, id, cannedNotFound,
		"DELETE FROM canned_answers WHERE id = ? AND user_id = ? RETURNING name", id, userID)
}
