package api_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"parley/internal/ai"
	"parley/internal/ai/aitest"
)

// A tool of kind client is run by the page of a chat that names it, and by nobody else.
func TestClientTool(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		tool := map[string]any{"kind": "client", "name": "show_product", "description": "Shows a product on the page.",
			"schema": []any{map[string]any{"name": "product", "type": "string", "description": "Its number"}}}
		h.post("/user/tools", with(tool, map[string]any{"mode": "async"}), status(422)).fails("mode")
		made := h.post("/user/tools", tool, status(201)).json()["data"].(map[string]any)
		if made["kind"] != "client" || made["endpoint"] != "" || made["method"] != "POST" {
			t.Errorf("made %v", made)
		}
		one := fmt.Sprintf("/user/tools/%v", made["id"])
		h.put(one, made, status(200))
		h.put(one, map[string]any{"kind": "http"}, status(422)).fails("endpoint")
		h.post(one+"/test", map[string]any{"arguments": map[string]any{}}, status(422))
		_, uuid := h.active(map[string]any{"tool_ids": []any{made["id"]}})
		id := h.converse(uuid)
		other := h.converse(uuid)
		asks := func() {
			model.Script(aitest.Behaviour{Calls: []ai.ToolCall{{ID: "1", Name: "show_product", Arguments: `{"product":"4711"}`}}},
				aitest.Behaviour{Text: "There."})
		}
		for _, c := range []struct {
			name, answer, told string
		}{
			{"a text", `{"result":"It is shown."}`, "It is shown."},
			{"an object", `{"result":{"shown":"<Q&A>"}}`, `{"shown":"<Q&A>"}`},
			{"nothing", `{}`, "The tool succeeded."},
			{"an error", `{"error":"no such product."}`, "The tool failed: no such product."},
		} {
			asks()
			reply := h.stream("POST", "/conversations/"+id+"/messages", `{"message":"Show it","client_tools":["show_product","other"]}`)
			got := read(t, reply, "tool_call")
			var call struct {
				ID, Name  string
				Arguments map[string]any
			}
			if err := json.Unmarshal([]byte(strings.TrimPrefix(got[len(got)-1], "tool_call ")), &call); err != nil ||
				call.Name != "show_product" || fmt.Sprint(call.Arguments) != "map[product:4711]" {
				t.Fatalf("%s: the page is asked %q: %v", c.name, got, err)
			}
			var answer map[string]any
			if err := json.Unmarshal([]byte(c.answer), &answer); err != nil {
				t.Fatal(err)
			}
			h.post("/conversations/"+other+"/tool-calls/"+call.ID, answer, anonymous, status(404))
			h.post("/conversations/"+id+"/tool-calls/"+call.ID, map[string]any{"result": strings.Repeat("x", 64<<10)}, anonymous, status(413))
			h.post("/conversations/"+id+"/tool-calls/x", answer, anonymous, status(404)).
				is(`{"status":false,"error":"Tool call not found"}`)
			h.post("/conversations/"+id+"/tool-calls/"+call.ID, answer, anonymous, status(200)).is(`{"status":true}`)
			h.post("/conversations/"+id+"/tool-calls/"+call.ID, answer, anonymous, status(404))
			got = read(t, reply, "done")
			if done := got[len(got)-1]; !strings.Contains(done, `"result":`+strconv.Quote(c.told)) {
				t.Errorf("%s: the model is told %s, want %q", c.name, done, c.told)
			}
		}
		// Who names no tool, or can't be asked, isn't: the model has no such tool.
		for name, say := range map[string]func() string{
			"a stream that names none": func() string {
				got := read(t, h.stream("POST", "/conversations/"+id+"/messages", `{"message":"Show it"}`), "done")
				return strings.Join(got, "\n")
			},
			"no stream": func() string {
				return encode(h.post("/conversations/"+id+"/messages", map[string]any{"message": "Show it",
					"client_tools": []any{"show_product"}}, anonymous, status(200)).json())
			},
		} {
			asks()
			got, q := say(), model.Requests()
			if tools := q[len(q)-1].Tools; len(tools) != 0 {
				t.Errorf("%s: the model is given %+v", name, tools)
			}
			if strings.Contains(got, "tool_call") || !strings.Contains(got, "There.") || strings.Contains(got, "succeeded") {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}
