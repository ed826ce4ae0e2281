package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// reading is the part of a reply that was read.
type reading struct {
	*rest.Reading
	prose *rest.Prose
	open  map[int64]*openCall // by the index of the deltas
}

// openCall is a call of which more may come.
type openCall struct {
	*rest.Call
	again string // the name came once more behind a whole call: arguments that follow are another call's
}

func newReading(r *rest.Reading, tools []ai.Tool, names rest.Names) *reading {
	in := &reading{Reading: r, open: map[int64]*openCall{}}
	in.prose = rest.NewProse(tools, names, r.Say, func(name, arguments string) error {
		c, err := r.Begin()
		if err != nil {
			return err
		}
		c.Name = names.Wire(name)
		return r.Write(c, arguments)
	})
	return in
}

// end is called when the stream has ended.
func (r *reading) end(names rest.Names) error {
	if err := r.prose.End(); err != nil {
		return err
	}
	if r.Finish == "" && r.Whole() { // many servers say no reason
		r.Finish = ai.Stop
	}
	return r.End(names)
}

func (r *reading) take(chunk sdk.ChatCompletionChunk) error {
	if u := chunk.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		r.Usage = ai.Usage{In: int(u.PromptTokens), Out: int(u.CompletionTokens),
			Cached: int(u.PromptTokensDetails.CachedTokens)}
	}
	if len(chunk.Choices) == 0 {
		return nil
	}
	choice := chunk.Choices[0]
	if choice.FinishReason != "" {
		r.Finish = finish(choice.FinishReason)
	}
	delta := choice.Delta
	if message, ok := choice.JSON.ExtraFields["message"]; ok && delta.Content == "" && len(delta.ToolCalls) == 0 {
		var whole sdk.ChatCompletionChunkChoiceDelta
		if raw := message.Raw(); raw != "null" && json.Unmarshal([]byte(raw), &whole) == nil {
			delta = whole
			for i := range delta.ToolCalls {
				delta.ToolCalls[i].Index = int64(i) // they have none in a whole message
			}
		}
	}
	for _, d := range delta.ToolCalls {
		if err := r.piece(d); err != nil {
			return err
		}
	}
	text := delta.Content
	if raw := delta.JSON.Content.Raw(); strings.HasPrefix(raw, "[") {
		text = parts(raw)
	}
	return r.prose.Write(text + delta.Refusal)
}

// parts is the text of a content that is a list.
func parts(raw string) string {
	var list []json.RawMessage
	if json.Unmarshal([]byte(raw), &list) != nil {
		return ""
	}
	var b strings.Builder
	for _, item := range list {
		var text string
		var part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		switch {
		case json.Unmarshal(item, &text) == nil:
			b.WriteString(text)
		case json.Unmarshal(item, &part) == nil && !strings.Contains(part.Type, "think") && !strings.Contains(part.Type, "reason"):
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// piece adds a fragment of a tool call. Some servers give every call the same index, and some give none an id: then ids,
// names and whole arguments tell them apart.
func (r *reading) piece(d sdk.ChatCompletionChunkChoiceDeltaToolCall) error {
	c := r.open[d.Index]
	name, args := d.Function.Name, d.Function.Arguments
	another := c == nil || d.ID != "" && c.ID != "" && d.ID != c.ID
	if !another && name != "" && c.Name != "" && (d.ID == "" || d.ID != c.ID) {
		switch {
		case name != c.Name, c.Complete() && args != "":
			another = true
		case c.Complete():
			c.again = name
		}
	}
	if !another && c.again != "" && args != "" && name == "" {
		another, name = true, c.again
	}
	if another {
		begun, err := r.Begin()
		if err != nil {
			return err
		}
		c = &openCall{Call: begun}
		r.open[d.Index] = c
	}
	if d.ID != "" {
		c.ID = d.ID
	}
	if c.Name == "" {
		c.Name = strings.TrimPrefix(name, "functions.") // whole in its first piece; some servers repeat it
	}
	return r.Write(c.Call, args)
}

func finish(reason string) ai.Finish {
	switch reason {
	case "length":
		return ai.Length
	case "tool_calls", "function_call":
		return ai.ToolCalls
	case "content_filter":
		return ai.Filtered
	}
	return ai.Stop
}
