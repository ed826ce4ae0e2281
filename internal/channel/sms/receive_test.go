package sms_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/carrier"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// hears has a message come in, and waits until everything that it causes is done.
func (h *harness) hears(sid, from, body string) {
	h.Helper()
	if err := h.texts.Receive(h.Context(), carrier.Inbound{SID: sid, From: from, To: number1, Body: body}); err != nil {
		h.Fatal(err)
	}
	if err := h.sweep(); err != nil {
		h.Fatal(err)
	}
}

// conversation returns the conversation with a person, once nothing in it waits for the assistant.
func (h *harness) conversation(a *parley.Assistant, who string) (*parley.Conversation, []parley.Message) {
	h.Helper()
	conv, err := h.db.CustomerConversation(h.Context(), a.ID, parley.APIConversation, who)
	if err != nil {
		h.Fatal(err)
	}
	events, stop, _ := h.hub.Listen(conv.ID, 10)
	defer stop()
	deadline := time.After(20 * time.Second)
	for {
		if m, err := h.db.Pending(h.Context(), conv.ID); err != nil {
			h.Fatal(err)
		} else if m == nil {
			list, err := h.db.Messages(h.Context(), conv.ID)
			if err != nil {
				h.Fatal(err)
			}
			return conv, list
		}
		select {
		case <-events:
		case <-deadline:
			h.Fatal("no reply came")
		}
	}
}

// sent lists the texts that the carrier accepted, and their recipients.
func (h *harness) sent() (list []string) {
	for _, m := range h.carrier.Sent() {
		list = append(list, m.To+": "+m.Body)
	}
	return list
}

func TestAnswered(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		a := h.assistant(n)
		h.texts.Prices.Messages["sms"] = 3 * cent
		h.hears("SMin1", person, "When are you open?")
		_, list := h.conversation(a, person)
		if len(list) != 2 || list[0].Content != "When are you open?" || !strings.Contains(list[1].Content, "7 am") {
			t.Fatalf("the conversation holds %+v", list)
		}
		h.hears("SMin1", person, "When are you open?") // the webhook is repeated
		var wg sync.WaitGroup
		for range 4 { // and again, to several nodes
			wg.Go(func() {
				if err := h.texts.Receive(t.Context(),
					carrier.Inbound{SID: "SMin2", From: person, To: number1,
						Body: "Where is +12025550101?"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for range 2 {
			if err := h.sweep(); err != nil {
				t.Fatal(err)
			}
		}
		conv, list := h.conversation(a, person)
		if err := h.sweep(); err != nil {
			t.Fatal(err)
		}
		if len(list) != 4 || len(h.carrier.Sent()) != 2 || *conv.CustomerPhone != person ||
			conv.Type != parley.APIConversation {
			t.Errorf("%d messages, %d sent, conversation %+v", len(list), len(h.carrier.Sent()), conv)
		}
		if got := h.sent()[0]; got != person+": "+list[1].Content || h.carrier.Sent()[0].From != number1 {
			t.Errorf("sent %q", got)
		}
		h.money(4*parley.USD - 2*(3*cent+cent)) // the messages at their own price, the replies by the segment

		// A person who replies in the assistant's place reaches the phone too, and is told if the message can't be
		// paid for.
		if _, err := h.texts.Chat.Reply(t.Context(), h.user.ID, parley.Person{Name: "Bo"}, conv.ID, "This is Ana."); err != nil {
			t.Fatal(err)
		}
		if err := h.sweep(); err != nil || h.sent()[2] != person+": This is Ana." {
			t.Errorf("sent %q: %v", h.sent(), err)
		}
		h.texts.Prices.SMS["US"] = 100 * parley.USD
		_, err := h.texts.Chat.Reply(t.Context(), h.user.ID, parley.Person{Name: "Bo"}, conv.ID, "This is Ana again.")
		h.is(err, parley.Payment)
		if _, list := h.conversation(a, person); len(list) != 5 {
			t.Errorf("a reply that nobody hears is in the conversation: %+v", list[len(list)-1])
		}
	})
}

// If a server dies after the conversation got the message and before that is recorded, the conversation still gets it
// only once.
func TestAnsweredOnce(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		a := h.assistant(h.buy(number1))
		if err := h.texts.Receive(t.Context(), carrier.Inbound{SID: "SMin1", From: person, To: number1,
			Body: "When are you open?"}); err != nil {
			t.Fatal(err)
		}
		conv, err := h.texts.Chat.WithCustomer(t.Context(), a, parley.APIConversation, person, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.texts.Chat.Receive(t.Context(), conv, parley.ChannelSMS, "SMin1",
			"When are you open?"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := h.sweep(); err != nil {
				t.Fatal(err)
			}
			if _, list := h.conversation(a, person); len(list) != 2 {
				t.Fatalf("the conversation holds %+v", list)
			}
		}
		if err := h.sweep(); err != nil || len(h.carrier.Sent()) != 1 {
			t.Errorf("sent %q: %v", h.sent(), err)
		}
	})
}

func TestKeywords(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		a := h.assistant(n)
		out := func() bool {
			t.Helper()
			got, err := h.db.OptedOut(t.Context(), h.user.ID, number1, person)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		last := func(want string) {
			t.Helper()
			if list := h.sent(); len(list) == 0 || !strings.Contains(list[len(list)-1], want) {
				t.Errorf("sent %q, want %q last", list, want)
			}
		}
		i := 0
		say := func(body string) { i++; h.hears(fmt.Sprint("SMin", i), person, body) }
		for _, word := range []string{"STOP", " stop. ", "Unsubscribe", "stopall", "END", "quit", "\"Cancel\"",
			"opt-out", "STOP please", "Stop\n\nSent from my iPhone", "ARRÊT", "ＳＴＯＰ 🛑"} {
			say(word)
			if !out() {
				t.Errorf("%q was not heard", word)
			}
			last("no more messages")
			_, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "Buy!")
			h.is(err, parley.Refused)
			say("start")
			if out() {
				t.Errorf("start after %q was not heard", word)
			}
			last("get messages from this number again")
		}
		say("help")
		last("STOP")
		if _, err := h.db.CustomerConversation(t.Context(), a.ID, parley.APIConversation,
			person); !store.IsNotFound(err) {
			t.Errorf("the assistant was given keywords: %v", err)
		}
		for _, word := range []string{"does the bus stop here?", "please cancel", "yes"} { // these are for the assistant
			say(word)
			if out() {
				t.Errorf("%q was taken for a keyword", word)
			}
		}
		h.conversation(a, person)
		if err := h.sweep(); err != nil {
			t.Fatal(err)
		}
		say("stop")
		before := len(h.sent())
		say("Are you still there?") // kept, and not answered
		conv, list := h.conversation(a, person)
		if len(list) != 7 || list[6].Content != "Are you still there?" || len(h.sent()) != before {
			t.Errorf("%d messages, %q sent", len(list), h.sent()[before:])
		}
		_, err := h.texts.Chat.Reply(t.Context(), h.user.ID, parley.Person{Name: "Bo"}, conv.ID, "Yes we are.")
		h.is(err, parley.Refused)
		say("Yes")
		if out() {
			t.Error("yes after a stop was not heard")
		}
		if _, err := h.texts.Send(t.Context(), h.user.ID, n.ID, "+12025550778", "Hello"); err != nil {
			t.Errorf("another person: %v", err)
		}
	})
}

// selfAnswering is a carrier that answers keywords itself.
type selfAnswering struct{ carrier.Carrier }

func (selfAnswering) AnswersKeywords() {}

func TestCarrierAnswersKeywords(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.buy(number1)
		h.texts.Carrier = selfAnswering{h.carrier}
		h.hears("SMin1", person, "STOP")
		if out, err := h.db.OptedOut(t.Context(), h.user.ID, number1, person); err != nil || !out ||
			len(h.sent()) != 0 {
			t.Errorf("opted out: %v, sent %q: %v", out, h.sent(), err)
		}
	})
}

func TestUnanswerable(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		h.hears("SMin1", person, "Anybody?") // no assistant
		a := h.assistant(n)
		h.hears("SMin2", "BANK", "Your code is 1234") // nobody to write back to
		if _, list := h.conversation(a, "BANK"); len(list) != 2 {
			t.Errorf("the conversation holds %+v", list)
		}
		h.hears("SMin3", person, "  ")
		h.texts.Receive(t.Context(), carrier.Inbound{SID: "SMin4", From: person, To: number2, Body: "Wrong number"})
		h.texts.Receive(t.Context(), carrier.Inbound{SID: "SMin5", From: person, To: "nobody", Body: "Wrong number"})
		h.texts.Prices.SMS["US"] = 100 * parley.USD
		h.hears("SMin6", person, "When are you open?") // the reply can't be paid for
		h.conversation(a, person)
		if err := h.sweep(); err != nil || len(h.sent()) != 0 {
			t.Errorf("sent %q: %v", h.sent(), err)
		}
		if m := h.messages()[0]; m.Status != parley.SMSFailed || m.Error == nil || *m.Error != "Insufficient balance" {
			t.Errorf("the reply stands as %+v", m)
		}
		// No money is left: the message is kept, and gets no answer.
		h.write(func(ctx context.Context, tx *store.Tx) error {
			free, err := tx.Free(ctx, h.user.ID)
			if err != nil {
				return err
			}
			_, err = tx.Post(ctx, h.user.ID, &parley.LedgerEntry{Kind: parley.SMSCharge, Amount: -free,
				Reference: "all", Description: "x"})
			return err
		})
		h.hears("SMin7", person, "Hello?")
		if _, list := h.conversation(a, person); list[len(list)-1].Content != "Hello?" {
			t.Errorf("the conversation holds %+v", list)
		}
		h.money(0)
		out, in, err := h.db.StrandedSMS(t.Context(), parley.Now().Add(time.Minute), 10)
		if err != nil || len(out)+len(in) != 0 {
			t.Errorf("still standing: %v %v %v", out, in, err)
		}
	})
}

// What comes while nothing can be written is refused with when to send it again.
func TestTextsDuringAnOutage(t *testing.T) {
	h := open(t, storetest.SQLite(t))
	n := h.buy(number1)
	m, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "Hello")
	if err != nil {
		t.Fatal(err)
	}
	h.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.SQL().NewRaw("PRAGMA query_only = 1").Exec(ctx) // of the only connection that writes
		return err
	})
	var later interface{ Wait() int }
	err = h.texts.Receive(t.Context(), carrier.Inbound{SID: "SMin1", From: person, To: number1, Body: "Anybody?"})
	if !errors.As(err, &later) || later.Wait() <= 0 {
		t.Errorf("a text is told %v", err)
	}
	err = h.texts.Report(t.Context(), carrier.Report{Reference: fmt.Sprintf("sms:%d", m.ID), Status: parley.SMSDelivered})
	if !errors.As(err, &later) || later.Wait() <= 0 {
		t.Errorf("a report is told %v", err)
	}
}

func TestErase(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		h.hears("SMin1", person, "STOP")
		other := "+12025550778"
		if _, err := h.texts.Send(t.Context(), h.user.ID, n.ID, other, "Hello"); err != nil {
			t.Fatal(err)
		}
		stranger := storetest.User(t, h.db, 0)
		for user, want := range map[int64]int{stranger.ID: 0, h.user.ID: 2} {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				got, _, err := tx.EraseSMS(ctx, user, person)
				if got != want {
					t.Errorf("erased %d, want %d", got, want)
				}
				return err
			})
		}
		if list := h.messages(); len(list) != 1 || list[0].To != other {
			t.Errorf("left: %+v", list)
		}
		_, err := h.texts.Send(t.Context(), h.user.ID, n.ID, person, "Buy!")
		h.is(err, parley.Refused) // a person who said stop still gets no messages
	})
}

// Messages older than the operator's limit are deleted, except those that are still to be sent.
func TestForget(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		n := h.buy(number1)
		h.hears("SMin1", person, "STOP")
		h.carrier.Before = on("send", nil, true)
		h.dies(func() { h.texts.Send(t.Context(), h.user.ID, n.ID, "+12025550778", "Hello") })
		forget := func(before parley.Time) {
			t.Helper()
			h.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.ForgetSMS(ctx, before)
				return err
			})
		}
		forget(parley.Now().Add(-time.Minute))
		if n := len(h.messages()); n != 2 {
			t.Errorf("%d messages are left that are young", n)
		}
		forget(parley.Now().Add(time.Minute))
		if list := h.messages(); len(list) != 1 || list[0].Status != parley.SMSQueued {
			t.Errorf("left: %+v", list)
		}
		if _, err := h.db.InboundSMS(t.Context(), 0, "SMin1"); !store.IsNotFound(err) {
			t.Errorf("a message that came in is left: %v", err)
		}
	})
}
