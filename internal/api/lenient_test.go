package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Values that clients of this API family send in other JSON types are read as what they stand for.
func TestWhatClientsSend(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		tool, uuid := h.tool(map[string]any{"timeout": "7",
			"schema": []any{map[string]any{"name": "order", "type": "string", "description": "The order",
				"required": "0"}}}), ""
		if got := h.get(fmt.Sprintf("/user/tools/%d", tool)).json(); got["timeout"] != json.Number("7") ||
			got["schema"].([]any)[0].(map[string]any)["required"] != false {
			t.Errorf("tool %v", got)
		}
		peer := h.get(fmt.Sprintf("/user/assistant/%d", h.caller(nil))).json()
		uuid = peer["uuid"].(string)
		body := with(h.assistantBody(), map[string]any{"record": 1, "wait_for_customer": "1",
			"enable_noise_cancellation": "0", "fillers": "1", "max_duration": "120",
			"tool_ids": []any{fmt.Sprint(tool)}, "voice_id": fmt.Sprint(h.voice("pipeline", 1)),
			"tools": []any{map[string]any{"type": "assistant_transfer", "assistant_id": strings.ToUpper(uuid)}},
			"variables": map[string]any{"n": 1.50, "big": json.Number("12345678901234567890"), "yes": true,
				"none": nil, "text": uuid}})
		got := h.post("/user/assistant", body, status(201)).json()["data"].(map[string]any)
		if vars := fmt.Sprint(got["variables"]); vars != fmt.Sprintf(
			"map[big:12345678901234567890 n:1.5 none: text:%s yes:true]", uuid) {
			t.Errorf("variables %s", vars)
		}
		if got["record"] != true || got["wait_for_customer"] != true || got["enable_noise_cancellation"] != false ||
			got["fillers"] != json.Number("1") ||
			got["max_duration"] != json.Number("120") || fmt.Sprint(got["tool_ids"]) != fmt.Sprintf("[%d]", tool) {
			t.Errorf("assistant %v", got)
		}
		if to := got["tools"].([]any)[0].(map[string]any)["assistant_id"]; to != peer["id"] {
			t.Errorf("hands over to %v, want %v", to, peer["id"])
		}
		at := fmt.Sprintf("/user/assistant/%d", id(got))
		if got := h.put(at, nil, raw(`{"variables":[]}`),
			status(200)).json()["data"].(map[string]any); fmt.Sprint(got["variables"]) != "map[]" {
			t.Errorf("[] leaves %v", got["variables"])
		}

		// A body or a filter may name an assistant by its UUID. Another user's assistant is unknown by its UUID as it
		// is by its number.
		other := h.stranger()
		for _, c := range []struct {
			path string
			body map[string]any
			good int // the status if the assistant is the user's
		}{
			{"/user/campaigns", map[string]any{"name": "Spring", "assistant_id": uuid}, 201},
			{"/user/assistants/enable-webhook", map[string]any{"assistant_id": uuid,
				"webhook_url": "https://example.com/x"}, 200},
			{"/user/assistants/disable-webhook", map[string]any{"assistant_id": uuid}, 200},
		} {
			h.post(c.path, c.body, status(c.good))
			if text := other.post(c.path, c.body, status(404)).json()["message"]; !strings.HasPrefix(
				fmt.Sprint(text), "Assistant not found") {
				t.Errorf("%s: a stranger is told %q", c.path, text)
			}
		}
		if hook := h.get(fmt.Sprintf("/user/assistant/%v", peer["id"])).json(); hook["is_webhook_active"] != false {
			t.Errorf("the webhook is %v", hook["is_webhook_active"])
		}
		campaign := h.get("/user/campaigns").list()[0]
		if campaign["assistant_id"] != peer["id"] {
			t.Errorf("campaign %v", campaign)
		}
		for _, path := range []string{"/user/calls?assistant_id=", "/user/conversations?assistant_id="} {
			h.get(path+uuid, status(200))
			other.get(path+uuid, status(404)).is(`{"message":"Assistant not found"}`)
		}
		h.post("/user/assistant", with(body, map[string]any{
			"tools": []any{map[string]any{"type": "assistant_transfer",
				"assistant_id": "00000000-0000-0000-0000-000000000000"}}})).
			fails("tools.0.assistant_id")
	})
}
