package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/api"
	"parley/internal/keyring"
	"parley/internal/provider"
	"parley/internal/provider/deepgram"
	"parley/internal/provider/deepgram/deepgramtest"
	"parley/internal/store"
)

// vendorsHouse is a house whose Deepgram is a test server.
func vendorsHouse(t *testing.T, db *store.DB) *harness {
	at := deepgramtest.NewServer(t)
	return open(t, db, func(c *api.Config) {
		keys, err := keyring.Open(t.Context(), db, provider.All(deepgram.Declare(&deepgram.Settings{BaseURL: at.URL})), "",
			func(int64, string) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(keys.Close)
		c.Keys, c.Catalog, c.Assistants.Catalog = keys, keys.Catalog, keys.Catalog
	})
}

// deepgramOf is the entry for Deepgram in a list of vendors.
func deepgramOf(a *answer) map[string]any {
	a.Helper()
	for _, v := range a.list() {
		if v["code"] == "deepgram" {
			return v
		}
	}
	a.Fatalf("no deepgram in %s", a.body)
	return nil
}

// auras is how many of Deepgram's voices a user can choose from.
func (h *harness) auras() (n int) {
	for _, v := range h.get("/user/assistants/voices?language_id=1", status(200)).list() {
		if id, ok := v["synthesizer_provider_id"].(json.Number); ok && id == "6" {
			n++
		}
	}
	return n
}

// A user's own key is entered, tested, used and removed. No other user sees any of that, and nobody sees the key.
func TestVendorKeys(t *testing.T) {
	eachDB(t, func(t *testing.T, db *store.DB) {
		h := vendorsHouse(t, db)
		other := h.stranger()
		key := map[string]any{"key": deepgramtest.Key}
		if v := deepgramOf(h.get("/user/vendors", status(200))); v["source"] != "none" || v["key"] != nil || v["setting"] != nil {
			t.Errorf("%v", v)
		}
		if list := h.get("/user/setup", status(200)).list(); len(list) != 4 || list[0]["code"] != "model" ||
			list[0]["state"] != "fail" || list[3]["code"] != "assistants" {
			t.Errorf("%v", list)
		}
		h.put("/user/vendors/deepgram/key", map[string]any{"key": "wrong-key-0123456789"}).fails("key")
		h.put("/user/vendors/deepgram/key", map[string]any{}).fails("key")
		h.put("/user/vendors/nobody/key", key, status(404))
		h.put("/user/vendors/local/key", key, status(404))
		h.post("/user/vendors/deepgram/test", map[string]any{}).fails("key")
		if got := h.post("/user/vendors/deepgram/test", map[string]any{"key": "wrong-key-0123456789"},
			status(200)).json(); got["state"] != "refused" || !strings.HasPrefix(got["reason"].(string), "Deepgram refuses this key") {
			t.Errorf("%v", got)
		}
		if got := h.post("/user/vendors/deepgram/test", key, status(200)).json(); got["state"] != "connected" {
			t.Errorf("%v", got)
		}
		if h.auras() != 0 {
			t.Error("a key that was only tested counts")
		}
		saved := h.put("/user/vendors/deepgram/key", key, status(200))
		if v := deepgramOf(h.get("/user/vendors", status(200))); v["source"] != "own" ||
			v["key"].(map[string]any)["state"] != "connected" {
			t.Errorf("%v", v)
		}
		if h.auras() == 0 || other.auras() != 0 {
			t.Errorf("voices: %d, another's %d", h.auras(), other.auras())
		}
		for _, a := range []*answer{saved, h.get("/user/vendors"), other.get("/user/vendors"), h.get("/user/me")} {
			if strings.Contains(string(a.body), deepgramtest.Key) {
				t.Errorf("the key is returned: %s", a.body)
			}
		}
		if v := deepgramOf(other.get("/user/vendors", status(200))); v["source"] != "none" || v["key"] != nil {
			t.Errorf("another sees %v", v)
		}
		other.delete("/user/vendors/deepgram/key", status(404))
		h.delete("/user/vendors/deepgram/key", status(200))
		h.delete("/user/vendors/deepgram/key", status(404))
		if h.auras() != 0 {
			t.Error("a key that was removed counts")
		}
	})
}

// Only the operator can change the server's keys, and they serve every user.
func TestServerVendorKeys(t *testing.T) {
	eachDB(t, func(t *testing.T, db *store.DB) {
		h := vendorsHouse(t, db)
		other := h.stranger()
		key := map[string]any{"key": deepgramtest.Key}
		routes := func(h *harness, want int) {
			t.Helper()
			h.get("/server/vendors", status(want))
			h.put("/server/vendors/deepgram/key", key, status(want))
			h.post("/server/vendors/deepgram/test", map[string]any{}, status(want))
			h.delete("/server/vendors/deepgram/key", status(want))
		}
		routes(h, 403)
		nobody := h.in(t)
		nobody.token = ""
		for _, path := range []string{"/server/vendors", "/user/vendors"} {
			h.get(path, header("Authorization", ""), status(401))
			h.put(path+"/deepgram/key", key, header("Authorization", ""), status(401))
			h.post(path+"/deepgram/test", key, header("Authorization", ""), status(401))
			h.delete(path+"/deepgram/key", header("Authorization", ""), status(401))
		}
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SetOperator(ctx, h.user.ID, true) })
		h.put("/user/me", map[string]any{"name": "Still the operator"}, status(200))
		routes(h, 200)
		h.put("/server/vendors/deepgram/key", key, status(200))
		if v := deepgramOf(h.get("/server/vendors", status(200))); v["source"] != "entered" ||
			v["setting"] != "PARLEY_DEEPGRAM_API_KEY" {
			t.Errorf("%v", v)
		}
		if other.auras() == 0 {
			t.Error("the server's key does not count for users")
		}
		v := deepgramOf(other.get("/user/vendors", status(200)))
		if v["source"] != "server" || v["key"] != nil || v["setting"] != nil {
			t.Errorf("%v", v)
		}
		h.put("/server/vendors/deepgram/key", map[string]any{"key": deepgramtest.Key, "base_url": "file:///etc"}).fails("base_url")
	})
}
