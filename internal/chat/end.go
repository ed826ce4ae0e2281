package chat

import (
	"context"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"parley/internal/ai"
	"parley/internal/assistant"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/telemetry"
)

// endSilent ends a conversation that silence has ended, with what was found out from it. It may run twice, after a
// crash: only what is stored counts. What can't be found out or stored in a few attempts is left out.
func (c *Chat) endSilent(ctx context.Context, id string) (failures int, err error) {
	conv, err := c.DB.PublicConversation(ctx, id)
	if store.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || conv.EndsAt == 0 || conv.EndsAt > parley.Now() {
		return 1, err
	}
	ctx, span := telemetry.Start(telemetry.Continue(ctx, string(conv.Trace)), "report", trace.SpanKindInternal)
	defer span.End()
	attempts := 0
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		attempts, err = tx.TryEnd(ctx, id)
		return err
	})
	if err != nil {
		return 1, err
	}
	var found parley.Findings
	ctx = ai.Tallied(ctx, new(ai.Tally))
	if attempts <= maxEndAttempts {
		if found, err = c.extract(ctx, conv); err != nil {
			return attempts, err
		}
	}
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		ended, err := tx.EndConversation(ctx, conv, found, parley.Now())
		if err != nil || !ended {
			return err
		}
		now, err := tx.ConversationForUpdate(ctx, id)
		if err == nil {
			err = c.keepVendors(ctx, tx, now)
		}
		if err != nil {
			return err
		}
		return tellEnded(ctx, tx, conv)
	})
	if err == nil {
		c.Assistants.Over(conv.ID)
	}
	return attempts, err
}

// tellEnded has the assistant's endpoint told that a conversation has ended.
func tellEnded(ctx context.Context, tx *store.Tx, conv *parley.Conversation) error {
	if conv.Draft { // a draft has nobody's endpoint told
		return nil
	}
	a, err := tx.Assistant(ctx, conv.UserID, conv.AssistantID)
	if err != nil || a.ConversationEndedURL == nil || occasion(conv).Test != "" {
		if store.IsNotFound(err) { // nobody is asked for events of a deleted assistant
			return nil
		}
		return err
	}
	list, err := tx.Messages(ctx, conv.ID)
	if err != nil {
		return err
	}
	e := parley.ConversationEnded{ConversationID: conv.ID, AssistantID: a.UUID, AssistantName: a.Name,
		Type: conv.Type, MessageCount: conv.MessageCount,
		ExtractedVariables: conv.Extracted, ExtractedVariablesNotes: conv.ExtractedNotes, InputVariables: conv.Variables,
		CustomerPhone: conv.CustomerPhone, CreatedAt: parley.Time(conv.CreatedAt), EndedAt: conv.EndedAt}
	if e.Sender, err = tx.ConversationSender(ctx, conv); err != nil {
		return err
	}
	e.FormattedTranscript, _ = Transcript(list)
	for _, m := range list {
		e.Transcript = append(e.Transcript, parley.TranscriptLine{Role: m.Role, Content: m.Content,
			Language: m.Language, Timestamp: parley.Time(m.CreatedAt)})
	}
	return tx.EnqueueDelivery(ctx, conv.UserID, e.Delivery(a))
}

// extract finds what the assistant's post_call_schema asks for; nothing where nobody said anything. A model that fails
// leaves every value open: the end of a conversation does not wait for it.
func (c *Chat) extract(ctx context.Context, conv *parley.Conversation) (found parley.Findings, err error) {
	list, err := c.DB.Messages(ctx, conv.ID)
	if err != nil {
		return found, err
	}
	text, heard := Transcript(list)
	a, err := c.assistant(ctx, conv)
	if store.IsNotFound(err) || err == nil && (!heard || len(assistant.Asked(a)) == 0) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	ready, err := c.Assistants.Ready(a, occasion(conv))
	if err == nil {
		found, err = ready.Extract(ctx, text)
	} else {
		found = parley.Unread(assistant.Asked(a), err)
	}
	if err != nil {
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		slog.WarnContext(ctx, "extraction failed", "conversation", conv.ID, "error", err)
	}
	return found, nil
}

// Transcript is a conversation as text, a line per message: "AI: …", "Customer: …"; heard says whether the customer
// said anything.
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
