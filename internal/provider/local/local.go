// Package local is the model that is always available: a responder without a language model. It answers with the
// sentences of the prompt and of given passages that are relevant to the question, remembers what customers said about
// themselves in the conversation, calls a tool whose words the message uses, and says what it is. The same request
// always gets the same reply.
package local

import (
	"context"
	"strings"

	"parley/internal/ai"
)

// Model implements ai.Model. The zero value is ready.
type Model struct{}

// What it says of itself, and when it knows nothing better.
const (
	whatIAm  = "I am a built-in responder without a language model: I answer from what this assistant was told, and I can use its tools."
	dontKnow = "I am a built-in responder without a language model, and I have found nothing about that in what I was told. " +
		"Please ask in other words, or about something else."
	askPrefix = "I can do that for you. Please tell me "
)

// Generate implements ai.Model.
func (Model) Generate(ctx context.Context, req ai.Request, yield func(ai.Delta) error) (ai.Reply, error) {
	whole := respond(req)
	var r ai.Reply
	said := 0 // bytes of whole.Text
	give := func(d ai.Delta) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		said += len(d.Text)
		r.Text = whole.Text[:said]
		if d.Call != nil {
			r.Calls = append(r.Calls, *d.Call)
		}
		return yield(d)
	}
	for word := range strings.SplitAfterSeq(whole.Text, " ") {
		if word == "" {
			continue
		}
		if err := give(ai.Delta{Text: word}); err != nil {
			return r, err
		}
	}
	for _, c := range whole.Calls {
		if err := give(ai.Delta{Call: &c}); err != nil {
			return r, err
		}
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r.Finish, r.Usage = whole.Finish, count(req, whole)
	return r, nil
}

// count takes words for tokens.
func count(req ai.Request, r ai.Reply) ai.Usage {
	u := ai.Usage{In: len(strings.Fields(req.System)) + 1, Out: len(strings.Fields(r.Text)) + len(r.Calls) + 1}
	for _, m := range req.Messages {
		u.In += len(strings.Fields(m.Text)) + 1
	}
	return u
}

// respond decides what to say or to call.
func respond(req ai.Request) ai.Reply {
	t := newTalk(req.Messages)
	if req.Schema != nil {
		return words(extract(req.Schema.JSON, t.said))
	}
	if len(t.results) > 0 {
		return words(t.tell(req.Tools))
	}
	if strings.TrimSpace(t.said) == "" {
		return words("Hello! How can I help you?")
	}
	if s := t.courtesy(); s != "" {
		return words(s)
	}
	prompt := passages(req.System)
	found, cover := find(prompt, t.said)
	missing := ""
	if !req.NoCalls {
		call, lacks := t.choose(req.Tools)
		if call != nil {
			return ai.Reply{Calls: []ai.ToolCall{*call}, Finish: ai.ToolCalls}
		}
		missing = lacks
	}
	if s := t.recall(found, cover); s != "" {
		return words(s)
	}
	if cover < enough && missing != "" {
		return words(askPrefix + missing + ".")
	}
	if cover < enough && !req.NoCalls {
		if call := t.search(req.Tools); call != nil {
			return ai.Reply{Calls: []ai.ToolCall{*call}, Finish: ai.ToolCalls}
		}
	}
	if found == "" {
		return words(dontKnow)
	}
	return words(found)
}

func words(s string) ai.Reply { return ai.Reply{Text: s, Finish: ai.Stop} }
