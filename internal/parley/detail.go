package parley

import (
	"errors"
	"fmt"
)

// Explained is a failure with a sentence for the owner of what failed: which part, why, and how to mend it. It holds
// no secrets and no vendor's own words.
type Explained struct {
	Text string
	Err  error
}

// Explain gives a failure its sentence.
func Explain(err error, format string, a ...any) error {
	return &Explained{fmt.Sprintf(format, a...), err}
}

func (e *Explained) Error() string {
	if _, bare := e.Err.(EndedReason); bare || e.Err == nil { //nolint:errorlint // a wrapped one says more than its reason
		return e.Text
	}
	return e.Err.Error()
}

func (e *Explained) Unwrap() error { return e.Err }

// Explain is the sentence.
func (e *Explained) Explain() string { return e.Text }

// Explanation is the sentence for the owner in an error, "" where it has none.
func Explanation(err error) string {
	var e interface{ Explain() string }
	if errors.As(err, &e) {
		return e.Explain()
	}
	return ""
}

// detail says what failed in a call that has ended with a cause, "" where nothing did.
func (c *Call) detail(cause error) string {
	if text := Explanation(cause); text != "" {
		return text
	}
	switch c.EndedReason {
	case Rejected:
		return "The person called declined the call."
	case Unreachable:
		if c.Type == CallWeb {
			return "The browser's sound never arrived: its network may block UDP. " +
				"Try another network; the operator can set PARLEY_WEBRTC_LISTEN and PARLEY_EXTERNAL_IP."
		}
		return "The call did not get through. Check the number, and the trunk that the call uses."
	case InsufficientBalance:
		return "The balance does not cover what the call may cost. Top it up, or lower the assistant's max_duration."
	case ProviderFailure:
		return "Something failed on the server during the call. Its operator can find the reason in the log, under the call's id."
	case MediaTimeout:
		if c.Type == CallWeb {
			return "The sound from the browser stopped: the page was closed or its network failed."
		}
		return "No sound came from the other side for 30 seconds. If that happens often, a firewall blocks the sound (RTP): " +
			"the server's operator must open PARLEY_RTP_PORTS and set PARLEY_EXTERNAL_IP."
	case NodeLost:
		return "The server that held the call stopped unexpectedly. Nothing is wrong with your settings: the call can be made again."
	case Shutdown:
		return "The server was stopped while the call was live. Nothing is wrong with your settings: the call can be made again."
	}
	if c.Status == CallFailed {
		return "The call failed before anybody answered."
	}
	return ""
}
