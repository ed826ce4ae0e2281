package voice

import (
	"context"
	"encoding/json"
	"slices"

	"parley/internal/agent"
	"parley/internal/crash"
	"parley/internal/turn"
)

// A tool may run in the background: the model is told at once that it has been started, and the conversation goes on.
// When its answer comes, the model is told that too, and speaks of it as soon as nobody else speaks. A tool that is
// still running when the call ends runs to its end; nobody waits for it.

const maxAsync = 8 // tools of a call that run in the background at a time

// asyncCall is a tool that runs while the conversation goes on. Only the owner touches it.
type asyncCall struct {
	n        int // among those of the call
	call     agent.ToolCall
	recorded bool // the call is in the transcript
	result   string
	answered bool
}

// started is what the model is told of it first. No other call of this conversation is told the same.
func (b *asyncCall) started() string {
	return agent.Started(b.n)
}

// async is what an asynchronous tool does: it is started, and the result says so.
func (r *run) async(t agent.Tool) func(context.Context, json.RawMessage) (string, error) {
	return func(_ context.Context, arguments json.RawMessage) (string, error) {
		var b *asyncCall
		r.inbox.ask(func() {
			if r.over || len(r.asyncs) >= maxAsync {
				return
			}
			r.asyncNo++
			b = &asyncCall{n: r.asyncNo}
			r.asyncs = append(r.asyncs, b)
			r.step(turn.Event{Kind: turn.Underway})
		})
		if b == nil {
			return "", agent.TooManyStarted(maxAsync)
		}
		go func() {
			result := "Error: the tool failed."
			defer func() { r.inbox.post(func() { r.answers(b, result) }) }()
			defer crash.Contain(crash.Log("run a tool in the background", "tool", t.Name))
			result, _ = agent.Told(t.Async(context.WithoutCancel(r.ctx), arguments))
		}()
		return b.started(), nil
	}
}

// answers takes the answer of a tool in the background.
func (r *run) answers(b *asyncCall, result string) {
	b.result, b.answered = result, true
	r.report(b)
}

// records takes a call that is in the transcript: it may be of a tool in the background.
func (r *run) records(c agent.ToolCall) {
	for _, b := range r.asyncs {
		if b.started() == c.Result {
			b.call, b.recorded = c, true
			r.report(b)
			return
		}
	}
}

// report tells the record and the model what a tool in the background has answered, once its call is in the transcript.
func (r *run) report(b *asyncCall) {
	i := slices.Index(r.asyncs, b)
	if i < 0 || !b.answered || !b.recorded {
		return
	}
	r.asyncs = slices.Delete(r.asyncs, i, i+1)
	r.corrects(b)
	if !r.over && r.cast != nil {
		news := agent.Answered(b.call.Name, b.n, b.result)
		r.transcript.entries = append(r.transcript.entries, &entry{news: news.Text, told: true})
		if r.cast.keeper != nil {
			r.cast.told(news)
		}
	}
	r.step(turn.Event{Kind: turn.Answered})
}

// corrects puts an answer into the record, in place of the word that the tool was started.
func (r *run) corrects(b *asyncCall) {
	r.transcript.late[b.started()] = b.result
	b.call.Result = b.result
	r.told(Event{Kind: ToolAnswered, Call: b.call, Text: b.started()})
}

// abandon notes that the call is over before the tools in the background have answered.
func (r *run) abandon() {
	for _, b := range r.asyncs {
		if b.recorded {
			b.result = "The call was over before the tool had answered."
			r.corrects(b)
		}
	}
	r.asyncs = nil
}
