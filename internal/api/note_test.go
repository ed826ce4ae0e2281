package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/internal/ai/aitest"
)

// Notes are people's: neither the model nor the visitor gets them, and they go with the conversation or its customer.
func TestNotes(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		aid, uuid := h.active(nil)
		id := h.converse(uuid)
		at := "/user/conversations/" + id + "/notes"
		made := h.post(at, map[string]any{"content": " Is angry. "}, status(201)).json()["data"].(map[string]any)
		if made["content"] != "Is angry." || made["author"] == "" || made["created_at"] == nil {
			t.Errorf("%v", made)
		}
		h.post(at, map[string]any{"content": strings.Repeat("x", 2001)}, status(422))
		h.post(at, map[string]any{}, status(422))
		if list := h.get(at, status(200)).list(); len(list) != 1 {
			t.Errorf("%v", list)
		}
		h.post("/conversations/"+id+"/messages", map[string]any{"message": "Hello?"}, anonymous, status(200))
		for _, r := range model.Requests() {
			for _, m := range r.Messages {
				if strings.Contains(m.Text, "angry") {
					t.Errorf("the model is told %q", m.Text)
				}
			}
		}
		for _, path := range []string{"/conversations/" + id, "/user/conversations/" + id} {
			if got := h.get(path, status(200)); strings.Contains(fmt.Sprint(got.json()), "angry") {
				t.Errorf("%s shows the note", path)
			}
		}
		one := at + "/" + fmt.Sprint(made["id"])
		stranger := h.stranger()
		stranger.get(at, status(404))
		stranger.post(at, map[string]any{"content": "x"}, status(404))
		stranger.delete(one, status(404))
		h.delete(at+"/0", status(404))
		h.delete(one, status(200))
		h.delete(one, status(404))

		h.post("/user/ai/generate-reply", map[string]any{"assistant_id": aid, "customer_identifier": "+4930901820", "message": "Hi"}, status(200))
		rows := h.get("/user/conversations?customer_phone=%2B4930901820", status(200)).json()["data"].([]any)
		theirs := "/user/conversations/" + rows[0].(map[string]any)["id"].(string) + "/notes"
		h.post(theirs, map[string]any{"content": "Ana"}, status(201))
		h.delete("/user/customers/+4930901820", status(200))
		h.get(theirs, status(404))
		left, err := h.db.Notes(t.Context(), rows[0].(map[string]any)["id"].(string))
		if err != nil || len(left) != 0 {
			t.Errorf("%v is left of an erased customer %v", left, err)
		}
	})
}

func TestCannedAnswers(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, _ *aitest.Server) {
		const at = "/user/canned-answers"
		made := h.post(at, map[string]any{"name": "Hours", "content": "From seven."}, status(201)).json()["data"].(map[string]any)
		if made["name"] != "hours" || made["content"] != "From seven." {
			t.Errorf("%v", made)
		}
		h.post(at, map[string]any{"name": "hours", "content": "x"}, status(422))
		h.post(at, map[string]any{"name": "a b", "content": "x"}, status(422))
		h.post(at, map[string]any{"name": "a/b", "content": "x"}, status(422))
		h.post(at, map[string]any{"name": "a"}, status(422))
		h.post(at, map[string]any{"name": "address", "content": "Main Street 1."}, status(201))
		list := h.get(at, status(200)).list()
		if len(list) != 2 || list[0]["name"] != "address" {
			t.Errorf("%v", list)
		}
		one := at + "/" + made["id"].(json.Number).String()
		h.put(one, map[string]any{"name": "address", "content": "x"}, status(422))
		if got := h.put(one, map[string]any{"name": "open", "content": "From eight."}, status(200)).
			json()["data"].(map[string]any); got["name"] != "open" {
			t.Errorf("%v", got)
		}
		stranger := h.stranger()
		stranger.get(one, status(404))
		stranger.put(one, map[string]any{"name": "x", "content": "x"}, status(404))
		stranger.delete(one, status(404))
		if got := stranger.get(at, status(200)).list(); len(got) != 0 {
			t.Errorf("a stranger reads %v", got)
		}
		stranger.post(at, map[string]any{"name": "open", "content": "Mine."}, status(201)) // a name is the account's own
		h.delete(one, status(200))
		h.get(one, status(404))
	})
}
