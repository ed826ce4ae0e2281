package chat_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/agent"
	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/egress"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/tool"
)

// stock gives the assistant an asynchronous tool that answers when answer is closed, and counts how often it was asked.
func (h *harness) stock(answer <-chan struct{}) *atomic.Int64 {
	h.Helper()
	asked := new(atomic.Int64)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-answer:
			w.Write([]byte("Three are left."))
		case <-r.Context().Done():
		}
	}))
	h.Cleanup(shop.Close)
	guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
	h.Cleanup(guard.Close)
	h.assistants.Tools = tool.New(guard)
	t := &parley.Tool{Name: "stock", Description: "Looks.", Method: "GET", Endpoint: shop.URL, Timeout: 300, Mode: parley.ToolAsync}
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, h.user.ID, t) })
	var err error
	if h.a, err = h.assistants.Update(h.Context(), h.user.ID, h.a.ID, map[string]any{"tool_ids": []any{number(t.ID)}}); err != nil {
		h.Fatal(err)
	}
	return asked
}

var askStock = aitest.Behaviour{Calls: []ai.ToolCall{{ID: "c1", Name: "stock", Arguments: `{}`}}}

// heard is the last n messages of the model's latest request.
func (h *harness) heard(n int) (out []string) {
	requests := h.server.Requests()
	list := requests[len(requests)-1].Messages
	for _, m := range list[max(0, len(list)-n):] {
		out = append(out, string(m.Role)+": "+m.Text)
	}
	return out
}

// left are the tools that run, or of which nobody has spoken.
func (h *harness) left() int {
	h.Helper()
	n, err := h.db.CountBackground(h.Context(), h.user.ID)
	if err != nil {
		h.Fatal(err)
	}
	return n
}

// A chat goes on while an asynchronous tool runs. When it has answered, the assistant says so by itself, for nothing, and the record has
// the answer.
func TestToolInTheBackground(t *testing.T) {
	for _, kind := range []parley.ConversationType{parley.WidgetConversation, parley.TestConversation} {
		t.Run(string(kind), func(t *testing.T) { toolInTheBackground(t, kind) })
	}
}

func toolInTheBackground(t *testing.T, kind parley.ConversationType) {
	each(t, func(t *testing.T, h *harness) {
		answer := make(chan struct{})
		asked := h.stock(answer)
		c := h.node()
		conv := h.start(c, kind)
		h.server.Script(askStock, aitest.Behaviour{Text: "I am looking."}, aitest.Behaviour{Text: "Until six."},
			aitest.Behaviour{Text: "Three in blue."}, aitest.Behaviour{Text: "Bye."})
		if got, err := h.say(c, conv, "Is it there in blue?"); err != nil || got != "I am looking." {
			t.Fatalf("%q, %v", got, err)
		}
		if got, err := h.say(c, conv, "How long are you open?"); err != nil || got != "Until six." {
			t.Fatalf("%q, %v", got, err)
		}
		if call := h.history(conv)[2].FunctionCalls[0]; call.Result != agent.Started(1) || asked.Load() != 1 || h.left() != 1 {
			t.Errorf("%+v, asked %d times", call, asked.Load())
		}
		before := h.balance()
		close(answer)
		h.until("the further reply", func() bool { return len(h.history(conv)) == 6 })
		want := "assistant: Hello Ana.\nuser: Is it there in blue?\nassistant: I am looking.\nuser: How long are you open?\n" +
			"assistant: Until six.\nassistant: Three in blue.\n"
		if h.contents(conv) != want {
			t.Errorf("history:\n%s", h.contents(conv))
		}
		if got := h.heard(2); got[0] != "assistant: Until six." || got[1] != "user: "+agent.Answered("stock", 1, "Three are left.").Text {
			t.Errorf("the model was told %q", got)
		}
		list := h.history(conv)
		if call := list[2].FunctionCalls[0]; call.Result != "Three are left." || list[5].Cost != 0 || list[5].Author != parley.AuthorAI {
			t.Errorf("the record has %+v, %+v", call, list[5])
		}
		if h.balance() != before || h.left() != 0 || asked.Load() != 1 {
			t.Errorf("balance %v, before %v; %d left, asked %d times", h.balance(), before, h.left(), asked.Load())
		}
		if got, err := h.say(c, conv, "Thanks"); err != nil || got != "Bye." {
			t.Fatalf("%q, %v", got, err)
		}
		if told := h.told(4); !slices.Equal(told, []string{"Three are left."}) || h.heard(2)[0] != "assistant: Three in blue." {
			t.Errorf("later the model was told %q, %q", told, h.heard(2))
		}
	})
}

// due stores a tool of a dead node: it is due, and has answered where answer is not "".
func (h *harness) due(conv *parley.Conversation, answer string) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		asked, err := tx.LastAsked(ctx, conv.ID)
		if err != nil {
			return err
		}
		b := &store.BackgroundTool{ConversationID: conv.ID, UserID: h.user.ID, MessageID: asked.ID, Name: "stock",
			DueAt: parley.Now().Add(-time.Second)}
		if ok, err := tx.StartBackground(ctx, b, agent.Started); err != nil || !ok || answer == "" {
			return err
		}
		return tx.AnswerBackground(ctx, b, &answer)
	})
}

// What a killed node had started ends as cut off: another node says so. Nothing is said by an assistant whose place a person has taken, nor
// in a conversation that is over; a customer who writes first is answered with the tool's answer.
func TestToolsOfAnotherNode(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		first := h.node()
		cut, taken, over, asks := h.start(first, parley.WidgetConversation), h.start(first, parley.WidgetConversation),
			h.start(first, parley.WidgetConversation), h.start(first, parley.WidgetConversation)
		for _, conv := range []*parley.Conversation{cut, taken, over, asks} {
			if _, err := h.say(first, conv, "Is it there?"); err != nil {
				t.Fatal(err)
			}
		}
		first.Stop(t.Context())
		h.server.Script(aitest.Behaviour{Text: "I don't know."})
		if err := first.TakeOver(t.Context(), h.user.ID, taken.ID, nil); err != nil {
			t.Fatal(err)
		}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			over.EndsAt = parley.Now()
			_, err := tx.EndConversation(ctx, over, parley.Findings{}, parley.Now().Add(24*time.Hour))
			return err
		})
		h.due(cut, "")
		h.due(taken, "Three.")
		h.due(over, "Four.")
		requests := h.server.Count()
		second := h.node()
		h.until("the tools' end", func() bool { return h.left() == 0 })
		h.until("the reply", func() bool { return len(h.history(cut)) == 4 })
		if got := h.heard(1)[0]; !strings.Contains(got, store.CutOff) || h.history(cut)[3].Content != "I don't know." {
			t.Errorf("the model was told %q, and said %q", got, h.history(cut)[3].Content)
		}
		if len(h.history(taken)) != 3 || len(h.history(over)) != 3 || h.server.Count() != requests+1 {
			t.Errorf("with a person %d messages, after the end %d; %d requests", len(h.history(taken)), len(h.history(over)),
				h.server.Count()-requests)
		}

		second.Stop(t.Context())
		h.due(asks, "Five.")
		m := &parley.Message{ConversationID: asks.ID, Role: parley.RoleUser, Author: parley.AuthorCustomer, Content: "And?", Pending: true}
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.AddMessage(ctx, m, 0, parley.Now().Add(time.Hour))
		})
		h.server.Script(aitest.Behaviour{Text: "Five are left."})
		h.node()
		h.until("the reply", func() bool { return len(h.history(asks)) == 5 })
		got := h.heard(2)
		if got[0] != "user: "+agent.Answered("stock", 1, "Five.").Text || got[1] != "user: And?" || h.left() != 0 {
			t.Errorf("the model was told %q; %d left", got, h.left())
		}
	})
}

// Whatever a model does, few tools run in the background of a chat at a time. One that can't be spoken of is given up.
func TestBackgroundIsBounded(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		answer := make(chan struct{})
		h.stock(answer)
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		many := aitest.Behaviour{}
		for range store.MaxBackground + 1 {
			many.Calls = append(many.Calls, ai.ToolCall{ID: "c" + string(rune('a'+len(many.Calls))), Name: "stock", Arguments: `{}`})
		}
		h.server.Script(many, aitest.Behaviour{Text: "I am looking."})
		if got, err := h.say(c, conv, "Look"); err != nil || got != "I am looking." {
			t.Fatalf("%q, %v", got, err)
		}
		refused := 0
		for _, result := range h.told(1) {
			if result == "Error: "+agent.TooManyStarted(store.MaxBackground).Error() {
				refused++
			}
		}
		if refused != 1 || h.left() != store.MaxBackground {
			t.Errorf("%d refused, %d run", refused, h.left())
		}
		h.server.Usually(aitest.Behaviour{Status: 400, Message: "no"})
		close(answer)
		h.until("the end of the tools", func() bool { return h.left() == 0 })
		for _, call := range h.history(conv)[2].FunctionCalls {
			if call.Result != "Three are left." && !strings.HasPrefix(call.Result, "Error: ") {
				t.Errorf("the record has %q", call.Result)
			}
		}
	})
}

// A further reply starts nothing in the background: a tool that it calls is waited for. So no chain of replies goes on by itself.
func TestFurtherRepliesEnd(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		answer := make(chan struct{})
		close(answer)
		asked := h.stock(answer)
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		h.server.Script(askStock, aitest.Behaviour{Text: "I am looking."}, askStock, aitest.Behaviour{Text: "Three, I looked twice."})
		if got, err := h.say(c, conv, "Is it there?"); err != nil || got != "I am looking." {
			t.Fatalf("%q, %v", got, err)
		}
		h.until("the further reply", func() bool { return len(h.history(conv)) == 4 })
		last := h.history(conv)[3]
		if last.Content != "Three, I looked twice." || len(last.FunctionCalls) != 1 || last.FunctionCalls[0].Result != "Three are left." {
			t.Errorf("%+v", last)
		}
		if h.left() != 0 || asked.Load() != 2 {
			t.Errorf("%d left, asked %d times", h.left(), asked.Load())
		}
	})
}
