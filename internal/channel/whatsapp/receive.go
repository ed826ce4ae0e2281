package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/riverqueue/river"

	"parley/internal/channel"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/parley"
	"parley/internal/store"
)

// Receive takes what a webhook tells, whose signature was verified. When it returns nil all of it is stored; told
// again, it changes nothing. Replies are made by the conversations' own workers.
func (w *Channel) Receive(ctx context.Context, n graph.Notice) error {
	for _, m := range n.Messages {
		if err := w.take(ctx, m); err != nil {
			return fmt.Errorf("take WhatsApp message %s: %w", m.ID, err)
		}
	}
	for _, s := range n.Statuses {
		if err := w.follow(ctx, s); err != nil {
			return fmt.Errorf("note the status of WhatsApp message %s: %w", s.ID, err)
		}
	}
	return nil
}

// take stores a customer's message and has it answered by the sender's assistant. The row of the window comes first,
// the message in the conversation second; both come once, so a crash in between is mended when the platform tells it
// again.
func (w *Channel) take(ctx context.Context, m graph.Inbound) error {
	sender, err := w.DB.WhatsAppSenderOf(ctx, m.Sender)
	if store.IsNotFound(err) || err == nil && sender.UserID == nil {
		slog.InfoContext(ctx, "a WhatsApp message came to a number that is nobody's", "number", m.Sender)
		return nil
	}
	if err != nil {
		return err
	}
	userID := *sender.UserID
	a, answers, err := w.keeper(ctx, userID, sender)
	if err != nil || a == nil { // without an assistant there is nowhere to keep it
		return err
	}
	if m.Phone == m.User { // the platform keeps the number back, which may be known from before
		phone, err := w.DB.WhatsAppPhone(ctx, userID, sender.ID, m.User)
		if err != nil {
			return err
		}
		m.Phone = cmp.Or(phone, m.User)
	}
	conv, err := w.conversation(ctx, a, m.Phone, m.Name, customerName)
	if err != nil {
		return err
	}
	switch m.Kind {
	case graph.Deleted:
		return w.Chat.Retract(ctx, conv, m.About)
	case graph.Edited: // of one that is not known here, the text is new
		if known, err := w.Chat.Revise(ctx, conv, m.About, m.Text); err != nil || known {
			return err
		}
	}
	if m.Text, err = w.inContext(ctx, conv, m); err != nil {
		return err
	}
	row := &parley.WhatsAppMessage{SenderID: sender.ID, ConversationID: conv.ID, WAMID: m.ID, Inbound: true,
		Phone: m.Phone, Customer: m.User,
		Status: parley.WhatsAppReceived, SaidAt: m.SaidAt}
	err = w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.AddWhatsAppMessage(ctx, userID, row)
		return err
	})
	// another node was told it at the same time
	if err != nil && !store.IsSecondWhatsApp(err) {
		return err
	}
	if answers && m.Kind != graph.Reacted { // who reacts asks nothing
		err = w.Chat.Receive(ctx, conv, parley.ChannelWhatsApp, m.ID, m.Text)
		if !errors.Is(err, store.Insufficient) {
			return err
		}
	}
	return w.Chat.Keep(ctx, conv, parley.ChannelWhatsApp, m.ID, m.Text)
}

// maxQuoted is how much of a quoted message is repeated, in characters.
const maxQuoted = 300

// inContext is what a message says, with what it is about.
func (w *Channel) inContext(ctx context.Context, conv *parley.Conversation, m graph.Inbound) (string, error) {
	quoted, err := w.DB.WhatsAppText(ctx, conv.ID, m.About)
	if err != nil || quoted == "" || m.Kind == graph.Edited {
		return m.Text, err
	}
	quoted = strings.Join(strings.Fields(quoted), " ")
	if r := []rune(quoted); len(r) > maxQuoted {
		quoted = string(r[:maxQuoted]) + "…"
	}
	if m.Kind == graph.Reacted {
		return m.Text + " (to: \"" + quoted + "\")", nil
	}
	return "[In reply to: \"" + quoted + "\"]\n" + m.Text, nil
}

// follow notes what became of a message. Statuses come in any order, and also before the answer to the request that
// sent the message.
func (w *Channel) follow(ctx context.Context, s graph.Status) error {
	return w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.WhatsAppMessageForUpdate(ctx, 0, s.ID)
		if err == nil && row == nil {
			if id, ours := strings.CutPrefix(s.Opaque, "parley:"); ours {
				if n, bad := strconv.ParseInt(id, 10, 64); bad == nil {
					row, err = tx.WhatsAppMessageForUpdate(ctx, n, "")
				}
			}
		}
		if err != nil || row == nil || row.Inbound {
			return err
		}
		o := w.outbox()
		if row.WAMID == "" { // the platform has taken it, whatever became of it then
			if err := o.Tell(ctx, tx, row, channel.Report{Name: s.ID, Status: channel.Sent}); err != nil {
				return err
			}
		}
		return o.Tell(ctx, tx, row, channel.Report{Name: s.ID, Status: s.Status, Reason: s.Error})
	})
}

// maxText is the longest text that the platform takes, in characters.
const maxText = 4096

// Replied sends what was said in a WhatsApp conversation, by the assistant or by a person, to the customer: rows and
// jobs in the transaction that stores the reply. A person is refused when it can't go out; what the assistant says is
// kept in any case.
func (w *Channel) Replied(ctx context.Context, tx *store.Tx, conv *parley.Conversation, asked,
	reply *parley.Message) error {
	if conv.Type != parley.WhatsAppConversation || w.Graph == nil {
		return nil
	}
	wamid := ""
	if asked != nil {
		wamid = asked.ExternalID
	}
	route, err := tx.WhatsAppRoute(ctx, conv.ID, wamid)
	if err != nil || route == nil {
		return err
	}
	if reply.Author == parley.AuthorHuman {
		if err := w.mayReply(ctx, tx, conv.UserID, route); err != nil {
			return err
		}
	}
	for _, part := range channel.Parts(channel.Said(reply, channel.WhatsAppText), maxText) {
		row := &parley.WhatsAppMessage{UserID: conv.UserID, SenderID: route.SenderID, ConversationID: conv.ID,
			MessageID: reply.ID, Phone: route.Phone, Body: part,
			Status: parley.WhatsAppQueued}
		if err := w.outbox().Add(ctx, tx, row); err != nil {
			return err
		}
		// then the sweep goes on
		if err := tx.Enqueue(ctx, deliverArgs{row.ID}, &river.InsertOpts{MaxAttempts: 5}); err != nil {
			return err
		}
	}
	return nil
}

func (w *Channel) mayReply(ctx context.Context, tx *store.Tx, userID int64, route *parley.WhatsAppMessage) error {
	sender, err := tx.WhatsAppSender(ctx, userID, route.SenderID)
	if store.IsNotFound(err) || err == nil && sender.Status != parley.SenderOnline {
		return coded(parley.Unavailable, senderOffline, "The WhatsApp sender is offline.")
	}
	if err != nil {
		return err
	}
	last, err := tx.LastWhatsApp(ctx, userID, route.SenderID, route.Phone)
	if err == nil && !parley.SessionAt(last, parley.Now()).CanSendFreeform {
		return errSessionExpired
	}
	return err
}
