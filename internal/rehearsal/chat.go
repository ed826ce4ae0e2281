package rehearsal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"parley/internal/ai"
)

// testVariable carries the token of a test.
const testVariable = "parley_test"

// texting is the conversation of a case by text.
type texting struct {
	*Case
	*callee
	mind mind
	id   string
	zero time.Time
	t    Timeline
	r    Record
}

// chat holds the conversation of a case by text. What is said and pressed over the sound of a reply has no place in it.
func (a *callee) chat(ctx context.Context, c *Case, token string, m mind) (*Timeline, *Record, error) {
	vars := map[string]string{testVariable: token}
	maps.Copy(vars, c.Variables)
	var begun struct {
		ID      string `json:"conversation_id"`
		History []struct{ Content string }
	}
	if err := a.ask(ctx, "POST", "/conversations", map[string]any{"assistant_id": a.UUID, "type": "test",
		"variables": vars}, &begun); err != nil {
		return nil, nil, err
	}
	// what is left of it would tell the assistant's endpoint of its end
	defer a.ask(context.WithoutCancel(ctx), "DELETE", "/user/conversations/"+begun.ID, nil, nil)
	x := &texting{Case: c, callee: a, mind: m, id: begun.ID, zero: time.Now()}
	x.t = Timeline{Steps: make([]Span, len(c.Steps)), By: "caller"}
	for _, m := range begun.History {
		x.answered(-1, m.Content, 0)
	}
	err := x.script(ctx)
	if err == nil && len(x.t.Missed) == 0 && c.Caller.Persona != "" {
		err = x.improvise(ctx)
	}
	x.t.Ended = x.now()
	var lines []string
	for _, turn := range x.r.Turns {
		who := "AI: "
		if turn.Speaker == "customer" {
			who = "Customer: "
		}
		lines = append(lines, who+turn.Text)
	}
	x.r.Transcript = strings.Join(lines, "\n")
	if ctx.Err() != nil {
		return &x.t, &x.r, fmt.Errorf("the chat took too long: %w", context.Cause(ctx))
	}
	return &x.t, &x.r, err
}

func (x *texting) now() time.Duration { return time.Since(x.zero) }

// script follows the steps.
func (x *texting) script(ctx context.Context) error {
	for i, step := range x.Steps {
		x.t.Steps[i].From = x.now()
		switch step.Kind {
		case Wait:
			select {
			case <-time.After(step.Wait):
			case <-ctx.Done():
			}
		case Say:
			var words []string
			for _, part := range step.Parts {
				words = append(words, part.Words)
			}
			if ok, err := x.write(ctx, i, strings.Join(words, " ")); !ok || err != nil {
				return err
			}
		}
		x.t.Steps[i].To = x.now()
	}
	return nil
}

// write sends a message of a step, and says whether it was answered.
func (x *texting) write(ctx context.Context, step int, text string) (ok bool, err error) {
	var got struct {
		Message       *string
		FunctionCalls []ToolCall `json:"function_calls"`
	}
	began := x.now()
	if err := x.ask(ctx, "POST", "/conversations/"+x.id+"/messages", map[string]any{"message": text}, &got); err != nil {
		return false, err
	}
	x.t.Acts = append(x.t.Acts, Act{Step: step, Kind: Say, Text: x.Steps[step].Text, Span: Span{began, began}})
	x.r.Turns = append(x.r.Turns, Turn{Speaker: "customer", Text: text, StartedAtMS: began.Milliseconds()})
	for _, f := range got.FunctionCalls {
		f.AtMS, f.Step = x.now().Milliseconds(), step
		if len(f.Arguments) == 0 {
			f.Arguments = json.RawMessage("{}")
		}
		x.r.FunctionCalls = append(x.r.FunctionCalls, f)
	}
	if got.Message == nil {
		x.t.Missed = append(x.t.Missed, step)
		return false, nil
	}
	x.answered(step, *got.Message, x.now()-began)
	return true, nil
}

// answered notes what the assistant wrote.
func (x *texting) answered(step int, text string, took time.Duration) {
	x.t.Texts = append(x.t.Texts, Text{Step: step, Text: text, Took: took})
	x.r.Turns = append(x.r.Turns, Turn{Speaker: "assistant", Text: text, StartedAtMS: x.now().Milliseconds()})
}

// improvise lets a persona go on with the chat after its steps.
func (x *texting) improvise(ctx context.Context) error {
	var messages []ai.Message
	for _, turn := range x.r.Turns { // the persona is who asks here
		role := ai.User
		if turn.Speaker == "customer" {
			role = ai.Assistant
		}
		messages = append(messages, ai.Message{Role: role, Text: turn.Text})
	}
	if len(messages) == 0 {
		messages = append(messages, ai.Message{Role: ai.User, Text: "(silence)"})
	}
	for range x.Caller.Turns {
		words, leaves, err := x.mind.next(ctx, x.Caller.Persona, messages)
		if err != nil {
			return err
		}
		if words != "" {
			x.Steps = append(x.Steps, Step{Line: x.Line, Kind: Say, Text: words, Parts: []Part{{Words: words}}})
			from := x.now()
			ok, err := x.write(ctx, len(x.Steps)-1, words)
			x.t.Steps = append(x.t.Steps, Span{from, x.now()})
			if !ok || err != nil {
				return err
			}
			messages = append(messages, ai.Message{Role: ai.Assistant, Text: words},
				ai.Message{Role: ai.User, Text: x.t.Texts[len(x.t.Texts)-1].Text})
		}
		if leaves {
			return nil
		}
	}
	return nil
}
