// Package carrier is the interface to companies that rent out phone numbers and carry text messages. The sandbox and
// Twilio are below it.
package carrier

import (
	"context"
	"errors"
	"time"

	"parley/internal/parley"
)

// Carrier rents numbers and sends text messages. Its methods return an *Error where the carrier refused; any other
// error means that the outcome is not known.
type Carrier interface {
	// Search finds numbers that can be rented in a country (ISO 3166-1 alpha-2) and that contain some digits, "" for
	// any.
	Search(ctx context.Context, country, contains string) ([]Number, error)
	// Buy rents a number (E.164) and points it at us. A number that is rented already is no failure: after a crash it
	// is asked again.
	Buy(ctx context.Context, number string) error
	// Release gives a number back. One that is not rented is no failure.
	Release(ctx context.Context, number string) error
	// Send takes a message on its way and returns the carrier's name for it.
	Send(ctx context.Context, m SMS) (sid string, err error)
}

// Finder is a Carrier that can say what it has taken. It is asked before a message whose fate is not known is sent
// again.
type Finder interface {
	// Find returns the carrier's names of the messages like m that it took since then, oldest first.
	Find(ctx context.Context, m SMS, since time.Time) (sids []string, err error)
}

// Once is a Carrier that takes a message of the same reference once, however often it is sent.
type Once interface{ SendsOnce() }

// KeywordAnswerer is a Carrier that answers STOP, START and HELP itself, so that we must not.
type KeywordAnswerer interface{ AnswersKeywords() }

// Number is a number that can be rented.
type Number struct {
	PhoneNumber         string // E.164
	CountryCode         string
	AddressRequirements string // none, local, foreign, inventory
	SMSCapable          bool
}

// SMS is a message to be sent.
type SMS struct {
	UserID    int64  // whose it is; none of the carrier's business but the sandbox's
	Reference string // our name for it, such as "sms:12": reports carry it
	From      string // E.164; "" leaves it to the carrier, where it can
	To        string // E.164
	Body      string
}

// Report is what a carrier tells of a message that it took.
type Report struct {
	Reference string
	SID       string
	Status    parley.SMSStatus
	Error     string // why, where it was not delivered
}

// Inbound is a message that came in.
type Inbound struct {
	SID      string // unique
	From, To string // E.164
	Body     string
}

// Error is a carrier's refusal: what was asked has not happened.
type Error struct {
	Status  int    // HTTP status; 0 where there was none
	Code    int    // the carrier's own
	Message string // may be shown to users
	Taken   bool   // the number is not to be had
	Later   bool   // it may do what was asked at another time
}

func (e *Error) Error() string { return e.Message }

// Refusal is the carrier's refusal in err, nil where the outcome is not known.
func Refusal(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
