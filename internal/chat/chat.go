// Package chat is a text conversation's life: a customer's message is stored, answered by the assistant, charged
// once, and ended by silence, in whatever channel it came.
//
// # Order
//
// A message that wants a reply is stored as pending. One node at a time works on a conversation, by a lease on its
// row, and answers what is pending, oldest first. Who sent a message only waits for its reply to stand: so replies
// come in order whatever arrives at once, a reader who leaves takes nothing with them, and what a killed node left
// pending is answered by the next node that looks.
//
// # Money
//
// The price of a message is reserved in the transaction that stores it, and taken in the transaction that stores its
// reply, under the message's own reference: a message is charged once or, when it got no reply, never. Messages that a
// phone sends in one go get one reply and cost what one of them costs: the others' reservations are released.
package chat

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/assistant"
	"parley/internal/billing"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/stage"
	"parley/internal/store"
	"parley/internal/telemetry"
)

// Config is what a Chat works with.
type Config struct {
	DB         *store.DB
	Node       string // this process's id, in leases; "": one of its own
	Assistants *assistant.Studio
	Prices     *billing.Prices
	Hub        *event.Hub
	Lease      time.Duration // how long a killed node's conversations wait for another; 0 is 15 s
	Quiet      time.Duration // how long a phone must be quiet before its messages are answered, together; 0: each by itself

	// Channels opens the channels that hand messages in and send replies: New calls it with the Chat, which they keep
	// and don't use yet. nil: there are none.
	Channels func(*Chat) []Replied
}

// Replied is how a channel sends a reply. It is called in the transaction that stores the reply: asked is the
// customer's message that it answers (for a person's reply the newest one; nil when there is none). Its error refuses
// the reply. A channel leaves alone what did not come through it.
type Replied func(ctx context.Context, tx *store.Tx, conv *parley.Conversation, asked, reply *parley.Message) error

func (c *Chat) replied(ctx context.Context, tx *store.Tx, conv *parley.Conversation, asked,
	reply *parley.Message) error {
	for _, send := range c.channels {
		if err := send(ctx, tx, conv, asked, reply); err != nil {
			return err
		}
	}
	return nil
}

// Chat holds text conversations.
type Chat struct {
	Config
	channels []Replied
	node     string // this process, in leases
	ctx      context.Context
	cancel   context.CancelCauseFunc
	wg       sync.WaitGroup
	mu       sync.Mutex
	stopping bool
	attended map[string]*attendance       // conversations that this process works on
	waiting  map[string]map[int64]*Waiter // by conversation, who waits for the reply to a message
}

// New makes a Chat; Run it, and Stop it in the end.
func New(config Config) *Chat {
	config.Lease = cmp.Or(config.Lease, 15*time.Second)
	c := &Chat{Config: config, node: cmp.Or(config.Node, uuid.NewString()), attended: map[string]*attendance{},
		waiting: map[string]map[int64]*Waiter{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if config.Channels != nil {
		c.channels = config.Channels(c)
	}
	return c
}

// errStopping is what those hear who wait while the server stops. Their message is kept and answered by the next start.
var errStopping = parley.Errorf(parley.Unavailable,
	"The server is restarting. Your message is kept; please look again in a moment.")

// lookAround is how often a node looks for conversations that wait for somebody.
const lookAround = 2 * time.Second

// Run looks for conversations that wait for a node: silence has ended them, or whoever should have answered is gone.
func (c *Chat) Run(ctx context.Context) error {
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for {
		ids, err := c.DB.Unattended(ctx, parley.Now(), 50)
		if err != nil && ctx.Err() == nil {
			slog.Error("look for unattended conversations", "error", err)
		}
		for _, id := range ids {
			c.attend(id)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Stop takes no more messages and waits until those under way are answered, or until ctx ends: then they are cut, and
// stay pending.
func (c *Chat) Stop(ctx context.Context) {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); c.wg.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
		c.cancel(errStopping)
		<-done
	}
	c.cancel(errStopping)
}

// Start makes a conversation of a type with an assistant, with its first message in it. Its visitor, and not its
// owner, gave the variables that visitors names.
func (c *Chat) Start(ctx context.Context, a *parley.Assistant, kind parley.ConversationType, vars map[string]string,
	visitors ...string) (*parley.Conversation, []parley.Message, error) {
	return c.start(ctx, a, &parley.Conversation{Type: kind, Variables: vars, VisitorNames: strings.Join(visitors, " ")})
}

// StartDraft makes a test conversation with the draft of an assistant; a is the assistant with it. Where the draft is
// published or discarded meanwhile, the live assistant goes on. share is the link by which a visitor began it, 0 for the
// assistant's owner.
func (c *Chat) StartDraft(ctx context.Context, a *parley.Assistant, share int64, vars map[string]string,
	visitors ...string) (*parley.Conversation, []parley.Message, error) {
	conv := &parley.Conversation{Type: parley.TestConversation, Draft: true, Variables: vars,
		VisitorNames: strings.Join(visitors, " ")}
	if share != 0 {
		conv.Share(share, uuid.NewString())
	}
	return c.start(ctx, a, conv)
}

func (c *Chat) start(ctx context.Context, a *parley.Assistant, conv *parley.Conversation) (*parley.Conversation,
	[]parley.Message, error) {
	conv.UserID, conv.AssistantID, conv.AssistantUUID, conv.AssistantName = a.UserID, a.ID, a.UUID, a.Name
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		// The price of a message must be there, though nothing is taken yet.
		if price := c.price(conv, ""); price > 0 {
			free, err := tx.Free(ctx, a.UserID)
			if err != nil {
				return err
			}
			if free < price {
				return store.Insufficient
			}
		}
		return c.create(ctx, tx, a, conv)
	})
	if err != nil {
		return nil, nil, err
	}
	c.Assistants.Warm(a, occasion(conv))
	history, err := c.DB.Messages(ctx, conv.ID)
	return conv, history, err
}

// assistant is whom a conversation is held with, as it is now.
func (c *Chat) assistant(ctx context.Context, conv *parley.Conversation) (*parley.Assistant, error) {
	if conv.Draft {
		return c.Assistants.Drafted(ctx, conv.UserID, conv.AssistantID)
	}
	return c.DB.Assistant(ctx, conv.UserID, conv.AssistantID)
}

func (c *Chat) create(ctx context.Context, tx *store.Tx, a *parley.Assistant, conv *parley.Conversation) error {
	if conv.Variables == nil {
		conv.Variables = map[string]string{}
	}
	name := "conversations"
	if c.free(conv) {
		name = "test_conversations"
	}
	if err := tx.Meter(ctx, conv.UserID, parley.Now(), name); err != nil {
		return err
	}
	conv.EndsAt = EndsAt(a)
	began, span := telemetry.Start(ctx, "conversation", trace.SpanKindServer, attribute.String("parley.conversation.type", string(conv.Type)),
		attribute.String("gen_ai.agent.id", a.UUID), attribute.String("gen_ai.agent.name", a.Name))
	span.End() // what is said in it follows, for as long as people take
	conv.Trace = parley.Trace(telemetry.Parent(began))
	o := c.Assistants.Staged(occasion(conv))
	first := parley.Render(c.Assistants.Cast(a, o).InitialMessage, assistant.Variables(a, o))
	if conv.Type == parley.WhatsAppConversation || conv.Type == parley.APIConversation {
		first = "" // nobody would have heard it: such a conversation begins with the customer's words or a template
	}
	return tx.CreateConversation(ctx, conv, first)
}

// EndsAt is when silence ends a conversation in which something is said now. A deleted assistant, nil, has no say in
// it.
func EndsAt(a *parley.Assistant) parley.Time {
	minutes := int64(30)
	if a != nil {
		minutes = a.ConversationInactivityTimeout
	}
	return parley.Now().Add(time.Duration(minutes) * time.Minute)
}

func occasion(conv *parley.Conversation) assistant.Occasion {
	o := assistant.Occasion{Now: time.Now(), Of: conv.ID}
	o.Variables, o.Visitor = conv.GivenBy()
	if conv.CustomerPhone != nil {
		o.CustomerPhone = *conv.CustomerPhone
	}
	if conv.Type == parley.TestConversation && conv.SharedBy() == 0 { // the owner's
		o.Test = conv.Variables[stage.Variable]
	}
	return o
}

// WithCustomer is the conversation of an assistant with a customer whom the channel calls identifier, made when there
// is none. vars are laid over its variables; the customer, and not the assistant's owner, gave those that visitors
// names.
func (c *Chat) WithCustomer(ctx context.Context, a *parley.Assistant, kind parley.ConversationType,
	identifier string, vars map[string]string, visitors ...string) (*parley.Conversation, error) {
	var conv *parley.Conversation
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		conv, err = tx.CustomerConversation(ctx, a.ID, kind, identifier)
		if err == nil {
			return tx.AddVariables(ctx, conv, vars, visitors)
		}
		if !store.IsNotFound(err) {
			return err
		}
		conv = &parley.Conversation{UserID: a.UserID, AssistantID: a.ID, AssistantUUID: a.UUID,
			AssistantName: a.Name, Type: kind,
			Variables: vars, VisitorNames: strings.Join(visitors, " "), ExternalIdentifier: &identifier}
		if phone, ok := parley.NormalizePhone(identifier); ok {
			conv.CustomerPhone = &phone
		}
		return c.create(ctx, tx, a, conv)
	})
	if store.IsSecondConversation(err) { // made by another request just now
		return c.WithCustomer(ctx, a, kind, identifier, vars, visitors...)
	}
	return conv, err
}

// free says whether a conversation is a test that costs nothing.
func (c *Chat) free(conv *parley.Conversation) bool {
	return conv.Type == parley.TestConversation && c.price(conv, "") == 0
}

// price is what a customer's message in a conversation costs: by the channel that it came through, else by the
// conversation's type.
func (c *Chat) price(conv *parley.Conversation, channel string) parley.Money {
	if price, ok := c.Prices.Messages[channel]; ok {
		return price
	}
	return c.Prices.Messages[string(conv.Type)]
}

// reference is a message's name in the ledger.
func reference(messageID int64) string { return "message:" + strconv.FormatInt(messageID, 10) }

// hold is how long the price of a message stays reserved: longer than any reply takes, renewed when its turn comes.
const hold = 15 * time.Minute

// Send stores a customer's message and has it answered. The Waiter follows the reply; nobody has to. The error is
// Insufficient, and nothing is stored, when the owner's balance doesn't cover the price. tools are the names of those tools of kind
// client that the Waiter's reader runs: it gets a Piece for each call, and answers by ToolAnswered.
func (c *Chat) Send(ctx context.Context, conv *parley.Conversation, text string, tools ...string) (*Waiter, error) {
	return c.send(ctx, conv, &parley.Message{Content: text}, tools...)
}

// ToolAnswered takes the result of a tool that the reader of a reply has run, and reports whether one of that id was awaited here.
func (c *Chat) ToolAnswered(conversationID, callID string, result assistant.ClientResult) bool {
	c.mu.Lock()
	list := slices.Collect(maps.Values(c.waiting[conversationID]))
	c.mu.Unlock()
	return slices.ContainsFunc(list, func(w *Waiter) bool { return w.client.Answer(callID, result) })
}

// Receive stores a customer's message that came through a channel and has it answered; the channel's Replied sends the
// reply. externalID is the channel's own id of the message: received a second time, it changes nothing. A disabled
// account's assistants answer nobody: it is kept.
func (c *Chat) Receive(ctx context.Context, conv *parley.Conversation, channel, externalID, text string) error {
	u, err := c.DB.User(ctx, conv.UserID)
	if err != nil {
		return err
	}
	if u.DisabledAt != 0 {
		return c.Keep(ctx, conv, channel, externalID, text)
	}
	w, err := c.send(ctx, conv, &parley.Message{Content: text, Channel: channel, ExternalID: externalID})
	if store.IsSecondMessage(err) {
		return nil
	}
	if err == nil {
		w.Leave()
	}
	return err
}

func (c *Chat) send(ctx context.Context, conv *parley.Conversation, m *parley.Message, tools ...string) (*Waiter, error) {
	a, err := c.assistant(ctx, conv)
	if err != nil {
		return nil, err
	}
	w := newWaiter(tools)
	m.ConversationID, m.Role, m.Author = conv.ID, parley.RoleUser, parley.AuthorCustomer
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.ConversationForUpdate(ctx, conv.ID)
		if err != nil {
			return err
		}
		if m.ID != 0 { // a second try, after a lost race
			c.forget(conv.ID, m.ID)
		}
		m.ID, m.Pending = 0, now.AIEnabled
		if err := tx.AddMessage(ctx, m, 0, EndsAt(a)); err != nil {
			return err
		}
		if !m.Pending {
			return tx.Meter(ctx, conv.UserID, parley.Now(), parley.LimitUnanswered)
		}
		if c.free(conv) {
			if err := tx.Meter(ctx, conv.UserID, parley.Now(), "test_messages"); err != nil {
				return err
			}
		}
		reserve := tx.Reserve
		if conv.Type == parley.WidgetConversation || conv.SharedBy() != 0 { // anybody may write
			reserve = tx.ReservePublic
		}
		if err := reserve(ctx, conv.UserID, reference(m.ID), c.price(conv, m.Channel),
			parley.Now().Add(hold)); err != nil {
			return err
		}
		// Before the commit, so that nobody answers it unheard.
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.stopping {
			return errStopping
		}
		if c.waiting[conv.ID] == nil {
			c.waiting[conv.ID] = map[int64]*Waiter{}
		}
		c.waiting[conv.ID][m.ID] = w
		return nil
	})
	if err != nil {
		c.forget(conv.ID, m.ID)
		return nil, err
	}
	c.told(conv.ID)
	w.leave = func() { c.forget(conv.ID, m.ID) }
	if !m.Pending {
		w.finish(Answer{AIOff: true}, nil)
		return w, nil
	}
	c.attend(conv.ID)
	return w, nil
}

// Keep stores a customer's message that came through a channel and gets no answer: nobody is there to give one, or
// nothing to pay it with. As with Receive, the second time changes nothing.
func (c *Chat) Keep(ctx context.Context, conv *parley.Conversation, channel, externalID, text string) error {
	a, err := c.DB.Assistant(ctx, conv.UserID, conv.AssistantID)
	if err != nil {
		return err
	}
	m := &parley.Message{ConversationID: conv.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer,
		Content: text, Channel: channel, ExternalID: externalID}
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		m.ID = 0
		return tx.AddMessage(ctx, m, 0, EndsAt(a))
	})
	if store.IsSecondMessage(err) {
		return nil
	}
	if err == nil {
		c.told(conv.ID)
	}
	return err
}

func (c *Chat) forget(conversationID string, messageID int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting[conversationID], messageID)
	if len(c.waiting[conversationID]) == 0 {
		delete(c.waiting, conversationID)
	}
}

// told wakes those who listen to a conversation: it has a new message.
func (c *Chat) told(id string) { c.Hub.Tell(id, event.Event{Kind: "message"}) }

// Reply stores the message of a person who takes the assistant's place.
func (c *Chat) Reply(ctx context.Context, userID int64, by parley.Person, id, text string) (*parley.Message, error) {
	conv, err := c.DB.Conversation(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	a, err := c.DB.Assistant(ctx, userID, conv.AssistantID)
	if err != nil && !store.IsNotFound(err) { // a deleted assistant's conversations can still be answered by hand
		return nil, err
	}
	m := &parley.Message{ConversationID: id, Role: parley.RoleAssistant, Author: parley.AuthorHuman, AuthorName: by.Name, Content: text}
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		m.ID = 0
		if err := tx.AddMessage(ctx, m, 0, EndsAt(a)); err != nil {
			return err
		}
		if err := tx.Meter(ctx, userID, parley.Now(), parley.LimitHumanReplies); err != nil {
			return err
		}
		if err := tx.Assign(ctx, id, by.ID); err != nil {
			return err
		}
		if err := tx.StopsWriting(ctx, id, by.ID); err != nil {
			return err
		}
		asked, err := tx.LastAsked(ctx, id)
		if err != nil {
			return err
		}
		return c.replied(ctx, tx, conv, asked, m)
	})
	if err == nil {
		c.told(id)
	}
	return m, err
}

// Delete removes a conversation with all that is in it.
func (c *Chat) Delete(ctx context.Context, userID int64, id string) error {
	return c.DB.Write(ctx, func(ctx context.Context,
		tx *store.Tx) error {
		return tx.DeleteConversation(ctx, userID, id)
	})
}

// HandBack has the assistant reply again.
func (c *Chat) HandBack(ctx context.Context, userID int64, id string) error {
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.TurnOnAI(ctx, userID, id) })
	if err == nil {
		c.Hub.Tell(id, event.Event{Kind: "ai", Data: true})
	}
	return err
}

// TakeOver has a person reply in the assistant's place: who, or, where that is nil, whoever takes the conversation. It
// ends the reply that is being made: nothing more of it is told, nothing of it is kept, and it costs nothing.
func (c *Chat) TakeOver(ctx context.Context, userID int64, id string, who *int64) error {
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.TurnOffAI(ctx, userID, id, who) })
	if err == nil {
		c.takenOver(id)
		c.Hub.Tell(id, event.Event{Kind: "ai", Data: false})
	}
	return err
}

// Attended says that a conversation needs no person: nothing is left to say.
func (c *Chat) Attended(ctx context.Context, userID int64, id string) error {
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.Attended(ctx, userID, id) })
	if err == nil {
		c.Hub.Tell(id, event.Event{Kind: "attended"})
	}
	return err
}
