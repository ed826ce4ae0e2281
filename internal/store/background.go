package store

import (
	"context"
	"encoding/json"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// BackgroundTool is an asynchronous tool of a chat, from its start until its answer is in the record and the assistant has spoken of it.
type BackgroundTool struct {
	bun.BaseModel `bun:"background_tools"`

	ConversationID string
	N              int   // which of the conversation's
	UserID         int64 // the conversation's
	MessageID      int64 // the customer's message in whose turn it was started
	Name           string
	Started        string      // what the model was told at the start: the result of the call in the record
	DueAt          parley.Time // when it is looked at: once it has answered, or when nobody waits for it any more
	Answer         *string     // nil: none, or not yet
	Attempts       int         // at speaking of it
}

// Result is what the tool answered, or that nobody knows.
func (t *BackgroundTool) Result() string {
	if t.Answer == nil {
		return CutOff
	}
	return *t.Answer
}

// The bounds of tools that run in the background of chats.
const (
	MaxBackground        = 8   // of a conversation
	maxAccountBackground = 200 // of an account's chats
)

// StartBackground stores a tool that is about to run, and sets its number; false where too many run.
func (tx *Tx) StartBackground(ctx context.Context, t *BackgroundTool, started func(n int) string) (bool, error) {
	if _, err := tx.ConversationForUpdate(ctx, t.ConversationID); err != nil {
		return false, err
	}
	var running, last int
	err := tx.q.NewRaw(`SELECT count(*), coalesce(max(n), 0) FROM background_tools WHERE conversation_id = ?`, t.ConversationID).
		Scan(ctx, &running, &last)
	if err != nil || running >= MaxBackground {
		return false, err
	}
	ofAccount, err := tx.CountBackground(ctx, t.UserID)
	if err != nil || ofAccount >= maxAccountBackground {
		return false, err
	}
	t.N = last + 1
	t.Started = started(t.N)
	_, err = tx.q.NewInsert().Model(t).Exec(ctx)
	return err == nil, err
}

// CountBackground is how many tools run in the background of an account's chats, or have answered and nobody has spoken of them.
func (q Query) CountBackground(ctx context.Context, userID int64) (n int, err error) {
	err = q.q.NewRaw("SELECT count(*) FROM background_tools WHERE user_id = ?", userID).Scan(ctx, &n)
	return n, err
}

// AnswerBackground stores what a tool has answered, nil where it was cut off: it is due now.
func (tx *Tx) AnswerBackground(ctx context.Context, t *BackgroundTool, answer *string) error {
	_, err := tx.q.NewRaw("UPDATE background_tools SET answer = ?, due_at = ? WHERE conversation_id = ? AND n = ? "+
		"AND due_at = ? AND answer IS NULL",
		answer, parley.Now(), t.ConversationID, t.N, t.DueAt).Exec(ctx)
	return err
}

// DueBackground are the tools of a conversation that have answered, or will answer no more, in the order of their start.
func (q Query) DueBackground(ctx context.Context, conversationID string) (list []BackgroundTool, err error) {
	err = q.q.NewSelect().Model(&list).Where("conversation_id = ? AND due_at <= ?", conversationID, parley.Now()).Order("n").Scan(ctx)
	return list, err
}

// TryBackground counts an attempt to speak of tools.
func (tx *Tx) TryBackground(ctx context.Context, list []BackgroundTool) error {
	for i := range list {
		list[i].Attempts++
		_, err := tx.q.NewRaw("UPDATE background_tools SET attempts = attempts + 1 WHERE conversation_id = ? AND n = ?", list[i].ConversationID,
			list[i].N).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// EndBackground puts the answers of tools into the record, in the place of the word that they were started, and forgets the tools; false
// where another node has done so. The conversation must be the transaction's first lock.
func (tx *Tx) EndBackground(ctx context.Context, list []BackgroundTool) (bool, error) {
	for i := range list {
		gone, err := some(tx.q.NewRaw("DELETE FROM background_tools WHERE conversation_id = ? AND n = ?", list[i].ConversationID,
			list[i].N).Exec(ctx))
		if err == nil && gone {
			err = tx.recordBackground(ctx, &list[i])
		}
		if err != nil || !gone {
			return false, err
		}
	}
	return true, nil
}

func (tx *Tx) recordBackground(ctx context.Context, t *BackgroundTool) error {
	// the message has a reply, or none came, and its calls stand by themselves
	if _, err := tx.q.NewRaw("UPDATE message_calls SET result = ? WHERE message_id = ? AND result = ?", t.Result(), t.MessageID,
		t.Started).Exec(ctx); err != nil {
		return err
	}
	var replies []parley.Message
	if err := tx.q.NewSelect().Model(&replies).Where("conversation_id = ? AND turn = ?", t.ConversationID, t.MessageID).Scan(ctx); err != nil {
		return err
	}
	for _, m := range replies {
		changed := false
		for i := range m.FunctionCalls {
			if m.FunctionCalls[i].Result == t.Started {
				m.FunctionCalls[i].Result, changed = t.Result(), true
			}
		}
		if changed {
			calls, err := json.Marshal(m.FunctionCalls)
			if err != nil {
				return err
			}
			if _, err := tx.q.NewRaw("UPDATE messages SET function_calls = ? WHERE id = ?", string(calls), m.ID).Exec(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
