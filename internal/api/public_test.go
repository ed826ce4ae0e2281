package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/auth"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// behind lets tests send requests from any address: they are a trusted proxy.
func behind(c *api.Config) { c.Front.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

func from(address string) option { return header("X-Forwarded-For", address) }

// Visitors are limited by their address, and all together by conversation and by assistant; the owner is not.
func TestVisitorsAreLimited(t *testing.T) {
	h, _ := talking(t, storetest.SQLite(t, rules), func(c *api.Config) {
		behind(c)
		c.Rates.Create, c.Rates.Message = auth.Rate{PerSecond: 1e-9, Burst: 3}, auth.Rate{PerSecond: 1e-9, Burst: 2}
	})
	_, uuid := h.active(nil)
	begin := func(address string, want int) (id string) {
		t.Helper()
		a := h.post("/conversations", map[string]any{"assistant_id": uuid}, anonymous, from(address), status(want))
		if want != 200 {
			return ""
		}
		return a.json()["conversation_id"].(string)
	}
	say := func(id, address string, want int, o ...option) {
		t.Helper()
		h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"},
			append([]option{anonymous, from(address), status(want)}, o...)...)
	}
	var ids []string
	for i := range 3 {
		ids = append(ids, begin(fmt.Sprintf("2001:db8::%d", i), 200))
	}
	begin("2001:db8::ffff", 429) // one /64 is one visitor
	say(ids[0], "2001:db8::1", 200)
	say(ids[0], "2001:db8::1", 200)
	say(ids[0], "2001:db8::1", 429) // two in a conversation
	say(ids[1], "2001:db8::2", 200)
	say(ids[1], "2001:db8::3", 200)
	say(ids[2], "2001:db8::4", 429) // four from an address
	say(ids[2], "192.0.2.1", 200)
	for i := range 9 { // and eight that are read
		h.get("/conversations/"+ids[0], anonymous, from("2001:db8::5"), status(map[bool]int{false: 200, true: 429}[i == 8]))
	}
	h.get("/conversations/"+ids[0], from("2001:db8::5"), status(200)) // the owner

	began := 4
	for i := range 40 { // thirty with an assistant, whoever begins them
		a := h.post("/conversations", map[string]any{"assistant_id": uuid}, anonymous,
			from(fmt.Sprintf("198.51.100.%d", i)))
		if a.status == 200 {
			began++
			ids = append(ids, a.json()["conversation_id"].(string))
		}
	}
	if began != 31 {
		t.Errorf("%d conversations were begun", began-1)
	}
	h.post("/conversations", map[string]any{"assistant_id": uuid}, from("203.0.113.1"), status(200)) // the owner
	_, other := h.active(nil)
	h.post("/conversations", map[string]any{"assistant_id": other}, anonymous, from("203.0.113.2"), status(200))

	heard := 5
	for i, id := range ids[3:] { // twenty messages to an assistant
		if a := h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"}, anonymous,
			from(fmt.Sprintf("198.51.100.%d", i))); a.status == 200 {
			heard++
		}
	}
	if heard != 20 {
		t.Errorf("%d messages were heard", heard)
	}
	say(ids[len(ids)-1], "198.51.100.77", 200, header("Authorization", "Bearer "+h.token))
}

// When the day's budget is used up, visitors get a refusal that says so; the owner is warned before.
func TestVisitorsBudget(t *testing.T) {
	five := store.Rules{Plan: rules.Plan, PublicBudget: parley.USD / 20} // messages
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h, _ := talking(t, db, nil)
		_, uuid := h.active(nil)
		h.put("/user/webhook-endpoint", map[string]any{"url": "https://hooks.example.com/parley"}, status(200))
		id := h.converse(uuid)
		for range 5 {
			h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"}, anonymous, status(200))
		}
		h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"}, anonymous, status(402)).
			is(`{"status":false,"error":"This assistant has reached its limit for today. Please try again tomorrow."}`)
		if list := h.get("/user/webhook-deliveries?event=public_budget.low",
			status(200)).json()["data"].([]any); len(list) != 1 {
			t.Errorf("warned %d times", len(list))
		}
		free := h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"},
			status(200)).json()["conversation_id"].(string)
		h.post("/conversations/"+free+"/messages", map[string]any{"message": "Hi"}, status(200)) // not a visitor's
		h.post("/ai/generate-reply", map[string]any{"assistant_id": uuid, "customer_identifier": "c",
			"message": "Hi"}, status(200))
	}, five)
}

// A disabled account and an inactive assistant are closed to the public at once: new and open chats, also those that a
// person took over, and streams.
func TestWhatIsClosedToThePublic(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, _ *aitest.Server) {
		aid, uuid := h.active(nil)
		disable := func(yes bool) {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				u, err := tx.User(ctx, h.user.ID)
				if err != nil {
					return err
				}
				if u.DisabledAt = 0; yes {
					u.DisabledAt = parley.Now()
				}
				return tx.SaveUser(ctx, u)
			})
		}
		inactive := func(yes bool) {
			h.put(fmt.Sprintf("/user/assistant/%d", aid),
				map[string]any{"status": map[bool]string{true: "inactive", false: "active"}[yes]}, status(200))
		}
		for name, closed := range map[string]func(bool){"disabled": disable, "inactive": inactive} {
			id, taken := h.converse(uuid), h.converse(uuid)
			h.post("/user/conversations/"+taken+"/disable-ai", nil, status(200))
			following := h.stream("GET", "/conversations/"+taken+"/events", "")
			if _, err := following.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			closed(true)
			if _, err := io.Copy(io.Discard, following); err != nil { // it ends
				t.Errorf("%s: %v", name, err)
			}
			h.get("/widgets/"+uuid, anonymous, status(404))
			h.post("/conversations", map[string]any{"assistant_id": uuid}, anonymous, status(404))
			for _, one := range []string{id, taken} {
				h.post("/conversations/"+one+"/messages", map[string]any{"message": "Hi"}, anonymous,
					status(404)).is(`{"status":false,"error":"Conversation not found"}`)
				h.get("/conversations/"+one, anonymous, status(404))
				h.get("/conversations/"+one+"/events", anonymous, status(404))
			}
			closed(false)
			h.get("/conversations/"+id, anonymous, status(200))
			h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hi"}, anonymous, status(200))
		}
	})
}

// A stream that was opened with a credential ends when the credential does, and when its holder gets a lesser role.
func TestStreamEndsWithItsCredential(t *testing.T) {
	h, _ := talking(t, storetest.SQLite(t, rules), nil)
	_, uuid := h.active(nil)
	id := h.post("/conversations", map[string]any{"assistant_id": uuid, "type": "test"},
		status(200)).json()["conversation_id"].(string)
	ends := func(token string, end func()) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", h.url+"/api/conversations/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		defer res.Body.Close()
		in := bufio.NewReader(res.Body)
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		end()
		if _, err := io.Copy(io.Discard, in); err != nil {
			t.Error(err)
		}
	}
	mo := h.member(parley.RoleEditor)
	ends(h.credential(mo, "session", ""), func() {
		if _, err := h.authority.ChangeMember(t.Context(), &auth.Who{User: h.user}, mo.Member.ID, map[string]any{"role": "viewer"}); err != nil {
			t.Error(err)
		}
	})
	ends(h.token, func() {
		h.write(func(ctx context.Context, tx *store.Tx) error { _, err := tx.DeleteKeys(ctx, h.user.ID, 0); return err })
	})
}

// An address may have only so many live streams; closing one makes room.
func TestStreamsPerAddress(t *testing.T) {
	h, _ := talking(t, storetest.SQLite(t, rules), func(c *api.Config) { c.Streams = auth.NewSlots(2) })
	_, uuid := h.active(nil)
	id := h.converse(uuid)
	follow := func() *http.Response {
		t.Helper()
		res, err := http.Get(h.url + "/api/conversations/" + id + "/events")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	first, second := follow(), follow()
	if first.StatusCode != 200 || second.StatusCode != 200 {
		t.Fatal(first.Status, second.Status)
	}
	if third := follow(); third.StatusCode != 429 || third.Header.Get("Retry-After") == "" {
		t.Errorf("a third stream is answered %s", third.Status)
	}
	first.Body.Close()
	for limit := time.Now().Add(10 * time.Second); ; {
		if res := follow(); res.StatusCode == 200 {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("a stream that was left makes no room")
		}
	}
}

// Origins must match exactly. Only the assistant's owner, not just any account, needs none.
func TestAllowedOrigins(t *testing.T) {
	h, _ := talking(t, storetest.SQLite(t, rules), nil)
	_, uuid := h.active(map[string]any{"widget_settings": map[string]any{
		"allowed_origins": []string{"https://shop.example.com", "http://localhost:8080"}}})
	stranger := h.stranger()
	for origin, want := range map[string]int{
		"https://shop.example.com": 200, "https://SHOP.example.com": 200, "https://shop.example.com:443": 200,
		"http://localhost:8080": 200, h.url: 200,
		"http://shop.example.com": 403, "https://shop.example.com:8443": 403,
		"https://shop.example.com.evil.example": 403, "https://evilshop.example.com": 403,
		"https://example.com": 403, "https://a.shop.example.com": 403, "null": 403, "": 403,
		"shop.example.com": 403, "http://localhost": 403, "https://shop.example.com@evil.example": 403,
		"https://evil.example/https://shop.example.com": 403, strings.Replace(h.url, "http:", "https:", 1): 403,
	} {
		body := map[string]any{"assistant_id": uuid}
		h.post("/conversations", body, anonymous, header("Origin", origin), status(want))
		h.post("/conversations", body, header("Origin", origin), status(200)) // the owner
		stranger.post("/conversations", body, header("Origin", origin), status(want))
	}
}

func TestTrivialPasswordsAreRefused(t *testing.T) {
	h := lite(t, func(c *api.Config) { c.Signup = true })
	for _, password := range []string{"password1", "12345678", "zoe@example.com", "Welcome2024!", "aaaaaaaaaa"} {
		a := h.post("/register", map[string]any{"name": "Zoe", "email": "zoe@example.com", "password": password},
			anonymous, status(422))
		if text := a.fails("password")["password"]; len(text) != 1 ||
			!strings.HasPrefix(text[0], "The password field is too easy to guess: ") {
			t.Errorf("%s: %q", password, text)
		}
	}
	h.post("/register", map[string]any{"name": "Zoe", "email": "zoe@example.com", "password": "river stone lamp"},
		anonymous, status(201))
}

func TestAllKeysAreRevoked(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		old, session := h.key(h.user, parley.APIKey), h.key(h.user, parley.Session)
		other := h.stranger()
		h.delete("/user/api-keys", status(200)).is(`{"message":"API keys deleted successfully.","revoked":1}`)
		h.get("/user/me", header("Authorization", "Bearer "+old), status(401))
		h.get("/user/me", status(200)) // the key that made the request
		other.get("/user/me", status(200))
		h.delete("/user/api-keys", header("Authorization", "Bearer "+session),
			status(200)).is(`{"message":"API keys deleted successfully.","revoked":1}`)
		h.get("/user/me", status(401))
	})
}
