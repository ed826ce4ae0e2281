package chat_test

import (
	"context"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
	"parley/internal/assistant"
	"parley/internal/parley"
	"parley/internal/store"
)

// What a page's tool did counts also where the page lost its stream meanwhile; a page that has gone is asked nothing more.
func TestToolAnsweredAfterLeaving(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool := &parley.Tool{Kind: parley.ToolClient, Name: "show", Description: "Shows.", Method: "POST", Timeout: 10}
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.CreateTool(ctx, h.user.ID, tool) })
		var err error
		if h.a, err = h.assistants.Update(t.Context(), h.user.ID, h.a.ID, map[string]any{"tool_ids": []any{number(tool.ID)}}); err != nil {
			t.Fatal(err)
		}
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		show := aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: "show", Arguments: "{}"}}}
		h.server.Script(show, show, aitest.Behaviour{Text: "There."})
		w, err := c.Send(t.Context(), conv, "Show it", "show")
		if err != nil {
			t.Fatal(err)
		}
		var asked *assistant.ClientCall
		for asked == nil {
			pieces, done, _, err := w.Next(t.Context())
			if err != nil || done {
				t.Fatalf("the reply ended with %v", err)
			}
			for _, p := range pieces {
				asked = p.Ask
			}
		}
		w.Leave()
		if !c.ToolAnswered(conv.ID, asked.ID, assistant.ClientResult{Result: "Shown."}) {
			t.Error("the answer is not taken")
		}
		h.until("the reply", func() bool { return len(h.history(conv)) == 3 })
		var results []string
		for _, call := range h.history(conv)[2].FunctionCalls {
			results = append(results, call.Result)
		}
		if len(results) != 2 || results[0] != "Shown." || results[1] != "The tool failed: the customer's page is gone." {
			t.Errorf("the model was told %q", results)
		}
	})
}
