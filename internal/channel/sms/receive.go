package sms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"

	"parley/internal/carrier"
	"parley/internal/channel"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	stopped   = "You will get no more messages from this number. Reply START to get them again."
	started   = "You will get messages from this number again. Reply STOP to end them."
	explained = "An assistant answers messages to this number. Reply STOP to get no more messages."
)

// maxInbound is how much of a message the assistant reads, in characters.
const maxInbound = 2000

// Receive takes a message that came in. STOP, START and HELP are honoured at once; another is answered by a job.
func (c *Channel) Receive(ctx context.Context, in carrier.Inbound) error {
	return store.Told(c.receive(ctx, in))
}

func (c *Channel) receive(ctx context.Context, in carrier.Inbound) error {
	to, ok := parley.NormalizePhone(in.To)
	if !ok {
		return nil
	}
	n, err := c.DB.RentedNumber(ctx, to)
	if store.IsNotFound(err) {
		slog.WarnContext(ctx, "a message came to a number that is not rented here", "to", to)
		return nil
	}
	if err != nil {
		return err
	}
	from, person := parley.NormalizePhone(in.From)
	if !person { // a short code or a name: it can be read, and not be answered
		from = strings.TrimSpace(in.From)
	}
	m := &parley.InboundSMS{SID: in.SID, UserID: n.UserID, NumberID: n.ID, From: from, To: to,
		Body: strings.TrimSpace(in.Body)}
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		m.ID, m.Handled = 0, m.Body == "" || from == ""
		fresh, err := tx.AddInboundSMS(ctx, m)
		if err != nil || !fresh || m.Handled {
			return err
		}
		done, err := c.obey(ctx, tx, n, m, person)
		if err != nil {
			return err
		}
		if done {
			return tx.HandledSMS(ctx, m.ID)
		}
		return tx.Enqueue(ctx, inboundArgs{m.ID}, nil)
	})
	var e *parley.Error
	if errors.As(err, &e) && e.Kind == parley.Conflict { // told twice at once: the other has it
		return nil
	}
	return err
}

// Pretend has a message come in to a number of the user's, as from a person's phone, and returns its sid.
func (c *Channel) Pretend(ctx context.Context, userID int64, from, to, body string) (sid string, err error) {
	n, err := c.DB.RentedNumber(ctx, to)
	if err == nil && n.UserID != userID {
		err = parley.Errorf(parley.NotFound, "Phone number not found")
	}
	if err != nil {
		return "", err
	}
	sid = "SM" + uuid.NewString()
	return sid, c.Receive(ctx, carrier.Inbound{SID: sid, From: from, To: to, Body: body})
}

// obey does what a message asks for that is a keyword.
func (c *Channel) obey(ctx context.Context, tx *store.Tx, n *parley.Number, m *parley.InboundSMS,
	person bool) (bool, error) {
	out, err := tx.OptedOut(ctx, n.UserID, n.PhoneNumber, m.From)
	if err != nil {
		return false, err
	}
	reply := ""
	switch want := keyword(m.Body); {
	case want == wantsStop:
		reply, err = stopped, tx.OptOut(ctx, n.UserID, n.PhoneNumber, m.From, true)
	case want == wantsStart, out && want == wantsAgain:
		reply, err = started, tx.OptOut(ctx, n.UserID, n.PhoneNumber, m.From, false)
	case want == wantsHelp:
		reply = explained
	default:
		return false, nil
	}
	_, answered := c.Carrier.(carrier.KeywordAnswerer)
	if err != nil || answered || !person || !n.SMSCapable || !n.Subscribed(parley.Now()) {
		return true, err
	}
	_, err = c.queue(ctx, tx, n, m.From, reply)
	return true, err
}

// answer gives a message that came in to the number's assistant. The reply goes out when it stands (Replied). It may
// run twice: the conversation takes a message once.
func (c *Channel) answer(ctx context.Context, id int64) error {
	m, err := c.DB.InboundSMS(ctx, id, "")
	if store.IsNotFound(err) || err == nil && m.Handled {
		return nil
	}
	if err != nil {
		return err
	}
	a, err := c.DB.NumberAssistant(ctx, m.UserID, m.NumberID)
	if err != nil {
		return err
	}
	if a != nil { // else nobody answers that number
		if err := c.converse(ctx, a, m); err != nil {
			return fmt.Errorf("answer inbound message %d: %w", id, err)
		}
	}
	return c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.HandledSMS(ctx, id) })
}

func (c *Channel) converse(ctx context.Context, a *parley.Assistant, m *parley.InboundSMS) error {
	text := []rune(m.Body)
	body := string(text[:min(len(text), maxInbound)])
	conv, err := c.Chat.WithCustomer(ctx, a, parley.APIConversation, m.From, map[string]string{"assistant_phone": m.To})
	if err != nil {
		return err
	}
	out, err := c.DB.OptedOut(ctx, m.UserID, m.To, m.From)
	if err != nil {
		return err
	}
	if !out {
		if err = c.Chat.Receive(ctx, conv, parley.ChannelSMS, m.SID, body); !errors.Is(err, store.Insufficient) {
			return err
		}
		slog.WarnContext(ctx, "an inbound message gets no answer: the balance doesn't cover it", "user", m.UserID,
			"conversation", conv.ID)
	}
	return c.Chat.Keep(ctx, conv, parley.ChannelSMS, m.SID, body)
}

// Replied sends the reply to a message that came as a text message, in the transaction that stores it. A person who
// replies in the assistant's place is told why it can't be sent; of an assistant's reply it stands in the list of
// messages.
func (c *Channel) Replied(ctx context.Context, tx *store.Tx, conv *parley.Conversation, asked,
	reply *parley.Message) error {
	if asked == nil || asked.Channel != parley.ChannelSMS || strings.TrimSpace(reply.Content) == "" {
		return nil
	}
	in, err := tx.InboundSMS(ctx, 0, asked.ExternalID)
	if err != nil {
		if store.IsNotFound(err) { // erased
			return nil
		}
		return err
	}
	byHand := reply.Author == parley.AuthorHuman
	refuse := func(reason string) error {
		if byHand {
			return parley.Errorf(parley.Refused, "%s", reason)
		}
		slog.WarnContext(ctx, "a reply was not sent", "conversation", conv.ID, "reason", reason)
		return nil
	}
	n, err := tx.Number(ctx, in.UserID, in.NumberID)
	if store.IsNotFound(err) {
		return refuse("The phone number of this conversation is given up")
	}
	if err != nil {
		return err
	}
	if _, person := parley.NormalizePhone(in.From); !person {
		return refuse("The sender can't be answered")
	}
	reason, err := c.unable(ctx, tx, n, in.From)
	if err != nil {
		return err
	}
	if reason != "" {
		return refuse(reason)
	}
	for _, part := range channel.Parts(channel.Said(reply, channel.PlainText), longest) {
		refusal, err := c.queue(ctx, tx, n, in.From, part)
		if err != nil {
			return err
		}
		if refusal != nil && byHand {
			return refusal
		}
	}
	return nil
}
