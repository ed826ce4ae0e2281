package chat

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
)

// An asynchronous tool runs in the background: the model is told at once that it was started, and the customer gets that reply. When the
// tool has answered, the assistant says so in a further reply, which costs nothing. A customer who writes first is answered by a reply
// that knows the answer. What has been started is stored, so that a killed node's tools end as cut off, and nobody waits for ever.

const (
	maxBackgroundAttempts = 3                // at speaking of what tools have answered
	backgroundGrace       = 30 * time.Second // after its own timeout a tool that has not answered counts as cut off
)

// background is what an asynchronous tool does in the turn that answers m: it is started, and the result says so.
func (c *Chat) background(
	conv *parley.Conversation, m *parley.Message, t agent.Tool,
) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, arguments json.RawMessage) (string, error) {
		b := &store.BackgroundTool{ConversationID: conv.ID, UserID: conv.UserID, MessageID: m.ID, Name: t.Name,
			DueAt: parley.Now().Add(t.AsyncTime + backgroundGrace)}
		var ok bool
		err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			ok, err = tx.StartBackground(ctx, b, agent.Started)
			return err
		})
		if err != nil {
			return "", err
		}
		if !ok {
			return "", agent.TooManyStarted(store.MaxBackground)
		}
		crash.Go(&c.wg, func() { c.runBackground(b, t, arguments) },
			crash.Log("end a tool in the background", "tool", t.Name, "conversation", conv.ID))
		return b.Started, nil
	}
}

// runBackground runs a tool and stores its answer. Where the server stops before it has answered, it is cut off.
func (c *Chat) runBackground(b *store.BackgroundTool, t agent.Tool, arguments json.RawMessage) {
	result := "Error: the tool failed."
	func() {
		defer crash.Contain(crash.Log("run a tool in the background", "tool", t.Name, "conversation", b.ConversationID))
		result, _ = agent.Told(t.Async(c.ctx, arguments))
	}()
	answer := &result
	if c.ctx.Err() != nil {
		answer = nil
	}
	for n := 1; ; n++ { // also while the database is away
		err := c.DB.Write(context.WithoutCancel(c.ctx), func(ctx context.Context, tx *store.Tx) error {
			return tx.AnswerBackground(ctx, b, answer)
		})
		if err == nil {
			break
		}
		slog.Error("store the answer of a tool in the background", "tool", t.Name, "conversation", b.ConversationID, "error", err)
		if c.ctx.Err() != nil || parley.Now() > b.DueAt {
			return
		}
		select {
		case <-time.After(rest(n)):
		case <-c.ctx.Done():
		}
	}
	c.attend(b.ConversationID)
}

// answers are what the model is told of tools that have answered.
func answers(list []store.BackgroundTool) (out []ai.Message) {
	for i := range list {
		out = append(out, agent.Answered(list[i].Name, list[i].N, list[i].Result()))
	}
	return out
}

// speakOfTools has the assistant speak of tools that have answered since its last reply. A person has taken over, or the conversation is
// over: then their answers go into the record alone. With an error it says how often that has failed.
func (c *Chat) speakOfTools(ctx context.Context, id string) (spoke bool, failures int, err error) {
	list, err := c.DB.DueBackground(ctx, id)
	if err != nil || len(list) == 0 {
		return false, 1, err
	}
	ctx, cancel := context.WithTimeout(ai.Tallied(ctx, new(ai.Tally)), turnTime)
	defer cancel()
	conv, err := c.DB.PublicConversation(ctx, id)
	if err != nil {
		return false, 1, err
	}
	a, err := c.assistant(ctx, conv)
	if err != nil && !store.IsNotFound(err) {
		return false, 1, err
	}
	m, failed := c.DB.LastAsked(ctx, id)
	if failed != nil {
		return false, 1, failed
	}
	silent := err != nil || m == nil || !conv.AIEnabled || conv.EndsAt == 0
	if m != nil && m.Pending { // it has just come: its reply knows the answers
		return true, 0, nil
	}
	if err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.TryBackground(ctx, list) }); err != nil {
		return false, 1, err
	}
	// those that can't be told: nobody is there, or each attempt ended with the process
	untold := slices.DeleteFunc(slices.Clone(list),
		func(t store.BackgroundTool) bool { return !silent && t.Attempts <= maxBackgroundAttempts })
	if len(untold) > 0 {
		return true, 1, c.endTools(ctx, id, untold)
	}
	err = c.speak(ctx, conv, a, m, list)
	if err == nil || ctx.Err() != nil {
		return true, 1, err
	}
	// Somebody who writes meanwhile is answered, and told of no failure that isn't theirs.
	if waits, failed := c.DB.Pending(ctx, id); failed == nil && waits != nil {
		slog.WarnContext(ctx, "the assistant can't speak of what tools have answered", "conversation", id, "error", err)
		return true, 0, nil
	}
	tired := slices.DeleteFunc(slices.Clone(list), func(t store.BackgroundTool) bool { return t.Attempts < maxBackgroundAttempts })
	if len(tired) == 0 {
		return true, list[0].Attempts, err
	}
	slog.ErrorContext(ctx, "the assistant could not speak of what tools have answered", "conversation", id, "attempts",
		maxBackgroundAttempts, "error", err)
	return true, 1, c.endTools(ctx, id, tired)
}

// endTools puts the answers of tools of which nobody speaks into the record.
func (c *Chat) endTools(ctx context.Context, id string, list []store.BackgroundTool) error {
	err := c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.ConversationForUpdate(ctx, id); err != nil {
			return err
		}
		_, err := tx.EndBackground(ctx, list)
		return err
	})
	if err == nil {
		c.told(id)
	}
	return err
}

// speak makes and stores the reply that speaks of tools, behind the customer's newest message m.
func (c *Chat) speak(ctx context.Context, conv *parley.Conversation, a *parley.Assistant, m *parley.Message,
	list []store.BackgroundTool) error {
	thinking, done := c.untilTakenOver(ctx, conv.ID)
	defer done()
	reply, sources, err := c.think(thinking, conv, a, m, nil, list, true)
	switch {
	case errors.Is(context.Cause(thinking), errTakenOver):
		return nil // the next look finds that a person answers
	case err != nil:
		return err
	}
	return c.store(ctx, conv, a, m, nil, reply, outcome{sources: sources, tools: list, further: true})
}
