package chat

import (
	"context"
	"time"

	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// writesFor is how long somebody counts as writing: the console's script says it again every 3 seconds (asset/chat.js).
const writesFor = 7 * time.Second

// WritingTopic is where the readers of a conversation learn that somebody writes. Its customer does not.
func WritingTopic(conversation string) string { return "writing:" + conversation }

// Writes notes that somebody writes a reply in one of a user's conversations. Readers on this node learn of it at once,
// and those on others within about a second: they read the row.
func (c *Chat) Writes(ctx context.Context, userID int64, by parley.Person, id string) error {
	conv, err := c.DB.Conversation(ctx, userID, id)
	if err != nil {
		return err
	}
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.Writes(ctx, conv.ID, by, writesFor) })
	if err == nil {
		c.Hub.Tell(WritingTopic(conv.ID), event.Event{Kind: "writing"})
	}
	return err
}
