package console

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"parley/internal/ai/aitest"
	"parley/internal/keyring"
	"parley/internal/parley"
	"parley/internal/provider"
	"parley/internal/provider/openai"
	"parley/internal/store"
)

// From a server without a model to assistants that think with one, in one key and two buttons.
func TestProviders(t *testing.T) {
	chat := aitest.NewServer(t)
	chat.APIKey, chat.Models = "sk-console-0123456789", []string{"gpt-6-luna"}
	h := open(t, func(c *Config) {
		keys, err := keyring.Open(t.Context(), c.DB, provider.All(openai.Declare(&openai.Settings{})), "", func(int64, string) {})
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
	if got := b.get("/providers").doc().Find("#server-openai .tag").Text(); got != "Not connected" {
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

// A server of the operator's own needs a URL and no key, brings the models that it lists, and a base URL that lacks /v1
// is told in words.
func TestProviderByURL(t *testing.T) {
	chat := aitest.NewServer(t)
	chat.Models = []string{"llama3.2", "nomic-embed-text", "qwen3:8b"}
	chat.SpeechModels, chat.TranscriptionModels, chat.EmbeddingModels = nil, nil, nil
	h := open(t, func(c *Config) {
		keys, err := keyring.Open(t.Context(), c.DB, provider.All(), "", func(int64, string) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(keys.Close)
		c.Keys, c.Catalog, c.Assistants.Catalog, c.Assistants.Providers = keys, keys.Catalog, keys.Catalog, keys.Providers
	})
	u := h.user(t)
	a := h.assistant(t, u, "Front desk")
	b := h.signedIn(t, u)
	if b.get("/providers").doc().Find("#own-compatible").Length() != 0 {
		t.Error("an account can name a server by its URL")
	}
	if err := h.DB.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.SetOperator(ctx, u.ID, true)
	}); err != nil {
		t.Fatal(err)
	}
	save := func(base string) *reply {
		t.Helper()
		return b.post("/providers/server/compatible", url.Values{"base_url": {base}, "do": {"save"}})
	}
	if res := save(""); res.status != 422 || !strings.Contains(res.body, "Enter the base URL") {
		t.Errorf("no base URL: %d %.300s", res.status, res.body)
	}
	if res := save(strings.TrimSuffix(chat.URL, "/v1")); res.status != 422 || !strings.Contains(res.body, "use that as the base URL") {
		t.Errorf("a base URL without /v1: %d", res.status)
	}
	if res := save(chat.URL); res.status != 303 {
		t.Fatalf("%d %.300s", res.status, res.body)
	}
	doc := b.get("/providers").doc()
	if got := doc.Find("#server-compatible .tag").Text(); got != "Connected" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(strings.Fields(doc.Find("#think").Text()), " "); got != "Use llama3.2 for Front desk" {
		t.Errorf("%q", got)
	}
	if got := doc.Find("#server-compatible").Text(); !strings.Contains(got, "2 models") {
		t.Errorf("%q: the model for embeddings can't hold a conversation", got)
	}
	b.post("/providers/think", nil)
	if m := h.Catalog.For(u.ID).Model(*h.onlyAssistant(t, u).LLMModelID); m == nil || m.Code != "llama3.2" || m.Provider != "compatible" {
		t.Errorf("%+v", m)
	}
	if got := b.get(assistantPath(a.ID, "/talk")).doc().Find(".test-model").Text(); !strings.Contains(got, "llama3.2") {
		t.Errorf("the test chat doesn't name its model: %q", got)
	}
	chat.Models = []string{"llama3.2", "mistral"}
	b.post("/providers/server/compatible", url.Values{"do": {"test"}})
	var codes []string
	for _, m := range h.Catalog.For(u.ID).ModelsOf(parley.LLM) {
		codes = append(codes, m.Code)
	}
	if got := strings.Join(codes, " "); !strings.Contains(got, "mistral") || strings.Contains(got, "qwen3") {
		t.Errorf("after another test: %s", got)
	}
}
