package chat_test

import (
	"strings"
	"testing"
	"time"

	"parley/internal/assistant"
	"parley/internal/parley"
)

// A conversation with a draft follows the draft: as it changes, and back to the live assistant once it is discarded.
// Conversations with customers never use drafts.
func TestConversationWithADraft(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		c := h.node()
		save := func(prompt string) *parley.Assistant {
			t.Helper()
			d, err := h.assistants.SaveDraft(t.Context(), h.user.ID, h.a.ID, map[string]any{"system_prompt": prompt})
			if err != nil {
				t.Fatal(err)
			}
			return d.Assistant
		}
		conv, _, err := c.StartDraft(t.Context(), save("Draft one of {{who}}."), 0, map[string]string{"who": "Ana"})
		if err != nil {
			t.Fatal(err)
		}
		widget := h.start(c, parley.WidgetConversation)
		asked := func(conv *parley.Conversation) string {
			t.Helper()
			if _, err := h.say(c, conv, "Hi"); err != nil {
				t.Fatal(err)
			}
			all := h.server.Requests()
			return all[len(all)-1].System
		}
		if got := asked(conv); got != "Draft one of Ana." {
			t.Errorf("the draft thinks by %q", got)
		}
		timed := func(on bool) {
			t.Helper()
			if _, err := h.assistants.SaveDraft(t.Context(), h.user.ID, h.a.ID, map[string]any{"prompt_current_time": on}); err != nil {
				t.Fatal(err)
			}
		}
		timed(true)
		if got, date := asked(conv), time.Now().UTC().Format("2 January 2006, "); !strings.HasPrefix(got, "Draft one of Ana.\n\nIt is ") ||
			!strings.Contains(got, date) && !strings.Contains(got, time.Now().UTC().Format("2 January 2006, ")) ||
			!strings.HasSuffix(got, " in the time zone UTC (UTC+00:00).") {
			t.Errorf("with the time the draft thinks by %q", got)
		}
		if got := asked(widget); got != "Serve Ana." {
			t.Errorf("a customer's conversation thinks by %q", got)
		}
		timed(false)
		save("Draft two.")
		if got := asked(conv); got != "Draft two." {
			t.Errorf("the changed draft thinks by %q", got)
		}
		if err := h.assistants.Discard(t.Context(), h.user.ID, h.a.ID); err != nil {
			t.Fatal(err)
		}
		if got := asked(conv); got != "Serve Ana." {
			t.Errorf("without a draft it thinks by %q", got)
		}
		save("Draft three.")
		if _, err := h.assistants.Publish(t.Context(), h.user.ID, h.a.ID, assistant.Publishing{}); err != nil {
			t.Fatal(err)
		}
		if got := asked(widget); got != "Draft three." {
			t.Errorf("published, it thinks by %q", got)
		}
	})
}
