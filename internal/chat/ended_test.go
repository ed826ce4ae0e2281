package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"parley/internal/parley"
	"parley/internal/store"
)

// The end of a conversation is reported once, in the transaction that ends it, to the assistant's endpoint if it has
// one.
func TestEndIsTold(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c, second := h.node(), h.node()
		_ = second // both nodes see that it has fallen silent
		url := "https://example.com/ended"
		fall := func(conv *parley.Conversation) *parley.Conversation {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				m := &parley.Message{ConversationID: conv.ID, Role: parley.RoleAssistant,
					Author: parley.AuthorHuman, Content: "Bye"}
				return tx.AddMessage(ctx, m, 0, parley.Now()-1)
			})
			var now *parley.Conversation
			h.until("the end", func() bool {
				now, _ = h.db.PublicConversation(t.Context(), conv.ID)
				return now.EndedAt != 0
			})
			return now
		}
		deliveries := func() []parley.Delivery {
			list, _, err := h.db.Deliveries(t.Context(), h.user.ID, parley.EventConversationEnded, "",
				store.Page{Number: 1, Size: 10})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		fall(h.start(c, parley.WidgetConversation))
		if len(deliveries()) != 0 {
			t.Fatal("told without an endpoint")
		}
		var err error
		if h.a, err = h.assistants.Update(t.Context(), h.user.ID, h.a.ID,
			map[string]any{"conversation_ended_webhook_url": url}); err != nil {
			t.Fatal(err)
		}
		conv, err := c.WithCustomer(t.Context(), h.a, parley.APIConversation, "+12025550123",
			map[string]string{"who": "Ana", "customer_name": "Ana Bo"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.say(c, conv, "I want a cake"); err != nil {
			t.Fatal(err)
		}
		ended := fall(conv)
		list := deliveries()
		if len(list) != 1 || list[0].URL != url {
			t.Fatalf("told %+v", list)
		}
		d, err := h.db.Delivery(t.Context(), h.user.ID, list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		var p map[string]any
		if err := json.Unmarshal([]byte(d.Payload), &p); err != nil {
			t.Fatal(err)
		}
		want := []string{"assistant", "assistant_id", "assistant_name", "conversation_id", "created_at",
			"customer_name", "customer_phone", "ended_at", "event", "extracted_variables",
			"formatted_transcript", "input_variables", "message_count", "sender", "status", "transcript", "type",
			"version"}
		if got := slices.Sorted(maps.Keys(p)); !slices.Equal(got, want) {
			t.Errorf("keys %v", got)
		}
		if got := fmt.Sprintln(p["event"], p["conversation_id"], p["assistant_id"], p["type"], p["message_count"],
			p["input_variables"], p["customer_phone"], p["extracted_variables"]); got !=
			fmt.Sprintln("conversation.ended", conv.ID, h.a.UUID, "api", 3, "map[customer_name:Ana Bo who:Ana]",
				"+12025550123", "map[status:true summary:I want a cake]") {
			t.Errorf("payload %s", got)
		}
		if text := "Customer: I want a cake\nAI: You said: I want a cake (prompt: Serve Ana.)\nAI: Bye"; p["formatted_transcript"] != text {
			t.Errorf("transcript %q", p["formatted_transcript"])
		}
		lines := p["transcript"].([]any)
		first := lines[0].(map[string]any) // the initial message was sent to nobody
		if len(lines) != 3 || len(first) != 4 || first["language"] != "en" || first["role"] != "user" || first["content"] != "I want a cake" ||
			!regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`).MatchString(first["timestamp"].(string)) {
			t.Errorf("lines %v", lines)
		}
		if raw, _ := json.Marshal(ended.EndedAt); fmt.Sprintf("%q", p["ended_at"]) != string(raw) {
			t.Errorf("ended_at %v, not %s", p["ended_at"], raw)
		}
		if by := fmt.Sprint(p["assistant"]); by != fmt.Sprintf("map[id:%d name:%s uuid:%s]", h.a.ID, h.a.Name,
			h.a.UUID) || p["version"] != 1.0 || p["status"] != "ended" || p["customer_name"] != "Ana Bo" ||
			p["sender"] != nil {
			t.Errorf("%v", p)
		}
	})
}
