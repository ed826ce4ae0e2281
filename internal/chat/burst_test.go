package chat_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/chat"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

const cent = parley.USD / 100

// patient is a node that waits until a phone is quiet.
func (h *harness) patient() *chat.Chat {
	c := chat.New(chat.Config{DB: h.db, Assistants: h.assistants, Prices: h.prices, Hub: event.NewHub(), Quiet: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	h.Cleanup(func() { cancel(); <-done; c.Stop(context.Background()) })
	return c
}

// held has another node hold a conversation's lease while something happens in it.
func (h *harness) held(conv *parley.Conversation, what func()) {
	h.Helper()
	h.until("the lease", func() (mine bool) { // it is given back after the reply is stored
		h.write(func(ctx context.Context, tx *store.Tx) (err error) {
			mine, err = tx.Lease(ctx, conv.ID, "another", time.Minute)
			return err
		})
		return mine
	})
	what()
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.Unlease(ctx, conv.ID, "another") })
}

func (h *harness) receive(c *chat.Chat, conv *parley.Conversation, channel, id, text string) {
	h.Helper()
	if err := c.Receive(h.Context(), conv, channel, id, text); err != nil {
		h.Fatal(err)
	}
}

// answered waits until nothing is pending and the conversation is nobody's.
func (h *harness) answered(conv *parley.Conversation) []parley.Message {
	h.Helper()
	h.until("the reply", func() bool {
		m, err := h.db.Pending(h.Context(), conv.ID)
		if err != nil {
			h.Fatal(err)
		}
		return m == nil
	})
	return h.history(conv)
}

func (h *harness) free() parley.Money {
	h.Helper()
	free, err := h.db.Free(h.Context(), h.user.ID)
	if err != nil {
		h.Fatal(err)
	}
	return free
}

// Messages that a phone sends in one go get one reply, which has read all of them, and cost what one costs.
func TestBurst(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		channels := []string{parley.ChannelWhatsApp, parley.ChannelSMS}
		for _, channel := range channels { // before anybody reads them
			h.prices.Messages[channel] = cent
		}
		for _, channel := range channels {
			c := h.patient()
			conv := h.start(c, parley.WhatsAppConversation)
			before, asked := h.balance(), h.server.Count()
			h.held(conv, func() {
				for i, text := range []string{"Hi", "I'd like a cake", "for Sunday"} {
					h.receive(c, conv, channel, fmt.Sprint(channel, i), text)
					h.receive(c, conv, channel, fmt.Sprint(channel, i), text) // told twice
				}
			})
			list := h.answered(conv)
			var said []string
			replies := 0
			for _, m := range list {
				if m.Role == parley.RoleUser {
					said = append(said, m.Content)
				} else if m.Turn > 0 {
					replies++
				}
			}
			if strings.Join(said, "|") != "Hi|I'd like a cake|for Sunday" || replies != 1 || h.server.Count() != asked+1 {
				t.Fatalf("%s: %q, %d replies, asked %d times", channel, said, replies, h.server.Count()-asked)
			}
			request := h.server.Requests()[len(h.server.Requests())-1]
			if n := len(request.Messages); n < 1 || !strings.Contains(string(request.Body), "I'd like a cake") {
				t.Errorf("%s: the model read %+v", channel, request.Messages)
			}
			if h.balance() != before-cent || h.free() != h.balance() {
				t.Errorf("%s: it cost %v, %v of %v are free", channel, before-h.balance(), h.free(), h.balance())
			}
			// What comes later is another turn.
			h.receive(c, conv, channel, channel+"later", "Thanks")
			if h.answered(conv); h.balance() != before-2*cent || h.server.Count() != asked+2 {
				t.Errorf("%s: the next message cost %v", channel, before-h.balance())
			}
		}
	})
}

// If the last message of a burst is taken back while its reply is made, the others are answered, for the price of one.
func TestRetractOfBurst(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.patient()
		conv := h.start(c, parley.WhatsAppConversation)
		before := h.balance()
		gate := make(chan struct{})
		h.server.Script(aitest.Behaviour{Text: "To whoever asked for both.", Gate: gate})
		h.held(conv, func() {
			h.receive(c, conv, parley.ChannelWhatsApp, "1", "A cake please")
			h.receive(c, conv, parley.ChannelWhatsApp, "2", "My card is 4711")
		})
		h.until("the model", func() bool { return h.server.Count() == 1 })
		if err := c.Retract(t.Context(), conv, "2"); err != nil {
			t.Fatal(err)
		}
		close(gate)
		list := h.answered(conv)
		reply, err := h.db.Reply(t.Context(), conv.ID, list[0].ID)
		price := h.prices.Messages[string(parley.WhatsAppConversation)]
		if err != nil || reply == nil || !strings.Contains(reply.Content, "A cake please") || len(list) != 3 ||
			h.balance() != before-price || h.free() != h.balance() {
			t.Errorf("%+v, cost %v, %v of %v are free: %v", list, before-h.balance(), h.free(), h.balance(), err)
		}
	})
}

// A burst whose node dies while its reply is made stays one: another node answers it, for the price of one.
func TestBurstTriedAgain(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		dying := h.patient()
		conv := h.start(dying, parley.WhatsAppConversation)
		before := h.balance()
		gate := make(chan struct{})
		defer close(gate)
		h.server.Script(aitest.Behaviour{Text: "Never heard.", Gate: gate})
		h.held(conv, func() {
			h.receive(dying, conv, parley.ChannelWhatsApp, "1", "A cake please")
			h.receive(dying, conv, parley.ChannelWhatsApp, "2", "For Sunday")
		})
		h.until("the model", func() bool { return h.server.Count() == 1 })
		gone, cut := context.WithCancel(context.Background())
		cut()
		dying.Stop(gone)
		h.receive(h.patient(), conv, parley.ChannelWhatsApp, "3", "Are you there?")
		list := h.answered(conv)
		var turns []string
		for _, m := range list {
			if m.Turn > 0 {
				turns = append(turns, m.Content)
			}
		}
		price := h.prices.Messages[string(parley.WhatsAppConversation)]
		if len(turns) != 2 || !strings.Contains(turns[0], "For Sunday") || !strings.Contains(turns[1], "Are you there?") ||
			h.balance() != before-2*price || h.free() != h.balance() {
			t.Errorf("%q, cost %v, %v of %v are free", turns, before-h.balance(), h.free(), h.balance())
		}
	})
}

// If a burst gets no reply, nothing of it waits or stays set aside, and its first message waits for a person.
func TestBurstTakenOver(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.patient()
		conv := h.start(c, parley.WhatsAppConversation)
		before := h.balance()
		gate := make(chan struct{})
		defer close(gate)
		h.server.Script(aitest.Behaviour{Text: "Never heard.", Gate: gate})
		h.held(conv, func() {
			h.receive(c, conv, parley.ChannelWhatsApp, "1", "A cake please")
			h.receive(c, conv, parley.ChannelWhatsApp, "2", "For Sunday")
		})
		h.until("the model", func() bool { return h.server.Count() == 1 })
		if err := c.TakeOver(t.Context(), h.user.ID, conv.ID, nil); err != nil {
			t.Fatal(err)
		}
		list := h.answered(conv)
		now, err := h.db.PublicConversation(t.Context(), conv.ID)
		if err != nil || list[len(list)-1].Content != "For Sunday" || now.WaitsSince == 0 || h.balance() != before || h.free() != before {
			t.Errorf("%+v, waits since %v, %v of %v are free: %v", list, now.WaitsSince, h.free(), h.balance(), err)
		}
	})
}

// A burst whose node dies is answered once by another, and a message of the web is answered by itself.
func TestBurstElsewhere(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		dying := h.patient()
		conv := h.start(dying, parley.WhatsAppConversation)
		before := h.balance()
		gone, cut := context.WithCancel(context.Background())
		cut()
		h.held(conv, func() {
			h.receive(dying, conv, parley.ChannelWhatsApp, "1", "Hi")
			h.receive(dying, conv, parley.ChannelWhatsApp, "2", "A cake please")
			dying.Stop(gone)
		})
		c := h.patient()
		h.answered(conv)
		price := h.prices.Messages[string(parley.WhatsAppConversation)]
		if n := h.server.Count(); n != 1 || h.balance() != before-price || h.free() != h.balance() {
			t.Errorf("asked %d times, cost %v", n, before-h.balance())
		}
		web := h.start(c, parley.APIConversation)
		for i := range 2 {
			if _, err := h.say(c, web, fmt.Sprint("Question ", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.server.Count(); n != 3 {
			t.Errorf("two questions of a program were asked %d times", n-1)
		}
	})
}

// A customer changes what was said, or takes it back.
func TestReviseAndRetract(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.patient()
		conv := h.start(c, parley.WhatsAppConversation)
		before := h.balance()
		price := h.prices.Messages[string(parley.WhatsAppConversation)]
		revise := func(id, text string) bool {
			known, err := c.Revise(t.Context(), conv, id, text)
			if err != nil {
				t.Fatal(err)
			}
			return known
		}
		retract := func(id string) {
			if err := c.Retract(t.Context(), conv, id); err != nil {
				t.Fatal(err)
			}
		}
		// Before the reply: the new text is answered, once.
		h.held(conv, func() {
			h.receive(c, conv, parley.ChannelWhatsApp, "1", "Two caks")
			if !revise("1", "Two cakes") {
				t.Error("the message is not known")
			}
		})
		list := h.answered(conv)
		reply := list[len(list)-1]
		if !strings.Contains(reply.Content, "Two cakes") || !list[len(list)-2].Edited || h.balance() != before-price {
			t.Errorf("%+v", list)
		}
		// After it: the text changes, and nothing is answered.
		revise("1", "Three cakes")
		retract("nothing")
		if revise("nothing", "x") || revise("", "x") {
			t.Error("a message that is not there was changed")
		}
		list = h.answered(conv)
		if m := list[len(list)-2]; m.Content != "Three cakes" || list[len(list)-1].ID != reply.ID || h.balance() != before-price {
			t.Errorf("%+v", list)
		}
		// Taken back before the reply: none comes, and nothing is charged or set aside.
		asked := h.server.Count()
		h.held(conv, func() {
			h.receive(c, conv, parley.ChannelWhatsApp, "2", "My number is 4711")
			retract("2")
			revise("2", "again") // what is gone stays gone
		})
		list = h.answered(conv)
		m := list[len(list)-1]
		if m.Role != parley.RoleUser || strings.Contains(m.Content, "4711") || m.Content == "again" || !m.Deleted || m.Failed ||
			h.server.Count() != asked || h.balance() != before-price || h.free() != h.balance() {
			t.Errorf("%+v, asked %d times, %v free of %v", m, h.server.Count()-asked, h.free(), h.balance())
		}
	})
}
