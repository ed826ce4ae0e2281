package anthropictest

import (
	"parley/internal/ai"
	"parley/internal/provider/rest/resttest"
)

type usage struct{ In, Stored, Cached int }

// signature holds what the model thought.
const signature = "c2lnbmF0dXJl"

// argumentPiece is how many runes of a call's arguments one event carries.
const argumentPiece = 5

// answer is a reply in the events of the Messages API: thoughts, whose text is left out, then text, then calls, each in
// a block of its own; a ping between.
func answer(model string, said ai.Reply, u usage, thinks bool) resttest.Answer {
	event := func(name string, data map[string]any) resttest.Event {
		data["type"] = name
		return resttest.Event{Name: name, Data: data}
	}
	figures := map[string]any{"input_tokens": u.In, "cache_creation_input_tokens": u.Stored,
		"cache_read_input_tokens": u.Cached, "output_tokens": 1, "service_tier": "standard"}
	out := resttest.Answer{Newline: "\n",
		Head: []resttest.Event{
			event("message_start", map[string]any{"message": map[string]any{"id": "msg_test", "type": "message",
				"role": "assistant", "model": model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
				"usage": figures}}),
			event("ping", map[string]any{}),
		},
		Failure: resttest.Event{Name: "error", Data: errorOf("overloaded_error", "Overloaded")},
	}
	index := 0
	block := func(content map[string]any, deltas ...map[string]any) (list []resttest.Event) {
		list = append(list, event("content_block_start", map[string]any{"index": index, "content_block": content}))
		for _, d := range deltas {
			list = append(list, event("content_block_delta", map[string]any{"index": index, "delta": d}))
		}
		list = append(list, event("content_block_stop", map[string]any{"index": index}))
		index++
		return list
	}
	if thinks {
		out.Head = append(out.Head, block(map[string]any{"type": "thinking", "thinking": "", "signature": ""},
			map[string]any{"type": "thinking_delta", "thinking": ""},
			map[string]any{"type": "signature_delta", "signature": signature[:4]},
			map[string]any{"type": "signature_delta", "signature": signature[4:]})...)
	}
	if said.Text != "" {
		var deltas []map[string]any
		for _, w := range resttest.Words(said.Text) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": w})
		}
		list := block(map[string]any{"type": "text", "text": ""}, deltas...)
		out.Head, out.Pieces = append(out.Head, list[0]), append(out.Pieces, list[1:]...)
	}
	for _, c := range said.Calls {
		deltas := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
		for rest := []rune(c.Arguments); len(rest) > 0 && c.Arguments != "{}"; {
			n := min(argumentPiece, len(rest))
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": string(rest[:n])})
			rest = rest[n:]
		}
		out.Pieces = append(out.Pieces, event("ping", map[string]any{}))
		out.Pieces = append(out.Pieces, block(map[string]any{"type": "tool_use", "id": "toolu_" + c.ID, "name": c.Name,
			"input": map[string]any{}}, deltas...)...)
	}
	out.Tail = []resttest.Event{
		event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason(said.Finish),
			"stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1 + resttest.Tokens(said.Text)}}),
		event("message_stop", map[string]any{}),
	}
	return out
}

func reason(f ai.Finish) string {
	switch f {
	case ai.Length:
		return "max_tokens"
	case ai.ToolCalls:
		return "tool_use"
	case ai.Filtered:
		return "refusal"
	}
	return "end_turn"
}
