package store

import (
	"context"
	"time"

	"parley/internal/parley"
)

// Writes notes that somebody writes a reply in a conversation for a while, by the database's clock. Those who have stopped are forgotten.
func (tx *Tx) Writes(ctx context.Context, conversationID string, by parley.Person, lasts time.Duration) error {
	_, err := tx.q.NewRaw("DELETE FROM writers WHERE conversation_id = ? AND until < ?", conversationID, tx.clock()).Exec(ctx)
	if err != nil {
		return err
	}
	_, err = tx.q.NewRaw(`INSERT INTO writers (conversation_id, person, name, until) VALUES (?, ?, ?, ? + ?)
		ON CONFLICT (conversation_id, person) DO UPDATE SET name = EXCLUDED.name, until = EXCLUDED.until`,
		conversationID, by.ID, by.Name, tx.clock(), lasts.Microseconds()).Exec(ctx)
	return err
}

// StopsWriting notes that somebody has sent what they wrote.
func (tx *Tx) StopsWriting(ctx context.Context, conversationID string, person int64) error {
	_, err := tx.q.NewRaw("DELETE FROM writers WHERE conversation_id = ? AND person = ?", conversationID, person).Exec(ctx)
	return err
}

// Writers returns the names of those who write in one of a user's conversations now, besides one person.
func (q Query) Writers(ctx context.Context, userID int64, conversationID string, besides int64) (names []string, err error) {
	err = q.q.NewRaw(`SELECT w.name FROM writers AS w JOIN conversations AS c ON c.id = w.conversation_id
		WHERE c.user_id = ? AND w.conversation_id = ? AND w.person <> ? AND w.until >= ? ORDER BY w.name`,
		userID, conversationID, besides, q.clock()).Scan(ctx, &names)
	return names, err
}
