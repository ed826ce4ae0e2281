package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/assistant"
	"parley/internal/billing"
	"parley/internal/catalog"
	"parley/internal/chat"
	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
)

// harness is a database with a user, an assistant that thinks with a local server, and nodes that run chats.
type harness struct {
	testing.TB
	db         *store.DB
	server     *aitest.Server
	assistants *assistant.Studio
	prices     *billing.Prices
	user       *parley.User
	a          *parley.Assistant
}

func each(t *testing.T, test func(t *testing.T, h *harness)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, open(t, db)) })
}

func open(t testing.TB, db *store.DB) *harness {
	h := &harness{TB: t, db: db, server: aitest.NewServer(t)}
	h.server.Models = []string{"thinker"}
	providers, err := provider.Open(provider.All(openai.Declare(&openai.Settings{BaseURL: h.server.URL,
		Stall: 10 * time.Second})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(providers.Close)
	guard := egress.New(nil)
	t.Cleanup(guard.Close)
	cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k", ChatModel: []string{"thinker"}})))
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
	rows, err := db.Models(t.Context())
	if err == nil {
		err = cat.SetModels(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	if h.prices, err = billing.ReadPrices(""); err != nil {
		t.Fatal(err)
	}
	h.assistants = &assistant.Studio{DB: db, Catalog: cat, Providers: providers, Tools: tool.New(guard)}
	h.user = storetest.User(t, db, parley.USD)
	voice := cat.Voices("pipeline", 1)[0]
	h.a, err = h.assistants.Create(t.Context(), h.user.ID,
		map[string]any{"name": "Desk", "type": "inbound", "mode": "pipeline", "status": "active",
			"timezone": "UTC", "voice_id": number(voice.ID), "language_id": number(1),
			"llm_model_id":  number(cat.ModelsOf(parley.LLM)[0].ID),
			"system_prompt": "Serve {{who}}.", "prompt_current_time": false, "initial_message": "Hello {{who}}.",
			"variables": map[string]any{"who": "everybody"}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func number(n int64) json.Number { return json.Number(fmt.Sprint(n)) }

func (h *harness) write(fn func(context.Context, *store.Tx) error) {
	h.Helper()
	if err := h.db.Write(h.Context(), fn); err != nil {
		h.Fatal(err)
	}
}

// node is one more process on the database; it stops at the end of the test.
func (h *harness) node() *chat.Chat {
	c := chat.New(chat.Config{DB: h.db, Assistants: h.assistants, Prices: h.prices, Hub: event.NewHub(),
		Lease: time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	h.Cleanup(func() {
		cancel()
		<-done
		gone, cut := context.WithCancel(context.Background())
		cut()
		c.Stop(gone)
	})
	return c
}

func (h *harness) start(c *chat.Chat, kind parley.ConversationType) *parley.Conversation {
	h.Helper()
	conv, _, err := c.Start(h.Context(), h.a, kind, map[string]string{"who": "Ana"})
	if err != nil {
		h.Fatal(err)
	}
	return conv
}

// say sends a message and waits for the reply.
func (h *harness) say(c *chat.Chat, conv *parley.Conversation, text string) (string, error) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 30*time.Second)
	defer cancel()
	w, err := c.Send(ctx, conv, text)
	if err != nil {
		return "", err
	}
	defer w.Leave()
	got, err := w.Wait(ctx)
	if err != nil || got.Message == nil {
		return "", err
	}
	return got.Message.Content, nil
}

func (h *harness) balance() parley.Money {
	h.Helper()
	u, err := h.db.User(h.Context(), h.user.ID)
	if err != nil {
		h.Fatal(err)
	}
	return u.Balance
}

func (h *harness) history(conv *parley.Conversation) []parley.Message {
	h.Helper()
	list, err := h.db.Messages(h.Context(), conv.ID)
	if err != nil {
		h.Fatal(err)
	}
	return list
}

func (h *harness) contents(conv *parley.Conversation) string {
	var b strings.Builder
	for _, m := range h.history(conv) {
		b.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return b.String()
}

// until waits for something that another goroutine does.
func (h *harness) until(what string, ok func() bool) {
	h.Helper()
	look, hang := time.NewTicker(time.Millisecond), time.After(30*time.Second)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-hang:
			h.Fatalf("waited for %s in vain", what)
		}
	}
}

func TestReplyIsStoredAndChargedOnce(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		got, err := h.say(c, conv, "Hi")
		if err != nil || got != "You said: Hi (prompt: Serve Ana.)" {
			t.Fatalf("%q %v", got, err)
		}
		if want := "assistant: Hello Ana.\nuser: Hi\nassistant: " + got + "\n"; h.contents(conv) != want {
			t.Errorf("history:\n%s", h.contents(conv))
		}
		stored, err := h.db.Conversation(t.Context(), h.user.ID, conv.ID)
		if err != nil || stored.MessageCount != 3 || stored.TotalCost != 10_000 || h.balance() != parley.USD-10_000 {
			t.Errorf("%+v %v, balance %v", stored, err, h.balance())
		}
		if free, err := h.db.Free(t.Context(), h.user.ID); err != nil || free != h.balance() {
			t.Errorf("%v is free of %v: %v", free, h.balance(), err)
		}
		last := h.history(conv)[2]
		if last.InputTokens == 0 || last.OutputTokens == 0 {
			t.Errorf("usage is not kept: %+v", last)
		}
	})
}

// A reply that the database can't store must not be mistaken for one that another node gives: the waiting request gets
// an error, and the message is answered later, once.
func TestReplyThatCantBeStored(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	h := open(t, storetest.Open(t, o))
	c := h.node()
	conv := h.start(c, parley.WidgetConversation)
	mend := storetest.Break(t, o, "UPDATE OF pending ON messages")
	if got, err := h.say(c, conv, "Hi"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, %v", got, err)
	}
	mend()
	h.until("the reply", func() bool { return len(h.history(conv)) == 3 })
	if h.balance() != parley.USD-10_000 {
		t.Errorf("balance %v", h.balance())
	}
}

// A node that was too slow to keep its lease goes on waiting for the reply, whichever node gives it.
func TestLostLease(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	h := open(t, storetest.Open(t, o))
	c := h.node()
	conv := h.start(c, parley.WidgetConversation)
	gate := make(chan struct{})
	defer close(gate)
	h.server.Script(aitest.Behaviour{Text: "Never to be heard.", Gate: gate})
	said := make(chan error, 1)
	go func() {
		got, err := h.say(c, conv, "Hi")
		if err == nil && got != "You said: Hi (prompt: Serve Ana.)" {
			err = errors.New(got)
		}
		said <- err
	}()
	h.until("the model is asked", func() bool { return h.server.Count() == 1 })
	storetest.Exec(t, o, "UPDATE conversations SET lease_owner = 'another', lease_until = ?",
		int64(parley.Now().Add(2*time.Second)))
	if err := <-said; err != nil {
		t.Error(err)
	}
	if h.balance() != parley.USD-10_000 || len(h.history(conv)) != 3 {
		t.Errorf("balance %v, %s", h.balance(), h.contents(conv))
	}
}

// Messages that arrive at once, at two nodes, are each answered, in order, and each reply knows those before it.
func TestOrderOnTwoNodes(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		nodes := []*chat.Chat{h.node(), h.node()}
		conv := h.start(nodes[0], parley.WidgetConversation)
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				text := fmt.Sprintf("message %d", i)
				got, err := h.say(nodes[i%2], conv, text)
				if err != nil || !strings.HasPrefix(got, "You said: "+text+" ") {
					t.Errorf("%s was answered %q: %v", text, got, err)
				}
			})
		}
		wg.Wait()
		list := h.history(conv)
		if len(list) != 25 {
			t.Fatalf("%d messages", len(list))
		}
		for i := 1; i < len(list); i += 2 {
			if list[i+1].Turn != list[i].ID || !strings.Contains(list[i+1].Content, list[i].Content+" ") {
				t.Errorf("%q is followed by %q", list[i].Content, list[i+1].Content)
			}
		}
		// alternating: no request has a second message that is still unanswered
		for _, r := range h.server.Requests() {
			for i, m := range r.Messages {
				if want := []ai.Role{ai.Assistant, ai.User}[i%2]; m.Role != want {
					t.Errorf("message %d of a request is %s's", i, m.Role)
				}
			}
		}
		if h.balance() != parley.USD-12*10_000 {
			t.Errorf("balance %v", h.balance())
		}
	})
}

func TestReaderWhoLeavesKillsNothing(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c, gate := h.node(), make(chan struct{})
		conv := h.start(c, parley.WidgetConversation)
		h.server.Script(aitest.Behaviour{Text: "A long reply.", Gate: gate})
		ctx, cancel := context.WithCancel(t.Context())
		w, err := c.Send(ctx, conv, "Hi")
		if err != nil {
			t.Fatal(err)
		}
		if pieces, _, _, err := w.Next(ctx); err != nil || len(pieces) == 0 {
			t.Fatalf("%v %v", pieces, err)
		}
		cancel()
		if _, err := w.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the reader who left got %v", err)
		}
		w.Leave()
		close(gate)
		h.until("the reply", func() bool { return len(h.history(conv)) == 3 })
		if got := h.history(conv)[2].Content; got != "A long reply." || h.balance() != parley.USD-10_000 {
			t.Errorf("%q, balance %v", got, h.balance())
		}
	})
}

func TestModelThatFails(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		for _, b := range []aitest.Behaviour{
			{Text: "Half a", Fault: aitest.Failure, After: 2},
			{Text: "Half a", Fault: aitest.Reset, After: 2},
			{Status: 401, Message: "sk-secret is wrong"},
		} {
			h.server.Script(b)
			got, err := h.say(c, conv, "Hi")
			var e *parley.Error
			if !errors.As(err, &e) || e.Kind != parley.Upstream || strings.Contains(e.Message, "sk-secret") ||
				got != "" {
				t.Errorf("%+v came to %q %v", b, got, err)
			}
		}
		if free, err := h.db.Free(t.Context(), h.user.ID); err != nil || free != parley.USD ||
			h.balance() != parley.USD {
			t.Errorf("failures cost: %v of %v is free: %v", free, h.balance(), err)
		}
		if got, err := h.say(c, conv, "Again"); err != nil || !strings.Contains(got, "Again") {
			t.Errorf("after failures: %q %v", got, err)
		}
		if n := strings.Count(h.contents(conv), "user: Hi"); n != 3 {
			t.Errorf("%d of 3 messages were kept", n)
		}
		// The owner is told why, in our words.
		var reasons []string
		for _, m := range h.history(conv) {
			if m.Failed != (m.Failure != nil) {
				t.Errorf("%+v", m)
			}
			if m.Failure != nil {
				reasons = append(reasons, *m.Failure)
			}
		}
		if len(reasons) != 3 || !strings.HasPrefix(reasons[0], "The model failed: ") ||
			!strings.Contains(reasons[2], "credentials") || strings.Contains(reasons[2], "sk-secret") {
			t.Errorf("reasons %q", reasons)
		}
	})
}

// A message that came by SMS or WhatsApp has no HTTP answer that could report a failure: the person gets a message that
// says so, and it costs nothing.
func TestModelThatFailsBehindAChannel(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv, err := c.WithCustomer(t.Context(), h.a, parley.APIConversation, "+12025550123", nil)
		if err != nil {
			t.Fatal(err)
		}
		before := len(h.history(conv))
		h.server.Script(aitest.Behaviour{Status: 401})
		if err := c.Receive(t.Context(), conv, "sms", "SM1", "Hi"); err != nil {
			t.Fatal(err)
		}
		h.until("the apology", func() bool { return len(h.history(conv)) == before+2 })
		if last := h.history(conv)[before+1]; !strings.HasPrefix(last.Content, "I'm sorry") ||
			h.balance() != parley.USD {
			t.Errorf("%+v, balance %v", last, h.balance())
		}
		if asked := h.history(conv)[before]; !asked.Failed || asked.Failure == nil ||
			!strings.Contains(*asked.Failure, "credentials") {
			t.Errorf("the apology counts as a reply: %+v", asked)
		}
		if free, err := h.db.Free(t.Context(), h.user.ID); err != nil || free != parley.USD {
			t.Errorf("%v is free: %v", free, err)
		}
	})
}

// A disabled account answers on no channel; the customers' messages are kept.
func TestDisabledAccountAnswersNobody(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv, err := c.WithCustomer(t.Context(), h.a, parley.APIConversation, "+12025550123", nil)
		if err != nil {
			t.Fatal(err)
		}
		before := len(h.history(conv))
		u := *h.user
		u.DisabledAt = parley.Now()
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SaveUser(ctx, &u) })
		if err := c.Receive(t.Context(), conv, "sms", "SM1", "Hi"); err != nil {
			t.Fatal(err)
		}
		list := h.history(conv)
		if len(list) != before+1 || list[before].Content != "Hi" || list[before].Pending || h.balance() != parley.USD {
			t.Errorf("%+v, balance %v", list, h.balance())
		}
	})
}

// When a node dies in the middle of a reply, the next one answers the message.
func TestNodeThatDies(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		dying := chat.New(chat.Config{DB: h.db, Assistants: h.assistants, Prices: h.prices, Hub: event.NewHub(),
			Lease: time.Second})
		conv := h.start(dying, parley.WidgetConversation)
		gate := make(chan struct{})
		defer close(gate)
		h.server.Script(aitest.Behaviour{Text: "Never heard.", Gate: gate})
		w, err := dying.Send(t.Context(), conv, "Hi")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := w.Next(t.Context()); err != nil { // the reply has begun
			t.Fatal(err)
		}
		cut, cancel := context.WithCancel(context.Background())
		cancel()
		dying.Stop(cut)
		if _, err := w.Wait(t.Context()); err == nil {
			t.Error("who waited at the dying node was told of a reply")
		}
		if list := h.history(conv); len(list) != 2 || !list[1].Pending {
			t.Fatalf("after the death: %+v", list)
		}
		h.node() // its Run finds the waiting message
		h.until("the reply", func() bool { return len(h.history(conv)) == 3 })
		if got := h.history(conv)[2].Content; !strings.HasPrefix(got, "You said: Hi") ||
			h.balance() != parley.USD-10_000 {
			t.Errorf("%q, balance %v", got, h.balance())
		}
		if _, err := dying.Send(t.Context(), conv, "Hi"); err == nil {
			t.Error("a stopped node takes messages")
		}
	})
}

func TestTakingOverAndHandingBack(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		if err := c.TakeOver(t.Context(), h.user.ID, conv.ID, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := h.say(c, conv, "Anybody?"); err != nil || got != "" || h.server.Count() != 0 {
			t.Errorf("while a person has it: %q %v", got, err)
		}
		if _, err := c.Reply(t.Context(), h.user.ID, parley.Person{Name: "Bo"}, conv.ID, "I am Bo."); err != nil {
			t.Fatal(err)
		}
		if h.balance() != parley.USD {
			t.Errorf("a message without a reply cost %v", parley.USD-h.balance())
		}
		if err := c.HandBack(t.Context(), h.user.ID, conv.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := h.say(c, conv, "Thanks"); err != nil {
			t.Fatal(err)
		}
		asked := h.server.Requests()[0].Messages
		if n := len(asked); n != 4 || asked[2].Text != "I am Bo." || asked[2].Role != ai.Assistant {
			t.Errorf("the assistant was handed %+v", asked)
		}
		stranger := storetest.User(t, h.db, 0)
		if err := c.TakeOver(t.Context(), stranger.ID, conv.ID, nil); !store.IsNotFound(err) {
			t.Errorf("a stranger took over: %v", err)
		}
		if _, err := c.Reply(t.Context(), stranger.ID, parley.Person{Name: "Bo"}, conv.ID, "x"); !store.IsNotFound(err) {
			t.Errorf("a stranger replied: %v", err)
		}
	})
}

// Taking over ends the reply in the middle, on the node that makes it and from another one: no more of it arrives, none
// of it is kept, it costs nothing, and the model's stream is closed.
func TestTakingOverInMidReply(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		here, there := h.node(), h.node()
		for name, by := range map[string]*chat.Chat{"here": here, "on another node": there} {
			before := h.balance()
			conv := h.start(here, parley.WidgetConversation)
			gate := make(chan struct{})
			h.server.Script(aitest.Behaviour{Text: "One two three four.", Gate: gate})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			w, err := here.Send(ctx, conv, "Count")
			if err != nil {
				t.Fatal(err)
			}
			if pieces, done, _, err := w.Next(ctx); len(pieces) == 0 || done || err != nil {
				t.Fatalf("%s: nothing of the reply came: %v %v", name, done, err)
			}
			if err := by.TakeOver(t.Context(), h.user.ID, conv.ID, nil); err != nil {
				t.Fatal(err)
			}
			if by == here {
				close(gate) // what the model would still say is dropped
			}
			pieces, done, answer, err := w.Next(ctx)
			if len(pieces) != 0 || !done || !answer.AIOff || err != nil {
				t.Errorf("%s: %v %v %+v %v", name, pieces, done, answer, err)
			}
			w.Leave()
			if by != here {
				close(gate)
			}
			list := h.history(conv)
			if n := len(list); n != 2 || list[1].Pending || list[1].Failed {
				t.Errorf("%s: %d messages stand there, the last %+v", name, n, list[n-1])
			}
			if _, err := by.Reply(t.Context(), h.user.ID, parley.Person{Name: "Bo"}, conv.ID, "I am Bo."); err != nil {
				t.Fatal(err)
			}
			if h.balance() != before {
				t.Errorf("%s: it cost %v", name, before-h.balance())
			}
			h.write(func(ctx context.Context, tx *store.Tx) error {
				free, err := tx.Free(ctx, h.user.ID)
				if free != before {
					t.Errorf("%s: %v of %v is free to spend", name, free, before)
				}
				return err
			})
		}
	})
}

// A reply that is complete just after somebody took over, on a node that does not know of it yet, is not stored and
// costs nothing.
func TestReplyThatComesAfterTakingOver(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		gate := make(chan struct{})
		h.server.Script(aitest.Behaviour{Text: "One two three.", Gate: gate})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		w, err := c.Send(ctx, conv, "Count")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Leave()
		if pieces, _, _, err := w.Next(ctx); len(pieces) == 0 || err != nil {
			t.Fatal(err)
		}
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.TurnOffAI(ctx, h.user.ID, conv.ID, nil) })
		close(gate)
		if answer, err := w.Wait(ctx); err != nil || !answer.AIOff || answer.Message != nil {
			t.Errorf("%+v %v", answer, err)
		}
		if list := h.history(conv); len(list) != 2 || list[1].Pending || h.balance() != parley.USD {
			t.Errorf("%s; the balance is %v", h.contents(conv), h.balance())
		}
	})
}

func TestNoMoneyNoReply(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv, free := h.start(c, parley.WidgetConversation), h.start(c, parley.TestConversation)
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.Reserve(ctx, h.user.ID, "a call", h.balance()-5_000, parley.Now().Add(time.Hour))
		})
		if _, err := h.say(c, conv, "Hi"); err != error(store.Insufficient) {
			t.Errorf("with half a cent free: %v", err)
		}
		if _, _, err := c.Start(t.Context(), h.a, parley.WidgetConversation, nil); err != error(store.Insufficient) {
			t.Errorf("a conversation was begun: %v", err)
		}
		if len(h.history(conv)) != 1 || h.server.Count() != 0 {
			t.Errorf("it was stored or asked: %+v", h.history(conv))
		}
		if got, err := h.say(c, free, "Hi"); err != nil || got == "" {
			t.Errorf("a test is free: %q %v", got, err)
		}
	})
}

func TestSilenceEndsWithExtraction(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		// a test conversation is reported like a real one
		conv, unheard := h.start(c, parley.TestConversation), h.start(c, parley.WidgetConversation)
		if _, err := h.say(c, conv, "I want a cake"); err != nil {
			t.Fatal(err)
		}
		past := parley.Now() - 1
		h.write(func(ctx context.Context, tx *store.Tx) error {
			for _, id := range []string{conv.ID, unheard.ID} {
				m := &parley.Message{ConversationID: id, Role: parley.RoleAssistant, Author: parley.AuthorHuman,
					Content: "Bye"}
				if err := tx.AddMessage(ctx, m, 0, past); err != nil {
					return err
				}
			}
			return nil
		})
		var ended [2]*parley.Conversation
		h.until("the end", func() bool {
			for i, id := range []string{conv.ID, unheard.ID} {
				ended[i], _ = h.db.PublicConversation(t.Context(), id)
			}
			return ended[0].EndedAt != 0 && ended[1].EndedAt != 0
		})
		if got := ended[0].Extracted; got["status"] != true || got["summary"] != "I want a cake" {
			t.Errorf("extracted: %v", got)
		}
		if len(ended[1].Extracted) != 0 {
			t.Errorf("extracted from nothing: %v", ended[1].Extracted)
		}
		if _, err := h.say(c, conv, "One more thing"); err != nil { // the conversation goes on, and will end again
			t.Error(err)
		}
		if again, err := h.db.PublicConversation(t.Context(), conv.ID); err != nil || again.EndsAt == 0 ||
			again.EndedAt != 0 {
			t.Errorf("after a new message: %+v %v", again, err)
		}
	})
}

func TestOneConversationPerCustomer(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		ids := make(chan string, 8)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				conv, err := c.WithCustomer(t.Context(), h.a, parley.APIConversation, "+12025550123",
					map[string]string{"who": "Bo"})
				if err != nil {
					t.Error(err)
					return
				}
				ids <- conv.ID
			})
		}
		wg.Wait()
		close(ids)
		first := <-ids
		for id := range ids {
			if id != first {
				t.Error("a customer has two conversations")
			}
		}
		conv, err := h.db.Conversation(t.Context(), h.user.ID, first)
		// an initial message would have been sent to nobody
		if err != nil || *conv.CustomerPhone != "+12025550123" || conv.MessageCount != 0 {
			t.Errorf("%+v %v", conv, err)
		}
	})
}

// Messages that cost nothing, as a person replies, are counted by the day.
func TestUnpaidMessages(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	h := open(t, storetest.Open(t, o))
	c := h.node()
	conv := h.start(c, parley.WidgetConversation)
	if err := c.TakeOver(t.Context(), h.user.ID, conv.ID, nil); err != nil {
		t.Fatal(err)
	}
	both := func() (said, replied error) {
		_, said = h.say(c, conv, "Anybody?")
		_, replied = c.Reply(t.Context(), h.user.ID, parley.Person{Name: "Bo"}, conv.ID, "I am Bo.")
		return said, replied
	}
	if said, replied := both(); said != nil || replied != nil {
		t.Fatal(said, replied)
	}
	there := len(h.history(conv))
	// as of tomorrow, so that midnight changes nothing
	storetest.Exec(t, o, "UPDATE day_counts SET n = 100000, day = day + 1 WHERE name IN ('human_replies', 'unanswered_messages')")
	said, replied := both()
	if said == nil || !strings.Contains(said.Error(), "100000 messages of customers to which no assistant replies a day (UTC)") {
		t.Errorf("a customer's: %v", said)
	}
	if replied == nil || !strings.Contains(replied.Error(), "100000 replies of people in conversations a day (UTC)") {
		t.Errorf("a person's: %v", replied)
	}
	if now := len(h.history(conv)); now != there {
		t.Errorf("%d messages are stored, not %d", now, there)
	}
}
