package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// chat holds the conversation of a case by text. What is said and pressed over the sound of a reply has no place in it.
func (a *callee) chat(ctx context.Context, c *Case, token string) (*Timeline, *Record, error) {
	type spoken struct {
		Role, Content string
		FunctionCalls []ToolCall `json:"function_calls"`
	}
	vars := map[string]string{"parley_test": token}
	for k, v := range c.Variables {
		vars[k] = v
	}
	var begun struct {
		ID      string `json:"conversation_id"`
		History []spoken
	}
	if err := a.ask(ctx, "POST", "/conversations", map[string]any{"assistant_id": a.UUID, "type": "test",
		"variables": vars}, &begun); err != nil {
		return nil, nil, err
	}
	// what is left of it would tell the assistant's endpoint of its end
	defer a.ask(context.WithoutCancel(ctx), "DELETE", "/user/conversations/"+begun.ID, nil, nil)
	t, r := &Timeline{Steps: make([]Span, len(c.Steps)), By: "caller"}, &Record{}
	zero := time.Now()
	for _, m := range begun.History {
		t.Texts = append(t.Texts, Text{Step: -1, Text: m.Content})
		r.Turns = append(r.Turns, Turn{Speaker: "assistant", Text: m.Content})
	}
	for i, step := range c.Steps {
		t.Steps[i].From = time.Since(zero)
		if step.Kind == Wait {
			select {
			case <-time.After(step.Wait):
			case <-ctx.Done():
			}
		}
		if step.Kind == Say {
			var words []string
			for _, part := range step.Parts {
				words = append(words, part.Words)
			}
			said := strings.Join(words, " ")
			var got struct {
				Message       *string
				FunctionCalls []ToolCall `json:"function_calls"`
			}
			began := time.Since(zero)
			if err := a.ask(ctx, "POST", "/conversations/"+begun.ID+"/messages", map[string]any{"message": said},
				&got); err != nil {
				return nil, nil, err
			}
			now := time.Since(zero)
			t.Acts = append(t.Acts, Act{Step: i, Kind: Say, Text: step.Text, Span: Span{began, began}})
			r.Turns = append(r.Turns, Turn{Speaker: "customer", Text: said, StartedAtMS: began.Milliseconds()})
			for _, f := range got.FunctionCalls {
				f.AtMS, f.Step = now.Milliseconds(), i
				if len(f.Arguments) == 0 {
					f.Arguments = json.RawMessage("{}")
				}
				r.FunctionCalls = append(r.FunctionCalls, f)
			}
			if got.Message == nil {
				t.Missed = append(t.Missed, i)
				break
			}
			t.Texts = append(t.Texts, Text{Step: i, Text: *got.Message, Took: now - began})
			r.Turns = append(r.Turns, Turn{Speaker: "assistant", Text: *got.Message, StartedAtMS: now.Milliseconds()})
		}
		t.Steps[i].To = time.Since(zero)
	}
	t.Ended = time.Since(zero)
	var lines []string
	for _, turn := range r.Turns {
		who := "AI: "
		if turn.Speaker == "customer" {
			who = "Customer: "
		}
		lines = append(lines, who+turn.Text)
	}
	r.Transcript = strings.Join(lines, "\n")
	if ctx.Err() != nil {
		return t, r, fmt.Errorf("the chat took too long: %w", context.Cause(ctx))
	}
	return t, r, nil
}
