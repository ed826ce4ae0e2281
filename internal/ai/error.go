package ai

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Kind says how a vendor failed, in the terms of what can be done about it.
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

// Part is what of a vendor's has failed.
type Part string

// The parts.
const (
	TheModel      Part = "model"
	TheVoice      Part = "voice"
	TheRecognizer Part = "recognizer"
	TheEmbedder   Part = "embedder"
)

// Error is a vendor's failure. Its text is for the log, not for the customer.
type Error struct {
	Part Part // "" where it is not known; see Of
	Kind Kind
	// RetryAfter is how long the vendor asks to wait; 0 when it doesn't say.
	RetryAfter time.Duration
	Err        error

	was *Error // before Of named its part
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", cmp.Or(e.Part, "vendor"), e.Kind, e.Err)
}

// Of is a failure of a part of a vendor's: err with its name, where err is an *Error that has none. It changes nothing of err itself, which others
// may hold too.
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

// Retry says whether the same request may be made again: nothing of the reply has been seen, and it may go better. A stall is not
// among them: the customer has waited long enough.
func (e *Error) Retry() bool {
	return e.Kind == RateLimited || e.Kind == Overloaded || e.Kind == Unreachable
}

// KindOf is the kind of the *Error in err, "" when there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
