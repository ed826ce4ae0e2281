package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/ai/aitest"
	"parley/internal/api"
	"parley/internal/parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// Whole conversations, as those who hold them and the assistant's owner meet them.

// ended waits until silence has ended a conversation, which it does at once.
func (h *harness) ended(id string) map[string]any {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		return tx.AddMessage(ctx, &parley.Message{ConversationID: id, Role: parley.RoleAssistant, Author: parley.AuthorHuman, Content: "4711"}, 0,
			parley.Now()-1)
	})
	for range 1000 {
		if got := h.get("/user/conversations/"+id, status(200)).json(); got["ended_at"] != nil {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.Fatal("the conversation does not end")
	return nil
}

// A chat in two languages: the record tells the language of each message, what was found out in the types that were asked for,
// and of each value that is null why; so does what the owner's endpoint is told.
func TestValuesOfAChat(t *testing.T) {
	eachDB(t, func(t *testing.T, db *store.DB) {
		h, model := talking(t, db, func(c *api.Config) {
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan error)
			go func() { done <- c.Chat.Run(ctx) }()
			t.Cleanup(func() { stop(); <-done })
		})
		item := func(name, kind, what string) map[string]any {
			return map[string]any{"name": name, "type": kind, "description": what}
		}
		_, uuid := h.active(
			map[string]any{"initial_message": "Hello, what can I do for you?", "conversation_ended_webhook_url": "https://example.com/ended",
				"post_call_schema": []any{item("people", "number", "How many people come"), item("outside", "bool", "Whether they sit outside"),
					item("day", "string", "The day as DD.MM.YYYY"), item("phone", "string", "Their phone number"),
					item("hours", "number", "How long they stay")}})
		model.Script(aitest.Behaviour{Text: "Sehr gern, für wie viele Personen?"},
			aitest.Behaviour{Text: "We are looking forward to your visit."},
			aitest.Behaviour{Text: "```json\n" + `{"people":["4"],"outside":"ja","day":"2027-03-03","phone":null,"hours":"a while"}` + "\n```"})
		id := h.converse(uuid)
		for _, text := range []string{"Ich möchte einen Tisch für morgen reservieren.", "We are four, and we would like to sit outside."} {
			h.post("/conversations/"+id+"/messages", map[string]any{"message": text}, anonymous, status(200))
		}
		got := h.ended(id)
		var languages []any
		for _, m := range got["history"].([]any) {
			languages = append(languages, m.(map[string]any)["language"])
		}
		if s := fmt.Sprint(languages); s != "[en de de en en <nil>]" {
			t.Errorf("the messages are in %s", s)
		}
		found, _ := json.Marshal([]any{got["extracted_variables"], got["extracted_variables_notes"]})
		const want = `[{"day":"03.03.2027","hours":null,"outside":true,"people":4,"phone":null},` +
			`{"hours":"The model answered \"a while\", which is no number.","phone":"The conversation doesn't say."}]`
		if string(found) != want {
			t.Errorf("found %s", found)
		}
		sent := h.get("/user/webhook-deliveries", status(200)).json()["data"].([]any)[0].(map[string]any)
		payload := h.get(fmt.Sprintf("/user/webhook-deliveries/%v", sent["id"]), status(200)).json()["payload"].(map[string]any)
		told, _ := json.Marshal([]any{payload["extracted_variables"], payload["extracted_variables_notes"]})
		if line := payload["transcript"].([]any)[1].(map[string]any); string(told) != want || line["language"] != "de" {
			t.Errorf("the endpoint is told %s, and of %v", told, line)
		}
	})
}

// pages says how many pages the database may have.
func (h *harness) pages(most int) {
	h.Helper()
	h.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.SQL().NewRaw(fmt.Sprintf("PRAGMA max_page_count = %d", most)).Exec(ctx)
		return err
	})
}

// fillDisk leaves no room on the disk for the smallest message.
func (h *harness) fillDisk() {
	h.Helper()
	_, uuid := h.active(nil)
	other := h.converse(uuid)
	h.pages(1) // no further one
	for _, size := range []int{2000, 200, 0} {
		for n := 0; ; n++ {
			err := h.db.Write(h.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.AddMessage(ctx, &parley.Message{ConversationID: other, Role: parley.RoleAssistant, Author: parley.AuthorHuman,
					Content: strings.Repeat("x", size)}, 0, 0)
			})
			if err != nil {
				break
			}
			if n == 10_000 {
				h.Fatal("there is always room")
			}
		}
	}
}

// The disk is full, or the database doesn't answer, for a while in the middle of a chat: a message meanwhile is answered 503, with when
// to send it again, and what was said can still be read. The same message goes through afterwards, and the conversation goes on as if
// nothing had been.
func TestChatAcrossAnOutage(t *testing.T) {
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			o := storetest.Options(t, engine, rules)
			var fail, mend func(*harness)
			want, readable := "The server can't reach its database. Try again in a few seconds.", false
			if engine == "sqlite" {
				fail, mend = (*harness).fillDisk, func(h *harness) { h.pages(1 << 30) }
				want, readable = "The server's disk is full: its operator has to free space. What was stored before can still be read.", true
			} else {
				p := storetest.NewProxy(t, o)
				o = p.Options
				o.Answer = 500 * time.Millisecond
				thaw := func() {}
				fail = func(*harness) { thaw = p.Freeze() }
				mend = func(*harness) { thaw() }
			}
			h, model := talking(t, storetest.Open(t, o), nil)
			_, uuid := h.active(nil)
			id := h.converse(uuid)
			say := func(text string, code int) *answer {
				return h.post("/conversations/"+id+"/messages", map[string]any{"message": text}, anonymous, status(code))
			}
			say("One", 200)
			asked := model.Count()
			fail(h)
			for range 2 {
				got := say("Two", 503)
				if after := got.header.Get("Retry-After"); after != "5" || got.json()["error"] != want {
					t.Errorf("during the outage: %q, after %q", got.body, after)
				}
			}
			if readable {
				h.get("/conversations/"+id, anonymous, status(200))
			}
			if n := model.Count(); n != asked {
				t.Errorf("the model was asked %d times during the outage", n-asked)
			}
			mend(h)
			for range 50 { // connections that broke are opened anew
				if _, err := h.db.User(t.Context(), h.user.ID); err == nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			say("Two", 200)
			say("Three", 200)
			h.get("/conversations/"+id, anonymous, status(200)).is(`{"status":true,"history":[{"role":"assistant","content":"Hello Ana."},` +
				`{"role":"user","content":"One"},{"role":"assistant","content":"You said: One (prompt: Serve Ana.)"},` +
				`{"role":"user","content":"Two"},{"role":"assistant","content":"You said: Two (prompt: Serve Ana.)"},` +
				`{"role":"user","content":"Three"},{"role":"assistant","content":"You said: Three (prompt: Serve Ana.)"}],"variables":{"who":"Ana"}}`)
		})
	}
}
