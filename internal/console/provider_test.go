package console

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"parley"
	"parley/internal/ai/aitest"
	"parley/internal/keyring"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
)

// From a server without a model to assistants that think with one, in one key and two buttons.
func TestProviders(t *testing.T) {
	chat := aitest.NewServer(t)
	chat.APIKey, chat.Models = "sk-console-0123456789", []string{"gpt-6-luna"}
	h := open(t, func(c *Config) {
		keys, err := keyring.Open(t.Context(), c.DB, provider.All(openai.Declare(&openai.Settings{})), "", func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(keys.Close)
		c.Keys, c.Catalog, c.Assistants.Catalog, c.Assistants.Providers = keys, keys.Catalog, keys.Catalog, keys.Providers
	})
	u := h.user(t)
	h.assistant(t, u, "Desk")
	b := h.signedIn(t, u)
	if doc := b.get("/").doc(); doc.Find("#connect").AttrOr("href", "") != "/providers" {
		t.Error("the overview doesn't say that there is no model")
	}
	doc := b.get("/providers").doc()
	if doc.Find("#own-openai").Length() != 1 || doc.Find("#server-openai").Length() != 0 {
		t.Error("a user sees their own keys alone")
	}
	if res := b.post("/providers/server/openai", url.Values{"key": {chat.APIKey}}); res.status != 403 {
		t.Errorf("the server's key, from no operator: %d", res.status)
	}
	if err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.SetOperator(ctx, u.ID, true)
	}); err != nil {
		t.Fatal(err)
	}
	base := url.Values{"base_url": {chat.URL}, "do": {"save"}}
	send := func(key string) string {
		t.Helper()
		base.Set("key", key)
		res := b.post("/providers/server/openai", base)
		if strings.Contains(res.body, key) {
			t.Errorf("the page holds the key %s", key)
		}
		return res.body
	}
	if text := send("sk-wrong-0123456789"); !strings.Contains(text, "OpenAI refuses this key") {
		t.Errorf("a wrong key: %.300s", text)
	}
	send(chat.APIKey)
	doc = b.get("/providers").doc()
	if got := doc.Find("#server-openai .tag").Text(); got != "Connected" {
		t.Errorf("%q", got)
	}
	if got := doc.Find("#own-openai .tag").Text(); got != "Uses this server's key" {
		t.Errorf("%q", got)
	}
	b.post("/providers/think", nil)
	a := h.onlyAssistant(t, u)
	if m := h.Catalog.For(u.ID).Model(*a.LLMModelID); m == nil || m.Code != "gpt-6-luna" {
		t.Errorf("%+v", m)
	}
	if doc := b.get("/").doc(); doc.Find("#connect").Length() != 0 {
		t.Error("the banner is still there")
	}
	b.post("/providers/server/openai", url.Values{"do": {"remove"}})
	if got := b.get("/providers").doc().Find("#server-openai .tag").Text(); got != "Not set" {
		t.Errorf("%q", got)
	}
}

// onlyAssistant is a user's first assistant.
func (h *harness) onlyAssistant(t *testing.T, u *parley.User) *parley.Assistant {
	t.Helper()
	list, err := h.DB.Assistants(t.Context(), u.ID, "")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return &list[0]
}
