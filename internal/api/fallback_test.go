package api_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// An assistant's fallback lists keep their order, and their entries are validated like the fields that they stand in
// for.
func TestAssistantFallbacks(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		at := fmt.Sprintf("/user/assistant/%d", h.assistant(nil))
		ids := func(path string) (list []any) {
			for _, o := range h.get(path, status(200)).list() {
				list = append(list, o["id"])
			}
			return list
		}
		models, english := ids("/user/assistants/models?type=llm"), ids("/user/assistants/voices?mode=pipeline&language_id=1")
		recognizers := ids("/user/assistants/transcriber-providers?language_id=1")
		hears := ids("/user/assistants/models?type=multimodal")
		const llm, heard, voices, listen = "fallback_llm_model_ids", "fallback_multimodal_model_ids", "fallback_voice_ids",
			"fallback_transcriber_provider_ids"
		text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
		for _, name := range []string{llm, heard, voices, listen} {
			if got := text(h.get(at).json()[name]); got != "[]" {
				t.Errorf("%s is %s at first", name, got)
			}
			h.put(at, map[string]any{name: []any{99999999}}, status(422)).fails(name + ".0")
			h.put(at, map[string]any{name: "x"}, status(422)).fails(name)
			h.put(at, map[string]any{name: []any{1, 2, 3, 4}}, status(422)).fails(name)
		}
		lists := map[string]any{llm: []any{models[1], models[0]}, heard: []any{hears[0]},
			voices: []any{english[2], english[1]}, listen: []any{3, recognizers[0]}}
		h.put(at, lists, status(200))
		whole := h.get(at).json()
		for name, want := range lists {
			if got := text(whole[name]); got != text(want) {
				t.Errorf("%s is %s, want %s", name, got, text(want))
			}
		}
		if got := h.put(at, whole, status(200)).json()["data"].(map[string]any); got["updated_at"] != whole["updated_at"] {
			t.Error("what GET returned changes something")
		}
		h.put(at, map[string]any{llm: []any{models[0], models[0]}}, status(422)).fails(llm + ".1")
		h.put(at, map[string]any{voices: []any{h.voice("pipeline", 4)}}, status(422)).says(voices+".0",
			"The "+voices+".0 field must name a voice that speaks the assistant's language.")
		h.put(at, map[string]any{voices: []any{h.voice("multimodal", 1)}}, status(422)).says(voices+".0",
			"The "+voices+".0 field must name a voice that serves pipeline mode.")
		h.put(at, map[string]any{listen: []any{3}, "language_id": 4, "voice_id": h.voice("pipeline", 4)},
			status(422)).fails(listen + ".0") // PocketSphinx understands only English

		// for German the English voices and PocketSphinx are no use
		h.put(at, map[string]any{"transcriber_provider_id": 3}, status(200))
		got := h.put(at, map[string]any{"language_id": 4, "voice_id": h.voice("pipeline", 4)},
			status(200)).json()["data"].(map[string]any)
		if text(got[voices]) != "[]" || text(got[listen]) != text([]any{recognizers[0]}) || got["transcriber_provider_id"] != nil ||
			text(got[llm]) != text(lists[llm]) {
			t.Errorf("in German: %v %v %v", got[voices], got[listen], got["transcriber_provider_id"])
		}
		got = h.put(at, map[string]any{"mode": "multimodal", "voice_id": h.voice("multimodal", 4),
			"multimodal_model_id": hears[0]}, status(200)).json()["data"].(map[string]any)
		if text(got[listen]) != "[]" {
			t.Errorf("in multimodal mode: %v", got[listen])
		}
		h.put(at, map[string]any{listen: []any{recognizers[0]}}, status(422)).fails(listen)
		h.put(at, map[string]any{heard: []any{h.model("dualplex")}}, status(422)).says(heard+".0",
			"The "+heard+".0 field must name a multimodal model.")
		got = h.put(at, map[string]any{llm: nil}, status(200)).json()["data"].(map[string]any)
		if text(got[llm]) != "[]" {
			t.Errorf("cleared: %v", got[llm])
		}
	})
}
