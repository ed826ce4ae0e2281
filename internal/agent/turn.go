package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/internal/ai"
	"parley/internal/parley"
)

// Run thinks until the model answers in words, or a tool Ends the turn. The Reply holds what was said and done so far
// even when there is an error: the cause of a ctx that ended, or an *ai.Error, which Sentence puts into words for the
// customer. When Run returns, nothing is left running.
func (t *Turn) Run(ctx context.Context) (reply Reply, err error) {
	var said strings.Builder
	defer func() { reply.Text = said.String() }()
	steps, budget := cmp.Or(t.Steps, DefaultSteps), cmp.Or(t.Budget, DefaultBudget)
	history := slices.Clip(t.History)
	reply.Calls, reply.Messages = slices.Clone(t.Done), Replay("", t.Done)
	for step, words := 1, false; ; step++ {
		words = words || step >= steps
		req := ai.Request{
			System:      t.System,
			NoCalls:     words && len(t.Tools) > 0,
			Temperature: t.Temperature,
			MaxTokens:   t.MaxTokens,
		}
		for _, tool := range t.Tools {
			req.Tools = append(req.Tools, tool.Tool)
		}
		got, err := t.askWithin(ctx, req, append(history, reply.Messages...), &budget, &reply, &said)
		if err != nil {
			return reply, fmt.Errorf("think, step %d: %w", step, err)
		}
		calls := got.Calls
		if words {
			calls = nil // asked for words, it called: there is nobody to tell the result to
		}
		if len(calls) == 0 && got.Text == "" && len(reply.Calls) > 0 && !words {
			words = true // silent after its tools: ask once more, for words
			continue
		}
		reply.add(got.Text, calls)
		if len(calls) == 0 {
			if len(got.Calls) > 0 && strings.TrimSpace(said.String()) == "" {
				return reply, fmt.Errorf("think, step %d: %w", step, errOnlyCalls)
			}
			return reply, empty(said.String(), reply.Calls, got.Finish)
		}
		records, ended, err := t.call(ctx, len(reply.Calls), calls)
		if err != nil {
			return reply, fmt.Errorf("think, step %d: keep the calls: %w", step, err)
		}
		for _, c := range records {
			reply.Calls = append(reply.Calls, c)
			reply.Messages = append(reply.Messages, ai.Message{Role: ai.ToolRole, CallID: c.ID, Text: c.Result})
		}
		if ctx.Err() != nil {
			return reply, fmt.Errorf("think, step %d: %w", step, context.Cause(ctx))
		}
		if ended {
			return reply, nil
		}
	}
}

// errOnlyCalls is why a turn is stopped whose model would call tools for ever.
var errOnlyCalls = &ai.Error{Part: ai.TheModel, Kind: ai.Malformed,
	Err: errors.New("it calls tools though it is asked for words"),
	Mend: "The model only calls tools: it was asked for words at last, and called another tool. Say in the prompt when to stop, " +
		"or choose another model."}

// askWithin makes a request with as much of the messages as fits a budget. If that is more than the model takes, it asks
// once more with less, which is then the budget.
func (t *Turn) askWithin(ctx context.Context, req ai.Request, messages []ai.Message, budget *int, reply *Reply,
	said *strings.Builder) (ai.Reply, error) {
	req.Messages = Trim(messages, *budget)
	got, err := t.ask(ctx, req, reply, said)
	less := shortened(err, req)
	if less == 0 || got.Text != "" {
		return got, err
	}
	again := Trim(messages, less)
	if size(again) >= size(req.Messages) {
		return got, err
	}
	slog.InfoContext(ctx, "asked again with less: the conversation is more than the model takes", "tokens", less, "error", err)
	*budget, req.Messages = less, again
	return t.ask(ctx, req, reply, said)
}

// shortened is the budget of messages for asking again, in tokens, after a request that was more than the model takes;
// 0 where that would not help.
func shortened(err error, req ai.Request) int {
	failed, ok := errors.AsType[*ai.Error](err)
	if !ok || failed.Kind != ai.TooLong {
		return 0
	}
	has, frame := size(req.Messages), Tokens(req.System)
	for _, t := range req.Tools {
		frame += Tokens(t.Name) + Tokens(t.Description) + Tokens(string(t.Schema))
	}
	less := has / 3
	switch asked, takes := failed.Asked, failed.Takes; {
	case asked > takes && takes > 0: // its tokens are not ours: they are compared by the whole
		less = has - (asked-takes+roomForReply)*(has+frame)/asked*9/8
	case takes > 0:
		less = min(less, (takes-roomForReply)*3/4-frame)
	}
	return max(less, min(has/8, minResult))
}

// roomForReply is how many tokens of what a model takes are left for its reply, when it is asked again.
const roomForReply = 512

// ask makes one request and passes its text on. If it fails, it keeps what was said.
func (t *Turn) ask(ctx context.Context, req ai.Request, reply *Reply, said *strings.Builder) (ai.Reply, error) {
	say := func(text string) {
		said.WriteString(text)
		if t.Sink != nil {
			t.Sink.Text(text)
		}
	}
	first := true
	got, err := t.Model.Generate(ctx, req, func(d ai.Delta) error {
		text := parley.CleanText(d.Text)
		if text == "" {
			return nil
		}
		if first && said.Len() > 0 {
			say("\n") // a step's text is a sentence of its own
		}
		first = false
		say(text)
		return nil
	})
	got.Text = parley.CleanText(got.Text)
	reply.Usage.Add(got.Usage)
	if err != nil {
		reply.add(got.Text, nil)
	}
	return got, ai.TheModel.Of(err)
}

// add appends what the assistant said and called to the messages.
func (r *Reply) add(text string, calls []ai.ToolCall) {
	if text != "" || len(calls) > 0 {
		r.Messages = append(r.Messages, ai.Message{Role: ai.Assistant, Text: text, Calls: calls})
	}
}

// empty is the error of a turn that ended without a word, nil if there was one. After a tool, silence may be intended:
// a call that hangs up.
func empty(said string, calls []ToolCall, f ai.Finish) error {
	switch {
	case strings.TrimSpace(said) != "" || len(calls) > 0:
		return nil
	case f == ai.Filtered:
		return fmt.Errorf("think: %w", &ai.Error{Kind: ai.Refused,
			Err: errors.New("the content filter left nothing of the reply")})
	}
	return fmt.Errorf("think: %w", &ai.Error{Kind: ai.Malformed, Err: errors.New("the reply is empty")})
}

// Sentence tells the customer in plain words that the model failed with err, and what to do.
func Sentence(err error) string {
	switch ai.KindOf(err) {
	case ai.RateLimited, ai.Overloaded:
		return "I'm sorry, I'm very busy right now. Please try again in a moment."
	case ai.TooLong:
		return "I'm sorry, that is more than I can take in at once. Please try a shorter message or start a new conversation."
	case ai.Refused:
		return "I'm sorry, I can't answer that. Could you put it differently?"
	}
	return "I'm sorry, I can't answer right now. Please try again in a moment."
}
