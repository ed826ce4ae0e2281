package line

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/carrier/whatsapp"
	"parley/internal/chat"
	"parley/internal/event"
	"parley/internal/store"
)

// Outgoing is a message that a user sends: a template, or a text where TemplateID is 0.
type Outgoing struct {
	SenderID   int64
	TemplateID int64
	Phone      string // the recipient's
	Name       string // the recipient's; "" when it is not known
	Variables  map[string]string
	Text       string
}

// Busy is the platform's refusal of too many messages at once.
type Busy struct{ After time.Duration }

func (e *Busy) Error() string { return "Too Many Attempts." }

// Send sends a message and returns its row: what the platform calls it, and where it stands in its conversation. It costs nothing unless
// the platform takes it.
func (w *WhatsApp) Send(ctx context.Context, userID int64, o Outgoing) (*parley.WhatsAppMessage, error) {
	sender, err := w.Sender(ctx, userID, o.SenderID)
	if err != nil {
		return nil, err
	}
	m := whatsapp.Message{Text: o.Text}
	price, text := w.Prices.Messages[string(parley.WhatsAppConversation)], o.Text
	if o.TemplateID != 0 {
		if m.Template, err = w.template(ctx, o); err != nil {
			return nil, err
		}
		m.Values = o.Variables
		price, text = w.Prices.Messages["whatsapp_template"], parley.Render(m.Template.BodyText, o.Variables)
	}
	phone, err := w.phone(ctx, userID, sender, o.Phone)
	if err != nil {
		return nil, err
	}
	if sender.Status != parley.SenderOnline {
		return nil, coded(parley.Unavailable, senderOffline, "The WhatsApp sender is offline.")
	}
	if m.Template == nil {
		last, err := w.DB.LastWhatsApp(ctx, userID, sender.ID, phone)
		if err != nil {
			return nil, err
		}
		if !parley.SessionAt(last, parley.Now()).CanSendFreeform {
			return nil, errSessionExpired
		}
	}
	a, _, err := w.keeper(ctx, userID, sender)
	if err == nil && a == nil {
		err = coded(parley.Invalid, noAssistant, "Make an assistant first: its conversations hold what is sent.")
	}
	if err != nil {
		return nil, err
	}
	conv, err := w.conversation(ctx, a, phone, o.Name)
	if err != nil {
		return nil, err
	}
	row := &parley.WhatsAppMessage{SenderID: sender.ID, ConversationID: conv.ID, Phone: phone, Body: text, Status: parley.WhatsAppSending, Cost: price}
	err = w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.AddWhatsAppMessage(ctx, userID, row); err != nil {
			return err
		}
		return tx.Reserve(ctx, userID, whatsAppReference(row.ID), price, parley.Now().Add(hold))
	})
	if errors.Is(err, store.Insufficient) {
		return nil, &parley.Undone{Err: coded(parley.Payment, insufficient, "Insufficient balance")} // the conversation is there, and empty
	}
	if err != nil {
		return nil, err
	}
	// From here on it is seen through, whoever still listens.
	ctx = context.WithoutCancel(ctx)
	m.Opaque = opaque(row.ID)
	wamid, err := w.Graph.Send(ctx, sender.GraphID, phone, m)
	if err != nil {
		return nil, w.refused(ctx, row, err)
	}
	return w.accepted(ctx, row.ID, wamid)
}

var errSessionExpired = coded(parley.Forbidden, sessionExpired,
	"The customer has not written for 24 hours: only a template may be sent.")

// template is the template that is to be sent, if it may be and the variables fit it.
func (w *WhatsApp) template(ctx context.Context, o Outgoing) (*parley.WhatsAppTemplate, error) {
	t, err := w.DB.WhatsAppTemplate(ctx, o.TemplateID)
	switch {
	case store.IsNotFound(err):
		return nil, coded(parley.NotFound, templateNotFound, "WhatsApp template not found")
	case err != nil:
		return nil, err
	case t.Status != parley.TemplateApproved:
		return nil, coded(parley.Invalid, templateUnapproved, "The template %s is not approved: its status is %s.", t.Name, t.Status)
	}
	want := t.Variables()
	fits := len(o.Variables) == len(want)
	for _, name := range want {
		fits = fits && strings.TrimSpace(o.Variables[name]) != ""
	}
	if !fits {
		takes := "no variables"
		if len(want) > 0 {
			takes = "the variables " + strings.Join(want, ", ")
		}
		return nil, coded(parley.Invalid, templateMismatch, "The template %s takes %s, each with a value.", t.Name, takes)
	}
	return t, nil
}

// conversation is the one with a customer, made when there is none. visitors names customerName where the customer calls themselves so.
func (w *WhatsApp) conversation(ctx context.Context, a *parley.Assistant, phone, name string, visitors ...string) (*parley.Conversation, error) {
	var vars map[string]string
	if name = parley.VisitorText(name, false); name != "" {
		vars = map[string]string{customerName: name}
	}
	return w.Chat.WithCustomer(ctx, a, parley.WhatsAppConversation, phone, vars, visitors...)
}

// customerName is the variable with a customer's name.
const customerName = "customer_name"

// refused ends a message that the platform did not take, and says so in the contract's words.
func (w *WhatsApp) refused(ctx context.Context, row *parley.WhatsAppMessage, failure error) error {
	var e *whatsapp.Error
	if !errors.As(failure, &e) {
		return failure
	}
	if e.Unknown { // a status may still come: then it was sent, and costs
		unexpected(ctx, "send a WhatsApp message", failure)
		return coded(parley.Upstream, sendFailed, "WhatsApp did not answer. The message may still arrive; it is charged only if it was sent.")
	}
	if err := w.fail(ctx, row.ID, e.Text); err != nil {
		return err
	}
	return &parley.Undone{Err: w.said(ctx, e)}
}

// said is the platform's refusal in the contract's words.
func (w *WhatsApp) said(ctx context.Context, e *whatsapp.Error) error {
	switch e.Reason() {
	case whatsapp.WindowClosed:
		return errSessionExpired
	case whatsapp.BadTemplate:
		return coded(parley.Invalid, templateMismatch, "WhatsApp says that the variables don't fit the template: %s", e.Text)
	case whatsapp.Unapproved:
		return coded(parley.Invalid, templateUnapproved, "WhatsApp does not send this template: %s", e.Text)
	case whatsapp.BadRecipient:
		return coded(parley.Invalid, invalidPhone, "WhatsApp can't reach this recipient: %s", e.Text)
	case whatsapp.Busy:
		if e.Status < 500 {
			return &Busy{After: max(e.RetryAfter, time.Second)}
		}
		return coded(parley.Unavailable, sendFailed, "WhatsApp is not available. Try again later.")
	case whatsapp.BadSender:
		unexpected(ctx, "WhatsApp refuses the sender", e) // the operator can mend it, the user can't
		return coded(parley.Unavailable, senderOffline, "The WhatsApp sender can't send.")
	}
	return coded(parley.Upstream, sendFailed, "WhatsApp refused the message: %s", e.Text)
}

// accepted notes that the platform has taken a message. Once, whoever hears of it first: who asked, or the webhook.
func (w *WhatsApp) accepted(ctx context.Context, id int64, wamid string) (row *parley.WhatsAppMessage, err error) {
	err = w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if row, err = tx.WhatsAppMessageForUpdate(ctx, id, ""); err != nil || row == nil {
			return errors.Join(err, fmt.Errorf("WhatsApp message %d is gone", id))
		}
		return w.accept(ctx, tx, row, wamid)
	})
	return row, err
}

func (w *WhatsApp) accept(ctx context.Context, tx *store.Tx, row *parley.WhatsAppMessage, wamid string) error {
	if row.WAMID != "" {
		return nil
	}
	row.WAMID, row.Status, row.Error = wamid, parley.WhatsAppSent, ""
	if row.MessageID == 0 {
		if err := w.record(ctx, tx, row); err != nil {
			return err
		}
	}
	return tx.SaveWhatsAppMessage(ctx, row)
}

// record puts a message that was sent into its conversation and takes its price.
func (w *WhatsApp) record(ctx context.Context, tx *store.Tx, row *parley.WhatsAppMessage) error {
	entry := &parley.LedgerEntry{Kind: parley.WhatsAppCharge, Amount: -row.Cost, Reference: whatsAppReference(row.ID), Description: "WhatsApp message to " + row.Phone}
	_, err := tx.Settle(ctx, row.UserID, entry)
	if errors.Is(err, store.Insufficient) { // its reservation was given up, and the platform took it after all
		row.Cost, err = 0, nil
	}
	if err != nil {
		return err
	}
	conv, err := tx.PublicConversation(ctx, row.ConversationID)
	if err != nil {
		return err
	}
	a, err := tx.Assistant(ctx, row.UserID, conv.AssistantID)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	m := &parley.Message{ConversationID: row.ConversationID, Role: parley.RoleAssistant, Author: parley.AuthorHuman, Content: row.Body}
	if err := tx.AddMessage(ctx, m, row.Cost, chat.EndsAt(a)); err != nil {
		return err
	}
	row.MessageID = m.ID
	tx.AfterCommit(func() { w.Chat.Hub.Tell(conv.ID, event.Event{Kind: "message"}) })
	return nil
}

// fail ends a message that was not sent: it costs nothing.
func (w *WhatsApp) fail(ctx context.Context, id int64, why string) error {
	return w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.WhatsAppMessageForUpdate(ctx, id, "")
		if err != nil || row == nil || !slices.Contains([]string{parley.WhatsAppQueued, parley.WhatsAppSending}, row.Status) {
			return err
		}
		row.Status, row.Error = parley.WhatsAppFailed, why
		if err := tx.Release(ctx, row.UserID, whatsAppReference(row.ID)); err != nil {
			return err
		}
		return tx.SaveWhatsAppMessage(ctx, row)
	})
}
