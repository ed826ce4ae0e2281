// Package aitest replaces vendors in tests and benchmarks: the scripted Fake, Synthesizer and Recognizer, a Server that
// speaks the OpenAI-compatible protocol on a loopback port and misbehaves on request, and the suites that every
// implementation of the interfaces of package ai passes: Conform, ConformSynthesizer, ConformRecognizer,
// ConformEmbedder.
package aitest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"parley/internal/ai"
)

// Fake is a scripted ai.Model. Each request takes the next step of the script. When the script has run out, or a step
// doesn't specify the reply, it answers as Echo does.
type Fake struct {
	mu       sync.Mutex
	script   []Step
	requests []ai.Request
}

// Step is how a Fake answers one request.
type Step struct {
	Text  string        // yielded word by word
	Calls []ai.ToolCall // yielded after the text
	// Finish defaults to stop or tool_calls.
	Finish ai.Finish
	Err    error         // after everything above
	Delay  time.Duration // before each piece
	// Gate, if set, holds the reply back after its first piece until it is closed.
	Gate <-chan struct{}
}

// Script appends to what the fake will do.
func (f *Fake) Script(steps ...Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, steps...)
}

// Requests lists the requests received, in order.
func (f *Fake) Requests() []ai.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]ai.Request(nil), f.requests...)
}

// Generate implements ai.Model.
func (f *Fake) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	var s Step
	if len(f.script) > 0 {
		s, f.script = f.script[0], f.script[1:]
	}
	f.mu.Unlock()
	if s.Text == "" && s.Calls == nil && s.Finish == "" && s.Err == nil {
		echo := Echo(req)
		s.Text, s.Calls, s.Finish = echo.Text, echo.Calls, echo.Finish
	}
	if s.Finish == "" {
		s.Finish = finish(s.Calls)
	}

	var reply ai.Reply
	for i, d := range pieces(s.Text, s.Calls) {
		if err := wait(ctx, s.Delay, s.Gate, i); err != nil {
			return reply, err
		}
		if d.Call != nil {
			reply.Calls = append(reply.Calls, *d.Call)
		}
		reply.Text += d.Text
		if err := yield(d); err != nil {
			return reply, err
		}
	}
	if err := wait(ctx, s.Delay, s.Gate, len(reply.Text)); err != nil {
		return reply, err
	}
	if s.Err != nil {
		return reply, s.Err
	}
	reply.Finish, reply.Usage = s.Finish, usage(req, s.Text)
	return reply, nil
}

func wait(ctx context.Context, d time.Duration, gate <-chan struct{}, piece int) error {
	if piece > 0 && gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

func finish(calls []ai.ToolCall) ai.Finish {
	if len(calls) > 0 {
		return ai.ToolCalls
	}
	return ai.Stop
}

// pieces are the deltas of a reply: its words, then its calls.
func pieces(text string, calls []ai.ToolCall) []ai.Delta {
	var out []ai.Delta
	for _, w := range strings.SplitAfter(text, " ") {
		if w != "" {
			out = append(out, ai.Delta{Text: w})
		}
	}
	for _, c := range calls {
		out = append(out, ai.Delta{Call: &c})
	}
	return out
}

// usage counts words as tokens.
func usage(req ai.Request, text string) ai.Usage {
	u := ai.Usage{In: len(strings.Fields(req.System)) + 1, Out: len(strings.Fields(text)) + 1}
	for _, m := range req.Messages {
		u.In += len(strings.Fields(m.Text)) + 1
	}
	return u
}

// ErrYield is the error with which Conform's yield refuses.
var ErrYield = errors.New("the reader has had enough")
