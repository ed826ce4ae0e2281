package chat

import (
	"context"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// Quiet is how long a phone must be quiet before its messages are answered, on a server.
const Quiet = 2 * time.Second

// maxBurst is how many quiet periods a burst of messages lasts at most: then it is answered, whatever still comes.
const maxBurst = 5

// next is the message of a conversation that is answered next, nil when none waits. On a phone people write in bursts:
// with Config.Quiet, messages that came through a channel wait until it is quiet, and get one reply together, for the
// price of one. It answers the last of them.
func (c *Chat) next(ctx context.Context, id string) (*parley.Message, error) {
	for {
		list, err := c.DB.PendingMessages(ctx, id)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		burst := list[:1]
		if c.Quiet > 0 && list[0].Channel != "" {
			burst = list[:length(list)]
		}
		first, last := &burst[0], &burst[len(burst)-1]
		if c.Quiet == 0 || first.Channel == "" || first.Attempts > 0 {
			return last, nil
		}
		due := min(parley.Time(last.CreatedAt).Add(c.Quiet), parley.Time(first.CreatedAt).Add(maxBurst*c.Quiet))
		pause := due.Sub(parley.Now())
		if pause <= 0 {
			return last, nil
		}
		select {
		case <-time.After(min(pause, c.Quiet)): // a clock that was set back must not stop anybody
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// length is how many of the messages belong to the first one's burst: all those whose reply is being tried, or is not yet.
func length(list []parley.Message) int {
	n := 1
	for n < len(list) && list[n].Channel == list[0].Channel && (list[n].Attempts > 0) == (list[0].Attempts > 0) {
		n++
	}
	return n
}

// join has the messages that wait before another wait no longer, and cost nothing: they are of its burst, and what has
// become of it has become of them.
func (c *Chat) join(ctx context.Context, tx *store.Tx, conv *parley.Conversation, last *parley.Message, answered bool) error {
	list, err := tx.PendingMessages(ctx, conv.ID)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].ID > last.ID {
			break
		}
		if _, err := tx.SettleMessage(ctx, &list[i], 0, nil, answered); err != nil {
			return err
		}
		if err := tx.Release(ctx, conv.UserID, reference(list[i].ID)); err != nil {
			return err
		}
	}
	return nil
}

// deleted stands in the place of a message that its customer deleted.
const deleted = "[The customer deleted this message.]"

// Revise puts a new text in the place of a customer's message that came through a channel, by the channel's id of it.
// What waits for its reply is answered by the new text; what has one gets no other. It says whether there is such a
// message.
func (c *Chat) Revise(ctx context.Context, conv *parley.Conversation, externalID, text string) (known bool, err error) {
	return c.change(ctx, conv, externalID, func(_ context.Context, _ *store.Tx, m *parley.Message) error {
		m.Content, m.Edited = text, true
		return nil
	})
}

// Retract takes a customer's message back, by the channel's id of it: its text is gone, and it gets no reply if it has
// none yet. The others of its burst do.
func (c *Chat) Retract(ctx context.Context, conv *parley.Conversation, externalID string) error {
	_, err := c.change(ctx, conv, externalID, func(ctx context.Context, tx *store.Tx, m *parley.Message) error {
		m.Content, m.Deleted = deleted, true
		if _, err := tx.SettleMessage(ctx, m, 0, nil, true); err != nil {
			return err
		}
		return tx.Release(ctx, conv.UserID, reference(m.ID))
	})
	return err
}

// change changes a customer's message, unless it was deleted.
func (c *Chat) change(ctx context.Context, conv *parley.Conversation, externalID string,
	how func(ctx context.Context, tx *store.Tx, m *parley.Message) error) (known bool, err error) {
	if externalID == "" {
		return false, nil
	}
	err = c.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.ConversationForUpdate(ctx, conv.ID); err != nil {
			return err
		}
		m, err := tx.ExternalMessage(ctx, conv.ID, externalID)
		known = m != nil
		if err != nil || !known || m.Deleted {
			return err
		}
		if err := how(ctx, tx, m); err != nil {
			return err
		}
		return tx.ReviseMessage(ctx, m)
	})
	if err == nil && known {
		c.told(conv.ID)
	}
	return known, err
}
