package mail

import (
	"context"

	"parley/internal/parley"
	"parley/internal/store"
)

// Kind is what an e-mail is about. It decides the subject, in which nobody else's words stand, and to whom it may go.
type Kind int

// The kinds of e-mail.
const (
	AlertRaised Kind = iota
	AlertResolved
	AlertTest
	NotStarted   // a scheduled campaign
	NewPassword  // a link with which a member chooses one
	Invitation   // a link with which somebody becomes a member
	Confirmation // a link that shows that an address is its reader's
)

var subjects = map[Kind]string{
	AlertRaised: "An alert of your account was raised", AlertResolved: "An alert of your account is resolved",
	AlertTest: "A test of an alert", NotStarted: "A campaign did not start", NewPassword: "A new password for Parley",
	Invitation: "You are invited to Parley", Confirmation: "Confirm your e-mail address",
}

// How many e-mails a day (UTC) may go out.
const (
	maxOfAccount = 200 // that an account causes
	maxToProven  = 100 // to an address that somebody of that account has confirmed, whichever accounts cause them
	maxToOthers  = 3   // to any other, likewise
)

// may is the rule for every e-mail: it goes to an address that somebody who works in the account has confirmed. Two kinds, which ask
// whoever reads them whether they want anything at all, go to others too. Both the account and the address have a daily count.
func (k Kind) may(ctx context.Context, tx *store.Tx, userID int64, email string) (bool, error) {
	proven, err := tx.ProvenEmail(ctx, userID, email)
	if err != nil || !proven && k != Invitation && k != Confirmation {
		return false, err
	}
	most := int64(maxToOthers)
	if proven {
		most = maxToProven
	}
	return tx.CountMail(ctx, userID, email, maxOfAccount, most, parley.Now())
}
