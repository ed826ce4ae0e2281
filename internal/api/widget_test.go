package api_test

import (
	"fmt"
	"testing"

	"parley/internal/ai/aitest"
)

func TestWidget(t *testing.T) {
	eachTalking(t, func(t *testing.T, h *harness, model *aitest.Server) {
		aid, uuid := h.active(map[string]any{"initial_message": "Hello {{who}} from {{company}}.",
			"variables": map[string]any{"company": "Acme"},
			"widget_settings": map[string]any{"theme": "dark", "title": "Bread",
				"allowed_origins": []string{"https://shop.example.com"},
				"pre_chat_fields": []any{map[string]any{"variable": "who", "label": "Name"}}}})
		path := "/widgets/" + uuid
		got := h.get(path, anonymous, header("Origin", "https://shop.example.com"), status(200))
		w := got.json()
		settings := w["widget_settings"].(map[string]any)
		if w["status"] != true || w["assistant_id"] != uuid || w["name"] != "Desk" || w["language"] != "en" ||
			w["direction"] != "ltr" || w["initial_message"] != "Hello  from Acme." ||
			settings["theme"] != "dark" || settings["title"] != "Bread" || settings["color"] != "#2563eb" ||
			len(settings["pre_chat_fields"].([]any)) != 1 {
			t.Errorf("widget %v", w)
		}
		if _, told := settings["allowed_origins"]; told {
			t.Error("it tells where else it stands")
		}
		if got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("headers %v", got.header)
		}
		if texts := w["texts"].(map[string]any); texts["send"] != "Send" {
			t.Errorf("texts %v", texts)
		}
		h.get(path, anonymous, header("Origin", "https://evil.example"), status(403))
		h.get(path, anonymous, status(200)) // as one of our own pages asks
		h.get(path, header("Origin", "https://evil.example"), status(200))
		for _, unknown := range []string{"/widgets/no-uuid", "/widgets/00000000-0000-0000-0000-000000000000",
			"/widgets/1"} {
			h.get(unknown, anonymous, status(404)).is(`{"status":false,"error":"Assistant not found"}`)
		}
		h.put(fmt.Sprintf("/user/assistant/%d", aid), map[string]any{"status": "inactive"}, status(200))
		h.get(path, anonymous, status(404)).is(`{"status":false,"error":"Assistant not found"}`)
	})
}
