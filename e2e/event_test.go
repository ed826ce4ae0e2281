package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/parley"
	"parley/internal/store"
)

// hooks is a user's endpoint that remembers which events it got, and how often.
type hooks struct {
	mu     sync.Mutex
	bodies map[string]map[string]bool // by webhook-id: the bodies that came under it
	count  int
	hold   chan struct{} // while it is open, no request is answered
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	id := r.Header.Get("webhook-id")
	if h.bodies[id] == nil {
		h.bodies[id] = map[string]bool{}
	}
	h.bodies[id][string(body)] = true
	h.count++
	hold := h.hold
	h.mu.Unlock()
	select {
	case <-hold:
	case <-r.Context().Done():
	}
}

func (h *hooks) got() (ids, requests int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.bodies), h.count
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	inTime(t, 2*patience, what, ok)
}

// inTime waits for something that may take long.
func inTime(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	look, hang := time.NewTicker(10*time.Millisecond), time.After(most)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-hang:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// A program that is killed while deliveries are in flight sends each of them after its restart, with the same id and
// body.
func TestEventsKilledInFlight(t *testing.T) {
	share(t, call)
	h := &hooks{bodies: map[string]map[string]bool{}, hold: make(chan struct{})}
	url := serveLocal(t, h)
	p := start(t, "PARLEY_EGRESS_ALLOW=127.0.0.0/8", "PARLEY_RATE_API=off")
	on := map[string]any{"assistant_id": p.Assistant, "webhook_url": url + "/hooks"}
	for _, name := range []string{"webhook", "conversation-ended-webhook"} {
		if status := p.call(t, "POST", "/user/assistants/enable-"+name, on, nil); status != 200 {
			t.Fatalf("enable-%s: %d", name, status)
		}
	}
	want := map[string]bool{}
	for i := range 20 {
		var made struct {
			Data struct {
				WebhookID string `json:"webhook_id"`
			}
		}
		event := []string{"call.completed", "conversation.ended"}[i%2]
		if status := p.call(t, "POST", fmt.Sprintf("/user/assistants/%d/webhook-test", p.Assistant),
			map[string]any{"event": event}, &made); status != 201 {
			t.Fatalf("webhook-test: %d", status)
		}
		want[made.Data.WebhookID] = true
	}
	eventually(t, "deliveries in flight", func() bool { n, _ := h.got(); return n == 8 })
	p.kill(t)
	h.mu.Lock()
	close(h.hold)
	h.mu.Unlock()
	p.restart(t)
	delivered := func() (n int) {
		var page struct{ Total int }
		p.call(t, "GET", "/user/webhook-deliveries?status=delivered", nil, &page)
		return page.Total
	}
	eventually(t, "all deliveries", func() bool { return delivered() == len(want) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.bodies) != len(want) || h.count != len(want)+8 {
		t.Errorf("%d events came in %d requests: %d were sent, 8 of them in flight when it was killed",
			len(h.bodies), h.count, len(want))
	}
	for id, bodies := range h.bodies {
		if !want[id] || len(bodies) != 1 {
			t.Errorf("%q came with %d bodies", id, len(bodies))
		}
	}
}

// Silence that begins while the program is down is noticed when it is up again, and reported.
func TestEventsSilenceSurvivesRestart(t *testing.T) {
	share(t, call)
	h := &hooks{bodies: map[string]map[string]bool{}, hold: make(chan struct{})}
	close(h.hold)
	url := serveLocal(t, h)
	p := start(t, "PARLEY_EGRESS_ALLOW=127.0.0.0/8")
	if status := p.call(t, "POST", "/user/assistants/enable-conversation-ended-webhook",
		map[string]any{"assistant_id": p.Assistant, "webhook_url": url}, nil); status != 200 {
		t.Fatalf("enable: %d", status)
	}
	id := p.converse(t)
	if status, _ := p.say(t, id, "When are you open?"); status != 200 {
		t.Fatalf("message: %d", status)
	}
	p.kill(t)
	// Minutes pass: the last message is moved into the past.
	data := strings.TrimPrefix(p.env[0], "PARLEY_DATA=")
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(data, "parley.db"), Secret: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.AddMessage(ctx, &parley.Message{ConversationID: id, Role: parley.RoleAssistant,
			Author: parley.AuthorHuman, Content: "Bye"}, 0, parley.Now()-1)
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.restart(t)
	eventually(t, "the event", func() bool { n, _ := h.got(); return n > 0 })
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, bodies := range h.bodies {
		for body := range bodies {
			var e struct {
				Event          string
				ConversationID string `json:"conversation_id"`
				MessageCount   int    `json:"message_count"`
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil || e.Event != "conversation.ended" ||
				e.ConversationID != id || e.MessageCount != 4 {
				t.Errorf("%v: %s", err, body)
			}
		}
	}
	if n, requests := len(h.bodies), h.count; n != 1 || requests != 1 {
		t.Errorf("%d events in %d requests", n, requests)
	}
}
