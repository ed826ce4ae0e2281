package openai

import (
	sdk "github.com/openai/openai-go/v3"

	"parley/internal/ai"
	"parley/internal/provider/rest"
)

// reading is the part of a reply that was read.
type reading struct {
	*rest.Reading
	open map[int64]*rest.Call // by the index of the deltas
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
	for _, d := range choice.Delta.ToolCalls {
		if err := r.piece(d); err != nil {
			return err
		}
	}
	return r.Say(choice.Delta.Content + choice.Delta.Refusal)
}

// piece adds a fragment of a tool call. Some servers give every call the same index: then ids tell them apart.
func (r *reading) piece(d sdk.ChatCompletionChunkChoiceDeltaToolCall) error {
	c := r.open[d.Index]
	if c == nil || d.ID != "" && c.ID != "" && d.ID != c.ID {
		var err error
		if c, err = r.Begin(); err != nil {
			return err
		}
		if r.open == nil {
			r.open = map[int64]*rest.Call{}
		}
		r.open[d.Index] = c
	}
	if d.ID != "" {
		c.ID = d.ID
	}
	if c.Name == "" {
		c.Name = d.Function.Name // whole in its first piece; some servers repeat it
	}
	return r.Write(c, d.Function.Arguments)
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
