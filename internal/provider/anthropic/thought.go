package anthropic

import (
	"encoding/json"

	"parley/internal/ai"
)

// maxThoughts is how many bytes of thoughts are sent back with a call. The rest is left out.
const maxThoughts = 256 << 10

// thought is a block of the model's thinking before it calls a tool. It is sent back unchanged with the call's result.
// Its text may be left out, because the signature contains it.
type thought struct {
	Type      string  `json:"type"` // thinking, or redacted_thinking
	Thinking  *string `json:"thinking,omitempty"`
	Signature string  `json:"signature,omitempty"`
	Data      string  `json:"data,omitempty"`
}

// seal is what is sent back to Anthropic with the first of several simultaneous calls.
type seal struct {
	Vendor   string    `json:"vendor"`
	Thoughts []thought `json:"thoughts"`
}

// sealed returns the seal of a call that follows these thoughts, "" if there were none.
func sealed(thoughts []thought) string {
	if len(thoughts) == 0 {
		return ""
	}
	raw, err := json.Marshal(seal{Code, thoughts})
	if err != nil || len(raw) > maxThoughts {
		return ""
	}
	return string(raw)
}

// unseal returns the thoughts before a call. Another vendor's seal has none.
func unseal(c ai.ToolCall) (list []block) {
	var s seal
	if json.Unmarshal([]byte(c.Seal), &s) != nil || s.Vendor != Code {
		return nil
	}
	for _, t := range s.Thoughts {
		list = append(list, block{Type: t.Type, Thinking: t.Thinking, Signature: t.Signature, Data: t.Data})
	}
	return list
}

// think adds a piece of a thought.
func (r *reading) think(e event) {
	if e.Type == "content_block_start" {
		t := thought{Type: e.Block.Type, Signature: e.Block.Signature, Data: e.Block.Data}
		if t.Type == "thinking" {
			t.Thinking = &e.Block.Thinking
		}
		r.thoughts = append(r.thoughts, t)
		return
	}
	if n := len(r.thoughts); n > 0 && r.thoughts[n-1].Thinking != nil {
		t := &r.thoughts[n-1]
		if r.size += len(e.Delta.Thinking) + len(e.Delta.Signature); r.size <= maxThoughts {
			*t.Thinking += e.Delta.Thinking
			t.Signature += e.Delta.Signature
		}
	}
}
