package alert

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/internal/mail"
	"parley/internal/parley"
	"parley/internal/store"
)

// Told is where an event of an alert goes.
type Told struct {
	Email   *string `json:"email" doc:"null: no e-mail is sent."`
	Webhook *string `json:"webhook" doc:"null: no webhook is sent."`
}

// tell has an event of an alert told, with the transaction that makes it true.
func (w *Watch) tell(ctx context.Context, tx *store.Tx, u *parley.User, a *parley.Alert, e parley.AlertEvent) (*Told, error) {
	told := &Told{}
	if a.Webhook && u.WebhookURL != "" {
		told.Webhook = &u.WebhookURL
		if err := tx.EnqueueDelivery(ctx, u.ID, e.Delivery(u.WebhookURL)); err != nil {
			return nil, err
		}
	}
	if a.Email && w.Mail.On() {
		sent, err := w.Mail.Queue(ctx, tx, w.message(u, a, e))
		if err != nil {
			return nil, fmt.Errorf("tell user %d of an alert: %w", u.ID, err)
		}
		if sent {
			told.Email = &u.Email
		}
	}
	return told, nil
}

// message is what the account's owner reads.
func (w *Watch) message(u *parley.User, a *parley.Alert, e parley.AlertEvent) mail.Message {
	state, at := "Raised", e.RaisedAt
	if e.Event == parley.EventAlertResolved {
		state, at = "Resolved", e.ResolvedAt
	}
	name, kind := strings.Join(strings.Fields(a.Name), " "), mail.AlertRaised
	if e.Event == parley.EventAlertResolved {
		kind = mail.AlertResolved
	}
	if e.Test {
		state, kind = "Test", mail.AlertTest
	}
	var b strings.Builder
	if e.Test {
		b.WriteString("This is a test: the alert was not raised.\n\n")
	}
	fmt.Fprintf(&b, "%s: %s\n\nThe rule: %s.\n", state, name, a.Rule())
	if a.Value != nil {
		fmt.Fprintf(&b, "Now: %s", a.Shown(*a.Value))
		if a.Kind.Of() {
			fmt.Fprintf(&b, ", of %d calls", a.Calls)
		}
		b.WriteString(".\n")
	}
	fmt.Fprintf(&b, "Time: %s.\n\n%s/alerts/%d\n", at.Time().In(u.Zone()).Format("January 2, 2006, 15:04 MST"), w.URL, a.ID)
	return mail.Message{Kind: kind, Account: u.ID, To: u.Email, Text: b.String()}
}

// Test has an alert told as if it were raised now, marked as a test.
func (w *Watch) Test(ctx context.Context, userID, id int64) (told *Told, err error) {
	err = w.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Alert(ctx, userID, id)
		if err != nil {
			return err
		}
		u, err := tx.User(ctx, userID)
		if err != nil {
			return err
		}
		now := parley.At(w.Now().Truncate(time.Second))
		if err := tx.Meter(ctx, userID, now, "webhook_tests"); err != nil {
			return err
		}
		a.LastRaisedAt = now
		e := a.Event(parley.AlertRaise, now)
		e.Test = true
		if told, err = w.tell(ctx, tx, u, a, e); err != nil {
			return err
		}
		if told.Email == nil && told.Webhook == nil {
			return parley.Errorf(parley.Refused, "Nobody would be told: %s", w.why(u, a))
		}
		return nil
	})
	return told, err
}

// why says why nobody is told of an alert.
func (w *Watch) why(u *parley.User, a *parley.Alert) string {
	var list []string
	switch {
	case !a.Email:
	case !w.Mail.On():
		list = append(list, "this server sends no e-mail (PARLEY_SMTP_URL is not set)")
	case u.EmailProvenAt == 0:
		list = append(list, "the account's e-mail address is not confirmed (on the page Account)")
	default:
		list = append(list, "as many e-mails as may go out in a day have been sent")
	}
	if a.Webhook {
		list = append(list, "the account has no webhook endpoint")
	}
	return strings.Join(list, ", and ") + "."
}
