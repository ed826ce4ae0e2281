package line

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/riverqueue/river"

	"parley"
	"parley/internal/carrier/whatsapp"
	"parley/internal/store"
)

// opaque is the name that a message's statuses bring back.
func opaque(id int64) string { return "parley:" + strconv.FormatInt(id, 10) }

// Receive takes what a webhook tells, whose signature was verified. When it returns nil all of it is stored; told again, it changes
// nothing. Replies are made by the conversations' own workers.
func (w *WhatsApp) Receive(ctx context.Context, n whatsapp.Notice) error {
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

// take stores a customer's message and has it answered by the sender's assistant. The row of the window comes first, the message in the
// conversation second; both come once, so a crash in between is mended when the platform tells it again.
func (w *WhatsApp) take(ctx context.Context, m whatsapp.Inbound) error {
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
	conv, err := w.conversation(ctx, a, m.Phone, m.Name, customerName)
	if err != nil {
		return err
	}
	row := &parley.WhatsAppMessage{SenderID: sender.ID, ConversationID: conv.ID, WAMID: m.ID, Inbound: true, Phone: m.Phone,
		Status: parley.WhatsAppReceived, SaidAt: m.SaidAt}
	err = w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.AddWhatsAppMessage(ctx, userID, row)
		return err
	})
	if err != nil && !store.Violates(err, "whatsapp_messages.wamid", "whatsapp_messages_wamid") { // another node was told it at the same time
		return err
	}
	if answers {
		err = w.Chat.Receive(ctx, conv, parley.ChannelWhatsApp, m.ID, m.Text)
		if !errors.Is(err, store.Insufficient) {
			return err
		}
	}
	return w.Chat.Keep(ctx, conv, parley.ChannelWhatsApp, m.ID, m.Text)
}

// follow notes what became of a message. Statuses come in any order, and also before the answer to the request that sent the message.
func (w *WhatsApp) follow(ctx context.Context, s whatsapp.Status) error {
	return w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.WhatsAppMessageForUpdate(ctx, 0, s.ID)
		if err == nil && row == nil {
			if id, ours := strings.CutPrefix(s.Opaque, "parley:"); ours {
				if n, bad := strconv.ParseInt(id, 10, 64); bad == nil {
					row, err = tx.WhatsAppMessageForUpdate(ctx, n, "")
				}
			}
		}
		if err != nil || row == nil || row.Inbound || row.WAMID != "" && row.WAMID != s.ID {
			return err
		}
		if err := w.accept(ctx, tx, row, s.ID); err != nil || !parley.Advances(row.Status, s.Status) {
			return err
		}
		row.Status, row.Error = s.Status, s.Error
		if s.Status == parley.WhatsAppFailed && row.Cost > 0 {
			if err := w.refund(ctx, tx, row); err != nil {
				return err
			}
		}
		return tx.SaveWhatsAppMessage(ctx, row)
	})
}

// refund gives back what a message cost that the platform took and then did not deliver.
func (w *WhatsApp) refund(ctx context.Context, tx *store.Tx, row *parley.WhatsAppMessage) error {
	posted, err := tx.Post(ctx, row.UserID, &parley.LedgerEntry{Kind: parley.Refund, Amount: row.Cost, Reference: whatsAppReference(row.ID),
		Description: "WhatsApp message to " + row.Phone + " was not delivered"})
	if err != nil || !posted {
		return err
	}
	cost := row.Cost
	row.Cost = 0
	return tx.ReduceCost(ctx, row.ConversationID, cost)
}

// maxText is the longest text that the platform takes, in characters.
const maxText = 4096

// Replied sends what was said in a WhatsApp conversation, by the assistant or by a person, to the customer: rows and jobs in the
// transaction that stores the reply. A person is refused when it can't go out; what the assistant says is kept in any case.
func (w *WhatsApp) Replied(ctx context.Context, tx *store.Tx, conv *parley.Conversation, asked, reply *parley.Message) error {
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
	for _, part := range parts(reply.Content, maxText) {
		row := &parley.WhatsAppMessage{SenderID: route.SenderID, ConversationID: conv.ID, MessageID: reply.ID, Phone: route.Phone, Body: part,
			Status: parley.WhatsAppQueued}
		if _, err := tx.AddWhatsAppMessage(ctx, conv.UserID, row); err != nil {
			return err
		}
		if err := tx.Enqueue(ctx, whatsAppDeliverArgs{row.ID}, &river.InsertOpts{MaxAttempts: 5}); err != nil { // then the sweep goes on
			return err
		}
	}
	return nil
}

func (w *WhatsApp) mayReply(ctx context.Context, tx *store.Tx, userID int64, route *parley.WhatsAppMessage) error {
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

// deliver sends one reply. It may run twice: the platform knows no message by our name before it has taken it, so a reply whose answer got
// lost is sent again, unless a status has told meanwhile that it went out.
func (w *WhatsApp) deliver(ctx context.Context, id int64, now parley.Time) error {
	if w.Graph == nil {
		return nil
	}
	var row *parley.WhatsAppMessage
	var waits bool
	err := w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		row, waits, err = tx.ClaimWhatsAppMessage(ctx, id, now.Add(-abandoned))
		return err
	})
	switch {
	case err != nil:
		return err
	case waits:
		return river.JobSnooze(inTurn)
	case row == nil:
		return nil
	}
	sender, err := w.DB.WhatsAppSender(ctx, row.UserID, row.SenderID)
	if store.IsNotFound(err) {
		return w.fail(ctx, id, "the sender is another's now")
	}
	if err != nil {
		return err
	}
	wamid, err := w.Graph.Send(ctx, sender.GraphID, row.Phone, whatsapp.Message{Text: row.Body, Opaque: opaque(row.ID)})
	if err == nil {
		_, err = w.accepted(ctx, id, wamid)
		return err
	}
	var e *whatsapp.Error
	if errors.As(err, &e) && !e.Temporary() || now.Sub(row.CreatedAt) > parley.WhatsAppWindow {
		unexpected(ctx, "a WhatsApp reply could not be sent", err)
		return w.fail(ctx, id, err.Error())
	}
	if again := w.requeue(context.WithoutCancel(ctx), id); again != nil {
		return again
	}
	return fmt.Errorf("send WhatsApp reply %d: %w", id, err)
}

// requeue gives a reply back for another try, unless a status has told meanwhile that it went out.
func (w *WhatsApp) requeue(ctx context.Context, id int64) error {
	return w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.WhatsAppMessageForUpdate(ctx, id, "")
		if err != nil || row == nil || row.Status != parley.WhatsAppSending {
			return err
		}
		row.Status = parley.WhatsAppQueued
		return tx.SaveWhatsAppMessage(ctx, row)
	})
}
