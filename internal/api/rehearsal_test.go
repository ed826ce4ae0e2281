package api_test

import (
	"fmt"
	"testing"
)

func TestRehearsals(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		desk := h.assistant(
			map[string]any{"system_prompt": "You talk with {{who}}.", "tool_ids": []int64{h.tool(map[string]any{"name": "book"})}})
		made := h.post("/user/rehearsals", map[string]any{"assistant_id": desk, "now": "2026-06-12T09:00:00+02:00", "words": "told",
			"variables": map[string]any{"who": "Ana"}, "tools": []any{map[string]any{"tool": "book", "reply": "booked", "after_ms": 10}}},
			status(201)).json()
		at := fmt.Sprint("/user/rehearsals/", made["data"].(map[string]any)["token"])
		if got := fmt.Sprint(h.get(at, status(200)).json()); got != "map[call_id:0]" {
			t.Errorf("before its call it is %s", got)
		}
		h.post(at+"/words", map[string]any{"words": "hello there"}, status(200))
		h.stranger().get(at, status(404))
		h.stranger().post(at+"/words", map[string]any{"words": "hello"}, status(404))
		h.stranger().delete(at, status(404))
		h.delete(at, status(200))
		h.get(at, status(404))
		h.stranger().post("/user/rehearsals", map[string]any{"assistant_id": desk}, status(404))
		// What the assistant has not is refused, with what it has.
		h.post("/user/rehearsals", map[string]any{"assistant_id": desk, "variables": map[string]any{"whom": "Ana"}},
			status(422)).says("variables", "The assistant uses no variable whom: it has who.")
		h.post("/user/rehearsals", map[string]any{"assistant_id": desk, "tools": []any{map[string]any{"tool": "bok", "reply": "x"}}},
			status(422)).says("tools", "The assistant has no tool bok to answer for: it has book.")
		h.post("/user/rehearsals", map[string]any{"assistant_id": desk, "draft": map[string]any{"system_prompt": "For {{whom}}."},
			"variables": map[string]any{"whom": "Ana", "who": "Ana"}}, status(201))
		for name, body := range map[string]map[string]any{
			"no assistant": {}, "no time": {"assistant_id": desk, "now": "nine"}, "words": {"assistant_id": desk, "words": "sung"},
			"tool": {"assistant_id": desk, "tools": []any{map[string]any{"reply": "x"}}},
		} {
			t.Run(name, func(t *testing.T) { h.in(t).post("/user/rehearsals", body, status(422)) })
		}
	})
}
