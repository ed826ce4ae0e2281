package anthropic

import (
	"encoding/json"

	"parley/internal/ai"
)

// maxThoughts is how many bytes of thoughts go back with a call; what is more is left out.
const maxThoughts = 256 << 10

// thought is a block of what the model thinks before it calls a tool. It goes back as it came, with the call's result:
// its text may be left out, its signature holds it.
type thought struct {
	Type      string  `json:"type"` // thinking, or redacted_thinking
	Thinking  *string `json:"thinking,omitempty"`
	Signature string  `json:"signature,omitempty"`
	Data      string  `json:"data,omitempty"`
}

// seal is what goes back to Anthropic with the first of the calls that were made at once.
type seal struct {
	Vendor   string    `json:"vendor"`
	Thoughts []thought `json:"thoughts"`
}

// sealed is the seal of a call that follows these thoughts, "" where there were none.
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

// unseal are the thoughts before a call; another vendor's seal has none.
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

// think takes a piece of a thought.
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
