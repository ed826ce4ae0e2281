package whatsapp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"

	"parley/internal/channel"
	"parley/internal/channel/whatsapp/graph"
	"parley/internal/chat"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// box is WhatsApp's part of the machine that sends messages: for replies, whose complete rows wait for a job, and for a
// user's own sends, whose rows are claimed by the request that makes them.
type box struct {
	*Channel
	sender  *parley.WhatsAppSender // of what a user sends; nil: a reply
	message *graph.Message
}

// outbox sends replies, and notes what is told of any message.
func (w *Channel) outbox() *channel.Outbox[parley.WhatsAppMessage] { return w.sending(nil, nil) }

// sending sends one message of a user's.
func (w *Channel) sending(sender *parley.WhatsAppSender, m *graph.Message) *channel.Outbox[parley.WhatsAppMessage] {
	return &channel.Outbox[parley.WhatsAppMessage]{DB: w.DB, Box: box{w, sender, m}}
}

// resume sends a reply that is still to be sent.
func (w *Channel) resume(ctx context.Context, id int64, now parley.Time) error {
	if w.Graph == nil {
		return nil
	}
	return w.outbox().Resume(ctx, id, now)
}

// end ends a message that was not sent.
func (w *Channel) end(ctx context.Context, id int64, why string) error {
	_, err := w.outbox().Told(ctx, id, channel.Report{Status: channel.Refused, Reason: why})
	return err
}

// opaque is the name that a message's statuses bring back.
func opaque(id int64) string { return "parley:" + strconv.FormatInt(id, 10) }

func (box) Create(ctx context.Context, tx *store.Tx, m *parley.WhatsAppMessage) error {
	_, err := tx.AddWhatsAppMessage(ctx, m.UserID, m)
	return err
}

func (box) Claim(ctx context.Context, tx *store.Tx, id int64, now parley.Time) (*parley.WhatsAppMessage, bool, error) {
	m, waits, err := tx.ClaimWhatsAppMessage(ctx, id, now.Add(-abandoned))
	if err == nil && waits {
		err = channel.ErrNotYet
	}
	return m, m != nil, err
}

// Unclaim gives a reply back, unless a status has told meanwhile that it went out.
func (box) Unclaim(ctx context.Context, tx *store.Tx, id int64) error {
	m, err := tx.WhatsAppMessageForUpdate(ctx, id, "")
	if err != nil || m == nil || m.Status != parley.WhatsAppSending {
		return err
	}
	m.Status = parley.WhatsAppQueued
	return tx.SaveWhatsAppMessage(ctx, m)
}

var errSenderGone = errors.New("the sender is another's now")

func (b box) Carry(ctx context.Context, m *parley.WhatsAppMessage) (string, error) {
	sender, message := b.sender, graph.Message{Text: m.Body}
	if b.message != nil {
		message = *b.message
	} else {
		var err error
		if sender, err = b.DB.WhatsAppSender(ctx, m.UserID, m.SenderID); store.IsNotFound(err) {
			return "", errSenderGone
		} else if err != nil {
			return "", err
		}
	}
	message.Opaque = opaque(m.ID)
	return b.Graph.Send(ctx, sender.GraphID, m.Phone, message)
}

func (b box) Judge(ctx context.Context, m *parley.WhatsAppMessage, err error, now parley.Time,
	waiting bool) (channel.Outcome, string) {
	e, said := errors.AsType[*graph.Error](err)
	switch {
	case errors.Is(err, errSenderGone):
		return channel.Ended, err.Error()
	case waiting && said && !e.Unknown:
		return channel.Ended, e.Text
	case waiting:
		return channel.Open, ""
	case said && !e.Temporary(), now.Sub(m.CreatedAt) > parley.WhatsAppWindow:
		slog.ErrorContext(ctx, "a WhatsApp reply could not be sent", "error", err)
		return channel.Ended, err.Error()
	}
	return channel.Again, ""
}

func (box) Lock(ctx context.Context, tx *store.Tx, id int64) (*parley.WhatsAppMessage, error) {
	m, err := tx.WhatsAppMessageForUpdate(ctx, id, "")
	if err == nil && m == nil {
		err = parley.Errorf(parley.NotFound, "WhatsApp message %d is gone", id)
	}
	return m, err
}

func (box) At(m *parley.WhatsAppMessage) channel.State {
	switch {
	case m.Status == parley.WhatsAppFailed:
		return channel.Failed
	case m.WAMID == "":
		return channel.Queued
	}
	return channel.Taken
}

// Comes lets the platform's word stand over ours: what we took for failed, and it has taken, was sent.
func (box) Comes(m *parley.WhatsAppMessage, r channel.Report) (channel.State, bool) {
	switch {
	case r.Name == "":
		return channel.Failed, slices.Contains([]string{parley.WhatsAppQueued, parley.WhatsAppSending}, m.Status)
	case m.WAMID == "":
		return channel.Taken, true
	case m.WAMID != r.Name || !parley.Advances(m.Status, r.Status):
		return 0, false
	case r.Status == parley.WhatsAppFailed:
		return channel.Failed, true
	}
	return channel.Taken, true
}

func (box) Bill(m *parley.WhatsAppMessage) channel.Bill {
	what := "WhatsApp message to " + m.Phone
	return channel.Bill{UserID: m.UserID, Kind: parley.WhatsAppCharge, Reference: m.Reference(), Cost: m.Cost,
		For: what, Back: what + " was not delivered"}
}

func (b box) Save(ctx context.Context, tx *store.Tx, m *parley.WhatsAppMessage, r channel.Report, moved bool) error {
	first := m.WAMID == "" && r.Name != ""
	m.Status, m.Error = r.Status, r.Reason
	switch {
	case first:
		m.WAMID = r.Name
		if !moved { // its reservation was given up, and the platform took it after all
			m.Cost = 0
		}
		if m.MessageID == 0 {
			if err := b.record(ctx, tx, m); err != nil {
				return err
			}
		}
	case r.Status == parley.WhatsAppFailed && moved && m.WAMID != "":
		cost := m.Cost
		m.Cost = 0
		if err := tx.ReduceCost(ctx, m.ConversationID, cost); err != nil {
			return err
		}
	}
	return tx.SaveWhatsAppMessage(ctx, m)
}

// record puts a message that was sent into its conversation.
func (b box) record(ctx context.Context, tx *store.Tx, row *parley.WhatsAppMessage) error {
	conv, err := tx.PublicConversation(ctx, row.ConversationID)
	if err != nil {
		return err
	}
	a, err := tx.Assistant(ctx, row.UserID, conv.AssistantID)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	m := &parley.Message{ConversationID: row.ConversationID, Role: parley.RoleAssistant, Author: parley.AuthorHuman,
		Content: row.Body}
	if err := tx.AddMessage(ctx, m, row.Cost, chat.EndsAt(a)); err != nil {
		return err
	}
	row.MessageID = m.ID
	tx.AfterCommit(func() { b.Chat.Hub.Tell(conv.ID, event.Event{Kind: "message"}) })
	return nil
}
