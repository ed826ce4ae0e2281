package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/crash"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/telemetry"
)

// answer has the assistant answer one message and stores what came of it. An error means that nothing was stored and
// the message waits on, for as many attempts as it has; the model's failure is no such error: it settles the message
// without a reply.
func (c *Chat) answer(ctx context.Context, m *parley.Message) error {
	ctx, cancel := context.WithTimeout(ai.Tallied(ctx, new(ai.Tally)), turnTime)
	defer cancel()
	thinking, done := c.untilTakenOver(ctx, m.ConversationID)
	defer done()
	conv, err := c.DB.PublicConversation(ctx, m.ConversationID)
	if err != nil {
		return err
	}
	began := time.Now()
	ctx, span := telemetry.Start(telemetry.Continue(ctx, string(conv.Trace)), "reply", trace.SpanKindInternal,
		attribute.String("gen_ai.conversation.id", conv.ID))
	defer span.End()
	thinking = trace.ContextWithSpan(thinking, span)
	w := c.waiter(m)
	a, err := c.assistant(ctx, conv)
	switch {
	case store.IsNotFound(err) || err == nil && !conv.AIEnabled:
		return c.settle(ctx, conv, m, w, Answer{AIOff: true}, nil)
	case err != nil:
		return err
	}
	price := c.price(conv, m.Channel)
	waits := true
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		// Counted before anything else happens: what ends the process counts too.
		if m.Attempts, err = tx.TryMessage(ctx, m); err != nil || m.Attempts == 0 {
			waits = err != nil
			return err
		}
		waits = true
		return tx.Reserve(ctx, conv.UserID, reference(m.ID), price, parley.Now().Add(hold))
	})
	switch {
	case errors.Is(err, store.Insufficient):
		return c.settle(ctx, conv, m, w, Answer{}, err)
	case err != nil || !waits: // another node was faster
		return err
	case m.Attempts > maxAttempts:
		return c.giveUp(ctx, conv, a, m, w, agent.Reply{}, errUnstorable)
	}
	c.Hub.Tell(conv.ID, event.Event{Kind: "typing"})
	tools, err := c.DB.DueBackground(ctx, conv.ID)
	if err != nil {
		return err
	}
	reply, sources, err := c.think(thinking, conv, a, m, w, tools, false)
	var failed *ai.Error
	switch {
	case errors.Is(context.Cause(thinking), errTakenOver):
		return c.settle(ctx, conv, m, w, Answer{AIOff: true}, nil)
	case err == nil:
		if err = c.store(ctx, conv, a, m, w, reply, outcome{sources: sources, price: price, tools: tools}); err == nil {
			telemetry.Replied("answered", time.Since(began))
		}
	case errors.Is(ctx.Err(), context.DeadlineExceeded), ctx.Err() == nil && errors.As(err, &failed):
		slog.WarnContext(ctx, "the model failed", "conversation", conv.ID, "assistant", a.ID, "kind", ai.KindOf(err), "error", err)
		telemetry.Replied("failed", time.Since(began))
		span.SetStatus(codes.Error, string(ai.KindOf(err)))
		return c.giveUp(ctx, conv, a, m, w, reply, err)
	}
	// the server stops, the lease is lost, the database failed: it stays pending
	if err == nil || ctx.Err() != nil || m.Attempts < maxAttempts {
		return err
	}
	slog.ErrorContext(ctx, "a message gets no reply", "conversation", conv.ID, "message", m.ID, "attempts", m.Attempts, "error",
		err)
	return c.giveUp(ctx, conv, a, m, w, agent.Reply{}, errUnstorable)
}

// errUnstorable is why a message gets no reply that was tried often enough.
var errUnstorable = parley.Explain(errors.New("the reply could not be stored"),
	"The reply could not be stored in %d attempts. The server's operator can find the reason in the log, under the conversation's id.",
	maxAttempts)

// giveUp ends a message that gets no reply, for nothing. Through a channel nobody reads an HTTP answer: the person
// there is told in words.
func (c *Chat) giveUp(ctx context.Context, conv *parley.Conversation, a *parley.Assistant, m *parley.Message,
	w *Waiter, reply agent.Reply, cause error) error {
	sorry := agent.Sentence(cause)
	if m.Channel != "" {
		reply.Text = sorry
		err := c.store(ctx, conv, a, m, w, reply, outcome{failure: why(cause)})
		if err == nil || m.Attempts < maxAttempts {
			return err
		}
	}
	return c.settle(ctx, conv, m, w, Answer{}, parley.Explain(parley.Errorf(parley.Upstream, "%s", sorry), "%s",
		*why(cause)))
}

// why says to the owner why a message got no reply.
func why(failure error) *string {
	text := cmp.Or(parley.Explanation(failure), "Something failed on the server while the reply was being made. "+
		"Its operator can find the reason in the log, under the conversation's id.")
	if errors.Is(failure, store.Insufficient) {
		text = "The balance did not cover the price of a reply. Top it up."
	}
	return &text
}

var errTakenOver = errors.New("a person has taken over")

// untilTakenOver is a context that ends when a person takes over the conversation: SetAI ends it at once where that
// happens on this node, a look at the row ends it where it happens on another. done must be called.
func (c *Chat) untilTakenOver(ctx context.Context, id string) (_ context.Context, done func()) {
	ctx, stop := context.WithCancelCause(ctx)
	c.stopWith(id, stop)
	var looking sync.WaitGroup
	crash.Go(&looking, func() {
		tick := time.NewTicker(lookForTakeover)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if conv, err := c.DB.PublicConversation(ctx, id); err == nil && !conv.AIEnabled {
				stop(errTakenOver)
			}
		}
	}, stop)
	return ctx, func() {
		c.stopWith(id, nil)
		stop(nil)
		looking.Wait()
	}
}

func (c *Chat) stopWith(id string, stop context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attended[id].stop = stop
}

// takenOver ends the reply that this process is making in a conversation.
func (c *Chat) takenOver(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.attended[id]; at != nil && at.stop != nil {
		at.stop(errTakenOver)
	}
}

// think runs the turn: the conversation up to m, without what came behind it, and what tools in the background have answered. further:
// the message has had its reply, and this one speaks of the tools. The sources are what knowledge the model was given.
func (c *Chat) think(ctx context.Context, conv *parley.Conversation, a *parley.Assistant, m *parley.Message,
	w *Waiter, tools []store.BackgroundTool, further bool) (agent.Reply, []parley.MessageSource, error) {
	o := occasion(conv)
	if w != nil {
		o.Client = w.client
	}
	ready, err := c.Assistants.Ready(a, o)
	if err != nil {
		return agent.Reply{}, nil, err
	}
	ready.Warm()
	list, err := c.DB.Messages(ctx, conv.ID)
	if err != nil {
		return agent.Reply{}, nil, err
	}
	made, err := c.DB.MessageCalls(ctx, conv.ID)
	if err != nil {
		return agent.Reply{}, nil, err
	}
	done := calls(made[m.ID])
	upTo := m.ID
	if further { // all that was said, and what is new behind it
		delete(made, m.ID)
		upTo = math.MaxInt64
	}
	past := history(list, upTo, made)
	if further {
		past = append(past, answers(tools)...)
	} else {
		past = beforeLast(past, m, answers(tools))
	}
	turn := ready.Turn(past, sink{ctx, w})
	for i, t := range turn.Tools {
		if t.Async != nil && !further { // a further reply waits: it would bring on the next one for ever
			turn.Tools[i].Run = c.background(conv, m, t)
		}
	}
	turn.Done = done
	turn.Keep = func(ctx context.Context, n int, calls []agent.ToolCall, done bool) error {
		return c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			for i, call := range calls {
				if err := tx.KeepMessageCall(ctx, m.ID, n+i, record(call), done); err != nil {
					return err
				}
			}
			return nil
		})
	}
	reply, err := turn.Run(ctx)
	return reply, ready.Sources(), err
}

// record is a tool call as it is stored; calls are stored ones as the agent knows them.
func record(c agent.ToolCall) parley.FunctionCall {
	return parley.FunctionCall{Name: c.Name, Arguments: c.Arguments, Result: c.Result}
}

func calls(list []parley.FunctionCall) []agent.ToolCall {
	out := make([]agent.ToolCall, len(list))
	for i, f := range list {
		out[i] = agent.ToolCall{Name: f.Name, Arguments: f.Arguments, Result: f.Result}
	}
	return out
}

// history is what the model sees of a conversation: everything up to the message, and the tools that ran for messages
// without a reply.
func history(list []parley.Message, upTo int64, made map[int64][]parley.FunctionCall) (out []ai.Message) {
	for _, m := range list {
		if m.ID > upTo && (m.Turn == 0 || m.Turn > upTo) {
			continue
		}
		if m.Role == parley.RoleUser {
			out = append(out, ai.Message{Role: ai.User, Text: m.Content})
			if m.ID != upTo {
				out = append(out, agent.Replay("", calls(made[m.ID]))...)
			}
			continue
		}
		out = append(out, agent.Replay(m.Content, calls(m.FunctionCalls))...)
	}
	return out
}

// beforeLast puts answers of tools before the customer's message m, which stays the last of past. So much may have been said since
// that past is not read any more: then m stands for it.
func beforeLast(past []ai.Message, m *parley.Message, answers []ai.Message) []ai.Message {
	if len(past) == 0 {
		past = []ai.Message{{Role: ai.User, Text: m.Content}}
	}
	return slices.Insert(past, len(past)-1, answers...)
}

// outcome is what a reply comes to.
type outcome struct {
	sources []parley.MessageSource
	price   parley.Money
	failure *string                // why it is no more than an apology; nil: it is one
	tools   []store.BackgroundTool // whose answers it knows
	further bool                   // the message has had its reply, and this one speaks of tools: nobody waits for it
}

// store writes a reply, its charge and the end of the waiting in one transaction.
func (c *Chat) store(ctx context.Context, conv *parley.Conversation, a *parley.Assistant, m *parley.Message,
	w *Waiter, reply agent.Reply, o outcome) error {
	r := &parley.Message{ConversationID: conv.ID, Turn: m.ID, Role: parley.RoleAssistant, Author: parley.AuthorAI,
		Content: reply.Text, Sources: o.sources,
		InputTokens: reply.Usage.In, OutputTokens: reply.Usage.Out}
	for _, call := range reply.Calls {
		r.FunctionCalls = append(r.FunctionCalls, record(call))
	}
	err := c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		r.ID = 0
		now, err := tx.ConversationForUpdate(ctx, conv.ID)
		if err != nil {
			return err
		}
		if !now.AIEnabled {
			return errTakenOver
		}
		if err := tx.AddMessage(ctx, r, o.price, EndsAt(a)); err != nil {
			return err
		}
		current, err := tx.EndBackground(ctx, o.tools)
		if err != nil {
			return err
		}
		if !o.further {
			current, err = c.charge(ctx, tx, conv, m, o)
		}
		if err != nil {
			return err
		}
		if !current {
			return errAnswered
		}
		if err := c.keepVendors(ctx, tx, now); err != nil {
			return err
		}
		if len(reply.Calls) > 0 {
			if err := tx.DropMessageCalls(ctx, m.ID); err != nil {
				return err
			}
		}
		return c.replied(ctx, tx, conv, m, r)
	})
	if errors.Is(err, errAnswered) { // another node was faster: its reply is the one
		return nil
	}
	if errors.Is(err, errTakenOver) {
		return c.settle(ctx, conv, m, w, Answer{AIOff: true}, nil)
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

// charge takes the price of a message and ends its waiting, and that of its burst; false when it did not wait.
func (c *Chat) charge(ctx context.Context, tx *store.Tx, conv *parley.Conversation, m *parley.Message, o outcome) (bool, error) {
	waited, err := tx.SettleMessage(ctx, m, o.price, o.failure, o.failure == nil)
	if err != nil || !waited {
		return false, err
	}
	if err := c.join(ctx, tx, conv, m, o.failure == nil); err != nil {
		return false, err
	}
	tx.CountMessage(conv, o.price, o.failure != nil)
	_, err = tx.Settle(ctx, conv.UserID, &parley.LedgerEntry{Kind: parley.MessageCharge, Amount: -o.price,
		Reference:   reference(m.ID),
		Description: fmt.Sprintf("Message to %s (%s)", conv.AssistantName, conv.Type)})
	return true, err
}

// maxSwitches is how many vendor switches a conversation's record keeps.
const maxSwitches = 100

// keepVendors adds to a conversation what an attempt at a reply, or its reading at the end, used of vendors, and which stood in for which.
func (c *Chat) keepVendors(ctx context.Context, tx *store.Tx, now *parley.Conversation) error {
	tally := ai.TallyOf(ctx)
	switches := tally.Switches()
	if len(switches) == 0 && len(tally.Uses()) == 0 {
		return nil
	}
	now.VendorUses = assistant.Uses(now.VendorUses, tally, c.Prices.Vendor)
	for _, s := range switches {
		if len(now.VendorSwitches) < maxSwitches {
			now.VendorSwitches = append(now.VendorSwitches, assistant.SwitchOf(s, parley.Time(now.CreatedAt)))
		}
	}
	return tx.KeepVendors(ctx, now)
}

var errAnswered = errors.New("the message has its reply already")

// settle says that a message gets no reply: none is wanted, or it failed.
func (c *Chat) settle(ctx context.Context, conv *parley.Conversation, m *parley.Message, w *Waiter, a Answer,
	failure error) error {
	var reason *string
	if failure != nil {
		reason = why(failure)
	}
	err := c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.ConversationForUpdate(ctx, conv.ID)
		if err == nil && len(ai.TallyOf(ctx).Uses()) > 0 {
			err = c.keepVendors(ctx, tx, now)
		}
		if err != nil && !store.IsNotFound(err) {
			return err
		}
		waited, err := tx.SettleMessage(ctx, m, 0, reason, false)
		if err != nil {
			return err
		}
		if waited {
			tx.CountMessage(conv, 0, reason != nil)
			if err := c.join(ctx, tx, conv, m, false); err != nil {
				return err
			}
		}
		return tx.Release(ctx, conv.UserID, reference(m.ID))
	})
	if err == nil && w != nil {
		w.finish(a, failure)
	}
	return err
}
