package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"parley/internal/lang"
	"parley/internal/parley"
)

const conversationNotFound = "Conversation not found"

// assigneeName is the name of who has taken a conversation, as auth.Who.Author would say it.
const assigneeName = `coalesce(CASE WHEN c.assignee = 0 THEN (SELECT coalesce(nullif(u.name, ''), u.email) FROM users AS u WHERE u.id = c.user_id)
	WHEN c.assignee > 0 THEN (SELECT coalesce(nullif(m.name, ''), m.email) FROM members AS m WHERE m.id = c.assignee AND m.user_id = c.user_id)
	END, '') AS assignee_name`

func (q Query) conversations(model any) *bun.SelectQuery {
	return q.q.NewSelect().Model(model).ModelTableExpr("conversations AS c").ColumnExpr("c.*").
		ColumnExpr("a.uuid AS assistant_uuid, a.name AS assistant_name").ColumnExpr(assigneeName).Join(
		"JOIN assistants AS a ON a.id = c.assistant_id")
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

// KeepVendors stores what a conversation used of vendors, and which vendors stood in for which.
func (tx *Tx) KeepVendors(ctx context.Context, c *parley.Conversation) error {
	_, err := tx.q.NewUpdate().Model(c).Column("vendor_uses", "vendor_switches").Where("id = ?", c.ID).Exec(ctx)
	return err
}

// CustomerConversation is the conversation of an assistant with a customer whom the channel calls identifier.
func (q Query) CustomerConversation(ctx context.Context, assistantID int64, kind parley.ConversationType,
	identifier string) (*parley.Conversation, error) {
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
	Type          parley.ConversationType
	AssistantID   int64
	CustomerPhone string      // E.164
	SenderPhone   string      // of the WhatsApp sender that it goes over
	Identifier    string      // what the channel calls the customer
	Words         []string    // tokens of what was said; see search.Query
	From, To      parley.Time // To is exclusive
	Waiting       bool        // only what needs a person; a page of it begins with what has waited longest
	Unassigned    bool        // of that, only what nobody has taken
	Assignee      *int64      // only what this one has taken
}

// The parts of the inbox that a list may be narrowed to.
const (
	NeedsPerson = "needs_person"
	Unassigned  = "unassigned"
	Mine        = "mine"
)

// Narrow narrows a list to a part of the inbox, of what who sees in it.
func (f *ConversationFilter) Narrow(part string, who int64) {
	f.Waiting, f.Unassigned = part == NeedsPerson, part == Unassigned
	if part == Mine {
		f.Assignee = &who
	}
}

// Conversations is a page of the user's conversations, newest first.
func (q Query) Conversations(ctx context.Context, userID int64, f ConversationFilter,
	p Page) ([]parley.Conversation, int, error) {
	list := []parley.Conversation{}
	ids := q.q.NewSelect().TableExpr("conversations").Where("user_id = ?", userID)
	only(ids, "type", f.Type)
	only(ids, "assistant_id", f.AssistantID)
	only(ids, "customer_phone", f.CustomerPhone)
	only(ids, "external_identifier", f.Identifier)
	if f.SenderPhone != "" {
		ids.Where("id IN (SELECT m.conversation_id FROM whatsapp_messages AS m JOIN whatsapp_senders AS s ON s.id = m.sender_id "+
			"WHERE s.user_id = ? AND s.phone_number = ?)", userID, f.SenderPhone)
	}
	if f.Waiting || f.Unassigned {
		ids.Where("waits_since > 0")
	}
	if f.Unassigned {
		ids.Where("assignee IS NULL")
	}
	if f.Assignee != nil {
		ids.Where("assignee = ?", *f.Assignee)
	}
	q.having(ids, "seq", "conversation_tokens", f.Words)
	order := "seq DESC"
	if (f.Waiting || f.Unassigned) && p.Below == 0 {
		order = "waits_since, seq"
	}
	count := q.long(userID, "conversations", "seq", ids, func(s *bun.SelectQuery, unindexed string) {
		inTime(s, unindexed+"created_at", f.From, f.To)
	}).total
	if f.Waiting || f.Unassigned || f.Assignee != nil || f.SenderPhone != "" || len(f.Words) > 0 { // nothing watches these
		count = ids.Count
	}
	total, more, err := p.of(ctx, ids, order, count)
	if err == nil && more {
		order = "c." + strings.ReplaceAll(order, ", ", ", c.")
		err = q.conversations(&list).Where("c.seq IN (?)", ids.Column("seq")).OrderExpr(order).Scan(ctx)
	}
	return list, total, err
}

// Attention is how many of a user's conversations need a person, how many of them nobody has taken, and how many one
// has taken; and since when the newest of those that need a person does.
type Attention struct {
	Waiting, Unassigned, Mine int
	Newest                    parley.Time
}

// Attention counts what asks for somebody's attention.
func (q Query) Attention(ctx context.Context, userID, who int64) (n Attention, err error) {
	err = q.q.NewRaw(`SELECT (SELECT count(*) FROM conversations WHERE user_id = ? AND waits_since > 0),
		(SELECT count(*) FROM conversations WHERE user_id = ? AND waits_since > 0 AND assignee IS NULL),
		(SELECT count(*) FROM conversations WHERE user_id = ? AND assignee = ?),
		(SELECT coalesce(max(waits_since), 0) FROM conversations WHERE user_id = ? AND waits_since > 0)`,
		userID, userID, userID, who, userID).Scan(ctx, &n.Waiting, &n.Unassigned, &n.Mine, &n.Newest)
	return n, err
}

// ConversationSender is the number of ours that a conversation's customer writes to, where its channel has one: nil
// otherwise.
func (q Query) ConversationSender(ctx context.Context, c *parley.Conversation) (*string, error) {
	var phones []string
	err := q.q.NewRaw(`SELECT s.phone_number FROM whatsapp_messages AS m JOIN whatsapp_senders AS s ON s.id = m.sender_id
		WHERE m.conversation_id = ? ORDER BY m.id DESC LIMIT 1`, c.ID).Scan(ctx, &phones)
	if err != nil || len(phones) == 0 {
		return nil, err
	}
	return &phones[0], nil
}

// CreateConversation stores a new conversation, with the assistant's first message where there is one.
func (tx *Tx) CreateConversation(ctx context.Context, c *parley.Conversation, first string) error {
	now := parley.DateTime(parley.Now())
	c.ID, c.AIEnabled, c.CreatedAt, c.UpdatedAt = uuid.NewString(), true, now, now
	if first != "" {
		c.MessageCount = 1
	}
	tx.countChat(c, parley.Time(now), parley.Counts{"conversations": 1})
	_, err := tx.q.NewInsert().Model(c).ExcludeColumn("extracted", "extracted_notes").Exec(ctx)
	if err != nil || first == "" {
		return err
	}
	return tx.insertMessage(ctx, &parley.Message{ConversationID: c.ID, Role: parley.RoleAssistant,
		Author: parley.AuthorAI, Content: first, CreatedAt: now})
}

func (tx *Tx) insertMessage(ctx context.Context, m *parley.Message) error {
	m.Language = lang.Guess(m.Content)
	_, err := tx.q.NewInsert().Model(m).Exec(ctx)
	return err
}

// AddMessage stores a message, counts it and what it cost. The conversation, which must be the transaction's first
// lock, ends by silence at endsAt again. A customer's message that no reply is made for needs a person, and any reply
// ends that. A full conversation takes an assistant's replies alone.
func (tx *Tx) AddMessage(ctx context.Context, m *parley.Message, cost parley.Money, endsAt parley.Time) error {
	m.CreatedAt = parley.DateTime(parley.Now())
	waits := parley.Time(0)
	if m.Author == parley.AuthorCustomer {
		waits = parley.Time(m.CreatedAt)
	}
	res, err := tx.q.NewRaw(`UPDATE conversations SET message_count = message_count + 1, total_cost = total_cost + ?, ends_at = ?, ended_at = 0,
		end_attempts = 0, updated_at = ?, waits_since = CASE WHEN ? = 0 THEN 0 WHEN waits_since > 0 OR type = 'test' OR ? THEN waits_since ELSE ? END
		WHERE id = ? AND (message_count < ? OR external_identifier IS NOT NULL OR ?)`, cost, endsAt, m.CreatedAt, waits, m.Pending, waits,
		m.ConversationID, parley.MaxMessages, m.Author == parley.AuthorAI).Exec(ctx)
	n, err := count(res, err)
	if err == nil && n == 0 {
		if _, err = tx.ConversationForUpdate(ctx, m.ConversationID); err == nil {
			err = parley.Errorf(parley.Forbidden, "A conversation can have %d messages. Start a new one.", parley.MaxMessages)
		}
	}
	if err != nil {
		return err
	}
	return tx.insertMessage(ctx, m)
}

// SettleMessage says that a customer's message waits for the assistant no longer, and why it failed where it did (nil:
// it did not); false when it did not wait. Unless it is answered, by its reply or by a person meanwhile, it needs a
// person. Its conversation must be the transaction's first lock.
func (tx *Tx) SettleMessage(ctx context.Context, m *parley.Message, cost parley.Money, failure *string,
	answered bool) (bool, error) {
	waited, err := some(tx.q.NewRaw("UPDATE messages SET pending = FALSE, failed = ?, error = ?, cost = ? WHERE id = ? AND pending",
		failure != nil, failure, cost, m.ID).Exec(ctx))
	if err != nil || !waited || answered {
		return waited, err
	}
	_, err = tx.q.NewRaw(`UPDATE conversations SET waits_since = ? WHERE id = ? AND waits_since = 0 AND type <> 'test'
		AND NOT EXISTS (SELECT 1 FROM messages WHERE conversation_id = ? AND id > ? AND (author = ? OR turn > ?))`,
		m.CreatedAt, m.ConversationID, m.ConversationID, m.ID, parley.AuthorHuman, m.ID).Exec(ctx)
	return true, err
}

// TryMessage counts an attempt to answer a pending message, together with those that wait before it; 0 when it waits no
// longer.
func (tx *Tx) TryMessage(ctx context.Context, m *parley.Message) (attempts int, err error) {
	var list []int
	err = tx.q.NewRaw("UPDATE messages SET attempts = attempts + 1 WHERE id = ? AND pending RETURNING attempts",
		m.ID).Scan(ctx, &list)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	_, err = tx.q.NewRaw("UPDATE messages SET attempts = ? WHERE conversation_id = ? AND id < ? AND pending", list[0], m.ConversationID,
		m.ID).Exec(ctx)
	return list[0], err
}

// TryEnd counts an attempt to end a conversation.
func (tx *Tx) TryEnd(ctx context.Context, id string) (attempts int, err error) {
	err = tx.q.NewRaw("UPDATE conversations SET end_attempts = end_attempts + 1 WHERE id = ? RETURNING end_attempts", id).Scan(ctx, &attempts)
	return attempts, notFound(err, conversationNotFound)
}

// KeepMessageCall stores the beginning of a message's n-th tool call, or, with done, its result.
func (tx *Tx) KeepMessageCall(ctx context.Context, messageID int64, n int, c parley.FunctionCall, done bool) error {
	row := &messageCall{MessageID: messageID, N: n, Name: c.Name, Arguments: c.Arguments}
	if done {
		row.Result = &c.Result
	}
	_, err := tx.q.NewInsert().Model(row).On("CONFLICT (message_id, n) DO UPDATE").Set(
		"result = EXCLUDED.result").Exec(ctx)
	return err
}

// DropMessageCalls removes a message's tool calls: its reply has them.
func (tx *Tx) DropMessageCalls(ctx context.Context, messageID int64) error {
	_, err := tx.q.NewDelete().Model((*messageCall)(nil)).Where("message_id = ?", messageID).Exec(ctx)
	return err
}

// MessageCalls are the tool calls of a conversation's messages that have no reply, by message and in order.
func (q Query) MessageCalls(ctx context.Context, conversationID string) (map[int64][]parley.FunctionCall, error) {
	var list []messageCall
	err := q.q.NewSelect().Model(&list).Where("message_id IN (SELECT id FROM messages WHERE conversation_id = ?)",
		conversationID).
		Order("message_id", "n").Scan(ctx)
	calls := map[int64][]parley.FunctionCall{}
	for _, c := range list {
		result := CutOff
		if c.Result != nil {
			result = *c.Result
		}
		calls[c.MessageID] = append(calls[c.MessageID],
			parley.FunctionCall{Name: c.Name, Arguments: c.Arguments, Result: result})
	}
	return calls, err
}

// CutOff is the result of a tool of which nobody knows what it did.
const CutOff = "Error: the server was cut off while the tool ran. Whether it took effect is not known: " +
	"do not run it again before you have made sure."

type messageCall struct {
	bun.BaseModel `bun:"message_calls"`

	MessageID int64
	N         int
	Name      string
	Arguments json.RawMessage `bun:"type:json"`
	Result    *string
}

// maxRead is how many messages of a conversation are read at once.
const maxRead = 5000

// Messages are a conversation's newest messages in order: each reply behind what it answers.
func (q Query) Messages(ctx context.Context, conversationID string) ([]parley.Message, error) {
	list := []parley.Message{}
	err := q.q.NewSelect().Model(&list).Where("conversation_id = ?", conversationID).
		OrderExpr("CASE WHEN turn > 0 THEN turn ELSE id END DESC, id DESC").Limit(maxRead).Scan(ctx)
	slices.Reverse(list)
	return list, err
}

// MessagesAfter are the first messages of a conversation with a higher id, by id: what a live listener has not seen.
func (q Query) MessagesAfter(ctx context.Context, conversationID string, id int64) ([]parley.Message, error) {
	list := []parley.Message{}
	err := q.q.NewSelect().Model(&list).Where("conversation_id = ? AND id > ?", conversationID,
		id).Order("id").Limit(maxRead).Scan(ctx)
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
	return first[parley.Message](ctx, q, func(s *bun.SelectQuery) {
		s.Where("conversation_id = ? AND pending",
			conversationID).Order("id")
	})
}

// PendingMessages are the messages of a conversation that wait for a reply, oldest first.
func (q Query) PendingMessages(ctx context.Context, conversationID string) (list []parley.Message, err error) {
	err = q.q.NewSelect().Model(&list).Where("conversation_id = ? AND pending", conversationID).Order("id").Scan(ctx)
	return list, err
}

// ExternalMessage is the message of a conversation that its channel calls so, nil when there is none.
func (q Query) ExternalMessage(ctx context.Context, conversationID, externalID string) (*parley.Message, error) {
	return first[parley.Message](ctx, q, func(s *bun.SelectQuery) {
		s.Where("conversation_id = ? AND external_id = ?", conversationID, externalID)
	})
}

// ReviseMessage stores a message's text as its customer has changed it, or that it was deleted. Its conversation must be
// the transaction's first lock.
func (tx *Tx) ReviseMessage(ctx context.Context, m *parley.Message) error {
	m.Language = lang.Guess(m.Content)
	_, err := tx.q.NewUpdate().Model(m).Column("content", "language", "edited", "deleted").WherePK().Exec(ctx)
	return err
}

// Lease makes owner the one who works on a conversation until then, unless another's lease runs; it renews owner's
// own, and ends a rest.
func (tx *Tx) Lease(ctx context.Context, conversationID, owner string, length time.Duration) (bool, error) {
	now := parley.Now()
	return some(tx.q.NewRaw("UPDATE conversations SET lease_owner = ?, lease_until = ? WHERE id = ? AND (lease_until < ? "+
		"OR lease_owner IN (?, ''))",
		owner, now.Add(length), conversationID, now, owner).Exec(ctx))
}

// Unlease ends owner's lease.
func (tx *Tx) Unlease(ctx context.Context, conversationID, owner string) error {
	_, err := tx.q.NewRaw("UPDATE conversations SET lease_owner = '', lease_until = 0 WHERE id = ? AND lease_owner = ?", conversationID,
		owner).Exec(ctx)
	return err
}

// Rest ends owner's lease, and has nobody look at the conversation by themselves before a time.
func (tx *Tx) Rest(ctx context.Context, conversationID, owner string, until parley.Time) error {
	_, err := tx.q.NewRaw("UPDATE conversations SET lease_owner = '', lease_until = ? WHERE id = ? AND lease_owner = ?", until, conversationID,
		owner).Exec(ctx)
	return err
}

// Unattended are conversations that wait for a node: a message is pending, a tool in the background has answered, or silence has ended
// them, and nobody has the lease.
func (q Query) Unattended(ctx context.Context, now parley.Time, limit int) (ids []string, err error) {
	err = q.q.NewRaw(`SELECT id FROM conversations WHERE ends_at > 0 AND ends_at <= ? AND lease_until < ?
		UNION SELECT c.id FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.pending AND c.lease_until < ?
		UNION SELECT c.id FROM background_tools t JOIN conversations c ON c.id = t.conversation_id WHERE t.due_at <= ? AND c.lease_until < ?
		LIMIT ?`, now, now, now, now, now, limit).Scan(ctx, &ids)
	return ids, err
}

// EndConversation marks a conversation as ended by silence, with what was found out from it; false when it goes on or
// has ended already.
func (tx *Tx) EndConversation(ctx context.Context, c *parley.Conversation, found parley.Findings,
	now parley.Time) (bool, error) {
	c.Extracted, c.ExtractedNotes, c.EndedAt = found.Values, found.Notes, now
	return some(tx.q.NewUpdate().Model(c).Column("extracted", "extracted_notes", "ended_at").Set("ends_at = 0").
		Where("id = ? AND ends_at > 0 AND ends_at <= ?", c.ID, now).Exec(ctx))
}

// TurnOnAI has the assistant reply again: the conversation is nobody's, and needs no person until something new is said.
func (tx *Tx) TurnOnAI(ctx context.Context, userID int64, id string) error {
	res, err := tx.q.NewRaw("UPDATE conversations SET ai_enabled = TRUE, waits_since = 0, assignee = NULL WHERE id = ? AND user_id = ?",
		id, userID).Exec(ctx)
	return one(res, err, conversationNotFound)
}

// TurnOffAI ends the assistant's replies: who takes the conversation over answers, nil where nobody has taken it yet.
// Messages that wait for the assistant are settled by who works on them; one that got no reply before needs a person.
func (tx *Tx) TurnOffAI(ctx context.Context, userID int64, id string, who *int64) error {
	res, err := tx.q.NewRaw(`UPDATE conversations SET ai_enabled = FALSE, assignee = ?, waits_since = CASE WHEN waits_since > 0 OR type = 'test'
		THEN waits_since ELSE coalesce((SELECT created_at FROM messages WHERE id = (SELECT max(id) FROM messages WHERE conversation_id = ?)
		AND author = ? AND NOT pending), 0) END WHERE id = ? AND user_id = ?`, who, id, parley.AuthorCustomer, id, userID).Exec(ctx)
	return one(res, err, conversationNotFound)
}

// Assign gives a conversation that people answer, and that nobody has taken, to who has just answered.
func (tx *Tx) Assign(ctx context.Context, id string, who int64) error {
	_, err := tx.q.NewRaw("UPDATE conversations SET assignee = ? WHERE id = ? AND NOT ai_enabled AND assignee IS NULL",
		who, id).Exec(ctx)
	return err
}

// Attended says that a conversation needs no person until something new is said.
func (tx *Tx) Attended(ctx context.Context, userID int64, id string) error {
	res, err := tx.q.NewRaw("UPDATE conversations SET waits_since = 0 WHERE id = ? AND user_id = ?", id, userID).Exec(ctx)
	return one(res, err, conversationNotFound)
}

// AddVariables puts values over a conversation's variables, as they are when it has the row to itself. Those that
// visitors names come from the customer: they go over what a customer gave before, and never over what the
// assistant's owner gave.
func (tx *Tx) AddVariables(ctx context.Context, c *parley.Conversation, vars map[string]string,
	visitors []string) error {
	if len(vars) == 0 {
		return nil
	}
	now, err := tx.ConversationForUpdate(ctx, c.ID)
	if err != nil {
		return err
	}
	merged := make(map[string]string, len(now.Variables)+len(vars))
	for k, v := range now.Variables {
		merged[k] = v
	}
	names := strings.Fields(now.VisitorNames)
	for k, v := range vars {
		_, there := merged[k]
		visitor, before := slices.Contains(visitors, k), slices.Contains(names, k) ||
			now.VisitorNames == parley.EveryVisitor
		switch {
		case visitor && there && !before:
			continue
		case visitor && !before:
			names = append(names, k)
		case !visitor:
			names = slices.DeleteFunc(names, func(n string) bool { return n == k })
		}
		merged[k] = v
	}
	var wrong parley.Fields
	if parley.CheckVariables(merged, &wrong); len(wrong) > 0 && len(merged) > len(now.Variables) {
		return wrong.Err()
	}
	c.Variables, c.VisitorNames = merged, strings.Join(names, " ")
	_, err = tx.q.NewUpdate().Model(c).Column("variables", "visitor_names").Where("id = ?", c.ID).Exec(ctx)
	return err
}

// DeleteConversation removes a conversation with its messages. Its cost stays in the ledger.
func (tx *Tx) DeleteConversation(ctx context.Context, userID int64, id string) error {
	if _, err := tx.ConversationForUpdate(ctx, id); err != nil {
		return err
	}
	if err := tx.freeUnsent(ctx, []string{id}); err != nil {
		return err
	}
	res, err := tx.q.NewDelete().Model((*parley.Conversation)(nil)).Where("id = ? AND user_id = ?", id,
		userID).Exec(ctx)
	return tx.note(userID, parley.AuditDeleted, parley.AuditConversation, id, nil, one(res, err, conversationNotFound))
}

// EraseCustomer removes what the user's conversations and campaigns hold of a customer, by phone number or the
// channel's name for them: one step of it, that says how many conversations are gone and whether there is more.
func (tx *Tx) EraseCustomer(ctx context.Context, userID int64, identifier string) (conversations int, more bool,
	err error) {
	for _, statement := range []string{
		"DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE user_id = ? AND customer_phone = ? LIMIT ?)",
		// The blacklist keeps the number: it is there for the customer's sake.
		"DELETE FROM leads WHERE id IN (SELECT id FROM leads WHERE user_id = ? AND phone_number = ? LIMIT ?)",
		// What is made of their words.
		"DELETE FROM test_scripts WHERE test_id IN (SELECT id FROM tests WHERE user_id = ? AND customer = ? ORDER BY id LIMIT ?)",
		"DELETE FROM test_results WHERE test_id IN (SELECT id FROM tests WHERE user_id = ? AND customer = ? ORDER BY id LIMIT ?)",
		"DELETE FROM tests WHERE id IN (SELECT id FROM tests WHERE user_id = ? AND customer = ? ORDER BY id LIMIT ?)",
		"DELETE FROM test_runs WHERE id IN (SELECT id FROM test_runs WHERE user_id = ? AND customer = ? ORDER BY id LIMIT ?)",
	} {
		n, err := count(tx.q.NewRaw(statement, userID, identifier, Step).Exec(ctx))
		if err != nil {
			return 0, false, err
		}
		more = more || n == Step
	}
	others, err := tx.dropContacts(ctx, userID, identifier)
	if err != nil {
		return 0, false, err
	}
	tx.enter(userID, parley.AuditDeleted, thing{kind: parley.AuditCustomer}, "", []parley.AuditChange{})
	more = more || others
	conversations, rest, err := tx.removeConversations(ctx, func(s *bun.SelectQuery) {
		s.Where("user_id = ? AND (customer_phone = ? OR external_identifier = ?)", userID, identifier, identifier)
	})
	return conversations, more || rest, err
}

// ForgetConversations removes conversations that nothing was said in since a time: one step of it, that says whether
// there is more.
func (tx *Tx) ForgetConversations(ctx context.Context, before parley.Time) (more bool, err error) {
	_, more, err = tx.removeConversations(ctx, func(s *bun.SelectQuery) {
		s.Where("updated_at < ?",
			before).Order("updated_at")
	})
	return more, err
}

// Step is about how many rows a step of removing takes: some milliseconds of everybody's writes.
const Step = 500

// removeConversations removes a few of the conversations that which picks, with their messages; those of a long one
// in steps of their own.
func (tx *Tx) removeConversations(ctx context.Context, which func(*bun.SelectQuery)) (removed int, more bool,
	err error) {
	var ids []string
	s := tx.q.NewSelect().Table("conversations").Column("id").Limit(Step / 10)
	which(s)
	if err := tx.locked(s).Scan(ctx, &ids); err != nil || len(ids) == 0 {
		return 0, false, err
	}
	said, err := count(tx.q.NewRaw("DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE conversation_id IN (?) LIMIT ?)",
		bun.List(ids), Step).Exec(ctx))
	if err != nil || said == Step {
		return 0, true, err
	}
	if err := tx.freeUnsent(ctx, ids); err != nil {
		return 0, false, err
	}
	removed, err = count(tx.q.NewRaw("DELETE FROM conversations WHERE id IN (?)", bun.List(ids)).Exec(ctx))
	return removed, len(ids) == Step/10, err
}

// freeUnsent gives back what is set aside for WhatsApp messages that go, with their conversations, before it is known that
// they were sent. What is told of them later finds nothing, and charges nothing.
func (tx *Tx) freeUnsent(ctx context.Context, conversations []string) error {
	var list []parley.WhatsAppMessage
	err := tx.q.NewSelect().Model(&list).Where("conversation_id IN (?) AND NOT inbound AND status IN ('queued', 'sending')",
		bun.List(conversations)).Scan(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		_, err := tx.q.NewRaw("DELETE FROM reservations WHERE user_id = ? AND reference = ?", list[i].UserID,
			list[i].Reference()).Exec(ctx) // which no public page's day counts
		if err != nil {
			return err
		}
	}
	return nil
}

// LastMessage is the id of a conversation's newest message, 0 when it has none.
func (q Query) LastMessage(ctx context.Context, conversationID string) (id int64, err error) {
	err = q.q.NewRaw("SELECT coalesce(max(id), 0) FROM messages WHERE conversation_id = ?",
		conversationID).Scan(ctx, &id)
	return id, err
}

// LastMessages are the newest messages of conversations, by the conversations' ids. One that has none is not there.
func (q Query) LastMessages(ctx context.Context, conversationIDs []string) (map[string]parley.Message, error) {
	if len(conversationIDs) == 0 {
		return nil, nil
	}
	var list []parley.Message
	newest := q.q.NewSelect().TableExpr("messages").ColumnExpr("max(id)").Where("conversation_id IN (?)",
		bun.List(conversationIDs)).GroupExpr("conversation_id")
	if err := q.q.NewSelect().Model(&list).Where("id IN (?)", newest).Scan(ctx); err != nil {
		return nil, err
	}
	last := make(map[string]parley.Message, len(list))
	for _, m := range list {
		last[m.ConversationID] = m
	}
	return last, nil
}
