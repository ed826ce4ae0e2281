package live

import (
	"fmt"
	"time"

	"parley/internal/ai"
)

// reply is something that the model says or was asked to say. Until somebody has given it a number, its events wait.
type reply struct {
	n        int
	numbered bool
	events   []ai.RealtimeEvent
	overAt   time.Time // when the server had no more of it; zero before
	usage    ai.Usage
	cut      bool // nobody hears the rest
	told     bool // that it is over
}

// say tells an event of a reply. The lock is held.
func (l *Link) say(r *reply, e ai.RealtimeEvent) {
	switch e.N = r.n; {
	case r.cut || r.told:
	case r.numbered:
		l.Tell(e)
	default:
		r.events = append(r.events, e)
	}
}

// finish tells that a reply is over, once. The lock is held.
func (l *Link) finish(r *reply, err error) {
	if r.told {
		return
	}
	e := ai.RealtimeEvent{Kind: ai.RealtimeDone, N: r.n, Usage: r.usage, Err: ai.TheModel.Of(err)}
	if r.cut {
		e.Err = nil
	}
	if r.told = true; r.numbered {
		l.Tell(e)
	} else {
		r.events = append(r.events, e)
	}
}

// number gives a reply its number, and tells what waited for it. The lock is held.
func (l *Link) number(r *reply, n int) {
	r.n, r.numbered = n, true
	for _, e := range r.events {
		e.N = n
		l.Tell(e)
	}
	r.events = nil
}

// heardOnly is the note about a reply that was cut.
func heardOnly(text string) string {
	if text == "" {
		return "The customer has heard nothing of what you said last, and knows nothing of it."
	}
	return fmt.Sprintf("Of what you said last the customer has heard only: “%s”. They know nothing of the rest.", text)
}

// resultOf is the note about a tool that was called, and has answered.
func resultOf(c ai.ToolCall, result string) string {
	if c.Name == "" {
		return "The tool has answered: " + result
	}
	return fmt.Sprintf("The tool %s, called with %s, has answered: %s", c.Name, c.Arguments, result)
}
