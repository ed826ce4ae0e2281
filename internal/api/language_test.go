package api_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Further languages of an assistant are kept, judged, and adapted when its own becomes one of them.
func TestAssistantLanguages(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		at, name := fmt.Sprintf("/user/assistant/%d", h.assistant(nil)), "secondary_language_ids"
		is := func(got any, want string) {
			t.Helper()
			if b, _ := json.Marshal(got); string(b) != want {
				t.Errorf("%s, not %s", b, want)
			}
		}
		is(h.get(at).json()[name], "[]")
		h.put(at, map[string]any{name: []any{9999}}, status(422)).says(name+".0", "The selected "+name+".0 is invalid.")
		h.put(at, map[string]any{name: []any{1}}, status(422)).says(name+".0", "The "+name+".0 field must be another language than language_id.")
		h.put(at, map[string]any{name: []any{2, 2}}, status(422)).fails(name + ".1")
		h.put(at, map[string]any{name: []any{2, 3, 4, 5}}, status(422)).fails(name)
		h.put(at, map[string]any{name: []any{4, 2}}, status(200))
		is(h.get(at).json()[name], "[4,2]")
		changed := h.put(at, map[string]any{"language_id": 4, "voice_id": h.voice("pipeline", 4)}, status(200)).json()
		is(changed["data"].(map[string]any)[name], "[2]")
		is(h.put(at, map[string]any{name: nil}, status(200)).json()["data"].(map[string]any)[name], "[]")
	})
}
