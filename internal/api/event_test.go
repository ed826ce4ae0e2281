package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/egress"
	"parley/internal/event"
	"parley/internal/parley"
	"parley/internal/store"
)

// enqueue stores a delivery of the harness's user.
func (h *harness) enqueue(kind parley.EventKind, url string) *parley.Delivery {
	h.Helper()
	d := parley.NewDelivery(kind, url, map[string]any{"event": kind, "n": 1})
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.EnqueueDelivery(ctx, h.user.ID, d) })
	return d
}

// said is some values as text, separated by spaces.
func said(v ...any) string { return strings.TrimSpace(fmt.Sprintln(v...)) }

// attempt records an attempt at a delivery, as its sender would.
func (h *harness) attempt(d *parley.Delivery, code int) {
	h.Helper()
	a := &parley.DeliveryAttempt{At: parley.Now(), DurationMS: 12, Answer: "the answer"}
	if a.Status = &code; code != 200 {
		text := fmt.Sprintf("The endpoint answered %d.", code)
		a.Error = &text
	}
	h.write(func(ctx context.Context, tx *store.Tx) (err error) {
		_, err = tx.NoteAttempt(ctx, d, a, 0)
		return err
	})
}

func TestWebhookSecret(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		read := func(h *harness) string {
			m := h.get("/user/webhook-secret", status(200)).json()
			s, _ := m["secret"].(string)
			key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
			if len(m) != 1 || !strings.HasPrefix(s, "whsec_") || err != nil || len(key) < 24 || len(key) > 64 {
				t.Errorf("answered %v", m)
			}
			return s
		}
		first := read(h)
		if read(h) != first {
			t.Error("it changes by being read")
		}
		if read(h.stranger()) == first {
			t.Error("two users have one secret")
		}
		m := h.post("/user/webhook-secret/rotate", nil, status(200)).json()
		if m["message"] != "Webhook secret rotated successfully" || m["secret"] == first ||
			m["secret"] != read(h) || len(m) != 2 {
			t.Errorf("rotated to %v", m)
		}
	})
}

func TestWebhookEndpoint(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		const at = "/user/webhook-endpoint"
		h.get(at, status(200)).is(`{"url":null}`)
		h.put(at, map[string]any{"url": "  https://example.com/hooks  "},
			status(200)).is(`{"message":"Webhook endpoint updated successfully","url":"https://example.com/hooks"}`)
		h.put(at, map[string]any{"other": 1}, status(200)).is(
			`{"message":"Webhook endpoint updated successfully","url":"https://example.com/hooks"}`)
		h.put(at, nil, status(200))
		h.get(at, status(200)).is(`{"url":"https://example.com/hooks"}`)
		h.stranger().get(at, status(200)).is(`{"url":null}`)
		for _, bad := range []any{5, true, []any{}, map[string]any{}, "example.com", "ftp://example.com",
			"https://", "https://user:pass@example.com", "http://a b", "a\x00"} {
			h.put(at, map[string]any{"url": bad}, status(422)).fails("url")
		}
		h.put(at, map[string]any{"url": "https://example.com/" + strings.Repeat("x", 2048)},
			status(422)).says("url", "The url field must not be greater than 2048 characters.")
		h.put(at, nil, raw(`{"url":`), status(422))
		h.get(at, status(200)).is(`{"url":"https://example.com/hooks"}`)
		h.put(at, map[string]any{"url": nil}, status(200)).is(
			`{"message":"Webhook endpoint updated successfully","url":null}`)
		h.put(at, map[string]any{"url": "https://example.com"}, status(200))
		h.put(at, map[string]any{"url": " "}, status(200))
		h.get(at, status(200)).is(`{"url":null}`)
	})
}

func TestWebhookDeliveries(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		const at = "/user/webhook-deliveries"
		if m := h.get(at, status(200)).json(); said(m["data"], m["total"], m["from"]) != "[] 0 <nil>" {
			t.Errorf("none are %v", m)
		}
		waiting := h.enqueue(parley.EventConversationEnded, "https://example.com/a")
		made := h.enqueue(parley.EventBalanceLow, "https://example.com/b")
		h.attempt(made, 200)
		failed := h.enqueue(parley.EventCallCompleted, "https://example.com/c")
		h.attempt(failed, 410)
		for query, want := range map[string][]int64{
			"": {failed.ID, made.ID, waiting.ID}, "?status=pending": {waiting.ID}, "?status=delivered": {made.ID},
			"?status=failed":     {failed.ID},
			"?event=balance.low": {made.ID}, "?event=balance.low&status=failed": nil,
			"?event=campaign.completed": nil, "?per_page=1&page=2": {made.ID},
			"?status=&event=": {failed.ID, made.ID, waiting.ID},
		} {
			var page struct {
				Data []struct {
					ID int64 `json:"id"`
				}
			}
			h.get(at+query, status(200)).decode(&page)
			var got []int64
			for _, d := range page.Data {
				got = append(got, d.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q lists %v, want %v", query, got, want)
			}
		}
		row := h.get(at+"?status=pending", status(200)).json()["data"].([]any)[0].(map[string]any)
		want := []string{"attempts", "created_at", "event", "id", "last_error", "last_status", "next_attempt_at",
			"status", "url", "webhook_id"}
		if got := slices.Sorted(maps.Keys(row)); !slices.Equal(got, want) {
			t.Errorf("fields %v", got)
		}
		if said(row["attempts"], row["event"], row["last_error"], row["last_status"], row["status"], row["url"],
			row["webhook_id"]) !=
			said("0", "conversation.ended", nil, nil, "pending", "https://example.com/a", waiting.WebhookID) ||
			!isoTime.MatchString(row["created_at"].(string)) || !isoTime.MatchString(row["next_attempt_at"].(string)) {
			t.Errorf("%v", row)
		}
		for query, field := range map[string]string{"?status=lost": "status", "?event=call": "event",
			"?per_page=0": "per_page", "?per_page=101": "per_page",
			"?per_page=x": "per_page", "?page=0": "page", "?page=9999999999": "page"} {
			h.get(at+query, status(422)).fails(field)
		}

		one := h.get(fmt.Sprintf("%s/%d", at, failed.ID), status(200)).json()
		log := one["log"].([]any)[0].(map[string]any)
		if said(one["payload"], one["status"], one["last_status"], one["last_error"], one["next_attempt_at"],
			one["response"], len(one["log"].([]any))) !=
			"map[event:call.completed n:1] failed 410 The endpoint answered 410. <nil> map[body:the answer status:410] 1" {
			t.Errorf("%v", one)
		}
		if said(log["status"], log["error"], log["duration_ms"],
			len(log)) != "410 The endpoint answered 410. 12 4" || !isoTime.MatchString(log["at"].(string)) {
			t.Errorf("log %v", log)
		}
		one = h.get(fmt.Sprintf("%s/%d", at, waiting.ID), status(200)).json()
		if said(one["response"], one["log"]) != "<nil> []" {
			t.Errorf("not tried yet: %v", one)
		}

		again := h.post(fmt.Sprintf("%s/%d/resend", at, failed.ID), nil, status(200)).json()
		data := again["data"].(map[string]any)
		if said(again["message"], data["status"], data["attempts"],
			data["webhook_id"]) != "Webhook delivery is being sent again pending 1 "+failed.WebhookID ||
			data["next_attempt_at"] == nil {
			t.Errorf("%v", again)
		}
		other := h.stranger()
		if m := other.get(at, status(200)).json(); fmt.Sprint(m["total"]) != "0" {
			t.Errorf("another user sees %v", m)
		}
		const missing = `{"message":"Webhook delivery not found"}`
		for _, id := range []string{fmt.Sprint(failed.ID), "0", "-1", "999999", "x", "1.5", "007",
			"99999999999999999999"} {
			other.get(at+"/"+id, status(404)).is(missing)
			other.post(at+"/"+id+"/resend", nil, status(404)).is(missing)
		}
		h.delete(at+"/1", status(405))
	})
}

func TestWebhookTest(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		guard := egress.New(nil, netip.MustParsePrefix("127.0.0.0/8"))
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); event.NewSender(h.db, guard).Run(ctx) }()
		t.Cleanup(func() { stop(); <-done; guard.Close() })
		got := make(chan map[string]any, 10)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m map[string]any
			json.NewDecoder(r.Body).Decode(&m)
			m["path"], m["webhook-id"] = r.URL.Path, r.Header.Get("webhook-id")
			got <- m
		}))
		t.Cleanup(srv.Close)

		at := func(id int64) string { return fmt.Sprintf("/user/assistants/%d/webhook-test", id) }
		none := h.assistant(nil)
		h.post(at(none), nil, status(422)).is(`{"message":"The assistant has no webhook URL for this event."}`)
		all := h.assistant(map[string]any{"webhook_url": srv.URL + "/call", "inbound_webhook_url": srv.URL +
			"/inbound", "conversation_ended_webhook_url": srv.URL + "/chat"})
		for _, c := range []struct {
			body        any
			event, path string
		}{
			{nil, "call.completed", "/call"}, {map[string]any{"event": "call.inbound"}, "call.inbound", "/inbound"},
			{map[string]any{"event": "call.inbound.completed"}, "call.inbound.completed", "/inbound"},
			{map[string]any{"event": "conversation.ended"}, "conversation.ended", "/chat"},
		} {
			m := h.post(at(all), c.body, status(201)).json()
			data := m["data"].(map[string]any)
			if m["message"] != "Test webhook is being sent" || data["event"] != c.event || data["status"] != "pending" {
				t.Errorf("%v", m)
			}
			select {
			case e := <-got:
				if e["event"] != c.event || e["path"] != c.path || e["test"] != true ||
					e["webhook-id"] != data["webhook_id"] {
					t.Errorf("the endpoint got %v", e)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("nothing came")
			}
		}
		only := h.assistant(map[string]any{"conversation_ended_webhook_url": srv.URL + "/chat"})
		if m := h.post(at(only), nil, status(201)).json(); m["data"].(map[string]any)["event"] != "conversation.ended" {
			t.Errorf("%v", m)
		}
		h.post(at(only), map[string]any{"event": "call.completed"},
			status(422)).is(`{"message":"The assistant has no webhook URL for this event."}`)
		for _, bad := range []any{5, "balance.low", "x", []any{}} {
			h.post(at(only), map[string]any{"event": bad}, status(422)).fails("event")
		}
		h.stranger().post(at(all), nil, status(404)).is(`{"message":"Assistant not found"}`)
		h.post("/user/assistants/x/webhook-test", nil, status(404)).is(`{"message":"Assistant not found"}`)
	})
}

// Every route needs a credential.
func TestWebhooksUnauthenticated(t *testing.T) {
	h := lite(t, nil)
	for _, c := range []struct{ method, path string }{
		{"GET", "/user/webhook-secret"}, {"POST", "/user/webhook-secret/rotate"}, {"GET", "/user/webhook-endpoint"},
		{"PUT", "/user/webhook-endpoint"},
		{"GET", "/user/webhook-deliveries"}, {"GET", "/user/webhook-deliveries/1"},
		{"POST", "/user/webhook-deliveries/1/resend"}, {"POST", "/user/assistants/1/webhook-test"},
	} {
		for _, token := range []string{"", "Bearer 1|wrong", "Basic x"} {
			h.do(c.method, c.path, nil, header("Authorization", token), status(401)).is(unauthenticated)
		}
	}
}
