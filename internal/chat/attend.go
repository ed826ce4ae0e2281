package chat

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/internal/agent"
	"parley/internal/crash"
	"parley/internal/parley"
	"parley/internal/store"
)

const (
	glance = 150 * time.Millisecond // how often a node looks whether another has finished with a conversation
	// how often it looks, during a reply, whether a person took over on another node
	lookForTakeover = time.Second
	turnTime        = 4 * time.Minute // no reply takes longer

	maxAttempts    = 6 // at answering one message; a minute passes between the first and the last
	maxEndAttempts = 3 // at ending a conversation with what is found out from it
)

// rest is how long nobody looks at a conversation by themselves after something failed in it for the n-th time.
func rest(n int) time.Duration { return 2 * time.Second << min(max(n-1, 0), 7) }

// attendance is this process's work on one conversation.
type attendance struct {
	again bool
	stop  context.CancelCauseFunc // ends the reply that is being made; nil while none is
}

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

// work takes the lease, answers what is pending and ends what has fallen silent. While another node has the lease it
// looks on for those who wait here.
func (c *Chat) work(id string) {
	defer crash.Contain(func(err error) { // its lease lapses
		slog.Error("a conversation panicked", "conversation", id, "error", err)
		c.tellWaiters(id, errors.New("panic"))
	})
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

// workLeased works while a heartbeat keeps the lease, and gives it back. It says whether the lease was lost: another
// node goes on.
func (c *Chat) workLeased(id string) (lost bool) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil) // also when what is done below panics
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		defer crash.Contain(cancel)
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
	failures, err := c.workOff(ctx, id)
	// a message stays pending, or the end open: it is tried again after a rest, or at once when something new is said
	if err != nil {
		if ctx.Err() == nil {
			slog.Error("work on a conversation", "conversation", id, "failures", failures, "error", err)
		} else {
			failures, err = 0, context.Cause(ctx)
		}
		if lost = errors.Is(err, errLost); !lost {
			c.tellWaiters(id, err)
		}
	}
	cancel(nil)
	<-beating
	again := err != nil && failures > 0
	err = c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		if again {
			return tx.Rest(ctx, id, c.node, parley.Now().Add(rest(failures)))
		}
		return tx.Unlease(ctx, id, c.node)
	})
	if err != nil {
		slog.Error("give a lease back", "conversation", id, "error", err)
	}
	c.tellWaiters(id, nil)
	return lost
}

// workOff answers what is pending in a conversation, and ends it when silence has. With an error it says how often
// that has failed.
func (c *Chat) workOff(ctx context.Context, id string) (failures int, err error) {
	for {
		m, err := c.next(ctx, id)
		if err != nil {
			return 1, err
		}
		if m == nil {
			spoke, failures, err := c.speakOfTools(ctx, id)
			if err != nil {
				return failures, err
			}
			if !spoke {
				return c.endSilent(ctx, id)
			}
			continue
		}
		if err := c.answer(ctx, m); err != nil {
			return max(m.Attempts, 1), err
		}
	}
}

// tellWaiters tells those here who wait in a conversation what their messages came to, on whichever node, or the
// failure err. It says whether somebody still waits.
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
		if list[i].Turn > 0 && replies[list[i].Turn] == nil {
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
