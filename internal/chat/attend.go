package chat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"parley"
	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/event"
	"parley/internal/store"
)

const (
	glance   = 150 * time.Millisecond // how often a node looks whether another has finished with a conversation
	turnTime = 4 * time.Minute        // no reply takes longer
)

// attendance is this process's work on one conversation.
type attendance struct{ again bool }

// attend has this process work on a conversation until nothing in it waits. Once is enough, however often it is called.
func (c *Chat) attend(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.attended[id]; at != nil {
		at.again = true
		return
	}
	if c.stopping {
		return
	}
	at := &attendance{}
	c.attended[id] = at
	c.wg.Go(func() {
		for {
			c.work(id)
			c.mu.Lock()
			if !at.again || c.ctx.Err() != nil {
				delete(c.attended, id)
				c.mu.Unlock()
				return
			}
			at.again = false
			c.mu.Unlock()
		}
	})
}

// work takes the lease, answers what is pending and ends what has fallen silent. While another node has the lease it looks on for those
// who wait here.
func (c *Chat) work(id string) {
	defer func() { // one conversation's panic is nobody else's; its lease lapses and its waiters are told
		if p := recover(); p != nil {
			slog.Error("conversation panicked", "conversation", id, "panic", p, "stack", string(debug.Stack()))
			c.tellWaiters(id, errors.New("panic"))
		}
	}()
	for {
		mine, err := c.lease(c.ctx, id)
		switch {
		case err != nil:
			c.tellWaiters(id, err)
			return
		case mine && !c.workLeased(id):
			return
		}
		if !c.tellWaiters(id, nil) {
			return
		}
		select {
		case <-time.After(glance):
		case <-c.ctx.Done():
			c.tellWaiters(id, context.Cause(c.ctx))
			return
		}
	}
}

// lease takes the lease, or keeps it; false when another node has it.
func (c *Chat) lease(ctx context.Context, id string) (mine bool, err error) {
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		mine, err = tx.Lease(ctx, id, c.node, c.Lease)
		return err
	})
	return mine, err
}

var errLost = errors.New("the lease was lost")

// workLeased works while a heartbeat keeps the lease, and gives it back. It says whether the lease was lost: another node goes on.
func (c *Chat) workLeased(id string) (lost bool) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		tick := time.NewTicker(c.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if mine, err := c.lease(ctx, id); err == nil && !mine {
				cancel(errLost)
				return
			}
		}
	}()
	for {
		m, err := c.DB.Pending(ctx, id)
		if err == nil && m == nil {
			err = c.endSilent(ctx, id)
			if err != nil && ctx.Err() == nil {
				slog.Error("end a silent conversation", "conversation", id, "error", err)
			}
			break
		}
		if err == nil {
			err = c.answer(ctx, m)
		}
		if err != nil { // the message stays pending: whoever looks next, tries again
			if ctx.Err() == nil {
				slog.Error("answer a message", "conversation", id, "error", err)
			} else {
				err = context.Cause(ctx)
			}
			if lost = errors.Is(err, errLost); !lost {
				c.tellWaiters(id, err)
			}
			break
		}
	}
	cancel(nil)
	<-beating
	err := c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error { return tx.Unlease(ctx, id, c.node) })
	if err != nil {
		slog.Error("give a lease back", "conversation", id, "error", err)
	}
	c.tellWaiters(id, nil)
	return lost
}

// tellWaiters tells those here who wait in a conversation what their messages came to, on whichever node, or the failure err. It says
// whether somebody still waits.
func (c *Chat) tellWaiters(id string, failure error) (waiting bool) {
	if !c.anyWaiter(id) {
		return false
	}
	list, err := c.DB.Messages(context.WithoutCancel(c.ctx), id)
	if err != nil && failure == nil {
		failure = err
	}
	replies := map[int64]*parley.Message{}
	for i := range list {
		if list[i].Turn > 0 {
			replies[list[i].Turn] = &list[i]
		}
	}
	for i := range list {
		m := &list[i]
		w := c.waiter(m)
		if w == nil {
			continue
		}
		switch {
		case replies[m.ID] != nil:
			w.finish(Answer{Message: replies[m.ID]}, nil)
		case !m.Pending && m.Failed:
			w.finish(Answer{}, parley.Errorf(parley.Upstream, "%s", agent.Sentence(nil)))
		case !m.Pending:
			w.finish(Answer{AIOff: true}, nil)
		case failure != nil:
			w.finish(Answer{}, failure)
		default:
			waiting = true
		}
	}
	return waiting
}

// anyWaiter says whether somebody here waits for a reply that has not come.
func (c *Chat) anyWaiter(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting[id] {
		if !w.over() {
			return true
		}
	}
	return false
}

func (c *Chat) waiter(m *parley.Message) *Waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[m.ConversationID][m.ID]
}

// answer has the assistant answer one message and stores what came of it. An error means that nothing was stored and the message waits
// on; the model's failure is no such error: it settles the message without a reply.
func (c *Chat) answer(ctx context.Context, m *parley.Message) error {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	conv, err := c.DB.PublicConversation(ctx, m.ConversationID)
	if err != nil {
		return err
	}
	w := c.waiter(m)
	a, err := c.DB.Assistant(ctx, conv.UserID, conv.AssistantID)
	switch {
	case store.IsNotFound(err) || err == nil && !conv.AIEnabled:
		return c.settle(ctx, conv, m, w, Answer{AIOff: true}, nil)
	case err != nil:
		return err
	}
	price := c.price(conv, m.Channel)
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Reserve(ctx, conv.UserID, reference(m.ID), price, parley.Now().Add(hold))
	})
	if errors.Is(err, store.Insufficient) {
		return c.settle(ctx, conv, m, w, Answer{}, err)
	}
	if err != nil {
		return err
	}
	c.Hub.Tell(conv.ID, event.Event{Kind: "typing"})
	reply, sources, err := c.think(ctx, conv, a, m, w)
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return err // the server stops, or the lease is lost: it stays pending
	case err != nil:
		slog.Warn("the model failed", "conversation", conv.ID, "assistant", a.ID, "kind", ai.KindOf(err), "error", err)
		if m.Channel != "" { // nobody there reads an HTTP answer: the person is told in words, for nothing
			return c.store(ctx, conv, a, m, w, agent.Reply{Text: agent.Sentence(err)}, nil, 0)
		}
		return c.settle(ctx, conv, m, w, Answer{}, parley.Errorf(parley.Upstream, "%s", agent.Sentence(err)))
	}
	return c.store(ctx, conv, a, m, w, reply, sources, price)
}

// think runs the turn: the conversation up to m, without what came behind it. The sources are what knowledge the model was given.
func (c *Chat) think(ctx context.Context, conv *parley.Conversation, a *parley.Assistant, m *parley.Message, w *Waiter) (agent.Reply, []parley.MessageSource, error) {
	ready, err := c.Assistants.Ready(a, occasion(conv))
	if err != nil {
		return agent.Reply{}, nil, err
	}
	list, err := c.DB.Messages(ctx, conv.ID)
	if err != nil {
		return agent.Reply{}, nil, err
	}
	reply, err := ready.Turn(history(list, m.ID), sink{w}).Run(ctx)
	return reply, ready.Sources(), err
}

// history is what the model sees of a conversation: everything up to the message.
func history(list []parley.Message, upTo int64) (out []ai.Message) {
	for _, m := range list {
		if m.ID > upTo && (m.Turn == 0 || m.Turn > upTo) {
			continue
		}
		if m.Role == parley.RoleUser {
			out = append(out, ai.Message{Role: ai.User, Text: m.Content})
			continue
		}
		calls := make([]agent.Call, len(m.FunctionCalls))
		for i, f := range m.FunctionCalls {
			calls[i] = agent.Call{Name: f.Name, Arguments: f.Arguments, Result: f.Result}
		}
		out = append(out, agent.Replay(m.Content, calls)...)
	}
	return out
}

// store writes a reply, its charge and the end of the waiting in one transaction.
func (c *Chat) store(ctx context.Context, conv *parley.Conversation, a *parley.Assistant, m *parley.Message, w *Waiter, reply agent.Reply, sources []parley.MessageSource, price parley.Money) error {
	r := &parley.Message{ConversationID: conv.ID, Turn: m.ID, Role: parley.RoleAssistant, Author: parley.AuthorAI, Content: reply.Text, Sources: sources,
		InputTokens: reply.Usage.In, OutputTokens: reply.Usage.Out}
	for _, call := range reply.Calls {
		r.FunctionCalls = append(r.FunctionCalls, parley.FunctionCall{Name: call.Name, Arguments: call.Arguments, Result: call.Result})
	}
	err := c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		r.ID = 0
		if err := tx.AddMessage(ctx, r, price, EndsAt(a)); err != nil {
			return err
		}
		waited, err := tx.SettleMessage(ctx, m.ID, price, false)
		if err != nil {
			return err
		}
		if !waited {
			return errAnswered
		}
		_, err = tx.Settle(ctx, conv.UserID, &parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -price, Reference: reference(m.ID),
			Description: fmt.Sprintf("Message to %s (%s)", conv.AssistantName, conv.Type)})
		if err != nil {
			return err
		}
		return c.replied(ctx, tx, conv, m, r)
	})
	if errors.Is(err, errAnswered) { // another node was faster: its reply is the one
		return nil
	}
	if err != nil {
		return err
	}
	c.told(conv.ID)
	if w != nil {
		w.finish(Answer{Message: r}, nil)
	}
	return nil
}

var errAnswered = errors.New("the message has its reply already")

// settle says that a message gets no reply: none is wanted, or it failed.
func (c *Chat) settle(ctx context.Context, conv *parley.Conversation, m *parley.Message, w *Waiter, a Answer, failure error) error {
	err := c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.SettleMessage(ctx, m.ID, 0, failure != nil); err != nil {
			return err
		}
		return tx.Release(ctx, conv.UserID, reference(m.ID))
	})
	if err == nil && w != nil {
		w.finish(a, failure)
	}
	return err
}

// endSilent ends a conversation that silence has ended, with what was found out from it. It may run twice, after a crash: only what is
// stored counts.
func (c *Chat) endSilent(ctx context.Context, id string) error {
	conv, err := c.DB.PublicConversation(ctx, id)
	if err != nil || conv.EndsAt == 0 || conv.EndsAt > parley.Now() {
		return err
	}
	extracted, err := c.extract(ctx, conv)
	if err != nil {
		return err
	}
	return c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		ended, err := tx.EndConversation(ctx, conv, extracted, parley.Now())
		if err != nil || !ended {
			return err
		}
		return tellEnded(ctx, tx, conv)
	})
}

// tellEnded has the assistant's endpoint told that a conversation has ended.
func tellEnded(ctx context.Context, tx *store.Tx, conv *parley.Conversation) error {
	a, err := tx.Assistant(ctx, conv.UserID, conv.AssistantID)
	if err != nil || a.ConversationEndedURL == nil {
		if store.IsNotFound(err) { // nobody is asked for events of a deleted assistant
			return nil
		}
		return err
	}
	list, err := tx.Messages(ctx, conv.ID)
	if err != nil {
		return err
	}
	e := parley.ConversationEnded{ConversationID: conv.ID, AssistantID: a.UUID, AssistantName: a.Name, Type: conv.Type, MessageCount: conv.MessageCount,
		ExtractedVariables: conv.Extracted, InputVariables: conv.Variables, CustomerPhone: conv.CustomerPhone, EndedAt: parley.DateTime(conv.EndedAt)}
	e.FormattedTranscript, _ = Transcript(list)
	for _, m := range list {
		e.Transcript = append(e.Transcript, parley.TranscriptLine{Role: m.Role, Content: m.Content, Timestamp: m.CreatedAt})
	}
	return tx.EnqueueDelivery(ctx, conv.UserID, e.Delivery(a))
}

// extract finds what the assistant's post_call_schema asks for; nil where nobody said anything. A model that fails leaves every value
// open: the end of a conversation does not wait for it.
func (c *Chat) extract(ctx context.Context, conv *parley.Conversation) (map[string]any, error) {
	list, err := c.DB.Messages(ctx, conv.ID)
	if err != nil {
		return nil, err
	}
	text, heard := Transcript(list)
	a, err := c.DB.Assistant(ctx, conv.UserID, conv.AssistantID)
	if store.IsNotFound(err) || err == nil && (!heard || conv.Type == parley.TestConversation || len(a.PostCallSchema) == 0) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ready, err := c.Assistants.Ready(a, occasion(conv))
	var values map[string]any
	if err == nil {
		values, err = ready.Extract(ctx, text)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		slog.Warn("extraction failed", "conversation", conv.ID, "error", err)
	}
	return values, nil
}

// Transcript is a conversation as text, a line per message: "AI: …", "Customer: …"; heard says whether the customer said anything.
func Transcript(list []parley.Message) (text string, heard bool) {
	var b strings.Builder
	for _, m := range list {
		who := "AI: "
		if m.Role == parley.RoleUser {
			who, heard = "Customer: ", true
		}
		b.WriteString(who + m.Content + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), heard
}
