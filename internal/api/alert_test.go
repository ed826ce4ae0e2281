package api_test

import (
	"fmt"
	"testing"

	"parley/internal/parley"
)

func TestAlerts(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		assistant := h.assistant(nil)
		rule := func(more map[string]any) map[string]any {
			all := map[string]any{"name": "Failed calls", "kind": "failure_rate", "threshold": 20}
			for k, v := range more {
				all[k] = v
			}
			return all
		}
		h.post("/user/alerts", rule(map[string]any{"threshold": 0}), status(422)).fails("threshold")
		h.post("/user/alerts", rule(map[string]any{"kind": "weather"}), status(422)).fails("kind")
		h.post("/user/alerts", rule(map[string]any{"assistant_id": 999999}), status(422)).fails("assistant_id")
		h.post("/user/alerts", rule(map[string]any{"hours_start": "25:00", "hours_end": "18:00"}), status(422)).fails("hours_start")
		h.post("/user/alerts", map[string]any{}, status(422)).fails("name", "kind", "threshold")
		made := h.post("/user/alerts", rule(map[string]any{"assistant_id": assistant, "hours_start": nil}), status(201)).
			json()["data"].(map[string]any)
		if fmt.Sprintln(made["window_minutes"], made["min_calls"], made["email"], made["value"], made["raised_at"]) != "60 5 true <nil> <nil>\n" {
			t.Errorf("%v", made)
		}
		path := fmt.Sprintf("/user/alerts/%v", made["id"])
		if list := h.get("/user/alerts", status(200)).list(); len(list) != 1 {
			t.Errorf("%v", list)
		}
		got := h.put(path, map[string]any{"threshold": 12.5, "channel": "inbound"}, status(200)).json()["data"].(map[string]any)
		if fmt.Sprintln(got["threshold"], got["channel"], got["name"]) != "12.5 inbound Failed calls\n" {
			t.Errorf("%v", got)
		}
		h.put(path, map[string]any{"email": false, "webhook": false}, status(422)).fails("email")

		h.post(path+"/test", nil, status(400)) // the account has no endpoint, the server sends no e-mail
		h.put("/user/webhook-endpoint", map[string]any{"url": "https://example.com/hooks"}, status(200))
		if got := h.post(path+"/test", nil, status(200)).json()["data"].(map[string]any); got["webhook"] != "https://example.com/hooks" ||
			got["email"] != nil {
			t.Errorf("%v", got)
		}
		deliveries := h.get("/user/webhook-deliveries?event=alert.raised", status(200)).json()["data"].([]any)
		if len(deliveries) != 1 {
			t.Fatalf("%v", deliveries)
		}
		sent := h.get(fmt.Sprintf("/user/webhook-deliveries/%v", deliveries[0].(map[string]any)["id"]), status(200)).
			json()["payload"].(map[string]any)
		if sent["test"] != true || fmt.Sprint(sent["threshold"]) != "12.5" {
			t.Errorf("%v", sent)
		}
		if got := h.get(path, status(200)).json(); got["raised_at"] != nil || got["last_raised_at"] != nil {
			t.Errorf("a test raises it: %v", got)
		}

		stranger := h.stranger()
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			stranger.do(method, path, map[string]any{}, status(404))
		}
		stranger.post(path+"/test", nil, status(404))
		if list := stranger.get("/user/alerts", status(200)).list(); len(list) != 0 {
			t.Errorf("a stranger sees %v", list)
		}
		h.delete(path, status(200))
		h.get(path, status(404))
		for range parley.MaxAlerts {
			h.post("/user/alerts", rule(nil), status(201))
		}
		h.post("/user/alerts", rule(nil), status(403))
	})
}
