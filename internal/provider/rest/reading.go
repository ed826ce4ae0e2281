package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/internal/ai"
)

const (
	maxText      = 1 << 20 // bytes of a reply's text
	maxArguments = 1 << 20 // bytes of all its calls' arguments
	maxCalls     = 128
	minText      = 60 // bytes of a reply's text that come at least in each DefaultStall, once it has begun
)

// Reading is a reply as far as it has been read.
type Reading struct {
	Finish ai.Finish // "" as long as the reply has not ended
	Usage  ai.Usage

	yield func(ai.Delta) error
	seen  bool // something was yielded
	pace  ai.Pace

	text  strings.Builder
	calls []*Call
	size  int // of all arguments
	whole []ai.ToolCall
}

// Call is a tool call that has partly arrived.
type Call struct {
	ID, Name, Seal string

	args strings.Builder
}

// NewReading begins a reply.
func NewReading(yield func(ai.Delta) error) *Reading {
	return &Reading{yield: yield, pace: ai.Pace{Least: minText, What: "bytes of text", Window: DefaultStall}}
}

// Seen reports whether anything has been passed on.
func (r *Reading) Seen() bool { return r.seen }

// Say takes a piece of the text.
func (r *Reading) Say(text string) error {
	if text == "" {
		return nil
	}
	if r.text.Len()+len(text) > maxText {
		return &ai.Error{Kind: ai.Malformed, Err: ErrEndless}
	}
	if err := r.pace.Came(len(text)); err != nil {
		return err
	}
	defer r.pace.Wait()
	r.text.WriteString(text)
	return r.give(ai.Delta{Text: text})
}

func (r *Reading) give(d ai.Delta) error {
	r.seen = true
	return Refuse(r.yield(d))
}

// Begin starts another call.
func (r *Reading) Begin() (*Call, error) {
	if len(r.calls) == maxCalls {
		return nil, Malformed("more than %d tool calls", maxCalls)
	}
	c := &Call{}
	r.calls = append(r.calls, c)
	return c, nil
}

// Complete reports whether the arguments that have arrived are whole.
func (c *Call) Complete() bool { return c.args.Len() > 0 && json.Valid([]byte(c.args.String())) }

// Whole reports whether the reply has something, and nothing of it is a half: then a stream that ended without a reason
// has ended it.
func (r *Reading) Whole() bool {
	for _, c := range r.calls {
		if c.args.Len() > 0 && !c.Complete() {
			return false
		}
	}
	return r.text.Len() > 0 || len(r.calls) > 0
}

// Write takes a piece of a call's arguments.
func (r *Reading) Write(c *Call, arguments string) error {
	if r.size += len(arguments); r.size > maxArguments {
		return &ai.Error{Kind: ai.Malformed, Err: ErrEndless}
	}
	c.args.WriteString(arguments)
	return nil
}

// End is called when the stream ended without an error: the calls are now complete. If a vendor leaves out the
// arguments, they are an empty object.
func (r *Reading) End(names Names) error {
	if r.Finish == "" {
		kind := ai.Malformed
		if r.seen {
			kind = ai.Interrupted
		}
		return &ai.Error{Kind: kind, Err: errors.New("the stream ended before the reply did")}
	}
	ids := map[string]bool{}
	for i, c := range r.calls {
		if c.ID == "" || ids[c.ID] {
			c.ID = fmt.Sprintf("call_%d", i)
		}
		ids[c.ID] = true
		if c.args.Len() == 0 {
			c.args.WriteString("{}")
		}
		made := ai.ToolCall{ID: c.ID, Name: names.Own(c.Name), Arguments: c.args.String(), Seal: c.Seal}
		r.whole = append(r.whole, made)
		if err := r.give(ai.Delta{Call: &made}); err != nil {
			return err
		}
	}
	if len(r.whole) > 0 && r.Finish == ai.Stop {
		r.Finish = ai.ToolCalls // some servers say stop
	}
	return nil
}

// Reply is what has arrived.
func (r *Reading) Reply() ai.Reply {
	return ai.Reply{Text: r.text.String(), Calls: r.whole, Finish: r.Finish, Usage: r.Usage}
}

// Generate makes a reply, as ai.Model's Generate does. attempt makes the request once and reads the answer; a request
// that failed is repeated as long as nothing of the reply has been seen. learn reports whether the failure teaches how
// to ask better; the request is then repeated at once.
func Generate(ctx context.Context, model string, yield func(ai.Delta) error, attempt func(*Reading) error,
	learn func(error) bool) (ai.Reply, error) {
	var r *Reading
	err := Again(ctx, "model", model, func() bool { return r.seen }, func() error {
		for {
			r = NewReading(yield)
			err := attempt(r)
			if stop, ok := errors.AsType[Refusal](err); ok {
				return stop.error
			}
			if err == nil || r.seen || ctx.Err() != nil || !learn(err) {
				return err
			}
		}
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r.Reply(), err
}
