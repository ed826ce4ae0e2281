package whatsapp

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"parley/internal/channel/whatsapp/graph"
	"parley/internal/parley"
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

// Send sends a message and returns its row: what the platform calls it, and where it stands in its conversation. It
// costs nothing unless the platform takes it.
func (w *Channel) Send(ctx context.Context, userID int64, o Outgoing) (*parley.WhatsAppMessage, error) {
	sender, err := w.Sender(ctx, userID, o.SenderID)
	if err != nil {
		return nil, err
	}
	m := graph.Message{Text: o.Text}
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
	row := &parley.WhatsAppMessage{UserID: userID, SenderID: sender.ID, ConversationID: conv.ID, Phone: phone,
		Body: text, Status: parley.WhatsAppSending, Cost: price}
	out := w.sending(sender, &m)
	err = w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return out.Add(ctx, tx, row) })
	if errors.Is(err, store.Insufficient) {
		// the conversation is there, and empty
		return nil, &parley.Undone{Err: coded(parley.Payment, insufficient, "Insufficient balance")}
	}
	if err != nil {
		return nil, err
	}
	// From here on it is seen through, whoever still listens.
	ctx = context.WithoutCancel(ctx)
	sent, err := out.Hand(ctx, row.ID, row, parley.Now(), true)
	if err != nil {
		return nil, w.refused(ctx, err)
	}
	return sent, nil
}

var errSessionExpired = coded(parley.Forbidden, sessionExpired,
	"The customer has not written for 24 hours: only a template may be sent.")

// template is the template that is to be sent, if it may be and the variables fit it.
func (w *Channel) template(ctx context.Context, o Outgoing) (*parley.WhatsAppTemplate, error) {
	t, err := w.DB.WhatsAppTemplate(ctx, o.TemplateID)
	switch {
	case store.IsNotFound(err):
		return nil, coded(parley.NotFound, templateNotFound, "WhatsApp template not found")
	case err != nil:
		return nil, err
	case t.Status != parley.TemplateApproved:
		return nil, coded(parley.Invalid, templateUnapproved, "The template %s is not approved: its status is %s.",
			t.Name, t.Status)
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
		return nil, coded(parley.Invalid, templateMismatch, "The template %s takes %s, each with a value.", t.Name,
			takes)
	}
	return t, nil
}

// conversation is the one with a customer, made when there is none. visitors names customerName where the customer
// calls themselves so.
func (w *Channel) conversation(ctx context.Context, a *parley.Assistant, phone, name string,
	visitors ...string) (*parley.Conversation, error) {
	var vars map[string]string
	if name = parley.VisitorText(name, false); name != "" {
		vars = map[string]string{customerName: name}
	}
	return w.Chat.WithCustomer(ctx, a, parley.WhatsAppConversation, phone, vars, visitors...)
}

// customerName is the variable with a customer's name.
const customerName = "customer_name"

// refused says in the contract's words why a message did not go out.
func (w *Channel) refused(ctx context.Context, failure error) error {
	e, ok := errors.AsType[*graph.Error](failure)
	if !ok {
		return failure
	}
	if e.Unknown { // a status may still come: then it was sent, and costs
		slog.ErrorContext(ctx, "send a WhatsApp message", "error", failure)
		return coded(parley.Upstream, sendFailed, "WhatsApp did not answer. The message may still arrive; it is charged only if it was sent.")
	}
	return &parley.Undone{Err: w.said(ctx, e)}
}

// said is the platform's refusal in the contract's words.
func (w *Channel) said(ctx context.Context, e *graph.Error) error {
	switch e.Reason() {
	case graph.WindowClosed:
		return errSessionExpired
	case graph.BadTemplate:
		return coded(parley.Invalid, templateMismatch,
			"WhatsApp says that the variables don't fit the template: %s", e.Text)
	case graph.Unapproved:
		return coded(parley.Invalid, templateUnapproved, "WhatsApp does not send this template: %s", e.Text)
	case graph.BadRecipient:
		return coded(parley.Invalid, invalidPhone, "WhatsApp can't reach this recipient: %s", e.Text)
	case graph.Busy:
		if e.Status < 500 {
			return &Busy{After: max(e.RetryAfter, time.Second)}
		}
		return coded(parley.Unavailable, sendFailed, "WhatsApp is not available. Try again later.")
	case graph.BadSender:
		slog.ErrorContext(ctx, "WhatsApp refuses the sender", "error", e) // the operator can mend it, the user can't
		return coded(parley.Unavailable, senderOffline, "The WhatsApp sender can't send.")
	}
	return coded(parley.Upstream, sendFailed, "WhatsApp refused the message: %s", e.Text)
}
