package chat_test

import (
	"context"
	"testing"

	"parley/internal/ai/aitest"
	"parley/internal/catalog"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
)

// A conversation records what its replies used of which vendors, and which vendor stood in for another, even for
// replies that failed.
func TestConversationKeepsVendors(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		cat := catalog.New("", provider.All(openai.Declare(&openai.Settings{APIKey: "k",
			ChatModel: []string{"thinker", "spare"}})))
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.KeepModels(ctx, cat.Models()) })
		rows, err := h.db.Models(t.Context())
		if err == nil {
			err = cat.SetModels(rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.assistants.Catalog, h.assistants.Fallback.Models = cat, []string{"openai/spare"}
		h.server.Models = []string{"thinker", "spare"}
		dollar := parley.USD
		h.prices.Vendors["openai"] = parley.VendorPrice{Output: &dollar}
		c := h.node()
		conv := h.start(c, parley.WidgetConversation)
		if _, err := h.say(c, conv, "hello"); err != nil {
			t.Fatal(err)
		}
		h.server.Models = []string{"spare"}
		if _, err := h.say(c, conv, "and again"); err != nil {
			t.Fatal(err)
		}
		now, err := h.db.Conversation(t.Context(), h.user.ID, conv.ID)
		if err != nil {
			t.Fatal(err)
		}
		if s := now.VendorSwitches; len(s) != 1 || s[0].From != "openai/thinker" || s[0].To != "openai/spare" ||
			s[0].Reason != "configuration" || s[0].AtMS < 0 {
			t.Errorf("switches %+v", s)
		}
		uses := now.VendorUses
		if len(uses) != 2 || uses[0].Model != "thinker" || uses[1].Model != "spare" || uses[1].TokensOut == 0 ||
			uses[1].Cost == nil || *uses[1].Cost != parley.Money(uses[1].TokensOut) {
			t.Fatalf("uses %+v", uses)
		}
		// the next reply is added, and so is one that breaks off with no vendor left
		h.server.Script(aitest.Behaviour{Text: "One two three four.", Fault: aitest.Reset, After: 2})
		h.assistants.Fallback.Models = nil
		h.server.Models = []string{"thinker"}
		h.say(c, conv, "more") // it may fail
		if now, err = h.db.Conversation(t.Context(), h.user.ID, conv.ID); err != nil || len(now.VendorSwitches) != 1 ||
			now.VendorUses[1] == (parley.VendorUse{}) {
			t.Errorf("%v %+v", err, now)
		}
		// and the usage of the extraction at the end
		before, asked := now.VendorUses[0].TokensIn, len(h.server.Requests())
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.AddMessage(ctx, &parley.Message{ConversationID: conv.ID, Role: parley.RoleAssistant,
				Author: parley.AuthorHuman, Content: "Bye"}, 0, parley.Now()-1)
		})
		h.until("the end", func() bool {
			now, _ = h.db.Conversation(t.Context(), h.user.ID, conv.ID)
			return now.EndedAt != 0
		})
		if len(now.Extracted) == 0 || len(h.server.Requests()) == asked || now.VendorUses[0].TokensIn <= before {
			t.Errorf("%v was read by %d requests, and the uses are %+v; before, %d tokens went in", now.Extracted,
				len(h.server.Requests())-asked, now.VendorUses, before)
		}
	})
}
