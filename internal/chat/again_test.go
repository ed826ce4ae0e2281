package chat_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	"parley/internal/store"
	"parley/internal/store/storetest"
	"parley/internal/tool"
)

// order gives the assistant a tool that orders a cake, and counts the orders.
func (h *harness) order(answer string) *atomic.Int64 {
	h.Helper()
	made := new(atomic.Int64)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made.Add(1)
		w.Write([]byte(answer))
	}))
	h.Cleanup(shop.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	h.Cleanup(guard.Close)
	h.assistants.Tools = tool.New(guard)
	t := &parley.Tool{Name: "order", Description: "Orders.", Method: "POST", Endpoint: shop.URL, Timeout: 10,
		Schema: []parley.ToolParam{{Name: "what", Type: "string", Description: "what"}}}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, h.user.ID, t) })
	var err error
	if h.a, err = h.assistants.Update(h.Context(), h.user.ID, h.a.ID,
		map[string]any{"tool_ids": []any{number(t.ID)}}); err != nil {
		h.Fatal(err)
	}
	return made
}

var orderCake = aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c1", Name: "order", Arguments: `{"what":"cake"}`}}}

// told are the results of tools in the model's n-th request.
func (h *harness) told(n int) (results []string) {
	for _, m := range h.server.Requests()[n].Messages {
		if m.Role == ai.ToolRole {
			results = append(results, m.Text)
		}
	}
	return results
}

// Whatever a model, a tool or a variable contains, the reply is stored at the first attempt.
func TestWhateverIsSaidIsStored(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.order(`{"note":"it's \u0000 and \\u0000"}`)
		c := h.node()
		vars := map[string]string{"who": "A\x00na", "said": `\u0000`, "quote": `\'; --`}
		conv, _, err := c.Start(t.Context(), h.a, parley.WidgetConversation, vars)
		if err != nil {
			t.Fatal(err)
		}
		h.server.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c1", Name: "order",
			Arguments: `{"what":"a\u0000b \\u0000 \ud800 ' \ud83c\udf82"}`}}},
			aitest.Behaviour{Text: "Hi\x00 there"})
		if got, err := h.say(c, conv, "Hi"); err != nil || got != "Hi there" {
			t.Fatalf("%q, %v", got, err)
		}
		list := h.history(conv)
		call := list[2].FunctionCalls[0]
		var args struct{ What string }
		if err := json.Unmarshal(call.Arguments, &args); err != nil || args.What != "ab \\u0000 \uFFFD ' 🎂" ||
			call.Result != `{"note":"it's \u0000 and \\u0000"}` {
			t.Errorf("stored %q, %q: %v", args.What, call.Result, err)
		}
		stored, err := h.db.Conversation(t.Context(), h.user.ID, conv.ID)
		if err != nil || stored.Variables["who"] != "Ana" || stored.Variables["said"] != `\u0000` ||
			stored.Variables["quote"] != `\'; --` {
			t.Errorf("variables %q: %v", stored.Variables, err)
		}
		if list[1].Attempts != 1 || made.Load() != 1 || h.server.Count() != 2 {
			t.Errorf("%d attempts, %d orders, %d requests", list[1].Attempts, made.Load(), h.server.Count())
		}
	})
}

// A tool that ran for a message does not run again when its reply can't be stored: the model is told the result in the
// next attempt.
func TestToolsRunOnce(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	h := open(t, storetest.Open(t, o))
	made := h.order("Order 17.")
	c := h.node()
	conv := h.start(c, parley.WidgetConversation)
	mend := storetest.Break(t, o, "INSERT ON messages WHEN NEW.turn > 0")
	h.server.Script(orderCake, aitest.Behaviour{Text: "Ordered."}, aitest.Behaviour{Text: "Ordered, as I said."},
		aitest.Behaviour{Text: "Bye."})
	if got, err := h.say(c, conv, "A cake"); err == nil {
		t.Fatalf("%q was stored", got)
	}
	mend()
	// a new message makes it try the one before at once
	if got, err := h.say(c, conv, "And?"); err != nil || got != "Bye." {
		t.Fatalf("%q, %v", got, err)
	}
	if want := "assistant: Hello Ana.\nuser: A cake\nassistant: Ordered, as I said.\nuser: And?\nassistant: Bye.\n"; h.contents(conv) != want {
		t.Errorf("history:\n%s", h.contents(conv))
	}
	reply := h.history(conv)[2]
	if made.Load() != 1 || len(reply.FunctionCalls) != 1 || reply.FunctionCalls[0].Result != "Order 17." {
		t.Errorf("%d orders, stored %+v", made.Load(), reply.FunctionCalls)
	}
	if got := h.told(2); len(got) != 1 || got[0] != "Order 17." {
		t.Errorf("the second attempt was told %q", got)
	}
	if left, err := h.db.MessageCalls(t.Context(), conv.ID); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if h.balance() != parley.USD-20_000 {
		t.Errorf("balance %v", h.balance())
	}
}

// A tool that ran before the process died is not run again, nor one that ran for a message whose model failed
// afterwards: the model knows its result.
func TestToolsOfTheDead(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		made := h.order("Order 17.")
		conv := h.start(h.node(), parley.WidgetConversation)
		m := &parley.Message{ConversationID: conv.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer,
			Content: "Two cakes", Pending: true}
		h.server.Script(aitest.Behaviour{Text: "I'll see."}, orderCake,
			aitest.Behaviour{Status: 400, Message: "no"}, aitest.Behaviour{Text: "It is ordered."})
		call := parley.FunctionCall{Name: "order", Arguments: json.RawMessage(`{"what":"cake"}`), Result: "Order 16."}
		h.write(func(ctx context.Context, tx *store.Tx) error { // as a node leaves it when it dies during its second call
			if err := tx.AddMessage(ctx, m, 0, parley.Now().Add(time.Hour)); err != nil {
				return err
			}
			for n, done := range []bool{true, false} {
				if err := tx.KeepMessageCall(ctx, m.ID, n, call, done); err != nil {
					return err
				}
			}
			return nil
		})
		h.until("the reply", func() bool { return len(h.history(conv)) == 3 })
		if got := h.told(0); len(got) != 2 || got[0] != "Order 16." || got[1] != store.CutOff {
			t.Errorf("the model was told %q", got)
		}
		if made.Load() != 0 || len(h.history(conv)[2].FunctionCalls) != 2 {
			t.Errorf("%d orders, reply %+v", made.Load(), h.history(conv)[2])
		}
		c := h.node()
		if got, err := h.say(c, conv, "One more"); err == nil {
			t.Errorf("%q", got)
		}
		if got, err := h.say(c, conv, "Well?"); err != nil || got != "It is ordered." {
			t.Errorf("%q, %v", got, err)
		}
		if got := h.told(3); len(got) != 3 || got[2] != "Order 17." || made.Load() != 1 {
			t.Errorf("after the failure the model was told %q; %d orders", got, made.Load())
		}
		if failed := h.history(conv)[3]; !failed.Failed || failed.Cost != 0 {
			t.Errorf("%+v", failed)
		}
	})
}

// quiet is a house without a network: its assistant thinks with the built-in model, so that the test can use fake time.
func quiet(t *testing.T, o store.Options) *harness {
	h := &harness{TB: t, db: storetest.Open(t, o)}
	providers, err := provider.Open(provider.All())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(providers.Close)
	guard := egress.New(nil)
	t.Cleanup(guard.Close)
	cat := catalog.New("", provider.All())
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
	rows, err := h.db.Models(t.Context())
	if err == nil {
		err = cat.SetModels(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	if h.prices, err = billing.ReadPrices(""); err != nil {
		t.Fatal(err)
	}
	h.assistants = &assistant.Studio{DB: h.db, Catalog: cat, Providers: providers, Tools: tool.New(guard)}
	h.user = storetest.User(t, h.db, parley.USD)
	h.a = &parley.Assistant{UserID: h.user.ID, Name: "Desk", Type: "inbound", Status: "active", Timezone: "UTC",
		ConversationInactivityTimeout: 30}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateAssistant(ctx, h.user.ID, h.a) })
	return h
}

// attempts are the times at which a message was tried, in seconds since the first, until it waits no longer.
func attempts(h *harness, conv *parley.Conversation) (at []time.Duration, m parley.Message) {
	begun := time.Now()
	for n := 0; ; time.Sleep(100 * time.Millisecond) {
		m = h.history(conv)[0]
		if m.Attempts > n {
			n = m.Attempts
			at = append(at, time.Since(begun).Round(time.Second))
		}
		if !m.Pending || time.Since(begun) > time.Hour {
			return at, m
		}
	}
}

// A reply that can't be stored is tried less and less often. In the end the message has failed, and costs nothing.
func TestAttemptsEnd(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		h := quiet(t, o)
		c := chat.New(chat.Config{DB: h.db, Assistants: h.assistants, Prices: h.prices, Hub: event.NewHub()})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		defer func() { cancel(); wg.Wait(); c.Stop(ctx) }()
		conv := h.start(c, parley.WidgetConversation)
		storetest.Break(t, o, "INSERT ON messages WHEN NEW.turn > 0")
		w, err := c.Send(t.Context(), conv, "Hi")
		if err != nil {
			t.Fatal(err)
		}
		at, m := attempts(h, conv)
		want := []time.Duration{0, 2, 6, 14, 30, 62}
		if len(at) != len(want) {
			t.Fatalf("tried at %v", at)
		}
		for i, d := range at { // there is a look every two seconds
			if early, late := want[i]*time.Second, want[i]*time.Second+time.Duration(
				2*i+1)*time.Second; d < early || d > late {
				t.Errorf("attempt %d after %v", i+1, d)
			}
		}
		if !m.Failed || m.Cost != 0 || m.Failure == nil ||
			!strings.Contains(*m.Failure, "could not be stored in 6 attempts") {
			t.Errorf("%+v", m)
		}
		if _, err := w.Wait(t.Context()); err == nil {
			t.Error("who waits was told of no failure")
		}
		if free, err := h.db.Free(t.Context(), h.user.ID); err != nil || free != parley.USD {
			t.Errorf("%v is free: %v", free, err)
		}
		time.Sleep(10 * time.Minute) // ten times as long as all the attempts together, with a look every two seconds
		if again := h.history(conv)[0]; again.Attempts != m.Attempts {
			t.Errorf("tried again: %+v", again)
		}
	})
}

// When a conversation's end can't be stored, the pauses between the attempts grow, and in the end it ends without its
// extraction.
func TestEndIsTriedAgain(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		h := quiet(t, o)
		c := chat.New(chat.Config{DB: h.db, Assistants: h.assistants, Prices: h.prices, Hub: event.NewHub()})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		defer func() { cancel(); wg.Wait(); c.Stop(ctx) }()
		conv := h.start(c, parley.WidgetConversation)
		mend := storetest.Break(t, o, "UPDATE OF ended_at ON conversations")
		time.Sleep(30*time.Minute - time.Second)
		tries := func() (n int) {
			storetest.Query(t, o, &n, "SELECT end_attempts FROM conversations")
			return n
		}
		if n := tries(); n != 0 {
			t.Errorf("%d attempts before the silence was long enough", n)
		}
		time.Sleep(10 * time.Minute)
		if n := tries(); n < 5 || n > 12 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		mend()
		time.Sleep(5 * time.Minute)
		if ended, err := h.db.PublicConversation(t.Context(), conv.ID); err != nil || ended.EndedAt == 0 {
			t.Errorf("%+v, %v", ended, err)
		}
	})
}

// A conversation that a dead node was working on waits for the lease to lapse, and no longer.
func TestLeaseLapses(t *testing.T) {
	o := storetest.Options(t, "sqlite")
	synctest.Test(t, func(t *testing.T) {
		h := quiet(t, o)
		conv := &parley.Conversation{UserID: h.user.ID, AssistantID: h.a.ID, Type: parley.WidgetConversation,
			Variables: map[string]string{}}
		lease := func(who string, length time.Duration) (mine bool) {
			h.write(func(ctx context.Context, tx *store.Tx) (err error) {
				mine, err = tx.Lease(ctx, conv.ID, who, length)
				return err
			})
			return mine
		}
		waiting := func() int {
			ids, err := h.db.Unattended(t.Context(), parley.Now(), 10)
			if err != nil {
				t.Fatal(err)
			}
			return len(ids)
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateConversation(ctx, conv, ""); err != nil {
				return err
			}
			return tx.AddMessage(ctx, &parley.Message{ConversationID: conv.ID, Role: parley.RoleUser,
				Pending: true}, 0, parley.Now().Add(time.Hour))
		})
		if waiting() != 1 || !lease("dead", 15*time.Second) || waiting() != 0 || lease("living", time.Second) {
			t.Error("a lease keeps nobody off")
		}
		time.Sleep(14 * time.Second)
		if waiting() != 0 || lease("living", time.Second) {
			t.Error("a lease lapsed early")
		}
		time.Sleep(2 * time.Second)
		if waiting() != 1 || !lease("living", 15*time.Second) || lease("dead", time.Second) ||
			!lease("living", 15*time.Second) {
			t.Error("a lapsed lease keeps others off")
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.Rest(ctx, conv.ID, "dead", parley.Now().Add(time.Hour))
		})
		if lease("third", time.Second) {
			t.Error("who has no lease had it rest")
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.Rest(ctx, conv.ID, "living", parley.Now().Add(time.Hour))
		})
		time.Sleep(59 * time.Minute)
		if waiting() != 0 {
			t.Error("a rest ended early")
		}
		if !lease("third", time.Second) { // on request, not by itself
			t.Error("a rest keeps off who has a reason to look")
		}
	})
}

// Variables that come at the same time are all kept.
func TestVariablesAtTheSameTime(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		conv, err := c.WithCustomer(t.Context(), h.a, parley.APIConversation, "ana", nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				if _, err := c.WithCustomer(t.Context(), h.a, parley.APIConversation, "ana",
					map[string]string{"v" + string(rune('a'+i)): "x"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := h.db.PublicConversation(t.Context(), conv.ID)
		if err != nil || len(got.Variables) != 24 {
			t.Errorf("%d of 24 variables are left: %v, %v", len(got.Variables), got.Variables, err)
		}
	})
}
