package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"parley"
)

const conversationNotFound = "Conversation not found"

func (q Query) conversations(model any) *bun.SelectQuery {
	return q.q.NewSelect().Model(model).ModelTableExpr("conversations AS c").ColumnExpr("c.*").
		ColumnExpr("a.uuid AS assistant_uuid, a.name AS assistant_name").Join("JOIN assistants AS a ON a.id = c.assistant_id")
}

// Conversation is one of the user's conversations.
func (q Query) Conversation(ctx context.Context, userID int64, id string) (*parley.Conversation, error) {
	return q.conversation(ctx, func(s *bun.SelectQuery) { s.Where("c.id = ? AND c.user_id = ?", id, userID) })
}

// PublicConversation is the conversation with that id, whoever owns it: its id is its secret.
func (q Query) PublicConversation(ctx context.Context, id string) (*parley.Conversation, error) {
	return q.conversation(ctx, func(s *bun.SelectQuery) { s.Where("c.id = ?", id) })
}

// ConversationForUpdate is PublicConversation, kept from others until the transaction ends.
func (tx *Tx) ConversationForUpdate(ctx context.Context, id string) (*parley.Conversation, error) {
	return tx.conversation(ctx, func(s *bun.SelectQuery) {
		tx.lock(s.Where("c.id = ?", id), "UPDATE OF c")
	})
}

// CustomerConversation is the conversation of an assistant with a customer whom the channel calls identifier.
func (q Query) CustomerConversation(ctx context.Context, assistantID int64, kind parley.ConversationType, identifier string) (*parley.Conversation, error) {
	return q.conversation(ctx, func(s *bun.SelectQuery) {
		s.Where("c.assistant_id = ? AND c.type = ? AND c.external_identifier = ?", assistantID, kind, identifier)
	})
}

func (q Query) conversation(ctx context.Context, which func(*bun.SelectQuery)) (*parley.Conversation, error) {
	c := new(parley.Conversation)
	s := q.conversations(c)
	which(s)
	return c, notFound(s.Scan(ctx), conversationNotFound)
}

// ConversationFilter narrows a list; zero values don't.
type ConversationFilter struct {
	Type        parley.ConversationType
	AssistantID int64
	From, To    parley.Time // To is exclusive
}

// Conversations is a page of the user's conversations, newest first.
func (q Query) Conversations(ctx context.Context, userID int64, f ConversationFilter, p Page) ([]parley.Conversation, int, error) {
	list := []parley.Conversation{}
	ids := q.q.NewSelect().TableExpr("conversations").Where("user_id = ?", userID)
	only(ids, "type", f.Type)
	only(ids, "assistant_id", f.AssistantID)
	between(ids, f.From, f.To)
	total, more, err := pageOf(ctx, ids, p, "seq")
	if err == nil && more {
		err = q.conversations(&list).Where("c.seq IN (?)", ids).OrderExpr("c.seq DESC").Scan(ctx)
	}
	return list, total, err
}

// CreateConversation stores a new conversation, with the assistant's first message where there is one.
func (tx *Tx) CreateConversation(ctx context.Context, c *parley.Conversation, first string) error {
	now := parley.DateTime(parley.Now())
	c.ID, c.AIEnabled, c.CreatedAt, c.UpdatedAt = uuid.NewString(), true, now, now
	if first != "" {
		c.MessageCount = 1
	}
	_, err := tx.q.NewInsert().Model(c).ExcludeColumn("extracted").Exec(ctx)
	if err != nil || first == "" {
		return err
	}
	return tx.insertMessage(ctx, &parley.Message{ConversationID: c.ID, Role: parley.RoleAssistant, Author: parley.AuthorAI, Content: first, CreatedAt: now})
}

func (tx *Tx) insertMessage(ctx context.Context, m *parley.Message) error {
	_, err := tx.q.NewInsert().Model(m).Exec(ctx)
	return err
}

// AddMessage stores a message, counts it and what it cost. The conversation, which must be the transaction's first lock, ends by silence
// at endsAt again.
func (tx *Tx) AddMessage(ctx context.Context, m *parley.Message, cost parley.Money, endsAt parley.Time) error {
	m.CreatedAt = parley.DateTime(parley.Now())
	res, err := tx.q.NewRaw(`UPDATE conversations SET message_count = message_count + 1, total_cost = total_cost + ?, ends_at = ?, ended_at = 0,
		updated_at = ? WHERE id = ?`, cost, endsAt, m.CreatedAt, m.ConversationID).Exec(ctx)
	if err := one(res, err, conversationNotFound); err != nil {
		return err
	}
	return tx.insertMessage(ctx, m)
}

// SettleMessage says that a customer's message waits no longer; false when it did not.
func (tx *Tx) SettleMessage(ctx context.Context, id int64, cost parley.Money, failed bool) (bool, error) {
	return some(tx.q.NewRaw("UPDATE messages SET pending = FALSE, failed = ?, cost = ? WHERE id = ? AND pending", failed, cost, id).Exec(ctx))
}

// Messages are a conversation's messages in order: each reply behind what it answers.
func (q Query) Messages(ctx context.Context, conversationID string) ([]parley.Message, error) {
	list := []parley.Message{}
	err := q.q.NewSelect().Model(&list).Where("conversation_id = ?", conversationID).
		OrderExpr("CASE WHEN turn > 0 THEN turn ELSE id END, id").Scan(ctx)
	return list, err
}

// MessagesAfter are the messages of a conversation with a higher id, by id: what a live listener has not seen.
func (q Query) MessagesAfter(ctx context.Context, conversationID string, id int64) ([]parley.Message, error) {
	list := []parley.Message{}
	err := q.q.NewSelect().Model(&list).Where("conversation_id = ? AND id > ?", conversationID, id).Order("id").Scan(ctx)
	return list, err
}

// Reply is the message that answers another, nil when none does.
func (q Query) Reply(ctx context.Context, conversationID string, turn int64) (*parley.Message, error) {
	return first[parley.Message](ctx, q, func(s *bun.SelectQuery) {
		s.Where("conversation_id = ? AND turn = ?", conversationID, turn).Order("id")
	})
}

// LastAsked is the newest message of the customer's in a conversation, nil when there is none.
func (q Query) LastAsked(ctx context.Context, conversationID string) (*parley.Message, error) {
	return first[parley.Message](ctx, q, func(s *bun.SelectQuery) {
		s.Where("conversation_id = ? AND role = ?", conversationID, parley.RoleUser).Order("id DESC")
	})
}

// Pending is the oldest message of a conversation that waits for its reply, nil when none does.
func (q Query) Pending(ctx context.Context, conversationID string) (*parley.Message, error) {
	return first[parley.Message](ctx, q, func(s *bun.SelectQuery) { s.Where("conversation_id = ? AND pending", conversationID).Order("id") })
}

// Lease makes owner the one who works on a conversation until then, unless another's lease runs; it renews owner's own.
func (tx *Tx) Lease(ctx context.Context, conversationID, owner string, length time.Duration) (bool, error) {
	now := parley.Now()
	return some(tx.q.NewRaw("UPDATE conversations SET lease_owner = ?, lease_until = ? WHERE id = ? AND (lease_until < ? OR lease_owner = ?)",
		owner, now.Add(length), conversationID, now, owner).Exec(ctx))
}

// Unlease ends owner's lease.
func (tx *Tx) Unlease(ctx context.Context, conversationID, owner string) error {
	_, err := tx.q.NewRaw("UPDATE conversations SET lease_owner = '', lease_until = 0 WHERE id = ? AND lease_owner = ?", conversationID, owner).Exec(ctx)
	return err
}

// Unattended are conversations that wait for a node: a message is pending, or silence has ended them, and nobody has the lease.
func (q Query) Unattended(ctx context.Context, now parley.Time, limit int) (ids []string, err error) {
	err = q.q.NewRaw(`SELECT id FROM conversations WHERE ends_at > 0 AND ends_at <= ? AND lease_until < ?
		UNION SELECT c.id FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.pending AND c.lease_until < ?
		LIMIT ?`, now, now, now, limit).Scan(ctx, &ids)
	return ids, err
}

// EndConversation marks a conversation as ended by silence, with what was found out from it; false when it goes on or has ended already.
func (tx *Tx) EndConversation(ctx context.Context, c *parley.Conversation, extracted map[string]any, now parley.Time) (bool, error) {
	c.Extracted, c.EndedAt = extracted, now
	return some(tx.q.NewUpdate().Model(c).Column("extracted", "ended_at").Set("ends_at = 0").
		Where("id = ? AND ends_at > 0 AND ends_at <= ?", c.ID, now).Exec(ctx))
}

// SetAI turns the assistant's replies on or off. Messages that wait when they are turned off wait no longer: somebody else answers.
func (tx *Tx) SetAI(ctx context.Context, userID int64, id string, on bool) error {
	res, err := tx.q.NewRaw("UPDATE conversations SET ai_enabled = ? WHERE id = ? AND user_id = ?", on, id, userID).Exec(ctx)
	return one(res, err, conversationNotFound)
}

// AddVariables puts values over a conversation's variables.
func (tx *Tx) AddVariables(ctx context.Context, c *parley.Conversation, vars map[string]string) error {
	if len(vars) == 0 {
		return nil
	}
	merged := make(map[string]string, len(c.Variables)+len(vars))
	for k, v := range c.Variables {
		merged[k] = v
	}
	for k, v := range vars {
		merged[k] = v
	}
	c.Variables = merged
	_, err := tx.q.NewUpdate().Model(c).Column("variables").Where("id = ?", c.ID).Exec(ctx)
	return err
}

// DeleteConversation removes a conversation with its messages. What it cost stays in the ledger.
func (tx *Tx) DeleteConversation(ctx context.Context, userID int64, id string) error {
	res, err := tx.q.NewDelete().Model((*parley.Conversation)(nil)).Where("id = ? AND user_id = ?", id, userID).Exec(ctx)
	return one(res, err, conversationNotFound)
}

// EraseCustomer removes what the user's conversations hold of a customer, by phone number or the channel's name for them.
func (tx *Tx) EraseCustomer(ctx context.Context, userID int64, identifier string) (conversations int, err error) {
	if err := tx.eraseDeliveries(ctx, userID, identifier); err != nil {
		return 0, err
	}
	if err := tx.eraseLeads(ctx, userID, identifier); err != nil {
		return 0, err
	}
	return count(tx.q.NewDelete().Model((*parley.Conversation)(nil)).
		Where("user_id = ? AND (customer_phone = ? OR external_identifier = ?)", userID, identifier, identifier).Exec(ctx))
}

// ForgetConversations removes conversations that nothing was said in since a time.
func (tx *Tx) ForgetConversations(ctx context.Context, before parley.Time) (int, error) {
	return count(tx.q.NewDelete().Model((*parley.Conversation)(nil)).Where("updated_at < ?", before).Exec(ctx))
}

// LastMessage is the id of a conversation's newest message, 0 when it has none.
func (q Query) LastMessage(ctx context.Context, conversationID string) (id int64, err error) {
	err = q.q.NewRaw("SELECT coalesce(max(id), 0) FROM messages WHERE conversation_id = ?", conversationID).Scan(ctx, &id)
	return id, err
}

// LastMessages are the newest messages of conversations, by the conversations' ids. One that has none is not there.
func (q Query) LastMessages(ctx context.Context, conversationIDs []string) (map[string]parley.Message, error) {
	if len(conversationIDs) == 0 {
		return nil, nil
	}
	var list []parley.Message
	newest := q.q.NewSelect().TableExpr("messages").ColumnExpr("max(id)").Where("conversation_id IN (?)", bun.List(conversationIDs)).GroupExpr("conversation_id")
	if err := q.q.NewSelect().Model(&list).Where("id IN (?)", newest).Scan(ctx); err != nil {
		return nil, err
	}
	last := make(map[string]parley.Message, len(list))
	for _, m := range list {
		last[m.ConversationID] = m
	}
	return last, nil
}
