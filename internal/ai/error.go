package ai

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Kind says how a vendor failed, in terms of what can be done about it.
type Kind string

// The kinds.
const (
	RateLimited Kind = "rate limited"  // 429: later
	Overloaded  Kind = "overloaded"    // 5xx before anything arrived
	Unreachable Kind = "unreachable"   // the network failed before anything arrived
	Interrupted Kind = "interrupted"   // the stream broke after it began
	Stalled     Kind = "stalled"       // no byte for too long
	Malformed   Kind = "malformed"     // the answer is not what the protocol says, or endless
	Config      Kind = "configuration" // credentials, model name, address, quota: an operator must mend it
	TooLong     Kind = "too long"      // the request is more than the model takes
	Refused     Kind = "refused"       // the vendor refuses this content
)

// Part is the part of a vendor that failed.
type Part string

// The parts.
const (
	TheModel      Part = "model"
	TheVoice      Part = "voice"
	TheRecognizer Part = "recognizer"
	TheEmbedder   Part = "embedder"
)

// Error is a vendor's failure. Its text is for the log, Explain's for the assistant's owner, and neither is for the
// customer.
type Error struct {
	Part Part // "" where it is not known; see Of
	Kind Kind
	// RetryAfter is how long the vendor asks us to wait; 0 when it doesn't say.
	RetryAfter time.Duration
	Err        error
	// Mend tells the assistant's owner what is wrong and how to fix it, if more is known than the kind says; see
	// Explain.
	Mend string
	// Asked and Takes are how many tokens a request that is TooLong had, and how many the model takes, by the vendor's
	// count; 0 where it doesn't say.
	Asked, Takes int

	was *Error // before Of named its part
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", cmp.Or(e.Part, "vendor"), e.Kind, e.Err)
}

// mends tells the owner, for each kind, why a part failed and what can be done.
var mends = map[Kind]string{
	RateLimited: "its provider takes no more requests at the moment (rate limit). " +
		"Try again later, or ask this server's operator for a higher limit.",
	Overloaded: "its provider is overloaded or down. Try again later, or choose another one.",
	Unreachable: "its provider could not be reached. If that goes on, ask this server's operator to look at the network and " +
		"the provider's address.",
	Interrupted: "the connection to its provider broke in the middle. If that goes on, choose another one.",
	Stalled:     "its provider sent nothing for too long. If that goes on, choose another one.",
	Malformed:   "its provider's answer was empty or could not be understood. If that goes on, choose another one.",
	Config: "its provider refuses what this server is configured with: the credentials, the model's name or the quota. " +
		"Choose another one, or ask this server's operator ('parley doctor' says what is wrong).",
	TooLong: "the prompt, the knowledge and the conversation together are more than it takes at once. " +
		"Shorten the prompt, or choose one that takes more.",
	Refused: "its provider refuses this content. Change the prompt, or choose another one.",
}

// Explain tells an assistant's owner which part failed, why, and how to fix it. It includes nothing that the vendor
// said, which may hold the operator's secrets.
func (e *Error) Explain() string {
	if e.Mend != "" {
		return e.Mend
	}
	return fmt.Sprintf("The %s failed: %s", cmp.Or(e.Part, "vendor"),
		cmp.Or(mends[e.Kind], "the operator finds the reason in the log."))
}

// Of names the vendor part that failed: it returns err with the part, if err is an *Error without one. It does not
// change err itself, which others may hold too.
func (p Part) Of(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // one that is wrapped has been told already
	if !ok || e.Part != "" {
		return err
	}
	named := *e
	named.Part, named.was = p, e
	return &named
}

func (e *Error) Unwrap() error {
	if e.was != nil {
		return e.was
	}
	return e.Err
}

// Retry reports whether the same request may be made again: nothing of the reply has been seen, and it may succeed. A
// stall doesn't count: the customer has waited long enough.
func (e *Error) Retry() bool {
	return e.Kind == RateLimited || e.Kind == Overloaded || e.Kind == Unreachable
}

// KindOf is the kind of the *Error in err, "" if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
