package store

import (
	"context"
	"slices"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

const senderNotFound = "WhatsApp sender not found"

// senders selects senders; an assistant that was deleted is none.
func (q Query) senders(model any) *bun.SelectQuery {
	return q.q.NewSelect().Model(model).ModelTableExpr("whatsapp_senders AS s").
		ColumnExpr("s.id, s.graph_id, s.user_id, a.id AS assistant_id, s.phone_number, s.display_name, s.status, " +
			"s.quality_rating, s.messaging_limit").
		ColumnExpr("s.created_at, s.updated_at").Join("LEFT JOIN assistants AS a ON a.id = s.assistant_id AND a.deleted_at = 0")
}

// WhatsAppSenders are the user's senders, newest first; status "" is any.
func (q Query) WhatsAppSenders(ctx context.Context, userID int64, status string) ([]parley.WhatsAppSender, error) {
	list := []parley.WhatsAppSender{}
	s := q.senders(&list).Where("s.user_id = ?", userID).OrderExpr("s.id DESC")
	only(s, "s.status", status)
	return list, s.Scan(ctx)
}

// WhatsAppSender is one of the user's senders.
func (q Query) WhatsAppSender(ctx context.Context, userID, id int64) (*parley.WhatsAppSender, error) {
	s := new(parley.WhatsAppSender)
	err := q.senders(s).Where("s.id = ? AND s.user_id = ?", id, userID).Scan(ctx)
	return s, notFound(err, senderNotFound)
}

// WhatsAppSenderOf is the sender that has the platform's id, whoever's it is.
func (q Query) WhatsAppSenderOf(ctx context.Context, graphID string) (*parley.WhatsAppSender, error) {
	s := new(parley.WhatsAppSender)
	err := q.senders(s).Where("s.graph_id = ?", graphID).Scan(ctx)
	return s, notFound(err, senderNotFound)
}

// AllWhatsAppSenders are everybody's and nobody's: the operator's list.
func (q Query) AllWhatsAppSenders(ctx context.Context) (list []parley.WhatsAppSender, err error) {
	return list, q.senders(&list).OrderExpr("s.id").Scan(ctx)
}

// KeepWhatsAppSenders follows the platform: numbers that are new come, known ones change, and those that it names no
// more are offline. Ids and what is ours (user, assistant) stay.
func (tx *Tx) KeepWhatsAppSenders(ctx context.Context, told []parley.WhatsAppSender) error {
	known, err := tx.AllWhatsAppSenders(ctx)
	if err != nil {
		return err
	}
	now := parley.Now()
	for _, s := range told {
		i := slices.IndexFunc(known, func(k parley.WhatsAppSender) bool { return k.GraphID == s.GraphID })
		if s.UpdatedAt = now; i < 0 {
			s.ID, s.CreatedAt = 0, now
			_, err = tx.q.NewInsert().Model(&s).Exec(ctx)
		} else {
			_, err = tx.q.NewUpdate().Model(&s).Column("phone_number", "display_name", "status", "quality_rating",
				"messaging_limit", "updated_at").
				Where("graph_id = ?", s.GraphID).Exec(ctx)
			known = slices.Delete(known, i, i+1)
		}
		if err != nil {
			return err
		}
	}
	for _, gone := range known {
		_, err := tx.q.NewRaw("UPDATE whatsapp_senders SET status = ?, updated_at = ? WHERE id = ? AND status <> ?",
			parley.SenderOffline, now, gone.ID, parley.SenderOffline).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// AssignWhatsAppSender gives a sender to a user. Another user's assistant answers it no longer.
func (tx *Tx) AssignWhatsAppSender(ctx context.Context, id, userID int64) error {
	res, err := tx.q.NewRaw(`UPDATE whatsapp_senders SET assistant_id = CASE WHEN user_id = ? THEN assistant_id END, user_id = ?, updated_at = ?
		WHERE id = ?`, userID, userID, parley.Now(), id).Exec(ctx)
	return tx.changed(userID, parley.AuditSender, id, "", one(res, err, senderNotFound), "account")
}

// SetSenderAssistant has one of the user's assistants answer a sender, or nobody (nil).
func (tx *Tx) SetSenderAssistant(ctx context.Context, userID, id int64, assistantID *int64) error {
	res, err := tx.q.NewRaw("UPDATE whatsapp_senders SET assistant_id = ?, updated_at = ? WHERE id = ? AND user_id = ?",
		assistantID, parley.Now(), id, userID).Exec(ctx)
	return tx.changed(userID, parley.AuditSender, id, "", one(res, err, senderNotFound), "assistant_id")
}

// OldestAssistant is the user's first assistant.
func (q Query) OldestAssistant(ctx context.Context, userID int64) (*parley.Assistant, error) {
	return q.assistant(ctx, func(s *bun.SelectQuery) *bun.SelectQuery {
		return s.Where("id = (SELECT min(id) FROM assistants WHERE user_id = ? AND deleted_at = 0)", userID)
	})
}

// WhatsAppTemplates are the account's templates by name; status "" is any.
func (q Query) WhatsAppTemplates(ctx context.Context, status string) ([]parley.WhatsAppTemplate, error) {
	list := []parley.WhatsAppTemplate{}
	s := q.q.NewSelect().Model(&list).Order("name", "language", "id")
	only(s, "status", status)
	return list, s.Scan(ctx)
}

// WhatsAppTemplate is one of the account's templates.
func (q Query) WhatsAppTemplate(ctx context.Context, id int64) (*parley.WhatsAppTemplate, error) {
	t := new(parley.WhatsAppTemplate)
	err := q.q.NewSelect().Model(t).Where("id = ?", id).Scan(ctx)
	return t, notFound(err, "WhatsApp template not found")
}

// KeepWhatsAppTemplates follows the platform. Ids stay as long as it names a template.
func (tx *Tx) KeepWhatsAppTemplates(ctx context.Context, told []parley.WhatsAppTemplate) error {
	known, err := tx.WhatsAppTemplates(ctx, "")
	if err != nil {
		return err
	}
	now := parley.Now()
	for _, t := range told {
		i := slices.IndexFunc(known, func(k parley.WhatsAppTemplate) bool { return k.GraphID == t.GraphID })
		if t.UpdatedAt = now; i < 0 {
			t.ID, t.CreatedAt = 0, now
			_, err = tx.q.NewInsert().Model(&t).Exec(ctx)
		} else {
			_, err = tx.q.NewUpdate().Model(&t).ExcludeColumn("id", "graph_id", "created_at").Where("graph_id = ?",
				t.GraphID).Exec(ctx)
			known = slices.Delete(known, i, i+1)
		}
		if err != nil {
			return err
		}
	}
	for _, gone := range known {
		if _, err := tx.q.NewDelete().Model(&gone).WherePK().Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// LastWhatsApp is when a customer last wrote to one of the user's senders; 0: never.
func (q Query) LastWhatsApp(ctx context.Context, userID, senderID int64, phone string) (at parley.Time, err error) {
	err = q.q.NewRaw("SELECT coalesce(max(said_at), 0) FROM whatsapp_messages WHERE inbound AND sender_id = ? AND phone = ? AND user_id = ?",
		senderID, phone, userID).Scan(ctx, &at)
	return at, err
}

// WhatsAppPhone is the phone number by which a sender knows a customer whom the platform calls so; "" where it knows
// none.
func (q Query) WhatsAppPhone(ctx context.Context, userID, senderID int64, customer string) (phone string, err error) {
	m, err := first[parley.WhatsAppMessage](ctx, q, func(s *bun.SelectQuery) {
		s.Where("user_id = ? AND sender_id = ? AND customer = ? AND customer <> '' AND phone <> customer", userID, senderID,
			customer).Order("id DESC")
	})
	if err != nil || m == nil {
		return "", err
	}
	return m.Phone, nil
}

// WhatsAppText is what a message of a conversation said, by the platform's id; "" where it is not known.
func (q Query) WhatsAppText(ctx context.Context, conversationID, wamid string) (string, error) {
	if wamid == "" {
		return "", nil
	}
	sent, err := first[parley.WhatsAppMessage](ctx, q, func(s *bun.SelectQuery) {
		s.Where("conversation_id = ? AND wamid = ? AND NOT inbound", conversationID, wamid)
	})
	if err != nil || sent != nil {
		if sent != nil {
			return sent.Body, nil
		}
		return "", err
	}
	m, err := q.ExternalMessage(ctx, conversationID, wamid)
	if err != nil || m == nil {
		return "", err
	}
	return m.Content, nil
}

// AddWhatsAppMessage stores a message; false when its WAMID is known already.
func (tx *Tx) AddWhatsAppMessage(ctx context.Context, userID int64, m *parley.WhatsAppMessage) (bool, error) {
	m.ID, m.UserID, m.CreatedAt = 0, userID, parley.Now()
	m.UpdatedAt = m.CreatedAt
	if m.WAMID != "" {
		known, err := tx.q.NewSelect().Model(m).Where("wamid = ? AND wamid <> ''", m.WAMID).Exists(ctx)
		if err != nil || known {
			return false, err
		}
	}
	_, err := tx.q.NewInsert().Model(m).Exec(ctx)
	return err == nil, err
}

// WhatsAppMessage is one message by our id, nil when there is none.
func (q Query) WhatsAppMessage(ctx context.Context, id int64) (*parley.WhatsAppMessage, error) {
	return first[parley.WhatsAppMessage](ctx, q, func(s *bun.SelectQuery) { s.Where("id = ?", id) })
}

// WhatsAppMessageForUpdate is a message by our id, or where that is 0 by the platform's, kept from others until the
// transaction ends; nil when there is none.
func (tx *Tx) WhatsAppMessageForUpdate(ctx context.Context, id int64, wamid string) (*parley.WhatsAppMessage, error) {
	return first[parley.WhatsAppMessage](ctx, tx.Query, func(s *bun.SelectQuery) {
		if id != 0 {
			s.Where("id = ?", id)
		} else {
			s.Where("wamid = ? AND wamid <> ''", wamid)
		}
		tx.locked(s)
	})
}

// WhatsAppRoute is the message that shows by which sender a customer is written to in a conversation: the one that is
// answered, else the newest; nil when there is none.
func (q Query) WhatsAppRoute(ctx context.Context, conversationID, wamid string) (*parley.WhatsAppMessage, error) {
	return first[parley.WhatsAppMessage](ctx, q, func(s *bun.SelectQuery) {
		s.Where("conversation_id = ?", conversationID).OrderExpr(
			"CASE WHEN wamid = ? AND wamid <> '' THEN 0 ELSE 1 END, id DESC", wamid)
	})
}

// underWay are the replies that are on their way to the platform: those that a conversation holds already.
const underWay = "NOT inbound AND message_id <> 0 AND status IN ('queued', 'sending')"

// ClaimWhatsAppMessage takes a reply to be sent; nil when it is not for the caller: it is sent, or somebody has been
// at it since before. waits says that an earlier one of the same conversation goes first.
func (tx *Tx) ClaimWhatsAppMessage(ctx context.Context, id int64, before parley.Time) (m *parley.WhatsAppMessage,
	waits bool, err error) {
	if m, err = tx.WhatsAppMessageForUpdate(ctx, id, ""); err != nil || m == nil {
		return nil, false, err
	}
	if m.Inbound || m.Status != parley.WhatsAppQueued && (m.Status != parley.WhatsAppSending || m.UpdatedAt >= before) {
		return nil, false, nil
	}
	waits, err = tx.q.NewSelect().Model(m).Where("conversation_id = ? AND id < ?", m.ConversationID,
		m.ID).Where(underWay).Exists(ctx)
	if err != nil || waits {
		return nil, waits, err
	}
	m.Status = parley.WhatsAppSending
	return m, false, tx.SaveWhatsAppMessage(ctx, m)
}

// StrandedWhatsApp are the messages that nobody has touched since then though they are not sent, oldest first.
func (q Query) StrandedWhatsApp(ctx context.Context, before parley.Time, limit int) (list []parley.WhatsAppMessage,
	err error) {
	err = q.q.NewSelect().Model(&list).Where("status IN ('queued', 'sending') AND updated_at < ?",
		before).Order("id").Limit(int64(limit)).Scan(ctx)
	return list, err
}

// SaveWhatsAppMessage stores what became of a message.
func (tx *Tx) SaveWhatsAppMessage(ctx context.Context, m *parley.WhatsAppMessage) error {
	m.UpdatedAt = parley.Now()
	_, err := tx.q.NewUpdate().Model(m).Column("message_id", "wamid", "status", "error", "cost",
		"updated_at").WherePK().Exec(ctx)
	return err
}

// ReduceCost takes back what a message cost its conversation.
func (tx *Tx) ReduceCost(ctx context.Context, conversationID string, amount parley.Money) error {
	_, err := tx.q.NewRaw("UPDATE conversations SET total_cost = total_cost - ? WHERE id = ?", amount,
		conversationID).Exec(ctx)
	return err
}
