package openai

import (
	"errors"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"parley/internal/ai"
)

const (
	maxText      = 1 << 20 // bytes of a reply's text
	maxArguments = 1 << 20 // bytes of all its calls' arguments
	maxCalls     = 128
)

// reading is a reply as far as it was read.
type reading struct {
	yield   func(ai.Delta) error
	seen    bool  // something was yielded
	refusal error // yield's

	text   strings.Builder
	calls  []*partial
	open   map[int64]*partial // by the index of the deltas
	size   int                // of all arguments
	finish ai.Finish
	usage  ai.Usage
	whole  []ai.ToolCall
}

// partial is a call of which pieces have come.
type partial struct {
	id, name string
	args     strings.Builder
}

func (r *reading) take(chunk sdk.ChatCompletionChunk) error {
	if u := chunk.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		r.usage = ai.Usage{In: int(u.PromptTokens), Out: int(u.CompletionTokens)}
	}
	if len(chunk.Choices) == 0 {
		return nil
	}
	choice := chunk.Choices[0]
	if choice.FinishReason != "" {
		r.finish = finish(choice.FinishReason)
	}
	for _, d := range choice.Delta.ToolCalls {
		if err := r.piece(d); err != nil {
			return err
		}
	}
	text := choice.Delta.Content + choice.Delta.Refusal
	if text == "" {
		return nil
	}
	if r.text.Len()+len(text) > maxText {
		return &ai.Error{Kind: ai.Malformed, Err: errEndless}
	}
	r.text.WriteString(text)
	return r.give(ai.Delta{Text: text})
}

func (r *reading) give(d ai.Delta) error {
	r.seen = true
	r.refusal = r.yield(d)
	return r.refusal
}

// piece adds a piece of a call. Servers that give every call the same index tell them apart by their ids.
func (r *reading) piece(d sdk.ChatCompletionChunkChoiceDeltaToolCall) error {
	p := r.open[d.Index]
	if p == nil || d.ID != "" && p.id != "" && d.ID != p.id {
		if len(r.calls) == maxCalls {
			return &ai.Error{Kind: ai.Malformed, Err: fmt.Errorf("more than %d tool calls", maxCalls)}
		}
		p = &partial{}
		if r.open == nil {
			r.open = map[int64]*partial{}
		}
		r.open[d.Index] = p
		r.calls = append(r.calls, p)
	}
	if d.ID != "" {
		p.id = d.ID
	}
	if p.name == "" {
		p.name = d.Function.Name // whole in its first piece; some servers repeat it
	}
	if r.size += len(d.Function.Arguments); r.size > maxArguments {
		return &ai.Error{Kind: ai.Malformed, Err: errEndless}
	}
	p.args.WriteString(d.Function.Arguments)
	return nil
}

// end is called when the stream ended without an error: the calls are complete now.
func (r *reading) end(names names) error {
	if r.finish == "" {
		kind := ai.Malformed
		if r.seen {
			kind = ai.Interrupted
		}
		return &ai.Error{Kind: kind, Err: errors.New("the stream ended before the reply did")}
	}
	ids := map[string]bool{}
	for i, p := range r.calls {
		if p.id == "" || ids[p.id] {
			p.id = fmt.Sprintf("call_%d", i)
		}
		ids[p.id] = true
		c := ai.ToolCall{ID: p.id, Name: names.own(p.name), Arguments: p.args.String()}
		r.whole = append(r.whole, c)
		if err := r.give(ai.Delta{Call: &c}); err != nil {
			return err
		}
	}
	if len(r.whole) > 0 && r.finish == ai.Stop {
		r.finish = ai.ToolCalls // some servers say stop
	}
	return nil
}

func (r *reading) reply() ai.Reply {
	return ai.Reply{Text: r.text.String(), Calls: r.whole, Finish: r.finish, Usage: r.usage}
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
